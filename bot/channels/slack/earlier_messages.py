"""The earlier messages of a thread, which the model gets with a message that calls Nod into the thread."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from slack_sdk.errors import SlackClientError

from bot.channels.slack.client import Client
from bot.channels.slack.incoming_messages import IncomingMessage
from bot.channels.slack.marks import make_readable
from bot.channels.slack.people import SlackPeople
from bot.channels.slack.reading import find_program_name, read_files, read_full_text
from bot.channels.slack.workspaces import Workspace, Workspaces
from bot.domain.attachments import MAX_EARLIER_FILES, Upload, choose_earlier
from bot.errors import ChannelError
from bot.telemetry.logs import logger

log = logger(__name__)

_MAX_THREAD_MESSAGES = 500  # the newest messages of a thread that are looked at
_MAX_THREAD_CHARS = 7_900  # the messages of a thread without the first message
_PAGE_MESSAGES = 200  # the messages of one request
_MAX_PAGES = 10  # the requests for one thread
_RECENT_SECONDS = 3600  # the time before a message from which a very long thread is read
MAX_MESSAGE_CHARS = 2_000  # of one earlier message
_THREAD_UNREAD_TEXT = "I could not read this thread before the message. Quote what matters."
_THREAD_PARTLY_READ_TEXT = (
    "This thread is long: at least {} of its messages were not read. Quote what matters."
)
_THREAD_CUT_TEXT = "This thread is long: {} of its older messages were not read. Quote what matters."
_FILES_LEFT_TEXT = f"I read {MAX_EARLIER_FILES} of the files in this thread. Attach what else matters."
_MAX_READ_SECONDS = 1.5  # Slack waits 3 s for its acknowledgement
_YOU = "you"  # Nod itself, as the model reads it


@dataclass(frozen=True, slots=True)
class EarlierMessages:
    """The messages of a thread before a message."""

    lines: list[tuple[str, str]] = field(default_factory=list)  # author and text
    files: tuple[Upload, ...] = ()  # the files of these messages that the model gets
    note: str = ""  # says, to the person and to the model, which messages and files were not read


@dataclass(frozen=True, slots=True)
class ThreadReader:
    """Reads threads from Slack."""

    workspaces: Workspaces
    people: SlackPeople

    async def read_thread(self, message: IncomingMessage, workspace: Workspace) -> EarlierMessages:
        """Return the messages of a thread before ``message``, and the files sent since Nod last wrote there.

        Messages that could not be read in time are missing, which the note says.
        """
        place = message.place
        by_ts: dict[str, dict[str, Any]] = {}  # Slack's messages, by their timestamps
        names = {workspace.bot_user: _YOU}
        is_complete = False
        try:
            async with asyncio.timeout(_MAX_READ_SECONDS):
                client = await self.workspaces.get_client(place.team)
                is_complete = await self._read_pages(client, message, by_ts)
                newest_messages = list(by_ts.values())[-_MAX_THREAD_MESSAGES:]
                users = dict.fromkeys(str(sent["user"]) for sent in newest_messages if sent.get("user"))
                people = await self.people.load_people(place.team, users)
                names = {user: person.name or user for user, person in people.items()} | names
        except (SlackClientError, aiohttp.ClientError, OSError, TimeoutError, ChannelError) as error:
            log.info("a thread could not be read", place=str(place.address), why=str(error))
        messages = [by_ts[ts] for ts in sorted(by_ts, key=float) if ts != message.ts]

        # the thread is about its first message, so the files of that message come first
        new_files = _list_new_files(messages, workspace)
        first_files = list(read_files(messages[0])) if messages else []
        files = choose_earlier(new_files, [file for file in first_files if file in new_files])
        unread = {file.ref for file in new_files} - {file.ref for file in files}

        # `format_thread` chooses from these lines again: those that fit
        first, later = messages[:1], messages[1:]
        lines = [
            (_find_author(sent, names), make_readable(read_full_text(sent, unread), names))
            for sent in [*first, *later[-_MAX_THREAD_MESSAGES:]]
        ]
        notes = [_describe_unread(messages, lines, is_complete=is_complete)]
        if unread:
            notes.append(_FILES_LEFT_TEXT)
        return EarlierMessages(lines, files, " ".join(filter(None, notes)))

    async def _read_pages(
        self, client: Client, message: IncomingMessage, by_ts: dict[str, dict[str, Any]]
    ) -> bool:
        """Read a thread's pages into ``by_ts``, by timestamp. Return False if messages are missing.

        Slack gives the oldest messages first, and the time is short. So after `_MAX_PAGES` pages of a longer
        thread, the newest messages (`_RECENT_SECONDS`) are read by themselves. Those in between are missing.
        """
        place = message.place
        thread: dict[str, Any] = {
            "channel": place.channel,
            "ts": str(place.thread),
            "latest": message.ts,
            "inclusive": True,
        }
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await client.conversations_replies(limit=_PAGE_MESSAGES, cursor=cursor, **thread)
            by_ts |= {str(sent["ts"]): sent for sent in page.get("messages") or () if sent.get("ts")}
            cursor = (page.get("response_metadata") or {}).get("next_cursor") or None
            if not page.get("has_more") or cursor is None:
                return not page.get("has_more")
        recent = await client.conversations_replies(
            limit=_PAGE_MESSAGES, oldest=f"{float(message.ts) - _RECENT_SECONDS:.6f}", **thread
        )
        by_ts |= {str(sent["ts"]): sent for sent in recent.get("messages") or () if sent.get("ts")}
        return False


def _list_new_files(messages: Sequence[Mapping[str, Any]], workspace: Workspace) -> list[Upload]:
    """List the files of a thread since Nod last wrote there: it has read the earlier ones."""
    files: list[Upload] = []
    for message in messages:
        if workspace.is_bot(str(message.get("bot_id") or ""), str(message.get("user") or "")):
            files.clear()
        else:
            files += read_files(message)
    return files


def _find_author(message: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Return the author's name. ``names`` are those of users by id, with `_YOU` for Nod's own account."""
    user_name = names.get(str(message.get("user")))
    if user_name == _YOU:
        return user_name
    if message.get("bot_id"):
        return find_program_name(message) or user_name or "another program"
    return user_name or find_program_name(message) or "someone"


def _describe_unread(
    messages: Sequence[Mapping[str, Any]], lines: list[tuple[str, str]], *, is_complete: bool
) -> str:
    """Say how many earlier messages of a thread the model does not get; empty if it gets all.

    ``messages``: those that Slack returned. ``lines``: their authors and texts. ``is_complete``: Slack
    returned the full thread.
    """
    if not messages:
        return "" if is_complete else _THREAD_UNREAD_TEXT
    fitting = _choose_lines(lines)  # the same choice as `format_thread` makes
    missing = len(messages) - len(fitting)
    if is_complete:
        return _THREAD_CUT_TEXT.format(f"{missing:,}") if missing else ""
    # Slack's number of replies includes the message that is being taken in, which is not an earlier one
    missing_by_reply_count = _count_missing(fitting, messages[0].get("reply_count")) - 1
    missing = max(missing, missing_by_reply_count, 1)
    return _THREAD_PARTLY_READ_TEXT.format(f"{missing:,}")


def _count_missing(messages: Sequence[object], reply_count: object) -> int:
    """Return how many of a thread's messages are not in ``messages``.

    ``reply_count`` is the number that Slack gives; it does not count the thread's first message.
    """
    if isinstance(reply_count, int):
        return max(reply_count + 1 - len(messages), 0)
    return 0


def _choose_lines(lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return a thread's first message, and as many of its newest messages as fit."""
    first, later = lines[:1], lines[1:]
    room = _MAX_THREAD_CHARS
    start = len(later)
    for author, text in reversed(later):
        room -= len(f"{author}: \n") + min(len(text), MAX_MESSAGE_CHARS)
        if room < 0:
            break
        start -= 1
    return [*first, *later[start:]]
