"""The ``nod`` command: what there is, by section, and the module of `bot.cli` that has it.

Nothing else is imported here: ``nod --help`` and a misspelt command answer right away.
"""

from typing import Annotated, Any

import typer

from bot import __version__
from bot.cli.command import ShellCommands, ShellGroup, doors

SECTIONS = {
    "Start": (
        ("init", "init", "Write a .env: asks five questions, and tries each answer out."),
        ("demo", "start", "Try Nod: offline model, issue tracker, console. No account, no key."),
        ("run", "start", "Run Nod with the settings of the environment and .env."),
        ("worker", "start", "Only work, for nod run processes on the same PostgreSQL."),
        ("doctor", "doctor", "Check the settings and what they reach; tells you how to fix each problem."),
    ),
    "Look": (
        ("open", "open", "Open the console of the running nod in a browser, signed in as you."),
        ("pending", "lists", "List what is waiting for a decision, soonest to expire first."),
        ("show", "lists", "Show one proposal in full."),
        ("team", "team", "List the teammates of all conversations with their plans."),
        ("audit", "audit", "Show and verify the audit log."),
    ),
    "Decide": (
        ("approve", "deciding", "Approve a proposal as it is now; the running nod executes it."),
        ("decline", "deciding", "Decline a proposal."),
        ("similar", "deciding", "Say what approving calls like it may allow, narrowest first."),
        ("edit", "deciding", "Change a proposal's arguments; it needs approval again."),
        ("ask", "deciding", "Ask the agent about an open proposal; this decides nothing."),
        ("revise", "deciding", "Send a teammate's plan back for changes."),
        ("cancel", "deciding", "Withdraw a proposal you asked for (an admin: anyone's)."),
        ("extend", "deciding", "Restart a proposal's expiry timer."),
        ("stop", "deciding", "Stop a proposal's tool while it runs."),
        ("retry", "deciding", "Run a failed proposal again."),
    ),
    "Rules and people": (
        ("approvals", "slash", "Run an /approvals admin command."),
        ("link", "slash", "Link your account here with another of yours."),
        ("unlink", "slash", "Separate one of your linked accounts again."),
    ),
    "Tools and agents": (
        ("tools", "tools", "List tools and call one manually."),
        ("token", "token", "Make, list and revoke tokens for the HTTP interface."),
        ("mcp", "mcp", "Let another agent ask people over MCP; sign in at MCP servers."),
    ),
    "Set up": (
        (
            "backup",
            "database",
            "Copy the SQLite database to one file, also while nod runs. For PostgreSQL use pg_dump.",
        ),
        ("db", "database", "Upgrade and copy the database."),
        ("slack", "slack", "Print what Slack needs to know about Nod."),
    ),
}


class _Nod(ShellGroup):
    def __init__(self, **given: Any) -> None:
        super().__init__(**given | {"commands": doors(SECTIONS)})


main = ShellCommands(
    cls=_Nod,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="An AI teammate that asks, with buttons, before it changes anything.",
)


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer's way
    if wanted:
        print(f"nod {__version__}")
        raise typer.Exit


@main.callback()
def _nod(
    *,
    _: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options of ``nod`` itself."""


if __name__ == "__main__":
    main()
