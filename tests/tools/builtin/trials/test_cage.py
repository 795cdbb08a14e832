"""The cage: whatever a command does in it, nothing outside changes, no one is reached and nothing is left."""

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bot.tools.builtin.trials.copies import sweep
from tests.tools.builtin.trials.hostile import COMMANDS, Hostile
from tests.tools.builtin.trials.world import SMALL, world


@pytest.fixture
def outside():
    with world() as made:
        yield made


async def test_there_is_a_cage_here(outside):
    assert await outside.trials().cage.trouble() == ""  # else install bubblewrap, and allow user namespaces


def test_there_are_forty_hostile_commands():
    assert len({each.name for each in COMMANDS}) == 40


@pytest.mark.parametrize("hostile", COMMANDS, ids=lambda each: each.name)
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


@pytest.mark.slow
@pytest.mark.parametrize("hostile", COMMANDS, ids=lambda each: each.name)
async def test_a_kill_in_the_middle_of_a_trial_ends_the_command_and_the_next_start_removes_the_copy(
    outside, hostile: Hostile
):
    before = outside.seen()
    script = outside.put(hostile.script)
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.tools.builtin.trials.child",
        str(outside.workspace),
        script,
        cwd=Path(__file__).parents[4],
        env={**os.environ, "TMPDIR": str(outside.copies)},
    )
    async with asyncio.timeout(30):
        while not outside.running():  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.02)
    child.kill()
    await child.wait()
    async with asyncio.timeout(30):
        while outside.running():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert outside.left()  # its copy
    await asyncio.to_thread(sweep, outside.workspace)
    assert outside.left() == []
    assert outside.seen() == before
    assert outside.reached() == 0
