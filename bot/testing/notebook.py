"""The tools with which the contract tests channels. They write into a list of notes, which tests read.

Each tool has one property that the contract tests: `erase` can't be undone, `print_lines` has a long result,
`brood` never ends, `rewrite` and `pin` can be undone, and `tidy` is tried in a copy first. A test that starts
Nod as a process of its own names this module in ``NOD_TOOLS``. That process gets the tools `elsewhere`, with
a list of notes of its own.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from bot.domain.preview import PreviewField
from bot.tools.call import CallContext, InverseCall, Ran
from bot.tools.decorator import tool
from bot.tools.tool import Tool
from bot.tools.toolset import FixedToolset
from bot.tools.trial import TrialOutput


async def _do_not_wait() -> None:
    """Let a trial continue right away."""


def notebook(notes: list[str], trial: Callable[[], Awaitable[object]] = _do_not_wait) -> FixedToolset:
    """Return the tools, which write into ``notes``. A trial of `tidy` waits for ``trial()`` first."""

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

    async def preview_first_note(arguments: Mapping[str, Any]) -> list[PreviewField]:
        return [PreviewField("first note", notes[0] if notes else None, arguments["text"])]

    async def undo_rewrite(ran: Ran) -> InverseCall:
        return InverseCall("rewrite", {"text": ran.old("first note") or ""})

    @tool(summary="Rewrite the first note", preview=preview_first_note, undo=undo_rewrite)
    async def rewrite(text: str) -> str:
        """Write something else in place of the first note."""
        notes[:1] = [text]
        return "rewritten"

    return FixedToolset(
        "notebook", (note, erase, print_lines, brood, rewrite, *_make_pin_and_tidy_tools(notes, trial))
    )


def _make_pin_and_tidy_tools(notes: list[str], trial: Callable[[], Awaitable[object]]) -> tuple[Tool, ...]:
    async def undo_pin(ran: Ran) -> InverseCall:
        return InverseCall("unpin", ran.arguments)

    @tool(summary="Pin {text}", undo=undo_pin)
    async def pin(text: str) -> str:
        """Pin something up."""
        notes.append(text)
        return "pinned"

    @tool(summary="Unpin {text}")
    async def unpin(text: str) -> str:
        """Take something down."""
        notes.remove(text)
        return "unpinned"

    async def try_tidy(arguments: Mapping[str, Any]) -> TrialOutput:
        """Tidy a copy: Nod shows the change, and applies it if people approve."""
        await trial()
        change = PreviewField("notes", ", ".join(notes), arguments["text"])
        return TrialOutput([change], arguments["text"], output="tidied a copy")

    async def apply_tidy(_: Mapping[str, Any], token: str, __: CallContext) -> str:
        """Apply a trial. ``token``: a value that the trial has returned, here the new note."""
        notes[:] = [token]
        return "taken over"

    @tool(summary="Tidy the notes", trial=try_tidy, apply=apply_tidy)
    async def tidy(text: str) -> str:
        """Write one note in place of all, and send it out."""
        notes[:] = [text, "sent"]
        return "tidied"

    return pin, unpin, tidy


notes_elsewhere: list[str] = []
"""The notes of a process that has this module in NOD_TOOLS."""
elsewhere = notebook(notes_elsewhere)
"""The tools of such a process."""
