"""The status of an agent session, which Slack shows alongside a thread: processing, suspended, active.

A session is Slack's name for an agent's work in one thread. Setting its status is best-effort: a failure must
never disturb a turn. A workspace that refuses a status for good is sent no further ones.
"""

import asyncio
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

from bot.channels.slack import blocks, text
from bot.channels.slack.client import limit_time
from bot.channels.slack.errors import code_of, is_temporary
from bot.channels.slack.places import SlackPlace
from bot.channels.slack.workspaces import Workspaces
from bot.errors import ChannelError
from bot.telemetry.logs import logger

log = logger(__name__)

_MAX_TURN_WAIT_SECONDS = 0.5  # the time that a turn waits for a call to end
_CALL_SECONDS = 20.0  # the time that a call may take in the background
_RETRY_PAUSES_SECONDS = (1.0, 5.0)  # the pauses before each new try to set the last status of a turn


class Status(StrEnum):
    """The status of an agent session."""

    PROCESSING = "processing"  # a turn runs; Slack shows its stop button
    SUSPENDED = "suspended"  # open proposals: it waits for people
    ACTIVE = "active"  # the agent is silent


class _Call(NamedTuple):
    """A call under way that sets a status, and its retries."""

    status: Status
    task: asyncio.Task[None]


class Sessions:
    """Sets the statuses of sessions, in each thread one after another."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self._refused_teams: set[str] = set()  # the workspaces that refused a status for good
        self._calls: dict[SlackPlace, _Call] = {}  # the call under way in each thread
        self._processing: set[SlackPlace] = set()  # the threads where Slack shows `Status.PROCESSING`

    def set_processing(self, place: SlackPlace, title: str = "") -> None:
        """Set the status PROCESSING in the background, unless it is set or a call that sets it is under way.

        This ends the retries of the last status of an earlier turn.
        """
        call = self._calls.get(place)
        if call is None:
            is_set = place in self._processing
        else:
            is_set = call.status is Status.PROCESSING
        if not is_set:
            self._start(place, Status.PROCESSING, title, ())

    async def end_pending_call(self, place: SlackPlace) -> None:
        """Wait a moment for the call under way, then cancel it: it must not arrive after a later status."""
        call = self._calls.get(place)
        if call is not None:
            await _end_call(call)

    def note_status(self, place: SlackPlace, status: Status) -> None:
        """Remember the status that Slack shows now."""
        if status is Status.PROCESSING:
            self._processing.add(place)
        else:
            self._processing.discard(place)

    async def set_final(self, place: SlackPlace, status: Status) -> None:
        """Set the status of the thread after a turn; failures are retried in the background."""
        await self.end_pending_call(place)
        task = self._start(place, status, "", _RETRY_PAUSES_SECONDS)
        await asyncio.wait({task}, timeout=_MAX_TURN_WAIT_SECONDS)

    def _start(
        self, place: SlackPlace, status: Status, title: str, pauses: Sequence[float]
    ) -> "asyncio.Task[None]":
        """Start to set a status, after the call under way. ``pauses``: before each new try, in seconds."""
        earlier = self._calls.get(place)
        task = asyncio.create_task(self._set_with_retries(place, status, title, pauses, earlier))
        self._calls[place] = _Call(status, task)
        task.add_done_callback(lambda done: self._forget_task(place, done))
        return task

    def _forget_task(self, place: SlackPlace, task: "asyncio.Task[None]") -> None:
        call = self._calls.get(place)
        if call is not None and call.task is task:
            del self._calls[place]

    async def _set_with_retries(
        self, place: SlackPlace, status: Status, title: str, pauses: Sequence[float], earlier: _Call | None
    ) -> None:
        if earlier is not None:
            await _end_call(earlier)
        is_done = await self._set_once(place, status, title)
        for pause in pauses:
            if is_done:
                return
            await asyncio.sleep(pause)
            is_done = await self._set_once(place, status, title)

    async def _set_once(self, place: SlackPlace, status: Status, title: str) -> bool:
        """Set a status. Return False if a new try may succeed, True if none is needed or useful."""
        if place.thread is None or place.team in self._refused_teams:
            return True
        name = text.cut(text.one_line(title), blocks.MAX_SESSION_TITLE_UNITS)[0] or None
        try:
            async with limit_time(_CALL_SECONDS):
                client = await self._workspaces.get_client(place.team)
                await client.agents_sessions_setStatus(
                    channel_id=place.channel, thread_ts=place.thread, status=status, title=name
                )
        except SlackApiError as error:
            code = code_of(error)
            log.info("Slack rejected a session status", why=code, team=place.team)
            may_succeed_later = is_temporary(code)
            if not may_succeed_later:
                self._refused_teams.add(place.team)
            return not may_succeed_later
        except (SlackClientError, aiohttp.ClientError, OSError, ChannelError) as error:
            log.info("session status not delivered", why=str(error) or type(error).__name__)
            return False
        self.note_status(place, status)
        return True

    async def close(self) -> None:
        tasks = [call.task for call in self._calls.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _end_call(call: _Call) -> None:
    """Wait a moment for a call, then cancel it."""
    try:
        await asyncio.wait({call.task}, timeout=_MAX_TURN_WAIT_SECONDS)
    finally:
        call.task.cancel()
