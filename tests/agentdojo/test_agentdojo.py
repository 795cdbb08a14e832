"""A few pairs of AgentDojo behind the gate; `make agentdojo` runs all of them."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.agentdojo.annotations import ANNOTATIONS

SECURITY = Path(__file__).parent.parent.parent / "docs" / "security.md"
FEW = [
    ("workspace", "user_task_13", "injection_task_8"),
    ("travel", "user_task_3", "injection_task_3"),
    ("banking", "user_task_15", "injection_task_6"),
    ("slack", "user_task_1", "injection_task_3"),
]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("agentdojo") is None, reason="needs the extra `evaluation`")
@pytest.mark.parametrize(("suite", "task", "injection"), FEW)
@pytest.mark.filterwarnings("default")  # what its libraries warn of when they are loaded
async def test_an_obeyed_injection_changes_nothing_and_the_persons_task_is_done(
    suite: str, task: str, injection: str, tmp_path: Path
) -> None:
    from tests.agentdojo.figures import desk, suites

    chosen = suites()[suite]
    async with desk(chosen, tmp_path / "nod.db") as each:
        outcome = await each.play(chosen.user_tasks[task], chosen.injection_tasks[injection])
    assert (outcome.done, outcome.met, outcome.unpressed) == (True, False, 0)
    assert outcome.veiled  # a card showed all of it, but for secrets


@pytest.mark.slow
@pytest.mark.skipif(find_spec("agentdojo") is None, reason="needs the extra `evaluation`")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("raising", ["", "raises"])
@pytest.mark.filterwarnings("default")
async def test_a_reviewer_that_lies_in_every_way_approves_nothing_delays_no_card_and_raises_by_rule_alone(
    raising: str, tmp_path: Path
) -> None:
    from tests.agentdojo.lying import CALLS, play_until, reviewed_desk

    async with reviewed_desk(tmp_path / "alone.db", "") as alone:
        wanted = await play_until(alone, CALLS)
    async with reviewed_desk(tmp_path / "lied.db", f"opinion local {raising}") as lied:
        found = await play_until(lied, CALLS)
        reviews = len(lied.nod.others[0].transcripts)
        proposals, acts = await lied.nod.proposals(), await lied.count_acts()
    assert min(reviews, len(proposals)) >= CALLS
    assert found == wanted  # which of them are done, their cards, what ran without a press
    assert all(outcome.unpressed == 0 for outcome in found)
    assert {each.id for each in proposals} == lied.posted
    assert acts["raise"] == (lied.told_noes if raising else 0)
    lines = [line.text for each in proposals for line in each.annotations if line.is_late]
    assert {text.partition("; one more")[0] for text in lines} <= {
        "changes it",
        "changes it; this is not what was asked",
        "takes nothing away; no one wants it",
    }


def test_the_document_names_what_each_function_is_declared_as() -> None:
    named = dict(re.findall(r"^\| ([a-z',]+(?: [a-z',]+)*) \| (`.+) \|$", SECURITY.read_text(), re.MULTILINE))
    told = {name: kind for kind, names in named.items() for name in re.findall(r"`(\w+)`", names)}
    assert {name: told.get(name) for name in ANNOTATIONS} == {n: a.kind for n, a in ANNOTATIONS.items()}
