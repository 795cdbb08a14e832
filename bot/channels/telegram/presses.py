"""Presses in Telegram: each is checked for its person and place first, and always answered."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from telegram import CallbackQuery, MaybeInaccessibleMessage
from telegram.constants import ChatType

from bot.approvals.lookup.context import NOT_YOURS
from bot.channels.base import Lookup
from bot.channels.telegram.admission import Admission
from bot.channels.telegram.buttons import CHOOSING, LADDER, SURE, VERBS, ButtonData, Does
from bot.channels.telegram.dialogue import Who
from bot.channels.telegram.forms import Asker
from bot.channels.telegram.inbound import actor_of, place_of
from bot.channels.telegram.limits import Urgency
from bot.channels.telegram.places import NAME, Alone, TelegramPlace, TelegramPosted
from bot.channels.telegram.shown import ShownCards
from bot.channels.telegram.text import plain
from bot.channels.telegram.transport import Transport, find_posted
from bot.domain.batches import PAGE, Picked
from bot.domain.cards import Card
from bot.domain.chat import Address, Answer, Inbox, make_said, read_choice, refusal
from bot.domain.verbs import Verb
from bot.errors import ChannelError, NotDeliverable
from bot.store import posted_cards
from bot.store.database import Database
from bot.telemetry.logs import logger

_UNREADABLE = "This button no longer works."
_NOT_HERE = "I can't find this here."
_STRANGER = "We haven't met. Write to me first."
_UNSEEN = "Press View all first: the card does not show everything."
_AGAIN = "Telegram didn't take my answer. Press again."
_MOMENT = "One moment."  # this chat's pace is Nod's own, and others are before them
_SOON = 2.0  # seconds for which a press waits for what it shows; its query lives little longer
_IN_PRIVATE = "It is in your private chat with me."
_CHANGED = "One of these has changed. Press Back and look again."
_TOGETHER = frozenset({Verb.APPROVE_ALL, Verb.DECLINE_ALL, Verb.STOP_ALL, Verb.UNDO_ALL})
_ON_CARDS = frozenset(
    {
        *VERBS,
        *CHOOSING,
        Does.ROW,
        Does.KEEP,
        Does.MORE,
        Does.VIEW,
        Does.VIEW_GROUP,
        Does.CONTEXT,
        Does.REASON,
        Does.EDIT,
    }
)
_PAIRING = frozenset({Does.LET_IN, Does.KEEP_OUT})
_APPROVING = frozenset(
    {Does.APPROVE, Does.SURE, Does.APPROVE_STEPS, Does.APPROVE_ALL, Does.FOR_REAL, *LADDER}
)

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class TelegramPresses:
    """The handler of callback queries, which answers each within its time."""

    database: Database
    transport: Transport
    admission: Admission
    asker: Asker
    inbox: Inbox
    lookup: Lookup
    views: ShownCards
    busy: Callable[[int], bool]
    sleep: Callable[[float], Awaitable[None]]
    lines: WeakValueDictionary[tuple[int, int], asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def handle(self, query: CallbackQuery) -> None:
        """Handle the presses of one person in a chat in their order, each once the one before is answered."""
        chat_id = query.message.chat.id if query.message else 0
        line = self.lines.setdefault((chat_id, query.from_user.id), asyncio.Lock())
        await line.acquire()
        answer = _PressAnswer(self.transport, query, line, chat_id, self.busy, self.sleep)
        try:
            await self._handle(query, answer)
        finally:
            answer.close()

    async def _handle(self, query: CallbackQuery, answer: "_PressAnswer") -> None:
        words = read_choice(query.data or "")
        if words and query.message is not None:
            said, alert = await self._say(words, query, query.message)
            return await answer.tell(said, alert=alert)
        callback = ButtonData.parse(query.data or "")
        if callback is None or query.message is None:
            return await answer.tell(_UNREADABLE, alert=True)
        message = find_posted(query.message, query.from_user.id)
        if message.receiver not in (None, query.from_user.id):
            await answer.tell(_NOT_HERE, alert=True)  # someone else's, as no app of theirs shows it
        elif callback.does in _PAIRING:
            await answer.tell(await self.admission.decide(callback, query.from_user, message, answer.tell))
        elif not (
            await self.admission.admits(query.from_user.id, message.chat_id)
            or await self.lookup.decides(callback.id, actor_of(query.from_user))
        ):
            await answer.tell(_STRANGER, alert=True)
        else:
            place = await self._where(query, message, callback.id)
            # where it would have to wait, the press may no longer count when it goes out
            for_all = place.private or self.busy(message.chat_id)
            who = Who(
                query.from_user,
                actor_of(query.from_user),
                place,
                query.message.chat.title or "",
                answer.moment,
                None if for_all else Alone(query.from_user.id, query.id),
            )
            try:
                said, alert = await self._carry_out(callback, who, message)
            except ChannelError as error:
                log.warning("telegram press not carried out", why=error.message)
                said, alert = _AGAIN, True
                if answer.told:
                    await self._again(who)
            await answer.tell(said, alert=alert)
            await self._after(callback, who)
        return None

    async def _say(
        self, words: str, query: CallbackQuery, below: MaybeInaccessibleMessage
    ) -> tuple[str, bool]:
        """Submit a choice button's words.

        Return the toast for the person, and True if it must be dismissed.
        """
        if not await self.admission.admits(query.from_user.id, below.chat.id):
            return _STRANGER, True
        place = place_of(below, self.transport.moves)
        if place is None:
            return _UNREADABLE, True
        ref, names = TelegramPosted(below.chat.id, below.message_id), place.named(below.chat.title)
        message = make_said(
            words,
            str(ref),
            actor_of(query.from_user),
            place.address,
            private=below.chat.type == ChatType.PRIVATE,
            names=names,
        )
        reply = await self.inbox(message)
        told = refusal(reply)
        if reply.answer is not Answer.REFUSED:  # else it stays for those who may
            with suppress(ChannelError):
                await self.transport.dress(ref, None)
        return told or words, bool(told)

    async def _carry_out(self, callback: ButtonData, who: Who, message: TelegramPosted) -> tuple[str, bool]:
        """Carry out a press. Return the toast for the person, and True if it must be dismissed.

        Raises ChannelError where the press could not be shown; nothing was decided then.
        """
        ref = await self._card_of(callback, message)
        together = ref is not None and callback.does is not Does.ROW
        together = together or callback.does in CHOOSING or callback.verb in _TOGETHER
        card = await self.lookup.card(callback.id, who.actor, who.place.address, ref, together=together)
        if card is None:
            return _NOT_HERE, True
        if callback.does in CHOOSING:
            return await self._choose(callback, who, card, message)
        if callback.does is Does.CONTEXT:
            return await self._tell_context(callback.id, who)
        if callback.asks:
            said = await self.asker.press(who, callback, card, message)
            return said, bool(said)
        if callback.does in (Does.MORE, Does.KEEP):
            await who.answered()
            more = callback.does is Does.MORE
            if not (more and who.alone and await self.views.open_menu(card, who.place, who.alone)):
                await self.views.unfold(card, who.place, message, more=more)
            return "", False
        if callback.does in (Does.VIEW, Does.VIEW_GROUP, Does.ROW):
            grouped = callback.does is Does.VIEW_GROUP
            hidden = await self._find_hidden(card, who) if grouped else [card]
            await who.answered()
            for each in hidden:
                # what leads to Approve all, which stands there for everyone, is shown to everyone
                await self.views.show(each, who.place, None if grouped else who.alone)
                # it may have ended while it was being shown
                await self._settle(each.proposal_id, who, together=each.batch is not None)
            return "", False
        if callback.does in _APPROVING and await self._find_hidden(card, who, callback.does):
            return _UNSEEN, True
        if callback.round == card.round and (asked := await self._sure(callback.does, card, who, message)):
            return asked
        if callback.does in LADDER:
            said = await self.asker.climb(who, callback, card, message)
            return said, bool(said) and callback.does is not Does.LASTING
        if callback.verb is None:
            return _UNREADABLE, True
        names = who.place.named(who.title)
        press = who.press(callback.verb, callback.id, callback.round, ref=ref, names=names)
        reply = await self.inbox(press)
        return reply.text, reply.answer is not Answer.ACCEPTED

    async def _tell_context(self, proposal_id: str, who: Who) -> tuple[str, bool]:
        """Send the turn that led to a card to this person alone; in a group, to their own chat with Nod."""
        words = await self.lookup.context(proposal_id, who.actor, who.place.address)
        if words is None:
            return NOT_YOURS, True
        await who.answered()
        place = who.place if who.place.private else TelegramPlace(who.user.id)
        try:
            await self.transport.send(place, plain(words), urgency=Urgency.PRESSED)
        except NotDeliverable:
            return _STRANGER, True
        return "" if who.place.private else _IN_PRIVATE, False

    async def _sure(
        self, does: Does | Verb, card: Card, who: Who, message: TelegramPosted
    ) -> tuple[str, bool] | None:
        """Ask for confirmation where the verb needs one, else return None. Undo's effect is on no card."""
        if does not in SURE:
            return None
        verb = does if isinstance(does, Verb) else VERBS[does]
        sure = card.button(verb).sure if card.pending or verb in card.verbs else None
        each = Verb.UNDO if verb is Verb.UNDO_ALL else verb
        if sure is None or not await self.lookup.may_press(
            card.proposal_id, who.actor, who.place.address, each
        ):
            return None
        await who.answered()
        await self.views.ask(card, does, message)
        if verb is Verb.APPROVE:
            return (sure.question, False)
        return (f"{sure.question} {sure.more}", True)

    async def _choose(
        self, callback: ButtonData, who: Who, card: Card, message: TelegramPosted
    ) -> tuple[str, bool]:
        """Pick rows of a batch, or decide those that are picked."""
        looks = callback.does in (Does.LOOK, Does.FOLD)
        if card.batch is None or not (card.pending or looks):
            return _UNREADABLE, True
        if callback.does is Does.FOLD:
            await who.answered()
            await self.views.fold(card, message)
            return "", False
        if callback.round != card.round:
            return _CHANGED, True
        place = callback.index or 0
        try:
            if callback.picked:
                picked = Picked.parse(callback.picked)
            else:
                picked = Picked.all_of(card)
        except ValueError:
            return _UNREADABLE, True
        if callback.does not in (Does.DECIDE, Does.DECIDE_SOME):
            toggles = callback.does is Does.TOGGLE
            page = place // PAGE if toggles else place
            if toggles:
                picked = picked.toggle(place)
            await who.answered()
            await self.views.choose(card, message, page, picked, looks=callback.does is Does.LOOK)
            return "", False
        if not await self.views.approvable(card, who.place, who.user.id):
            return _UNSEEN, True
        declines, at = callback.does is Does.DECIDE, who.place.address
        choice = picked.choice(card, who.actor, callback.round, at, declines=declines, ref=str(message))
        reply = await self.inbox(choice)
        return reply.text, reply.answer is not Answer.ACCEPTED

    async def _card_of(self, callback: ButtonData, message: TelegramPosted) -> str | None:
        """Return the reference of the pressed card; None for a form, and for a payload below its card."""
        if message.receiver is not None:
            return None
        begins = (
            callback.does in _ON_CARDS
            or isinstance(callback.does, Verb)
            or (callback.does is Does.SIMILAR and callback.index is None)
        )
        shown_below = not begins or await self.views.payload(callback.id, message)
        return None if shown_below else str(message)

    async def _after(self, callback: ButtonData, who: Who) -> None:
        if callback.does in (Does.VIEW, Does.VIEW_GROUP):
            await self.views.settle_group(callback.id, self.lookup, who.actor, who.place)
        elif not callback.asks and callback.does not in CHOOSING:
            await self._settle(callback.id, who, together=callback.verb in _TOGETHER)

    async def _find_hidden(self, card: Card, who: Who, does: Does | Verb = Does.VIEW_GROUP) -> list[Card]:
        """Return the cards of a press that hide something no one here has viewed yet."""
        about = [card]
        grouped = card.group is not None and does in (Does.VIEW_GROUP, Does.APPROVE_ALL)
        if card.group and grouped:
            others = [m for m in card.group.members if m != card.proposal_id]
            found = [await self.lookup.card(m, who.actor, who.place.address) for m in others]
            about = [*(c for c in found if c), card]
        person = None if grouped else who.user.id  # Approve all stands there for everyone
        return [c for c in about if c.pending and not await self.views.approvable(c, who.place, person)]

    async def _settle(self, proposal_id: str, who: Who, *, together: bool = False) -> None:
        card = await self.lookup.card(proposal_id, who.actor, who.place.address, together=together)
        if card is not None:
            await self.views.settle(card, who.place.chat_id)

    async def _where(self, query: CallbackQuery, message: TelegramPosted, proposal_id: str) -> TelegramPlace:
        """Return chat and topic, from the card's stored copy where the message alone can't tell.

        It can't when it is too old to be shown to the bot, or its chat is known by another id.
        """
        moves = self.transport.moves
        place = place_of(query.message, moves) if query.message else None
        if place is not None and place.home is None and (place.thread_id or not message.receiver):
            return place
        key = await self.database.read(posted_cards.key_of, NAME, str(message))
        if key is not None:
            return moves.place(Address(NAME, key))
        if place is None or message.receiver:
            # a form or a payload: it stands where a card of its proposal does
            for copy in await self.database.read(posted_cards.of_proposal, proposal_id):
                if copy.address.channel == NAME and moves.place(copy.address).chat_id == message.chat_id:
                    return moves.place(copy.address)
        return place or moves.here(message.chat_id)

    async def _again(self, who: Who) -> None:
        with suppress(ChannelError):
            await self.transport.send(who.place, plain(_AGAIN), urgency=Urgency.PRESSED, alone=who.alone)


@dataclass(eq=False)
class _PressAnswer:
    """The answer to a press, given once.

    It is sent before anything slow happens, so that the next press can be read.
    """

    transport: Transport
    query: CallbackQuery
    line: asyncio.Lock | None
    chat_id: int
    busy: Callable[[int], bool]
    sleep: Callable[[float], Awaitable[None]]
    told: bool = False
    _soon: asyncio.Task[None] | None = None

    async def moment(self) -> None:
        """Answer with "a moment" when the press has to wait: now in a busy chat, else after a pause."""
        self.stop_waiting()
        if self.busy(self.chat_id):
            await self.tell(_MOMENT)
        elif self._soon is None:
            self._soon = asyncio.create_task(self._tell_soon())

    async def _tell_soon(self) -> None:
        await self.sleep(_SOON)
        await self.tell(_MOMENT)

    async def tell(self, text: str = "", *, alert: bool = False) -> None:
        """Answer the press, unless it is answered. A failure to answer does not stop the press."""
        if self.told:
            return
        self.told = True
        self.stop_waiting()
        try:
            await self.transport.toast(self.query.id, text, alert=alert)
        except ChannelError as error:
            log.warning("telegram press not answered", why=error.message)

    def close(self) -> None:
        """End the press, done or failed."""
        self.stop_waiting()
        if self._soon is not None:
            self._soon.cancel()

    def stop_waiting(self) -> None:
        """Let the next press of this person start."""
        if self.line is not None:
            self.line.release()
            self.line = None
