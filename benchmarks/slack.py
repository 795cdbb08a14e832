"""Slack: from the moment a press leaves Slack until the tool has started and the card's redraw has arrived.

The fake Slack answers at once and lives in this process, so its own work is in the figures.
"""

import asyncio
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from benchmarks.table import Row
from bot.channels.slack.channel import SlackChannel
from bot.domain.times import now
from bot.settings import Settings
from bot.testing.world import Says, World
from tests.fakes.slack_server import APP_TOKEN, BOT_TOKEN, FakeSlack

_WARM = 20


class _Notes(list[str]):
    """Remembers when the tool ran."""

    at = 0.0

    def append(self, text: str) -> None:
        self.at = perf_counter()
        super().append(text)


class _Slack(FakeSlack):
    """Remembers when a card's redraw arrived."""

    redrawn = 0.0

    def _answer(self, method: str, arguments: dict[str, Any], token: str) -> dict[str, Any]:
        if method == "chat.update" and arguments.get("blocks") and not self.redrawn:
            self.redrawn = perf_counter()
        return super()._answer(method, arguments, token)


async def rows(where: Path, *, times: int) -> list[Row]:
    slack = _Slack()
    await slack.start()

    def settings() -> Settings:
        values: dict[str, Any] = {
            "NOD_DATABASE_URL": f"sqlite:///{where / 'slack.db'}",
            "NOD_PORT": 0,
            "NOD_LOG_LEVEL": "error",
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
            "SLACK_API_URL": slack.url,
        }
        return Settings.load(_env_file=None, **values)

    notes = _Notes()
    add = lambda app: SlackChannel(app.settings, app.database, app.clock)  # noqa: E731
    world = World(settings, add, now, notes=notes)
    await world.start()
    await slack.until(lambda: slack._socket)  # noqa: SLF001 - the fake is ours
    started: list[float] = []
    redrawn: list[float] = []
    for turn in range(times + _WARM):
        begun, ran, shown = await _press(slack, world, notes)
        if turn >= _WARM:
            started.append(ran - begun)
            redrawn.append(shown - begun)
    burst = await _mentions(slack, 100)
    await world.stop()
    await slack.stop()
    return [
        Row("100 mentions at once → the last acknowledged (Slack waits 3 s)", f"{1000 * burst:.0f} ms"),
        *_figures("press received → tool started", started),
        *_figures("press received → card redrawn", redrawn),
    ]


async def _mentions(slack: _Slack, count: int) -> float:
    """Let that many people mention Nod at the same moment; gives the seconds to the last acknowledgement."""
    for n in range(count):
        slack.users[f"U{n + 100}"] = f"Person {n}"
    begun = perf_counter()
    await asyncio.gather(*(slack.mention(f"U{n + 100}", f"hello {n}") for n in range(count)))
    return perf_counter() - begun


async def _press(slack: _Slack, world: World, notes: _Notes) -> tuple[float, float, float]:
    slack.posted.clear()
    slack.calls.clear()
    world.script(Says("I will note it.", (("note", {"text": "milk"}),)), Says("It is noted."))
    await slack.say("U7", "note milk")
    card = (await slack.until(lambda: slack.cards("D7")))[0]
    slack.redrawn = 0.0
    begun = perf_counter()
    await slack.click(card, "Approve")
    await slack.until(lambda: slack.redrawn and "Approve" not in card.buttons)
    await slack.until(lambda: any("It is noted." in m.markdown for m in slack.posted if m.stream == "closed"))
    return begun, notes.at, slack.redrawn


def _figures(what: str, took: list[float]) -> list[Row]:
    hundredths = quantiles(took, n=100)
    return [
        Row(f"{what}, p50", f"{1000 * median(took):.2f} ms"),
        Row(f"{what}, p99", f"{1000 * hundredths[98]:.2f} ms"),
    ]
