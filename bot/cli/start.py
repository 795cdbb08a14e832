"""The commands ``nod demo``, ``nod run``, ``nod worker`` and ``nod open``: their options and help.

Their work is in ``serve.py``, whose import is slow. So a command imports it only when it is called, after the
person was told that Nod is starting.
"""

from typing import Annotated

import typer

from bot.cli.command import announce, command, get_shared_options, open_standard_files

app = typer.Typer()


@command(app)
def demo(
    *,
    port: Annotated[
        int | None, typer.Option(envvar="PORT", metavar="N", help="Where the console listens.")
    ] = None,
    team: Annotated[bool, typer.Option("--team", help="Start with a lead agent and two teammates.")] = False,
    browser: Annotated[bool, typer.Option(help="Open the console in a browser, if there is one.")] = True,
) -> None:
    """Try Nod: offline model, issue tracker, console. No account, no key."""
    _prepare_start()
    from bot.cli import serve

    serve.demo(port, team=team, browser=browser)


@command(app)
def run(
    *,
    no_work: Annotated[
        bool, typer.Option("--no-work", help="Only receive; nod worker processes do the work (PostgreSQL).")
    ] = False,
) -> None:
    """Run Nod with the settings of the environment and .env.

    On PostgreSQL several may run.
    """
    _prepare_start()
    from bot.cli import serve

    serve.run_server(no_work=no_work)


@command(app)
def worker() -> None:
    """Run jobs and serve nothing, next to nod run on the same PostgreSQL.

    Several may run.
    """
    _prepare_start()
    from bot.cli import serve

    serve.worker()


@command(app, "open")
def open_console(
    *, only_print: Annotated[bool, typer.Option("--print", help="Print the address, open nothing.")] = False
) -> None:
    """Open the console of the running nod in a browser, signed in as you."""
    from bot.cli import serve

    serve.open_console(only_print=only_print)


def _prepare_start() -> None:
    """Open standard input, output and errors where they are closed, then say that Nod is starting."""
    open_standard_files()
    if not get_shared_options().quiet:
        announce("Starting…")
