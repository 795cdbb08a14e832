"""``kill -9`` at any write of a team's story leaves one teammate, one plan, and a story that continues."""

import pytest

from bot.domain import kinds
from bot.domain.model import Entry, ToolResult, UserText
from bot.domain.proposal_states import Cause, State
from bot.domain.teams import TeammateState
from bot.domain.verbs import Verb
from tests.kit import Scripted, call, says
from tests.team.conftest import MakeTeamNod, TeamNod, plan, spawn, speaker
from tests.tiers import MORE

pytestmark = pytest.mark.slow


def _by_heart(transcript: tuple[Entry, ...]) -> Scripted:
    """What each says follows from what it was told alone, so a turn that is run again says the same."""
    told = "\n".join(e.text for e in transcript if isinstance(e, UserText | ToolResult))
    if speaker(transcript) == "lead":
        if "Started painter" not in told:
            return says("I start one.", spawn(plans=True))
        return says("All is done." if "painter is done" in told else "It works.")
    if "SUCCEEDED: approved by Ana. Result: The tools" not in told:
        return says("I plan.", plan())
    if "desk is red" not in told and "OUTCOME UNKNOWN" not in told:
        return says("I paint.", call("paint", lamp="desk", color="red"))
    return says("It is red.")


async def _story(nod: TeamNod, done: set[str]) -> None:
    """A person asks; the plan is approved, then the change; the teammate ends and the lead says so."""
    await nod.say("paint", event="story")
    await nod.idle()
    for _ in range(2):
        for p in await nod.proposals():
            if p.state is State.PROPOSED:
                await nod.press(Verb.APPROVE, p)
        await nod.idle()
    done.add("all of it")


@pytest.mark.parametrize(
    ("after_commit", "step"),
    [
        (False, 3),
        pytest.param(False, 1, marks=MORE),
        pytest.param(True, 1, marks=MORE),
    ],
    ids=["before the commit of every third", "before the commit", "after the commit"],
)
async def test_a_crash_at_any_write_leaves_one_teammate_and_one_plan(
    make_nod: MakeTeamNod, *, after_commit: bool, step: int
) -> None:
    fuse, done = 0, set[str]()
    while not done:
        fuse += step
        nod = make_nod()
        nod.model.rule = _by_heart
        await nod.dies_in(_story(nod, done), fuse, after_commit=after_commit)
        await _story(nod, set())
        await nod.tick()
        teammate = await nod.one()
        assert (teammate.stored_state, teammate.outcome) == (TeammateState.DONE, "It is red."), fuse
        [planned] = await nod.plans()
        assert planned.state is State.SUCCEEDED, fuse
        [painted] = [p for p in await nod.proposals() if p.kind is kinds.CALL]
        assert painted.state is State.SUCCEEDED or painted.cause is Cause.OUTCOME_UNKNOWN, fuse
        assert len(nod.world.runs_of(painted)) <= 1, fuse
        assert not nod.chat.card_of(planned).pending, fuse
        [*_, board] = nod.chat.boards.values()
        assert board.title == "Team: 1 teammate, all ended", fuse
        assert "All is done." in nod.chat.shown, fuse
    assert fuse > 15
