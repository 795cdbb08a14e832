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


def test_the_document_names_what_each_function_is_declared_as() -> None:
    named = dict(re.findall(r"^\| ([a-z',]+(?: [a-z',]+)*) \| (`.+) \|$", SECURITY.read_text(), re.MULTILINE))
    told = {name: kind for kind, names in named.items() for name in re.findall(r"`(\w+)`", names)}
    assert {name: told.get(name) for name in ANNOTATIONS} == {n: a.kind for n, a in ANNOTATIONS.items()}
