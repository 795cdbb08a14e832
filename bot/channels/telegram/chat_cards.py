"""Cards in a Telegram chat, and the record of who was shown the full content of a card that was cut.

- A card is *cut* if its change does not fit one message.
- Its *payload* is the full content, which is then posted on request.
- A *page* is a message with a payload, or with the menu behind *More*.
- A *view record* has the round in which a proposal's card was cut, and its pages. An edit begins a new round.

With the view record

- a page loses its buttons when the proposal ends,
- Approve is refused to people to whom the payload was not shown, and
- Approve all, for the cards of one answer, is not offered before the payload of each cut one was shown.

In a group chat, a page may be shown to one person alone. Then it counts for that person alone.
``presses.py`` and ``channel.py`` call `ShownCards`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple, Self

from bot.channels.base import Lookup
from bot.channels.telegram.buttons import ButtonAction
from bot.channels.telegram.card import (
    TelegramCard,
    make_confirmation,
    make_keyboard,
    make_menu,
    render_card,
    render_everything,
    render_picker,
)
from bot.channels.telegram.dialogue import MOVED_ON_TEXT, Dialogue, make_key_prefix
from bot.channels.telegram.limits import Urgency
from bot.channels.telegram.places import NAME, EphemeralTarget, TelegramPlace, TelegramPosted
from bot.channels.telegram.text import plain, style
from bot.channels.telegram.transport import Transport
from bot.domain.batch_picks import Picked
from bot.domain.call_text import format_call_and_outcome
from bot.domain.cards import Card
from bot.domain.chat import Clock
from bot.domain.people import Actor
from bot.domain.text import shorten
from bot.domain.verbs import Verb
from bot.errors import ChannelError
from bot.store import posted_cards
from bot.store.database import Database
from bot.store.state import list_states, load_state, store_state
from bot.telemetry.logs import logger

_MAX_PASSES = 3  # the most times that buttons are drawn while their proposal changes
_MAX_TITLE_CHARS = 200  # the card's title above its menu
_BATCH_SUFFIX = ".all"  # behind the id of a batch's first proposal: the name of the batch's record

log = logger(__name__)


class _PageKind(Enum):
    """The content of a page.

    A page is stored with one number for its kind and round. For `OPEN` that is the round, which is not
    negative; for another kind it is the value of the member.
    """

    OPEN = 0  # the payload of an open proposal, in a round; this value is never stored
    ENDED = -1  # the payload, shown after the proposal ended: it keeps its buttons while a verb is offered
    MENU = -2  # the buttons behind *More*, without a payload


@dataclass(frozen=True, slots=True)
class _Page:
    """A message with a proposal's payload or menu, for everyone in a chat or for one ``person`` there."""

    chat_id: int
    message_id: int  # negative for an ephemeral message, as in `TelegramPosted`
    kind: _PageKind
    round: int = 0  # the round of the payload, for the kind `OPEN`
    person: int | None = None  # the only person who was shown it; None: everyone

    @classmethod
    def of_payload(cls, sent: TelegramPosted, card: Card, person: int | None) -> Self:
        """Return the page for a payload that was just sent."""
        if card.pending:
            return cls(sent.chat_id, sent.message_id, _PageKind.OPEN, card.round, person)
        return cls(sent.chat_id, sent.message_id, _PageKind.ENDED, person=person)

    @classmethod
    def from_stored(cls, chat_id: int, message_id: int, round_: int, person: int | None = None) -> Self:
        """Read the list that `as_stored` returned."""
        if round_ in (_PageKind.ENDED.value, _PageKind.MENU.value):
            return cls(chat_id, message_id, _PageKind(round_), person=person)
        return cls(chat_id, message_id, _PageKind.OPEN, round_, person)

    def as_stored(self) -> list[int | None]:
        """Return the page as a JSON list: chat, message, round or kind, person."""
        round_ = self.round if self.kind is _PageKind.OPEN else self.kind.value
        return [self.chat_id, self.message_id, round_, self.person]

    @property
    def ref(self) -> TelegramPosted:
        """The reference of the message, which names the person only if the message is ephemeral.

        ``person`` may be set for a message that all see. It is the last of a payload whose other messages
        were ephemeral, so only that person has seen everything.
        """
        receiver = self.person if self.message_id < 0 else None
        return TelegramPosted(self.chat_id, self.message_id, receiver)

    def shows_round(self, round_: int) -> bool:
        """Tell if this is the payload of an open proposal in this round."""
        return self.kind is _PageKind.OPEN and self.round == round_

    def is_outdated(self, card: Card) -> bool:
        """Tell if the buttons of the message have lost their purpose."""
        match self.kind:
            case _PageKind.OPEN:
                return not card.pending or self.round != card.round
            case _PageKind.ENDED:
                return not card.verbs
            case _PageKind.MENU:
                return not card.pending


@dataclass(frozen=True, slots=True)
class _ViewRecord:
    """The view record of a proposal, or of a batch (several calls in one card)."""

    cut_round: int | None = None  # the round in which the card of the open proposal is cut; None if it is not
    pages: Sequence[_Page] = ()

    def shows_payload(self, round_: int, chat_id: int, person: int | None = None) -> bool:
        """Tell if the payload of a round was shown in a chat, to all or to this ``person``.

        Without a person: to all.
        """
        viewers = {None, person}  # None: everyone
        visible_pages = [page for page in self.pages if page.chat_id == chat_id and page.person in viewers]
        return any(page.shows_round(round_) for page in visible_pages)

    def lacks_payload(self, chat_id: int) -> bool:
        """Tell if the card is cut, and its payload was not shown to all in a chat."""
        return self.cut_round is not None and not self.shows_payload(self.cut_round, chat_id)

    def as_state(self) -> dict[str, Any] | None:
        """Return the record as JSON to store; None for an empty record."""
        if self.cut_round is None and not self.pages:
            return None
        return {"cut": self.cut_round, "messages": [page.as_stored() for page in self.pages]}


class _DrawnCopy(NamedTuple):
    """A card that was drawn as a further copy."""

    message: TelegramPosted
    is_outdated: bool  # the proposal has changed since the card was read


class ShownCards:
    """Posts and redraws the cards and payloads of Telegram's chats, and records what was shown."""

    def __init__(self, database: Database, transport: Transport, clock: Clock) -> None:
        self._database = database
        self._transport = transport
        self._clock = clock

    async def find_proposal_id(self, message: TelegramPosted) -> str:
        """Return the id of the proposal that a card shows; empty for any other message."""
        copy = await self._database.read(posted_cards.find_posted, NAME, str(message))
        return copy.proposal_id if copy else ""

    async def render_and_record(self, card: Card, chat_id: int) -> TelegramCard:
        """Return the card as it should look in this chat, and record whether it is cut."""
        view = render_card(card, await self._count_unseen(card, chat_id))
        record = await self._load_record(_name_record(card))
        cut_round = card.round if view.is_cut and card.pending else None
        if record.cut_round != cut_round:
            await self._store_record(card, replace(record, cut_round=cut_round))
        return view

    async def show_buttons(
        self, card: Card, place: TelegramPlace, message: TelegramPosted, *, more: bool = True
    ) -> None:
        """Show the buttons of a card until its next redraw, with those behind *More* or without them."""
        view = render_card(card, await self._count_unseen(card, place.chat_id), shows_more=more)
        await self._transport.edit_keyboard(message, view.keyboard, urgency=Urgency.PRESSED)

    async def open_menu(self, card: Card, place: TelegramPlace, ephemeral: EphemeralTarget) -> bool:
        """Show the buttons behind *More* to one person alone. Return False if Telegram can't do that."""
        person = ephemeral.user_id

        def is_their_menu(page: _Page) -> bool:
            return page.kind is _PageKind.MENU and page.person == person

        await self._close_pages(card, place.chat_id, is_their_menu)
        title = style("More: ", "bold") + plain(shorten(card.title, _MAX_TITLE_CHARS))
        sent = await self._transport.send_ephemeral(place, title, make_menu(card), ephemeral)
        if sent is None:
            return False
        menu = _Page(sent.chat_id, sent.message_id, _PageKind.MENU, person=person)
        await self._store_page(card, menu)
        return True

    async def show_picker(
        self, card: Card, message: TelegramPosted, page: int, picked: Picked, *, opens_rows: bool
    ) -> None:
        """Show a page of a batch's rows to pick from, until the card is drawn again."""
        view = render_picker(card, page, picked, opens_rows=opens_rows)
        await self._transport.edit(message, view.rich, view.keyboard, urgency=Urgency.PRESSED)

    async def show_batch(self, card: Card, message: TelegramPosted) -> None:
        """Show the card of a batch again, in place of its picker."""
        view = await self.render_and_record(card, message.chat_id)
        await self._transport.edit(message, view.rich, view.keyboard, urgency=Urgency.PRESSED)

    async def ask_confirmation(
        self, card: Card, action: ButtonAction | Verb, message: TelegramPosted
    ) -> None:
        """Replace the buttons of a card by the yes and no of the question that confirms the action."""
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

        If the proposal changed while the card was on its way, the card is drawn again. The fingerprint tells
        if it would show the same; then it is not drawn.
        """
        drawn = await self._draw_copy(card, place, message)
        if not drawn.is_outdated:
            return
        copies = await self._database.read(posted_cards.list_copies, card.proposal_id)
        current = await lookup.card(card.proposal_id, actor, place.address)
        if current is None or current.fingerprint == card.fingerprint:
            return
        view = await self.render_and_record(current, place.chat_id)
        await self._transport.edit(drawn.message, view.rich, view.keyboard)
        for copy in copies:
            if copy.address == place.address and copy.ref == str(drawn.message):
                await self._database.write(posted_cards.mark_rendered, copy, current.fingerprint)

    async def _draw_copy(
        self, card: Card, place: TelegramPlace, message: TelegramPosted | None
    ) -> _DrawnCopy:
        """Post a card, or turn ``message`` into it, and store it as a copy."""
        view = await self.render_and_record(card, place.chat_id)
        if message is None:
            message = await self._transport.send(place, view.rich, view.keyboard)
        else:
            await self._transport.edit(message, view.rich, view.keyboard)
        is_outdated = await self._database.write(
            posted_cards.add_card,
            card.proposal_id,
            place.address,
            str(message),
            card.version,
            card.fingerprint,
        )
        return _DrawnCopy(message, is_outdated)

    async def post_once(self, card: Card, place: TelegramPlace) -> None:
        """Post a card as a further copy, unless the place, at its current chat id, has a copy."""
        for copy in await self._database.read(posted_cards.list_copies, card.proposal_id):
            if copy.address == place.address and TelegramPosted.parse(copy.ref).chat_id == place.chat_id:
                return
        await self._draw_copy(card, place, None)

    async def show_payload(
        self, card: Card, place: TelegramPlace, ephemeral: EphemeralTarget | None = None
    ) -> None:
        """Post the payload with buttons below it.

        With ``ephemeral`` it is for that person alone where Telegram can do that, else for all. An earlier
        payload for the same receiver loses its buttons.
        """
        person = ephemeral.user_id if ephemeral and self._transport.supports_ephemeral else None

        def is_their_payload(page: _Page) -> bool:
            return page.kind is not _PageKind.MENU and page.person == person

        await self._close_pages(card, place.chat_id, is_their_payload)
        buttons = make_keyboard(
            card, is_cut=True, is_viewed=True, unseen_count=await self._count_unseen(card, place.chat_id)
        )
        pieces = render_everything(card)
        options: Any = {"urgency": Urgency.PRESSED, "ephemeral": ephemeral}
        if pieces is None:  # too long for messages
            name = f"proposal-{card.proposal_id}.txt"
            file = await self._transport.send_file(
                place, name, format_call_and_outcome(card), card.title, buttons, **options
            )
            sent = [file]
        else:
            sent = [await self._transport.send(place, piece, **options) for piece in pieces[:-1]]
            sent.append(await self._transport.send(place, pieces[-1], buttons, **options))
        # if any of the messages was for one person alone, no one else has seen everything
        receivers = [message.receiver for message in sent if message.receiver]
        seen_by = receivers[0] if receivers else None
        await self._store_page(card, _Page.of_payload(sent[-1], card, seen_by))

    async def is_fully_shown(self, card: Card, place: TelegramPlace, person: int | None = None) -> bool:
        """Tell if everything that would run has been shown in this chat, to all or to this person."""
        if not render_card(card).is_cut:
            return True
        record = await self._load_record(_name_record(card))
        return record.shows_payload(card.round, place.chat_id, person)

    async def is_page(self, proposal_id: str, message: TelegramPosted) -> bool:
        """Tell if a message is a payload or a menu of the proposal or its batch, and not a card."""
        of_proposal = await self._load_record(proposal_id)
        of_batch = await self._load_record(f"{proposal_id}{_BATCH_SUFFIX}")
        return any(page.ref == message for page in (*of_proposal.pages, *of_batch.pages))

    async def remove_outdated(self, card: Card, chat_id: int) -> None:
        """Close the outdated pages of a card, and end the dialogues about an earlier round.

        A dialogue (``dialogue.py``) is a form for one person. Its message is replaced by a note.
        """
        await self._close_pages(card, chat_id, lambda page: page.is_outdated(card))
        key_prefix = make_key_prefix(chat_id)
        for key, state in (await self._database.read(list_states, NAME, key_prefix)).items():
            dialogue = Dialogue.from_state(state)
            if dialogue.proposal_id != card.proposal_id or dialogue.is_current_for(card):
                continue
            if dialogue.awaits_text:
                continue  # the person is told when the text comes
            await self._database.write(store_state, NAME, key, None, self._clock())  # None: delete
            if dialogue.prompt is not None:
                is_ephemeral = dialogue.prompt < 0
                person = int(key.removeprefix(key_prefix)) if is_ephemeral else None
                prompt = TelegramPosted(chat_id, dialogue.prompt, person)
                await self._transport.try_edit(prompt, plain(MOVED_ON_TEXT))

    async def offer_approve_all(
        self, proposal_id: str, lookup: Lookup, actor: Actor, place: TelegramPlace
    ) -> None:
        """Redraw an answer's first card after a payload was shown, with Approve all if it may be offered.

        The first card has the buttons for all cards of the answer (its group).
        """
        first_id = await self._database.read(posted_cards.find_group_card, proposal_id)
        if not first_id:
            return
        for _ in range(_MAX_PASSES):
            card = await lookup.card(first_id, actor, place.address)
            if card is None or not card.pending or card.group is None:
                return
            await self._draw_buttons(card, place.chat_id)
            current = await lookup.card(card.proposal_id, actor, place.address)
            if current is None or current.version == card.version:
                return  # else it changed in the meantime, and is drawn again

    async def _draw_buttons(self, card: Card, chat_id: int) -> None:
        """Redraw the buttons of a card's copies and payloads in a chat, and return once they are drawn."""
        view = await self.render_and_record(card, chat_id)
        for copy in await self._database.read(posted_cards.list_copies, card.proposal_id):
            if copy.address.channel != NAME:
                continue
            message = TelegramPosted.parse(copy.ref)
            if message.chat_id == chat_id:
                await self._transport.edit_keyboard(message, view.keyboard, urgency=Urgency.TEXT)
        payload_buttons = make_keyboard(
            card, is_cut=True, is_viewed=True, unseen_count=await self._count_unseen(card, chat_id)
        )
        record = await self._load_record(_name_record(card))
        for page in record.pages:
            if page.chat_id == chat_id and page.shows_round(card.round):
                await self._transport.edit_keyboard(page.ref, payload_buttons, urgency=Urgency.TEXT)

    async def _count_unseen(self, card: Card, chat_id: int) -> int:
        """Return the number of the group's other cards that are cut, and whose payload not all were shown."""
        if card.group is None or Verb.APPROVE_ALL not in card.verbs:
            return 0
        others = [member for member in card.group.approvable_ids if member != card.proposal_id]
        records = [await self._load_record(proposal_id) for proposal_id in others]
        return sum(record.lacks_payload(chat_id) for record in records)

    async def _close_pages(self, card: Card, chat_id: int, should_close: Callable[[_Page], bool]) -> None:
        """Close some pages of a chat: a menu is deleted, a payload loses its buttons."""
        record = await self._load_record(_name_record(card))
        closed = [page for page in record.pages if page.chat_id == chat_id and should_close(page)]
        for page in closed:
            try:
                if page.kind is _PageKind.MENU:
                    await self._transport.delete(page.ref)
                else:
                    await self._transport.edit_keyboard(page.ref, None)
            except ChannelError as error:  # a press there is refused anyway
                log.info("telegram buttons left behind", chat=chat_id, why=error.message)
        if closed:
            remaining = [page for page in record.pages if page not in closed]
            await self._store_record(card, replace(record, pages=remaining))

    async def _load_record(self, name: str) -> _ViewRecord:
        state = await self._database.read(load_state, NAME, f"view:{name}")
        if state:
            pages = [_Page.from_stored(*fields) for fields in state["messages"]]
            return _ViewRecord(state.get("cut"), pages)
        return _ViewRecord()

    async def _store_page(self, card: Card, page: _Page) -> None:
        record = await self._load_record(_name_record(card))
        await self._store_record(card, replace(record, pages=[*record.pages, page]))

    async def _store_record(self, card: Card, record: _ViewRecord) -> None:
        key = f"view:{_name_record(card)}"
        await self._database.write(store_state, NAME, key, record.as_state(), self._clock())


def _name_record(card: Card) -> str:
    return f"{card.proposal_id}{_BATCH_SUFFIX}" if card.batch else card.proposal_id
