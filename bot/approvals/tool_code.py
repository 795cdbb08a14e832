"""Calls of a tool's own code: within a limit of time, and with its faults in words for people.

A tool may come from anyone: built in, from a plugin, from an MCP server. Its functions may hang, block the
event loop, end the process or raise anything. All modules of ``bot/approvals`` call them through `await_tool`
or `run_tool`, and turn what they raise into a text by `as_tool_error` or `describe_and_log`.
"""

import asyncio
import contextlib
import time
import types
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from functools import partial
from typing import Any

from bot.domain.proposals import Proposal
from bot.errors import CallRefused, ToolError, ToolTimedOut
from bot.telemetry.logs import logger
from bot.tools.call import CallContext, ToolOutput
from bot.tools.tool import Tool

log = logger(__name__)

_BLOCKING_SECONDS = 1.0  # a step that blocks the event loop this long is logged


def context_of(proposal: Proposal) -> CallContext:
    """Return the context in which a proposal's tool is looked up and previewed, outside of a run."""
    owner = proposal.connection.owner if proposal.connection else ""
    return CallContext(
        proposal.conversation_id, str(proposal.requester), preview=proposal.preview, connected_as=owner
    )


async def await_tool(tool_name: str, work: Awaitable[Any], seconds: float) -> Any:
    """Wait for a tool's own coroutine. Raises ToolTimedOut if it does not end in time.

    ToolTimedOut is also raised for a TimeoutError of the tool's own, and if the coroutine cancels itself.
    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await log_blocking(work, tool_name)
    except TimeoutError as error:
        if limit.expired():
            raise ToolTimedOut(f"It did not answer within {seconds:g} s.") from None
        # the tool's own time limit, such as a socket's: what it waited for may be done nevertheless
        raise ToolTimedOut(describe_and_log(error, tool_name)) from None
    except SystemExit as error:  # raised by a library for command lines, such as argparse
        raise RuntimeError("a tool wants to end its process") from error
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise  # this task is being cancelled
        raise ToolTimedOut("It cancelled itself before it answered.") from None


async def run_tool(tool: Tool, arguments: Mapping[str, Any], context: CallContext) -> ToolOutput:
    """Run a tool within its own time limit. Raises CallRefused if the tool has no run."""
    if tool.run is None or not tool.kind.runs:
        raise CallRefused(f"A {tool.kind} has no run.")
    output: ToolOutput = await await_tool(tool.name, tool.run(arguments, context), tool.timeout)
    return output


@types.coroutine
def log_blocking(
    work: Awaitable[Any], tool_name: str, clock: Callable[[], float] = time.perf_counter
) -> Generator[Any, Any, Any]:
    """Await a tool's own coroutine. If one of its steps blocks the event loop, the log names the tool.

    Nothing else runs during such a step, and no timeout can end it, so it is measured and not prevented. To
    time each step between two suspensions, the coroutine is driven here as ``await`` would do it (PEP 380).
    """
    steps = work.__await__()
    # the function that runs the next step: it begins, sends the awaited value in, or throws an error in
    resume: Callable[[], Any] = partial(next, steps)
    while True:
        began = clock()
        try:
            awaited = resume()
        except StopIteration as end:
            return end.value
        finally:
            seconds = clock() - began
            if seconds >= _BLOCKING_SECONDS:
                log.warning("a tool held the loop", tool=tool_name, seconds=round(seconds, 1))
        try:
            resume = partial(steps.send, (yield awaited))
        except GeneratorExit:
            steps.close()
            raise
        except BaseException as error:  # noqa: BLE001 - such as a cancellation, which the tool must see
            resume = partial(steps.throw, error)


@contextlib.contextmanager
def as_tool_error(tool_name: str) -> Iterator[None]:
    """Turn whatever a tool's own code raises into a ToolError, whose message people see."""
    try:
        yield
    except ToolError:
        raise
    except Exception as error:  # noqa: BLE001 - a tool's own code
        raise ToolError(describe_and_log(error, tool_name)) from None


def describe_and_log(error: Exception, tool_name: str) -> str:
    """Return an error's text for the model and people, and log the rest of an unknown one."""
    if isinstance(error, ToolError):
        return error.message
    log.error("tool raised", tool=tool_name, exc_info=error)
    return f"{tool_name} failed with {type(error).__name__}; the log has the details."
