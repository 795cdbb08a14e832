"""The tools that the torture's Nods run: a line each time they acted; on request the process dies."""

import asyncio
import contextlib
import os
import random
import signal
from pathlib import Path

from bot import CallContext, InverseCall, Ran, ToolOutput, tool
from tests.torture import points

EFFECTS = Path(os.environ.get("TORTURE_EFFECTS", "effects.log"))
points.arm(EFFECTS.with_name("points.log"))

BEFORE, AFTER = "die before", "die after"
"""Words of a mark that kill the process that makes it first, before or after it acted."""
LATER = "die later"
"""Words of a mark by which what undoes it kills its process."""
SLOWLY = "slowly"
"""A word of a mark that ends only once the file ``go`` is there."""


def _leave(line: str) -> None:
    with EFFECTS.open("a") as effects:
        effects.write(line)


def _die_once(key: str) -> None:
    with contextlib.suppress(FileExistsError):
        EFFECTS.with_name(f"died-{key}").touch(exist_ok=False)
        os.kill(os.getpid(), signal.SIGKILL)


async def _act(text: str, context: CallContext) -> ToolOutput:
    await asyncio.sleep(random.uniform(0, 0.05))
    if BEFORE in text:
        _die_once(context.idempotency_key)
    await asyncio.to_thread(_leave, f"{context.idempotency_key} {text}\n")
    while SLOWLY in text and not EFFECTS.with_name("go").exists():  # noqa: ASYNC110 - a file rings no bell
        await asyncio.sleep(0.01)
    if AFTER in text:
        _die_once(context.idempotency_key)
    await asyncio.sleep(random.uniform(0, 0.05))
    return ToolOutput(f"Marked {text}.")


@tool()
async def mark(text: str, context: CallContext) -> ToolOutput:
    """Leave a mark.

    Args:
        text: what it says
    """
    return await _act(text, context)


async def _unmarked(ran: Ran) -> InverseCall:
    return InverseCall("unmark", {"text": f"undo {ran.arguments['text']}".replace(LATER, AFTER)})


@tool(undo=_unmarked)
async def mark_back(text: str, context: CallContext) -> ToolOutput:
    """Leave a mark that can be undone.

    Args:
        text: what it says
    """
    return await _act(text, context)


@tool()
async def unmark(text: str, context: CallContext) -> ToolOutput:
    """Undo a mark, which leaves one as well.

    Args:
        text: what it says
    """
    return await _act(text, context)


@tool()
async def mark_together(text: str, context: CallContext) -> ToolOutput:
    """Leave a mark that two people must approve.

    Args:
        text: what it says
    """
    return await _act(text, context)


@tool()
async def mark_soon(text: str, context: CallContext) -> ToolOutput:
    """Leave a mark that must be approved within seconds.

    Args:
        text: what it says
    """
    return await _act(text, context)


@tool(writes=False)
async def blow_up(text: str) -> str:
    """Take down the process that reads this.

    Args:
        text: what it is about
    """
    os.kill(os.getpid(), signal.SIGKILL)
    return ""
