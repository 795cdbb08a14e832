"""A prepared statement does what SQLAlchemy does with it, on both databases."""

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import bindparam, insert, literal, select, update
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from bot.store.database import Database
from bot.store.prepared import Prepared
from bot.store.tables import ConversationRow, MessageRow

CONVERSATION: Any = ConversationRow.__table__  # type: ignore[attr-defined]
MESSAGE: Any = MessageRow.__table__  # type: ignore[attr-defined]
NOW = datetime(2026, 3, 1, 12, 30, 0, 250, tzinfo=UTC)
BEGUN = {
    "id": "c1",
    "channel": "chat",
    "key": "room",
    "private": True,
    "owner": "chat:ana",
    "title": "Größe “1”",
    "created_at": NOW,
}
LINE = {
    "conversation_id": "c1",
    "role": "user",
    "text": "hi",
    "name": "",
    "calls": [["a", "b"]],
    "results": None,
    "delivered": False,
    "created_at": NOW,
}


@pytest.fixture
def filled(database: Database) -> Database:
    database.write_now(lambda session: Prepared(insert(CONVERSATION)).count(session, BEGUN))
    return database


def test_rows_are_what_sqlalchemy_reads(filled: Database) -> None:
    statement = select(CONVERSATION).where(CONVERSATION.c.id == bindparam("id"))

    def both(session: Session) -> tuple[Any, Any]:
        return Prepared(statement).row(session, {"id": "c1"}), session.execute(statement, {"id": "c1"}).one()

    ours, theirs = filled.read_now(both)
    assert tuple(ours) == tuple(theirs)
    assert (ours.private, ours.created_at, ours.ended_at) == (True, NOW, None)


def test_an_insert_sets_what_is_named_and_returns_what_was_asked_for(filled: Database) -> None:
    insert_line = Prepared(insert(MESSAGE).returning(MESSAGE.c.id))
    read = Prepared(select(MESSAGE))

    def write(session: Session) -> list[Any]:
        first = insert_line.value(session, LINE)
        second = insert_line.value(session, LINE | {"after": first, "calls": None, "delivered": True})
        assert second > first
        return list(read.rows(session, {}))

    first, second = filled.write_now(write)
    assert (first.after, first.calls, first.results, first.delivered) == (None, [["a", "b"]], None, False)
    assert (second.after, second.calls, second.delivered) == (first.id, None, True)


def test_an_update_tells_how_many_rows_it_changed(filled: Database) -> None:
    rename = Prepared(
        update(CONVERSATION)
        .where(CONVERSATION.c.id == bindparam("whose"), CONVERSATION.c.channel.in_([literal("chat")]))
        .values(title=bindparam("title"))
    )
    assert filled.write_now(lambda session: rename.count(session, {"whose": "c1", "title": "a"})) == 1
    assert filled.write_now(lambda session: rename.count(session, {"whose": "c2", "title": "b"})) == 0


def test_nothing_found_is_none(filled: Database) -> None:
    find = Prepared(select(CONVERSATION.c.id).where(CONVERSATION.c.id == bindparam("id")))
    assert filled.read_now(lambda session: find.row(session, {"id": "c2"})) is None
    assert filled.read_now(lambda session: find.value(session, {"id": "c2"})) is None


def test_a_fault_is_the_one_sqlalchemy_raises(filled: Database) -> None:
    with pytest.raises(IntegrityError):
        filled.write_now(lambda session: Prepared(insert(CONVERSATION)).count(session, BEGUN))


def test_a_value_that_is_not_given_is_an_error(filled: Database) -> None:
    find = Prepared(select(CONVERSATION.c.id).where(CONVERSATION.c.id == bindparam("id")))
    with pytest.raises(Exception, match="id"):
        filled.read_now(lambda session: find.row(session, {}))
