"""The rules of the contract on the command line: asked for on the web, ruled and decided with ``nod``."""

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bot.cli import main
from bot.domain.cards import Action
from bot.domain.people import Actor
from bot.settings import Settings
from bot.store import people
from tests.conftest import FakeClock
from tests.contracts.scenarios import Rules
from tests.contracts.test_http import TOKENS, HttpDriver
from tests.contracts.world import World

ADMINS = "cli:ana,cli:ben"


class ShellDriver(HttpDriver):
    """Ana sits at a shell, too, as the same Person; what she and Ben press, they say to ``nod``."""

    ben = "cli:ben"

    def __init__(self, world: World, database_url: str) -> None:
        super().__init__(world)
        self._url_of_database = database_url

    async def _press(self, proposal: dict[str, Any], action: Action, who: str, **more: Any) -> None:
        if action is Action.SIMILAR or proposal["round"] != self._now(proposal)["round"]:
            await super()._press(proposal, action, who, **more)  # a shell shows no cards that could be old
            return
        code, said = await self._nod(who, "approvals", action, proposal["id"])
        if code:
            self._told[who].append(said)
        await self.world.app.assistant.recover(
            self.world.clock()
        )  # what a running nod does every few seconds

    def _now(self, proposal: dict[str, Any]) -> dict[str, Any]:
        return next(p for p in self._proposals if p["id"] == proposal["id"])

    async def command(self, line: str, *, eve: bool = False) -> str:
        name, _, words = line.removeprefix("/").partition(" ")
        _, said = await self._nod("eve" if eve else "ana", name, *words.split(" "))
        return said

    async def _nod(self, who: str, *words: str) -> tuple[int, str]:
        """Run ``nod`` as somebody; gives its exit code and all it said."""
        given = {"NOD_DATABASE_URL": self._url_of_database, "NOD_ADMINS": ADMINS, "LOGNAME": who}
        ran = await asyncio.to_thread(CliRunner().invoke, main, words, env={**os.environ, **given})
        return ran.exit_code, ran.output


@pytest.fixture
async def driver(tmp_path: Path) -> AsyncIterator[ShellDriver]:
    url = f"sqlite:///{tmp_path / 'nod.db'}"

    def settings() -> Settings:
        return Settings.load(
            NOD_DATABASE_URL=url,
            NOD_PORT=0,
            NOD_HTTP_TOKENS=tuple(f"{name}:{token}" for name, token in TOKENS.items()),
            NOD_ADMINS=tuple(ADMINS.split(",")),
        )

    clock = FakeClock(datetime.now(UTC))  # a shell has the machine's own
    world = World(settings, lambda _: None, clock)
    await world.start()
    code = world.app.database.write_now(people.new_code, Actor("http", "ana", "ana"), clock())
    assert world.app.database.write_now(people.link, Actor("cli", "ana", "ana"), code, clock())
    driver = ShellDriver(world, url)
    watching = asyncio.create_task(driver.watch())
    yield driver
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    await driver.close()
    await world.stop()


class TestShell(Rules):
    """The same rules, said at a shell."""

    async def test_an_admin_can_ask_what_the_policy_would_do(self, driver: ShellDriver) -> None:
        """A shell knows the tools that Nod brings, not those of this test."""
        would = await driver.command('/approvals policy test create_issue {"title":"Milk"}')
        assert "It would ask for one approval" in would
        assert "policy never" in await driver.command("/approvals policy never for create_*")
        would = await driver.command('/approvals policy test create_issue {"title":"Milk"}')
        assert "It would run at once" in would
