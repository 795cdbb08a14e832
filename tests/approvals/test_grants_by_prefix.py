"""Approve similar by prefix: its reach is said and counted, and ends where another program begins."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.domain.proposals import Proposal, State
from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.tools.builtin.files.tools import file_tools
from bot.tools.builtin.shell.tools import shell_tools
from bot.tools.tool import FixedToolset
from tests.kit import ANA, FakeClock, Nod, call, cores
from tests.kit.urls import Urls

pytestmark = pytest.mark.slow


class Workshop(Nod):
    """The core with a shell and files."""

    folder: Path

    def tools(self) -> FixedToolset:
        each = (shell_tools(self.folder, environment={}).fixed, file_tools(self.folder).fixed)
        return FixedToolset("workshop", tuple(tool for some in each for tool in some))

    async def ran(self, command: str) -> Proposal:
        [p] = await self.asked(call("shell_run", argv=command.split()))
        return await self.now(p)

    async def wrote(self, path: str) -> Proposal:
        [p] = await self.asked(call("file_write", path=path, content="x"))
        return await self.now(p)

    async def allow(self, p: Proposal) -> str:
        press: dict[str, Any] = {"rung": GrantScope.PREFIX, "lasting": GrantDuration.CONVERSATION}
        reply = await self.press(Verb.SIMILAR, p, **press)
        await self.idle()
        return reply.text


@pytest.fixture
async def nod(database_of: Urls, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Workshop]:
    workspace = tmp_path / "files"
    workspace.mkdir()
    (workspace / "check.py").write_text("print(1)")
    async with cores(type("Here", (Workshop,), {"folder": workspace}), database_of, clock) as make:
        yield make()


async def test_a_command_that_begins_alike_runs_and_another_asks(nod: Workshop) -> None:
    first = await nod.ran("python3 check.py --fast")
    words = "shell_run beginning “python3 check.py …”, whatever follows"
    assert (GrantScope.PREFIX, f"{words} (1 of the last 1 in 30 days)") in await nod.lookup.ladder(
        first.id, ANA
    )
    said = await nod.allow(first)
    assert f"G-1 now allows {words}, for Ana in the conversation where it was asked" in said
    covered = await nod.ran("python3 ./check.py --slow --all")
    assert (covered.state, covered.grant_id) == (State.SUCCEEDED, 1)
    for other in ("python3 -c 1", "python3 check.pyc", "python3 check.py -c x", "touch x", "sh check.py"):
        asked = await nod.ran(other)
        assert (asked.state, asked.grant_id) == (State.PROPOSED, None), other
    again = await nod.ran("python3 other.py")
    [(_, said)] = [each for each in await nod.lookup.ladder(again.id, ANA) if each[0] is GrantScope.PREFIX]
    assert said.endswith("(1 of the last 8 in 30 days)")
    assert (await nod.command("/approvals grants", by=ANA)).text


async def test_a_command_of_which_nothing_is_known_has_no_such_rung(nod: Workshop) -> None:
    for command in ("python3 -c 1", "touch x"):
        asked = await nod.ran(command)
        assert GrantScope.PREFIX not in dict(await nod.lookup.ladder(asked.id, ANA)), command
        assert "Choose what else to allow" in await nod.allow(asked)


async def test_files_below_a_folder_are_written_and_those_next_to_it_ask(nod: Workshop) -> None:
    first = await nod.wrote("docs/a.md")
    assert "file_write anywhere below the folder docs" in await nod.allow(first)
    assert (await nod.wrote("docs/guide/b.md")).grant_id == 1
    assert (await nod.wrote("docs.md")).state is State.PROPOSED
    assert (await nod.wrote("docs2/a.md")).state is State.PROPOSED
    (nod.folder / "docs" / "out").symlink_to("/tmp")  # noqa: S108 - it leads out of the workspace
    assert await nod.asked(call("file_write", path="docs/out/x.md", content="x")) == []
