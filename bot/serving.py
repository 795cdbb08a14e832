"""Serving until told to stop: what ``nod demo`` and ``nod run`` do once their settings are read."""

import asyncio
import signal

from bot.agent.offline_team import REQUEST
from bot.app import App, build, now
from bot.channels.http.channel import NAME, key_of
from bot.domain.chat import Address, Message
from bot.domain.people import LOCAL
from bot.settings import Settings
from bot.tools.builtin.issue_seed import seed

_TEAM = "demo-team"  # the id of the conversation that the demo with a team begins


def serve(settings: Settings, greeting: str, *, demo: bool = False, team: bool = False) -> None:
    """Run until SIGINT or SIGTERM; prints ``greeting`` with its ``{url}`` once everything is up.

    ``team`` asks for the demo's team first, once for each database, and leads to that conversation.
    """
    asyncio.run(_serve(build(settings, demo=demo), greeting, seeded=demo, team=team))


async def _serve(app: App, greeting: str, *, seeded: bool, team: bool) -> None:
    stopped = asyncio.Event()
    for signal_ in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signal_, stopped.set)
    async with app.running():
        if seeded:
            await app.database.write(seed, now())
        host = f"[{app.settings.host}]" if ":" in app.settings.host else app.settings.host
        url = f"http://{host}:{app.web.port}"
        if team:
            await app.assistant.handle(_team_request())
            url += f"/#/c/{_TEAM}"
        print(greeting.format(url=url), flush=True)  # noqa: T201 - for who started it
        await stopped.wait()


def _team_request() -> Message:
    """What a person in the console would write; its event id makes a second start add nothing."""
    return Message(Address(NAME, key_of(LOCAL, _TEAM)), LOCAL, REQUEST, f"{LOCAL.key}/{_TEAM}", begin=_TEAM)
