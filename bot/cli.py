"""The ``nod`` command."""

import asyncio
import contextlib
import getpass
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from bot import telemetry
from bot.app import App, build, now, policies_of
from bot.domain.cards import card_of, whole_text
from bot.domain.chat import Answer, Press, Verb
from bot.domain.people import Actor
from bot.domain.proposals import Proposal, State
from bot.errors import NodError, SettingsError
from bot.settings import Settings
from bot.store import audit, decisions, migrations, proposals
from bot.store.database import Database
from bot.tools.builtin.issue_seed import seed

main = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="An AI teammate that asks, with buttons, before it changes anything.",
)
db = typer.Typer(no_args_is_help=True, help="The database's schema.")
main.add_typer(db, name="db")

Id = Annotated[str, typer.Argument(help="the proposal's ID, or its first characters")]


@contextlib.contextmanager
def told() -> Iterator[None]:
    """A fault we know is one line on stderr and exit code 1; never a stack trace."""
    try:
        yield
    except NodError as error:
        print(f"nod: {error.message}", file=sys.stderr)
        raise typer.Exit(1) from None


@main.command()
def demo(
    port: Annotated[int | None, typer.Option(envvar="PORT", help="where the console listens")] = None,
    database: Annotated[Path, typer.Option(help="the demo's own database file")] = Path("nod-demo.db"),
) -> None:
    """Try Nod: offline model, a small issue tracker, a console in the browser; no account or key."""
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
        app = build(settings, demo=True)
        migrations.upgrade(app.database.engine)
        app.database.write_now(seed, now())
        asyncio.run(_serve(app, "Nod's console: {url}   (Ctrl+C stops it)"))


@main.command()
def run() -> None:
    """Run Nod with the settings of the environment and .env."""
    with told():
        settings = Settings.load()
        telemetry.configure(settings.log_level)
        asyncio.run(_serve(build(settings), "Nod is up: {url}"))


async def _serve(app: App, greeting: str) -> None:
    stopped = asyncio.Event()
    for signal_ in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signal_, stopped.set)
    async with app.running():
        print(greeting.format(url=f"http://{app.settings.host}:{app.web.port}"), flush=True)
        await stopped.wait()


@main.command()
def doctor() -> None:
    """Check the settings and what they reach; says the mend for each fault."""
    with told():
        settings = Settings.load()
        found = [("settings", True, "read without a fault")]
        with _database(settings) as database:
            found.append(
                ("database", True, f"{database.dialect}, schema {migrations.current(database.engine)}")
            )
        real = settings.openai_api_key or settings.openai_base_url
        found.append(
            (
                "model",
                True,
                settings.model if real else "offline demo model; set OPENAI_API_KEY for a real one",
            )
        )
        for name, ok, words in found:
            print(f"{'ok  ' if ok else 'FAIL'} {name}: {words}")
        if not all(ok for _, ok, _ in found):
            raise typer.Exit(1)


@main.command()
def pending() -> None:
    """List what waits for a decision."""
    with told(), _database(Settings.load()) as database:
        waiting = database.read_now(proposals.in_states, [State.PROPOSED])
        for p in reversed(waiting):
            print(
                f"{p.id}  {p.description}  (asked by {p.requester.label}, until {p.expires_at:%Y-%m-%d %H:%M} UTC)"
            )
        if not waiting:
            print("Nothing waits for a decision.")


@main.command()
def show(proposal: Id) -> None:
    """Show one proposal, whole."""
    with told(), _database(Settings.load()) as database:
        found = _find(database, proposal)
        card = card_of(found, {})
        print(f"{found.id}: {card.outcome}\n\n{whole_text(card)}")


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
    with told(), _database(Settings.load()) as database:
        if proposal is None:
            entries = list(reversed(database.read_now(audit.newest, 50)))
        else:
            found = _find(database, proposal)
            entries = database.read_now(audit.history, found.id)
            broken = database.read_now(audit.first_break, found.id)
            if broken:
                raise NodError(f"the audit was tampered with: {broken}")
        for e in entries:
            why = f" ({e.by.reason})" if e.by.reason else ""
            print(
                f"{e.at:%Y-%m-%d %H:%M:%S}  {e.proposal_id}  v{e.version}  {e.by.verb} by {e.by.actor}{why} → {e.state}"
            )


@db.command(name="upgrade")
def db_upgrade() -> None:
    """Bring the schema to this release's version (also done at every start)."""
    with told(), _database(Settings.load()) as database:
        print(f"The schema is at {migrations.current(database.engine)}.")


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


def _operator() -> Actor:
    """Who sits at this machine's shell."""
    name = getpass.getuser()
    return Actor("cli", name, name)


def _find(database: Database, prefix: str) -> Proposal:
    found = database.read_now(proposals.starting_with, prefix.lower())
    if not found:
        raise NodError(f"there is no proposal {prefix}; see: nod pending")
    if len(found) > 1:
        raise NodError(f"{prefix} could be several; give more characters of the ID")
    return found[0]


def _press(prefix: str, verb: Verb, reason: str | None) -> None:
    with told():
        settings = Settings.load()
        with _database(settings) as database:
            press = Press(_operator(), verb, _find(database, prefix).id, reason=reason)
            decided = database.write_now(decisions.decide, press, policies_of(settings), now())
            print(decided.reply.text)
            if decided.reply.answer is Answer.REFUSED:
                raise NodError(f"you act as {press.actor} here; an admin can add it to NOD_ADMINS")
            if decided.reply.answer is not Answer.ACCEPTED:
                raise typer.Exit(1)


if __name__ == "__main__":
    main()
