"""``nod db``: the schema, and copies of the database."""

import sqlite3
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.command import ShellCommands
from bot.cli.shared import load, opened, plain, told
from bot.errors import NodError, SettingsError
from bot.store import migrations
from bot.store.database import back_up

commands = ShellCommands(no_args_is_help=True, help="Upgrade and copy the database.")


@commands.command(name="upgrade")
def upgrade() -> None:
    """Bring the schema to this release's version (also done at every start)."""
    with told(), opened(load()) as database:
        print(f"The schema is at {migrations.current(database.engine)}.")


@commands.command(name="backup")
def backup(
    file: Annotated[Path, typer.Argument(help="where the copy goes; it must not exist yet")],
) -> None:
    """Copy the SQLite database to one file, also while nod runs. For PostgreSQL use pg_dump."""
    with told():
        source = load().sqlite_file
        if source is None:
            raise SettingsError("NOD_DATABASE_URL: only SQLite files are copied here. Use pg_dump.")
        if not source.exists():
            raise SettingsError(f"NOD_DATABASE_URL: there is no file {source} here")
        try:
            back_up(source, file)
        except OSError as error:
            raise NodError(f"cannot write {file} ({error.strerror}). Name a new file.") from None
        except sqlite3.Error as error:
            raise NodError(f"cannot copy {source} ({error}). nod doctor looks closer.") from None
        print(plain(f"Copied {source} to {file}."))
