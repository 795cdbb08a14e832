"""Approve similar: leads a person up the ladder, then asks for how long, then presses.

Where they are is kept with the message that asks, so only who began can continue, also after a restart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from telegram import InlineKeyboardMarkup

from bot.channels.base import Lookup
from bot.channels.telegram import screens
from bot.channels.telegram.buttons import ButtonData, Does
from bot.channels.telegram.dialogue import MOVED_ON, NOT_YOURS, Dialogue, Dialogues, DialogueStep, Who
from bot.channels.telegram.limits import TEXT_UNITS, Urgency
from bot.channels.telegram.places import TelegramPosted
from bot.channels.telegram.screens import Screen
from bot.channels.telegram.text import plain
from bot.channels.telegram.transport import Transport
from bot.domain.cards import Card
from bot.domain.chat import Clock, Inbox, Press
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import Verb

_NOTHING = "You can't allow anything beyond this. It may not be yours to decide, or it must ask each time."

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Offer:
    """What this person may allow, in words, narrowest first."""

    rungs: Sequence[tuple[GrantScope, str]]
    reaches: Sequence[tuple[GrantAudience, str]]

    def has(self, dialogue: Dialogue) -> bool:
        """Whether what was chosen so far is still offered."""
        return dialogue.rung in dict(self.rungs) and dialogue.reach in dict(self.reaches)


@dataclass(frozen=True, slots=True)
class GrantLadder:
    dialogues: Dialogues
    transport: Transport
    inbox: Inbox
    lookup: Lookup
    clock: Clock

    async def press(self, who: Who, callback: ButtonData, card: Card, message: TelegramPosted) -> str:
        """Take a button; return what to tell the person, empty when the screen says it all."""
        if callback.round != card.round or not card.pending:
            return MOVED_ON
        about = (card.proposal_id, who.actor, who.place.address)
        offer = Offer(await self.lookup.ladder(*about), await self.lookup.reaches(*about))
        if not (offer.rungs and offer.reaches):
            return _NOTHING
        if callback.does is Does.SIMILAR and callback.index is None:
            await self._ask(who, Dialogue.similar(card, self.clock()), offer, card)
            return ""
        found = await self.dialogues.load(who)
        if found is None or not (
            found.climbs and found.concerns(card) and found.prompt == message.message_id
        ):
            return NOT_YOURS
        return await self._step(who, found, callback, offer, card, message)

    async def _step(
        self,
        who: Who,
        found: Dialogue,
        callback: ButtonData,
        offer: Offer,
        card: Card,
        message: TelegramPosted,
    ) -> str:
        if callback.does is not Does.LASTING:
            moved = self._moved(found, callback, offer)
            if moved is None:
                return MOVED_ON
            await self._ask(who, moved, offer, card, message)
            return ""
        lasting = _chosen(list(GrantDuration), callback.index)
        if lasting is None or found.step is not DialogueStep.LASTING or not offer.has(found):
            return MOVED_ON
        press = Press(
            who.actor,
            Verb.SIMILAR,
            card.proposal_id,
            card.round,
            address=who.place.address,
            rung=found.rung,
            lasting=lasting,
            reach=found.reach,
        )
        await self.dialogues.keep(who, None)  # before the card changes, which closes forms that are open
        reply = await self.inbox(press)
        await who.answered()
        await self.transport.note(message, plain(reply.text))
        return reply.text

    def _moved(self, found: Dialogue, callback: ButtonData, offer: Offer) -> Dialogue | None:
        """Where a button that does not press leads; None where it was not offered."""
        now = self.clock()
        if callback.does is Does.SIMILAR:
            return found.down(now)
        if callback.does is Does.RUNG:
            rung = _chosen(list(GrantScope), callback.index)
            return found.climb(rung, now) if rung in dict(offer.rungs) else None
        if not offer.has(found):
            return None
        if callback.index is None:
            return found.choose(now)
        reach = _chosen(list(GrantAudience), callback.index)
        return found.extend(reach, now) if reach in dict(offer.reaches) else None

    async def _ask(
        self, who: Who, dialogue: Dialogue, offer: Offer, card: Card, message: TelegramPosted | None = None
    ) -> None:
        """Keep first, then show: in ``message``, unless the words do not fit there."""
        if dialogue.rung is None:
            screen = screens.rungs(dialogue, offer.rungs, card.tool_name, card.title, who.user)
        elif dialogue.step is DialogueStep.REACH:
            screen = screens.reaches(dialogue, offer.reaches, card.title, who.user)
        else:
            allowed = f"{dict(offer.rungs)[dialogue.rung]}, for {dict(offer.reaches)[dialogue.reach]}"
            screen = screens.lasting(dialogue, allowed, card.title, who.user)
        await self.dialogues.keep(who, dialogue)
        await who.answered()
        if message is not None and screen.rich.units <= TEXT_UNITS:
            await self.transport.edit(message, screen.rich, _buttons(screen), urgency=Urgency.PRESSED)
            return
        if message is not None:
            await self.transport.dress(message, None, urgency=Urgency.PRESSED)
        sent = await self.transport.send(who.place, screen.rich, screen.markup, urgency=Urgency.PRESSED)
        await self.dialogues.prompted(who, dialogue, sent.message_id)


def _chosen(choices: list[T], index: int | None) -> T | None:
    return choices[index] if index is not None and index < len(choices) else None


def _buttons(screen: Screen) -> InlineKeyboardMarkup | None:
    return screen.markup if isinstance(screen.markup, InlineKeyboardMarkup) else None
