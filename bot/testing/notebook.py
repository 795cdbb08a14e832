"""The tools of the contract: they write into a list of notes. As a module for ``NOD_TOOLS``, into its own."""

import asyncio
from collections.abc import Mapping
from typing import Any

from bot.domain.proposals import PreviewField
from bot.tools.tool import CallContext, FixedToolset, InverseCall, Ran, tool


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

    async def first_note(arguments: Mapping[str, Any]) -> list[PreviewField]:
        return [PreviewField("first note", notes[0] if notes else None, arguments["text"])]

    async def put_back(ran: Ran) -> InverseCall:
        return InverseCall("rewrite", {"text": ran.old("first note") or ""})

    @tool(summary="Rewrite the first note", preview=first_note, undo=put_back)
    async def rewrite(text: str) -> str:
        """Write something else in place of the first note."""
        notes[:1] = [text]
        return "rewritten"

    return FixedToolset("notebook", (note, erase, print_lines, brood, rewrite))


notes_elsewhere: list[str] = []
elsewhere = notebook(notes_elsewhere)
"""What another process than the running Nod has: the same tools, which it never runs."""
