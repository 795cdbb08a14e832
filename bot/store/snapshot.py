"""What is asked again and again of one snapshot is read once: who someone is, where a conversation is.

`Database` marks the sessions that only read. Any other may change what it has read, so nothing is kept in it.
"""

from collections.abc import Callable, Hashable
from typing import TypeVar

from sqlmodel import Session

T = TypeVar("T")

KEPT = "read once"
"""Where a session that reads one snapshot to its end, and changes nothing, has a dictionary for it."""


def keep(session: Session, key: Hashable, found: object) -> None:
    """What another statement has read as well; `once` need not read it again in this snapshot."""
    if (kept := session.info.get(KEPT)) is not None:
        kept[key] = found


def once(session: Session, key: Hashable, read: Callable[[], T]) -> T:
    """``read()``, or what it gave before in this snapshot."""
    kept = session.info.get(KEPT)
    if kept is None:
        return read()
    if key not in kept:
        kept[key] = read()
    found: T = kept[key]
    return found
