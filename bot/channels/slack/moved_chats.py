"""Private channels that got another id, because their team shared them with another company.

From then on Slack accepts only the new id; messages and timestamps stay the same. The rest of Nod keeps the
id by which it first knew the channel, its home id (`bot/channels/moved_chats.py`). So `ChannelMoves` replaces
the ids in every request to Slack, and in every event and answer of Slack.
"""

import re
from collections.abc import Callable
from typing import Any

from bot.channels.moved_chats import ChatMoves
from bot.channels.slack.places import NAME, is_id
from bot.domain.chat import Clock
from bot.store.database import Database

_CHANNEL_FIELDS = frozenset({"channel", "channel_id", "channel.id"})
"""The fields with a channel's id; ``channel.id`` is the field ``id`` of an object in ``channel``."""
_LINKED_ID = re.compile(r"(?<=<#)[A-Z0-9]+")  # C1 in a text with <#C1> or <#C1|general>


class ChannelMoves:
    """Translates the ids of channels in requests to Slack, and in its events and answers."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._moves = ChatMoves(NAME, database, clock)
        self.connect = self._moves.connect
        self.load = self._moves.load

    async def remember_move(self, team: str, old: str, new: str) -> None:
        """Remember that a channel of a workspace has a new id."""
        if is_id(old) and is_id(new):
            await self._moves.store_new_key(f"{team}/{old}", f"{team}/{new}")

    def to_slack(self, team: str, request: Any) -> Any:
        """Return the JSON of a request with the ids by which Slack knows the channels today."""
        return self._replace_ids(team, request, self._moves.find_current_key)

    def from_slack(self, team: str, received: Any) -> Any:
        """Return the JSON of an event or answer with the ids by which the rest of Nod knows the channels."""
        return self._replace_ids(team, received, self._moves.find_home_key)

    def _replace_ids(self, team: str, document: Any, find_key: Callable[[str], str]) -> Any:
        """Replace the ids in the fields of channels and in links to channels; other text stays."""
        if not self._moves.has_any:
            return document

        def replace_id(ident: str) -> str:
            return find_key(f"{team}/{ident}").rpartition("/")[2]

        def walk(value: Any, field: str = "") -> Any:
            match value:
                case dict():
                    replaced = {}
                    for key, item in value.items():
                        is_channel_id = field == "channel" and key == "id"
                        replaced[key] = walk(item, "channel.id" if is_channel_id else key)
                    return replaced
                case list() | tuple():
                    return [walk(item) for item in value]
                case str() if field in _CHANNEL_FIELDS:
                    return replace_id(value)
                case str():
                    return _LINKED_ID.sub(lambda match: replace_id(match[0]), value)
                case _:
                    return value

        return walk(document)
