"""Helpers of all ``nod`` commands: settings, text for a terminal, the database, the person at this shell."""

import contextlib
import json
import os
import pwd
import shutil
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from sqlalchemy.exc import DBAPIError

from bot.cli.command import get_shared_options
from bot.domain.people import LOCAL, SHELL, Actor
from bot.domain.progress import Progress, ignore_progress
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text
from bot.domain.text import escape_point, make_visible, shorten
from bot.errors import BadArguments, NodError, SettingsError
from bot.settings import Settings
from bot.store import migrations, proposals
from bot.store.database import Database
from bot.store.locks.process_lock import check_not_lost
from bot.store.secrets import Keyring, give_keyring
from bot.telemetry import logs

DEMO = "nod-demo.db"  # the demo's database, in the folder where it was started


def complete_id(incomplete: str) -> list[tuple[str, str]]:
    """Complete an id in the shell with proposals that can be decided or retried."""
    with contextlib.suppress(NodError, DBAPIError):
        with open_readonly(load_settings()) as database:
            candidates = database.read_now(proposals.list_in_states, [State.PROPOSED, State.FAILED])
        matching = [proposal for proposal in candidates if proposal.id.startswith(incomplete.lower())]
        return [(proposal.id, redact_line(proposal.description)) for proposal in matching]
    return []


Id = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The proposal's ID, or its first characters.", autocompletion=complete_id
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def load_settings(*, demo: bool = False, **overrides: Any) -> Settings:
    """Return the settings, overridden by ``-d``, ``--demo`` and then ``overrides``. Raises SettingsError."""
    return Settings.load(**make_overrides(demo=demo) | overrides)


def make_overrides(*, demo: bool = False) -> dict[str, Any]:
    """Return the settings that ``-d`` and ``--demo`` override.

    In the demo, the person at this machine is the admin.
    """
    chosen = get_shared_options()
    overrides: dict[str, Any] = {}
    if demo or chosen.demo:
        overrides = {
            "NOD_DATABASE_URL": f"sqlite:///{DEMO}",
            "NOD_HOST": "127.0.0.1",
            "NOD_HTTP_TOKENS": (),
            "NOD_ADMINS": (str(LOCAL),),
            "NOD_ISSUES": True,
        }
    if chosen.database:
        overrides["NOD_DATABASE_URL"] = database_url(chosen.database)
    return overrides


def database_url(database: str) -> str:
    """Return the URL of a database that is named by its file or by its URL."""
    if "://" in database:
        return database
    return f"sqlite:///{database}"


def log_at(default_level: str, *, in_thread: bool = False) -> None:
    """Log from the level ``default_level`` on, or from the level that ``-q`` and ``-v`` choose.

    ``in_thread``: a thread writes the lines, so that a slow reader of the log delays no work.
    """
    logs.configure(get_shared_options().log_level(default_level), queued=in_thread)


def escape_for_terminal(text: str) -> str:
    """Return a text of models or tools for a terminal, with its unseen characters as escapes."""
    return make_visible(text, escape_point)


def fit_to_terminal(text: str) -> str:
    """Return a line cut to the terminal's width; in full if a program reads it."""
    width = shutil.get_terminal_size().columns
    if sys.stdout.isatty():
        return shorten(text, width)
    return text


def colour_text(text: str, colour: str | None) -> str:
    """Colour a text on a terminal, unless its owner wants none (https://no-color.org)."""
    if colour is None or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return typer.style(text, fg=colour)


def print_json(value: object) -> None:
    """Print JSON for programs, in ASCII, so that no character can move a terminal's cursor."""
    print(json.dumps(value, indent=2))


def redact_line(text: str) -> str:
    """Return a text on one line, without secrets, and safe for a terminal."""
    return escape_for_terminal(" ".join(redact_text(text).split()))


@contextlib.contextmanager
def open_database(settings: Settings, progress: Progress = ignore_progress) -> Iterator[Database]:
    """Open the database, create it if needed, and upgrade its schema.

    ``progress`` is called after each version of the schema that is reached.
    """
    file = settings.sqlite_file
    if file is not None and not file.parent.is_dir():
        raise SettingsError(f"NOD_DATABASE_URL: there is no folder {file.parent}; create it first")
    if file is not None:
        check_not_lost(file)
    database = Database(settings.database_url, settings.audit_keys)
    give_keyring(database, Keyring(settings.secret_key))
    try:
        migrations.upgrade(database.engine, progress)
        yield database
    finally:
        database.close()


@contextlib.contextmanager
def open_existing(settings: Settings) -> Iterator[Database]:
    """Open a database to change it. Raises SettingsError if the file does not exist: none is created."""
    _require_file(settings)
    with open_database(settings) as database:
        yield database


@contextlib.contextmanager
def open_readonly(settings: Settings) -> Iterator[Database]:
    """Open a database to read it. No file is changed, so a read-only disk works, too."""
    _require_file(settings)
    database = Database(settings.database_url, settings.audit_keys, readonly=True)
    give_keyring(database, Keyring(settings.secret_key))
    try:
        fault = _find_schema_fault(database)
        if fault:
            raise SettingsError(f"NOD_DATABASE_URL: {fault}")
        yield database
    finally:
        database.close()


def _find_schema_fault(database: Database) -> str:
    """Return why this nod can't read the database's schema, in words; empty if it can."""
    current = migrations.read_version(database.engine)
    newest = migrations.find_newest_version()
    if current == newest:
        return ""
    if current is None:
        fault = migrations.find_schema_fault(database.engine)
    else:
        fault = migrations.find_unsupported_version(database.engine)
    return fault or f"the schema is {current or 'empty'}, and this nod reads {newest}. Run: nod db upgrade"


@contextlib.contextmanager
def open_as_permitted(settings: Settings) -> Iterator[Database]:
    """Open a database by `open_existing` or, if the file can't be written, by `open_readonly`."""
    file = settings.sqlite_file
    is_readonly = file is not None and file.exists() and not os.access(file, os.W_OK)
    open_permitted = open_readonly if is_readonly else open_existing
    with open_permitted(settings) as database:
        yield database


def _require_file(settings: Settings) -> None:
    """Raise SettingsError if the file of an SQLite database does not exist."""
    file = settings.sqlite_file
    if file is None or file.exists():
        return
    if get_shared_options().demo:
        fix = "Start it here: nod demo"
    else:
        fix = f"Name one with -d FILE; --demo takes {DEMO}"
    raise SettingsError(f"NOD_DATABASE_URL: there is no file {file} here. {fix}.")


def decode_object(text: str) -> dict[str, Any]:
    """Return a JSON object given on the command line; raises BadArguments."""
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadArguments({"JSON": f"this is not JSON ({error})"}) from None
    if not isinstance(decoded, dict):
        raise BadArguments({"JSON": "write a JSON object, such as '{\"number\": 3}'"})
    return decoded


def get_shell_actor() -> Actor:
    """Return the account of the person at this command line.

    In the demo it is the account of the demo's console. If the shell had an account of its own, that account
    could not approve a deletion which the same person asked for in the console.
    """
    if get_shared_options().demo:
        return LOCAL
    try:
        name = pwd.getpwuid(os.getuid()).pw_name  # not from the environment, which anyone could set
    except KeyError:  # a container's user may have no name
        name = str(os.getuid())
    return Actor(SHELL, name, name)


def find_proposal(database: Database, prefix: str) -> Proposal:
    """Return the proposal whose id begins with a prefix. Raises NodError unless there is exactly one."""
    prefix = prefix.strip()
    if len(prefix) < proposals.MIN_ID_CHARS:
        raise NodError(f"give at least {proposals.MIN_ID_CHARS} characters of the ID; see: nod pending")
    matching = database.read_now(proposals.find_by_prefix, prefix.lower())
    if not matching:
        raise NodError(f"there is no proposal {prefix}; see: nod pending")
    if len(matching) > 1:
        raise NodError(f"{prefix} matches several proposals; give more characters of the ID")
    return matching[0]
