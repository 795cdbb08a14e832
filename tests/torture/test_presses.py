"""Ten people press in one full Telegram group: what they decide waits for nothing but its row."""

from pathlib import Path

import pytest

from tests.torture.presses import run

pytestmark = [pytest.mark.platform, pytest.mark.slow]


async def test_three_hundred_presses_are_answered_in_time_and_within_the_limits(tmp_path: Path):
    seen = await run(tmp_path)
    assert len(seen.toasts) == 300
    assert len(seen.decisions) > 100
    assert (seen.late, seen.over) == (0, 0)
    assert seen.forms
    assert max(seen.decisions) < 15, "a chat that is full takes nothing for up to 61 s"
