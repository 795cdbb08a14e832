"""The ``nod`` command.

What serves and what reaches out is imported by the commands that need it: the others start in a moment.
"""

import asyncio
import contextlib
import getpass
import os
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from alembic.util import CommandError
from sqlalchemy.exc import DBAPIError

from bot import telemetry
from bot.channels.slack.manifest import manifest_yaml
from bot.domain.cards import card_of, whole_text
from bot.domain.chat import Answer, Press, Verb
from bot.domain.people import Actor
from bot.domain.proposals import Proposal, State
from bot.domain.redaction import redact_text
from bot.errors import NodError, SettingsError
from bot.settings import Settings
from bot.store import audit, decisions, migrations, proposals
from bot.store.database import Database
from bot.store.decisions import Decided
from bot.store.endings import LostRace
from bot.store.rules import Policies

main = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="An AI teammate that asks, with buttons, before it changes anything.",
)
db = typer.Typer(no_args_is_help=True, help="The database's schema.")
main.add_typer(db, name="db")
slack = typer.Typer(no_args_is_help=True, help="What Slack needs to know about Nod.")
main.add_typer(slack, name="slack")

_LISTED = 50

Id = Annotated[str, typer.Argument(help="the proposal's ID, or its first characters")]


@contextlib.contextmanager
def told() -> Iterator[None]:
    """A fault we know is one line on stderr and exit code 1; never a stack trace."""
    try:
        yield
    except NodError as error:
        words = error.message
    except DBAPIError as error:
        words = f"NOD_DATABASE_URL: {str(error.orig).strip().splitlines()[0]}; nod doctor looks closer"
    except CommandError as error:
        words = f"NOD_DATABASE_URL: {error}; the schema is from a newer nod, so upgrade this one"
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        words = f'NOD_DATABASE_URL: {error}; install it: pip install "nod[postgres]"'
    else:
        return
    print(f"nod: {plain(words)}", file=sys.stderr)
    raise typer.Exit(1) from None


def plain(text: str) -> str:
    """Text of models and tools as a terminal may show it: control and direction characters made visible."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def line(text: str) -> str:
    return plain(" ".join(redact_text(text).split()))


@main.command()
def demo(
    port: Annotated[int | None, typer.Option(envvar="PORT", help="where the console listens")] = None,
    database: Annotated[Path, typer.Option(help="the demo's own database file")] = Path("nod-demo.db"),
) -> None:
    """Try Nod: offline model, a small issue tracker, a console in the browser; no account or key."""
    from bot.serving import serve

    with told():
        given: dict[str, Any] = {
            "NOD_DATABASE_URL": f"sqlite:///{database}",
            "NOD_HOST": "127.0.0.1",
            "NOD_HTTP_TOKENS": (),
            "NOD_ADMINS": ("http:local", str(_operator())),
            "NOD_LOG_LEVEL": "warning",
        }
        settings = Settings.load(**given | ({"NOD_PORT": port} if port is not None else {}))
        telemetry.configure(settings.log_level)
        serve(settings, "Nod's console: {url}   (Ctrl+C stops it)", demo=True)


@main.command()
def run() -> None:
    """Run Nod with the settings of the environment and .env."""
    from bot.serving import serve

    with told():
        settings = Settings.load()
        settings.require_admin()
        telemetry.configure(settings.log_level)
        serve(settings, "Nod is up: {url}")


@main.command()
def doctor() -> None:
    """Check the settings and what they reach; says the mend for each fault."""
    from bot.doctor import check

    with told():
        findings = asyncio.run(check(Settings.load()))
        for found in findings:
            print(plain(f"{'ok  ' if found.ok else 'FAIL'} {found.name}{found.mend and ': '}{found.mend}"))
        if not all(found.ok for found in findings):
            raise typer.Exit(1)


@main.command()
def pending() -> None:
    """List what waits for a decision."""
    with told(), _existing(Settings.load()) as database:
        waiting = database.read_now(proposals.in_states, [State.PROPOSED])
        for p in reversed(waiting):
            until = f"{p.expires_at:%Y-%m-%d %H:%M} UTC"
            print(f"{p.id}  {line(p.description)}  (asked by {line(p.requester.label)}, until {until})")
        if not waiting:
            print("Nothing waits for a decision.")


@main.command()
def show(proposal: Id) -> None:
    """Show one proposal, whole."""
    with told(), _existing(Settings.load()) as database:
        found = _find(database, proposal)
        card = card_of(found, {})
        print(plain(f"{found.id}: {card.outcome}\n\n{whole_text(card)}"))


@main.command()
def approve(proposal: Id) -> None:
    """Approve a proposal as it is now; the running nod executes it."""
    _press(proposal, Verb.APPROVE, None)


@main.command()
def decline(proposal: Id, reason: Annotated[str | None, typer.Argument()] = None) -> None:
    """Decline a proposal."""
    _press(proposal, Verb.DECLINE, reason)


@main.command(name="audit")
def audit_(
    proposal: Annotated[
        str | None, typer.Argument(help="one proposal; without it the newest changes")
    ] = None,
) -> None:
    """Show who did what to proposals, and whether the record is whole."""
    with told(), _existing(Settings.load()) as database:
        if proposal is None:
            entries = list(reversed(database.read_now(audit.newest, _LISTED)))
            broken = database.read_now(audit.breaks)
        else:
            found = _find(database, proposal)
            entries = database.read_now(audit.history, found.id)
            broken = [one for one in [database.read_now(audit.first_break, found.id)] if one]
        for e in entries:
            why = f" ({line(e.by.reason)})" if e.by.reason else ""
            who = f"{e.by.verb} by {e.by.actor}"
            print(f"{e.at:%Y-%m-%d %H:%M:%S}  {e.proposal_id}  v{e.version}  {line(who)}{why} → {e.state}")
        if broken:
            raise NodError(f"the audit was tampered with: {'; '.join(broken)}")
        print("The record is whole.")


@db.command(name="upgrade")
def db_upgrade() -> None:
    """Bring the schema to this release's version (also done at every start)."""
    with told(), _database(Settings.load()) as database:
        print(f"The schema is at {migrations.current(database.engine)}.")


@slack.command(name="manifest")
def slack_manifest(
    http: Annotated[
        str | None,
        typer.Option(metavar="URL", help="the bot's public https address; without it Socket Mode"),
    ] = None,
) -> None:
    """Print the manifest to paste where Slack creates an app."""
    with told():
        if http is not None and not re.fullmatch(r"https://[^\s/]+(/\S*)?", http):
            raise SettingsError("--http: Slack calls https addresses only, such as https://nod.example.com")
        print(manifest_yaml(http), end="")


@contextlib.contextmanager
def _database(settings: Settings) -> Iterator[Database]:
    file = settings.sqlite_file
    if file is not None and not file.parent.is_dir():
        raise SettingsError(f"NOD_DATABASE_URL: there is no folder {file.parent}; create it first")
    database = Database(settings.database_url)
    try:
        migrations.upgrade(database.engine)
        yield database
    finally:
        database.close()


@contextlib.contextmanager
def _existing(settings: Settings) -> Iterator[Database]:
    """For commands that look at what is there: an empty new file would be a wrong answer."""
    file = settings.sqlite_file
    if file is not None and not file.exists():
        raise SettingsError(
            f"NOD_DATABASE_URL: there is no file {file} here; the demo's is sqlite:///nod-demo.db"
        )
    with _database(settings) as database:
        yield database


def _operator() -> Actor:
    """Who sits at this machine's shell."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        name = str(os.getuid())
    return Actor("cli", name, name)


def _find(database: Database, prefix: str) -> Proposal:
    found = database.read_now(proposals.starting_with, prefix.lower()) if prefix else []
    if not found:
        raise NodError(f"there is no proposal {prefix}; see: nod pending")
    if len(found) > 1:
        raise NodError(f"{prefix} could be several; give more characters of the ID")
    return found[0]


def _press(prefix: str, verb: Verb, reason: str | None) -> None:
    from bot.app import policies_of

    with told():
        settings = Settings.load()
        with _existing(settings) as database:
            press = Press(_operator(), verb, _find(database, prefix).id, reason=reason)
            decided = _decided(database, press, policies_of(settings))
            print(plain(decided.reply.text))
            if decided.reply.answer is Answer.REFUSED:
                raise NodError(f"you act as {press.actor} here; an admin can add it to NOD_ADMINS")
            if decided.reply.answer is not Answer.ACCEPTED:
                raise typer.Exit(1)


def _decided(database: Database, press: Press, policies: Policies) -> Decided:
    while True:
        try:
            return database.write_now(decisions.decide, press, policies, datetime.now(UTC))
        except LostRace:
            continue


if __name__ == "__main__":
    main()
