"""Long outputs of tools: the model gets the beginning and the end, and reads the rest with ``output_read``.

An output that is too long for the model is stored (``bot/store/outputs.py``) under a handle, such as
``out-3f2a…``. The cut text names the handle, which is valid only in the conversation of the call.
"""

from typing import Annotated, Any

from pydantic import Field

from bot.domain.chat import Clock
from bot.domain.files import File
from bot.domain.outcomes import MAX_RESULT, shorten_result
from bot.errors import ToolError
from bot.store import outputs
from bot.store.database import Database
from bot.tools.call import CallContext
from bot.tools.decorator import tool
from bot.tools.toolset import FixedToolset

_PART_CHARS = MAX_RESULT // 2  # a part must fit into one result, with the characters that JSON adds
GROUP = "outputs"

Handle = Annotated[str, Field(pattern=r"^(out-[0-9a-f]{16}|call-\d{1,18}-\d{1,3})$")]
Offset = Annotated[int, Field(ge=0, le=10**9)]


async def cut(database: Database, conversation_id: str, file: File, clock: Clock) -> str:
    """Return the text of a file for the model, at most `MAX_RESULT` characters.

    If the text is longer, the file is stored, and the cut text names its handle.
    """
    if len(file.text) <= MAX_RESULT:
        return file.text
    handle = await database.write(outputs.store_output, conversation_id, file, clock())
    return shorten_result(file.text, handle)


def output_tools(database: Database) -> FixedToolset:
    """Return the tool `output_read`, which reads stored outputs."""

    @tool(writes=False, group=GROUP, summary="Read more of a long output")
    async def output_read(context: CallContext, handle: Handle, offset: Offset = 0) -> dict[str, Any]:
        """Read more of a long output of an earlier call.

        Args:
            handle: the handle that stood where the output was cut
            offset: the first character to read, from 0

        """
        found = await database.read(
            outputs.load_text_part, context.conversation_id, handle, offset, _PART_CHARS
        )
        if found is None:
            raise ToolError(f"There is no output {handle} in this conversation; it may have been forgotten.")
        return {"text": found.text, "next_offset": found.next_offset, "total": found.total}

    return FixedToolset(GROUP, (output_read,))
