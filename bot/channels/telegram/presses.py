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
from bot.channels.telegram.buttons import GRANT_ACTIONS, PICK_ACTIONS, SURE, VERBS, ButtonAction, ButtonData
from bot.channels.telegram.dialogue import Who
from bot.channels.telegram.forms import DialogueRunner
from bot.channels.telegram.inbound import actor_of, place_of
from bot.channels.telegram.limits import Urgency
from bot.channels.telegram.places import NAME, EphemeralTarget, TelegramPlace, TelegramPosted
from bot.channels.telegram.shown import ShownCards
from bot.channels.telegram.text import plain
from bot.channels.telegram.transport import Transport, posted_of
from bot.domain.batches import PAGE, Picked
from bot.domain.cards import Card
from bot.domain.chat import Address, Answer, Inbox, make_said, read_choice, refusal
from bot.domain.verbs import Verb
from bot.errors import ChannelError, NotDeliverable
from bot.store import posted_cards
from bot.store.database import Database
from bot.telemetry.logs import logger

_NO_SUCH_BUTTON = "This button no longer works."
_NOT_HERE = "I can't find this here."
_STRANGER = "We haven't met. Write to me first."
_VIEW_FIRST = "Press View all first: the card does not show everything."
_PRESS_AGAIN = "Telegram didn't take my answer. Press again."
_ONE_MOMENT = "One moment."  # this chat's pace is Nod's own, and others are before them
_ANSWER_SECONDS = 2.0  # seconds for which a press waits for what it shows; its query lives little longer
_IN_PRIVATE = "It is in your private chat with me."
_ROWS_CHANGED = "One of these has changed. Press Back and look again."
_BATCH_VERBS = frozenset({Verb.APPROVE_ALL, Verb.DECLINE_ALL, Verb.STOP_ALL, Verb.UNDO_ALL})
_CARD_ACTIONS = frozenset(
    {
        *VERBS,
        *PICK_ACTIONS,
        ButtonAction.VIEW_ROW,
        ButtonAction.CANCEL,
        ButtonAction.MORE,
        ButtonAction.VIEW,
        ButtonAction.VIEW_GROUP,
        ButtonAction.CONTEXT,
        ButtonAction.REASON,
        ButtonAction.EDIT,
    }
)
_ADMISSION_ACTIONS = frozenset({ButtonAction.LET_IN, ButtonAction.KEEP_OUT})
_APPROVING_ACTIONS = frozenset(
    {
        ButtonAction.APPROVE,
        ButtonAction.CONFIRM_APPROVE,
        ButtonAction.APPROVE_STEPS,
        ButtonAction.APPROVE_ALL,
        ButtonAction.FOR_REAL,
        *GRANT_ACTIONS,
    }
)

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class TelegramPresses:
    """The handler of callback queries, which answers each within its time."""

    database: Database
    transport: Transport
    admission: Admission
    dialogue_runner: DialogueRunner
    inbox: Inbox
    lookup: Lookup
    shown_cards: ShownCards
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
            said, alert = await self._submit_choice(words, query, query.message)
            return await answer.tell(said, alert=alert)
        callback = ButtonData.parse(query.data or "")
        if callback is None or query.message is None:
            return await answer.tell(_NO_SUCH_BUTTON, alert=True)
        message = posted_of(query.message, query.from_user.id)
        if message.receiver not in (None, query.from_user.id):
            await answer.tell(_NOT_HERE, alert=True)  # someone else's, as no app of theirs shows it
        elif callback.action in _ADMISSION_ACTIONS:
            await answer.tell(await self.admission.decide(callback, query.from_user, message, answer.tell))
        elif not (
            await self.admission.admits(query.from_user.id, message.chat_id)
            or await self.lookup.decides(callback.id, actor_of(query.from_user))
        ):
            await answer.tell(_STRANGER, alert=True)
        else:
            place = await self._find_place(query, message, callback.id)
            # where it would have to wait, the press may no longer count when it goes out
            for_all = place.is_private or self.busy(message.chat_id)
            who = Who(
                query.from_user,
                actor_of(query.from_user),
                place,
                query.message.chat.title or "",
                answer.acknowledge,
                None if for_all else EphemeralTarget(query.from_user.id, query.id),
            )
            try:
                said, alert = await self._carry_out(callback, who, message)
            except ChannelError as error:
                log.warning("telegram press not carried out", why=error.message)
                said, alert = _PRESS_AGAIN, True
                if answer.is_answered:
                    await self._ask_to_press_again(who)
            await answer.tell(said, alert=alert)
            await self._update_buttons(callback, who)
        return None

    async def _submit_choice(
        self, words: str, query: CallbackQuery, below: MaybeInaccessibleMessage
    ) -> tuple[str, bool]:
        """Submit a choice button's words.

        Return the toast for the person, and True if it must be dismissed.
        """
        if not await self.admission.admits(query.from_user.id, below.chat.id):
            return _STRANGER, True
        place = place_of(below, self.transport.moves)
        if place is None:
            return _NO_SUCH_BUTTON, True
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
                await self.transport.edit_keyboard(ref, None)
        return told or words, bool(told)

    async def _carry_out(self, callback: ButtonData, who: Who, message: TelegramPosted) -> tuple[str, bool]:
        """Carry out a press. Return the toast for the person, and True if it must be dismissed.

        Raises ChannelError where the press could not be shown; nothing was decided then.
        """
        ref = await self._find_card_ref(callback, message)
        together = ref is not None and callback.action is not ButtonAction.VIEW_ROW
        together = together or callback.action in PICK_ACTIONS or callback.verb in _BATCH_VERBS
        card = await self.lookup.card(callback.id, who.actor, who.place.address, ref, together=together)
        if card is None:
            return _NOT_HERE, True
        if callback.action in PICK_ACTIONS:
            return await self._pick_rows(callback, who, card, message)
        if callback.action is ButtonAction.CONTEXT:
            return await self._tell_context(callback.id, who)
        if callback.asks:
            said = await self.dialogue_runner.press(who, callback, card, message)
            return said, bool(said)
        if callback.action in (ButtonAction.MORE, ButtonAction.CANCEL):
            await who.acknowledge_press()
            more = callback.action is ButtonAction.MORE
            if not (
                more and who.ephemeral and await self.shown_cards.open_menu(card, who.place, who.ephemeral)
            ):
                await self.shown_cards.show_buttons(card, who.place, message, more=more)
            return "", False
        if callback.action in (ButtonAction.VIEW, ButtonAction.VIEW_GROUP, ButtonAction.VIEW_ROW):
            grouped = callback.action is ButtonAction.VIEW_GROUP
            hidden = await self._find_hidden(card, who) if grouped else [card]
            await who.acknowledge_press()
            for each in hidden:
                # what leads to Approve all, which stands there for everyone, is shown to everyone
                await self.shown_cards.show_payload(each, who.place, None if grouped else who.ephemeral)
                # it may have ended while it was being shown
                await self._remove_outdated(each.proposal_id, who, together=each.batch is not None)
            return "", False
        if callback.action in _APPROVING_ACTIONS and await self._find_hidden(card, who, callback.action):
            return _VIEW_FIRST, True
        if callback.round == card.round and (
            asked := await self._ask_confirmation(callback.action, card, who, message)
        ):
            return asked
        if callback.action in GRANT_ACTIONS:
            said = await self.dialogue_runner.press_grant(who, callback, card, message)
            return said, bool(said) and callback.action is not ButtonAction.DURATION
        if callback.verb is None:
            return _NO_SUCH_BUTTON, True
        names = who.place.named(who.title)
        press = who.press(callback.verb, callback.id, callback.round, ref=ref, names=names)
        reply = await self.inbox(press)
        return reply.text, reply.answer is not Answer.ACCEPTED

    async def _tell_context(self, proposal_id: str, who: Who) -> tuple[str, bool]:
        """Send the turn that led to a card to this person alone; in a group, to their own chat with Nod."""
        words = await self.lookup.context(proposal_id, who.actor, who.place.address)
        if words is None:
            return NOT_YOURS, True
        await who.acknowledge_press()
        place = who.place if who.place.is_private else TelegramPlace(who.user.id)
        try:
            await self.transport.send(place, plain(words), urgency=Urgency.PRESSED)
        except NotDeliverable:
            return _STRANGER, True
        return "" if who.place.is_private else _IN_PRIVATE, False

    async def _ask_confirmation(
        self, does: ButtonAction | Verb, card: Card, who: Who, message: TelegramPosted
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
        await who.acknowledge_press()
        await self.shown_cards.ask_confirmation(card, does, message)
        if verb is Verb.APPROVE:
            return (sure.question, False)
        return (f"{sure.question} {sure.more}", True)

    async def _pick_rows(
        self, callback: ButtonData, who: Who, card: Card, message: TelegramPosted
    ) -> tuple[str, bool]:
        """Pick rows of a batch, or decide those that are picked."""
        looks = callback.action in (ButtonAction.LIST_ROWS, ButtonAction.BACK_TO_BATCH)
        if card.batch is None or not (card.pending or looks):
            return _NO_SUCH_BUTTON, True
        if callback.action is ButtonAction.BACK_TO_BATCH:
            await who.acknowledge_press()
            await self.shown_cards.show_batch(card, message)
            return "", False
        if callback.round != card.round:
            return _ROWS_CHANGED, True
        place = callback.index or 0
        try:
            if callback.picked:
                picked = Picked.parse(callback.picked)
            else:
                picked = Picked.all_of(card)
        except ValueError:
            return _NO_SUCH_BUTTON, True
        if callback.action not in (ButtonAction.DECIDE, ButtonAction.DECIDE_SOME):
            toggles = callback.action is ButtonAction.TOGGLE
            page = place // PAGE if toggles else place
            if toggles:
                picked = picked.toggle(place)
            await who.acknowledge_press()
            await self.shown_cards.show_picker(
                card, message, page, picked, looks=callback.action is ButtonAction.LIST_ROWS
            )
            return "", False
        if not await self.shown_cards.is_fully_shown(card, who.place, who.user.id):
            return _VIEW_FIRST, True
        declines, at = callback.action is ButtonAction.DECIDE, who.place.address
        choice = picked.choice(card, who.actor, callback.round, at, declines=declines, ref=str(message))
        reply = await self.inbox(choice)
        return reply.text, reply.answer is not Answer.ACCEPTED

    async def _find_card_ref(self, callback: ButtonData, message: TelegramPosted) -> str | None:
        """Return the reference of the pressed card; None for a form, and for a payload below its card."""
        if message.receiver is not None:
            return None
        begins = (
            callback.action in _CARD_ACTIONS
            or isinstance(callback.action, Verb)
            or (callback.action is ButtonAction.SIMILAR and callback.index is None)
        )
        shown_below = not begins or await self.shown_cards.is_payload(callback.id, message)
        return None if shown_below else str(message)

    async def _update_buttons(self, callback: ButtonData, who: Who) -> None:
        if callback.action in (ButtonAction.VIEW, ButtonAction.VIEW_GROUP):
            await self.shown_cards.offer_approve_all(callback.id, self.lookup, who.actor, who.place)
        elif not callback.asks and callback.action not in PICK_ACTIONS:
            await self._remove_outdated(callback.id, who, together=callback.verb in _BATCH_VERBS)

    async def _find_hidden(
        self, card: Card, who: Who, does: ButtonAction | Verb = ButtonAction.VIEW_GROUP
    ) -> list[Card]:
        """Return the cards of a press that hide something no one here has viewed yet."""
        about = [card]
        grouped = card.group is not None and does in (ButtonAction.VIEW_GROUP, ButtonAction.APPROVE_ALL)
        if card.group and grouped:
            others = [m for m in card.group.members if m != card.proposal_id]
            found = [await self.lookup.card(m, who.actor, who.place.address) for m in others]
            about = [*(c for c in found if c), card]
        person = None if grouped else who.user.id  # Approve all stands there for everyone
        return [
            c for c in about if c.pending and not await self.shown_cards.is_fully_shown(c, who.place, person)
        ]

    async def _remove_outdated(self, proposal_id: str, who: Who, *, together: bool = False) -> None:
        card = await self.lookup.card(proposal_id, who.actor, who.place.address, together=together)
        if card is not None:
            await self.shown_cards.remove_outdated(card, who.place.chat_id)

    async def _find_place(
        self, query: CallbackQuery, message: TelegramPosted, proposal_id: str
    ) -> TelegramPlace:
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

    async def _ask_to_press_again(self, who: Who) -> None:
        with suppress(ChannelError):
            await self.transport.send(
                who.place, plain(_PRESS_AGAIN), urgency=Urgency.PRESSED, ephemeral=who.ephemeral
            )


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
    is_answered: bool = False
    _timer: asyncio.Task[None] | None = None

    async def acknowledge(self) -> None:
        """Answer with "a moment" when the press has to wait: now in a busy chat, else after a pause."""
        self.release_line()
        if self.busy(self.chat_id):
            await self.tell(_ONE_MOMENT)
        elif self._timer is None:
            self._timer = asyncio.create_task(self._tell_later())

    async def _tell_later(self) -> None:
        await self.sleep(_ANSWER_SECONDS)
        await self.tell(_ONE_MOMENT)

    async def tell(self, text: str = "", *, alert: bool = False) -> None:
        """Answer the press, unless it is answered. A failure to answer does not stop the press."""
        if self.is_answered:
            return
        self.is_answered = True
        self.release_line()
        try:
            await self.transport.answer_press(self.query.id, text, alert=alert)
        except ChannelError as error:
            log.warning("telegram press not answered", why=error.message)

    def close(self) -> None:
        """End the press, done or failed."""
        self.release_line()
        if self._timer is not None:
            self._timer.cancel()

    def release_line(self) -> None:
        """Let the next press of this person start."""
        if self.line is not None:
            self.line.release()
            self.line = None
