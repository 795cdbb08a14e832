"""``nod demo`` and ``nod run``. They say that they start, and only then import what serves."""

from bot.cli.command import chosen


def demo(port: int | None, *, team: bool, browser: bool) -> None:
    if not chosen().quiet:
        print("Starting…", flush=True)
    from bot.cli.serve import serve
    from bot.cli.shared import load, log_at, told

    with told():
        settings = load(demo=True, **{"NOD_PORT": port} if port is not None else {})
        log_at("warning", aside=True)
        greeting = "Nod's console: {url}   (Ctrl+C stops it)"
        serve(settings, greeting, demo=True, team=team, browser=browser)


def run(*, no_work: bool) -> None:
    _serve("Nod is up: {url}", works=not no_work, needs="nod run --no-work" if no_work else "")


def worker() -> None:
    _serve("Nod is at work.", receives=False, needs="nod worker")


def _serve(greeting: str, *, receives: bool = True, works: bool = True, needs: str) -> None:
    """``needs``: the command that needs several processes, if it does."""
    if not chosen().quiet:
        print("Starting…", flush=True)
    from bot.channels.kinds import require_admin
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
