"""A call that is tried before its card is there: people see that on each platform, while it lasts."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from bot.testing.control import Hold
from bot.testing.world import Says, eventually
from tests.contracts import test_slack

pytestmark = pytest.mark.platform

TIDY = ("tidy", {"text": "bread"})
TRYING = "Trying first: Tidy the notes"


def tasks(driver: test_slack.SlackDriver) -> Sequence[str]:
    """What Nod does, as Slack shows it in the message that is being written."""
    each = (task for m in driver.slack.in_channel("C1") for task in m.tasks.values())
    return [f"{task['title']} ({task['status']})" for task in each]


def texts(driver: Any) -> Sequence[str]:
    return driver.texts()  # type: ignore[no-any-return]


@pytest.fixture
def driver(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


Seen = Callable[[Any], Sequence[str]]


async def tried(driver: Any, seen: Seen, said: str) -> Sequence[str]:
    """What people see while a call is tried; ends with its card."""
    driver.world.trial = trial = Hold()
    driver.world.script(Says(said, (TIDY,)))
    await driver.say("tidy up")
    await trial.reached.wait()
    await asyncio.sleep(0.3 if said else 0)  # what is told then comes too soon after the words
    driver.world.clock.forward(timedelta(seconds=2))
    await eventually(lambda: any(TRYING in each for each in seen(driver)), "the word that it is tried")
    found = list(seen(driver))
    trial.go.set()
    await eventually(lambda: any("bread" in each.words for each in driver.cards()), "the card")
    return found


@pytest.mark.parametrize(
    ("driver", "seen"),
    [("slack", tasks), ("telegram", texts), ("discord", texts)],
    indirect=["driver"],
)
async def test_who_asked_sees_that_a_call_is_tried_first(driver: Any, seen: Seen) -> None:
    await tried(driver, seen, "")
    await driver.world.app.dispatcher.wait_until_idle()
    left = [each for each in seen(driver) if TRYING in each]
    assert left == ([f"{TRYING} (complete)"] if seen is tasks else [])


@pytest.mark.parametrize(("driver", "seen"), [("slack", tasks), ("discord", texts)], indirect=["driver"])
async def test_it_is_seen_too_where_words_came_right_before(driver: Any, seen: Seen) -> None:
    """The pace of a stream holds back what comes then, and nothing else comes while the trial lasts."""
    await tried(driver, seen, "I would like to tidy up.")
