"""Cards in a Telegram chat, the full payloads of cards that were cut, and the record of who was shown which.

The record of a proposal has the round in which its card was cut, and the messages that show its payload or
its menu. It serves three ends: their buttons go away when the proposal ends, Approve is refused where the
payload has not been shown, and Approve all is not offered before every payload of the group has been. In a
group, a payload may be shown to one person alone. Then it counts for that person alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

from bot.channels.base import Lookup
from bot.channels.telegram.buttons import ButtonAction
from bot.channels.telegram.card import (
    TelegramCard,
    keyboard,
    make_confirmation,
    make_menu,
    render_card,
    render_everything,
    render_picker,
)
from bot.channels.telegram.dialogue import MOVED_ON, Dialogue
from bot.channels.telegram.limits import Urgency
from bot.channels.telegram.places import NAME, EphemeralTarget, TelegramPlace, TelegramPosted
from bot.channels.telegram.text import plain, style
from bot.channels.telegram.transport import Transport
from bot.domain.batches import Picked
from bot.domain.cards import Card, everything
from bot.domain.chat import Clock
from bot.domain.people import Actor
from bot.domain.text import shorten
from bot.domain.verbs import Verb
from bot.errors import ChannelError
from bot.store import posted_cards
from bot.store.database import Database
from bot.store.state import keep_state, list_states, load_state
from bot.telemetry.logs import logger

_MAX_PASSES = 3
_MAX_TITLE_CHARS = 200  # the card's title above its menu
# stands for the round of a payload shown after the end: its buttons stay while any is offered
_ENDED_ROUND = -1
_MENU_ROUND = -2  # stands for the round of a menu, which shows no payload
_BATCH_SUFFIX = ".all"  # marks the key of a batch's record, behind the id of its first proposal

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class _Page:
    """A message with a proposal's payload or menu, for everyone in a chat or for one ``person`` there."""

    chat_id: int
    message_id: int
    round: int
    person: int | None = None

    @property
    def ref(self) -> TelegramPosted:
        is_ephemeral = self.message_id < 0
        return TelegramPosted(self.chat_id, self.message_id, self.person if is_ephemeral else None)

    def is_outdated(self, card: Card) -> bool:
        """Tell if the buttons of the message have lost their purpose."""
        if self.round == _ENDED_ROUND:
            return not card.verbs
        return not card.pending or self.round not in (_MENU_ROUND, card.round)


@dataclass(frozen=True, slots=True)
class _Record:
    """The record of a proposal's card. ``cut`` is the round in which the card was cut, if it was cut."""

    cut: int | None = None
    pages: Sequence[_Page] = ()

    def hides_payload(self, chat_id: int, person: int | None = None) -> bool:
        """Tell if the payload of a cut card has been shown in this chat neither to all nor to this person."""
        seen = [page for page in self.pages if page.chat_id == chat_id and page.person in (None, person)]
        was_shown = any(page.round == self.cut for page in seen)
        return self.cut is not None and not was_shown

    def as_state(self) -> dict[str, Any] | None:
        """Return the record as JSON to store; None for an empty record."""
        if self.cut is None and not self.pages:
            return None
        return {"cut": self.cut, "messages": [[*astuple(page)] for page in self.pages]}


def _record_name(card: Card) -> str:
    return f"{card.proposal_id}{_BATCH_SUFFIX}" if card.batch else card.proposal_id


class ShownCards:
    """The cards and payloads of Telegram's chats: it posts and redraws them, and records what it showed."""

    def __init__(self, database: Database, transport: Transport, clock: Clock) -> None:
        self._database = database
        self._transport = transport
        self._clock = clock

    async def find_proposal_id(self, message: TelegramPosted) -> str:
        """Return the id of the proposal that a card shows; empty for any other message."""
        copy = await self._database.read(posted_cards.find_posted, NAME, str(message))
        return copy.proposal_id if copy else ""

    async def lay_out(self, card: Card, chat_id: int) -> TelegramCard:
        """Return the card as it should look in this chat, and record whether it is cut."""
        view = render_card(card, await self._count_unseen(card, chat_id))
        record = await self._load_record(_record_name(card))
        cut = card.round if view.cut and card.pending else None
        if record.cut != cut:
            await self._store_record(card, replace(record, cut=cut))
        return view

    async def show_buttons(
        self, card: Card, place: TelegramPlace, message: TelegramPosted, *, more: bool = True
    ) -> None:
        """Show the buttons of a card until its next redraw; without ``more``, leave out the rare buttons."""
        view = render_card(card, await self._count_unseen(card, place.chat_id), more=more)
        await self._transport.edit_keyboard(message, view.keyboard, urgency=Urgency.PRESSED)

    async def open_menu(self, card: Card, place: TelegramPlace, ephemeral: EphemeralTarget) -> bool:
        """Show the buttons behind *More* to one person alone. Return False if Telegram can't do that."""
        person = ephemeral.user_id

        def is_their_menu(page: _Page) -> bool:
            return page.round == _MENU_ROUND and page.person == person

        await self._close_pages(card, place.chat_id, is_their_menu)
        title = style("More: ", "bold") + plain(shorten(card.title, _MAX_TITLE_CHARS))
        sent = await self._transport.send_ephemeral(place, title, make_menu(card), ephemeral)
        if sent is not None:
            await self._store_page(card, _Page(sent.chat_id, sent.message_id, _MENU_ROUND, person))
        return sent is not None

    async def show_picker(
        self, card: Card, message: TelegramPosted, page: int, picked: Picked, *, opens_rows: bool
    ) -> None:
        """Show a page of a batch's rows to pick from, until the card is drawn again."""
        view = render_picker(card, page, picked, opens_rows=opens_rows)
        await self._transport.edit(message, view.rich, view.keyboard, urgency=Urgency.PRESSED)

    async def show_batch(self, card: Card, message: TelegramPosted) -> None:
        """Show a batch as it stands."""
        view = await self.lay_out(card, message.chat_id)
        await self._transport.edit(message, view.rich, view.keyboard, urgency=Urgency.PRESSED)

    async def ask_confirmation(
        self, card: Card, action: ButtonAction | Verb, message: TelegramPosted
    ) -> None:
        """Replace the buttons of a card by a question that confirms the action, with yes and no."""
        await self._transport.edit_keyboard(message, make_confirmation(card, action), urgency=Urgency.PRESSED)

    async def post_copy(
        self,
        card: Card,
        place: TelegramPlace,
        lookup: Lookup,
        actor: Actor,
        message: TelegramPosted | None = None,
    ) -> None:
        """Post a card, or turn ``message`` into a card, as a further copy that is kept up to date.

        If the proposal changed while the card was on its way, it is drawn again.
        """
        message, is_behind = await self._draw_copy(card, place, message)
        if not is_behind:
            return
        copies = await self._database.read(posted_cards.list_copies, card.proposal_id)
        current = await lookup.card(card.proposal_id, actor, place.address)
        if current is None or current.fingerprint == card.fingerprint:
            return
        view = await self.lay_out(current, place.chat_id)
        await self._transport.edit(message, view.rich, view.keyboard)
        for copy in copies:
            if copy.address == place.address and copy.ref == str(message):
                await self._database.write(posted_cards.mark_rendered, copy, current.fingerprint)

    async def _draw_copy(
        self, card: Card, place: TelegramPlace, message: TelegramPosted | None
    ) -> tuple[TelegramPosted, bool]:
        """Post a card or turn a message into a card; return it, and if the proposal changed since."""
        view = await self.lay_out(card, place.chat_id)
        if message is None:
            message = await self._transport.send(place, view.rich, view.keyboard)
        else:
            await self._transport.edit(message, view.rich, view.keyboard)
        is_behind = await self._database.write(
            posted_cards.add_card,
            card.proposal_id,
            place.address,
            str(message),
            card.version,
            card.fingerprint,
        )
        return message, is_behind

    async def post_once(self, card: Card, place: TelegramPlace) -> None:
        """Post a card as a further copy, unless the place has a copy."""
        for copy in await self._database.read(posted_cards.list_copies, card.proposal_id):
            if copy.address == place.address and TelegramPosted.parse(copy.ref).chat_id == place.chat_id:
                return
        await self._draw_copy(card, place, None)

    async def show_payload(
        self, card: Card, place: TelegramPlace, ephemeral: EphemeralTarget | None = None
    ) -> None:
        """Post the full payload with buttons below it; to one person alone where Telegram can do that."""
        person = ephemeral.user_id if ephemeral and self._transport.supports_ephemeral else None

        def is_their_payload(page: _Page) -> bool:
            return page.round != _MENU_ROUND and page.person == person

        await self._close_pages(card, place.chat_id, is_their_payload)
        buttons = keyboard(card, cut=True, viewed=True, unseen=await self._count_unseen(card, place.chat_id))
        pieces = render_everything(card)
        options: Any = {"urgency": Urgency.PRESSED, "ephemeral": ephemeral}
        if pieces is None:  # too long for messages
            name = f"proposal-{card.proposal_id}.txt"
            file = await self._transport.send_file(
                place, name, everything(card), card.title, buttons, **options
            )
            sent = [file]
        else:
            sent = [await self._transport.send(place, piece, **options) for piece in pieces[:-1]]
            sent.append(await self._transport.send(place, pieces[-1], buttons, **options))
        # if any of the messages was for one person alone, no one else has seen everything
        receivers = [message.receiver for message in sent if message.receiver]
        seen_by = receivers[0] if receivers else None
        shown_round = card.round if card.pending else _ENDED_ROUND
        await self._store_page(card, _Page(sent[-1].chat_id, sent[-1].message_id, shown_round, seen_by))

    async def is_fully_shown(self, card: Card, place: TelegramPlace, person: int | None = None) -> bool:
        """Tell if everything that would run has been shown in this chat, to all or to this person."""
        if not render_card(card).cut:
            return True
        record = await self._load_record(_record_name(card))
        return not replace(record, cut=card.round).hides_payload(place.chat_id, person)

    async def is_payload(self, proposal_id: str, message: TelegramPosted) -> bool:
        """Tell if a message is a payload or a menu of the proposal or its batch, and not a card."""
        of_proposal = await self._load_record(proposal_id)
        of_batch = await self._load_record(f"{proposal_id}{_BATCH_SUFFIX}")
        return any(page.ref == message for page in (*of_proposal.pages, *of_batch.pages))

    async def remove_outdated(self, card: Card, chat_id: int) -> None:
        """Take the buttons away from payloads and forms that lead nowhere now."""
        await self._close_pages(card, chat_id, lambda page: page.is_outdated(card))
        for key, state in (await self._database.read(list_states, NAME, f"ask:{chat_id}/")).items():
            form = Dialogue.from_state(state)
            if form.proposal_id != card.proposal_id or form.is_current_for(card):
                continue
            if form.awaits_text:
                continue  # the person is told when the text comes
            await self._database.write(keep_state, NAME, key, None, self._clock())
            if form.prompt is not None:
                person = int(key.rpartition("/")[2]) if form.prompt < 0 else None
                await self._transport.try_edit(TelegramPosted(chat_id, form.prompt, person), plain(MOVED_ON))

    async def offer_approve_all(
        self, proposal_id: str, lookup: Lookup, actor: Actor, place: TelegramPlace
    ) -> None:
        """Offer Approve all on the group's buttons, if it may be offered after a payload was shown."""
        bearer = await self._database.read(posted_cards.find_group_card, proposal_id)
        if not bearer:
            return
        for _ in range(_MAX_PASSES):
            card = await lookup.card(bearer, actor, place.address)
            if card is None or not card.pending or card.group is None:
                return
            await self._draw_buttons(card, place.chat_id)
            current = await lookup.card(card.proposal_id, actor, place.address)
            if current is None or current.version == card.version:
                return  # else it changed in the meantime, and is drawn again

    async def _draw_buttons(self, card: Card, chat_id: int) -> None:
        """Redraw the buttons of a card and of its payload pages in a chat.

        It returns when they are drawn, so that a press is answered with them in place.
        """
        view = await self.lay_out(card, chat_id)
        for copy in await self._database.read(posted_cards.list_copies, card.proposal_id):
            if copy.address.channel != NAME:
                continue
            message = TelegramPosted.parse(copy.ref)
            if message.chat_id == chat_id:
                await self._transport.edit_keyboard(message, view.keyboard, urgency=Urgency.TEXT)
        payload_buttons = keyboard(
            card, cut=True, viewed=True, unseen=await self._count_unseen(card, chat_id)
        )
        record = await self._load_record(_record_name(card))
        for page in record.pages:
            if page.chat_id == chat_id and page.round == card.round:
                await self._transport.edit_keyboard(page.ref, payload_buttons, urgency=Urgency.TEXT)

    async def _count_unseen(self, card: Card, chat_id: int) -> int:
        """Return the number of other cards of the group whose payload this chat has not seen."""
        if card.group is None or Verb.APPROVE_ALL not in card.verbs:
            return 0
        others = [member for member in card.group.members if member != card.proposal_id]
        records = [await self._load_record(proposal_id) for proposal_id in others]
        return sum(record.hides_payload(chat_id) for record in records)

    async def _close_pages(self, card: Card, chat_id: int, is_over: Callable[[_Page], bool]) -> None:
        """Close the pages of a chat that are over: a menu is deleted, a payload loses its buttons."""
        record = await self._load_record(_record_name(card))
        closed = [page for page in record.pages if page.chat_id == chat_id and is_over(page)]
        for page in closed:
            try:
                if page.round == _MENU_ROUND:
                    await self._transport.delete(page.ref)
                else:
                    await self._transport.edit_keyboard(page.ref, None)
            except ChannelError as error:  # a press there is refused anyway
                log.info("telegram buttons left behind", chat=chat_id, why=error.message)
        if closed:
            remaining = [page for page in record.pages if page not in closed]
            await self._store_record(card, replace(record, pages=remaining))

    async def _load_record(self, name: str) -> _Record:
        state = await self._database.read(load_state, NAME, f"view:{name}")
        if state:
            return _Record(state.get("cut"), [_Page(*fields) for fields in state["messages"]])
        return _Record()

    async def _store_page(self, card: Card, page: _Page) -> None:
        record = await self._load_record(_record_name(card))
        await self._store_record(card, replace(record, pages=[*record.pages, page]))

    async def _store_record(self, card: Card, record: _Record) -> None:
        key = f"view:{_record_name(card)}"
        await self._database.write(keep_state, NAME, key, record.as_state(), self._clock())
