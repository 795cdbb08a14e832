"""What "View all" shows: the whole payload of a card that was cut, with Approve under its last message.

Which messages those are is kept, so that their buttons go away when the proposal ends, and so that Approve
is refused where the payload has not been shown.
"""

from bot.channels.telegram.card import everything, keyboard, rendered, whole
from bot.channels.telegram.places import CHANNEL, Ref, Spot
from bot.channels.telegram.transport import Transport
from bot.domain.cards import Card
from bot.domain.chat import Clock
from bot.errors import ChannelError
from bot.store import events
from bot.store.database import Database
from bot.telemetry import logger

_log = logger(__name__)


class Views:
    """Shows payloads and remembers where; every message is ``[chat, message, round]``."""

    def __init__(self, database: Database, transport: Transport, clock: Clock) -> None:
        self._database = database
        self._transport = transport
        self._clock = clock

    async def show(self, card: Card, spot: Spot) -> None:
        """Post everything the card left out."""
        await self._close(card, spot.chat_id, same_round=True)
        buttons = keyboard(card, cut=True, viewed=True)
        pieces = whole(card)
        if pieces is None:
            name = f"proposal-{card.proposal_id}.txt"
            last = await self._transport.file(spot, name, everything(card), card.title, buttons)
        else:
            for piece in pieces[:-1]:
                await self._transport.send(spot, piece)
            last = await self._transport.send(spot, pieces[-1], buttons)
        kept = [*await self._kept(card), [last.chat_id, last.message_id, card.round]]
        await self._keep(card, kept)

    async def approvable(self, card: Card, spot: Spot) -> bool:
        """Whether everything that would run has been shown in this chat."""
        if not rendered(card).cut:
            return True
        return any(chat == spot.chat_id and shown == card.round for chat, _, shown in await self._kept(card))

    async def settle(self, card: Card, chat_id: int) -> None:
        """Take the buttons away from payloads that are not, or no longer, up for decision."""
        await self._close(card, chat_id, same_round=not card.pending)

    async def _close(self, card: Card, chat_id: int, *, same_round: bool) -> None:
        kept = await self._kept(card)
        closed = [m for m in kept if m[0] == chat_id and (same_round or m[2] != card.round)]
        for chat, message, _ in closed:
            try:
                await self._transport.strip(Ref(chat, message))
            except ChannelError as error:  # a press there is refused anyway
                _log.info("telegram buttons left behind", chat=chat, reason=error.message)
        if closed:
            await self._keep(card, [m for m in kept if m not in closed])

    async def _kept(self, card: Card) -> list[list[int]]:
        state = await self._database.read(events.dialogue, CHANNEL, _key(card))
        return list(state["messages"]) if state else []

    async def _keep(self, card: Card, messages: list[list[int]]) -> None:
        state = {"messages": messages} if messages else None
        await self._database.write(events.keep_dialogue, CHANNEL, _key(card), state, self._clock())


def _key(card: Card) -> str:
    return f"view:{card.proposal_id}"
