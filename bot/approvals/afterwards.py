"""Checks after a run, in the same step: the changed fields read again, and the inverse call.

Both are the tool's own code, so both are bounded and may fail: then nothing is claimed or offered.
"""

from collections.abc import Mapping
from typing import Any

from bot.approvals.drafts import preview_of, title_of
from bot.approvals.tool_code import await_tool, describe_and_log
from bot.domain.cards import redact_fields
from bot.domain.proposals import (
    Inverse,
    PreviewField,
    Proposal,
    Reread,
    canonical,
    hash_left_values,
)
from bot.domain.redaction import HIDDEN, secrets_in
from bot.domain.text import one_line, shorten, storable
from bot.telemetry.logs import logger
from bot.tools.registry import AvailableTools
from bot.tools.tool import Ran, Tool, ToolOutput, Undo

log = logger(__name__)

_SECONDS = 10.0
_MOST = 1_500_000  # characters of the inverse call: 1 MB of a file, written as text
_BRIEF = 300  # characters of a value that is kept for people


async def look_after(
    available: AvailableTools, tool: Tool, p: Proposal, output: ToolOutput, seconds: float = _SECONDS
) -> dict[str, Any]:
    """Return the columns to store with the end of a run: the fields read again, and the inverse call.

    Never raises. Each of the two takes at most ``seconds``.
    """
    if not p.kind.may_be_undone:
        return {}
    found: dict[str, Any] = {}
    again = await _read_again(tool, p, seconds)
    if again:
        found["read_again"] = again
    undo = tool.trying.undo if p.applies and tool.trying else tool.undo
    if undo is not None and p.undo_seconds:
        found["inverse"], found["kept"] = await _inverse(available, tool, undo, p, output, seconds)
    return found


async def _read_again(tool: Tool, p: Proposal, seconds: float) -> tuple[Reread, ...]:
    """Return the changed fields with their values now; empty where they can't be read."""
    try:
        now = await await_tool(tool.name, _now(tool, p), seconds)
        return tuple(
            _reread(f.field, now[f.field], f.new_value)
            for f in p.preview
            if f.field in now and HIDDEN not in (f.new_value or "")
        )
    except Exception as error:  # noqa: BLE001 - a tool's own code; nothing is claimed
        log.info("not read again", tool=tool.name, why=type(error).__name__)
        return ()


async def _now(tool: Tool, p: Proposal) -> Mapping[str, str | None]:
    if p.applies and p.trial and tool.trying and tool.trying.current:
        return await tool.trying.current(p.trial.files)
    if tool.current is not None:
        return await tool.current(p.arguments)
    shown = {each.field for each in p.preview if each.old_value is not None}
    if tool.preview is None or not shown:
        return {}
    return {f.field: f.old_value for f in await tool.preview(p.arguments) if f.field in shown}


def _reread(field: str, now: object, approved: str | None) -> Reread:
    said = None if now is None else storable(str(now))
    return Reread(field, _cut(said), _cut(approved), said == approved)


def _cut(text: str | None) -> str | None:
    if text is None:
        return None
    return shorten(text, _BRIEF)


async def _inverse(
    available: AvailableTools, tool: Tool, undo: Undo, p: Proposal, output: ToolOutput, seconds: float
) -> tuple[Inverse, Mapping[str, Any] | None]:
    """Return the inverse call and its arguments, or the reason for having none."""
    try:
        call = await await_tool(tool.name, undo(Ran(p.arguments, p.preview, output)), seconds)
        if isinstance(call, str):
            return Inverse(one_line(call)), None
        other = available.get(call.tool_name)
        arguments = await other.check_arguments(dict(call.arguments))
        if len(canonical(arguments)) > _MOST:
            return Inverse("What was there before is longer than 1 MB."), None
        preview = await preview_of(other, arguments)
        title = await title_of(other, arguments)
    except Exception as error:  # noqa: BLE001 - a tool's own code; people are told
        return Inverse(one_line(describe_and_log(error, tool.name))), None
    fields = redact_fields(preview, other.parameters, secrets_in(arguments, other.parameters))
    return Inverse(
        tool_name=other.name,
        digest=other.digest(arguments),
        left=hash_left_values(preview),
        title=title,
        fields=tuple(PreviewField(f.field, _cut(f.old_value), _cut(f.new_value)) for f in fields),
    ), arguments
