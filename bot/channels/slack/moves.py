"""Private channels that Slack gave another id, since their team shared them with another company.

Slack takes the new id alone, and keeps the messages and their timestamps. See `bot/channels/moves.py`.
"""

import re
from collections.abc import Callable
from typing import Any

from bot.channels.moves import ChatMoves
from bot.channels.slack.places import NAME, is_id
from bot.domain.chat import Clock
from bot.store.database import Database

_FIELDS = frozenset({"channel", "channel_id", "channel.id"})
_LINK = re.compile(r"(?<=<#)[A-Z0-9]+")


class ChannelMoves:
    """Translates the ids of channels in what Slack is sent, and in what comes from it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._keys = ChatMoves(NAME, database, clock)
        self.connect, self.load = self._keys.connect, self._keys.load

    async def learn(self, team: str, old: str, new: str) -> None:
        """Remember that a channel of a workspace has a new id."""
        if is_id(old) and is_id(new):
            await self._keys.learn(f"{team}/{old}", f"{team}/{new}")

    def to_slack(self, team: str, given: Any) -> Any:
        """Return a request with the ids by which Slack knows the channels today."""
        return self._rename(team, given, self._keys.now)

    def from_slack(self, team: str, said: Any) -> Any:
        """Return an event or an answer with the ids by which the rest of Nod knows the channels."""
        return self._rename(team, said, self._keys.home)

    def _rename(self, team: str, value: Any, find: Callable[[str], str]) -> Any:
        """Rename the channels that fields and links name, and nothing that people wrote."""
        if not self._keys.are_known:
            return value

        def rename(ident: str) -> str:
            return find(f"{team}/{ident}").rpartition("/")[2]

        def walk(value: Any, field: str = "") -> Any:
            match value:
                case dict():
                    inside = f"{field}.id" if field == "channel" else ""
                    return {key: walk(each, inside if key == "id" else key) for key, each in value.items()}
                case list() | tuple():
                    return [walk(each) for each in value]
                case str():
                    return rename(value) if field in _FIELDS else _LINK.sub(lambda m: rename(m[0]), value)
                case _:
                    return value

        return walk(value)
