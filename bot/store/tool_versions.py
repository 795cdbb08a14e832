"""The schema of every tool version that was ever proposed: what its arguments are, and which are secret."""

from collections.abc import Mapping
from typing import Any

from sqlmodel import Session

from bot.store import snapshot
from bot.store.inserts import insert_or_ignore
from bot.store.tables.proposals import ToolVersionRow


def keep(session: Session, name: str, version: str, parameters: Mapping[str, Any]) -> None:
    """Keep a tool's JSON schema, once for each version."""
    row = {"name": name, "version": version, "parameters": dict(parameters)}
    session.execute(insert_or_ignore(session, ToolVersionRow), row)


def schema(session: Session, name: str, version: str) -> Mapping[str, Any] | None:
    """The schema as it was kept; None where nothing was ever proposed of that version."""
    return snapshot.once(session, (ToolVersionRow, name, version), lambda: _schema(session, name, version))


def _schema(session: Session, name: str, version: str) -> Mapping[str, Any] | None:
    row = session.get(ToolVersionRow, (name, version))
    return row.parameters if row is not None else None
