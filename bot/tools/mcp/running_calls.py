"""The calls of an MCP server that are in progress."""

import asyncio
import contextvars
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from bot.tools.call import CallContext
from bot.tools.mcp.line import ServerLine

_current_call: contextvars.ContextVar["RunningCall | None"] = contextvars.ContextVar(
    "mcp_current_call", default=None
)
"""The call to which the running code belongs."""


@dataclass(frozen=True, slots=True, eq=False)
class RunningCall:
    """A call in progress, and its time limit, which is suspended while a person answers the server."""

    context: CallContext
    limit: asyncio.Timeout

    def set_deadline(self, when: float | None) -> None:
        """Move the limit, in the loop's time; None removes it. An expired limit stays expired."""
        with suppress(RuntimeError):
            self.limit.reschedule(when)


class RunningCalls:
    """The running calls of one server."""

    def __init__(self) -> None:
        self._calls: set[RunningCall] = set()

    def __bool__(self) -> bool:
        return bool(self._calls)

    @contextmanager
    def track(self, context: CallContext, line: ServerLine, seconds: float) -> Iterator[RunningCall]:
        """Count a call as running while the context is open. ``seconds``: its time limit."""
        call = RunningCall(context, asyncio.timeout(seconds))
        self._calls.add(call)
        line.add(call)
        token = _current_call.set(call)
        try:
            yield call
        finally:
            _current_call.reset(token)
            self._calls.discard(call)
            line.remove(call)

    def find_asking_call(self) -> RunningCall | None:
        """Return the call in which the server asks a question; None if that is not known.

        Older protocols don't name the call, so with them it is only known while a single call is in progress.
        """
        call = _current_call.get()
        if call:
            return call
        if len(self._calls) == 1:
            return next(iter(self._calls))
        return None
