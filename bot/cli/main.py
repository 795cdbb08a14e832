"""The ``nod`` command: every command with its options. What it does is in the other modules of `bot.cli`.

Each is imported only when it is used: ``nod --help`` and a misspelt command answer right away.
"""

import re
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from bot import __version__
from bot.cli.command import (
    announce,
    command,
    get_chosen,
    open_standard_files,
    shared_options,
    with_shared_options,
)
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope

START, LOOK, DECIDE = "Start", "Look", "Decide"
RULES, TOOLS, SET_UP = "Rules and people", "Tools and agents", "Set up"


def _ids(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:  # noqa: ARG001 - typer hands it
    from bot.cli import shared

    return shared.complete_id(incomplete)


def _tools(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:  # noqa: ARG001 - typer hands it
    from bot.cli import tools

    return tools.complete_tool(incomplete)


Id = Annotated[
    str,
    typer.Argument(metavar="ID", help="The proposal's ID, or its first characters.", autocompletion=_ids),
]
Tool = Annotated[
    str,
    typer.Argument(metavar="TOOL", help="The tool's name, as in: nod tools list", autocompletion=_tools),
]
Server = Annotated[
    str, typer.Argument(metavar="NAME", help="The server's name in the file of NOD_MCP_CONFIG.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Seen = Annotated[
    int | None,
    typer.Option(
        "--round", help="The round you looked at, as nod show says it; refused if it has changed since."
    ),
]
Every = Annotated[bool, typer.Option("--all", help="Also all other open ones of the same answer.")]

main = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    help="An AI teammate that asks, with buttons, before it changes anything.",
)


def _group(name: str, section: str, about: str = "") -> typer.Typer:
    """Add a group of commands; one without ``about`` is a command itself, too."""
    if about:
        made = typer.Typer(callback=shared_options, no_args_is_help=True, help=about)
    else:
        made = typer.Typer()
    main.add_typer(made, name=name, rich_help_panel=section)
    return made


audit = _group("audit", LOOK)
tools = _group("tools", TOOLS, "List tools and call one manually.")
token = _group("token", TOOLS, "Make, list and revoke tokens for the HTTP interface.")
mcp = _group("mcp", TOOLS)
db = _group("db", SET_UP, "Upgrade and copy the database.")
secrets = _group("secrets", SET_UP, "Make a key for the secrets in the database; encrypt them again.")
slack = _group("slack", SET_UP, "Print what Slack needs to know about Nod.")


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer's way
    if wanted:
        print(f"nod {__version__}")
        raise typer.Exit


@main.callback()
@with_shared_options
def _nod(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options of ``nod`` itself."""


def _say_starting() -> None:
    open_standard_files()
    if not get_chosen().quiet:
        announce("Starting…")


@command(main, section=START)
def init() -> None:
    """Write a .env: asks five questions, and tries each answer out."""
    from bot.cli import init

    init.init()


@command(main, section=START)
def demo(
    *,
    port: Annotated[
        int | None, typer.Option(envvar="PORT", metavar="N", help="Where the console listens.")
    ] = None,
    team: Annotated[bool, typer.Option("--team", help="Start with a lead agent and two teammates.")] = False,
    browser: Annotated[bool, typer.Option(help="Open the console in a browser, if there is one.")] = True,
) -> None:
    """Try Nod: offline model, issue tracker, console. No account, no key."""
    _say_starting()
    from bot.cli import serve

    serve.demo(port, team=team, browser=browser)


@command(main, section=START)
def run(
    *,
    no_work: Annotated[
        bool, typer.Option("--no-work", help="Only receive; nod worker processes do the work (PostgreSQL).")
    ] = False,
) -> None:
    """Run Nod with the settings of the environment and .env.

    On PostgreSQL several may run.
    """
    _say_starting()
    from bot.cli import serve

    serve.run_server(no_work=no_work)


@command(main, section=START)
def worker() -> None:
    """Run jobs and serve nothing, next to nod run on the same PostgreSQL.

    Several may run.
    """
    _say_starting()
    from bot.cli import serve

    serve.worker()


@command(main, section=START)
def doctor(*, as_json: Json = False) -> None:
    """Check the settings and what they reach; tells you how to fix each problem."""
    from bot.cli import doctor

    doctor.doctor(as_json=as_json)


@command(main, "open", LOOK)
def open_(
    *, only_print: Annotated[bool, typer.Option("--print", help="Print the address, open nothing.")] = False
) -> None:
    """Open the console of the running nod in a browser, signed in as you."""
    from bot.cli import serve

    serve.open_console(only_print=only_print)


@command(main, section=LOOK)
def pending(
    *,
    as_json: Json = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Print what changes, too, until Ctrl+C.")
    ] = False,
) -> None:
    """List what is waiting for a decision, soonest to expire first."""
    from bot.cli import lists

    lists.pending(as_json=as_json, watch=watch)


@command(main, section=LOOK)
def show(proposal: Id, *, as_json: Json = False) -> None:
    """Show one proposal in full."""
    from bot.cli import lists

    lists.show_proposal(proposal, as_json=as_json)


@command(main, section=LOOK)
def team(*, as_json: Json = False) -> None:
    """List the teammates of all conversations with their plans."""
    from bot.cli import lists

    lists.list_team(as_json=as_json)


@audit.callback(invoke_without_command=True)
@with_shared_options
def audit_(context: typer.Context, *, as_json: Json = False) -> None:
    """Show and verify the audit log."""
    if context.invoked_subcommand is None:
        from bot.cli import audit

        audit.show_newest(as_json=as_json)


@command(audit, "show")
def audit_show(proposal: Id, *, as_json: Json = False) -> None:
    """Show everything that happened to one proposal, and whether the audit log is intact."""
    from bot.cli import audit

    audit.show_history(proposal, as_json=as_json)


@command(audit)
def verify(
    anchor: Annotated[
        list[str] | None, typer.Option(help="What `nod audit anchor` printed earlier; may be repeated.")
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Check every row; names what was changed, removed or inserted."""
    from bot.cli import audit

    audit.verify(anchor or (), as_json=as_json)


@command(audit)
def seal() -> None:
    """Seal an audit log that has no seal yet with NOD_AUDIT_KEY, once. Stop nod first."""
    from bot.cli import audit

    audit.seal()


@command(audit)
def anchor() -> None:
    """Print the number and hash of the newest row, to keep outside the database."""
    from bot.cli import audit

    audit.anchor()


@command(audit)
def export(
    form: Annotated[str, typer.Option("--format", help="One of jsonl, csv.")] = "jsonl",
    who: Annotated[str, typer.Option(help="One account, and those linked with it.")] = "",
    tool: Annotated[str, typer.Option(help="One tool, and the rules about it.")] = "",
    proposal: Annotated[str, typer.Option("--id", help="One proposal, by the beginning of its ID.")] = "",
    since: Annotated[datetime | None, typer.Option(help="Only from then on, UTC.")] = None,
) -> None:
    """Print the full audit log, oldest first, without secrets: proposals, rules, grants, linked accounts."""
    from bot.cli import audit

    audit.export_log(form, who, tool, proposal, since)


@command(main, section=DECIDE)
def approve(
    proposal: Id,
    *,
    similar: Annotated[
        GrantScope | None, typer.Option(help="Allow calls like it from now on, as nod similar says them.")
    ] = None,
    lasting: Annotated[GrantDuration | None, typer.Option("--for", help="How long --similar holds.")] = None,
    seen: Seen = None,
    reach: Annotated[
        GrantAudience, typer.Option("--whose", help="Whose calls --similar lets run, and where.")
    ] = GrantAudience.HERE,
    steps: Annotated[bool, typer.Option("--steps", help="A plan: also allow the tools it names.")] = False,
    every: Every = False,
    real: Annotated[
        bool, typer.Option("--real", help="What was tried: run it for real, instead of applying what it did.")
    ] = False,
) -> None:
    """Approve a proposal as it is now; the running nod executes it."""
    from bot.cli import deciding

    deciding.approve(proposal, similar, lasting, seen, reach, steps=steps, every=every, real=real)


@command(main, section=DECIDE)
def decline(
    proposal: Id,
    reason: Annotated[str | None, typer.Argument()] = None,
    *,
    seen: Seen = None,
    every: Every = False,
) -> None:
    """Decline a proposal."""
    from bot.cli.deciding import press
    from bot.domain.verbs import Verb

    press(proposal, Verb.DECLINE_ALL if every else Verb.DECLINE, seen, reason=reason)


@command(main, section=DECIDE)
def similar(proposal: Id, *, as_json: Json = False) -> None:
    """Say what approving calls like it may allow, narrowest first."""
    from bot.cli import deciding

    deciding.list_similar(proposal, as_json=as_json)


@command(main, section=DECIDE)
def edit(
    proposal: Id,
    arguments: Annotated[
        str | None, typer.Argument(help="All arguments, as a JSON object.", metavar="JSON")
    ] = None,
    *,
    seen: Seen = None,
) -> None:
    """Change a proposal's arguments; it needs approval again.

    Without JSON, print the current ones to start from.
    """
    from bot.cli import deciding

    deciding.edit_proposal(proposal, arguments, seen)


@command(main, section=DECIDE)
def ask(
    proposal: Id,
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    *,
    seen: Seen = None,
) -> None:
    """Ask the agent about an open proposal; this decides nothing.

    It answers in its conversation.
    """
    from bot.cli.deciding import press
    from bot.domain.verbs import Verb

    press(proposal, Verb.ASK, seen, reason=question)


@command(main, section=DECIDE)
def answer(
    proposal: Id, words: Annotated[str, typer.Argument(help="Your answer.")], *, seen: Seen = None
) -> None:
    """Answer a question of the agent. This approves nothing."""
    from bot.cli.deciding import press
    from bot.domain.verbs import Verb

    press(proposal, Verb.ANSWER, seen, reason=words)


@command(main, section=DECIDE)
def revise(
    proposal: Id, changes: Annotated[str, typer.Argument(help="What should change.")], *, seen: Seen = None
) -> None:
    """Send a teammate's plan back for changes."""
    from bot.cli.deciding import press
    from bot.domain.verbs import Verb

    press(proposal, Verb.REVISE, seen, reason=changes)


@command(main, section=DECIDE)
def cancel(proposal: Id) -> None:
    """Withdraw a proposal you asked for (an admin: anyone's)."""
    from bot.cli.deciding import press
    from bot.domain.verbs import Verb

    press(proposal, Verb.CANCEL)


@command(main, section=DECIDE)
def extend(proposal: Id) -> None:
    """Restart a proposal's expiry timer."""
    from bot.cli.deciding import press
    from bot.domain.verbs import Verb

    press(proposal, Verb.EXTEND)


@command(main, section=DECIDE)
def stop(proposal: Id) -> None:
    """Stop a proposal's tool while it runs.

    The running nod does so within a second. What the tool did until then stays done.
    """
    from bot.cli.deciding import press
    from bot.domain.verbs import Verb

    press(proposal, Verb.STOP)


@command(main, section=DECIDE)
def undo(proposal: Id, *, every: Every = False) -> None:
    """Put back what a proposal did, while its time for that lasts; shows first what would be done.

    With --all: what each row of its batch did.
    """
    from bot.cli.deciding import press
    from bot.domain.verbs import Verb

    press(proposal, Verb.UNDO_ALL if every else Verb.UNDO)


@command(main, section=DECIDE)
def retry(proposal: Id) -> None:
    """Run a failed proposal again."""
    from bot.cli.deciding import press
    from bot.domain.verbs import Verb

    press(proposal, Verb.RETRY)


@command(main, section=RULES)
def approvals(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="WORDS", help="As in the chats; try: help")
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Run an /approvals admin command.

    Such as: policy, approvers, grants, pause; nod approvals help lists them.
    """
    from bot.cli import slash

    slash.say("approvals", " ".join(words or []), as_json=as_json)


@command(main, section=RULES)
def schedules(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD ID]", help="pause, resume, run or delete"),
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """List schedules; pause, resume, run or delete one.

    An admin sees everyone's.
    """
    from bot.cli import slash

    slash.say("nod", f"schedules {' '.join(words or [])}", as_json=as_json)


@command(main, section=RULES)
def memory(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD NUMBER]", help="forget, edit or export"),
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """List what Nod remembers about you and the team; forget, edit or export it."""
    from bot.cli import slash

    slash.say("nod", f"memory {' '.join(words or [])}", as_json=as_json)


@command(main, section=RULES)
def connections(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD NAME]", help="connect, confirm or end"),
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """List the accounts at other servers that Nod acts as for you; connect one, or end one.

    An admin sees everyone's, and never a token.
    """
    from bot.cli import slash

    slash.say("nod", f"connections {' '.join(words or [])}", as_json=as_json)


@command(main, section=RULES)
def away(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="WHO until WHEN", help="Such as: slack:T1/U7 until monday.")
    ] = None,
) -> None:
    """Name who decides for you while you are away, 14 days at most; without words, say who is away."""
    from bot.cli import slash

    slash.say("nod", f"away {' '.join(words or [])}")


@command(main, section=RULES)
def back(account: Annotated[str, typer.Argument(help="Of someone else: for admins.")] = "") -> None:
    """Say that you are back; an admin ends anyone's absence."""
    from bot.cli import slash

    slash.say("nod", f"back {account}")


@command(main, section=RULES)
def link(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="CODE", help="The code you got elsewhere; yes.")
    ] = None,
) -> None:
    """Link your account here with another of yours.

    Without a code: get one, for the other account.
    """
    from bot.cli import slash

    slash.say("nod", f"link {' '.join(words or [])}")


@command(main, section=RULES)
def unlink(account: Annotated[str, typer.Argument(help="One of yours.")] = "") -> None:
    """Separate one of your linked accounts again.

    Without a name: the account of this shell.
    """
    from bot.cli import slash

    slash.say("nod", f"unlink {account}")


@command(tools, "list")
def tools_list(*, as_json: Json = False) -> None:
    """List every tool: name, group, what it does to the world, one line."""
    from bot.cli import tools

    tools.list_(as_json=as_json)


@command(tools, "show")
def tools_show(name: Tool, *, as_json: Json = False) -> None:
    """Show one tool in full: what it does, its risk, and the JSON schema of its arguments."""
    from bot.cli import tools

    tools.show_tool(name, as_json=as_json)


@command(tools)
def call(
    name: Tool,
    arguments: Annotated[str, typer.Argument(help="A JSON object.", metavar="JSON")] = "{}",
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it was decided and has run.")] = False,
) -> None:
    """Call a tool: what reads runs here and now; what writes becomes a proposal for people to decide."""
    from bot.cli import tools

    tools.call_tool(name, arguments, wait=wait)


@command(token)
def new(name: Annotated[str, typer.Argument(help="Whose it is, such as ci: the account http:ci.")]) -> None:
    """Make a token and print it, once: only its hash is kept."""
    from bot.cli import token

    token.new(name)


@command(token, "list")
def token_list(*, as_json: Json = False) -> None:
    """List the tokens that work: label, account, who made it, when."""
    from bot.cli import token

    token.list_(as_json=as_json)


@command(token)
def revoke(
    which: Annotated[str, typer.Argument(metavar="LABEL", help="Its label, or a name for all of that name.")],
) -> None:
    """Revoke a token: the running nod refuses it from then on, and ends its streams."""
    from bot.cli import token

    token.revoke_token(which)


@mcp.callback(invoke_without_command=True)
@with_shared_options
def mcp_(
    context: typer.Context,
    *,
    patience: Annotated[int, typer.Option(min=1, help="Seconds a permission prompt waits.")] = 600,
) -> None:
    """Let another agent ask people over MCP; sign in at MCP servers.

    Alone it is an MCP server on stdin and stdout, in front of the running nod.
    """
    if context.invoked_subcommand is None:
        from bot.cli import mcp

        mcp.serve(patience)


@command(mcp)
def login(name: Server) -> None:
    """Sign in at an MCP server: prints the page to open, and waits until you were there."""
    from bot.cli import mcp

    mcp.login(name)


@command(mcp)
def logout(name: Server) -> None:
    """Forget the sign-in at an MCP server."""
    from bot.cli import mcp

    mcp.logout(name)


@command(db, "backup")
@command(main, section=SET_UP)
def backup(
    file: Annotated[Path, typer.Argument(help="Where the copy goes; it must not exist yet.")],
) -> None:
    """Copy the SQLite database to one file, also while nod runs. For PostgreSQL use pg_dump."""
    from bot.cli import database

    database.backup(file)


@command(db)
def upgrade() -> None:
    """Bring the schema to this release's version (also done at every start)."""
    from bot.cli import database

    database.upgrade()


@command(db)
def copy(
    source: Annotated[str, typer.Argument(help="The database to read: a file or a URL.")],
    target: Annotated[str, typer.Argument(help="An empty one to fill: a new file or a URL.")],
) -> None:
    """Copy an installation to another database, such as from SQLite to PostgreSQL. Stop nod first."""
    from bot.cli import database

    database.copy(source, target)


@command(secrets, "new")
def secrets_new() -> None:
    """Print a new key for NOD_SECRET_KEY, which encrypts tokens in the database."""
    from bot.cli import secrets

    secrets.new()


@command(secrets)
def rotate() -> None:
    """Encrypt everything with the newest key of NOD_SECRET_KEY. Every process needs that key first."""
    from bot.cli import secrets

    secrets.rotate()


@command(slack)
def manifest(
    http: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The bot's public https address; without it Socket Mode."),
    ] = None,
) -> None:
    """Print the manifest to paste where Slack creates an app."""
    from bot.channels.slack.manifest import manifest_yaml
    from bot.errors import SettingsError

    if http is not None and not re.fullmatch(r"https://[^\s/]+(/\S*)?", http):
        raise SettingsError("--http: Slack calls https addresses only, such as https://nod.example.com")
    print(manifest_yaml(http), end="")


if __name__ == "__main__":
    main()
