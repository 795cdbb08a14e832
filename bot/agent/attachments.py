"""The reading of attached files: before the model answers, they are fetched from their platform and read.

A file that came with a message is a row (``bot/store/outputs.py``). Reading it stores its text, or the fault
for which it can't be read, so a turn that is run again continues with the next file. People are told of files
that can't be read, and of parts that were left out. The agent loop calls `AttachmentReader` before each
answer.
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
"""A function that fetches a file from a platform. Raises ChannelError.

Its arguments are the address to which the file came, the platform's reference, and the most bytes.
"""

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

    async def make_ready(self, transcript: Transcript, *, pictures: bool, is_streamed: bool) -> bool:
        """Read the unread files. Store a notice for each file that can't be read, or was read only in part.

        Returns True if there is such a notice. ``pictures``: the model takes pictures. ``is_streamed``: the
        caller displays the notice now, so it is stored as delivered.
        """
        deadline = time.monotonic() + _TOTAL_SECONDS
        has_notice = False
        for file in transcript.unread:
            if time.monotonic() > deadline:
                content = FileContent(kind="", fault=_TOO_SLOW_TEXT)
            else:
                content = await self._read(transcript, file)
            fault = content.fault
            if not fault and not pictures and content.kind.startswith("image/"):
                fault = _NO_PICTURES_TEXT
            notice = _describe_reading(file.name, fault, content.note)
            store = partial(_store_reading, transcript=transcript, is_streamed=is_streamed)
            await self.database.write(store, file.handle, content, notice, self.clock())
            has_notice = has_notice or bool(notice)
        return has_notice

    async def _read(self, transcript: Transcript, file: Attachment) -> FileContent:
        """Return the content of a file. If reading fails, the hooks ``read_file`` may read it."""
        content = await self._read_document(transcript.conversation.origin, file)
        if not content.fault or not content.data:  # it was read, or there are no fetched bytes for a hook
            return content
        for read_file in self.hooks.read_file:
            read_by_feature = await read_file(transcript, file, content)
            if read_by_feature is not None:
                return read_by_feature
        return content

    async def _read_document(self, address: Address, file: Attachment) -> FileContent:
        """Fetch a file, unless its data is stored already, and read it. A failure is the content's fault."""
        if file.fault:
            return FileContent(kind=file.kind, fault=file.fault)
        data, ref = await self.database.read(outputs.load_attachment_source, file.handle)
        if data is None:
            try:
                async with asyncio.timeout(_FETCH_SECONDS):
                    data = await self.fetch(address, ref, self.bounds.max_file_bytes)
            except TimeoutError:
                return FileContent(kind="", fault=_TOO_SLOW_TEXT)
            except ChannelError as error:
                return FileContent(kind="", fault=error.message)
            fault = self.bounds.explain_too_large(len(data))
            if fault:
                return FileContent(kind="", fault=fault)
        return await self.documents.read(data)

    async def with_pictures(self, transcript: Transcript) -> Transcript:
        """Return the transcript with the newest pictures, at most `_MAX_PICTURES`, for the model to see."""
        handles = []
        for line in transcript.lines:
            for handle in line.files:
                file = transcript.files.get(handle)
                if file and file.is_picture:
                    handles.append(handle)
        if not handles:
            return transcript
        contents = await self.database.read(outputs.load_bytes, handles[-_MAX_PICTURES:])
        return replace(transcript, pictures=await asyncio.to_thread(_encode_pictures, contents))


def _describe_reading(name: str, fault: str, note: str) -> str:
    """Return the notice for people about a file; empty if it was read completely."""
    if fault:
        return f"I can't read {name}: {fault}."
    if note:
        return f"I read {name}. {note}"
    return ""


def _encode_pictures(contents: dict[str, outputs.FileBytes]) -> dict[str, Picture]:
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
    is_streamed: bool,
) -> None:
    """Store the content of a file and the notice about it, if any, unless another turn has stored them."""
    if outputs.store_content(session, handle, content) and notice:
        conversation_id = transcript.conversation.id
        last_heard_id = transcript.last_heard_id  # the id of the newest line that awaits an answer
        messages.add_notice(session, conversation_id, notice, last_heard_id, now, delivered=is_streamed)
