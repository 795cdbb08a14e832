"""The contract on the command line: asked for on the web, ruled and decided with ``nod``."""

import asyncio
import os
import pwd
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from bot.cli.main import main
from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.settings import Settings
from bot.testing.contract import Contract
from bot.testing.driver import SeenCard
from bot.testing.notebook import notes_elsewhere
from bot.testing.steps import cards, note
from bot.testing.world import Says, World
from tests.contracts.test_http import GROUP_VERBS, TOKENS, HttpDriver
from tests.kit import FakeClock, make_tables
from tests.kit.urls import Urls

pytestmark = pytest.mark.platform

ADMINS = "cli:ana,cli:ben"


_FLAGS = {
    Verb.APPROVE_STEPS: ("approve", "--steps"),
    Verb.APPROVE_ALL: ("approve", "--all"),
    Verb.DECLINE_ALL: ("decline", "--all"),
    Verb.EXTEND: ("extend",),
    Verb.UNDO_ALL: ("undo", "--all"),
    Verb.FOR_REAL: ("approve", "--real"),
    Verb.FIRST: ("answer", "deep red"),
    Verb.SECOND: ("answer", "sky blue"),
}
_ROUNDLESS = {Verb.EXTEND, Verb.STOP, Verb.UNDO}


class ShellDriver(HttpDriver):
    """Ana sits at a shell, too, as the same Person; all that people press, they say to ``nod``."""

    ben = "cli:ben"

    def __init__(self, world: World, database_url: str) -> None:
        super().__init__(world)
        self._url_of_database = database_url

    async def _press(self, proposal: dict[str, Any], verb: Verb, who: str, **more: Any) -> None:
        shown = proposal["group"]["round"] if verb in GROUP_VERBS else proposal["round"]
        verb, *flags = _FLAGS.get(verb, (verb,))
        words = [verb, proposal["id"], *flags, *map(str, more.values())]
        await self._say(who, *words, *(() if verb in _ROUNDLESS else ("--round", str(shown))))

    async def approve_similar(self, card: SeenCard, rung: GrantScope, lasting: GrantDuration) -> str:
        ident = card.handle["id"]
        _, offered = await self._nod("ana", "similar", ident)
        if Verb.SIMILAR not in card.verbs or f"--similar {rung}" not in offered:
            raise LookupError(rung)
        await self._say("ana", "approve", ident, "--similar", rung, "--for", lasting)
        return offered

    async def fill_in(self, card: SeenCard, name: str, text: str) -> None:
        """A shell does not know what a running server asks; it is filled in on the web, and sent here."""
        await HttpDriver._press(self, card.handle, Verb.EDIT, "ana", arguments={name: text})
        await self._press({**card.handle, "round": card.handle["round"] + 1}, Verb.APPROVE, "ana")

    async def _say(self, who: str, *words: str) -> None:
        code, said = await self._nod(who, *words)
        if code:
            self._told[who].append(said)
        # what a running nod does every few seconds
        await self.world.app.core.recovery.recover(self.world.clock())
        await self.world.app.core.recovery.stop_requested_runs(self.world.clock())

    async def command(self, line: str, *, eve: bool = False) -> str:
        words = line.removeprefix("/").removeprefix("nod ").split(" ")
        _, said = await self._nod("eve" if eve else "ana", *words)
        return said

    async def pending(self) -> str:
        return (await self._nod("ana", "pending"))[1]

    async def _nod(self, who: str, *words: str) -> tuple[int, str]:
        """Run ``nod`` as someone; gives its exit code and all it said."""
        given = {
            "NOD_DATABASE_URL": self._url_of_database,
            "NOD_ADMINS": ADMINS,
            "NOD_TOOLS": "bot.testing.notebook",
            "TEST_USER": who,
        }
        ran = await asyncio.to_thread(CliRunner().invoke, main, words, env={**os.environ, **given})
        return ran.exit_code, ran.output


@pytest.fixture
async def driver(database_of: Urls, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ShellDriver]:
    # several people at one machine: its list of users is what differs
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_name=os.environ["TEST_USER"]))

    def settings() -> Settings:
        return Settings.load(
            NOD_DATABASE_URL=database_of("nod"),
            NOD_PORT=0,
            NOD_HTTP_TOKENS=tuple(f"{name}:{token}" for name, token in TOKENS.items()),
            NOD_ADMINS=tuple(ADMINS.split(",")),
        )

    clock = FakeClock(datetime.now(UTC))  # a shell has the machine's own
    world = World(settings, lambda _: None, clock, make_tables)
    await world.start()
    driver = ShellDriver(world, database_of("nod"))
    code = (await HttpDriver.command(driver, "/nod link")).split("`")[1]
    said = await driver.command(f"/nod link {code} yes")
    words = re.search(r"nod link yes \S+", said)
    assert words, said
    assert "one person" in await HttpDriver.command(driver, f"/{words[0]}")
    watching = asyncio.create_task(driver.watch())
    yield driver
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    await driver.close()
    await world.stop()


class TestShell(Contract):
    """The same, said at a shell. Its clock is the machine's own, so what takes long began long ago."""

    async def test_a_card_that_cannot_be_posted_ends_its_proposal_and_the_model_is_told(
        self, driver: ShellDriver
    ) -> None:
        """Nothing is posted in a shell; what is true here is that a proposal is there to be read."""
        driver.world.script(Says("Shall I?", (note("milk"),)))
        await driver.say("note milk")
        assert "Note milk" in await driver.pending()

    async def test_a_redraw_that_fails_is_made_up_for_later(self, driver: ShellDriver) -> None:
        """Nothing is redrawn in a shell; each answer renders the row."""
        driver.world.script(Says("Shall I?", (note("milk"),)))
        await driver.say("note milk")
        (card,) = await cards(driver)
        await driver.press(card, Verb.DECLINE)
        assert "Nothing is waiting" in await driver.pending()

    async def test_what_was_done_is_read_again_and_undone_from_its_card(self, driver: ShellDriver) -> None:
        notes_elsewhere[:] = ["bread"]  # the shell looks at the same notes, with tools of its own
        await super().test_what_was_done_is_read_again_and_undone_from_its_card(driver)

    async def test_a_late_press_changes_nothing_and_says_why(self, driver: ShellDriver) -> None:
        driver.world.clock.forward(-timedelta(hours=25))
        await super().test_a_late_press_changes_nothing_and_says_why(driver)

    async def test_a_late_press_asks_again_with_a_fresh_card(self, driver: ShellDriver) -> None:
        driver.world.clock.forward(-timedelta(hours=25))
        await super().test_a_late_press_asks_again_with_a_fresh_card(driver)

    async def test_a_wait_that_was_extended_is_not_over_at_its_first_end(self, driver: ShellDriver) -> None:
        driver.world.clock.forward(-timedelta(hours=20))
        await super().test_a_wait_that_was_extended_is_not_over_at_its_first_end(driver)
