"""How long a platform told one process to wait."""

import pytest

from bot.channels.connecting import PlatformWaits


@pytest.mark.parametrize(("told", "waits"), [(9.0, 9.0), (1e9, 3600.0), (float("inf"), 3600.0), (-5.0, 0.0)])
def test_a_platform_is_waited_for_as_long_as_it_says_and_at_most_an_hour(told: float, waits: float) -> None:
    found = PlatformWaits("platform", lambda: 100.0)
    found.note_wait("here", told)
    assert (found.count_seconds_left("here"), found.count_seconds_left("elsewhere")) == (waits, 0.0)
