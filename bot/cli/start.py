"""``nod demo`` and ``nod run``. They say that they start, and only then import what serves."""

from typing import Annotated

import typer

from bot.cli.command import ShellCommands, chosen

commands = ShellCommands()


@commands.command()
def demo(
    port: Annotated[
        int | None, typer.Option(envvar="PORT", metavar="N", help="where the console listens")
    ] = None,
    *,
    team: Annotated[bool, typer.Option("--team", help="start with a lead agent and two teammates")] = False,
) -> None:
    """Try Nod: offline model, issue tracker, console. No account, no key."""
    if not chosen().quiet:
        print("Starting…", flush=True)
    from bot.cli.serve import serve
    from bot.cli.shared import load, log_at, told

    with told():
        settings = load(demo=True, **{"NOD_PORT": port} if port is not None else {})
        log_at("warning")
        serve(settings, "Nod's console: {url}   (Ctrl+C stops it)", demo=True, team=team)


@commands.command()
def run() -> None:
    """Run Nod with the settings of the environment and .env."""
    if not chosen().quiet:
        print("Starting…", flush=True)
    from bot.channels.table import require_admin
    from bot.cli.serve import serve
    from bot.cli.shared import load, log_at, told

    with told():
        settings = load()
        require_admin(settings)
        log_at(settings.log_level)
        serve(settings, "Nod is up: {url}")
