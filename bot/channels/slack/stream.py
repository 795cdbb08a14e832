"""One turn in Slack as it happens: a native stream with tool activity, or edits of one message.

A native stream is a message that Slack itself shows as growing. It is started by ``chat.startStream``, gets
its pieces by ``chat.appendStream`` and is closed by ``chat.stopStream``. Where Slack refuses that, or the
stream dies (after about five minutes), the same message continues by ``chat.update``, less often. If one
message is full, the text continues in the next; beyond `MAX_POSTS` messages the full text is posted as a
file.

Text goes from ``_pending`` (not sent yet) to ``_shown`` (in the current message); ``_text`` is all text of
the turn. A task is Slack's form for an activity, such as a tool call: it has an id, a title and a status. A
chunk is a part of a native stream: a piece of text, or a task. A session is the state of the agent that Slack
shows alongside the thread (``sessions.py``).
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.channels.slack import blocks, posting, text
from bot.channels.slack.client import limit_time
from bot.channels.slack.errors import (
    CONTENT_CODES,
    code_of,
    is_temporary,
    may_have_succeeded,
    translate_errors,
)
from bot.channels.slack.people import SlackPeople
from bot.channels.slack.places import SlackPlace
from bot.channels.slack.sessions import Sessions, Status
from bot.channels.slack.threads import FollowedThreads
from bot.channels.slack.workspaces import Workspaces
from bot.channels.streamed_message import MAX_POSTS, FullText, post_each
from bot.domain.chat import Clock
from bot.domain.events import (
    STOPPED,
    Ending,
    TextDelta,
    TextRestarted,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnDelayed,
    TurnEnded,
    TurnEvent,
    TurnFailed,
)
from bot.errors import ChannelError
from bot.telemetry.logs import logger

log = logger(__name__)

STREAM_PACE = timedelta(seconds=0.6)  # appendStream: 100 a minute
EDIT_PACE = timedelta(seconds=1.2)  # update: 50 a minute
_MAX_TOOL_LINES = 8  # the lines of tools above the text of an edited message
_MAX_TOOL_LINE_UNITS = 90
_STOPPED_CODE = "stopped_by_user"
_STILL_OPEN_CODE = "streaming_state_conflict"
_CLOSED_CODES = frozenset({_STOPPED_CODE, "message_not_in_streaming_state", "message_not_found"})
"""Refusals of an append after which the stream need not be closed."""
_CALL_SECONDS = 5.0  # the time for a call that a person waits for
_CLOSE_PAUSES_SECONDS = (1.0, 2.0, 5.0)  # the pauses before each new attempt to close a stream
_LATE_CLOSE_SECONDS = 120.0  # the longest wait that Slack may ask for before a stream is closed
_ABANDONED_TEXT = "\n\n_I was restarted and start over._"
_STATUS_SIGNS = {"in_progress": "⏳", "complete": "✅", "error": "⚠️"}

_UNFINISHED_MARK = re.compile(r"(?:<|\[[^\[\]\n]{0,300}(?:\](?:\([^()\n]{0,2000})?)?)$")
"""A mention or link that may continue after this text: ``<``, ``[words``, ``[words]`` or ``[words](url``."""

Chunk = dict[str, Any]
"""A task, or a piece of text, as Slack's methods take it."""


@dataclass(eq=False)
class SlackStream:
    """The stream of a single turn in a place, a `Stream`: `send` takes the events of the turn."""

    workspaces: Workspaces
    people: SlackPeople
    sessions: Sessions
    threads: FollowedThreads
    clock: Clock
    place: SlackPlace
    recipient: tuple[str, str] | None  # team and user id of the person for whom Slack streams in a channel
    sleep: Callable[[float], Awaitable[None]]
    post_apart: Callable[[str | FullText], Awaitable[None]]  # posts a message or a file apart from the stream

    def __post_init__(self) -> None:
        # how the turn is shown: Slack streams in threads only, and in a channel it needs a recipient
        can_stream = self.place.thread is not None and (self.recipient is not None or self.place.private)
        self._is_editing = not can_stream
        """True if the turn is shown by edits. Then no stream is open between two events."""
        self._is_stream_open = False  # True while the current message is an open native stream
        self._is_stopped = False  # True from a press of Slack's stop button until the turn ends
        self._late_close: asyncio.Task[None] | None = None  # closes a stream that Slack kept open
        self._sent_at: datetime | None = None  # the time of the last piece

        # the turn
        self._text = ""  # the text of the turn so far, as the model wrote it
        self._pending = ""  # the text that is not sent yet
        self._has_sent_text = False  # True once any text of the turn was sent
        self._new_tasks: dict[str, Chunk] = {}  # the tasks that are not sent yet, or have changed since
        self._wait_task_ids: dict[str, str] = {}
        """The ids of the tasks that say what the turn waits for, by their words."""
        self._posts = 1  # the number of messages that show the text, with the current message
        self._is_full = False  # True once all `MAX_POSTS` messages are used

        # the current message
        self._ts: str | None = None  # its timestamp, which is its id
        self._shown = ""  # its text
        self._tasks: dict[str, Chunk] = {}  # its tasks, by id
        self._end_blocks: list[blocks.Block] = []  # the buttons below it, if it is the last
        self.sessions.set_processing(self.place)

    async def send(self, event: TurnEvent) -> None:
        """Show the event. Raises ChannelError if neither a stream nor an edit arrives."""
        with translate_errors():
            if not isinstance(event, TurnDelayed):
                self._complete_waits()
            match event:
                case TurnDelayed():
                    new_id = f"wait-{len(self._wait_task_ids)}"
                    task_id = self._wait_task_ids.setdefault(event.words, new_id)
                    await self._update_task(task_id, event.words, "in_progress")
                case TextDelta():
                    self._text += event.text
                    self._pending += event.text
                    await self._flush()
                case TextRestarted():
                    await self._restart()
                case ToolStarted():
                    await self._update_task(event.call_id, event.summary, "in_progress")
                case ToolProgress():
                    await self._update_task(event.call_id, event.tool_name, "in_progress", event.words)
                case ToolFinished():
                    await self._update_task(
                        event.call_id, event.tool_name, "complete" if event.ok else "error"
                    )
                case TurnEnded():
                    await self._end(event)
                case TurnFailed():
                    note = f"⚠️ {event.explanation}"
                    await self._finish(Status.ACTIVE, self._text, note, event.choices)
                case _:
                    pass  # a proposal's card follows the turn

    def _complete_waits(self) -> None:
        """Mark the tasks for waiting as complete: another event means that the turn continues."""
        for task_id in self._wait_task_ids.values():
            task = self._tasks.get(task_id)
            if task and task["status"] == "in_progress":
                self._store_task(task | {"status": "complete"})

    def _store_task(self, task: Chunk) -> None:
        self._tasks[task["id"]] = task
        self._new_tasks[task["id"]] = task

    async def _update_task(self, task_id: str, title: str, status: str, details: str = "") -> None:
        """Show a task. One that is shown already keeps its title; its details are replaced."""
        shown_task = self._tasks.get(task_id, {})
        task = {
            "type": "task_update",
            "id": task_id,
            "title": shown_task.get("title") or text.one_line(title),
            "status": status,
        }
        if details:
            task["details"] = text.one_line(details)
        self._store_task(task)
        await self._flush()

    async def _restart(self) -> None:
        """Drop the text so far: the model begins its answer again.

        The text of a native stream can't be withdrawn, so the stream is closed and edits follow.
        """
        self._text = self._pending = ""
        if not self._shown:
            return
        await self._stop_stream(None)
        self._is_editing = True
        self._shown = ""
        self._is_full = False

    async def _end(self, event: TurnEnded) -> None:
        has_any_text = self._has_sent_text or self._pending.strip()
        if not has_any_text:  # the text came with this event alone
            self._pending = event.text
        status = Status.SUSPENDED if event.ending is Ending.WAITING else Status.ACTIVE
        note = f"_{STOPPED}_" if event.ending is Ending.STOPPED else ""
        await self._finish(status, event.text or self._text, note)

    async def _finish(self, status: Status, full: str, note: str, choices: Sequence[str] = ()) -> None:
        """Send the pending text and ``note``, then close the stream and set the ``status`` of the session.

        ``full``: the text of the turn, for a file. ``choices``: the labels of buttons below the last message.
        """
        if note:
            self._pending += f"\n\n{note}"
        self._is_stopped = False  # the end is shown also where a person pressed Slack's stop button
        is_status_set = False
        try:
            await self._flush(last=True)
            self._end_blocks = blocks.choice_buttons(choices)
            if self._end_blocks and not self._is_stream_open:
                await self._edit()
            await self.sessions.end_pending_call(self.place)
            is_status_set = await self._stop_stream(status)
        finally:
            if not is_status_set:
                await self.sessions.set_final(self.place, status)
        if self._is_full:
            # `post_each` skips the first post: it stands for the messages of this stream, which have arrived
            posts: Sequence[str | FullText] = ["", FullText(full, note)]
            await post_each(posts, 1, self.post_apart)

    async def _flush(self, *, last: bool = False) -> None:
        """Send the pending text and the new tasks, unless the last piece was sent a moment ago.

        An unfinished mention or link at the end of the text is held back for the next piece. ``last``:
        everything is sent now.
        """
        now = self.clock()
        pace = EDIT_PACE if self._is_editing else STREAM_PACE
        is_too_early = self._sent_at is not None and now - self._sent_at < pace
        if self._is_stopped or (is_too_early and not last):
            return

        ready = "" if self._is_full else self._pending
        self._pending = ""
        unfinished = None if last else _UNFINISHED_MARK.search(ready)
        if unfinished:
            ready = ready[: unfinished.start()]
            self._pending = unfinished[0]
        ready = text.neutralise(ready)
        if not self._shown:
            ready = ready.lstrip("\n")
        if not ready and not self._new_tasks:
            return

        self._sent_at = now
        while text.width(self._shown) + text.width(ready) > text.MAX_POST_UNITS:
            head, ready = text.cut_off_head(
                ready, text.MAX_POST_UNITS - text.width(self._shown), before=self._shown
            )
            await self._write(head)
            if self._posts == MAX_POSTS:
                self._is_full = True
                return  # the rest is in the file only
            await self._begin_next_message()
        await self._write(ready)

    async def _begin_next_message(self) -> None:
        await self._stop_stream(None)
        self._posts += 1
        self._ts = None
        self._shown = ""
        self._tasks.clear()

    async def _write(self, piece: str) -> None:
        """Show a piece of text and the new tasks in the current message."""
        tasks = [_shorten_task(task) for task in self._new_tasks.values()]
        self._new_tasks = {}
        if not piece and not tasks:
            return
        self._shown += piece
        if piece:
            self._has_sent_text = True
        if not self._is_editing:
            chunks: list[Chunk] = [{"type": "markdown_text", "text": piece}] if piece else []
            if await self._append([*chunks, *tasks]):
                return
        if not self._is_stopped:
            await self._edit()

    async def _append(self, chunks: list[Chunk]) -> bool:
        """Add to the stream, or start it. Return False if Slack refuses it or gives no answer.

        Then the stream is closed, unless Slack has closed it, and edits show the turn (`_fall_back`).
        """
        client = await self.workspaces.get_client(self.place.team)
        try:
            async with limit_time(_CALL_SECONDS):
                if self._is_stream_open:
                    await client.chat_appendStream(
                        channel=self.place.channel, ts=self._ts or "", chunks=chunks
                    )
                else:
                    await self._start(client, chunks)
        except (SlackApiError, aiohttp.ClientError, OSError) as error:
            self._fall_back(error)
            if self._is_stream_open:  # an append failed
                if _find_code(error) not in _CLOSED_CODES:
                    await self._close_with_retries(None)
            elif may_have_succeeded(error):  # the start failed, but Slack may have made the stream
                self._ts = await self._close_unanswered_start()
            self._is_stream_open = False
            return False
        return True

    async def _close_unanswered_start(self) -> str | None:
        """Close a stream whose start was never answered, and return its message if Slack has one."""
        async with limit_time(_CALL_SECONDS):
            return await posting.close_lost_stream(self.workspaces, self.place, self.clock()) or None

    async def _start(self, client: AsyncWebClient, chunks: list[Chunk]) -> None:
        await self.sessions.end_pending_call(self.place)
        team, user = None, None
        if self.recipient and not self.place.private:
            team, user = await self.people.find_recipient(self.place.team, *self.recipient)
        started = await client.chat_startStream(
            channel=self.place.channel,
            thread_ts=self.place.thread or "",
            recipient_team_id=team,
            recipient_user_id=user,
            task_display_mode="timeline",
            chunks=chunks,
        )
        self._ts = str(started["ts"])
        self._is_stream_open = True

    async def _stop_stream(self, status: Status | None) -> bool:
        """Close an open stream. Return True if that also set the ``status`` of the session.

        If Slack did not confirm the closing, the message is edited, so that no text is missing.
        """
        if not self._is_stream_open:
            return False
        if not await self._close_with_retries(status):
            self._is_editing = True
            if self._late_close is None:  # else the stream may still be open, and Slack would refuse the edit
                await self._edit()
            return False
        if status is not None:
            self.sessions.note_status(self.place, status)
        return status is not None

    async def _close_with_retries(self, status: Status | None, last_text: str = "") -> bool:
        """Close the stream, with a last piece of text. Return False if Slack did not confirm the closing.

        Slack refuses edits of a message while its stream is open. So the closing is tried several times, and
        then once more in the background (`_close_late`). ``status``: the status of the session to set.
        """
        self._is_stream_open = False
        client = await self.workspaces.get_client(self.place.team)
        chunks = [{"type": "markdown_text", "text": last_text}] if last_text else None
        end_blocks: list[blocks.Block] = []
        if status and not last_text:
            # in a thread among people: a button after which Nod answers only when mentioned
            mentions_button = await self.threads.offer(self.place)
            end_blocks = [*self._end_blocks, *mentions_button]
        pauses = iter(_CLOSE_PAUSES_SECONDS)
        while True:
            try:
                async with limit_time(_CALL_SECONDS):
                    await client.chat_stopStream(
                        channel=self.place.channel,
                        ts=self._ts or "",
                        chunks=chunks,
                        blocks=end_blocks or None,
                        session_status=status,
                    )
            except (SlackApiError, aiohttp.ClientError, OSError) as error:
                self._fall_back(error)
                code = _find_code(error)
                if code is not None and not is_temporary(code):
                    return False
            else:
                return True
            pause = next(pauses, None)
            if pause is None:
                self._late_close = asyncio.create_task(self._close_late())
                return False
            await self.sleep(pause)

    async def _close_late(self) -> None:
        """Close the stream once Slack takes such calls again. Its text is complete."""
        try:
            async with limit_time(_LATE_CLOSE_SECONDS):
                client = await self.workspaces.get_client(self.place.team)
                await client.chat_stopStream(channel=self.place.channel, ts=self._ts or "")
        except (SlackApiError, aiohttp.ClientError, OSError, ChannelError) as error:
            why = _find_code(error) or str(error)
            log.warning("a Slack stream was left open", why=why, place=str(self.place.address))

    async def abandon(self) -> None:
        """Close the stream of a turn that this process can't finish."""
        if self._late_close is not None:
            self._late_close.cancel()
        if self._is_stream_open:
            await self._close_with_retries(Status.ACTIVE, _ABANDONED_TEXT)

    def _fall_back(self, error: Exception) -> None:
        """Continue by edits, after an error of a call about the stream."""
        code = _find_code(error)
        log.info("a Slack stream ended early, edits follow", why=code, place=str(self.place.address))
        self._is_editing = True
        self._is_stopped = code == _STOPPED_CODE

    async def _edit(self) -> None:
        """Show the current message in full, posting it first if needed."""
        client = await self.workspaces.get_client(self.place.team)
        lines = [_format_task(chunk) for chunk in list(self._tasks.values())[-_MAX_TOOL_LINES:]]
        full = "\n\n".join(part for part in ("\n".join(lines), self._shown.strip()) if part)
        if not full:
            return
        message: dict[str, Any] = {"markdown_text": full}
        if self._end_blocks:
            message = {"text": text.notification(full), "blocks": [blocks.markdown(full), *self._end_blocks]}
        try:
            await self._show(client, message)
        except SlackApiError as error:
            if code_of(error) not in CONTENT_CODES:
                raise
            plain: dict[str, Any] = {"text": text.escape_prose(text.as_plain(full))}
            if self._end_blocks:
                plain["blocks"] = self._end_blocks
            await self._show(client, plain)

    async def _show(self, client: AsyncWebClient, message: Mapping[str, Any]) -> None:
        """Post or edit the current message; if its stream is still open, close the stream first."""
        if self._ts is None:
            posted = await client.chat_postMessage(
                channel=self.place.channel,
                thread_ts=self.place.thread,
                **message,
                unfurl_links=False,
                unfurl_media=False,
            )
            self._ts = str(posted["ts"])
            return
        try:
            await client.chat_update(channel=self.place.channel, ts=self._ts, **message)
        except SlackApiError as error:
            if code_of(error) != _STILL_OPEN_CODE or not await self._close_with_retries(None):
                raise
            await client.chat_update(channel=self.place.channel, ts=self._ts, **message)


def _find_code(error: Exception) -> str | None:
    """Return the code of a refusal; None where Slack did not answer."""
    if isinstance(error, SlackApiError):
        return code_of(error)
    return None


def _shorten_task(task: Chunk) -> Chunk:
    short = dict(task)
    for key in ("title", "details"):
        if key in short:
            short[key] = text.cut_and_neutralise(short[key], blocks.MAX_TASK_TITLE_UNITS)
    return short


def _format_task(chunk: Mapping[str, Any]) -> str:
    """Return a task as a line of an edited message."""
    words = chunk["title"]
    if "details" in chunk:
        words = f"{words} ({chunk['details']})"
    shown_words = text.cut_and_neutralise(text.escape_line(words), _MAX_TOOL_LINE_UNITS)
    return f"- {_STATUS_SIGNS[chunk['status']]} {shown_words}"
