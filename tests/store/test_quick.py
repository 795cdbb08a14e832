"""The short way to the database gives what SQLAlchemy's own way gives, and what can't take it doesn't."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import (
    JSON,
    Column,
    Connection,
    Integer,
    MetaData,
    String,
    Table,
    bindparam,
    event,
    func,
    insert,
    literal,
    select,
    text,
    update,
)
from sqlalchemy.exc import DataError, IntegrityError, OperationalError
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.engine import open_engine
from bot.store.quick import Quick
from bot.store.transaction import begin, commit

THINGS = Table(
    "thing",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("name", String, unique=True, nullable=False),
    Column("data", JSON(none_as_null=True)),
    Column("at", UTCDateTime),
    Column("kind", String, default=lambda: "made in Python"),
    Column("times", Integer, default=0, onupdate=7),
)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WHOLE = {"name": "a", "data": {"b": [1, None]}, "at": NOON, "kind": "given", "times": 1}
TIMES = 5  # often enough for the short way to be taken


@pytest.fixture
def quick(database_url: str) -> Iterator[Quick]:
    engine = open_engine(database_url)
    connection = Quick(engine)
    with connection, connection.begin():
        THINGS.create(connection)
        connection.execute(insert(THINGS), WHOLE)
        yield connection
    engine.dispose()


def ordinary(quick: Quick, statement: Any, values: Any) -> Any:
    return Connection.execute(quick, statement, values)


@pytest.mark.parametrize(("statement", "values"), [
    (select(THINGS).where(THINGS.c.name == bindparam("wanted")), {"wanted": "a"}),
    (select(THINGS).where(THINGS.c.name == bindparam("wanted")), {"wanted": "no one"}),
    (select(THINGS.c.at, func.count()).where(THINGS.c.times == literal(1)).group_by(THINGS.c.at), {}),
    (select(THINGS.c.data).where(THINGS.c.at <= bindparam("at")).limit(bindparam("n")), {"at": NOON, "n": 3}),
    (select(THINGS.c.id).where(THINGS.c.name.in_(bindparam("names", expanding=True))), {"names": ["a", "b"]}),
    (select(THINGS.c.id).where(THINGS.c.name.in_(["a", "b"])), {}),
], ids=["row", "none", "count", "limit", "list", "constants"])  # fmt: skip
def test_rows_are_the_same_by_place_by_name_and_by_column(quick: Quick, statement: Any, values: Any) -> None:
    expected = ordinary(quick, statement, values)
    named = ordinary(quick, statement, values).mappings().all()
    rows = expected.all()
    for _ in range(TIMES):
        assert quick.execute(statement, values).all() == rows
        assert quick.execute(statement, values).mappings().all() == named
        assert quick.execute(statement, values).first() == (rows[0] if rows else None)
        assert quick.execute(statement, values).scalars().all() == [row[0] for row in rows]
    for row, one in zip(quick.execute(statement, values), rows, strict=True):
        assert row._asdict() == one._asdict()
        column = next(iter(statement.selected_columns))
        assert row._mapping[column] == one._mapping[column]


def test_lists_as_values_may_have_another_length_each_time(quick: Quick) -> None:
    statement = select(THINGS.c.id).where(THINGS.c.name.in_(bindparam("names", expanding=True)))
    for length in [*range(2 * TIMES), *range(2 * TIMES)]:
        assert len(quick.execute(statement, {"names": ["a"] * length}).all()) == min(length, 1)
        names = [*map(str, range(length)), "a"]
        assert quick.execute(statement, {"names": names}).scalars().all() == [1]


def test_the_items_of_two_lists_and_of_constants_are_not_mixed_up(quick: Quick) -> None:
    first, second = (bindparam(name, expanding=True) for name in ("first", "second"))
    statement = select(literal("x"), THINGS.c.id).where(
        THINGS.c.name.in_(first), THINGS.c.times.in_(second), THINGS.c.kind.in_(["given", "other"])
    )
    for _ in range(TIMES):
        assert quick.execute(statement, {"first": ["b", "a"], "second": [1]}).all() == [("x", 1)]
        assert quick.execute(statement, {"second": [1, 2], "first": ["a"]}).all() == [("x", 1)]
        assert quick.execute(statement, {"first": ["b"], "second": [2, 1]}).all() == []
        assert quick.execute(statement, {"first": [], "second": [1]}).all() == []


def test_what_python_puts_in_by_default_is_put_in_each_time(quick: Quick) -> None:
    new, again = insert(THINGS).returning(THINGS.c.kind), update(THINGS).returning(THINGS.c.times)
    again = again.where(THINGS.c.name == bindparam("wanted")).values(kind=bindparam("new"))
    for name in range(TIMES):
        assert quick.execute(new, {"name": str(name)}).scalar() == "made in Python"
        assert quick.execute(again, {"wanted": str(name), "new": "x"}).scalar() == 7


def test_an_insert_sets_what_it_is_given_however_often_and_whatever_was_given_before(quick: Quick) -> None:
    statement = insert(THINGS).returning(THINGS.c.id, THINGS.c.at)
    for number in range(TIMES):
        with_at = {**WHOLE, "name": f"with {number}"}
        without = {key: value for key, value in WHOLE.items() if key != "at"} | {"name": f"without {number}"}
        assert quick.execute(statement, with_at).one().at == NOON
        assert quick.execute(statement, without).one().at is None


def test_rows_that_were_changed_are_counted(quick: Quick) -> None:
    statement = update(THINGS).where(THINGS.c.name == bindparam("wanted")).values(times=bindparam("new"))
    for _ in range(TIMES):
        assert quick.execute(statement, {"wanted": "a", "new": 2}).rowcount == 1
        assert quick.execute(statement, {"wanted": "no one", "new": 2}).rowcount == 0


def test_several_rows_at_a_time_are_all_inserted(quick: Quick) -> None:
    statement = insert(THINGS)
    for number in range(TIMES):
        quick.execute(statement, [{"name": f"{number} {which}"} for which in range(3)])
        quick.execute(statement, [{"name": f"{number} alone"}])
        quick.execute(statement, [{**WHOLE, "name": f"{number} alone and whole"}])
    assert quick.execute(select(func.count()).select_from(THINGS)).scalar() == 1 + 5 * TIMES


def test_a_fault_is_the_one_of_sqlalchemy_and_names_no_value(quick: Quick) -> None:
    statement = insert(THINGS)
    for _ in range(TIMES):
        with pytest.raises(IntegrityError) as raised, quick.begin_nested():
            quick.execute(statement, {**WHOLE, "data": "a secret"})
        assert "a secret" not in str(raised.value)
        assert "unique" in str(raised.value).lower()


def test_a_statement_that_is_text_and_a_value_that_is_asked_for_each_time_take_the_ordinary_way(
    quick: Quick,
) -> None:
    typed = text("SELECT name FROM thing WHERE id = :id")
    numbers = iter(range(100))
    counted = select(bindparam("number", callable_=lambda: next(numbers), type_=Integer))
    for number in range(TIMES):
        assert quick.execute(typed, {"id": 1}).scalar() == "a"
        assert quick.execute(counted, {}).scalar() == number


def test_listeners_are_called_for_every_statement(quick: Quick) -> None:
    statement = select(THINGS.c.id).where(THINGS.c.name == bindparam("wanted"))
    for _ in range(TIMES):
        quick.execute(statement, {"wanted": "a"})
    heard: list[str] = []

    def listen(_connection: Any, _cursor: Any, text: str, *_: Any) -> None:
        heard.append(text)

    event.listen(quick.engine, "before_cursor_execute", listen)
    assert quick.execute(statement, {"wanted": "a"}).scalar() == 1
    assert len(heard) == 1


def test_a_statement_is_prepared_once_and_outlives_a_transaction_that_failed(database_url: str) -> None:
    engine = open_engine(database_url)
    if engine.dialect.name != "postgresql":
        engine.dispose()
        pytest.skip("SQLite compiles a statement in microseconds")
    known, halved = text("SELECT count(*) FROM pg_prepared_statements"), select(literal(1) / bindparam("by"))
    counts = []
    with Quick(engine) as connection:
        for number in range(2 * TIMES):
            begin(connection)
            connection.execute(halved, {"by": 1})
            counts.append(connection.execute(known).scalar_one())
            if number % 2:
                with pytest.raises(DataError, match="division by zero"):
                    connection.execute(halved, {"by": 0})
            else:
                commit(connection)
            connection.rollback()
    assert counts[TIMES] > 0
    assert set(counts[TIMES:]) == {counts[TIMES]}
    engine.dispose()


def test_a_connection_that_is_lost_is_not_used_again(database_url: str) -> None:
    engine = open_engine(database_url)
    if engine.dialect.name != "postgresql":
        engine.dispose()
        pytest.skip("SQLite is a file")
    one = select(literal(1) + bindparam("more"))
    with Quick(engine) as connection:
        for _ in range(TIMES):
            begin(connection)
            connection.execute(one, {"more": 1})
            commit(connection)
        begin(connection)
        with engine.connect() as other:
            ident = connection.connection.driver_connection.info.backend_pid  # type: ignore[union-attr]
            other.execute(text(f"SELECT pg_terminate_backend({ident}, 5000)"))
        with pytest.raises(OperationalError) as found:
            connection.execute(one, {"more": 1})
        assert found.value.connection_invalidated
    with Quick(engine) as connection:
        begin(connection)
        assert connection.execute(one, {"more": 1}).scalar_one() == 2
        commit(connection)
    engine.dispose()
