"""The restart of an MCP server after its line was lost: without a pause for a new session, else after one."""

from datetime import datetime
from typing import NamedTuple

from bot.tools.mcp.catalogue import LONGEST_PAUSE, MAX_COUNTED_FAILURES, STABLE_AFTER
from bot.tools.mcp.line import ServerLine


class ServerRestart(NamedTuple):
    """The terms of a restart of a server that was lost."""

    renews_session: bool  # the server forgot the session, so a new one is begun without a pause
    pause_seconds: float  # the pause before the restart, unless a session is renewed
    failures: int  # the failures in a row, with this one if it is one


def plan_restart(line: ServerLine, failures: int, now: datetime) -> ServerRestart:
    """Return how the server is restarted after a line was lost. ``failures``: earlier ones in a row.

    A pause is twice as long after each failure, up to `LONGEST_PAUSE`. A lost session is renewed without
    a pause if the server had answered a request in it, or if it is the first failure in a row.
    """
    was_stable = line.up_since is not None and now - line.up_since >= STABLE_AFTER
    earlier_failures = 0 if was_stable else failures
    pause_seconds = min(2.0**earlier_failures, LONGEST_PAUSE)
    if line.has_lost_session and line.has_answered:  # the session was of use: this is no failure
        return ServerRestart(renews_session=True, pause_seconds=pause_seconds, failures=0)
    renews_session = line.has_lost_session and failures == 0
    return ServerRestart(renews_session, pause_seconds, min(earlier_failures + 1, MAX_COUNTED_FAILURES))
