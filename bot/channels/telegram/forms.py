"""Conduct of dialogues: it stores where each person is, asks the next question, submits the result.

Where they are is kept with the message that asks, so only the person who began can continue, also after a
restart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from telegram import InlineKeyboardMarkup, Message

from bot.channels.base import Lookup
from bot.channels.telegram import screens
from bot.channels.telegram.buttons import ButtonData, Does
from bot.channels.telegram.dialogue import MOVED_ON, NOT_YOURS, Dialogue, Dialogues, DialogueStep, Who
from bot.channels.telegram.limits import CAPTION_UNITS, TEXT_UNITS, TOAST, Urgency
from bot.channels.telegram.places import TelegramPosted
from bot.channels.telegram.screens import Screen
from bot.channels.telegram.shown import ShownCards
from bot.channels.telegram.text import plain
from bot.channels.telegram.transport import Transport, find_posted
from bot.domain.cards import Card
from bot.domain.chat import Answer, Clock, Inbox
from bot.domain.forms import BadAnswer, Field, fields_of, label_of, leaves_out
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.errors import ChannelError
from bot.telemetry.logs import logger

_NOTHING = "You can't allow anything beyond this. It may not be yours to decide, or it must ask each time."
_EMPTY = "-"  # typed where a field is to be left empty
_OVER = "I'm no longer waiting for that answer, so nothing was done. Start again on the card."
_AGAIN = "I lost track of that question. Here it is again: please reply to this one."


log = logger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Form:
    """The current state of an edit: card, arguments and fields."""

    card: Card
    arguments: Mapping[str, Any]
    fields: tuple[Field, ...]

    def field(self, name: str | None) -> Field | None:
        return next((f for f in self.fields if f.name == name), None)


@dataclass(frozen=True, slots=True)
class Offer:
    """The scopes and audiences of a grant that this person may give, with their texts, narrowest first."""

    rungs: Sequence[tuple[GrantScope, str]]
    reaches: Sequence[tuple[GrantAudience, str]]

    def has(self, dialogue: Dialogue) -> bool:
        """Return whether what was chosen so far is still offered."""
        return dialogue.rung in dict(self.rungs) and dialogue.reach in dict(self.reaches)

    def screen(self, dialogue: Dialogue, card: Card, who: Who) -> Screen:
        return screens.ask_grant(dialogue, self.rungs, self.reaches, card, who.user)


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks for edits and reasons, and how far a grant may reach."""

    dialogues: Dialogues
    transport: Transport
    inbox: Inbox
    lookup: Lookup
    views: ShownCards
    clock: Clock

    async def press(self, who: Who, callback: ButtonData, card: Card, message: TelegramPosted) -> str:
        """Take a form's button; return what to tell the person, empty when the screen says it all."""
        found = await self.dialogues.load(who)
        if found and (found.proposal_id, found.round) != (callback.id, callback.round):
            found = None
        if found and found.climbs:
            found = found if callback.does is Does.CLOSE and found.prompt == message.message_id else None
        if callback.does is Does.CLOSE:
            return await self._close(who, found, message)
        if callback.round != card.round or not card.pending:
            return await self._describe_change_since(who, callback.id, callback.round)
        verb = Verb.DECLINE if callback.does is Does.REASON else callback.verb
        if verb is not None:
            return await self._begin(who, card, verb)
        return await self._edit(who, found, callback, card, message)

    async def answer(self, who: Who, text: str, replied: Message | None, message_id: int) -> bool:
        """Take a text if it answers a question; False leaves it to the conversation."""
        dialogue = await self.dialogues.load(who)
        if replied is None:
            return False
        if dialogue and dialogue.listens(find_posted(replied).message_id):
            trouble = await self._take_answer(who, dialogue, text)
        elif dialogue and dialogue.is_asked_in(replied.text or ""):
            trouble = await self._take_answer(who, dialogue, None)
        elif screens.has_asked(replied, who.user):
            trouble = _OVER
        else:
            return False
        if trouble:
            await self.transport.send(who.place, plain(trouble), answer_to=message_id, alone=who.alone)
        return True

    async def asks(self, who: Who, replied: Message) -> bool:
        """Return whether a message waits for words of this person."""
        dialogue = await self.dialogues.load(who)
        if dialogue is None:
            return False
        return dialogue.listens(find_posted(replied).message_id) or dialogue.is_asked_in(replied.text or "")

    async def cancel(self, who: Who) -> bool:
        """Stop asking; False when nothing was being asked."""
        if await self.dialogues.load(who) is None:
            return False
        await self.dialogues.keep(who, None)
        await self.transport.send(who.place, plain("Cancelled. Nothing was changed."), alone=who.alone)
        return True

    async def _describe_change_since(self, who: Who, proposal_id: str, seen: int) -> str:
        """Return the decision or the changes since round ``seen``, in the core's words.

        A long text is sent as a message of its own. Nothing is decided by asking.
        """
        reply = await self.inbox(who.press(Verb.EDIT, proposal_id, seen))
        if reply.answer not in (Answer.STALE, Answer.ALREADY):
            return MOVED_ON
        if len(reply.text) <= TOAST:
            return reply.text
        await who.answered()
        await self.transport.send(who.place, plain(reply.text), alone=who.alone)
        return MOVED_ON

    async def _close(self, who: Who, found: Dialogue | None, message: TelegramPosted) -> str:
        if found is None:
            return NOT_YOURS
        await self.dialogues.keep(who, None)
        await who.answered()
        await self.transport.note(message, plain("Closed. Nothing was changed."))
        return ""

    async def _edit(
        self, who: Who, found: Dialogue | None, callback: ButtonData, card: Card, message: TelegramPosted
    ) -> str:
        form = await self._form(who, card)
        if form is None:
            return "You may not edit this one."
        if callback.does is Does.EDIT:
            await self._show_form(who, Dialogue.begin_edit(card, self.clock()), form)
            return ""
        if found:
            return await self._step(who, found, callback, form, message)
        return NOT_YOURS

    async def _begin(self, who: Who, card: Card, verb: Verb) -> str:
        """Ask for the words that go with a press."""
        if not await self.lookup.may_press(card.proposal_id, who.actor, who.place.address, verb):
            return "You may not decide this one."
        screen = screens.ask_words(who.user, card.button(verb), card.title)
        await self._show(who, Dialogue.words(card, verb, self.clock()), screen)
        return ""

    async def _take_answer(self, who: Who, dialogue: Dialogue, text: str | None) -> str:
        """Take a typed answer; None asks once more what was asked in a message that is not known.

        Return what to tell the person, empty when a screen says it.
        """
        card = await self.lookup.card(dialogue.proposal_id, who.actor, who.place.address)
        if card is None or not dialogue.concerns(card):
            await self.dialogues.keep(who, None)
            return await self._describe_change_since(who, dialogue.proposal_id, dialogue.round)
        if dialogue.step is not DialogueStep.ASK:
            if text is None:
                screen = screens.ask_words(who.user, card.button(dialogue.verb), card.title)
                return await self._ask_again(who, dialogue, screen)
            reply = await self.inbox(who.press(dialogue.verb, card.proposal_id, card.round, reason=text))
            await self.dialogues.keep(who, None)
            return reply.text
        form = await self._form(who, card)
        asked = form.field(dialogue.asked) if form else None
        if form is None or asked is None:
            await self.dialogues.keep(who, None)
            return MOVED_ON
        if text is None:
            return await self._ask_again(who, dialogue, screens.ask_value(dialogue, asked, who.user))
        try:
            value = None if asked.nullable and text.strip() == _EMPTY else asked.read(text)
        except BadAnswer as trouble:
            await self._show(who, dialogue, screens.ask_value(dialogue, asked, who.user, str(trouble)))
            return ""
        await self._show_form(who, dialogue.give(asked, value, self.clock()), form)
        return ""

    async def _ask_again(self, who: Who, dialogue: Dialogue, screen: Screen) -> str:
        await self.transport.send(who.place, plain(_AGAIN), alone=who.alone)
        await self._show(who, dialogue, screen)
        return ""

    async def _step(
        self, who: Who, dialogue: Dialogue, callback: ButtonData, form: _Form, message: TelegramPosted
    ) -> str:
        """Take a button of an open form."""
        now = self.clock()
        index = callback.index or 0
        if callback.does is Does.SAVE:
            return await self._save(who, dialogue, form, message)
        if callback.does is Does.BACK:
            await self._show_form(who, dialogue.again(now), form, message)
            return ""
        if callback.does is Does.FIELD and index < len(form.fields):
            asking = dialogue.pick(form.fields[index], now)
            await self._show(who, asking, screens.ask_value(asking, form.fields[index], who.user), message)
            return ""
        asked = form.field(dialogue.asked)
        if asked is None or (callback.does is Does.CHOOSE and index >= len(asked.choices)):
            return NOT_YOURS
        try:
            value = asked.check_value(None if callback.does is Does.CLEAR else asked.choices[index])
        except BadAnswer as trouble:
            return str(trouble)
        await self._show_form(who, dialogue.give(asked, value, now), form, message)
        return ""

    async def _save(self, who: Who, dialogue: Dialogue, form: _Form, message: TelegramPosted) -> str:
        edited = dialogue.arguments(form.arguments)
        await self.dialogues.keep(who, None)  # before the card changes, which closes forms that are open
        press = who.press(Verb.EDIT, dialogue.proposal_id, dialogue.round, arguments=edited)
        reply = await self.inbox(press)
        if reply.answer is Answer.INVALID:
            await self.dialogues.keep(who, dialogue)
            return " ".join(f"{label_of(k)}: {v}" for k, v in reply.fields.items()) or reply.text
        card = await self.lookup.card(dialogue.proposal_id, who.actor, who.place.address)
        await who.answered()
        if reply.answer is not Answer.ACCEPTED or card is None or message.receiver is not None:
            await self.transport.note(message, plain(reply.text))
        if reply.answer is not Answer.ACCEPTED or card is None:
            return reply.text
        try:
            if message.receiver is not None:
                await self.views.show(card, who.place, who.alone)
                return reply.text
            # the form becomes one more copy of the card: what was edited is right above its Approve
            await self.views.put(card, who.place, self.lookup, who.actor, message)
        except ChannelError as error:  # the edit is saved, and the card itself is redrawn
            log.warning("telegram form not turned into a card", why=error.message)
        return reply.text

    async def _show_form(
        self, who: Who, dialogue: Dialogue, form: _Form, message: TelegramPosted | None = None
    ) -> None:
        if dialogue.step is DialogueStep.CONFIRM:
            screen = screens.confirm(dialogue, form.fields)
        else:
            more = leaves_out(form.card.schema, form.arguments)
            screen = screens.pick(dialogue, form.fields, form.card.title, more)
        await self._show(who, dialogue, screen, message)

    async def _show(
        self, who: Who, dialogue: Dialogue, screen: Screen, message: TelegramPosted | None = None
    ) -> None:
        """Store the dialogue, then show it in ``message`` or a new one; answers count once it has its id."""
        if screen.replies:
            dialogue = dialogue.asking(screen.rich.text)
        if isinstance(screen.markup, InlineKeyboardMarkup):
            markup = screen.markup
        else:
            markup = None
        there = message if markup else None
        # a message for one person alone takes no more: https://github.com/tdlib/telegram-bot-api/issues/881
        if there is not None and there.receiver is not None:
            most = CAPTION_UNITS
        else:
            most = TEXT_UNITS
        if there is not None and screen.rich.units <= most:
            await self.dialogues.keep(who, dialogue.prompted(there.message_id))
            await who.answered()
            try:
                await self.transport.edit(there, screen.rich, markup, urgency=Urgency.PRESSED)
            except ChannelError:
                if there.receiver is None:
                    raise
                there = None  # Telegram may drop what one person alone sees: once more, then
            else:
                return
        await self.dialogues.keep(who, dialogue)
        await who.answered()
        if there is not None:
            await self.transport.dress(there, None, urgency=Urgency.PRESSED)
        sent = await self.transport.send(
            who.place, screen.rich, screen.markup, urgency=Urgency.PRESSED, alone=who.alone
        )
        await self.dialogues.store_prompt(who, dialogue, sent.message_id)

    async def _form(self, who: Who, card: Card) -> _Form | None:
        arguments = await self.lookup.arguments(card.proposal_id, who.actor, who.place.address)
        if arguments is None:
            return None
        return _Form(card, arguments, fields_of(card.schema, arguments))

    async def climb(self, who: Who, callback: ButtonData, card: Card, message: TelegramPosted) -> str:
        """Take a button of "approve similar"; return as `press`. How long it should hold is what presses."""
        if callback.round != card.round or not card.pending:
            return MOVED_ON
        about = (card.proposal_id, who.actor, who.place.address)
        offer = Offer(await self.lookup.ladder(*about), await self.lookup.reaches(*about))
        if not (offer.rungs and offer.reaches):
            return _NOTHING
        if callback.does is Does.SIMILAR and callback.index is None:
            begun = Dialogue.similar(card, offer.rungs[0][0], offer.reaches[0][0], self.clock())
            await self._show(who, begun, offer.screen(begun, card, who))
            return ""
        found = await self.dialogues.load(who)
        if found is None or not (
            found.climbs and found.concerns(card) and found.prompt == message.message_id
        ):
            return NOT_YOURS
        chosen = _apply_choice(found, callback, self.clock())
        if not offer.has(chosen):
            return MOVED_ON
        if callback.does is not Does.LASTING:
            await self._show(who, chosen, offer.screen(chosen, card, who), message)
            return ""
        lasting = _at(list(GrantDuration), callback.index)
        if lasting is None:
            return MOVED_ON
        more = {"rung": chosen.rung, "lasting": lasting, "reach": chosen.reach}
        press = who.press(Verb.SIMILAR, card.proposal_id, card.round, **more)
        await self.dialogues.keep(who, None)  # before the card changes, which closes forms that are open
        reply = await self.inbox(press)
        await who.answered()
        await self.transport.note(message, plain(reply.text))
        return reply.text


def _apply_choice(found: Dialogue, callback: ButtonData, now: datetime) -> Dialogue:
    """Return the dialogue with what a button chooses of a grant; with no rung for what there is not."""
    rung, reach = found.rung, found.reach
    if callback.does is Does.RUNG:
        rung = _at(list(GrantScope), callback.index)
    elif callback.does is Does.REACH:
        reach = _at(list(GrantAudience), callback.index) or reach
    return replace(found, rung=rung, reach=reach, at=now)


def _at(choices: list[T], index: int | None) -> T | None:
    if index is not None and index < len(choices):
        return choices[index]
    return None
