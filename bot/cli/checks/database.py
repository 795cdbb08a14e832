"""Checks of the database, and of the secrets and tokens in it."""

import contextlib
import os
from collections.abc import Iterator

from sqlalchemy import Engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from bot.cli.shared import open_readonly
from bot.core import policies_of
from bot.domain.doctor_findings import Finding, fail, ok, warn
from bot.domain.rulebook import Rulebook
from bot.domain.text import name_some
from bot.errors import NodError, SettingsError
from bot.settings import Settings
from bot.store import migrations, secrets, tokens
from bot.store.backups import check_pages
from bot.store.engine import open_engine
from bot.store.locks.process_lock import check_not_lost, is_at_work

_MAX_NAMED_PLACES = 5  # in one finding


def check_secrets(settings: Settings) -> Iterator[Finding]:
    """Check that the encrypted secrets in the database can be read, and with which key."""
    name = "secrets in the database"
    import bot.store.migrations.schema  # noqa: F401 - registers every table that may hold a secret

    try:
        with open_readonly(settings) as database:
            stored = database.read_now(secrets.examine_secrets)
    except (NodError, DBAPIError, ModuleNotFoundError):
        return  # reported with the database
    if stored.lost:
        places = name_some(sorted({secret.place for secret in stored.lost}), _MAX_NAMED_PLACES)
        yield fail(name, f"no key of NOD_SECRET_KEY opens {places}. Add the key, or sign in there again.")
    if stored.older:
        yield warn(name, f"{stored.older} need an older key of NOD_SECRET_KEY. Run: nod secrets rotate")
    if stored.plain and settings.secret_key:
        yield warn(name, f"{stored.plain} are not encrypted yet. The next start of nod does that.")
    elif stored.plain:
        yield ok(name, f"{stored.plain} are not encrypted. NOD_SECRET_KEY does that: nod secrets new")
    elif settings.secret_key and not (stored.lost or stored.older):
        yield ok(name, "encrypted with NOD_SECRET_KEY")


def is_nod_running(settings: Settings) -> bool:
    try:
        return is_at_work(settings.database_url)
    except (DBAPIError, SettingsError):
        return False  # reported with the database


def check_database(settings: Settings) -> Finding:
    """Check that the database can be reached, written and read, or will be made by the first start."""
    name = f"database {make_url(settings.database_url).render_as_string(hide_password=True)}"
    file = settings.sqlite_file
    if file is not None and not file.exists():
        try:
            check_not_lost(file)
            is_at_work(settings.database_url)
        except SettingsError as error:
            return fail(name, error.message)
        if os.access(file.parent, os.W_OK):
            return ok(name, "will be created on first start")
        return fail(
            name, f"NOD_DATABASE_URL: {file.parent} does not exist or is read-only; choose a writable folder"
        )
    engine = open_engine(settings.database_url)
    try:
        if file is not None:
            is_at_work(settings.database_url)  # raises SettingsError if a start could not lock the file
            check_pages(file)
        return _check_schema(name, engine)
    except SettingsError as error:
        return fail(name, error.message)
    except DBAPIError as error:
        first_line = str(error.orig).strip().splitlines()[0]
        return fail(name, f"NOD_DATABASE_URL: {first_line}")
    finally:
        engine.dispose()


def _check_schema(name: str, engine: Engine) -> Finding:
    """Check the schema. Raises DBAPIError if the database can't be reached or written."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        connection.exec_driver_sql("CREATE TABLE nod_doctor_was_here (id INTEGER)")
        connection.rollback()
    damage = migrations.find_schema_fault(engine)
    if damage:
        return fail(name, f"NOD_DATABASE_URL: {damage}")
    current = migrations.read_version(engine)
    newest = migrations.find_newest_version()
    if current == newest:
        return ok(name, f"schema {current}")
    if current is None:
        return ok(name, f"empty; the next start makes schema {newest}")
    fault = migrations.find_unsupported_version(engine)
    if fault:
        return fail(name, fault)
    return ok(name, f"schema {current}; the next start upgrades it to {newest}")


def count_tokens(settings: Settings) -> Finding:
    configured = len(settings.names_by_token)
    issued = len(list_token_names(settings))
    if not issued and not configured:
        return ok("tokens", "none; Nod answers only this machine. nod token new NAME makes one for a script")
    return ok("tokens", f"{configured} in NOD_HTTP_TOKENS, {issued} made with nod token new")


def list_token_names(settings: Settings) -> list[str]:
    """Return the name of each token in the database; none if it can't be read without an upgrade."""
    try:
        with open_readonly(settings) as database:
            return [token.name for token in database.read_now(tokens.list_unrevoked)]
    except (NodError, DBAPIError, ModuleNotFoundError):
        return []


def load_rulebook(settings: Settings) -> Rulebook:
    with contextlib.suppress(NodError, DBAPIError, ModuleNotFoundError), open_readonly(settings) as database:
        return database.read_now(policies_of(settings).load).rulebook
    return Rulebook()
