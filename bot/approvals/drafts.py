"""Drafting of proposals: a call is previewed and checked before it is shown or stored.

A tool's own code runs here, and may fail.
"""

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from bot.approvals.tool_code import await_tool
from bot.domain.people import Actor
from bot.domain.policy import Judgement, Verdict, terms
from bot.domain.proposals import PreviewField, Proposal, State, canonical
from bot.domain.redaction import HIDDEN, redact_arguments, redact_text, secrets_in, veil
from bot.domain.text import format_request, is_echo, one_line, shorten, storable
from bot.domain.trials import Trial
from bot.domain.value_text import label_of
from bot.errors import BadArguments
from bot.telemetry.logs import logger
from bot.tools.tool import Ran, Tool

log = logger(__name__)

_TITLE = 300  # characters; what a longer one leaves out is in the fields below it
_PREVIEW_SECONDS = 20.0
_WORD = 8  # characters of a saying that may well be a part of a reason of its own
_PLACE = "\ue000"  # stands in for a value, to see where a summary puts it
_AROUND = 40  # characters around a sentence that is only repeated


def decode_arguments(arguments: str) -> dict[str, Any]:
    """Return the JSON object that the model wrote; raises BadArguments if it isn't one."""
    try:
        raw = json.loads(arguments or "{}")
        canonical(raw).encode()  # numbers and characters that JSON has no words for
    except (ValueError, RecursionError) as error:
        raise BadArguments({"arguments": f"this is not JSON: {error}"}) from None
    if not isinstance(raw, dict):
        raise BadArguments({"arguments": "this must be a JSON object"})
    return raw


def summary_of(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Return one line for people, for cards and lists; secrets are hidden first."""
    return _headline(tool.summary(redact_arguments(arguments, tool.parameters)))


async def title_of(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Return the title of a card; it names the object where the tool can look its name up."""
    if tool.title is None:
        return summary_of(tool, arguments)
    named = tool.title(redact_arguments(arguments, tool.parameters))
    return _headline(await await_tool(tool.name, named, _PREVIEW_SECONDS)) or summary_of(tool, arguments)


def _headline(text: str) -> str:
    """Return a text as one short line without secrets: a name that a tool looked up may contain one."""
    return shorten(redact_text(one_line(text)), _TITLE)


async def preview_of(tool: Tool, arguments: Mapping[str, Any]) -> tuple[PreviewField, ...]:
    """Return the preview of a call. A tool without one shows every argument, secrets hidden."""
    if tool.preview:
        given = arguments
    else:
        given = redact_arguments(arguments, tool.parameters)
    fields: tuple[PreviewField, ...] = await await_tool(
        tool.name, tool.preview_fields(given), _PREVIEW_SECONDS
    )
    return tuple(replace(each, titled=_is_in_title(tool, given, each)) for each in make_storable(fields))


def make_storable(fields: Sequence[PreviewField]) -> list[PreviewField]:
    """Return the fields as storable text: a tool's own code may give numbers, and no type checks it."""

    def text(value: object) -> str | None:
        if value is None:
            return None
        return storable(str(value))

    return [PreviewField(storable(str(f.field)), text(f.old_value), text(f.new_value)) for f in fields]


async def undoable(
    tool: Tool,
    arguments: Mapping[str, Any],
    preview: tuple[PreviewField, ...],
    verdict: Verdict,
    trial: Trial | None = None,
) -> Verdict:
    """Return the verdict with the time for Undo, as far as the tool can tell before the run."""
    if not verdict.undo:
        return verdict
    if trial is not None and trial.applies and trial.final:
        return replace(verdict, undo=timedelta(), no_undo=trial.final)
    if tool.undo is None and trial is not None and trial.applies and tool.trying and tool.trying.undo:
        return verdict
    if tool.undo is None:
        return replace(verdict, undo=timedelta())
    found = await await_tool(tool.name, tool.undo(Ran(arguments, preview)), _PREVIEW_SECONDS)
    if isinstance(found, str):
        return replace(verdict, undo=timedelta(), no_undo=one_line(found))
    return verdict


def _is_in_title(tool: Tool, arguments: Mapping[str, Any], field: PreviewField) -> bool:
    """Return whether the tool's summary quotes this argument itself: not another one that has its words."""
    value = field.new_value
    if tool.title or field.old_value is not None or not value or re.search("[“”]", value):
        return False
    label = label_of(field.field)
    named = [name for name in arguments if label_of(name) == label]
    if len(named) != 1:
        return False
    if arguments[named[0]] == value:
        quoted = tool.summary({**arguments, named[0]: _PLACE})
    else:
        quoted = ""
    return f"“{_PLACE}”" in quoted


def draft(
    tool: Tool,
    arguments: Mapping[str, Any],
    preview: tuple[PreviewField, ...],
    verdict: Verdict,
    requester: Actor,
    reason: str,
    now: datetime,
    *,
    title: str,
) -> Proposal:
    """Return the proposal that a verdict makes of a call, with no place in any conversation yet."""
    auto = verdict.judgement is Judgement.RUN
    return Proposal(
        id=secrets.token_hex(8),
        kind=tool.kind,
        conversation_id="",
        message_id=0,
        call_id="",
        position=0,
        tool_name=tool.name,
        tool_version=tool.version,
        arguments=arguments,
        description=title,
        preview=preview,
        reason=veil(" ".join(reason.split()), secrets_in(arguments, tool.parameters))[:500],
        requester=requester,
        state=State.APPROVED if auto else State.PROPOSED,
        decided_by=f"policy ({verdict.rule})" if auto else None,
        decided_at=now if auto else None,
        round=1,
        version=1,
        digest=tool.digest(arguments),
        created_at=now,
        updated_at=now,
        connection=tool.connection.bounded if tool.connection else None,
        **terms(verdict, now),
    )


def unhidden(given: Mapping[str, Any], before: Mapping[str, Any], seen: Mapping[str, Any]) -> dict[str, Any]:
    """Put hidden secrets back into edited arguments; raises BadArguments for one that is half rewritten."""
    true: dict[str, Any] = {}
    for key, value in given.items():
        if key in before and value == seen[key]:
            true[key] = before[key]
        elif isinstance(value, Mapping) and isinstance(before.get(key), Mapping):
            true[key] = unhidden(value, before[key], seen[key])
        elif HIDDEN in canonical(value):
            raise BadArguments({key: "a part of this is hidden; write all of it, or leave it as it was"})
        else:
            true[key] = value
    return true


def clean_reason(reason: str, answer: str, heard: str) -> str:
    """Return the agent's reason: none where it repeats its answer, which stands right above the card.

    Where it repeats what the person said (``heard``), it is written as their words.
    """
    plain, above, theirs = (" ".join(text.split()).casefold() for text in (reason, answer, heard))
    if above and above in plain:
        return ""
    echoed = len(theirs) > _WORD and theirs in plain and len(plain) < len(theirs) + _AROUND
    if echoed and not is_echo(reason):
        return format_request(heard)
    return reason
