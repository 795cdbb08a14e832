"""Long output: the model is told its beginning and end with a handle, and reads on with `output_read`.

The texts are rows (``bot/store/outputs.py``); a handle is good only in the conversation it was given in.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from bot.errors import ToolError
from bot.store import outputs
from bot.store.database import Database
from bot.tools.tool import CallContext, FixedToolset, tool

MOST = 20_000  # characters told at once
_END = 2_000  # of them from the end, where a command says how it went

Handle = Annotated[str, Field(pattern=r"^out-[0-9a-f]{16}$")]
Offset = Annotated[int, Field(ge=0, le=10**9)]


async def cut(
    database: Database, conversation_id: str, text: str, clock: Callable[[], datetime], most: int = MOST
) -> str:
    """The text for the model, never longer than ``most`` characters; kept whole where it had to be cut.

    ``most`` is at least 500.
    """
    if len(text) <= most:
        return text
    handle = await database.write(outputs.keep, conversation_id, text, clock())
    return shortened(text, handle, most)


def shortened(text: str, handle: str, most: int = MOST) -> str:
    """Beginning and end, with a word between them on how to read the rest."""
    end = min(_END, most // 4)
    room = most - end - len(_between(handle, len(text), len(text)))
    return text[:room] + _between(handle, room, len(text) - room - end) + text[len(text) - end :]


def _between(handle: str, offset: int, left_out: int) -> str:
    return (
        f"\n[{left_out} characters left out here. Read on with output_read(handle={handle!r}, "
        f"offset={offset}). What follows is the end.]\n"
    )


def output_tools(database: Database) -> FixedToolset:
    """`output_read` over the kept texts."""

    @tool(writes=False, group="outputs", summary="Read on in long output")
    async def output_read(context: CallContext, handle: Handle, offset: Offset = 0) -> dict[str, Any]:
        """Read on in a long output of an earlier call.

        Args:
            handle: the handle that stood where the output was cut
            offset: the first character to read, from 0

        """
        # a part must fit into one answer again, with what JSON adds to it
        found = await database.read(outputs.part, context.conversation_id, handle, offset, MOST // 2)
        if found is None:
            raise ToolError(f"There is no output {handle} in this conversation; it may have been forgotten.")
        return {"text": found.text, "next_offset": found.next_offset, "total": found.total}

    return FixedToolset("outputs", (output_read,))
