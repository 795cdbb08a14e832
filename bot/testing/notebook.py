"""The tools of the contract: they write into a list of notes. As a module for ``NOD_TOOLS``, into its own."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from bot.domain.proposals import PreviewField
from bot.tools.tool import CallContext, FixedToolset, InverseCall, Ran, Tool, TrialOutput, tool


async def _at_once() -> None:
    """Nothing holds up a trial."""


def notebook(notes: list[str], trial: Callable[[], Awaitable[object]] = _at_once) -> FixedToolset:
    """Tools that write into ``notes``; a ``trial`` waits for that first."""

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

    return FixedToolset(
        "notebook", (note, erase, print_lines, brood, rewrite, *_make_undo_and_trial_tools(notes, trial))
    )


def _make_undo_and_trial_tools(notes: list[str], trial: Callable[[], Awaitable[object]]) -> tuple[Tool, ...]:
    async def unpinned(ran: Ran) -> InverseCall:
        return InverseCall("unpin", ran.arguments)

    @tool(summary="Pin {text}", undo=unpinned)
    async def pin(text: str) -> str:
        """Pin something up."""
        notes.append(text)
        return "pinned"

    @tool(summary="Unpin {text}")
    async def unpin(text: str) -> str:
        """Take something down."""
        notes.remove(text)
        return "unpinned"

    async def tidied(arguments: Mapping[str, Any]) -> TrialOutput:
        await trial()
        change = PreviewField("notes", ", ".join(notes), arguments["text"])
        return TrialOutput([change], arguments["text"], output="tidied a copy")

    async def take_over(_: Mapping[str, Any], token: str, __: CallContext) -> str:
        notes[:] = [token]
        return "taken over"

    @tool(summary="Tidy the notes", trial=tidied, apply=take_over)
    async def tidy(text: str) -> str:
        """Write one note in place of all, and send it out."""
        notes[:] = [text, "sent"]
        return "tidied"

    return pin, unpin, tidy


notes_elsewhere: list[str] = []
elsewhere = notebook(notes_elsewhere)
"""What another process than the running Nod has: the same tools, which it never runs."""
