"""Leads a person through a dialogue, one question at a time, and submits the answers: `DialogueRunner`.

A dialogue is about one proposal. It edits the proposal's arguments, asks for the words that a press needs
(such as a reason), or asks for a grant: the permission for similar calls. After each press or typed reply the
runner stores the dialogue's next state (``dialogue.py``), and sends or edits the message that asks
(``screens.py``). The state is stored by person and chat, with the id of that message. So only the person who
began can continue, also after a restart. At the end the runner hands a `Press` to the core (``inbox``).

In all methods ``callback`` is the data of a pressed button. A returned text is the answer to the person who
pressed or replied; it is empty where the message already says all. A proposal's ``round`` changes with each
edit, so a press of an earlier round is outdated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from telegram import InlineKeyboardMarkup, Message

from bot.channels.base import Lookup
from bot.channels.telegram import screens
from bot.channels.telegram.buttons import ButtonAction, ButtonData
from bot.channels.telegram.chat_cards import ShownCards
from bot.channels.telegram.dialogue import (
    MOVED_ON_TEXT,
    NOT_YOURS_TEXT,
    Dialogue,
    Dialogues,
    DialogueStep,
    Participant,
)
from bot.channels.telegram.limits import CAPTION_UNITS, TEXT_UNITS, TOAST_CHARS, Urgency
from bot.channels.telegram.places import TelegramPosted
from bot.channels.telegram.screens import Screen
from bot.channels.telegram.text import Rich, plain
from bot.channels.telegram.transport import Transport, reference_of
from bot.domain.cards import Card
from bot.domain.chat import Answer, Clock, Inbox
from bot.domain.forms import BadAnswer, Field, describe_left_out, fields_of
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.value_text import label_of
from bot.domain.verbs import Verb
from bot.errors import ChannelError
from bot.telemetry.logs import logger

_NOTHING_TO_ALLOW = (
    "You can't allow anything beyond this. It may not be yours to decide, or it must ask each time."
)
_LEAVE_EMPTY = "-"  # the reply that leaves a field empty
_NO_LONGER_ASKED = "I'm no longer waiting for that answer, so nothing was done. Start again on the card."
_ASKED_AGAIN = "I lost track of that question. Here it is again: please reply to this one."

T = TypeVar("T")

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class _Form:
    """The current state of an edit: card, arguments and fields."""

    card: Card
    arguments: Mapping[str, Any]
    fields: tuple[Field, ...]

    def find_field(self, name: str | None) -> Field | None:
        for field in self.fields:
            if field.name == name:
                return field
        return None


@dataclass(frozen=True, slots=True)
class GrantOffer:
    """The scopes and audiences of a grant that this person may give, with their texts, narrowest first.

    A dialogue calls the chosen scope ``rung`` and the chosen audience ``reach``.
    """

    scopes: Sequence[tuple[GrantScope, str]]
    audiences: Sequence[tuple[GrantAudience, str]]

    def includes(self, dialogue: Dialogue) -> bool:
        """Tell if the chosen scope and audience are still offered."""
        return dialogue.rung in dict(self.scopes) and dialogue.reach in dict(self.audiences)

    def begin(self, card: Card, now: datetime) -> Dialogue:
        """Return a dialogue in which the narrowest scope and audience are chosen."""
        scope, _ = self.scopes[0]
        grant_audience, _ = self.audiences[0]
        return Dialogue.begin_grant(card, scope, grant_audience, now)

    def make_screen(self, dialogue: Dialogue, card: Card, participant: Participant) -> Screen:
        return screens.ask_grant(dialogue, self.scopes, self.audiences, card, participant.user)


@dataclass(frozen=True, slots=True)
class DialogueRunner:
    """Leads people through edits, reasons and grants. Each person has one dialogue at a time in a chat."""

    dialogues: Dialogues
    transport: Transport
    inbox: Inbox
    lookup: Lookup
    shown_cards: ShownCards
    clock: Clock

    async def handle_press(
        self, participant: Participant, callback: ButtonData, card: Card, message: TelegramPosted
    ) -> str:
        """Take a button of an edit, a button that asks for words, or Cancel of any dialogue.

        `handle_grant_press` takes the other buttons of a grant.
        """
        dialogue = await self._load_pressed(participant, callback, message)
        if callback.action is ButtonAction.CLOSE:
            return await self._close(participant, dialogue, message)
        if callback.round != card.round or not card.pending:
            return await self._describe_change_since(participant, callback.id, callback.round)
        if callback.action is ButtonAction.DECLINE_WITH_REASON:
            return await self._ask_words(participant, card, Verb.DECLINE)
        if callback.verb is not None:  # a verb that needs words
            return await self._ask_words(participant, card, callback.verb)
        return await self._edit(participant, dialogue, callback, card, message)

    async def _load_pressed(
        self, participant: Participant, callback: ButtonData, message: TelegramPosted
    ) -> Dialogue | None:
        """Return the person's dialogue if the button belongs to it.

        In a dialogue about a grant, only Cancel is handled here, and only on the newest message.
        """
        dialogue = await self.dialogues.load(participant)
        if dialogue is None or dialogue.proposal_id != callback.id or dialogue.round != callback.round:
            return None
        if not dialogue.is_about_grant:
            return dialogue
        if callback.action is ButtonAction.CLOSE and dialogue.prompt == message.message_id:
            return dialogue
        return None

    async def take_reply(
        self, participant: Participant, text: str, replied: Message | None, message_id: int
    ) -> bool:
        """Take a text if it replies to a dialogue's question. Returns False for any other text.

        ``replied``: the message that the person replied to. ``message_id``: that of the person's own message.
        """
        if replied is None:
            return False
        dialogue = await self.dialogues.load(participant)
        if dialogue and dialogue.expects_reply_to(reference_of(replied).message_id):
            answer = await self._take_text(participant, dialogue, text)
        elif dialogue and dialogue.matches_question(replied.text or ""):
            answer = await self._repeat_question(participant, dialogue)
        elif screens.is_question_for(replied, participant.user):
            answer = _NO_LONGER_ASKED
        else:
            return False
        if answer:
            await self.transport.send(
                participant.place, plain(answer), reply_to=message_id, ephemeral=participant.ephemeral
            )
        return True

    async def waits_for_reply(self, participant: Participant, replied: Message) -> bool:
        """Tell if ``replied`` is a dialogue's question that waits for a reply of this person."""
        dialogue = await self.dialogues.load(participant)
        if dialogue is None:
            return False
        if dialogue.expects_reply_to(reference_of(replied).message_id):
            return True
        return dialogue.matches_question(replied.text or "")

    async def cancel(self, participant: Participant) -> bool:
        """End the dialogue of a person. Returns False if none is open."""
        if await self.dialogues.load(participant) is None:
            return False
        await self.dialogues.end(participant)
        cancelled = plain("Cancelled. Nothing was changed.")
        await self.transport.send(participant.place, cancelled, ephemeral=participant.ephemeral)
        return True

    async def handle_grant_press(
        self, participant: Participant, callback: ButtonData, card: Card, message: TelegramPosted
    ) -> str:
        """Take a button of "approve similar": begin the dialogue, change a choice, or submit the grant.

        The choice of the duration submits it.
        """
        if callback.round != card.round or not card.pending:
            return MOVED_ON_TEXT
        scopes = await self.lookup.ladder(card.proposal_id, participant.actor, participant.place.address)
        audiences = await self.lookup.reaches(card.proposal_id, participant.actor, participant.place.address)
        if not (scopes and audiences):
            return _NOTHING_TO_ALLOW
        offer = GrantOffer(scopes, audiences)
        if callback.begins_grant:
            new_dialogue = offer.begin(card, self.clock())
            await self._show(participant, new_dialogue, offer.make_screen(new_dialogue, card, participant))
            return ""

        # all other buttons belong to the dialogue that was begun
        dialogue = await self.dialogues.load(participant)
        if dialogue is None or not dialogue.is_about_grant or not dialogue.is_current_for(card):
            return NOT_YOURS_TEXT
        if dialogue.prompt != message.message_id:
            return NOT_YOURS_TEXT
        chosen = _apply_choice(dialogue, callback, self.clock())
        if not offer.includes(chosen):
            return MOVED_ON_TEXT
        if callback.action is not ButtonAction.DURATION:
            await self._show(participant, chosen, offer.make_screen(chosen, card, participant), message)
            return ""

        duration = _pick_at(list(GrantDuration), callback.index)
        if duration is None:
            return MOVED_ON_TEXT
        # a `Press` calls the scope ``rung``, the audience ``reach`` and the duration ``lasting``
        press = participant.make_press(
            Verb.SIMILAR,
            card.proposal_id,
            card.round,
            rung=chosen.rung,
            reach=chosen.reach,
            lasting=duration,
        )
        # ended first: for a dialogue that is open when the card changes, the message is replaced by a note
        await self.dialogues.end(participant)
        reply = await self.inbox(press)
        await participant.acknowledge_press()
        await self.transport.try_edit(message, plain(reply.text))
        return reply.text

    async def _describe_change_since(
        self, participant: Participant, proposal_id: str, shown_round: int
    ) -> str:
        """Return the decision or the changes since the round that the person saw, in the core's words.

        A text that is too long for a button's answer is sent as a message. Then `MOVED_ON_TEXT` is returned.
        """
        # decides nothing: a press for an outdated round is refused with its reason
        reply = await self.inbox(participant.make_press(Verb.EDIT, proposal_id, shown_round))
        if reply.answer not in (Answer.STALE, Answer.ALREADY):
            return MOVED_ON_TEXT
        if len(reply.text) <= TOAST_CHARS:
            return reply.text
        await participant.acknowledge_press()
        await self.transport.send(participant.place, plain(reply.text), ephemeral=participant.ephemeral)
        return MOVED_ON_TEXT

    async def _close(
        self, participant: Participant, dialogue: Dialogue | None, message: TelegramPosted
    ) -> str:
        if dialogue is None:
            return NOT_YOURS_TEXT
        await self.dialogues.end(participant)
        await participant.acknowledge_press()
        await self.transport.try_edit(message, plain("Closed. Nothing was changed."))
        return ""

    async def _edit(
        self,
        participant: Participant,
        dialogue: Dialogue | None,
        callback: ButtonData,
        card: Card,
        message: TelegramPosted,
    ) -> str:
        form = await self._load_form(participant, card)
        if form is None:
            return "You may not edit this one."
        if callback.action is ButtonAction.EDIT:
            await self._show_form(participant, Dialogue.begin_edit(card, self.clock()), form)
            return ""
        if dialogue is None:
            return NOT_YOURS_TEXT
        return await self._take_step(participant, dialogue, callback, form, message)

    async def _ask_words(self, participant: Participant, card: Card, verb: Verb) -> str:
        """Ask for the words that a press needs."""
        if not await self.lookup.may_press(
            card.proposal_id, participant.actor, participant.place.address, verb
        ):
            return "You may not decide this one."
        screen = screens.ask_words(participant.user, card.button(verb), card.title)
        await self._show(participant, Dialogue.begin_words(card, verb, self.clock()), screen)
        return ""

    async def _take_text(self, participant: Participant, dialogue: Dialogue, text: str) -> str:
        """Take a typed reply: the words of a press, which is then submitted, or the value of a field."""
        card = await self._load_current_card(participant, dialogue)
        if card is None:
            return await self._describe_change_since(participant, dialogue.proposal_id, dialogue.round)
        if dialogue.step is not DialogueStep.ASK:  # the text is the words of a press
            press = participant.make_press(dialogue.verb, card.proposal_id, card.round, reason=text)
            reply = await self.inbox(press)
            await self.dialogues.end(participant)
            return reply.text
        form = await self._load_form(participant, card)
        field = form.find_field(dialogue.asked) if form else None
        if form is None or field is None:
            await self.dialogues.end(participant)
            return MOVED_ON_TEXT
        is_left_empty = field.nullable and text.strip() == _LEAVE_EMPTY
        try:
            value = None if is_left_empty else field.read(text)
        except BadAnswer as error:
            await self._show(
                participant, dialogue, screens.ask_value(dialogue, field, participant.user, str(error))
            )
            return ""
        await self._show_form(participant, dialogue.with_value(field, value, self.clock()), form)
        return ""

    async def _repeat_question(self, participant: Participant, dialogue: Dialogue) -> str:
        """Ask a question again whose message id was not stored (`Dialogue.matches_question`)."""
        card = await self._load_current_card(participant, dialogue)
        if card is None:
            return await self._describe_change_since(participant, dialogue.proposal_id, dialogue.round)
        if dialogue.step is not DialogueStep.ASK:
            screen = screens.ask_words(participant.user, card.button(dialogue.verb), card.title)
        else:
            form = await self._load_form(participant, card)
            field = form.find_field(dialogue.asked) if form else None
            if field is None:
                await self.dialogues.end(participant)
                return MOVED_ON_TEXT
            screen = screens.ask_value(dialogue, field, participant.user)
        await self.transport.send(participant.place, plain(_ASKED_AGAIN), ephemeral=participant.ephemeral)
        await self._show(participant, dialogue, screen)
        return ""

    async def _load_current_card(self, participant: Participant, dialogue: Dialogue) -> Card | None:
        """Return the card of a dialogue. If the card has changed since, end the dialogue and return None."""
        card = await self.lookup.card(dialogue.proposal_id, participant.actor, participant.place.address)
        if card is not None and dialogue.is_current_for(card):
            return card
        await self.dialogues.end(participant)
        return None

    async def _take_step(
        self,
        participant: Participant,
        dialogue: Dialogue,
        callback: ButtonData,
        form: _Form,
        message: TelegramPosted,
    ) -> str:
        """Take a button of an open edit: save, pick a field, go back, or choose or clear a field's value."""
        now = self.clock()
        if callback.action is ButtonAction.SAVE:
            return await self._save(participant, dialogue, form, message)
        if callback.action is ButtonAction.BACK:
            await self._show_form(participant, dialogue.back_to_fields(now), form, message)
            return ""
        if callback.action is ButtonAction.FIELD:
            field = _pick_at(list(form.fields), callback.index)
            if field is None:
                return NOT_YOURS_TEXT
            asking = dialogue.pick(field, now)
            await self._show(participant, asking, screens.ask_value(asking, field, participant.user), message)
            return ""

        # only CLEAR and CHOOSE are left: they answer the question for a field's value
        field = form.find_field(dialogue.asked)
        if field is None:
            return NOT_YOURS_TEXT
        choice: Any = None
        if callback.action is not ButtonAction.CLEAR:
            if callback.index is None or callback.index >= len(field.single_choices):
                return NOT_YOURS_TEXT
            choice = field.single_choices[callback.index]
        try:
            value = field.check_value(choice)
        except BadAnswer as error:
            return str(error)
        await self._show_form(participant, dialogue.with_value(field, value, now), form, message)
        return ""

    async def _save(
        self, participant: Participant, dialogue: Dialogue, form: _Form, message: TelegramPosted
    ) -> str:
        edited = dialogue.apply_changes(form.arguments)
        # ended first: for a dialogue that is open when the card changes, the message is replaced by a note
        await self.dialogues.end(participant)
        press = participant.make_press(Verb.EDIT, dialogue.proposal_id, dialogue.round, arguments=edited)
        reply = await self.inbox(press)
        if reply.answer is Answer.INVALID:
            await self.dialogues.store(participant, dialogue)
            faults = [f"{label_of(name)}: {fault}" for name, fault in reply.fields.items()]
            return " ".join(faults) or reply.text
        card = await self.lookup.card(dialogue.proposal_id, participant.actor, participant.place.address)
        await participant.acknowledge_press()
        if reply.answer is not Answer.ACCEPTED or card is None:
            await self.transport.try_edit(message, plain(reply.text))
            return reply.text
        try:
            if message.is_ephemeral:
                await self.transport.try_edit(message, plain(reply.text))
                await self.shown_cards.show_payload(card, participant.place, participant.ephemeral)
            else:
                # the form becomes one more copy of the card: what was edited is right above its Approve
                await self.shown_cards.post_copy(
                    card, participant.place, self.lookup, participant.actor, message
                )
        except ChannelError as error:  # the edit is saved, and the card itself is redrawn
            log.warning("telegram form not turned into a card", why=error.message)
        return reply.text

    async def _load_form(self, participant: Participant, card: Card) -> _Form | None:
        """Return the form of a card; None if this person may not edit it."""
        arguments = await self.lookup.arguments(
            card.proposal_id, participant.actor, participant.place.address
        )
        if arguments is None:
            return None
        return _Form(card, arguments, fields_of(card.schema, arguments))

    async def _show_form(
        self, participant: Participant, dialogue: Dialogue, form: _Form, message: TelegramPosted | None = None
    ) -> None:
        """Show the changes to be saved, or ask which field to change, by the dialogue's step."""
        if dialogue.step is DialogueStep.CONFIRM:
            screen = screens.ask_confirmation(dialogue, form.fields)
        else:
            left_out = describe_left_out(form.card.schema, form.arguments)
            screen = screens.ask_field(dialogue, form.fields, form.card.title, left_out)
        await self._show(participant, dialogue, screen, message)

    async def _show(
        self,
        participant: Participant,
        dialogue: Dialogue,
        screen: Screen,
        message: TelegramPosted | None = None,
    ) -> None:
        """Store the dialogue and show its screen, in ``message`` if the screen fits, else in a new message.

        A question for a typed reply always gets a new message. The dialogue is stored with the id of its
        message: by that id a reply is recognised as the answer.
        """
        if screen.asks_for_reply:
            dialogue = dialogue.with_question(screen.rich.text)
        old_message: TelegramPosted | None = None  # set if ``message`` is too small for the screen
        if message is not None and isinstance(screen.markup, InlineKeyboardMarkup):
            if await self._try_show_in(message, participant, dialogue, screen.rich, screen.markup):
                return
            if screen.rich.units > _find_max_units(message):
                old_message = message
        await self.dialogues.store(participant, dialogue)
        await participant.acknowledge_press()
        if old_message is not None:  # only the new message keeps buttons
            await self.transport.edit_keyboard(old_message, None, urgency=Urgency.PRESSED)
        posted = await self.transport.send(
            participant.place,
            screen.rich,
            screen.markup,
            urgency=Urgency.PRESSED,
            ephemeral=participant.ephemeral,
        )
        await self.dialogues.store_prompt(participant, dialogue, posted.message_id)

    async def _try_show_in(
        self,
        message: TelegramPosted,
        participant: Participant,
        dialogue: Dialogue,
        rich: Rich,
        markup: InlineKeyboardMarkup,
    ) -> bool:
        """Show a screen in a message. Returns False if it is too long, or the ephemeral message is gone."""
        if rich.units > _find_max_units(message):
            return False
        await self.dialogues.store(participant, dialogue.with_prompt(message.message_id))
        await participant.acknowledge_press()
        try:
            await self.transport.edit(message, rich, markup, urgency=Urgency.PRESSED)
        except ChannelError:
            if not message.is_ephemeral:
                raise
            return False
        return True


def _find_max_units(message: TelegramPosted) -> int:
    """Return the most units of text that a message can be edited to."""
    if message.is_ephemeral:  # https://github.com/tdlib/telegram-bot-api/issues/881
        return CAPTION_UNITS
    return TEXT_UNITS


def _apply_choice(dialogue: Dialogue, callback: ButtonData, now: datetime) -> Dialogue:
    """Return the dialogue with the scope (``rung``) or the audience (``reach``) that a button chooses.

    The button's index counts the members of `GrantScope` or `GrantAudience`. An index beyond them makes
    ``rung`` None, which no offer includes, or leaves ``reach`` as it was.
    """
    if callback.action is ButtonAction.SCOPE:
        return replace(dialogue, rung=_pick_at(list(GrantScope), callback.index), at=now)
    if callback.action is ButtonAction.AUDIENCE:
        grant_audience = _pick_at(list(GrantAudience), callback.index) or dialogue.reach
        return replace(dialogue, reach=grant_audience, at=now)
    return replace(dialogue, at=now)


def _pick_at(choices: list[T], index: int | None) -> T | None:
    if index is not None and index < len(choices):
        return choices[index]
    return None
