"""The work of ``nod demo``, ``nod run``, ``nod worker`` and ``nod open``, whose options are in ``start.py``.

The first three build the app and run it until a signal arrives. They differ in what the process does: it
receives (serves the console and listens to chats), it works (runs turns and jobs), or both. ``nod open``
only opens the console of the running nod in a browser.
"""

import asyncio
import contextlib
import gc
import os
import shlex
import signal
import sys
import webbrowser
from typing import NamedTuple

import httpx2
from sqlmodel import Session

from bot.agent.demo.team import REQUEST as TEAM_REQUEST
from bot.app.app import SHUTDOWN_SECONDS, App, cancel_and_wait
from bot.app.assembly import build
from bot.approvals.accounts import sign_in_links
from bot.channels.kinds import require_admin
from bot.cli.command import announce, get_shared_options
from bot.cli.shared import (
    escape_for_terminal,
    get_shell_actor,
    load_settings,
    log_at,
    open_existing,
    redact_line,
)
from bot.domain.card_rendering import render_card
from bot.domain.chat import Address, Clock, Message
from bot.domain.people import LOCAL
from bot.domain.proposals import Proposal
from bot.domain.times import now
from bot.errors import NodError, SettingsError
from bot.features.issues.samples import store_samples
from bot.settings import Settings, find_environment_faults
from bot.store import proposals
from bot.store.audit import log
from bot.web.channel import CHANNEL_NAME as CONSOLE_CHANNEL
from bot.web.channel import make_address_key as console_key

_INTERRUPTED_EXIT = 130  # the exit code of an interrupted program
_POLL_SECONDS = 5.0  # the time after which the demo looks for ended proposals, in case a signal is lost
_TEAM_CONVERSATION = "demo-team"  # the id of the conversation in which the demo's team works
_HEALTH_SECONDS = 5.0  # the time that the running nod has to answer


def demo(port: int | None, *, team: bool, browser: bool) -> None:
    settings = load_settings(demo=True, **{"NOD_PORT": port} if port is not None else {})
    log_at("warning", in_thread=True)
    greeting = "Nod's console: {url}   (Ctrl+C stops it)"
    serve(settings, greeting, demo=True, team=team, browser=browser)


def run_server(*, no_work: bool) -> None:
    if no_work:
        _serve_configured("Nod is up: {url}", works=False, command="nod run --no-work")
    else:
        _serve_configured("Nod is up: {url}")


def worker() -> None:
    _serve_configured("Nod is at work.", receives=False, command="nod worker")


def _serve_configured(
    greeting: str, *, receives: bool = True, works: bool = True, command: str = "nod run"
) -> None:
    """Serve with the settings of the environment. ``command``: the command line, for messages.

    A process that does not both receive and work needs others next to it, and so a database that they share.
    """
    settings = load_settings()
    require_admin(settings)
    needs_other_processes = not (receives and works)
    if needs_other_processes and settings.sqlite_file is not None:
        raise SettingsError(
            f"NOD_DATABASE_URL: {command} needs PostgreSQL. On SQLite one nod run does everything."
        )
    log_at(settings.log_level, in_thread=True)
    if settings.uses_demo_model and works and not get_shared_options().quiet:
        greeting = f"{settings.model_notice}\n{greeting}"
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
    """Run until SIGINT, SIGTERM or SIGHUP; print ``greeting`` with its ``{url}`` once everything is up.

    - ``demo``: add the demo's issues, and print what becomes of proposals
    - ``team``: first send the demo's request for a team, and show the URL of that conversation. A second
      start on the same database sends nothing new
    - ``browser``: open the console in a browser if a person sits at this machine
    - ``receives``, ``works`` and ``clock`` are as in `build`
    """
    if not (demo and settings.uses_demo_model):  # the demo's own model needs no network
        check_surroundings()
    app = build(settings, demo=demo, receives=receives, works=works, clock=clock)
    asyncio.run(_run_until_signal(app, greeting, demo=demo, team=team, browser=browser))


def check_surroundings() -> None:
    """Raise SettingsError if variables of other programs make a start impossible."""
    faults = find_environment_faults(os.environ)
    if faults:
        raise SettingsError("; ".join(faults))


async def _run_until_signal(app: App, greeting: str, *, demo: bool, team: bool, browser: bool) -> None:
    """Run the app. The first signal stops it in order; a second one, except SIGHUP, ends it immediately."""
    is_stopping = asyncio.Event()
    has_started = asyncio.Event()
    main_task = asyncio.current_task()

    def stop() -> None:
        if is_stopping.is_set():
            # loses nothing: all state is in the database, and the next start continues from there
            os._exit(_INTERRUPTED_EXIT)
        is_stopping.set()
        announce("Stopping… Press Ctrl+C again to end now.")
        if main_task is not None and not has_started.is_set():
            main_task.cancel()  # a start may have to wait long for other processes

    def hang_up() -> None:
        if not is_stopping.is_set():  # a closing terminal sends SIGHUP twice
            stop()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, stop)
    loop.add_signal_handler(signal.SIGTERM, stop)
    loop.add_signal_handler(signal.SIGHUP, hang_up)
    try:
        await _run_app(app, greeting, is_stopping, has_started, demo=demo, team=team, browser=browser)
    except asyncio.CancelledError:
        if not is_stopping.is_set():
            raise


async def _run_app(
    app: App,
    greeting: str,
    is_stopping: asyncio.Event,
    has_started: asyncio.Event,
    *,
    demo: bool,
    team: bool,
    browser: bool,
) -> None:
    """Start the app, greet, and run it until ``is_stopping`` is set; ``has_started`` is set here."""
    async with app.running(), contextlib.AsyncExitStack() as stack:
        has_started.set()
        if demo:
            await app.database.write(store_samples, now())
            if not get_shared_options().quiet:
                announcing = asyncio.create_task(_announce_ends(app), name="announce ends")
                stack.push_async_callback(cancel_and_wait, announcing)
        host = f"[{app.settings.host}]" if ":" in app.settings.host else app.settings.host
        url = f"http://{host}:{app.web.port}"
        if team:
            await app.core.assistant.handle(_make_team_request())
            url += f"/#/c/{_TEAM_CONVERSATION}"
        announce(greeting.format(url=url))
        if browser and _has_screen():
            await asyncio.to_thread(webbrowser.open, url)
        if demo and app.settings.uses_demo_model:
            offering = asyncio.create_task(_offer_model(), name="offer a model")
            stack.push_async_callback(cancel_and_wait, offering)
        gc.freeze()  # otherwise the exit takes a second to collect all that was loaded
        await is_stopping.wait()
        await _announce_running_changes(app)


def _has_screen() -> bool:
    """Tell if a browser would open in a window; a text browser would take the terminal."""
    if sys.platform in ("darwin", "win32"):
        return sys.stdout.isatty()
    return sys.stdout.isatty() and bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


async def _offer_model() -> None:
    """Print how to start the demo with a model that answers on this machine."""
    from bot.cli.local_servers import find_local_servers

    servers = await find_local_servers()
    if servers:
        server = servers[0]
        variables = f"OPENAI_BASE_URL={server.url} NOD_MODEL={redact_line(shlex.quote(server.model))}"
        announce(f"{server.name} answers on this machine. To talk to its model:\n  {variables} nod demo")


async def _announce_running_changes(app: App) -> None:
    """Print the approved calls whose runs the shutdown waits for."""
    for proposal_id in sorted(app.core.execution.under_way):
        proposal = await app.database.read(proposals.get, proposal_id)
        if proposal is not None:
            announce(f"Waiting up to {SHUTDOWN_SECONDS:.0f} s for: {redact_line(proposal.description)}")


async def _announce_ends(app: App) -> None:
    """Print a line for each proposal that ends, until cancelled: people who try the demo see what happens."""
    last_row_id = await app.database.read(log.find_last_id)
    while True:
        generation = app.notifier.generation  # read before the rows, so that no change in between is missed
        ended = await app.database.read(_list_ended, last_row_id)
        last_row_id = ended.last_row_id
        for proposal in ended.proposals:
            outcome = render_card(proposal, schema={}).outcome
            announce(f"{redact_line(proposal.description)}: {redact_line(outcome)}")
        await app.notifier.wait(generation, _POLL_SECONDS)


class _Ended(NamedTuple):
    """The proposals that ended lately, and the id of the audit log's newest row."""

    last_row_id: int
    proposals: list[Proposal]


def _list_ended(session: Session, last_row_id: int) -> _Ended:
    """Return the proposals that the audit log names after the row ``last_row_id`` and that have ended."""
    rows = log.list_after(session, last_row_id)
    if not rows:
        return _Ended(last_row_id, [])
    ended = []
    for proposal_id in dict.fromkeys(proposal_id for _, proposal_id in rows):  # each once, in order
        proposal = proposals.get(session, proposal_id)
        if proposal is not None and proposal.settled:
            ended.append(proposal)
    newest_row_id, _ = rows[-1]
    return _Ended(newest_row_id, ended)


def _make_team_request() -> Message:
    """Return the demo's request for a team. Its event id never changes, so a second start adds nothing."""
    return Message(
        address=Address(CONSOLE_CHANNEL, console_key(LOCAL, _TEAM_CONVERSATION)),
        actor=LOCAL,
        text=TEAM_REQUEST,
        event_id=f"{LOCAL.key}/{_TEAM_CONVERSATION}",
        begin=_TEAM_CONVERSATION,
    )


def open_console(*, only_print: bool) -> None:
    settings = load_settings()
    try:
        httpx2.get(f"{settings.own_url}/healthz", timeout=_HEALTH_SECONDS, trust_env=False)
    except httpx2.TransportError:
        raise NodError(f"no nod can be reached at {settings.own_url}. Start it: nod run") from None
    address = settings.site_url()
    if settings.names_by_token:  # without tokens this machine needs no sign-in
        with open_existing(settings) as database:
            code = database.write_now(sign_in_links.create_link, get_shell_actor(), now())
        address += f"/#/sign-in/{code}"
    if only_print or not webbrowser.open(address):
        print(escape_for_terminal(address))
    else:
        print("Opened the console in your browser.")
