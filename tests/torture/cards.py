"""What the chats show at the end, compared with the rows: no card may lie."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import create_engine, text

from tests.torture.chats import Chats, Shown

_SIGNS: Mapping[str, tuple[str, ...]] = {
    "succeeded": ("✅",),
    "failed": ("❌", "🔴"),
    "declined": ("⚪",),
    "cancelled": ("⚪",),
    "expired": ("⚪",),
}


def faults(url: str, chats: Chats) -> list[str]:
    """Everything that is wrong, in words."""
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            found = connection.execute(
                text(
                    "SELECT proposal.id, state, CAST(arguments AS text) AS arguments, channel FROM proposal "
                    "JOIN conversation ON conversation.id = conversation_id"
                )
            )
            rows = {row.id: row for row in found}
    finally:
        engine.dispose()
    return list(_faults(rows, chats))


def _faults(rows: Mapping[str, Any], chats: Chats) -> Iterator[str]:
    shown = chats.shown()
    there = {each.ident for each in shown}
    for ident, row in rows.items():
        if row.channel in chats.all and ident not in there:
            yield f"{ident} has no card in {row.channel}"
    for each in shown:
        if wrong := _wrong(each, rows.get(each.ident)):
            yield f"{each.where} shows {each.ident} {wrong}: {each.words[:200]!r}"
    if unanswered := chats.unanswered():
        yield f"{unanswered} presses in Telegram were not answered"


def _wrong(shown: Shown, row: Any) -> str:
    if row is None:
        return "which is no proposal"
    if shown.open:
        return f"as open, and it is {row.state}"
    if not any(sign in shown.words[:3] for sign in _SIGNS[row.state]):
        return f"otherwise than as {row.state}"
    if json.loads(row.arguments)["text"] not in shown.words:
        return "without what it is about"
    return ""
