"""Long output of tools, kept whole so that the model can read on. Its tool: ``bot/tools/builtin/outputs.py``.

Every function is one short transaction.
"""

import secrets
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Text, delete
from sqlmodel import Field, Session, SQLModel, col, select
from sqlmodel.sql.sqltypes import UTCDateTime


class OutputRow(SQLModel, table=True):
    """One text that was too long to be told at once."""

    __tablename__ = "output"

    id: str = Field(primary_key=True)
    conversation_id: str = Field(index=True)
    text: str = Field(sa_type=Text)
    created_at: datetime = Field(sa_type=UTCDateTime, index=True)


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a kept text; ``total`` is the length of the whole. Both are counted in characters."""

    text: str
    offset: int
    total: int

    @property
    def next_offset(self) -> int | None:
        end = self.offset + len(self.text)
        return end if end < self.total else None


def keep(session: Session, conversation_id: str, text: str, now: datetime) -> str:
    """Store the text; returns its handle."""
    handle = f"out-{secrets.token_hex(8)}"
    stored = text.replace("\0", "\ufffd").encode(errors="replace").decode()
    session.add(OutputRow(id=handle, conversation_id=conversation_id, text=stored, created_at=now))
    return handle


def part(session: Session, conversation_id: str, handle: str, offset: int, most: int) -> Part | None:
    """Up to ``most`` characters from ``offset`` on; None for a handle this conversation does not have."""
    query = select(OutputRow.text).where(OutputRow.id == handle, OutputRow.conversation_id == conversation_id)
    text = session.exec(query).one_or_none()
    return None if text is None else Part(text[offset : offset + most], offset, len(text))


def purge(session: Session, before: datetime) -> int:
    """Forget what was kept before then; returns how many."""
    done = session.execute(delete(OutputRow).where(col(OutputRow.created_at) < before))
    return int(getattr(done, "rowcount", 0))
