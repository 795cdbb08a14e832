"""The columns that are stored with the end of a run: the tool's output, and what two more steps find.

These steps are to read the changed fields again, and to draft the inverse call. The card then shows the
fields as they are now, next to the values that people approved. It also offers Undo: a press on it opens a
proposal for the inverse call, which puts back what was there before. Both steps run the tool's own code, so
both are limited in time and may fail. A step that fails leaves its part off the card.

Some tools can be tried: the call runs without lasting effect before people decide, and then the approved run
only *applies* the changes of that trial. Such a tool brings functions of its own for both steps.
"""

from collections.abc import Mapping
from typing import Any

from bot.approvals.drafts import preview_of, title_of
from bot.approvals.tool_code import await_tool, describe_and_log
from bot.domain.card_rendering import redact_fields
from bot.domain.digests import to_canonical_json
from bot.domain.preview import CheckedField, Inverse, PreviewField, hash_old_values
from bot.domain.proposals import Proposal
from bot.domain.redaction import HIDDEN, secrets_in
from bot.domain.text import one_line, replace_unstorable, shorten
from bot.telemetry.logs import logger
from bot.tools.call import Ran, ToolOutput
from bot.tools.looks import Undo
from bot.tools.registry import AvailableTools
from bot.tools.tool import Tool

log = logger(__name__)

_STEP_SECONDS = 10.0  # the time for the tool to read its fields, and to name the inverse call
_MAX_INVERSE_CHARS = 1_500_000  # enough for 1 MB of a file in base64, with the rest of the call
_MAX_VALUE_CHARS = 300  # the most characters of a value that are stored for people


async def collect_after_run(
    available: AvailableTools,
    tool: Tool,
    proposal: Proposal,
    output: ToolOutput,
    seconds: float = _STEP_SECONDS,
) -> dict[str, Any]:
    """Return the columns to store with the end of a run: the fields read again, and the inverse call.

    A fault of the tool's own code is logged and not raised, since the run itself has succeeded.
    """
    if not proposal.kind.may_be_undone:
        return {}
    columns: dict[str, Any] = {}
    fields = await _read_again(tool, proposal, seconds)
    if fields:
        columns["read_again"] = fields
    undo = tool.undo
    # the run applied a trial, for which a tool has other functions
    if proposal.applies_trial and tool.trial_functions:
        undo = tool.trial_functions.undo
    if undo is not None and proposal.undo_seconds:  # the rules give people time to undo the call
        inverse, arguments = await _draft_inverse(available, tool, undo, proposal, output, seconds)
        columns["inverse"] = inverse
        columns["inverse_arguments"] = arguments
    return columns


def make_outcome_columns(output: ToolOutput) -> dict[str, Any]:
    """Return the columns to store for the output of a run that succeeded."""
    return {
        "result": output.text,
        "result_sentence": output.told,
        "ended_badly": output.ended_badly,
        "result_url": output.url,
        "error": None,
        "files": output.files,
    }


async def _read_again(tool: Tool, proposal: Proposal, seconds: float) -> tuple[CheckedField, ...]:
    """Return the changed fields with their values now; empty where they can't be read."""
    fields = []
    try:
        values = await await_tool(tool.name, _read_values(tool, proposal), seconds)
        for field in proposal.preview:
            is_hidden = HIDDEN in (field.new_value or "")  # a hidden secret can't be compared
            if field.field in values and not is_hidden:
                fields.append(_compare(field.field, values[field.field], field.new_value))
    except Exception as error:  # noqa: BLE001 - a tool's own code; then nothing is said of the fields
        log.info("not read again", tool=tool.name, why=type(error).__name__)
        return ()
    return tuple(fields)


async def _read_values(tool: Tool, proposal: Proposal) -> Mapping[str, str | None]:
    """Return the current values by field: from the tool's own reader, else from a preview made now.

    Such a preview says what the same call would change now, so its old values are the current ones.
    """
    trial = proposal.trial if proposal.applies_trial else None
    if trial and tool.trial_functions and tool.trial_functions.current:
        return await tool.trial_functions.current(trial.files)
    if tool.current is not None:
        return await tool.current(proposal.arguments)
    names = {field.field for field in proposal.preview if field.old_value is not None}
    if tool.preview is None or not names:
        return {}
    preview = await tool.preview(proposal.arguments)
    return {field.field: field.old_value for field in preview if field.field in names}


def _compare(name: str, value: object, approved: str | None) -> CheckedField:
    """Return a field with its current value, the approved value, and whether they are the same."""
    current = None if value is None else replace_unstorable(str(value))
    return CheckedField(name, _cut(current), _cut(approved), current == approved)


def _cut(text: str | None) -> str | None:
    if text is None:
        return None
    return shorten(text, _MAX_VALUE_CHARS)


async def _draft_inverse(
    available: AvailableTools, tool: Tool, undo: Undo, proposal: Proposal, output: ToolOutput, seconds: float
) -> tuple[Inverse, Mapping[str, Any] | None]:
    """Return the inverse call as people see it, and its arguments.

    If there is no such call, returns an `Inverse` with only the reason, and None.
    """
    try:
        call = await await_tool(tool.name, undo(Ran(proposal.arguments, proposal.preview, output)), seconds)
        if isinstance(call, str):  # the reason why no call undoes the change
            return Inverse(one_line(call)), None
        inverse_tool = available.get(call.tool_name)
        arguments = await inverse_tool.check_arguments(dict(call.arguments))
        if len(to_canonical_json(arguments)) > _MAX_INVERSE_CHARS:
            return Inverse("What was there before is longer than 1 MB."), None
        return await _describe_inverse(inverse_tool, arguments), arguments
    except Exception as error:  # noqa: BLE001 - a tool's own code; people are told
        return Inverse(one_line(describe_and_log(error, tool.name))), None


async def _describe_inverse(inverse_tool: Tool, arguments: Mapping[str, Any]) -> Inverse:
    """Return the inverse call as it is stored: its digest, and its title and changes without secrets.

    Raises what the tool's own code raises, and UnicodeEncodeError for arguments that can't be stored.
    """
    preview = await preview_of(inverse_tool, arguments)
    title = await title_of(inverse_tool, arguments)
    secrets = secrets_in(arguments, inverse_tool.parameters)
    redacted = redact_fields(preview, inverse_tool.parameters, secrets)
    fields = [PreviewField(field.field, _cut(field.old_value), _cut(field.new_value)) for field in redacted]
    return Inverse(
        tool_name=inverse_tool.name,
        digest=inverse_tool.make_digest(arguments),
        # a hash of the values after the change, to see later if someone has changed them again
        left=hash_old_values(preview),
        title=title,
        fields=tuple(fields),
    )
