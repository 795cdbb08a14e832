"""The tool that the torture's Nods run: it leaves a line for each time it acted, and may die at any point."""

import asyncio
import os
import random
from pathlib import Path

from bot import CallContext, ToolOutput, tool

EFFECTS = Path(os.environ.get("TORTURE_EFFECTS", "effects.log"))


def _leave(line: str) -> None:
    with EFFECTS.open("a") as effects:
        effects.write(line)


@tool()
async def mark(text: str, context: CallContext) -> ToolOutput:
    """Leave a mark.

    Args:
        text: what it says
    """
    await asyncio.sleep(random.uniform(0, 0.05))
    await asyncio.to_thread(_leave, f"{context.idempotency_key} {text}\n")
    await asyncio.sleep(random.uniform(0, 0.05))
    return ToolOutput(f"Marked {text}.")
