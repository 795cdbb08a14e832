"""Files of a conversation as rows: long output of tools, files that tools make, and files that people attach.

The table is called ``output`` after the first of these.

Each has a *handle*, its id, by which the model reads further parts of it with its tool in
``bot/approvals/tools/outputs.py``. ``bot/channels/delivery/attachments.py`` posts the files of tools for
people. ``bot/agent/attachments.py`` reads the files that people attach: their rows are stored with the
message. Once a file was read, its row gets the text, or the reason why it has no text.

Every function runs in the transaction of its session.
"""

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Index, LargeBinary, Text, bindparam, case, delete, func, insert, update
from sqlmodel import Field, Session, col, select
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.domain.attachments import Attachment, FileContent, Origin, Upload, format_name
from bot.domain.files import File, fits_card, safe_name
from bot.domain.outcomes import MAX_RESULT
from bot.domain.people import Actor
from bot.domain.proposals import Proposal
from bot.domain.redaction import hide_values, secrets_in
from bot.domain.text import replace_unstorable
from bot.store import messages, proposals
from bot.store.tables.conversations import ConversationRow
from bot.store.tables.row import Row, count_changed, delete_older, is_old, make_partial_index, table_of


class OutputRow(Row, table=True):
    """One file of a conversation."""

    __tablename__ = "output"
    __table_args__ = (
        make_partial_index(
            "output_unposted",
            "conversation_id",
            "created_at",
            "id",
            where="posted = 0",
            postgresql="NOT posted",
        ),
        Index("output_created", "created_at"),
        make_partial_index("output_of_person", "actor", "created_at", where="actor IS NOT NULL"),
    )

    id: str = Field(primary_key=True)  # the handle
    conversation_id: str = Field(index=True)
    proposal_id: str | None = None  # the proposal whose tool made it
    name: str
    text: str = Field(sa_type=Text)  # all of its text
    data: bytes | None = Field(default=None, sa_type=LargeBinary)  # its bytes, if it is more than a text
    kind: str = ""  # its media type; empty for a text, and for an attached file that was not read yet
    size: int = 0  # the length of ``data`` in bytes; 0 for a text
    actor: str | None = None  # the account that attached it; NULL for a file that a tool made
    ref: str = ""  # the channel's reference to an attached file that was not read yet, to fetch the file by
    fault: str = ""  # why an attached file can't be read
    ready: bool = True  # it was read; False for an attached file that was not read yet
    posted: bool = False  # people have the file, or can never get it
    origin: str | None = None  # the `Origin` of an attached file; NULL in older rows
    created_at: datetime = Field(sa_type=UTCDateTime)


_OUTPUT = table_of(OutputRow)
UNPOSTED = (  # also a part of the statements of other modules
    select(_OUTPUT)
    .where(_OUTPUT.c.conversation_id == bindparam("conversation_id"), ~_OUTPUT.c.posted)
    .order_by(_OUTPUT.c.created_at, _OUTPUT.c.id)
)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a stored text."""

    text: str
    offset: int  # the number of characters before the part
    total: int  # the number of characters of the stored text

    @property
    def next_offset(self) -> int | None:
        """The offset of the part that follows; None for the last part."""
        end = self.offset + len(self.text)
        return end if end < self.total else None


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """A stored file as it is posted for people."""

    handle: str
    file: File
    proposal_id: str | None  # the proposal whose tool made it, if there is one


class ListedFile(NamedTuple):
    """A file in a list, with its conversation."""

    handle: str
    name: str
    size: int  # the length in bytes, or that of a text in characters
    at: datetime
    conversation_id: str
    title: str


class NewAttachment(NamedTuple):
    """A file of a message, before it is read."""

    handle: str
    upload: Upload
    fault: str  # the reason why it is refused; empty for an accepted file


class AttachedAmount(NamedTuple):
    """The amount of files that an account attached."""

    file_count: int
    accepted_bytes: int  # without refused files


class AttachmentSource(NamedTuple):
    """The source from which an attached file is read."""

    data: bytes | None  # its bytes; None if they are not stored
    ref: str  # its channel's reference, to fetch it by; empty if it was read or deleted


class FileBytes(NamedTuple):
    """The bytes of a file."""

    media_type: str
    data: bytes


def store_output(
    session: Session,
    conversation_id: str,
    file: File,
    now: datetime,
    *,
    handle: str | None = None,
    proposal_id: str | None = None,
) -> str:
    """Store a file for people, to be posted; return its handle, a new one if none is given."""
    handle = handle or f"out-{secrets.token_hex(8)}"
    session.add(
        OutputRow(
            id=handle,
            conversation_id=conversation_id,
            proposal_id=proposal_id,
            name=safe_name(file.name),
            text=replace_unstorable(file.text),
            data=file.data,
            kind=file.kind,
            size=len(file.data or b""),
            created_at=now,
        )
    )
    return handle


def store_result(session: Session, proposal: Proposal, files: Sequence[File], now: datetime) -> bool:
    """Store the files of an ended proposal, and its result if it is too long for the card.

    Secrets in the arguments of the call are hidden in the texts. False if there is nothing to store.
    """
    # each with its handle, or None for a new one
    to_store: list[tuple[File, str | None]] = [(file, None) for file in files if file.text or file.data]
    if proposal.result and not fits_card(proposal.result):
        result_file = File(f"{proposal.tool_name}-{proposal.id}.txt", proposal.result)
        to_store.insert(0, (result_file, proposal.output_handle))
    if not to_store:
        return False
    schema = proposals.load_schema(session, proposal.tool_name, proposal.tool_version)
    hidden_values = secrets_in(proposal.arguments, schema)
    for file, handle in to_store:
        safe_file = replace(file, text=hide_values(file.text, hidden_values))
        store_output(
            session, proposal.conversation_id, safe_file, now, handle=handle, proposal_id=proposal.id
        )
    return True


def list_unposted(session: Session, conversation_id: str) -> list[StoredOutput]:
    """Return the files of a conversation that are not posted yet, oldest first."""
    rows = session.connection().execute(UNPOSTED, {"conversation_id": conversation_id})
    return [_to_output(row) for row in rows]


def list_conversations_with_unposted(session: Session, before: datetime, now: datetime) -> list[str]:
    """Return the ids of conversations with a file from before a moment that is not posted yet."""
    is_from_before = is_old(OutputRow.created_at, before, now)
    query = select(OutputRow.conversation_id).where(~col(OutputRow.posted), is_from_before)
    return list(dict.fromkeys(session.exec(query)))


def mark_posted(session: Session, handle: str) -> None:
    session.execute(update(OutputRow).where(col(OutputRow.id) == handle).values(posted=True))


def list_of_proposal(session: Session, proposal: Proposal) -> list[StoredOutput]:
    """Return the files that a proposal's tool made, and its result if that is too long for the card."""
    query = select(OutputRow).where(
        OutputRow.conversation_id == proposal.conversation_id, OutputRow.proposal_id == proposal.id
    )
    return [_to_output(row) for row in session.exec(query.order_by(col(OutputRow.name), col(OutputRow.id)))]


def list_handles(session: Session, conversation_id: str) -> list[tuple[str, str]]:
    """Return the handle and the name of each stored file of a conversation, newest first."""
    query = select(OutputRow.id, OutputRow.name).where(OutputRow.conversation_id == conversation_id)
    rows = session.exec(query.order_by(col(OutputRow.created_at).desc(), col(OutputRow.id)))
    return [(handle, name) for handle, name in rows]


def list_of_owner(session: Session, channel: str, owner: str, limit: int) -> list[ListedFile]:
    """Return the newest stored files of the conversations of one account in a channel."""
    out, conversation = _OUTPUT.c, table_of(ConversationRow).c
    size = case((out.size > 0, out.size), else_=func.length(out.text))
    shown = (out.id, out.name, size, out.created_at, conversation.id, conversation.title)
    query = (
        select(*shown)  # type: ignore[call-overload]
        .join_from(_OUTPUT, table_of(ConversationRow), conversation.id == out.conversation_id)
        .where(conversation.channel == channel, conversation.owner == owner)
        .where(conversation.deleted_at.is_(None))
        .order_by(out.created_at.desc(), out.id)
        .limit(limit)
    )
    return [ListedFile(*row) for row in session.execute(query)]


def load_file(session: Session, conversation_id: str, handle: str) -> File | None:
    """Return a file of a conversation; None if it is not stored there, or was not read yet."""
    query = select(OutputRow).where(OutputRow.id == handle, OutputRow.conversation_id == conversation_id)
    row = session.exec(query).one_or_none()
    if row and row.ready:
        return File(row.name, row.text, row.data, row.kind)
    return None


def store_attached(
    session: Session, conversation_id: str, actor: Actor, files: Sequence[NewAttachment], now: datetime
) -> None:
    """Store the files of a message before they are read."""
    rows = [
        {
            "id": file.handle,
            "conversation_id": conversation_id,
            "name": replace_unstorable(format_name(file.upload.name)),
            "text": "",
            "data": None if file.fault else file.upload.data,
            "kind": "",
            "size": file.upload.bytes,
            "actor": str(actor),
            "ref": file.upload.ref,
            "fault": file.fault,
            "ready": False,
            "posted": True,
            "origin": str(file.upload.origin),
            "created_at": now,
        }
        for file in files
    ]
    session.connection().execute(insert(_OUTPUT), rows)


def count_attached_since(session: Session, actor: Actor, since: datetime) -> AttachedAmount:
    """Return the amount of files that an account attached since then."""
    accepted_size = case((_OUTPUT.c.fault == "", _OUTPUT.c.size), else_=0)
    query = select(func.count(), func.coalesce(func.sum(accepted_size), 0)).where(
        _OUTPUT.c.actor == str(actor),
        _OUTPUT.c.actor.is_not(None),  # the condition of the index `output_of_person`
        _OUTPUT.c.created_at > since,
    )
    count, size = session.connection().execute(query).one()
    return AttachedAmount(count, int(size))


def find_attached(session: Session, conversation_id: str, handles: Collection[str]) -> dict[str, Attachment]:
    """Return the attached files that are still stored, by handle, with the beginning of their text."""
    out = _OUTPUT.c
    beginning = func.substr(out.text, 1, MAX_RESULT).label("beginning")
    length = func.length(out.text).label("length")
    columns = (out.id, out.name, out.size, out.kind, beginning, length, out.fault, out.ready, out.origin)
    query = select(*columns).where(  # type: ignore[call-overload]
        out.conversation_id == conversation_id, out.id.in_(handles)
    )
    rows = session.connection().execute(query)
    return {row.id: _to_attachment(row) for row in rows}


def load_attachment_source(session: Session, handle: str) -> AttachmentSource:
    """Return the bytes of an attached file, or the reference to fetch it by; nothing if it was deleted."""
    query = select(_OUTPUT.c.data, _OUTPUT.c.ref).where(_OUTPUT.c.id == handle)
    row = session.connection().execute(query).first()
    if row:
        return AttachmentSource(row.data, row.ref)
    return AttachmentSource(None, "")


def load_bytes(session: Session, handles: Collection[str]) -> dict[str, FileBytes]:
    """Return the bytes of these files by handle; files without bytes are left out."""
    query = select(_OUTPUT.c.id, _OUTPUT.c.kind, _OUTPUT.c.data).where(_OUTPUT.c.id.in_(handles))
    rows = session.connection().execute(query)
    return {row.id: FileBytes(row.kind, row.data) for row in rows if row.data}


def store_content(session: Session, handle: str, content: FileContent) -> bool:
    """Store the content of an attached file; False where the file was deleted, or read before."""
    values: dict[str, Any] = {
        "text": replace_unstorable(content.text_for_model),
        "data": content.data,
        "kind": content.kind,
        "fault": content.fault,
        "ref": "",
        "ready": True,
    }
    if content.data:
        values["size"] = len(content.data)
    is_unread = (_OUTPUT.c.id == handle) & ~_OUTPUT.c.ready
    statement = update(_OUTPUT).where(is_unread).values(**values)
    return bool(count_changed(session.execute(statement)))


def load_text_part(
    session: Session, conversation_id: str, handle: str, offset: int, max_chars: int
) -> Part | None:
    """Return up to ``max_chars`` characters from ``offset`` on; None for a handle of another conversation.

    The handle ``call-MESSAGE-POSITION`` is for the result of a call: the id of the answer, and the position
    of the call in it, from 0 on (``bot/agent/history_parts.py``).
    """
    if handle.startswith("call-"):  # the tool has checked that two numbers follow
        _, message_id, position = handle.split("-")
        text = _load_result_of_call(session, conversation_id, int(message_id), int(position))
    else:
        query = select(OutputRow.text).where(
            OutputRow.id == handle, OutputRow.conversation_id == conversation_id
        )
        text = session.exec(query).one_or_none()
    if text is None:
        return None
    return Part(text[offset : offset + max_chars], offset, len(text))


def _load_result_of_call(
    session: Session, conversation_id: str, message_id: int, position: int
) -> str | None:
    """Return the result of a call, which is stored with the answer or with the call's proposal, or None."""
    line = messages.get_line(session, message_id, conversation_id)
    if line is None or position >= len(line.calls):
        return None
    call = line.calls[position]
    if call.id in line.results:
        return line.results[call.id].text
    for proposal in proposals.list_of_message(session, message_id):
        if proposal.call_id == call.id:
            return proposal.result
    return None


def delete_of_conversations(session: Session, conversation_ids: Sequence[str]) -> None:
    """Delete the files of these conversations."""
    session.execute(delete(_OUTPUT).where(_OUTPUT.c.conversation_id.in_(conversation_ids)))


def purge(session: Session, before: datetime, limit: int) -> int:
    """Delete up to ``limit`` files from before a moment; return their number."""
    return delete_older(session, OutputRow, "created_at", before, limit)


def _to_output(row: Any) -> StoredOutput:
    return StoredOutput(row.id, File(row.name, row.text, row.data, row.kind), row.proposal_id)


def _to_attachment(row: Any) -> Attachment:
    """Return an attached file from the columns of `find_attached`."""
    return Attachment(
        handle=row.id,
        name=row.name,
        size=row.size,
        kind=row.kind,
        text=row.beginning,
        length=row.length,
        fault=row.fault,
        ready=row.ready,
        origin=Origin(row.origin or ""),
    )
