"""Serving until told to stop: what ``nod demo`` and ``nod run`` do once their settings are read."""

import asyncio
import signal

from bot.app import App, build, now
from bot.settings import Settings
from bot.tools.builtin.issue_seed import seed


def serve(settings: Settings, greeting: str, *, demo: bool = False) -> None:
    """Run until SIGINT or SIGTERM; prints ``greeting`` with its ``{url}`` once everything is up."""
    asyncio.run(_serve(build(settings, demo=demo), greeting, seeded=demo))


async def _serve(app: App, greeting: str, *, seeded: bool) -> None:
    stopped = asyncio.Event()
    for signal_ in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signal_, stopped.set)
    async with app.running():
        if seeded:
            await app.database.write(seed, now())
        host = f"[{app.settings.host}]" if ":" in app.settings.host else app.settings.host
        print(greeting.format(url=f"http://{host}:{app.web.port}"), flush=True)  # noqa: T201 - for who started it
        await stopped.wait()
