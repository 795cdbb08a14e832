"""The state of an agent session as Slack shows it alongside a thread: processing, suspended, active.

A status is best-effort: its failure must never disturb a turn, and a workspace that refuses sessions is not
asked again.
"""

import asyncio
from enum import StrEnum

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

from bot.channels.slack import limits, text
from bot.channels.slack.errors import code_of, passes
from bot.channels.slack.places import SlackPlace
from bot.channels.slack.workspaces import Workspaces
from bot.errors import ChannelError
from bot.logs import logger

log = logger(__name__)


class Status(StrEnum):
    PROCESSING = "processing"  # a turn runs; Slack shows its stop button
    SUSPENDED = "suspended"  # open proposals: it waits for people
    ACTIVE = "active"  # the agent is silent


class Sessions:
    """Sets statuses in order, one call at a time per thread."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self._refused: set[str] = set()
        self._under_way: dict[SlackPlace, asyncio.Task[None]] = {}
        self._processing: set[SlackPlace] = set()

    def begin(self, place: SlackPlace, title: str = "") -> None:
        """Say in the background that work has begun, unless that is said; `settle` waits for it."""
        if place not in self._processing and place not in self._under_way:
            self._under_way[place] = asyncio.create_task(self.say(place, Status.PROCESSING, title))

    async def settle(self, place: SlackPlace) -> None:
        """Wait until what `begin` said has arrived, so that a later status is not overtaken by it."""
        if (task := self._under_way.pop(place, None)) is not None:
            await task

    def noted(self, place: SlackPlace, status: Status) -> None:
        """Remember what Slack shows now."""
        if status is Status.PROCESSING:
            self._processing.add(place)
        else:
            self._processing.discard(place)

    async def say(self, place: SlackPlace, status: Status, title: str = "") -> None:
        """Set the status now; failures are logged and forgotten."""
        if place.thread is None or place.team in self._refused:
            return
        name = text.cut(text.link_text(title), limits.SESSION_TITLE)[0] or None
        try:
            client = await self._workspaces.client(place.team)
            await client.agents_sessions_setStatus(
                channel_id=place.channel, thread_ts=place.thread, status=status, title=name
            )
            self.noted(place, status)
        except SlackApiError as error:
            code = code_of(error)
            if not passes(code):
                self._refused.add(place.team)
            log.info("Slack rejected a session status", why=code, team=place.team)
        except (SlackClientError, aiohttp.ClientError, OSError, ChannelError) as error:
            log.info("session status not delivered", why=str(error))

    async def close(self) -> None:
        for task in self._under_way.values():
            task.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)
        self._under_way.clear()
