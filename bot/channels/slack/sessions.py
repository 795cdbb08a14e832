"""The state of an agent session as Slack shows it alongside a thread: processing, suspended, active.

A status is best-effort: its failure must never disturb a turn, and a workspace that refuses sessions is not
asked again.
"""

import asyncio
from collections.abc import Sequence
from enum import StrEnum

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

from bot.channels.slack import blocks, text
from bot.channels.slack.errors import code_of, passes
from bot.channels.slack.places import SlackPlace
from bot.channels.slack.workspaces import Workspaces, within
from bot.errors import ChannelError
from bot.telemetry.logs import logger

log = logger(__name__)

_WAITED = 0.5  # seconds that a turn waits for a status
_PATIENCE = 20.0  # seconds after which Slack is not waited for in the background either
_PAUSES = (1.0, 5.0)  # seconds before a last status is tried again


class Status(StrEnum):
    """The status of an agent session."""

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
        """Say in the background that work has begun, unless that is said."""
        if place not in self._processing and place not in self._under_way:
            self._start(place, Status.PROCESSING, title, ())

    async def settle(self, place: SlackPlace) -> None:
        """Wait a moment for what is under way, then drop it: a later status must not be overtaken by it."""
        task = self._under_way.get(place)
        if task is not None:
            await asyncio.wait({task}, timeout=_WAITED)
            task.cancel()

    def note_status(self, place: SlackPlace, status: Status) -> None:
        """Remember what Slack shows now."""
        if status is Status.PROCESSING:
            self._processing.add(place)
        else:
            self._processing.discard(place)

    async def say(self, place: SlackPlace, status: Status) -> None:
        """Set the status in which a turn leaves the thread; it is tried again in the background."""
        await self.settle(place)
        await asyncio.wait({self._start(place, status, "", _PAUSES)}, timeout=_WAITED)

    def _start(
        self, place: SlackPlace, status: Status, title: str, pauses: Sequence[float]
    ) -> "asyncio.Task[None]":
        task = self._under_way[place] = asyncio.create_task(self._set(place, status, title, pauses))
        task.add_done_callback(lambda done: self._forget_task(place, done))
        return task

    def _forget_task(self, place: SlackPlace, task: "asyncio.Task[None]") -> None:
        if self._under_way.get(place) is task:
            del self._under_way[place]

    async def _set(self, place: SlackPlace, status: Status, title: str, pauses: Sequence[float]) -> None:
        for pause in (*pauses, None):
            if await self._tell(place, status, title) or pause is None:
                return
            await asyncio.sleep(pause)

    async def _tell(self, place: SlackPlace, status: Status, title: str) -> bool:
        """Set it once; False where it may work another time. Failures are logged and forgotten."""
        if place.thread is None or place.team in self._refused:
            return True
        name = text.cut(text.link_text(title), blocks.SESSION_TITLE)[0] or None
        try:
            async with within(_PATIENCE):
                client = await self._workspaces.client(place.team)
                await client.agents_sessions_setStatus(
                    channel_id=place.channel, thread_ts=place.thread, status=status, title=name
                )
        except SlackApiError as error:
            code = code_of(error)
            log.info("Slack rejected a session status", why=code, team=place.team)
            if not passes(code):
                self._refused.add(place.team)
            return not passes(code)
        except (SlackClientError, aiohttp.ClientError, OSError, ChannelError) as error:
            log.info("session status not delivered", why=str(error) or type(error).__name__)
            return False
        self.note_status(place, status)
        return True

    async def close(self) -> None:
        under_way = list(self._under_way.values())
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
