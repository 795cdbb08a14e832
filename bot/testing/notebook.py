"""The tools of the contract: they write into a list of notes. As a module for ``NOD_TOOLS``, into its own."""

import asyncio

from bot.tools.tool import CallContext, FixedToolset, tool


def notebook(notes: list[str]) -> FixedToolset:
    """Tools that write into ``notes``."""

    @tool(summary="Note {text}")
    async def note(text: str) -> str:
        """Write something down."""
        notes.append(text)
        return f"noted {len(text)} characters"

    @tool(summary="Erase {text}", destructive=True)
    async def erase(text: str) -> str:
        """Take something out of the notes, for good."""
        notes.remove(text)
        return "erased"

    @tool(summary="Print {count} lines")
    async def print_lines(count: int) -> str:
        """Print lines."""
        return "\n".join(f"line {n}" for n in range(count))

    @tool(summary="Brood")
    async def brood(context: CallContext) -> str:
        """Print two lines and never end."""
        await context.printed("an egg\nanother egg")
        return str(await asyncio.Event().wait())

    return FixedToolset("notebook", (note, erase, print_lines, brood))


elsewhere = notebook([])
"""What another process than the running Nod has: the same tools, which it never runs."""
