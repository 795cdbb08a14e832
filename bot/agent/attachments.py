"""Files that people attached, before the model answers: fetched from their platform and read.

People are told of files that can't be read, and of the parts of a file that were left out.
Unread files are stored as rows (``bot/store/outputs.py``), so a turn that is run again continues there.
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
from bot.domain.hooks import Hooks
from bot.domain.model import Picture
from bot.errors import ChannelError
from bot.store import messages, outputs
from bot.store.database import Database
from bot.tools.documents import Documents

Fetch = Callable[[Address, str, int], Awaitable[bytes]]
"""Fetches a file: the address it came to, the channel's reference, the most bytes. Raises ChannelError."""

_FETCH_SECONDS = 30.0  # for one file
_TOTAL_SECONDS = 90.0  # for all unread files of a conversation
_MAX_PICTURES = 8  # the most pictures that the model is shown, the newest first
_TOO_SLOW_TEXT = "it took too long to get"
_NO_PICTURES_TEXT = "my model takes no pictures"


@dataclass(frozen=True, slots=True)
class AttachmentReader:
    """The reader of the files that people attached."""

    database: Database
    clock: Clock
    fetch: Fetch
    bounds: FileBounds
    hooks: Hooks = field(default_factory=Hooks)
    documents: Documents = field(default_factory=Documents)

    async def make_ready(self, transcript: Transcript, *, pictures: bool, delivered: bool) -> bool:
        """Read the unread files. Return True if people are to be told of an unread file or part.

        ``pictures``: the model takes them. ``delivered``: as in `messages.add_notice`.
        """
        deadline = time.monotonic() + _TOTAL_SECONDS
        has_notice = False
        for file in transcript.unread:
            is_late = time.monotonic() > deadline
            content = FileContent("", fault=_TOO_SLOW_TEXT) if is_late else await self._read(transcript, file)
            fault = content.fault
            if not fault and not pictures and content.kind.startswith("image/"):
                fault = _NO_PICTURES_TEXT
            notice = _describe_reading(file.name, fault, content.note)
            store = partial(_store_reading, transcript=transcript, delivered=delivered)
            await self.database.write(store, file.handle, content, notice, self.clock())
            has_notice = has_notice or bool(notice)
        return has_notice

    async def _read(self, transcript: Transcript, file: Attachment) -> FileContent:
        """Return the content of a file; a feature may read what the kernel can't."""
        content = await self._read_document(transcript.conversation.origin, file)
        for read_file in self.hooks.read_file if content.fault and content.data else ():
            found = await read_file(transcript, file, content)
            if found is not None:
                return found
        return content

    async def _read_document(self, address: Address, file: Attachment) -> FileContent:
        if file.fault:
            return FileContent(file.kind, fault=file.fault)
        data, ref = await self.database.read(outputs.load_source, file.handle)
        if data is None:
            try:
                async with asyncio.timeout(_FETCH_SECONDS):
                    data = await self.fetch(address, ref, self.bounds.file)
            except TimeoutError:
                return FileContent("", fault=_TOO_SLOW_TEXT)
            except ChannelError as error:
                return FileContent("", fault=error.message)
            fault = self.bounds.too_large(len(data))
            if fault:
                return FileContent("", fault=fault)
        return await self.documents.read(data)

    async def with_pictures(self, transcript: Transcript) -> Transcript:
        """Return the transcript with the pictures that the model is shown."""
        handles = []
        for line in transcript.lines:
            for handle in line.files:
                file = transcript.files.get(handle)
                if file and file.is_picture:
                    handles.append(handle)
        if not handles:
            return transcript
        contents = await self.database.read(outputs.load_contents, handles[-_MAX_PICTURES:])
        return replace(transcript, pictures=await asyncio.to_thread(_encode_pictures, contents))


def _describe_reading(name: str, fault: str, note: str) -> str:
    if fault:
        return f"I can't read {name}: {fault}."
    if note:
        return f"I read {name}. {note}"
    return ""


def _encode_pictures(contents: dict[str, tuple[str, bytes]]) -> dict[str, Picture]:
    return {
        handle: Picture(kind, base64.b64encode(data).decode()) for handle, (kind, data) in contents.items()
    }


def _store_reading(
    session: Session,
    handle: str,
    content: FileContent,
    notice: str,
    now: datetime,
    *,
    transcript: Transcript,
    delivered: bool,
) -> None:
    """Store the content of a file, and post ``notice`` if it is not empty."""
    if outputs.mark_read(session, handle, content) and notice:
        conversation_id = transcript.conversation.id
        messages.add_notice(session, conversation_id, notice, transcript.seen, now, delivered=delivered)
