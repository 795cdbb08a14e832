"""Conversations, lines and turns as rows."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from unittest.mock import ANY

import pytest
from sqlalchemy import text
from sqlmodel import Session

from bot.approvals import incoming
from bot.approvals.incoming import StoredLine
from bot.domain.chat import Address, Message
from bot.domain.conversations import Turn, Usage
from bot.domain.events import Ending
from bot.domain.files import File
from bot.store import conversations, messages, outputs, turns
from tests.kit import ANA, ROOM
from tests.kit.tables import OURS
from tests.store.conftest import UNBOUND, DatabaseCluster, Rows


def said(accepted: StoredLine | None) -> str:
    assert accepted is not None
    return accepted.conversation_id


def test_an_event_is_taken_in_once_however_often_it_comes(rows: Rows, together: DatabaseCluster) -> None:
    taken = together([lambda: rows.say(event="e")] * 20)
    assert len([t for t in taken if t is not None]) == 1
    assert len(rows.turn(said(next(t for t in taken if t))).transcript.lines) == 1


def test_the_same_event_id_from_another_channel_is_another_event(rows: Rows) -> None:
    assert rows.say(event="e") is not None
    assert rows.say(event="e", at=Address("wall", "room")) is not None


def test_first_messages_at_the_same_time_begin_one_conversation_and_want_one_turn(
    rows: Rows, together: DatabaseCluster
) -> None:
    taken = together([rows.say] * 20)
    assert len({said(t) for t in taken}) == 1
    assert rows.database.read_now(turns.list_wanted) == [said(taken[0])]
    assert len(rows.turn(said(taken[0])).transcript.lines) == 20


def test_a_late_second_delivery_begins_no_new_conversation(rows: Rows) -> None:
    rows.say(event="e")
    assert rows.database.write_now(conversations.end_conversation, ROOM, rows.clock())
    assert rows.say(event="e") is None
    assert rows.database.read_now(conversations.find_current_conversation, ROOM) is None


def test_one_event_that_comes_to_many_places_at_the_same_time_leaves_no_empty_conversation(
    rows: Rows, together: DatabaseCluster
) -> None:
    together([partial(rows.say, event="e", at=Address(ROOM.channel, str(n))) for n in range(20)])
    with rows.database.engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM conversation")).scalar_one() == 1


def test_after_the_end_of_a_conversation_the_next_message_begins_another(rows: Rows) -> None:
    first = said(rows.say())
    rows.database.write_now(conversations.end_conversation, ROOM, rows.clock())
    second = said(rows.say())
    assert first != second
    assert not rows.database.write_now(
        conversations.end_conversation, Address("chat", "nowhere"), rows.clock()
    )


def test_the_number_of_a_deleted_line_is_never_anothers(rows: Rows) -> None:
    first = rows.say(event="e")
    assert first is not None
    rows.database.write_now(conversations.forget_conversations, [first.conversation_id], rows.clock())
    second = rows.say(event="f")
    assert second is not None
    assert second.message_id != first.message_id


def test_a_turn_does_not_end_while_someone_spoke_since(rows: Rows) -> None:
    ident = said(rows.say("first"))
    turn = rows.turn(ident)
    rows.say("second")
    assert rows.database.write_now(_answer, turn, rows, Ending.DONE) == (ANY, None)
    assert rows.database.write_now(_answer, rows.turn(ident), rows, Ending.DONE) == (ANY, Ending.DONE)
    assert rows.database.read_now(turns.load_turn, ident) is None


def test_an_answer_to_a_stopped_turn_is_not_kept(rows: Rows) -> None:
    ident = said(rows.say())
    turn = rows.turn(ident)
    assert rows.database.write_now(turns.stop_turn, ident, rows.clock())
    assert not rows.database.write_now(turns.stop_turn, ident, rows.clock())
    assert rows.database.write_now(_answer, turn, rows) is None


def _answer(
    session: Session, turn: Turn, rows: Rows, ending: Ending | None = None
) -> turns.StoredAnswer | None:
    used = replace(turn, usage=Usage(1, 2, 3))
    return turns.store_answer(session, used, "Hello.", [], {}, ending, delivered=False, now=rows.clock())


def test_usage_is_kept_with_the_turn_and_read_again_after_a_crash(rows: Rows) -> None:
    ident = said(rows.say())
    rows.database.write_now(_answer, rows.turn(ident), rows)
    assert rows.turn(ident).usage == Usage(1, 2, 3)


def test_what_was_said_and_not_shown_is_found_until_it_is_marked(rows: Rows) -> None:
    ident = said(rows.say())
    turn = rows.turn(ident)
    answered = rows.database.write_now(_answer, turn, rows)
    assert answered is not None
    message_id = answered.message_id
    read, now = rows.database.read_now, rows.clock()
    assert [line.id for line in read(messages.list_undelivered, ident)] == [message_id]
    assert read(turns.list_with_undelivered, now, now) == []  # its turn is still under way
    rows.database.write_now(turns.end_turn, turn, "done", now)
    assert read(turns.list_with_undelivered, now, now) == [ident]
    rows.database.write_now(messages.mark_delivered, [message_id])
    assert read(turns.list_with_undelivered, now, now) == []


def _blocked(rows: Rows) -> bool:
    waiting = text(f"SELECT count(*) FROM pg_stat_activity WHERE {OURS} AND wait_event_type = 'Lock'")
    with rows.database.engine.connect() as connection:
        return bool(connection.execute(waiting).scalar_one())


def _while_open(rows: Rows, first: Callable[[Session], None], then: Callable[[], object]) -> object:
    """Run ``then`` in another thread once ``first`` is done but not committed, and commit when it waits."""
    with ThreadPoolExecutor(1) as threads:
        with Session(rows.database.engine) as session, session.begin():
            first(session)
            later = threads.submit(then)
            while not (later.done() or _blocked(rows)):
                pass
        return later.result()


@pytest.fixture
def apart(rows: Rows) -> Rows:
    """Rows in a database where transactions overlap."""
    if rows.database.dialect != "postgresql":
        pytest.skip("SQLite has one writer; transactions never overlap there")
    return rows


def test_a_message_that_is_being_taken_in_keeps_the_turn_from_ending_past_it(apart: Rows) -> None:
    ident = said(apart.say("first"))
    turn = apart.turn(ident)

    def take_in(session: Session) -> None:
        incoming.store_message(session, Message(ROOM, ANA, "second", "e-second"), apart.clock(), UNBOUND)

    def answer() -> object:
        return apart.database.write_now(_answer, turn, apart, Ending.DONE)

    assert _while_open(apart, take_in, answer) == (ANY, None)
    assert apart.database.read_now(turns.list_wanted) == [ident]


def test_a_message_that_comes_while_a_turn_is_being_ended_wants_a_new_one(apart: Rows) -> None:
    ident = said(apart.say("first"))
    turn = apart.turn(ident)

    def commit(session: Session) -> None:
        assert _answer(session, turn, apart, Ending.DONE) == (ANY, Ending.DONE)

    assert said(_while_open(apart, commit, lambda: apart.say("second"))) == ident  # type: ignore[arg-type]
    assert apart.turn(ident).id != turn.id


def test_kept_text_is_read_in_its_conversation_alone(rows: Rows) -> None:
    here, there = said(rows.say()), said(rows.say(at=Address("wall", "room")))
    handle = rows.database.write_now(outputs.store_output, here, File("look.txt", "abcdef"), rows.clock())
    assert rows.database.read_now(outputs.load_text_part, here, handle, 2, 3) == outputs.Part("cde", 2, 6)
    assert rows.database.read_now(outputs.load_text_part, there, handle, 2, 3) is None
    assert rows.database.read_now(outputs.load_text_part, here, "out-0", 2, 3) is None
