"""Approve similar by prefix: its reach is said and counted, and ends where another program begins."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import Session

from bot.approvals import grants
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.store.tables.rules import GrantRow
from bot.tools.builtin.files.tools import file_tools
from bot.tools.builtin.shell.prefix import PREFIX_VERSION
from bot.tools.builtin.shell.tools import shell_tools
from bot.tools.toolset import FixedToolset
from tests.kit import ADA, ANA, FakeClock, Nod, call, cores
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
    (workspace / "Makefile").write_text("check:\n\t@echo checked\ndeploy:\n\t@touch deployed\n")
    async with cores(type("Here", (Workshop,), {"folder": workspace}), database_of, clock) as make:
        yield make(admins=[ADA])


async def test_a_command_that_begins_alike_runs_and_another_asks(nod: Workshop) -> None:
    first = await nod.ran("make check")
    words = "shell_run “make check”, which may be followed by options such as -j, --jobs, -k"
    assert (GrantScope.PREFIX, f"{words} (1 of the last 1 in 30 days)") in await nod.lookup.ladder(
        first.id, ANA
    )
    said = await nod.allow(first)
    assert f"G-1 now allows {words}, for Ana in the conversation where it was asked" in said
    covered = await nod.ran("make -j2 check -k")
    assert (covered.state, covered.grant_id) == (State.SUCCEEDED, 1)
    for other in (
        "make check deploy",
        "make check -f x.mk",
        "make check -C ..",
        "make deploy",
        "make check A=b",
    ):
        asked = await nod.ran(other)
        assert (asked.state, asked.grant_id) == (State.PROPOSED, None), other
    assert not (nod.folder / "deployed").exists()
    again = await nod.ran("make other")
    [(_, said)] = [each for each in await nod.lookup.ladder(again.id, ANA) if each[0] is GrantScope.PREFIX]
    assert said.endswith("(1 of the last 8 in 30 days)")
    assert (await nod.command("/approvals grants", by=ANA)).text


async def test_a_command_of_which_nothing_is_known_has_no_such_rung(nod: Workshop) -> None:
    for command in ("python3 check.py", "touch x", "yarn test"):
        asked = await nod.ran(command)
        assert GrantScope.PREFIX not in dict(await nod.lookup.ladder(asked.id, ANA)), command
        assert "Choose what else to allow" in await nod.allow(asked)


async def test_a_grant_of_an_older_reach_lets_nothing_run_and_ends_with_the_update(nod: Workshop) -> None:
    older = {"make check": ["make", "check"], "make deploy": ["make"]}
    for number, (command, stored) in enumerate(older.items(), 1):
        await nod.allow(await nod.ran(command))
        await nod.database.write(give_older_reach, number, json.dumps(stored))
    folder = await nod.wrote("docs/a.md")
    await nod.allow(folder)
    for command in ("make check", "make deploy", "make check deploy"):
        assert (await nod.ran(command)).state is State.PROPOSED, command
    assert (
        await nod.database.write(grants.end_old_prefix_grants, "shell_run", PREFIX_VERSION, nod.clock()) == 2
    )
    listed = (await nod.command("/approvals grants", by=ADA)).text
    assert "G-1" not in listed
    assert "G-2" not in listed
    assert "G-3" in listed
    assert (
        await nod.database.write(grants.end_old_prefix_grants, "shell_run", PREFIX_VERSION, nod.clock()) == 0
    )
    said = (await nod.command("/approvals audit G-1", by=ADA)).text
    assert "end with an update" in said


def give_older_reach(session: Session, number: int, stored: str) -> None:
    row = session.get_one(GrantRow, number)
    row.match = stored
    session.add(row)


async def test_files_below_a_folder_are_written_and_those_next_to_it_ask(nod: Workshop) -> None:
    first = await nod.wrote("docs/a.md")
    assert "file_write anywhere below the folder docs" in await nod.allow(first)
    assert (await nod.wrote("docs/guide/b.md")).grant_id == 1
    assert (await nod.wrote("docs.md")).state is State.PROPOSED
    assert (await nod.wrote("docs2/a.md")).state is State.PROPOSED
    (nod.folder / "docs" / "out").symlink_to("/tmp")  # noqa: S108 - it leads out of the workspace
    assert await nod.asked(call("file_write", path="docs/out/x.md", content="x")) == []
