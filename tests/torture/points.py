"""Points at which a Nod kills itself: around the statement that makes something so.

Before it, what it belongs to is lost; some milliseconds after it, it may be committed and not yet told.
"""

import itertools
import os
import random
import re
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

POINTS: Mapping[str, str] = {
    "a message is taken in": "INSERT INTO message",
    "a turn begins or ends": "UPDATE turn",
    "a change is proposed": "INSERT INTO proposal",
    "a press counts": "INSERT INTO audit",
    "a change runs or ends": "UPDATE proposal",
    "a card was posted": "INSERT INTO copy",
    "a card was drawn": "UPDATE copy",
    "an update is kept": "INSERT INTO event",
    "an update is handled": "UPDATE event",
    "a teammate starts": "INSERT INTO teammate",
    "a teammate ends": "UPDATE teammate",
    "a file comes": "INSERT INTO output",
    "a file was read": "UPDATE output",
    "a fact is kept": "INSERT INTO memory",
    "a fact is forgotten": "DELETE FROM memory",
    "calls are allowed": "INSERT INTO grant_given",
    "a call is allowed, or no longer": "UPDATE grant_given",
    "an agent's call is kept": "INSERT INTO agent_call",
    "an agent's call ended, or its end was told": "UPDATE agent_call",
}
_SHARE = 0.5  # of the processes
_LONGEST = 0.01  # seconds


def drawn(dice: random.Random) -> dict[str, str]:
    """What a process is told: a point, at which time that it comes there, and how long after; or nothing."""
    if dice.random() >= _SHARE:
        return {}
    after = dice.choice((0.0, dice.uniform(0, _LONGEST)))
    point = dice.choice(list(POINTS))
    return {"TORTURE_POINT": point, "TORTURE_AT": str(dice.randint(1, 5)), "TORTURE_AFTER": f"{after:.4f}"}


def arm(log: Path) -> None:
    """Die as the environment says, with a line in ``log``."""
    point = os.environ.get("TORTURE_POINT", "")
    if not point:
        return
    words = POINTS[point].replace(" INTO", "( OR IGNORE)? INTO")
    statement, times = re.compile(rf"{words}\b"), itertools.count(1)
    nth, after = int(os.environ["TORTURE_AT"]), float(os.environ["TORTURE_AFTER"])

    def die() -> None:
        with log.open("a") as lines:
            lines.write(f"{point}\n")
        os.kill(os.getpid(), signal.SIGKILL)

    @event.listens_for(Engine, "before_cursor_execute")
    def _look(_connection: Any, _cursor: Any, words: str, *_: Any) -> None:
        if statement.match(words) and next(times) == nth:
            if after:
                threading.Timer(after, die).start()
            else:
                die()
