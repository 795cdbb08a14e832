"""The queries of the built-in issue tracker, which its tools use (`tools.py`).

Issue numbers are never given twice, so an approval that waited can't change another issue that came later.
Functions that read or change one issue raise `PermanentRefusal` if it does not exist: no retry helps then.

A row has the idempotency key of the call that made it (``key``), or None if no call made it. If the call is
made again, it finds the row by the key, and makes no second one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Text, case, cast, delete, func, or_, true, update
from sqlalchemy.sql import ColumnElement
from sqlmodel import Session, col, select

from bot.errors import PermanentRefusal
from bot.features.issues.tables import IssueCommentRow, IssueRow
from bot.store.inserts import insert_or_ignore
from bot.store.tables.row import value_of

IssueState = Literal["open", "closed"]
Priority = Literal["low", "normal", "high", "urgent"]


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue, without its comments."""

    number: int
    title: str
    body: str
    state: str
    priority: str
    assignee: str | None
    labels: tuple[str, ...]
    author: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment on an issue."""

    body: str
    author: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Workload:
    """The numbers of one assignee's open issues, and of the urgent ones among them."""

    assignee: str | None  # None: issues without an assignee
    open: int
    urgent: int


def find(session: Session, number: int, *, lock: bool = False) -> Issue:
    """Return an issue. Raises PermanentRefusal if there is no such issue.

    ``lock``: no other transaction changes the issue until this one ends (on PostgreSQL, by a lock of the row;
    SQLite has only one writer).
    """
    query = select(IssueRow).where(IssueRow.number == number)
    if lock:
        query = query.with_for_update()
    row = session.exec(query).one_or_none()
    if row is not None:
        return _make_issue(row)
    newest = session.exec(select(func.max(col(IssueRow.number)))).one()
    hint = "there are no issues yet" if newest is None else f"the newest is #{newest}"
    raise PermanentRefusal(f"There is no issue #{number}; {hint}.")


def find_newest_titled(session: Session, title: str) -> Issue | None:
    """Return the newest issue with exactly this title, or None."""
    query = select(IssueRow).where(IssueRow.title == title).order_by(col(IssueRow.number).desc()).limit(1)
    row = session.exec(query).first()
    return _make_issue(row) if row else None


def list_comments(session: Session, number: int) -> list[Comment]:
    """Return the comments on an issue, oldest first."""
    rows = session.exec(
        select(IssueCommentRow)
        .where(IssueCommentRow.issue_number == number)
        .order_by(col(IssueCommentRow.id))
    )
    return [Comment(row.body, row.author, row.created_at) for row in rows]


def search(
    session: Session, query: str, state: IssueState | None = None, *, limit: int
) -> tuple[list[Issue], int]:
    """Return up to ``limit`` issues with each word of ``query`` in title or body, and the number of matches.

    The newest come first. Case is ignored.
    """
    conditions = [
        or_(_has_word(IssueRow.title, word), _has_word(IssueRow.body, word)) for word in query.split()
    ]
    return _list_page(session, [*conditions, _is_in_state(state)], limit)


def list_issues(
    session: Session,
    state: IssueState | None = None,
    assignee: str | None = None,
    label: str | None = None,
    priority: Priority | None = None,
    *,
    limit: int,
) -> tuple[list[Issue], int]:
    """Return up to ``limit`` issues that pass all given filters, newest first, and the number of matches.

    ``assignee``: a name, or "" for issues without an assignee; None for any issue.
    """
    conditions = [_is_in_state(state)]
    if assignee is not None:
        name = col(IssueRow.assignee)
        conditions.append(_is_same(name, assignee) if assignee else name.is_(None))
    if priority is not None:
        conditions.append(col(IssueRow.priority) == priority)
    if label is not None:
        # labels are JSON text, in which both databases find a quoted label in the same way
        conditions.append(cast(col(IssueRow.labels), Text).icontains(json.dumps(label), autoescape=True))
    return _list_page(session, conditions, limit)


def count_workload(session: Session) -> list[Workload]:
    """Return the load of each assignee, the largest first, and the issues without an assignee last."""
    count = func.count()
    name = col(IssueRow.assignee)
    urgent = func.sum(case((col(IssueRow.priority) == "urgent", 1), else_=0))
    rows = session.execute(select(name, count, urgent).where(IssueRow.state == "open").group_by(name))
    loads = [Workload(*row) for row in rows]
    return sorted(loads, key=lambda each: (each.assignee is None, -each.open, each.assignee or ""))


def create(
    session: Session,
    *,
    title: str,
    body: str = "",
    assignee: str | None = None,
    priority: Priority = "normal",
    labels: Sequence[str] = (),
    author: str,
    key: str | None,
    now: datetime,
) -> Issue:
    """Make an open issue, or return the issue that was made before with the same ``key``."""
    statement = insert_or_ignore(session, IssueRow).values(
        title=title,
        body=body,
        state="open",
        priority=priority,
        assignee=assignee,
        labels=list(labels),
        author=author,
        created_at=now,
        updated_at=now,
        idempotency_key=key,
    )
    number = session.execute(statement.returning(col(IssueRow.number))).scalar_one_or_none()
    if number is None:
        query = select(IssueRow.number).where(IssueRow.idempotency_key == key)
        number = session.exec(query).one()
    return find(session, number or 0)  # the type of the column allows None, a stored row has a number


def find_changes(issue: Issue, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of ``wanted`` whose values the issue does not have yet."""
    return {field: value for field, value in wanted.items() if getattr(issue, field) != value}


def change_issue(session: Session, number: int, wanted: Mapping[str, Any], now: datetime) -> Issue:
    """Set the fields of ``wanted``, which are named as in `Issue`, and return the issue.

    An issue that has all the values already is not updated.
    """
    changes = find_changes(find(session, number, lock=True), wanted)
    if "labels" in changes:
        changes["labels"] = list(changes["labels"])
    if changes:
        change = update(IssueRow).where(col(IssueRow.number) == number).values(**changes, updated_at=now)
        session.execute(change)
    return find(session, number)


def add_comment(
    session: Session, number: int, body: str, *, author: str, key: str | None, now: datetime
) -> Issue:
    """Add a comment to an issue, only once for the same ``key``, and return the issue."""
    find(session, number, lock=True)
    statement = insert_or_ignore(session, IssueCommentRow).values(
        issue_number=number, body=body, author=author, created_at=now, idempotency_key=key
    )
    comment_id = session.execute(statement.returning(col(IssueCommentRow.id))).scalar_one_or_none()
    if comment_id is not None:
        session.execute(update(IssueRow).where(col(IssueRow.number) == number).values(updated_at=now))
    return find(session, number)


def find_comment_id(session: Session, key: str) -> int | None:
    """Return the id of the comment that was made with this idempotency key, or None."""
    return session.exec(select(IssueCommentRow.id).where(IssueCommentRow.idempotency_key == key)).first()


def find_comment(session: Session, number: int, comment_id: int) -> Comment | None:
    """Return one comment of an issue; None if it does not exist."""
    query = select(IssueCommentRow).where(
        IssueCommentRow.issue_number == number, IssueCommentRow.id == comment_id
    )
    row = session.exec(query).first()
    return Comment(row.body, row.author, row.created_at) if row else None


def remove_comment(session: Session, number: int, comment_id: int, now: datetime) -> None:
    """Delete a comment of an issue, if it still exists. The issue counts as updated in any case."""
    is_meant = (col(IssueCommentRow.id) == comment_id, col(IssueCommentRow.issue_number) == number)
    session.execute(delete(IssueCommentRow).where(*is_meant))
    session.execute(update(IssueRow).where(col(IssueRow.number) == number).values(updated_at=now))


def close(
    session: Session, number: int, reason: str | None, *, author: str, key: str | None, now: datetime
) -> Issue:
    """Close an issue; a reason is added as a comment, with ``author`` and ``key``."""
    if reason:
        add_comment(session, number, reason, author=author, key=key, now=now)
    return change_issue(session, number, {"state": "closed"}, now)


def remove_issue(session: Session, number: int) -> tuple[Issue, int]:
    """Delete an issue with its comments. Return the deleted issue and the number of its comments."""
    issue = find(session, number, lock=True)
    comment_count = len(list_comments(session, number))
    session.execute(delete(IssueCommentRow).where(col(IssueCommentRow.issue_number) == number))
    session.execute(delete(IssueRow).where(col(IssueRow.number) == number))
    return issue, comment_count


def _make_issue(row: IssueRow) -> Issue:
    return value_of(Issue, row, labels=tuple(row.labels))


def _list_page(
    session: Session, conditions: Sequence[ColumnElement[bool]], limit: int
) -> tuple[list[Issue], int]:
    """Return the newest issues that match, and the number of all that match."""
    newest_first = select(IssueRow).where(*conditions).order_by(col(IssueRow.number).desc()).limit(limit)
    total = session.exec(select(func.count()).select_from(IssueRow).where(*conditions)).one()
    return [_make_issue(row) for row in session.exec(newest_first)], total


def _is_in_state(state: IssueState | None) -> ColumnElement[bool]:
    if state is None:
        return true()
    return col(IssueRow.state) == state


def _case_variants(text: str) -> set[str]:
    """Return a text in the usual cases, such as ``é`` and ``É``: SQLite ignores case in ASCII only."""
    if text.isascii():
        return {text}
    return {text, text.lower(), text.upper(), text.capitalize()}


def _has_word(column: Any, word: str) -> ColumnElement[bool]:
    return or_(*(col(column).icontains(spelling, autoescape=True) for spelling in _case_variants(word)))


def _is_same(column: Any, text: str) -> ColumnElement[bool]:
    return or_(*(func.lower(column) == func.lower(spelling) for spelling in _case_variants(text)))
