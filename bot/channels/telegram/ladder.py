"""Approve similar: leads a person up the ladder, then asks for how long, then presses.

Where they are is kept with the message that asks, so only who began can go on, also after a restart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from telegram import InlineKeyboardMarkup

from bot.channels.telegram import screens
from bot.channels.telegram.callback import Callback, Does
from bot.channels.telegram.dialogue import Dialogue, Step
from bot.channels.telegram.dialogues import MOVED_ON, NOT_YOURS, Dialogues, Who
from bot.channels.telegram.limits import TEXT_UNITS
from bot.channels.telegram.places import Ref
from bot.channels.telegram.screens import Screen
from bot.channels.telegram.text import plain
from bot.channels.telegram.transport import Transport
from bot.domain.cards import Card
from bot.domain.chat import Clock, Desk, Inbox, Press, Verb
from bot.domain.similarity import Lasting, Rung

_NOTHING = "Nothing more can be allowed: you may not decide this one, or it has to be asked each time."

T = TypeVar("T")
Rungs = Sequence[tuple[Rung, str]]


@dataclass(frozen=True, slots=True)
class Ladder:
    dialogues: Dialogues
    transport: Transport
    inbox: Inbox
    desk: Desk
    clock: Clock

    async def press(self, who: Who, callback: Callback, card: Card, message: Ref) -> str:
        """Take a button; return what to tell the person, empty when the screen says it all."""
        if callback.round != card.round or not card.pending:
            return MOVED_ON
        rungs = await self.desk.ladder(card.proposal_id, who.actor, who.spot.address)
        if not rungs:
            return _NOTHING
        if callback.does is Does.SIMILAR and callback.index is None:
            await self._ask(who, Dialogue.similar(card, self.clock()), rungs, card)
            return ""
        found = await self.dialogues.load(who)
        if found is None or not (
            found.climbs and found.concerns(card) and found.prompt == message.message_id
        ):
            return NOT_YOURS
        return await self._step(who, found, callback, rungs, card, message)

    async def _step(
        self, who: Who, found: Dialogue, callback: Callback, rungs: Rungs, card: Card, message: Ref
    ) -> str:
        if callback.does is Does.SIMILAR:
            await self._ask(who, found.down(self.clock()), rungs, card, message)
            return ""
        offered = [rung for rung, _ in rungs]
        if callback.does is Does.RUNG:
            rung = _chosen(list(Rung), callback.index)
            if rung not in offered:
                return MOVED_ON
            await self._ask(who, found.reach(rung, self.clock()), rungs, card, message)
            return ""
        lasting = _chosen(list(Lasting), callback.index)
        if lasting is None or found.step is not Step.LASTING or found.rung not in offered:
            return MOVED_ON
        press = Press(
            who.actor,
            Verb.SIMILAR,
            card.proposal_id,
            card.round,
            address=who.spot.address,
            rung=found.rung,
            lasting=lasting,
        )
        reply = await self.inbox(press)
        await self.dialogues.keep(who, None)
        await self.transport.edit(message, plain(reply.text))
        return reply.text

    async def _ask(
        self, who: Who, dialogue: Dialogue, rungs: Rungs, card: Card, message: Ref | None = None
    ) -> None:
        """Keep first, then show: in ``message``, unless the words do not fit there."""
        words = dict(rungs)
        if dialogue.rung is None:
            screen = screens.rungs(dialogue, rungs, card.tool_name, card.title, who.user)
        else:
            screen = screens.lasting(dialogue, words[dialogue.rung], card.title, who.user)
        await self.dialogues.keep(who, dialogue)
        if message is not None and screen.rich.units <= TEXT_UNITS:
            await self.transport.edit(message, screen.rich, _buttons(screen))
            return
        if message is not None:
            await self.transport.dress(message, None)
        sent = await self.transport.send(who.spot, screen.rich, screen.markup)
        await self.dialogues.keep(who, dialogue.prompted(sent.message_id))


def _chosen(choices: list[T], index: int | None) -> T | None:
    return choices[index] if index is not None and index < len(choices) else None


def _buttons(screen: Screen) -> InlineKeyboardMarkup | None:
    return screen.markup if isinstance(screen.markup, InlineKeyboardMarkup) else None
