"""What a model is sent is what was recorded: a change of it is seen, line by line, and meant."""

from difflib import unified_diff
from pathlib import Path

import pytest

from tests.conversations.conversations import CONVERSATIONS
from tests.conversations.nod import PROMPT, RECORDED, Talk, requests_of
from tests.conversations.recording import told, whole

pytestmark = pytest.mark.platform

_MEANT = "If that is meant, run `make recordings`, and read what changed in tests/conversations/recorded."


def difference(path: Path, text: str) -> str:
    before = path.read_text() if path.exists() else ""
    return "\n".join(
        unified_diff(before.splitlines(), text.splitlines(), "recorded", "sent", lineterm="", n=1)
    )


async def test_the_prompt_and_the_tools_that_the_model_is_sent_are_what_was_recorded(tmp_path: Path) -> None:
    async def nothing_more(_: Talk) -> None: ...

    [usual] = await requests_of(nothing_more, tmp_path)
    assert difference(PROMPT, whole(usual)) == "", _MEANT


@pytest.mark.parametrize("name", CONVERSATIONS)
async def test_what_the_model_is_sent_is_what_was_recorded(name: str, tmp_path: Path) -> None:
    usual, *requests = await requests_of(CONVERSATIONS[name], tmp_path)
    assert difference(RECORDED / f"{name}.txt", told(requests, usual)) == "", _MEANT


def test_each_recording_is_of_a_conversation_and_small_enough_to_read() -> None:
    found = {path.stem: path.stat().st_size for path in RECORDED.glob("*.txt")}
    assert found.keys() == {*CONVERSATIONS, PROMPT.stem}
    assert max(found.values()) < 200_000
