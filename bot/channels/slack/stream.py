"""One turn in Slack as it happens: a native stream with tool activity, or edits of one message.

It starts with ``chat.startStream``. Where Slack refuses that, or the stream dies (after about five minutes),
the same message continues by ``chat.update``, less often. What one message cannot hold continues in the next,
and what five can't is in a file.
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
from bot.channels.slack import blocks as b
from bot.channels.slack.errors import CONTENTS, code_of, maybe_done, passes, translate_errors
from bot.channels.slack.inbound import FollowedThreads
from bot.channels.slack.places import SlackPlace
from bot.channels.slack.sessions import Sessions, Status
from bot.channels.slack.workspaces import Workspaces, within
from bot.channels.streamed_message import MOST_POSTS, FullText, post_each
from bot.domain.chat import Clock
from bot.domain.events import (
    STOPPED,
    Ending,
    TextDelta,
    TextRestarted,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    Waited,
)
from bot.errors import ChannelError
from bot.telemetry.logs import logger

log = logger(__name__)

STREAM_PACE = timedelta(seconds=0.6)  # appendStream: 100 a minute
EDIT_PACE = timedelta(seconds=1.2)  # update: 50 a minute
_LINES = 8  # tool lines shown above an edited message
_STOPPED_BY_SLACK = "stopped_by_user"
_STILL_OPEN = "streaming_state_conflict"
_CLOSED = frozenset({_STOPPED_BY_SLACK, "message_not_in_streaming_state", "message_not_found"})
_WAITED = 5.0  # seconds for a call that a person waits for
_PAUSES = (1.0, 2.0, 5.0)  # seconds before a stream is closed again
_LATE = 120.0  # seconds for which Slack may say to wait before a stream is closed
_ABANDONED = "\n\n_I was restarted and start over._"
_SIGNS = {"in_progress": "⏳", "complete": "✅", "error": "⚠️"}

_BEGUN = re.compile(r"(?:<|\[[^\[\]\n]{0,300}(?:\](?:\([^()\n]{0,2000})?)?)$")

Chunk = dict[str, Any]


@dataclass(eq=False)
class SlackStream:
    """One turn at one place; ``recipient`` (team, user) is who sees live text in a channel."""

    workspaces: Workspaces
    sessions: Sessions
    threads: FollowedThreads
    clock: Clock
    place: SlackPlace
    recipient: tuple[str, str] | None
    sleep: Callable[[float], Awaitable[None]]
    post: Callable[[str | FullText], Awaitable[None]]  # one of the posts of a text, apart from the stream

    def __post_init__(self) -> None:
        self._editing = self.place.thread is None or (self.recipient is None and not self.place.private)
        self._live = False
        self._late: asyncio.Task[None] | None = None  # closes what could not be closed yet
        self._stopped = False
        self._ts: str | None = None
        self._text = ""  # all that came
        self._posts = 1  # messages that show it, with the current one
        self._long = False  # and they are full
        self._shown = ""  # text of the current message
        self._pending = ""  # text not sent yet
        self._said = False  # any text of this turn was sent
        self._waits: dict[str, str] = {}  # ids of their tasks, by what was waited for
        self._tasks: dict[str, Chunk] = {}
        self._news: dict[str, Chunk] = {}  # tool activity not sent yet
        self._last: datetime | None = None
        self._below: list[b.Block] = []  # buttons under the end
        self.sessions.begin(self.place)

    async def send(self, event: TurnEvent) -> None:
        """Show the event; raises ChannelError when neither a stream nor an edit arrives."""
        with translate_errors():
            if not isinstance(event, Waited):
                self._wait_no_longer()
            match event:
                case Waited():
                    ident = self._waits.setdefault(event.words, f"wait-{len(self._waits)}")
                    await self._task(ident, event.words, "in_progress")
                case TextDelta():
                    self._text += event.text
                    self._pending += event.text
                    await self._flush()
                case TextRestarted():
                    await self._restart()
                case ToolStarted():
                    await self._task(event.call_id, event.summary, "in_progress")
                case ToolProgress():
                    await self._task(event.call_id, event.tool_name, "in_progress", event.words)
                case ToolFinished():
                    await self._task(event.call_id, event.tool_name, "complete" if event.ok else "error")
                case TurnEnded():
                    await self._end(event)
                case TurnFailed():
                    note = f"⚠️ {event.explanation}"
                    await self._finish(Status.ACTIVE, self._text, note, event.choices)
                case _:
                    pass  # a proposal's card follows the turn

    def _wait_no_longer(self) -> None:
        for ident in self._waits.values():
            task = self._tasks.get(ident)
            if task and task["status"] == "in_progress":
                self._tasks[ident] = self._news[ident] = task | {"status": "complete"}

    async def _task(self, call_id: str, title: str, status: str, details: str = "") -> None:
        before = self._tasks.get(call_id, {})
        chunk = {
            "type": "task_update",
            "id": call_id,
            "title": before.get("title") or text.link_text(title),
            "status": status,
        }
        if details:
            chunk["details"] = text.link_text(details)
        self._tasks[call_id] = self._news[call_id] = chunk
        await self._flush()

    async def _restart(self) -> None:
        """Begin the answer again: what a native stream showed cannot be unsaid, an edited message can."""
        self._text = self._pending = ""
        if not self._shown:
            return
        await self._stop_stream(None)
        self._editing, self._shown, self._long = True, "", False

    async def _end(self, event: TurnEnded) -> None:
        if not self._said and not self._pending.strip():
            self._pending = event.text
        status = Status.SUSPENDED if event.ending is Ending.WAITING else Status.ACTIVE
        note = f"_{STOPPED}_" if event.ending is Ending.STOPPED else ""
        await self._finish(status, event.text or self._text, note)

    async def _finish(self, status: Status, full: str, note: str, choices: Sequence[str] = ()) -> None:
        """``full`` is all that was said; ``note`` comes after it."""
        self._pending += f"\n\n{note}" if note else ""
        self._stopped = said = False
        try:
            await self._flush(last=True)
            self._below = b.saying(choices)
            if self._below and not self._live:
                await self._edit()
            await self.sessions.settle(self.place)
            said = await self._stop_stream(status)
        finally:
            if not said:
                await self.sessions.say(self.place, status)
        if self._long:
            posts: Sequence[str | FullText] = ["", FullText(full, note)]  # the first is here
            await post_each(posts, 1, self.post)

    async def _flush(self, *, last: bool = False) -> None:
        """Send what is held when it is time; what may become a mention or a link waits for its end."""
        now = self.clock()
        pace = EDIT_PACE if self._editing else STREAM_PACE
        if self._stopped or (not last and self._last is not None and now - self._last < pace):
            return
        ready, self._pending = "" if self._long else self._pending, ""
        if not last and (begun := _BEGUN.search(ready)):
            ready, self._pending = ready[: begun.start()], begun[0]
        ready = text.neutralise(ready)
        if not self._shown:
            ready = ready.lstrip("\n")
        if not ready and not self._news:
            return
        self._last = now
        while text.width(self._shown) + text.width(ready) > text.POST:
            head, ready = text.divide(ready, text.POST - text.width(self._shown), before=self._shown)
            await self._write(head)
            if self._posts == MOST_POSTS:
                self._long, ready = True, ""
                break
            await self._stop_stream(None)
            self._posts += 1
            self._ts, self._shown = None, ""
            self._tasks.clear()
        await self._write(ready)

    async def _write(self, piece: str) -> None:
        news = [
            c
            | {part: text.harmless(c[part], blocks.TASK_TITLE) for part in ("title", "details") if part in c}
            for c in self._news.values()
        ]
        self._news = {}
        if not piece and not news:
            return
        self._shown += piece
        self._said = self._said or bool(piece)
        if not self._editing:
            chunks: list[Chunk] = [{"type": "markdown_text", "text": piece}] if piece else []
            if await self._append([*chunks, *news]):
                return
        if not self._stopped:
            await self._edit()

    async def _append(self, chunks: list[Chunk]) -> bool:
        """Add to the stream, or start it; False when Slack wants none, and then it is closed."""
        client = await self.workspaces.client(self.place.team)
        try:
            async with within(_WAITED):
                if self._live:
                    await client.chat_appendStream(
                        channel=self.place.channel, ts=self._ts or "", chunks=chunks
                    )
                else:
                    await self._start(client, chunks)
        except (SlackApiError, aiohttp.ClientError, OSError) as error:
            self._fall_back(error)
            if self._live and _code(error) not in _CLOSED:
                await self._close(None)
            elif not self._live and maybe_done(error):
                self._ts = await self._close_lost()
            self._live = False
            return False
        return True

    async def _close_lost(self) -> str | None:
        """Close a stream whose start was never answered, and return its message if Slack has one."""
        async with within(_WAITED):
            return await posting.close_stream(self.workspaces, self.place, self.clock()) or None

    async def _start(self, client: AsyncWebClient, chunks: list[Chunk]) -> None:
        await self.sessions.settle(self.place)
        team, user = None, None
        if self.recipient and not self.place.private:
            team, user = await self.workspaces.find_recipient(self.place.team, *self.recipient)
        started = await client.chat_startStream(
            channel=self.place.channel,
            thread_ts=self.place.thread or "",
            recipient_team_id=team,
            recipient_user_id=user,
            task_display_mode="timeline",
            chunks=chunks,
        )
        self._ts, self._live = str(started["ts"]), True

    async def _stop_stream(self, status: Status | None) -> bool:
        """Close a running stream; True when it said ``status`` too. What it may have missed is edited in."""
        if not self._live:
            return False
        if not await self._close(status):
            self._editing = True
            if self._late is None:
                await self._edit()
            return False
        if status is not None:
            self.sessions.note_status(self.place, status)
        return status is not None

    async def _close(self, status: Status | None, word: str = "") -> bool:
        """Close the stream, for an open one takes no edit; False where Slack did not say that it did so."""
        self._live = False
        client = await self.workspaces.client(self.place.team)
        chunks = [{"type": "markdown_text", "text": word}] if word else None
        if status and not word:
            below = [*self._below, *await self.threads.offer(self.place)]
        else:
            below = []
        for pause in (*_PAUSES, None):
            try:
                async with within(_WAITED):
                    await client.chat_stopStream(
                        channel=self.place.channel,
                        ts=self._ts or "",
                        chunks=chunks,
                        blocks=below or None,
                        session_status=status,
                    )
            except (SlackApiError, aiohttp.ClientError, OSError) as error:
                self._fall_back(error)
                code = _code(error)
                if not (code is None or passes(code)):
                    return False
                if pause is None:
                    self._late = asyncio.create_task(self._close_late())
                    return False
                await self.sleep(pause)
            else:
                return True
        return False

    async def _close_late(self) -> None:
        """Close it when Slack takes that again; all of its text is there."""
        try:
            async with within(_LATE):
                client = await self.workspaces.client(self.place.team)
                await client.chat_stopStream(channel=self.place.channel, ts=self._ts or "")
        except (SlackApiError, aiohttp.ClientError, OSError, ChannelError) as error:
            why = _code(error) or str(error)
            log.warning("a Slack stream was left open", why=why, place=str(self.place.address))

    async def abandon(self) -> None:
        """Close the stream of a turn that this process can't finish."""
        if self._late is not None:
            self._late.cancel()
        if self._live:
            await self._close(Status.ACTIVE, _ABANDONED)

    def _fall_back(self, error: Exception) -> None:
        code = _code(error)
        log.info("a Slack stream ended early, edits follow", why=code, place=str(self.place.address))
        self._editing = True
        self._stopped = code == _STOPPED_BY_SLACK

    async def _edit(self) -> None:
        """Show the current message in full, posting it first if needed."""
        client = await self.workspaces.client(self.place.team)
        lines = [_line(chunk) for chunk in list(self._tasks.values())[-_LINES:]]
        whole = "\n\n".join(part for part in ("\n".join(lines), self._shown.strip()) if part)
        if not whole:
            return
        shown: dict[str, Any] = {"markdown_text": whole}
        if self._below:
            shown = {
                "text": text.notification(whole),
                "blocks": [b.markdown(whole), *self._below],
            }
        try:
            await self._show(client, shown)
        except SlackApiError as error:
            if code_of(error) not in CONTENTS:
                raise
            plain = {"text": text.escape_prose(text.as_plain(whole))} | (
                {"blocks": self._below} if self._below else {}
            )
            await self._show(client, plain)

    async def _show(self, client: AsyncWebClient, shown: Mapping[str, Any]) -> None:
        if self._ts is None:
            posted = await client.chat_postMessage(
                channel=self.place.channel,
                thread_ts=self.place.thread,
                **shown,
                unfurl_links=False,
                unfurl_media=False,
            )
            self._ts = str(posted["ts"])
            return
        try:
            await client.chat_update(channel=self.place.channel, ts=self._ts, **shown)
        except SlackApiError as error:
            if code_of(error) != _STILL_OPEN or not await self._close(None):
                raise
            await client.chat_update(channel=self.place.channel, ts=self._ts, **shown)


def _code(error: Exception) -> str | None:
    if isinstance(error, SlackApiError):
        return code_of(error)
    return None


def _line(chunk: Mapping[str, Any]) -> str:
    if "details" in chunk:
        said = f"{chunk['title']} ({chunk['details']})"
    else:
        said = chunk["title"]
    return f"- {_SIGNS[chunk['status']]} {text.harmless(text.literal(said), 90)}"
