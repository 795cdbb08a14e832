"""The ``nod`` command, and the list of its commands.

The module of a command is imported when the command is called. So ``nod --help``, which lists all of them,
and a misspelt command answer right away.
"""

from typing import Annotated

import typer

from bot import __version__
from bot.cli.command import LazyCommand, LazyGroup, with_shared_options

# the sections of ``nod --help``
_START = "Start"
_LOOK = "Look"
_DECIDE = "Decide"
_RULES = "Rules and people"
_TOOLS = "Tools and agents"
_SET_UP = "Set up"

# the name, the module, the section and the summary of each command
_COMMANDS = (
    LazyCommand(
        "init", "bot.cli.init", _START, "Write a .env: asks five questions, and tries each answer out."
    ),
    LazyCommand(
        "demo", "bot.cli.start", _START, "Try Nod: offline model, issue tracker, console. No account, no key."
    ),
    LazyCommand("run", "bot.cli.start", _START, "Run Nod with the settings of the environment and .env."),
    LazyCommand(
        "worker",
        "bot.cli.start",
        _START,
        "Run jobs and serve nothing, next to nod run on the same PostgreSQL.",
    ),
    LazyCommand(
        "doctor",
        "bot.cli.doctor",
        _START,
        "Check the settings and what they reach; tells you how to fix each problem.",
    ),
    LazyCommand(
        "open", "bot.cli.start", _LOOK, "Open the console of the running nod in a browser, signed in as you."
    ),
    LazyCommand(
        "pending", "bot.cli.lists", _LOOK, "List what is waiting for a decision, soonest to expire first."
    ),
    LazyCommand("show", "bot.cli.lists", _LOOK, "Show one proposal in full."),
    LazyCommand("team", "bot.cli.lists", _LOOK, "List the teammates of all conversations with their plans."),
    LazyCommand(
        "approve",
        "bot.cli.deciding",
        _DECIDE,
        "Approve a proposal as it is now; the running nod executes it.",
    ),
    LazyCommand("decline", "bot.cli.deciding", _DECIDE, "Decline a proposal."),
    LazyCommand(
        "similar", "bot.cli.deciding", _DECIDE, "Say what approving calls like it may allow, narrowest first."
    ),
    LazyCommand(
        "edit", "bot.cli.deciding", _DECIDE, "Change a proposal's arguments; it needs approval again."
    ),
    LazyCommand(
        "ask", "bot.cli.deciding", _DECIDE, "Ask the agent about an open proposal; this decides nothing."
    ),
    LazyCommand(
        "answer", "bot.cli.deciding", _DECIDE, "Answer a question of the agent. This approves nothing."
    ),
    LazyCommand("revise", "bot.cli.deciding", _DECIDE, "Send a teammate's plan back for changes."),
    LazyCommand(
        "cancel", "bot.cli.deciding", _DECIDE, "Withdraw a proposal you asked for (an admin: anyone's)."
    ),
    LazyCommand("extend", "bot.cli.deciding", _DECIDE, "Restart a proposal's expiry timer."),
    LazyCommand("stop", "bot.cli.deciding", _DECIDE, "Stop a proposal's tool while it runs."),
    LazyCommand(
        "undo",
        "bot.cli.deciding",
        _DECIDE,
        "Put back what a proposal did, while its time for that lasts; shows first what would be done.",
    ),
    LazyCommand("retry", "bot.cli.deciding", _DECIDE, "Run a failed proposal again."),
    LazyCommand("approvals", "bot.cli.slash", _RULES, "Run an /approvals admin command."),
    LazyCommand("schedules", "bot.cli.slash", _RULES, "List schedules; pause, resume, run or delete one."),
    LazyCommand(
        "memory",
        "bot.cli.slash",
        _RULES,
        "List what Nod remembers about you and the team; forget, edit or export it.",
    ),
    LazyCommand(
        "connections",
        "bot.cli.slash",
        _RULES,
        "List the accounts at other servers that Nod acts as for you; connect one, or end one.",
    ),
    LazyCommand(
        "away",
        "bot.cli.slash",
        _RULES,
        "Name who decides for you while you are away, 14 days at most; without words, say who is away.",
    ),
    LazyCommand("back", "bot.cli.slash", _RULES, "Say that you are back; an admin ends anyone's absence."),
    LazyCommand("link", "bot.cli.slash", _RULES, "Link your account here with another of yours."),
    LazyCommand("unlink", "bot.cli.slash", _RULES, "Separate one of your linked accounts again."),
    LazyCommand(
        "backup",
        "bot.cli.database",
        _SET_UP,
        "Copy the SQLite database to one file, also while nod runs. For PostgreSQL use pg_dump.",
    ),
    LazyCommand("audit", "bot.cli.audit", _LOOK, "Show and verify the audit log."),
    LazyCommand("tools", "bot.cli.tools", _TOOLS, "List tools and call one manually."),
    LazyCommand("token", "bot.cli.token", _TOOLS, "Make, list and revoke tokens for the HTTP interface."),
    LazyCommand(
        "mcp", "bot.cli.mcp", _TOOLS, "Let another agent ask people over MCP; sign in at MCP servers."
    ),
    LazyCommand("db", "bot.cli.database", _SET_UP, "Upgrade and copy the database."),
    LazyCommand(
        "secrets",
        "bot.cli.secrets",
        _SET_UP,
        "Make a key for the secrets in the database; encrypt them again.",
    ),
    LazyCommand("push", "bot.cli.push", _SET_UP, "Make the key for notifications on devices."),
    LazyCommand("slack", "bot.cli.slack", _SET_UP, "Print what Slack needs to know about Nod."),
)


class _NodCommands(LazyGroup):
    lazy = _COMMANDS


main = typer.Typer(
    cls=_NodCommands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    help="An AI teammate that asks, with buttons, before it changes anything.",
)


def _print_version(is_given: bool) -> None:  # noqa: FBT001 - typer calls it so, with the option's value
    if is_given:
        print(f"nod {__version__}")
        raise typer.Exit


@main.callback()
@with_shared_options
def _take_options(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Take the options that come before a command's name. Their callbacks do the work."""


if __name__ == "__main__":
    main()
