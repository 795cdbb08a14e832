"""Chats that a platform gave another id.

A chat keeps the id it had when Nod first met it for everything outside its channel's folder: settings, rules,
grants, conversations, schedules, what is remembered and copies of cards name it by that. Only what goes to
the platform, and what comes from there, is translated. Where people talked to Nod at the new id before the
platform told of it, both ids stay, and the core is told.
"""

from typing import Any

from sqlmodel import Session

from bot.domain.chat import Address, ChatMoved, Clock, Inbox
from bot.domain.jobs import Peers
from bot.store import posted_cards
from bot.store.database import Database
from bot.store.state import keep_state, list_states
from bot.telemetry.logs import logger

log = logger(__name__)

_KEY = "moved:"


class ChatMoves:
    """The chats of one channel that moved, by the keys of their addresses: rows, cached here."""

    def __init__(self, channel: str, database: Database, clock: Clock) -> None:
        self._channel, self._database, self._clock = channel, database, clock
        self._told = f"{channel} moved"  # what processes tell each other
        self._now: dict[str, str] = {}
        self._home: dict[str, str] = {}
        self._others: Peers | None = None
        self._inbox: Inbox | None = None

    def connect(self, inbox: Inbox, others: Peers | None) -> None:
        """Have the core told of moves by ``inbox``, and other processes of what is learned here."""
        self._inbox, self._others = inbox, others
        if others is not None:
            others.on(self._told, lambda told: self._note(*told))

    async def load(self) -> None:
        """Read what is known, and tell the core what a crash kept from it."""
        for key, state in (await self._database.read(list_states, self._channel, _KEY)).items():
            old = key.removeprefix(_KEY)
            self._note(old, state)
            await self._tell_core(old, state)

    async def learn(self, old: str, new: str) -> None:
        """Remember that a chat moved; the cards that stand in it are behind from now on."""
        old = self.home(old)
        if old == new or self._now.get(old) == new:
            return
        state = await self._database.write(self._learn, old, new)
        self._note(old, state)
        if self._others is not None:
            self._others.broadcast(self._told, [old, state])
        log.info("a chat has a new id", channel=self._channel, old=old, new=new)
        await self._tell_core(old, state)

    @property
    def are_known(self) -> bool:
        """True if any chat moved."""
        return bool(self._now)

    def has_moved(self, key: str) -> bool:
        """Return whether the chat moved away from this key."""
        return key in self._now

    def now(self, key: str) -> str:
        """Return the key by which the platform knows a chat today."""
        return self._now.get(key, key)

    def home(self, key: str) -> str:
        """Return the key by which the rest of Nod knows a chat."""
        return self._home.get(key, key)

    def _learn(self, session: Session, old: str, new: str) -> dict[str, Any]:
        state = {"to": new, "home": not posted_cards.is_known(session, self._channel, new)}
        self._keep(session, old, state)
        posted_cards.fall_behind(session, self._channel, f"{old}/")
        return state

    def _keep(self, session: Session, old: str, state: dict[str, Any]) -> None:
        keep_state(session, self._channel, f"{_KEY}{old}", state, self._clock())

    async def _tell_core(self, old: str, state: dict[str, Any]) -> None:
        """Have what people set for the chat hold at its new address too, once, where both are in use."""
        if state["home"] or state.get("told") or self._inbox is None:
            return
        await self._inbox(ChatMoved(Address(self._channel, old), Address(self._channel, str(state["to"]))))
        await self._database.write(self._keep, old, {**state, "told": True})

    def _note(self, old: str, state: dict[str, Any]) -> None:
        new = str(state["to"])  # earlier releases kept Telegram's numbers
        self._now[old] = new
        if state["home"]:
            self._home[new] = old
