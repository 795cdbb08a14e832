"""Record of what a chat was shown of a proposal: its cards, and the full payload of a card that was cut.

Kept for each proposal: if its card is cut, and the messages with its payload. So their buttons go away when
it ends, Approve is refused where the payload has not been shown, and Approve all is not offered before every
payload of the group has been. In a group a payload may be shown to one person alone: then it counts for them
alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

from bot.channels.base import Lookup
from bot.channels.telegram.buttons import ButtonAction
from bot.channels.telegram.card import (
    TelegramCard,
    keyboard,
    make_menu,
    question,
    render_card,
    render_picker,
    whole,
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
_MAX_TITLE_CHARS = 200  # characters of a card's title above its make_menu
_ENDED_ROUND = -1  # instead of a round: shown after the end, so its buttons stay while any is offered
_MENU_ROUND = -2  # instead of a round: only what is behind *More*
_BATCH_SUFFIX = ".all"  # behind the id of its first row: what was shown of a batch

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class _Page:
    """A message that was shown of a proposal, to everyone in a chat or to one ``person`` there."""

    chat_id: int
    message_id: int
    round: int
    person: int | None = None

    @property
    def ref(self) -> TelegramPosted:
        return TelegramPosted(self.chat_id, self.message_id, self.person if self.message_id < 0 else None)

    def is_outdated(self, card: Card) -> bool:
        """Return whether its buttons lead nowhere any longer."""
        if self.round == _ENDED_ROUND:
            return not card.verbs
        return not card.pending or self.round not in (_MENU_ROUND, card.round)


@dataclass(frozen=True, slots=True)
class _ShownPages:
    """The messages that showed one proposal's payload.

    ``cut`` is the round in which its card was cut, if any.
    """

    cut: int | None = None
    pages: Sequence[_Page] = ()

    def hides_payload(self, chat_id: int, person: int | None = None) -> bool:
        """Return whether something of it has not been shown in this chat, to all or to this person."""
        here = (page for page in self.pages if page.chat_id == chat_id and page.person in (None, person))
        return self.cut is not None and all(page.round != self.cut for page in here)

    def state(self) -> dict[str, Any] | None:
        if self.cut is None and not self.pages:
            return None
        return {"cut": self.cut, "messages": [[*astuple(page)] for page in self.pages]}


def _key(card: Card) -> str:
    if card.batch:
        return f"{card.proposal_id}{_BATCH_SUFFIX}"
    return card.proposal_id


class ShownCards:
    """Lays out cards, shows payloads, and remembers what was shown where."""

    def __init__(self, database: Database, transport: Transport, clock: Clock) -> None:
        self._database = database
        self._transport = transport
        self._clock = clock

    async def find_proposal_id(self, message: TelegramPosted) -> str:
        """Return the id of the proposal that a card shows; empty for any other message."""
        found = await self._database.read(posted_cards.find_known, NAME, str(message))
        return found.proposal_id if found else ""

    async def lay_out(self, card: Card, chat_id: int) -> TelegramCard:
        """Give the card as it should look in this chat."""
        view = render_card(card, await self._count_unseen(card, chat_id))
        shown = await self._load_shown(_key(card))
        cut = card.round if view.cut and card.pending else None
        if shown.cut != cut:
            await self._store(card, replace(shown, cut=cut))
        return view

    async def show_buttons(
        self, card: Card, place: TelegramPlace, message: TelegramPosted, *, more: bool = True
    ) -> None:
        """Show all buttons of a card, until it is drawn again; or those it has anyway."""
        view = render_card(card, await self._count_unseen(card, place.chat_id), more=more)
        await self._transport.edit_keyboard(message, view.keyboard, urgency=Urgency.PRESSED)

    async def open_menu(self, card: Card, place: TelegramPlace, ephemeral: EphemeralTarget) -> bool:
        """Show one person alone what is behind *More*; false where Telegram doesn't do that."""
        mine = ephemeral.user_id
        await self._close_pages(
            card, place.chat_id, lambda page: (page.round, page.person) == (_MENU_ROUND, mine)
        )
        title = style("More: ", "bold") + plain(shorten(card.title, _MAX_TITLE_CHARS))
        sent = await self._transport.send_ephemeral(place, title, make_menu(card), ephemeral)
        if sent is not None:
            await self._store_page(card, _Page(sent.chat_id, sent.message_id, _MENU_ROUND, mine))
        return sent is not None

    async def show_picker(
        self, card: Card, message: TelegramPosted, page: int, picked: Picked, *, looks: bool
    ) -> None:
        """Show a page of a batch's rows to pick from, until the card is drawn again."""
        view = render_picker(card, page, picked, looks=looks)
        await self._transport.edit(message, view.rich, view.keyboard, urgency=Urgency.PRESSED)

    async def show_batch(self, card: Card, message: TelegramPosted) -> None:
        """Show a batch as it stands."""
        view = await self.lay_out(card, message.chat_id)
        await self._transport.edit(message, view.rich, view.keyboard, urgency=Urgency.PRESSED)

    async def ask_confirmation(self, card: Card, does: ButtonAction | Verb, message: TelegramPosted) -> None:
        """Ask under a card whether that should be done, in place of its buttons."""
        await self._transport.edit_keyboard(message, question(card, does), urgency=Urgency.PRESSED)

    async def post_copy(
        self,
        card: Card,
        place: TelegramPlace,
        lookup: Lookup,
        actor: Actor,
        message: TelegramPosted | None = None,
    ) -> None:
        """Post a card, or make a message one, as a further copy that is kept up to date.

        What changed on its way is drawn right away.
        """
        message, behind = await self._draw_copy(card, place, message)
        if not behind:
            return
        copies = await self._database.read(posted_cards.of_proposal, card.proposal_id)
        now = await lookup.card(card.proposal_id, actor, place.address)
        if now is None or now.fingerprint == card.fingerprint:
            return  # what was drawn is what is there
        view = await self.lay_out(now, place.chat_id)
        await self._transport.edit(message, view.rich, view.keyboard)
        for copy in copies:
            if copy.address == place.address and copy.ref == str(message):
                await self._database.write(posted_cards.mark_rendered, copy, now.fingerprint)

    async def _draw_copy(
        self, card: Card, place: TelegramPlace, message: TelegramPosted | None
    ) -> tuple[TelegramPosted, bool]:
        """Give the message, and whether it is behind."""
        view = await self.lay_out(card, place.chat_id)
        if message is None:
            message = await self._transport.send(place, view.rich, view.keyboard)
        else:
            await self._transport.edit(message, view.rich, view.keyboard)
        shown = (str(message), card.version, card.fingerprint)
        add = posted_cards.add_card
        return message, await self._database.write(add, card.proposal_id, place.address, *shown)

    async def post_once(self, card: Card, place: TelegramPlace) -> None:
        """Post a card as a further copy, unless one stands there."""
        for copy in await self._database.read(posted_cards.of_proposal, card.proposal_id):
            if copy.address == place.address and TelegramPosted.parse(copy.ref).chat_id == place.chat_id:
                return
        await self._draw_copy(card, place, None)

    async def show_payload(
        self, card: Card, place: TelegramPlace, ephemeral: EphemeralTarget | None = None
    ) -> None:
        """Post everything the card left out; where Telegram does that, to one person alone."""
        person = ephemeral.user_id if ephemeral and self._transport.supports_ephemeral else None
        await self._close_pages(
            card, place.chat_id, lambda page: page.person == person and page.round != _MENU_ROUND
        )
        buttons = keyboard(card, cut=True, viewed=True, unseen=await self._count_unseen(card, place.chat_id))
        pieces = whole(card)
        how: Any = {"urgency": Urgency.PRESSED, "ephemeral": ephemeral}
        if pieces is None:
            name = f"proposal-{card.proposal_id}.txt"
            sent = [
                await self._transport.send_file(place, name, everything(card), card.title, buttons, **how)
            ]
        else:
            sent = [await self._transport.send(place, piece, **how) for piece in pieces[:-1]]
            sent.append(await self._transport.send(place, pieces[-1], buttons, **how))
        # one message that only they see is enough: then no one else has seen everything
        person = next((each.receiver for each in sent if each.receiver), None)
        shown_in = card.round if card.pending else _ENDED_ROUND
        await self._store_page(card, _Page(sent[-1].chat_id, sent[-1].message_id, shown_in, person))

    async def is_fully_shown(self, card: Card, place: TelegramPlace, person: int | None = None) -> bool:
        """Return whether everything that would run has been shown in this chat, to all or to this person."""
        if not render_card(card).cut:
            return True
        shown = await self._load_shown(_key(card))
        return not replace(shown, cut=card.round).hides_payload(place.chat_id, person)

    async def is_payload(self, proposal_id: str, message: TelegramPosted) -> bool:
        """Return whether this message is a payload that `show` posted, not a card."""
        found = [
            *(await self._load_shown(proposal_id)).pages,
            *(await self._load_shown(f"{proposal_id}{_BATCH_SUFFIX}")).pages,
        ]
        return any(page.ref == message for page in found)

    async def remove_outdated(self, card: Card, chat_id: int) -> None:
        """Take the buttons away from payloads and forms that are not, or no longer, up for decision."""
        await self._close_pages(card, chat_id, lambda page: page.is_outdated(card))
        for key, state in (await self._database.read(list_states, NAME, f"ask:{chat_id}/")).items():
            form = Dialogue.from_state(state)
            if form.proposal_id != card.proposal_id or form.is_current_for(card) or form.awaits_text:
                continue  # what is answered by a reply is told then
            await self._database.write(keep_state, NAME, key, None, self._clock())
            if form.prompt is not None:
                person = int(key.rpartition("/")[2]) if form.prompt < 0 else None
                await self._transport.try_edit(TelegramPosted(chat_id, form.prompt, person), plain(MOVED_ON))

    async def offer_approve_all(
        self, proposal_id: str, lookup: Lookup, actor: Actor, place: TelegramPlace
    ) -> None:
        """Offer Approve all on the group's buttons, if it may be offered after a payload was shown."""
        bearer = await self._database.read(posted_cards.bearer, proposal_id)
        for _ in range(_MAX_PASSES if bearer else 0):
            card = await lookup.card(bearer or "", actor, place.address)
            if card is None or not card.pending or card.group is None:
                return
            await self._draw_buttons(card, place.chat_id)
            now = await lookup.card(card.proposal_id, actor, place.address)
            if now is None or now.version == card.version:
                return  # what was drawn is what is there

    async def _draw_buttons(self, card: Card, chat_id: int) -> None:
        """Redraw the buttons of a card and of its payload pages in a chat.

        It returns when they are drawn, so that a press is answered with them in place.
        """
        view = await self.lay_out(card, chat_id)
        for copy in await self._database.read(posted_cards.of_proposal, card.proposal_id):
            if copy.address.channel == NAME and (ref := TelegramPosted.parse(copy.ref)).chat_id == chat_id:
                await self._transport.edit_keyboard(ref, view.keyboard, urgency=Urgency.TEXT)
        below = keyboard(card, cut=True, viewed=True, unseen=await self._count_unseen(card, chat_id))
        for page in (await self._load_shown(_key(card))).pages:
            if page.chat_id == chat_id and page.round == card.round:
                await self._transport.edit_keyboard(page.ref, below, urgency=Urgency.TEXT)

    async def _count_unseen(self, card: Card, chat_id: int) -> int:
        """Return the number of other cards of the group whose payload this chat has not seen."""
        if card.group is None or Verb.APPROVE_ALL not in card.verbs:
            return 0
        others = [await self._load_shown(m) for m in card.group.members if m != card.proposal_id]
        return sum(shown.hides_payload(chat_id) for shown in others)

    async def _close_pages(self, card: Card, chat_id: int, over: Callable[[_Page], bool]) -> None:
        shown = await self._load_shown(_key(card))
        closed = [page for page in shown.pages if page.chat_id == chat_id and over(page)]
        for page in closed:
            try:
                if page.round == _MENU_ROUND:
                    await self._transport.delete(page.ref)
                else:
                    await self._transport.edit_keyboard(page.ref, None)
            except ChannelError as error:  # a press there is refused anyway
                log.info("telegram buttons left behind", chat=chat_id, why=error.message)
        if closed:
            await self._store(card, replace(shown, pages=[p for p in shown.pages if p not in closed]))

    async def _load_shown(self, proposal_id: str) -> _ShownPages:
        state = await self._database.read(load_state, NAME, f"view:{proposal_id}")
        if state:
            return _ShownPages(state.get("cut"), [_Page(*each) for each in state["messages"]])
        return _ShownPages()

    async def _store_page(self, card: Card, page: _Page) -> None:
        shown = await self._load_shown(_key(card))
        await self._store(card, replace(shown, pages=[*shown.pages, page]))

    async def _store(self, card: Card, shown: _ShownPages) -> None:
        key = f"view:{_key(card)}"
        await self._database.write(keep_state, NAME, key, shown.state(), self._clock())
