"""A pressed button: who pressed what where, checked before anything else looks at it, and always answered."""

from dataclasses import dataclass

from sqlmodel import Session, select
from telegram import CallbackQuery

from bot.channels.telegram.admission import Admission
from bot.channels.telegram.asker import Asker
from bot.channels.telegram.callback import FORM, LADDER, VERBS, Callback, Does
from bot.channels.telegram.dialogues import Who
from bot.channels.telegram.inbound import actor_of, spot_of
from bot.channels.telegram.ladder import Ladder
from bot.channels.telegram.places import CHANNEL, Ref, Spot
from bot.channels.telegram.transport import Transport
from bot.channels.telegram.views import Views
from bot.domain.cards import Card
from bot.domain.chat import Address, Answer, Desk, Inbox, Press
from bot.errors import ChannelError
from bot.store.database import Database
from bot.store.tables import CopyRow
from bot.telemetry import logger

_UNREADABLE = "This button does not work any more."
_NOT_HERE = "I cannot find this here."
_STRANGER = "We have not met. Write to me first."
_UNSEEN = "Press View all first: the card does not show everything."
_PAIRING = frozenset({Does.LET_IN, Does.KEEP_OUT})
_APPROVING = frozenset({Does.APPROVE, Does.APPROVE_STEPS, Does.APPROVE_ALL, *LADDER})

_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Presses:
    """Turns callback queries into presses, and answers each within its time."""

    database: Database
    transport: Transport
    admission: Admission
    asker: Asker
    ladder: Ladder
    inbox: Inbox
    desk: Desk
    views: Views

    async def handle(self, query: CallbackQuery) -> None:
        callback = Callback.parse(query.data or "")
        if callback is None or query.message is None:
            await self._toast(query, _UNREADABLE, alert=True)
            return
        message = Ref(query.message.chat.id, query.message.message_id)
        if callback.does in _PAIRING:
            await self._toast(query, await self.admission.decide(callback, query.from_user, message))
        elif not await self.admission.admits(query.from_user, message.chat_id):
            await self._toast(query, _STRANGER, alert=True)
        else:
            who = Who(query.from_user, actor_of(query.from_user), await self._where(query, message))
            await self._known(query, callback, who, message)

    async def _known(self, query: CallbackQuery, callback: Callback, who: Who, message: Ref) -> None:
        card = await self.desk.card(callback.id, who.actor, who.spot.address)
        if card is None:
            await self._toast(query, _NOT_HERE, alert=True)
        elif callback.does in FORM:
            said = await self.asker.press(who, callback, card, message)
            await self._toast(query, said, alert=bool(said))
        elif callback.does in (Does.VIEW, Does.VIEW_GROUP):
            await self._toast(query)
            shown = [card] if callback.does is Does.VIEW else await self._hidden(card, who)
            for each in shown:
                await self.views.show(each, who.spot)
                await self._settle(each, who)  # it may have ended while it was being shown
            await self.views.settle_group(card.proposal_id, self.desk, who.actor, who.spot)
        elif callback.does in _APPROVING and await self._hidden(card, who, callback.does):
            await self._toast(query, _UNSEEN, alert=True)
        elif callback.does in LADDER:
            said = await self.ladder.press(who, callback, card, message)
            await self._toast(query, said, alert=bool(said) and callback.does is not Does.LASTING)
            await self._settle(card, who)
        else:
            await self._decide(query, callback, card, who)

    async def _decide(self, query: CallbackQuery, callback: Callback, card: Card, who: Who) -> None:
        press = Press(who.actor, VERBS[callback.does], callback.id, callback.round, address=who.spot.address)
        reply = await self.inbox(press)
        await self._toast(query, reply.text, alert=reply.answer is not Answer.ACCEPTED)
        await self._settle(card, who)

    async def _hidden(self, card: Card, who: Who, does: Does = Does.VIEW_GROUP) -> list[Card]:
        """Give the cards a press is about that hide something nobody here has viewed yet."""
        about = [card]
        if does in (Does.VIEW_GROUP, Does.APPROVE_ALL) and card.group:
            others = [m for m in card.group.members if m != card.proposal_id]
            found = [await self.desk.card(m, who.actor, who.spot.address) for m in others]
            about = [*(c for c in found if c), card]
        return [c for c in about if c.pending and not await self.views.approvable(c, who.spot)]

    async def _settle(self, card: Card, who: Who) -> None:
        anew = await self.desk.card(card.proposal_id, who.actor, who.spot.address)
        if anew is not None:
            await self.views.settle(anew, who.spot.chat_id)

    async def _where(self, query: CallbackQuery, message: Ref) -> Spot:
        """Give chat and topic; of a message too old to be shown to the bot, as it was when it was posted."""
        spot = spot_of(query.message) if query.message else None
        if spot is not None:
            return spot
        key = await self.database.read(_key_of, str(message))
        return Spot.of(Address(CHANNEL, key)) if key else Spot(message.chat_id)

    async def _toast(self, query: CallbackQuery, text: str = "", *, alert: bool = False) -> None:
        """Answer; somebody who cannot be told is no reason to forget what was pressed."""
        try:
            await self.transport.toast(query.id, text, alert=alert)
        except ChannelError as error:
            _log.warning("telegram press not answered", reason=error.message)


def _key_of(session: Session, ref: str) -> str | None:
    """Find the chat and topic a copy of a card was posted in."""
    return session.exec(select(CopyRow.key).where(CopyRow.channel == CHANNEL, CopyRow.ref == ref)).first()
