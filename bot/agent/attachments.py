"""Files that people attached, before the model answers: fetched from their platform and read.

What can't be read, and what was left out of a file, is said.
Rows say what is still to be read (``bot/store/outputs.py``), so a turn that is run again continues there.
"""

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from sqlmodel import Session

from bot.domain.attachments import Attachment, FileBounds, FileContent
from bot.domain.chat import Address, Clock
from bot.domain.conversations import Transcript
from bot.domain.model import Picture
from bot.errors import ChannelError
from bot.store import messages, outputs
from bot.store.database import Database
from bot.tools.documents import Documents

Fetch = Callable[[Address, str, int], Awaitable[bytes]]
"""Fetches what a channel names so, at an address, up to so many bytes. Raises ChannelError."""

_FETCHING = 30.0  # seconds for one file
_ALL = 90.0  # seconds for all that wait in a conversation
_PICTURES = 8  # that the model is shown, the newest
_SLOW = "it took too long to get"
_BLIND = "my model takes no pictures"


@dataclass(frozen=True, slots=True)
class AttachmentReader:
    """Fetches and reads what people attached."""

    database: Database
    clock: Clock
    fetch: Fetch
    bounds: FileBounds
    documents: Documents = field(default_factory=Documents)

    async def make_ready(self, transcript: Transcript, *, pictures: bool, delivered: bool) -> bool:
        """Read what no one has read yet; whether people have to be told of something that was not read.

        ``pictures``: whether the model takes them. ``delivered``: as in `messages.add_notice`.
        """
        at, until = transcript.conversation.origin, time.monotonic() + _ALL
        told = False
        for file in transcript.unread:
            late = time.monotonic() > until
            read = FileContent("", fault=_SLOW) if late else await self._read(at, file)
            fault = read.fault
            if not fault and not pictures and read.kind.startswith("image/"):
                fault = _BLIND
            words = _tell(file.name, fault, read.note)
            keep = partial(_keep, transcript=transcript, delivered=delivered)
            await self.database.write(keep, file.handle, read, words, self.clock())
            told = told or bool(words)
        return told

    async def _read(self, at: Address, file: Attachment) -> FileContent:
        if file.fault:
            return FileContent(file.kind, fault=file.fault)
        data, ref = await self.database.read(outputs.source, file.handle)
        if data is None:
            try:
                async with asyncio.timeout(_FETCHING):
                    data = await self.fetch(at, ref, self.bounds.file)
            except TimeoutError:
                return FileContent("", fault=_SLOW)
            except ChannelError as error:
                return FileContent("", fault=error.message)
            fault = self.bounds.too_large(len(data))
            if fault:
                return FileContent("", fault=fault)
        return await self.documents.read(data)

    async def with_pictures(self, transcript: Transcript) -> Transcript:
        """Return the transcript with the pictures that the model is shown."""
        seen = [
            handle
            for line in transcript.lines
            for handle in line.files
            if (file := transcript.files.get(handle)) and file.is_picture
        ]
        if not seen:
            return transcript
        found = await self.database.read(outputs.contents, seen[-_PICTURES:])
        return replace(transcript, pictures=await asyncio.to_thread(_encode_pictures, found))


def _tell(name: str, fault: str, note: str) -> str:
    if fault:
        return f"I can't read {name}: {fault}."
    if note:
        return f"I read {name}. {note}"
    return ""


def _encode_pictures(found: dict[str, tuple[str, bytes]]) -> dict[str, Picture]:
    return {handle: Picture(kind, base64.b64encode(data).decode()) for handle, (kind, data) in found.items()}


def _keep(
    session: Session,
    handle: str,
    read: FileContent,
    words: str,
    now: datetime,
    *,
    transcript: Transcript,
    delivered: bool,
) -> None:
    """Store what was read, and tell people what was not."""
    if outputs.mark_read(session, handle, read) and words:
        ident = transcript.conversation.id
        messages.add_notice(session, ident, words, transcript.seen, now, delivered=delivered)
