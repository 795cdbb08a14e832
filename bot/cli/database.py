"""``nod db`` and ``nod backup``: upgrades of the database's schema, and copies of the database."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy.engine import make_url

from bot.cli.command import command, shared_options
from bot.cli.progress import show_progress
from bot.cli.shared import database_url, escape_for_terminal, load_settings, open_database
from bot.errors import NodError, SettingsError
from bot.settings import check_database_address
from bot.store import migrations
from bot.store.backups import back_up
from bot.store.database import Database
from bot.store.locks.process_lock import is_at_work
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
    print(escape_for_terminal(f"Copied {source} to {file}."))


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
    keys = load_settings().audit_keys
    source_url = _parse_database(source)
    target_url = _parse_database(target)
    _require_stopped(source, source_url)
    _require_stopped(target, target_url)
    parsed_source = make_url(source_url)
    if parsed_source.drivername == "sqlite" and not Path(parsed_source.database or "").exists():
        raise SettingsError(f"there is no file {escape_for_terminal(source)} here")
    with (
        contextlib.closing(Database(source_url, keys)) as source_database,
        contextlib.closing(Database(target_url, keys)) as target_database,
        show_progress("Copying rows") as progress,
    ):
        copied_count = transfer(source_database.engine, target_database.engine, progress)
    print(f"Copied {copied_count:,} rows. The audit log verifies. Set NOD_DATABASE_URL, then start nod.")


def _parse_database(file_or_url: str) -> str:
    """Return the URL of a database. Raises SettingsError for a text that names none."""
    try:
        return check_database_address(database_url(file_or_url))
    except ValueError as error:
        raise SettingsError(f"{escape_for_terminal(file_or_url.partition('://')[0])}: {error}") from None


def _require_stopped(file_or_url: str, url: str) -> None:
    """Raise SettingsError if Nod is running on a database, which the person named by ``file_or_url``."""
    if is_at_work(url):
        name = escape_for_terminal(hide_password(url, file_or_url))
        raise SettingsError(f"{name}: Nod is running on this database. Stop it first.")


def hide_password(url: str, file_or_url: str) -> str:
    """Return a database as the person named it, without the password of a URL."""
    if "://" in file_or_url:
        return make_url(url).render_as_string(hide_password=True)
    return file_or_url
