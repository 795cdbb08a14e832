"""The copy of an installation in another database, of SQLite or PostgreSQL.

All rows are copied as they are, with ids and with the hashes of the audit log, which is verified in the copy.
"""

from sqlalchemy import Connection, Engine, Integer, Table, func, insert, select
from sqlmodel import Session

from bot.domain.progress import Progress, ignore_progress
from bot.errors import SettingsError
from bot.store import migrations
from bot.store.audit import verification
from bot.store.migrations.schema import SCHEMA

_BATCH = 500  # the rows that are copied at a time
# processes at work on the old database are not at work on the new one
_TABLES_LEFT_OUT = frozenset({"process", "hold"})
# a database with a row in one of these tables is in use
_TABLES_OF_USE = ("conversation", "proposal", "rule", "account", "grant_given", "issue", "token")


def transfer(source: Engine, target: Engine, progress: Progress = ignore_progress) -> int:
    """Copy all rows into an empty database, all or none; returns the number of rows.

    ``progress`` receives the number of copied rows. No process may work on either database.

    Raises SettingsError where the target is in use, where the source is of another version, or where the
    audit log does not verify afterwards.
    """
    if migrations.read_version(source) != migrations.find_newest_version():
        raise SettingsError("The source is not at this release's schema. Run nod db upgrade on it first.")
    migrations.upgrade(target)
    tables = [table for table in SCHEMA.sorted_tables if table.name not in _TABLES_LEFT_OUT]
    copied_count = 0
    with source.connect() as old, target.begin() as new:
        _check_unused(new)
        for table in reversed(tables):  # delete the rows with which a new database begins
            new.execute(table.delete())
        if progress is ignore_progress:
            total = 0
        else:
            total = sum(_count(old, table) for table in tables)
        for table in tables:
            rows = old.execution_options(yield_per=_BATCH).execute(select(table))
            for batch in rows.mappings().partitions(_BATCH):
                new.execute(insert(table), [dict(row) for row in batch])
                copied_count += len(batch)
                progress(copied_count, total)
            if target.dialect.name == "postgresql":
                _advance_sequence(new, table)
        _verify_copy(new)
    return copied_count


def _check_unused(target: Connection) -> None:
    """Raise SettingsError for a database that is in use."""
    for name in _TABLES_OF_USE:
        if target.execute(select(SCHEMA.tables[name]).limit(1)).first() is not None:
            raise SettingsError("The target is in use. Name a new file or an empty database.")


def _verify_copy(target: Connection) -> None:
    """Raise SettingsError where the copied audit log does not verify."""
    with Session(target) as session:
        faults = verification.find_faults_in_session(session)
    if faults:
        raise SettingsError(f"The audit log does not verify in the copy ({faults[0]}). Nothing was kept.")


def _count(connection: Connection, table: Table) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar_one()


def _advance_sequence(connection: Connection, table: Table) -> None:
    """Have PostgreSQL number new rows of a table after the copied ones, if it numbers its rows."""
    column = _find_numbered_column(table)
    if column is None:
        return
    last = select(func.max(table.c[column])).scalar_subquery()
    sequence = func.pg_get_serial_sequence(table.name, column)
    if connection.execute(select(sequence)).scalar() is not None:
        connection.execute(select(func.setval(sequence, func.coalesce(last, 1), last.is_not(None))))


def _find_numbered_column(table: Table) -> str | None:
    """Return the only column of an integer primary key, which the database may number; or None."""
    keys = list(table.primary_key)
    if len(keys) == 1 and isinstance(keys[0].type, Integer):
        return keys[0].name
    return None
