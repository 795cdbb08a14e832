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
    browser: Annotated[bool, typer.Option(help="open the console in a browser, if there is one")] = True,
) -> None:
    """Try Nod: offline model, issue tracker, console. No account, no key."""
    if not chosen().quiet:
        print("Starting…", flush=True)
    from bot.cli.serve import serve
    from bot.cli.shared import load, log_at, told

    with told():
        settings = load(demo=True, **{"NOD_PORT": port} if port is not None else {})
        log_at("warning", aside=True)
        greeting = "Nod's console: {url}   (Ctrl+C stops it)"
        serve(settings, greeting, demo=True, team=team, browser=browser)


@commands.command()
def run(
    *,
    no_work: Annotated[
        bool, typer.Option("--no-work", help="only receive; nod worker processes do the work (PostgreSQL)")
    ] = False,
) -> None:
    """Run Nod with the settings of the environment and .env.

    On PostgreSQL several may run.
    """
    _serve("Nod is up: {url}", works=not no_work, needs="nod run --no-work" if no_work else "")


@commands.command()
def worker() -> None:
    """Only work, for nod run processes on the same PostgreSQL.

    Several may run.
    """
    _serve("Nod is at work.", receives=False, needs="nod worker")


def _serve(greeting: str, *, receives: bool = True, works: bool = True, needs: str) -> None:
    """``needs``: the command that needs several processes, if it does."""
    if not chosen().quiet:
        print("Starting…", flush=True)
    from bot.channels.table import require_admin
    from bot.cli.serve import serve
    from bot.cli.shared import load, log_at, told
    from bot.errors import SettingsError
    from bot.settings import SCRIPTED

    with told():
        settings = load()
        require_admin(settings)
        if needs and settings.sqlite_file is not None:
            raise SettingsError(
                f"NOD_DATABASE_URL: {needs} needs PostgreSQL. On SQLite one nod run does everything."
            )
        log_at(settings.log_level, aside=True)
        if settings.scripted and works and not chosen().quiet:
            greeting = f"{SCRIPTED}\n{greeting}"
        serve(settings, greeting, receives=receives, works=works)
