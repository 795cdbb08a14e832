"""A call of a tool, in the form in which the tool's functions take and return it.

It has arguments, a context and an output. Its inverse call undoes what it changed.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_jsonable_python

from bot.domain.files import File
from bot.domain.preview import PreviewField
from bot.domain.text import replace_unstorable

Arguments = Mapping[str, Any]


async def _discard(text: str) -> None:
    """Do nothing with a report."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """The context of a tool's call, passed to a parameter annotated ``CallContext``.

    The looks of a tool may take it in the same way, and so may `Toolset.tools`.
    """

    conversation_id: str
    """The id of the conversation; empty if the place is not known."""
    requested_by: str
    """The account of the person who asked; empty if the person is not known."""
    idempotency_key: str = ""
    """A key that is the same for every run of one proposal; empty for reads, previews and the like."""
    preview: tuple[PreviewField, ...] = ()
    """The fields that the card showed. A tool can check by them that nothing has changed since."""
    progress: Callable[[str], Awaitable[None]] = field(default=_discard, repr=False, compare=False)
    """Tells people how far the call is: ``await context.progress("3 of 10 files")``. It never raises."""
    printed: Callable[[str], Awaitable[None]] = field(default=_discard, repr=False, compare=False)
    """Shows people the newest lines of output, such as a command's, while the call runs. It never raises."""
    token: str = field(default="", repr=False, compare=False)
    """The token of the connection under which the call runs; empty before and after the run."""
    connected_as: str = ""
    """The owner of the connection under which a proposed call runs: an account or an address."""
    depth: int = 0
    """The number of agents' calls that led to this call."""
    agent: str = ""
    """The program that calls for the person, as `Agent.key`; empty for Nod's own agent."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The output of a tool."""

    data: Any
    """JSON data or text, for the model."""
    url: str | None = None
    """A link to the result."""
    files: tuple[File, ...] = ()
    """Files for people; the model does not see them."""
    told: str | None = None
    """One sentence for people, such as "Created issue #1". Without it they see the data."""
    ended_badly: str | None = None
    """The failure of a call that ran, such as "Ended with code 3". The card says it instead of "Done"."""
    kept: Any = field(default=None, repr=False)
    """The state before the run, as far as ``undo=`` needs it. Only ``undo=`` gets it."""

    @property
    def text(self) -> str:
        """The data as text. It never raises, because the tool has run: other data is written as text."""
        if isinstance(self.data, str):
            return replace_unstorable(self.data)
        try:
            plain = to_jsonable_python(self.data, bytes_mode="base64", fallback=str)
            return replace_unstorable(json.dumps(plain, ensure_ascii=False))
        except (ValueError, RecursionError):  # it contains itself, or is nested too deeply
            return "(an answer that can't be written as JSON)"


@dataclass(frozen=True, slots=True)
class Ran:
    """A call, for the tool's ``undo=``."""

    arguments: Arguments
    preview: tuple[PreviewField, ...]
    output: ToolOutput | None = None
    """None before the call has run."""

    @property
    def kept(self) -> Any:
        """The tool's own record of the state before the run, or None."""
        if self.output:
            return self.output.kept
        return None

    def old(self, name: str) -> str | None:
        """Return the old value of a field on the card; None if it had no value, or there is no such field."""
        for preview_field in self.preview:
            if preview_field.field == name:
                return preview_field.old_value
        return None


@dataclass(frozen=True, slots=True)
class InverseCall:
    """The call that undoes another call."""

    tool_name: str
    arguments: Arguments
