"""The cage: whatever a command does in it, nothing outside changes, no one is reached and nothing is left."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from bot.errors import ToolError
from bot.tools.builtin.trials.applying import apply
from bot.tools.builtin.trials.changes import FileChange, invert_changes
from bot.tools.builtin.trials.command import CommandTrials
from bot.tools.builtin.trials.copies import remove_abandoned_copies
from tests.tiers import thin
from tests.tools.builtin.trials.hostile import COMMANDS, Hostile
from tests.tools.builtin.trials.world import CRASHING, SMALL, world

pytestmark = pytest.mark.slow

APPLIED = [each for each in COMMANDS if not each.ends]  # of the others, nothing can be


@pytest.fixture
def outside():
    with world() as made:
        yield made


async def test_there_is_a_cage_here(outside):
    assert (
        await outside.trials().cage.find_trouble() == ""
    )  # else install bubblewrap, and allow user namespaces


def test_there_are_forty_hostile_commands():
    assert len({each.name for each in COMMANDS}) == 40


@pytest.mark.parametrize("hostile", thin(COMMANDS, 4), ids=lambda each: each.name)
async def test_a_hostile_command_changes_nothing_reaches_no_one_and_leaves_nothing(outside, hostile: Hostile):
    before = outside.seen()
    # a command that another bound ends reaches it on a busy machine, too
    limits = SMALL if hostile.ends in ("", "ended after") else replace(SMALL, seconds=60.0)
    tried = await outside.trials(limits).trial({"argv": ["sh", "-c", outside.put(hostile.script)]})
    assert outside.seen() == before
    assert outside.reached() == 0
    assert outside.left() == []
    assert "secret" not in tried.output
    assert hostile.ends in tried.refused
    assert tried.refused or hostile.ends == ""
    assert len(tried.output) <= 2000


@pytest.mark.parametrize("hostile", thin(APPLIED, 8), ids=lambda each: each.name)
async def test_a_kill_in_the_middle_of_applying_what_it_did_leaves_all_of_it_or_nothing(
    outside, hostile: Hostile
):
    trials, before = outside.trials(), outside.seen()
    tried = await trials.trial({"argv": ["sh", "-c", outside.put(hostile.script)]})
    if tried.refused:
        return  # on this machine it can't be applied
    ends, at = set(), 0
    while dies_applying(outside.workspace, tried.token, at := at + 1):
        with suppress(ToolError):
            assert await trials.settle({}, tried.token, "nod-1")
        ends.add(str(now := outside.seen()))
        if now != before:  # as one more undoes it
            back = [asdict(each) for each in invert_changes(read(tried.token)) or ()]
            apply(outside.workspace, read({"changes": back}), "nod-2")
        assert outside.seen() == before
    assert len(ends) <= 2  # as it was, and as it is applied
    assert outside.reached() == 0
    assert outside.left() == []


def dies_applying(workspace: Path, token: dict[str, Any], after: int) -> bool:
    """Whether a process that applies it was killed at its so many-th change of the disk."""
    changes = read(token)
    child = os.fork()
    if child == 0:
        left = after

        def count(event: str, _: object) -> None:
            nonlocal left
            left -= event in CRASHING
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        with suppress(BaseException):
            apply(workspace, changes, "nod-1")
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def read(token: dict[str, Any]) -> list[FileChange]:
    return [FileChange.parse(each) for each in token["changes"]]


@pytest.mark.parametrize("hostile", thin(COMMANDS[::4]), ids=lambda each: each.name)
async def test_a_kill_in_the_middle_of_a_trial_ends_the_command_and_the_next_start_removes_the_copy(
    outside, hostile: Hostile
):
    before = outside.seen()
    script = outside.put(f"(\n{hostile.script}\n)\nsleep 1000")  # it is under way when it is looked for
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            asyncio.run(tries_again_and_again(outside.trials(), script))
        os._exit(0)
    try:
        async with asyncio.timeout(30):
            while not outside.running():  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.01)
    finally:
        os.kill(child, signal.SIGKILL)
        await asyncio.to_thread(os.waitpid, child, 0)
    async with asyncio.timeout(30):
        while outside.running():  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert outside.left()  # its copy
    await asyncio.to_thread(remove_abandoned_copies, outside.workspace)
    assert outside.left() == []
    assert outside.seen() == before
    assert outside.reached() == 0


async def tries_again_and_again(trials: CommandTrials, script: str) -> None:
    while True:
        await trials.trial({"argv": ["sh", "-c", script]})
