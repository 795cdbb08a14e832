"""Presses in Telegram: each is checked for its person and place, carried out, and always answered.

Telegram sends a press as a callback query with the button's data (`ButtonData`, below ``callback``). The
answer to it is a toast, or an alert that the person must dismiss; Telegram takes it only for some seconds. So
whatever may be slow first calls `_AnswerSender.acknowledge`.

A card that does not fit a message hides a part of its proposal. A press that approves it is refused until the
*payload*, the full content, was viewed in the chat (``chat_cards.py``). The cards of one answer are a
*group*. A
*batch* is several calls in one card, one in each row. A press that needs more than a button (an edit, a
reason, a grant for similar calls) begins a dialogue (``forms.py``). A *choice button* stands below an answer
and sends its own words.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakValueDictionary

from telegram import CallbackQuery, MaybeInaccessibleMessage
from telegram.constants import ChatType

from bot.approvals.lookup.context import CONTEXT_NOT_YOURS_TEXT
from bot.channels.base import Lookup
from bot.channels.telegram.admission import Admission
from bot.channels.telegram.buttons import (
    CONFIRMATIONS,
    GRANT_ACTIONS,
    PICK_ACTIONS,
    VERBS_BY_ACTION,
    ButtonAction,
    ButtonData,
)
from bot.channels.telegram.chat_cards import ShownCards
from bot.channels.telegram.dialogue import Participant
from bot.channels.telegram.forms import DialogueRunner
from bot.channels.telegram.limits import Urgency
from bot.channels.telegram.places import NAME, EphemeralTarget, TelegramPlace, TelegramPosted
from bot.channels.telegram.reading import actor_of, place_of
from bot.channels.telegram.text import plain
from bot.channels.telegram.transport import Transport, reference_of
from bot.domain.batch_picks import ROWS_PER_PAGE, Picked
from bot.domain.cards import Card
from bot.domain.chat import (
    COMMAND_OFFER_PREFIX,
    Address,
    Answer,
    Inbox,
    act_on_choice,
    format_choice_reply,
    read_choice,
)
from bot.domain.verbs import Verb
from bot.errors import ChannelError, NotDeliverable
from bot.store import posted_cards
from bot.store.database import Database
from bot.telemetry.logs import logger

_NO_SUCH_BUTTON_TEXT = "This button no longer works."
_NOT_HERE_TEXT = "I can't find this here."
_STRANGER_TEXT = "We haven't met. Write to me first."
_VIEW_FIRST_TEXT = "Press View all first: the card does not show everything."
_PRESS_AGAIN_TEXT = "Telegram didn't take my answer. Press again."
_ONE_MOMENT_TEXT = "One moment."  # Nod's own rate limit makes this press wait
_ANSWER_SECONDS = 2.0  # the time until a press that still runs is answered: Telegram soon takes no answer
_IN_PRIVATE_TEXT = "It is in your private chat with me."
_ROWS_CHANGED_TEXT = "One of these has changed. Press Back and look again."
_BATCH_VERBS = frozenset({Verb.APPROVE_ALL, Verb.DECLINE_ALL, Verb.STOP_ALL, Verb.UNDO_ALL})
"""Verbs that are pressed on the card of a batch, or on the first card of a group, for all proposals there."""
_CARD_ACTIONS = frozenset(
    {
        *VERBS_BY_ACTION,
        *PICK_ACTIONS,
        ButtonAction.VIEW_ROW,
        ButtonAction.ANSWER_NO,
        ButtonAction.MORE,
        ButtonAction.VIEW,
        ButtonAction.VIEW_GROUP,
        ButtonAction.CONTEXT,
        ButtonAction.DECLINE_WITH_REASON,
        ButtonAction.EDIT,
    }
)
"""Actions whose buttons are on a card, on a payload, or in the menu behind *More*."""
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
"""Actions that approve, or lead to an approval: they are refused while the card hides a part."""

log = logger(__name__)


class _PressAnswer(NamedTuple):
    """The answer to a press: a toast, or an ``alert`` to dismiss. Without a text nothing is shown."""

    text: str
    alert: bool = False


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
    is_busy: Callable[[int], bool]  # True if the next message to a chat has to wait
    sleep: Callable[[float], Awaitable[None]]
    locks: WeakValueDictionary[tuple[int, int], asyncio.Lock] = field(default_factory=WeakValueDictionary)
    """The locks of presses by chat and person: the press in progress holds its person's lock."""

    async def handle(self, query: CallbackQuery) -> None:
        """Handle a press once the same person's earlier presses in the chat are answered or acknowledged."""
        chat_id = query.message.chat.id if query.message else 0
        lock = self.locks.setdefault((chat_id, query.from_user.id), asyncio.Lock())
        await lock.acquire()  # `_AnswerSender` releases the lock
        sender = _AnswerSender(self.transport, query, lock, chat_id, self.is_busy, self.sleep)
        try:
            await self._handle(query, sender)
        finally:
            sender.close()

    async def _handle(self, query: CallbackQuery, sender: "_AnswerSender") -> None:
        choice = read_choice(query.data or "")
        if choice and query.message is not None:
            text, alert = await self._submit_choice(choice, query, query.message)
            await sender.tell(text, alert=alert)
            return
        callback = ButtonData.parse(query.data or "")
        if callback is None or query.message is None:
            await sender.tell(_NO_SUCH_BUTTON_TEXT, alert=True)
            return
        message = reference_of(query.message, query.from_user.id)
        if message.receiver not in (None, query.from_user.id):
            # the message is for someone else, whose app alone shows it
            await sender.tell(_NOT_HERE_TEXT, alert=True)
        elif callback.action in _ADMISSION_ACTIONS:
            text = await self.admission.decide(callback, query.from_user, message, sender.tell)
            await sender.tell(text)  # does nothing if `decide` has answered already
        elif await self._may_press(query, message, callback):
            await self._press(query, message, callback, sender)
        else:
            await sender.tell(_STRANGER_TEXT, alert=True)

    async def _may_press(self, query: CallbackQuery, message: TelegramPosted, callback: ButtonData) -> bool:
        """Tell if a person is admitted to the chat, or is one of those who decide the proposal."""
        if await self.admission.admits(query.from_user.id, message.chat_id):
            return True
        return await self.lookup.decides(callback.id, actor_of(query.from_user))

    async def _press(
        self, query: CallbackQuery, message: TelegramPosted, callback: ButtonData, sender: "_AnswerSender"
    ) -> None:
        """Carry out a press, answer it, and update the buttons."""
        place = await self._find_place(query, message, callback.id)
        ephemeral = None
        # a press allows a message to one person of a group only for seconds, too short for a busy chat
        if not place.is_private and not self.is_busy(message.chat_id):
            ephemeral = EphemeralTarget(query.from_user.id, query.id)
        title = query.message.chat.title or "" if query.message else ""
        actor = actor_of(query.from_user)
        who = Participant(query.from_user, actor, place, title, sender.acknowledge, ephemeral)
        try:
            text, alert = await self._carry_out(callback, who, message)
        except ChannelError as error:
            log.warning("telegram press not carried out", why=error.message)
            text, alert = _PressAnswer(_PRESS_AGAIN_TEXT, alert=True)
            if sender.is_answered:
                await self._ask_to_press_again(who)
        await sender.tell(text, alert=alert)
        await self._update_buttons(callback, who)

    async def _submit_choice(
        self, choice: str, query: CallbackQuery, pressed: MaybeInaccessibleMessage
    ) -> _PressAnswer:
        """Submit a choice button's words in the person's name."""
        if not await self.admission.admits(query.from_user.id, pressed.chat.id):
            return _PressAnswer(_STRANGER_TEXT, alert=True)
        place = place_of(pressed, self.transport.moves)
        if place is None:
            return _PressAnswer(_NO_SUCH_BUTTON_TEXT, alert=True)
        ref = TelegramPosted(pressed.chat.id, pressed.message_id)
        message = act_on_choice(
            choice,
            str(ref),
            actor_of(query.from_user),
            place.address,
            private=pressed.chat.type == ChatType.PRIVATE,
            names=place.make_names(pressed.chat.title),
        )
        reply = await self.inbox(message)
        # other people may still press a button that offers a command
        is_used_up = reply.answer is not Answer.REFUSED and not choice.startswith(COMMAND_OFFER_PREFIX)
        if is_used_up:
            with suppress(ChannelError):
                await self.transport.edit_keyboard(ref, None)
        refusal_text = format_choice_reply(reply)
        if refusal_text:
            return _PressAnswer(refusal_text, alert=True)
        return _PressAnswer(choice)

    async def _carry_out(
        self, callback: ButtonData, participant: Participant, message: TelegramPosted
    ) -> _PressAnswer:
        """Carry out a press, and return its answer.

        Raises ChannelError if its result could not be shown; nothing was decided then.
        """
        ref = await self._find_card_ref(callback, message)
        # a press on a card is about all that the card shows, which may be a batch; only VIEW_ROW, a button on
        # the card of a batch, is about the row whose id it carries
        is_about_card = ref is not None and callback.action is not ButtonAction.VIEW_ROW
        as_batch = is_about_card or callback.action in PICK_ACTIONS or callback.verb in _BATCH_VERBS
        card = await self.lookup.card(
            callback.id, participant.actor, participant.place.address, ref, together=as_batch
        )
        if card is None:
            return _PressAnswer(_NOT_HERE_TEXT, alert=True)

        if callback.action in PICK_ACTIONS:
            return await self._pick_rows(callback, participant, card, message)
        if callback.action is ButtonAction.CONTEXT:
            return await self._tell_context(callback.id, participant)
        if callback.is_for_dialogue:
            text = await self.dialogue_runner.handle_press(participant, callback, card, message)
            return _PressAnswer(text, alert=bool(text))
        if callback.action in (ButtonAction.MORE, ButtonAction.ANSWER_NO):
            await self._change_buttons(callback, participant, card, message)
            return _PressAnswer("")
        if callback.action in (ButtonAction.VIEW, ButtonAction.VIEW_GROUP, ButtonAction.VIEW_ROW):
            await self._show_payloads(callback, participant, card)
            return _PressAnswer("")

        return await self._decide(callback, participant, card, message, ref)

    async def _decide(
        self,
        callback: ButtonData,
        participant: Participant,
        card: Card,
        message: TelegramPosted,
        ref: str | None,
    ) -> _PressAnswer:
        """Carry out a button that decides, or that leads to a grant. ``ref``: that of the pressed card."""
        if callback.action in _APPROVING_ACTIONS:
            unviewed_cards = await self._list_unviewed_cards(card, participant, callback.action)
            if unviewed_cards:
                return _PressAnswer(_VIEW_FIRST_TEXT, alert=True)
        if callback.round == card.round:  # else the core refuses the press as outdated
            question = await self._ask_confirmation(callback.action, card, participant, message)
            if question:
                return question
        if callback.action in GRANT_ACTIONS:
            text = await self.dialogue_runner.handle_grant_press(participant, callback, card, message)
            is_submitted = callback.action is ButtonAction.DURATION
            return _PressAnswer(text, alert=bool(text) and not is_submitted)
        if callback.verb is None:
            return _PressAnswer(_NO_SUCH_BUTTON_TEXT, alert=True)
        names = participant.place.make_names(participant.title)
        press = participant.make_press(callback.verb, callback.id, callback.round, ref=ref, names=names)
        reply = await self.inbox(press)
        return _PressAnswer(reply.text, alert=reply.answer is not Answer.ACCEPTED)

    async def _change_buttons(
        self, callback: ButtonData, participant: Participant, card: Card, message: TelegramPosted
    ) -> None:
        """Show the buttons behind *More*, to this person alone if possible, or the usual buttons again."""
        await participant.acknowledge_press()
        more = callback.action is ButtonAction.MORE
        if (
            more
            and participant.ephemeral
            and await self.shown_cards.open_menu(card, participant.place, participant.ephemeral)
        ):
            return
        await self.shown_cards.show_buttons(card, participant.place, message, more=more)

    async def _show_payloads(self, callback: ButtonData, participant: Participant, card: Card) -> None:
        """Show the full content of a card, or of each card of its group that still hides a part here."""
        is_group = callback.action is ButtonAction.VIEW_GROUP
        cards = await self._list_unviewed_cards(card, participant, callback.action) if is_group else [card]
        await participant.acknowledge_press()
        # Approve all, which everyone sees, needs payloads that everyone has seen
        ephemeral = None if is_group else participant.ephemeral
        for shown in cards:
            await self.shown_cards.show_payload(shown, participant.place, ephemeral)
            await self.lookup.note_opened(shown.proposal_id, participant.actor)
            # the proposal may have ended in the meantime
            await self._remove_outdated(shown.proposal_id, participant, as_batch=shown.batch is not None)

    async def _tell_context(self, proposal_id: str, participant: Participant) -> _PressAnswer:
        """Send the agent's turn that led to a card to this person alone, in their private chat with Nod."""
        words = await self.lookup.context(proposal_id, participant.actor, participant.place.address)
        if words is None:
            return _PressAnswer(CONTEXT_NOT_YOURS_TEXT, alert=True)
        await participant.acknowledge_press()
        place = participant.place if participant.place.is_private else TelegramPlace(participant.user.id)
        try:
            await self.transport.send(place, plain(words), urgency=Urgency.PRESSED)
        except NotDeliverable:
            return _PressAnswer(_STRANGER_TEXT, alert=True)
        return _PressAnswer("" if participant.place.is_private else _IN_PRIVATE_TEXT)

    async def _ask_confirmation(
        self, action: ButtonAction | Verb, card: Card, participant: Participant, message: TelegramPosted
    ) -> _PressAnswer | None:
        """Ask for confirmation, and return the answer to the press; None if there is nothing to ask.

        For other verbs than Approve the answer is an alert, since the card does not show what they do.
        """
        if action not in CONFIRMATIONS:
            return None
        verb = action if isinstance(action, Verb) else VERBS_BY_ACTION[action]
        if not (card.pending or verb in card.verbs):
            return None
        question = card.button(verb).confirmation
        if question is None:
            return None
        # `may_press` takes the verbs of a single proposal; of the verbs here, only UNDO_ALL is of several
        single_verb = Verb.UNDO if verb is Verb.UNDO_ALL else verb
        if not await self.lookup.may_press(
            card.proposal_id, participant.actor, participant.place.address, single_verb
        ):
            return None  # the core refuses the press
        await participant.acknowledge_press()
        await self.shown_cards.ask_confirmation(card, action, message)
        if verb is Verb.APPROVE:
            return _PressAnswer(question.question)
        return _PressAnswer(f"{question.question} {question.warning}", alert=True)

    async def _pick_rows(
        self, callback: ButtonData, participant: Participant, card: Card, message: TelegramPosted
    ) -> _PressAnswer:
        """Show the picker of a batch, pick a row or leave it out, or decide the picked rows."""
        decides_nothing = callback.action in (ButtonAction.LIST_ROWS, ButtonAction.BACK_TO_BATCH)
        if card.batch is None or not (card.pending or decides_nothing):
            return _PressAnswer(_NO_SUCH_BUTTON_TEXT, alert=True)
        if callback.action is ButtonAction.BACK_TO_BATCH:
            await participant.acknowledge_press()
            await self.shown_cards.show_batch(card, message)
            return _PressAnswer("")
        if callback.round != card.round:
            return _PressAnswer(_ROWS_CHANGED_TEXT, alert=True)
        try:
            picked = Picked.parse(callback.picked) if callback.picked else Picked.all_of(card)
        except ValueError:
            return _PressAnswer(_NO_SUCH_BUTTON_TEXT, alert=True)
        if callback.action in (ButtonAction.DECIDE_ALL, ButtonAction.APPROVE_PICKED):
            return await self._decide_rows(callback, participant, card, message, picked)
        await self._show_rows(callback, participant, card, message, picked)
        return _PressAnswer("")

    async def _show_rows(
        self,
        callback: ButtonData,
        participant: Participant,
        card: Card,
        message: TelegramPosted,
        picked: Picked,
    ) -> None:
        """Show a page of a batch's rows, to pick from or to open one."""
        index = callback.index or 0
        page = index
        if callback.action is ButtonAction.TOGGLE:  # the index is that of a row, not of a page
            picked = picked.toggle(index)
            page = index // ROWS_PER_PAGE
        await participant.acknowledge_press()
        opens_rows = callback.action is ButtonAction.LIST_ROWS
        await self.shown_cards.show_picker(card, message, page, picked, opens_rows=opens_rows)

    async def _decide_rows(
        self,
        callback: ButtonData,
        participant: Participant,
        card: Card,
        message: TelegramPosted,
        picked: Picked,
    ) -> _PressAnswer:
        """Approve the picked rows of a batch, and decline the others or leave them open."""
        if not await self.shown_cards.is_fully_shown(card, participant.place, participant.user.id):
            return _PressAnswer(_VIEW_FIRST_TEXT, alert=True)
        decision = picked.make_decision(
            card,
            participant.actor,
            callback.round,
            participant.place.address,
            declines=callback.action is ButtonAction.DECIDE_ALL,
            ref=str(message),
        )
        reply = await self.inbox(decision)
        return _PressAnswer(reply.text, alert=reply.answer is not Answer.ACCEPTED)

    async def _find_card_ref(self, callback: ButtonData, message: TelegramPosted) -> str | None:
        """Return the reference of the pressed card; None for a dialogue, a payload or a menu."""
        if message.is_ephemeral:
            return None
        is_card_action = callback.action in _CARD_ACTIONS or isinstance(callback.action, Verb)
        if not (is_card_action or callback.begins_grant):
            return None
        if await self.shown_cards.is_page(callback.id, message):
            return None
        return str(message)

    async def _update_buttons(self, callback: ButtonData, participant: Participant) -> None:
        """Update the buttons in the chat after a press.

        After a payload was shown, Approve all may be offered. After a decision, outdated buttons are removed.
        """
        if callback.action in (ButtonAction.VIEW, ButtonAction.VIEW_GROUP):
            await self.shown_cards.offer_approve_all(
                callback.id, self.lookup, participant.actor, participant.place
            )
        elif not callback.is_for_dialogue and callback.action not in PICK_ACTIONS:
            await self._remove_outdated(callback.id, participant, as_batch=callback.verb in _BATCH_VERBS)

    async def _list_unviewed_cards(
        self, card: Card, participant: Participant, action: ButtonAction | Verb
    ) -> list[Card]:
        """Return the pending cards that an action is about and that hide a part which was not viewed here.

        VIEW_GROUP and APPROVE_ALL are about all cards of the group, other actions about ``card`` alone.
        """
        cards = [card]
        person: int | None = participant.user.id
        if card.group is not None and action in (ButtonAction.VIEW_GROUP, ButtonAction.APPROVE_ALL):
            person = None  # everyone must have seen what Approve all approves
            others = [member for member in card.group.approvable_ids if member != card.proposal_id]
            member_cards = [
                await self.lookup.card(member, participant.actor, participant.place.address)
                for member in others
            ]
            cards = [*(member_card for member_card in member_cards if member_card), card]
        pending = [shown for shown in cards if shown.pending]
        is_fully_shown = self.shown_cards.is_fully_shown
        return [shown for shown in pending if not await is_fully_shown(shown, participant.place, person)]

    async def _remove_outdated(
        self, proposal_id: str, participant: Participant, *, as_batch: bool = False
    ) -> None:
        """Remove the buttons of payloads, menus and dialogues that are over.

        ``as_batch``: for a row of a batch, those of the whole batch.
        """
        card = await self.lookup.card(
            proposal_id, participant.actor, participant.place.address, together=as_batch
        )
        if card is not None:
            await self.shown_cards.remove_outdated(card, participant.place.chat_id)

    async def _find_place(
        self, query: CallbackQuery, message: TelegramPosted, proposal_id: str
    ) -> TelegramPlace:
        """Return the chat and topic of a press: from the message, else from the card's stored copy.

        The message does not tell its topic if it is too old to be shown to the bot. An ephemeral message (one
        for a single person) may not tell it either. If the chat got another id, the stored copy is used, too.
        """
        moves = self.transport.moves
        place = place_of(query.message, moves) if query.message else None
        may_lack_topic = message.is_ephemeral and place is not None and not place.thread_id
        if place is not None and place.home_id is None and not may_lack_topic:
            return place
        key = await self.database.read(posted_cards.find_address_key, NAME, str(message))
        if key is not None:  # the message is a card
            return moves.find_current_place(Address(NAME, key))
        if place is None or message.is_ephemeral:
            card_place = await self._find_card_place(proposal_id, message.chat_id)
            if card_place is not None:
                return card_place
        return place or moves.make_incoming_place(message.chat_id)

    async def _find_card_place(self, proposal_id: str, chat_id: int) -> TelegramPlace | None:
        """Return the place of a proposal's card in a chat: its dialogues and payloads are there, too."""
        for copy in await self.database.read(posted_cards.list_copies, proposal_id):
            if copy.address.channel == NAME:
                place = self.transport.moves.find_current_place(copy.address)
                if place.chat_id == chat_id:
                    return place
        return None

    async def _ask_to_press_again(self, participant: Participant) -> None:
        with suppress(ChannelError):
            await self.transport.send(
                participant.place,
                plain(_PRESS_AGAIN_TEXT),
                urgency=Urgency.PRESSED,
                ephemeral=participant.ephemeral,
            )


@dataclass(eq=False)
class _AnswerSender:
    """Sends the answer to a press, once.

    It also releases ``lock``, which its maker acquired, once the press is answered or acknowledged. Then the
    person's next press is handled.
    """

    transport: Transport
    query: CallbackQuery
    lock: asyncio.Lock | None  # None once it is released
    chat_id: int
    is_busy: Callable[[int], bool]  # as in `TelegramPresses`
    sleep: Callable[[float], Awaitable[None]]
    is_answered: bool = False
    _timer: asyncio.Task[None] | None = None

    async def acknowledge(self) -> None:
        """Note that the press may take long, and answer "One moment".

        In a busy chat the answer is sent now. Otherwise it is sent after a pause, unless the press was
        answered in the meantime.
        """
        self.release_lock()
        if self.is_busy(self.chat_id):
            await self.tell(_ONE_MOMENT_TEXT)
        elif self._timer is None:
            self._timer = asyncio.create_task(self._tell_later())

    async def _tell_later(self) -> None:
        await self.sleep(_ANSWER_SECONDS)
        await self.tell(_ONE_MOMENT_TEXT)

    async def tell(self, text: str = "", *, alert: bool = False) -> None:
        """Answer the press, unless it is answered. A failure to answer does not stop the press."""
        if self.is_answered:
            return
        self.is_answered = True
        self.release_lock()
        try:
            await self.transport.answer_press(self.query.id, text, alert=alert)
        except ChannelError as error:
            log.warning("telegram press not answered", why=error.message)

    def close(self) -> None:
        """End the press, done or failed."""
        self.release_lock()
        if self._timer is not None:
            self._timer.cancel()

    def release_lock(self) -> None:
        """Let the next press of this person start."""
        if self.lock is not None:
            self.lock.release()
            self.lock = None
