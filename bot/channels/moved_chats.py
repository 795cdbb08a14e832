"""Chats that a platform gave another id, such as a Telegram group that became a supergroup.

Outside its channel's folder a chat keeps its home key, by which Nod first knew it: settings, rules, grants,
conversations, schedules, memories and copies of cards use that key. Only requests to the platform, and events
from it, are translated: `ChatMoves.find_current_key` gives the key of today, `ChatMoves.find_home_key` the
home key. A key is the part of an address behind its channel, such as ``T1/C2``.

If people wrote to Nod at the new id before the platform announced it, the chat has two keys in Nod, and both
stay in use. Then the core is told (`ChatMoved`), which lets settings for the old key hold at the new one.
"""

from typing import Any

from sqlmodel import Session

from bot.domain.chat import Address, ChatMoved, Clock, Inbox
from bot.domain.jobs import Peers
from bot.store import posted_cards
from bot.store.database import Database
from bot.store.state import list_states, store_state
from bot.telemetry.logs import logger

log = logger(__name__)

_KEY_PREFIX = "moved:"


class ChatMoves:
    """The chats of one channel that got a new id: stored moves, which are also cached here.

    A stored move is an object with three keys:

    - ``to``: the new key of the chat
    - ``home``: True if the old key stays the home key, since Nod did not know the new one
    - ``told``: True once the core was told of the move; missing before
    """

    def __init__(self, channel: str, database: Database, clock: Clock) -> None:
        self._channel = channel
        self._database = database
        self._clock = clock
        self._topic = f"{channel} moved"  # the topic of the broadcasts between processes
        self._current_keys: dict[str, str] = {}  # today's keys, by the old keys
        self._home_keys: dict[str, str] = {}  # the home keys, by today's keys
        self._others: Peers | None = None
        self._inbox: Inbox | None = None

    def connect(self, inbox: Inbox, others: Peers | None) -> None:
        """Report moves to the core by ``inbox``, and share them with other processes."""
        self._inbox = inbox
        self._others = others
        if others is not None:
            others.on(self._topic, lambda move: self._cache_move(*move))

    async def load(self) -> None:
        """Read the stored moves. Report those to the core that a crash has kept from it."""
        states = await self._database.read(list_states, self._channel, _KEY_PREFIX)
        for key, state in states.items():
            old = key.removeprefix(_KEY_PREFIX)
            self._cache_move(old, state)
            await self._tell_core(old, state)

    async def store_new_key(self, old: str, new: str) -> None:
        """Store that a chat got a new key, and mark its cards as outdated. Does nothing if that is known."""
        old = self.find_home_key(old)
        if old == new or self._current_keys.get(old) == new:
            return
        state = await self._database.write(self._store_move, old, new)
        self._cache_move(old, state)
        if self._others is not None:
            self._others.broadcast(self._topic, [old, state])
        log.info("a chat has a new id", channel=self._channel, old=old, new=new)
        await self._tell_core(old, state)

    @property
    def has_any(self) -> bool:
        """True if any move is known."""
        return bool(self._current_keys)

    def has_moved(self, key: str) -> bool:
        """Tell if the chat with this key has another key today."""
        return key in self._current_keys

    def find_current_key(self, key: str) -> str:
        """Return the key by which the platform knows a chat today."""
        return self._current_keys.get(key, key)

    def find_home_key(self, key: str) -> str:
        """Return the key by which the rest of Nod knows a chat."""
        return self._home_keys.get(key, key)

    def _store_move(self, session: Session, old: str, new: str) -> dict[str, Any]:
        is_new_key_known = posted_cards.is_place_known(session, self._channel, new)
        state = {"to": new, "home": not is_new_key_known}
        self._store_state(session, old, state)
        posted_cards.mark_outdated(session, self._channel, f"{old}/")
        return state

    def _store_state(self, session: Session, old: str, state: dict[str, Any]) -> None:
        store_state(session, self._channel, f"{_KEY_PREFIX}{old}", state, self._clock())

    async def _tell_core(self, old: str, state: dict[str, Any]) -> None:
        """Report a move to the core, once, if both keys stay in use."""
        if state["home"] or state.get("told") or self._inbox is None:
            return
        await self._inbox(ChatMoved(Address(self._channel, old), Address(self._channel, str(state["to"]))))
        await self._database.write(self._store_state, old, {**state, "told": True})

    def _cache_move(self, old: str, state: dict[str, Any]) -> None:
        new = str(state["to"])  # earlier releases stored Telegram's keys as numbers
        self._current_keys[old] = new
        if state["home"]:
            self._home_keys[new] = old
