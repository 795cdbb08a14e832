"""``nod db``: the schema, and copies of the database."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy.engine import make_url

from bot.cli.command import command, shared_options
from bot.cli.progress import show_progress
from bot.cli.shared import database_url, load_settings, open_database, plain
from bot.errors import NodError, SettingsError
from bot.settings import database_address
from bot.store import migrations
from bot.store.database import Database
from bot.store.engine import back_up
from bot.store.locks.process_lock import at_work
from bot.store.transfer import transfer

app = typer.Typer(callback=shared_options, no_args_is_help=True, help="Upgrade and copy the database.")


@command(app)
def backup(
    file: Annotated[Path, typer.Argument(help="The file to write; it must not exist yet.")],
) -> None:
    """Copy the SQLite database to one file, also while nod runs. For PostgreSQL use pg_dump."""
    source = load_settings().sqlite_file
    if source is None:
        raise SettingsError("NOD_DATABASE_URL: only SQLite files are copied here. Use pg_dump.")
    if not source.exists():
        raise SettingsError(f"NOD_DATABASE_URL: there is no file {source} here")
    try:
        with show_progress("Copying the database, in pages") as progress:
            back_up(source, file, progress)
    except OSError as error:
        raise NodError(f"cannot write {file} ({error.strerror}). Name a new file.") from None
    except sqlite3.Error as error:
        raise NodError(f"cannot copy {source} ({error}). Run nod doctor for details.") from None
    print(plain(f"Copied {source} to {file}."))


@command(app)
def upgrade() -> None:
    """Bring the schema to this release's version (also done at every start)."""
    settings = load_settings()
    with show_progress("Upgrading the schema") as progress, open_database(settings, progress) as database:
        if database.dialect == "postgresql":
            from bot.jobs.distributed import prepare  # its library is an extra

            prepare(settings.database_url)
        version = migrations.read_version(database.engine)
    print(f"The schema is at {version}.")


@command(app)
def copy(
    source: Annotated[str, typer.Argument(help="The database to read: a file or a URL.")],
    target: Annotated[str, typer.Argument(help="An empty one to fill: a new file or a URL.")],
) -> None:
    """Copy an installation to another database, such as from SQLite to PostgreSQL. Stop nod first."""
    with contextlib.ExitStack() as stack:
        keys = load_settings().audit_keys
        both = [_address(each) for each in (source, target)]
        for each, url in zip((source, target), both, strict=True):
            if at_work(url):
                raise SettingsError(
                    f"{plain(hide_password(url, each))}: Nod is running on this database. Stop it first."
                )
        file = make_url(both[0])
        if file.drivername == "sqlite" and not Path(file.database or "").exists():
            raise SettingsError(f"there is no file {plain(source)} here")
        databases = [Database(url, keys) for url in both]
        for database in databases:
            stack.callback(database.close)
        with show_progress("Copying rows") as progress:
            moved = transfer(databases[0].engine, databases[1].engine, progress)
        print(f"Copied {moved:,} rows. The audit log verifies. Set NOD_DATABASE_URL, then start nod.")


def _address(given: str) -> str:
    try:
        return database_address(database_url(given))
    except ValueError as error:
        raise SettingsError(f"{plain(given.partition('://')[0])}: {error}") from None


def hide_password(url: str, given: str) -> str:
    """Return a database as it may be printed: without its password."""
    if "://" in given:
        return make_url(url).render_as_string(hide_password=True)
    return given
