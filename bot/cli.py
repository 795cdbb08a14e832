"""The ``nod`` command.

What serves and what reaches out is imported by the commands that need it: the others start in a moment.
"""

import asyncio
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from bot import press_commands, telemetry, tool_commands
from bot.channels.slack.manifest import manifest_yaml
from bot.commands import Commands
from bot.commands.settings import account
from bot.commands.team import listed
from bot.domain.cards import card_of, whole_text
from bot.domain.chat import SHELL, Address, Answer, Command, Incoming, Press, Reply
from bot.domain.people import Actor
from bot.domain.proposals import State
from bot.errors import NodError, SettingsError
from bot.press_commands import Id
from bot.settings import Settings
from bot.store import audit, checkpoints, migrations, proposals, teams
from bot.store.audit import Entry
from bot.store.checkpoints import Wanted
from bot.store.database import Database
from bot.terminal import existing, find, line, now, opened, operator, plain, presses_of, told
from bot.tools.registry import Shelf

main = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="An AI teammate that asks, with buttons, before it changes anything.",
)
record = typer.Typer(help="Who did what to proposals, and whether the record is whole.")
main.add_typer(record, name="audit")
db = typer.Typer(no_args_is_help=True, help="The database's schema.")
main.add_typer(db, name="db")
slack = typer.Typer(no_args_is_help=True, help="What Slack needs to know about Nod.")
main.add_typer(slack, name="slack")
main.add_typer(tool_commands.commands, name="tools")
main.add_typer(press_commands.commands)

_LISTED = 50


@main.command()
def demo(
    port: Annotated[int | None, typer.Option(envvar="PORT", help="where the console listens")] = None,
    database: Annotated[Path, typer.Option(help="the demo's own database file")] = Path("nod-demo.db"),
    *,
    team: Annotated[bool, typer.Option("--team", help="begin with a lead agent and two teammates")] = False,
) -> None:
    """Try Nod: offline model, a small issue tracker, a console in the browser; no account or key."""
    from bot.serving import serve

    with told():
        given: dict[str, Any] = {
            "NOD_DATABASE_URL": f"sqlite:///{database}",
            "NOD_HOST": "127.0.0.1",
            "NOD_HTTP_TOKENS": (),
            "NOD_ADMINS": ("http:local",),
            "NOD_LOG_LEVEL": "warning",
        }
        settings = Settings.load(**given | ({"NOD_PORT": port} if port is not None else {}))
        telemetry.configure(settings.log_level)
        serve(settings, "Nod's console: {url}   (Ctrl+C stops it)", demo=True, team=team)


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
        telemetry.configure("critical")  # what it would log stands among the findings
        findings = asyncio.run(check(Settings.load()))
        for found in findings:
            print(plain(f"{'ok  ' if found.ok else 'FAIL'} {found.name}{found.mend and ': '}{found.mend}"))
        if not all(found.ok for found in findings):
            raise typer.Exit(1)


@main.command()
def pending() -> None:
    """List what waits for a decision."""
    with told(), existing(Settings.load()) as database:
        waiting = database.read_now(proposals.in_states, [State.PROPOSED])
        for p in reversed(waiting):
            until = f"{p.expires_at:%Y-%m-%d %H:%M} UTC"
            print(f"{p.id}  {line(p.description)}  (asked by {line(p.requester.label)}, until {until})")
        if not waiting:
            print("Nothing waits for a decision.")


@main.command(name="team")
def team_() -> None:
    """List the teammates of all conversations, their plans and how they stand."""
    with told(), existing(Settings.load()) as database:
        print(plain(listed(database.read_now(teams.at, None)).replace("**", "").replace("`", "")))


@main.command()
def show(proposal: Id) -> None:
    """Show one proposal, whole."""
    with told(), existing(Settings.load()) as database:
        found = find(database, proposal)
        card = card_of(found, database.read_now(Shelf({}).schema_of, found))
        result = f"\n\nResult\n{card.result}" if card.result else ""
        head = [f"{found.id}: {card.outcome}", f"Round: {card.round}"]
        if card.pending:
            head += [f"May decide: {card.deciders}", f"Until: {card.expires_at:%Y-%m-%d %H:%M} UTC"]
        head += [*card.votes, *card.notes]
        print(plain("\n".join([*head, "", whole_text(card)]) + result))


@record.callback(invoke_without_command=True)
def audit_(context: typer.Context) -> None:
    """Show the newest changes, and whether the record is whole."""
    if context.invoked_subcommand is None:
        with told(), existing(Settings.load()) as database:
            _entries(list(reversed(database.read_now(audit.newest, _LISTED))))
            _whole(database.read_now(checkpoints.faults))


@record.command(name="show")
def audit_show(proposal: Id) -> None:
    """Show all that happened to one proposal, and whether its record is whole."""
    with told(), existing(Settings.load()) as database:
        found = find(database, proposal)
        _entries(database.read_now(audit.history, found.id))
        broken = database.read_now(audit.first_break, found.id)
        _whole([broken] if broken else [])


@record.command(name="verify")
def audit_verify() -> None:
    """Check every row and every seal; names what was changed, removed or inserted."""
    with told(), existing(Settings.load()) as database:
        _whole(database.read_now(checkpoints.faults))


@record.command(name="export")
def audit_export(
    form: Annotated[str, typer.Option("--format", help="jsonl or csv")] = "jsonl",
    who: Annotated[str, typer.Option(help="one account, and those linked with it")] = "",
    tool: Annotated[str, typer.Option(help="one tool, and the rules about it")] = "",
    proposal: Annotated[str, typer.Option("--id", help="one proposal, by the beginning of its ID")] = "",
    since: Annotated[datetime | None, typer.Option(help="only from then on, UTC")] = None,
) -> None:
    """Print the whole record, oldest first, without secrets: proposals, rules, grants, linked accounts."""
    with told(), existing(Settings.load()) as database:
        if who:
            account(who)
        writers = {"jsonl": checkpoints.as_jsonl, "csv": checkpoints.as_csv}
        if form not in writers:
            raise SettingsError(f"--format: {form} is neither jsonl nor csv")
        wanted = Wanted(who, tool, proposal, since.replace(tzinfo=UTC) if since else None)
        print(writers[form](database.read_now(checkpoints.rows, wanted)), end="")


def _entries(entries: list[Entry]) -> None:
    for e in entries:
        why = f" ({line(e.by.reason)})" if e.by.reason else ""
        who = f"{e.by.verb} by {e.by.actor}"
        print(f"{e.at:%Y-%m-%d %H:%M:%S}  {e.proposal_id}  v{e.version}  {line(who)}{why} → {e.state}")


def _whole(broken: list[str]) -> None:
    if broken:
        raise NodError(f"the audit was tampered with: {'; '.join(broken)}")
    print("The record is whole.")


@main.command()
def approvals(
    words: Annotated[list[str] | None, typer.Argument(help="as in the chats; try: help")] = None,
) -> None:
    """Say an admin's words, as /approvals in the chats: policy, approvers, grants, pause."""
    _say("approvals", " ".join(words or []))


@main.command()
def link(code: Annotated[str, typer.Argument(help="the code you got elsewhere")] = "") -> None:
    """Make your account in this shell and those in the chats one person; without a code: get one."""
    _say("nod", f"link {code}")


def _say(name: str, text: str) -> None:
    """Say a slash command at this shell."""
    with told():
        settings = Settings.load()
        telemetry.configure("error")
        with existing(settings) as database:
            command = Command(operator(), name, text, Address(SHELL, operator().key))
            reply = asyncio.run(_answered(settings, database, command))
            print(plain(reply.text))
            if reply.answer is Answer.REFUSED:
                raise NodError(f"you act as {command.actor} here; an admin can add it to NOD_ADMINS")
            if reply.answer is not Answer.ACCEPTED:
                raise typer.Exit(1)


async def _answered(settings: Settings, database: Database, command: Command) -> Reply:
    async def stop(_: Address, __: Actor) -> str:
        return ""

    async with presses_of(settings, database) as presses:

        async def press(incoming: Incoming) -> Reply:
            if not isinstance(incoming, Press):
                raise TypeError("the shell only presses")
            return (await presses.take(incoming)).reply

        gate = presses.gate
        return await Commands(database, gate.policies, gate.registry, now, press, stop).handle(command)


@main.command(name="mcp")
def mcp_(
    patience: Annotated[int, typer.Option(min=1, help="seconds a permission prompt waits")] = 600,
) -> None:
    """Speak MCP on stdin and stdout, so that another agent can ask its humans through the running nod."""
    import httpx2

    from bot.channels.http.agents import agents_server

    with told():
        settings = Settings.load()
        telemetry.configure("error")
        token = settings.token.get_secret_value() if settings.token else None
        headers = {"Authorization": f"Bearer {token}"} if token else {}

        def connect(_: Mapping[str, str] | None) -> httpx2.AsyncClient:
            return httpx2.AsyncClient(base_url=settings.own_url, headers=headers)

        asyncio.run(agents_server(connect, patience).run_stdio_async())


@db.command(name="upgrade")
def db_upgrade() -> None:
    """Bring the schema to this release's version (also done at every start)."""
    with told(), opened(Settings.load()) as database:
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


if __name__ == "__main__":
    main()
