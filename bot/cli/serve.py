"""``nod demo``, ``nod run`` and ``nod worker``: serving until told to stop.

``nod open``: the console of the running nod, in a browser.
"""

import asyncio
import contextlib
import gc
import os
import shlex
import signal
import sys
import webbrowser

import httpx2
from sqlmodel import Session

from bot.agent.demo.team import REQUEST
from bot.app import SHUTDOWN_SECONDS, App, build, cancel_and_wait
from bot.approvals.accounts import sign_in_links
from bot.channels.kinds import require_admin
from bot.cli.command import announce, get_chosen
from bot.cli.shared import existing, line, load_settings, log_at, operator, plain
from bot.domain.cards import card_of
from bot.domain.chat import Address, Clock, Message
from bot.domain.people import LOCAL
from bot.domain.proposals import Proposal
from bot.domain.times import now
from bot.errors import NodError, SettingsError
from bot.features.issues.tools import seed
from bot.settings import SCRIPTED, Settings, find_surrounding_faults
from bot.store import proposals
from bot.store.audit import log
from bot.web.channel import NAME, key_of

_ENDED_TWICE = 130  # the exit code of what a person interrupts
_LOOK_SECONDS = 5.0  # how often other processes' presses are looked for, should their ring be lost
_TEAM = "demo-team"  # the id of the conversation that the demo with a team begins
_SECONDS = 5.0


def demo(port: int | None, *, team: bool, browser: bool) -> None:
    settings = load_settings(demo=True, **{"NOD_PORT": port} if port is not None else {})
    log_at("warning", aside=True)
    greeting = "Nod's console: {url}   (Ctrl+C stops it)"
    serve(settings, greeting, demo=True, team=team, browser=browser)


def run_server(*, no_work: bool) -> None:
    _run_as("Nod is up: {url}", works=not no_work, needs="nod run --no-work" if no_work else "")


def worker() -> None:
    _run_as("Nod is at work.", receives=False, needs="nod worker")


def _run_as(greeting: str, *, receives: bool = True, works: bool = True, needs: str) -> None:
    """``needs``: the command that needs several processes, if it does."""
    settings = load_settings()
    require_admin(settings)
    if needs and settings.sqlite_file is not None:
        raise SettingsError(
            f"NOD_DATABASE_URL: {needs} needs PostgreSQL. On SQLite one nod run does everything."
        )
    log_at(settings.log_level, aside=True)
    if settings.scripted and works and not get_chosen().quiet:
        greeting = f"{SCRIPTED}\n{greeting}"
    serve(settings, greeting, receives=receives, works=works)


def serve(
    settings: Settings,
    greeting: str,
    *,
    demo: bool = False,
    team: bool = False,
    browser: bool = False,
    receives: bool = True,
    works: bool = True,
    clock: Clock = now,
) -> None:
    """Run until SIGINT, SIGTERM or SIGHUP; prints ``greeting`` with its ``{url}`` once everything is up.

    ``receives``, ``works`` and ``clock`` are as in `build`.

    ``browser``: open the console in one, where a person sits at this machine.

    ``team`` asks for the demo's team first, once for each database, and leads to that conversation.
    """
    if not (demo and settings.scripted):  # the demo's own model needs no network
        check_surroundings()
    app = build(settings, demo=demo, receives=receives, works=works, clock=clock)
    asyncio.run(_serve(app, greeting, seeded=demo, team=team, browser=browser))


def check_surroundings() -> None:
    """Raise SettingsError for what others' variables make impossible."""
    faults = find_surrounding_faults(os.environ)
    if faults:
        raise SettingsError("; ".join(faults))


async def _serve(app: App, greeting: str, *, seeded: bool, team: bool, browser: bool) -> None:
    stopped, up = asyncio.Event(), asyncio.Event()
    main = asyncio.current_task()

    def stop() -> None:
        if stopped.is_set():
            os._exit(_ENDED_TWICE)  # rows are safe at any instant
        stopped.set()
        announce("Stopping… Press Ctrl+C again to end now.")
        if main is not None and not up.is_set():
            main.cancel()  # a start may wait for others, and must not make people wait

    def hang_up() -> None:
        if not stopped.is_set():  # a terminal that closes says it twice
            stop()

    for signal_, end in ((signal.SIGINT, stop), (signal.SIGTERM, stop), (signal.SIGHUP, hang_up)):
        asyncio.get_running_loop().add_signal_handler(signal_, end)
    try:
        await _run(app, greeting, stopped, up, seeded=seeded, team=team, browser=browser)
    except asyncio.CancelledError:
        if not stopped.is_set():
            raise


async def _run(
    app: App,
    greeting: str,
    stopped: asyncio.Event,
    up: asyncio.Event,
    *,
    seeded: bool,
    team: bool,
    browser: bool,
) -> None:
    async with app.running(), contextlib.AsyncExitStack() as stack:
        up.set()
        if seeded:
            await app.database.write(seed, now())
            if not get_chosen().quiet:
                teller = asyncio.create_task(_tell(app), name="teller")
                stack.push_async_callback(cancel_and_wait, teller)
        if ":" in app.settings.host:
            host = f"[{app.settings.host}]"
        else:
            host = app.settings.host
        url = f"http://{host}:{app.web.port}"
        if team:
            await app.core.assistant.handle(_team_request())
            url += f"/#/c/{_TEAM}"
        announce(greeting.format(url=url))
        if browser and _has_screen():
            await asyncio.to_thread(webbrowser.open, url)
        if seeded and app.settings.scripted:
            offering = asyncio.create_task(_offer_model(), name="offer a model")
            stack.push_async_callback(cancel_and_wait, offering)
        gc.freeze()  # what there is now stays to the end, which would look through all of it for a second
        await stopped.wait()
        await _say_what_runs(app)


def _has_screen() -> bool:
    """Tell if a browser would open in a window; a text browser would take the terminal."""
    if sys.platform in ("darwin", "win32"):
        return sys.stdout.isatty()
    return sys.stdout.isatty() and bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


async def _offer_model() -> None:
    """Say how the demo talks to a model that answers on this machine."""
    from bot.cli.init import local_servers

    for server in (await local_servers())[:1]:
        chosen_by = f"OPENAI_BASE_URL={server.url} NOD_MODEL={line(shlex.quote(server.model))}"
        announce(f"{server.name} answers on this machine. To talk to its model:\n  {chosen_by} nod demo")


async def _say_what_runs(app: App) -> None:
    """Print the approved changes that shutdown waits for."""
    running = [
        await app.database.read(proposals.get, ident) for ident in sorted(app.core.execution.under_way)
    ]
    for proposal in running:
        if proposal is not None:
            announce(f"Waiting up to {SHUTDOWN_SECONDS:.0f} s for: {line(proposal.description)}")


async def _tell(app: App) -> None:
    """Print a line for each proposal that ended, by whatever press, so that a trial shows what works."""
    seen = await app.database.read(log.last_id)
    while True:
        rings = app.notifier.rings
        seen, found = await app.database.read(_list_ended, seen)
        for proposal in found:
            announce(f"{line(proposal.description)}: {line(card_of(proposal, {}).outcome)}")
        await app.notifier.wait(rings, _LOOK_SECONDS)


def _list_ended(session: Session, seen: int) -> tuple[int, list[Proposal]]:
    rows = log.since(session, seen)
    found = [proposals.get(session, ident) for ident in dict.fromkeys(ident for _, ident in rows)]
    return rows[-1][0] if rows else seen, [p for p in found if p is not None and p.settled]


def _team_request() -> Message:
    """Return the demo's request for a team; its event id makes a second start add nothing."""
    return Message(Address(NAME, key_of(LOCAL, _TEAM)), LOCAL, REQUEST, f"{LOCAL.key}/{_TEAM}", begin=_TEAM)


def open_console(*, only_print: bool) -> None:
    settings = load_settings()
    try:
        httpx2.get(f"{settings.own_url}/healthz", timeout=_SECONDS, trust_env=False)
    except httpx2.TransportError:
        raise NodError(f"no nod can be reached at {settings.own_url}. Start it: nod run") from None
    address = settings.site_url()
    if settings.tokens:  # without them this machine is let in as it is
        with existing(settings) as database:
            code = database.write_now(sign_in_links.new_link, operator(), now())
        address += f"/#/sign-in/{code}"
    if only_print or not webbrowser.open(address):
        print(plain(address))
    else:
        print("Opened the console in your browser.")
