"""Drafting of proposals: what a card shows is made from a call and its tool, before it is stored.

A call is a tool and its arguments. From these come the title, the preview (the fields that would change) and
the time for which the call may be undone. `draft` puts them together into a `Proposal`, with the *verdict* of
the rules: that the call may run, or who is asked. Most of these texts come from the tool's own code, which
may fail or take too long. The gate drafts new proposals, and ``presses.py`` drafts again what people edit.
"""

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from bot.approvals.tool_code import await_tool
from bot.domain.digests import to_canonical_json
from bot.domain.people import Actor
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.redaction import hide_values, redact_arguments, redact_text, secrets_in
from bot.domain.text import format_request, is_echo, one_line, replace_unstorable, shorten
from bot.domain.trials import Trial
from bot.domain.value_text import label_of
from bot.domain.verdicts import Judgement, Verdict, make_terms
from bot.errors import BadArguments
from bot.telemetry.logs import logger
from bot.tools.call import Ran
from bot.tools.tool import Tool

log = logger(__name__)

_MAX_TITLE_CHARS = 300  # a longer title is cut: the fields below have the rest
_MAX_REASON_CHARS = 500
_PREVIEW_SECONDS = 20.0  # the time for each step that runs the tool's own code
_PLACEHOLDER = "\ue000"  # put in place of a value, to see where a summary has the value
_MAX_SHORT_MESSAGE_CHARS = 8  # a message this short may stand in a reason by chance
# a reason that has the person's message and fewer characters than these apart from it only repeats it
_MAX_AROUND_CHARS = 40


class _Reversibility(NamedTuple):
    """Tells if a call can be undone."""

    can_be_undone: bool
    why_not: str = ""  # in words; empty if the tool gives no reason


def decode_arguments(arguments: str) -> dict[str, Any]:
    """Return the JSON object that the model wrote. Raises BadArguments for any other text."""
    try:
        raw = json.loads(arguments or "{}")
        to_canonical_json(raw).encode()  # raises for numbers and characters that JSON can't represent
    except (ValueError, RecursionError) as error:
        raise BadArguments({"arguments": f"this is not JSON: {error}"}) from None
    if not isinstance(raw, dict):
        raise BadArguments({"arguments": "this must be a JSON object"})
    return raw


def summary_of(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Return a call in one line for people, without secrets."""
    return _make_headline(tool.summary(redact_arguments(arguments, tool.parameters)))


async def title_of(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Return the title of a card: the tool's own title, which may look up names, else the summary."""
    if tool.title is None:
        return summary_of(tool, arguments)
    work = tool.title(redact_arguments(arguments, tool.parameters))
    title = await await_tool(tool.name, work, _PREVIEW_SECONDS)
    return _make_headline(title) or summary_of(tool, arguments)


def _make_headline(text: str) -> str:
    """Return a text as one short line without secrets: a name that a tool looked up may contain one."""
    return shorten(redact_text(one_line(text)), _MAX_TITLE_CHARS)


async def preview_of(tool: Tool, arguments: Mapping[str, Any]) -> tuple[PreviewField, ...]:
    """Return the preview of a call. For a tool without one, it is every argument, secrets hidden."""
    if tool.preview:
        previewed = arguments
    else:
        previewed = redact_arguments(arguments, tool.parameters)
    fields: tuple[PreviewField, ...] = await await_tool(
        tool.name, tool.preview_fields(previewed), _PREVIEW_SECONDS
    )
    storable_fields = make_storable(fields)
    return tuple(replace(field, titled=_is_in_title(tool, previewed, field)) for field in storable_fields)


def make_storable(fields: Sequence[PreviewField]) -> list[PreviewField]:
    """Return the fields as storable text: a tool's own code may give numbers, and no type checks it."""

    def make_text(value: object) -> str | None:
        if value is None:
            return None
        return replace_unstorable(str(value))

    return [
        PreviewField(
            replace_unstorable(str(field.field)), make_text(field.old_value), make_text(field.new_value)
        )
        for field in fields
    ]


async def limit_undo(
    tool: Tool,
    arguments: Mapping[str, Any],
    preview: tuple[PreviewField, ...],
    verdict: Verdict,
    trial: Trial | None = None,
) -> Verdict:
    """Return the verdict, without time for Undo if the tool or the trial says that nothing can be undone.

    The verdict then has the reason, if there is one.
    """
    if not verdict.undo:
        return verdict
    reversibility = await _ask_reversibility(tool, arguments, preview, trial)
    if reversibility.can_be_undone:
        return verdict
    return replace(verdict, undo=timedelta(), no_undo=reversibility.why_not or verdict.no_undo)


async def _ask_reversibility(
    tool: Tool, arguments: Mapping[str, Any], preview: tuple[PreviewField, ...], trial: Trial | None
) -> _Reversibility:
    """Ask the trial and the tool's own code if a call can be undone."""
    applies_trial = trial is not None and trial.applies
    if trial is not None and applies_trial and trial.why_not_undone:
        return _Reversibility(can_be_undone=False, why_not=trial.why_not_undone)
    if tool.undo is None:
        trial_undo = tool.trial_functions.undo if tool.trial_functions else None
        return _Reversibility(can_be_undone=applies_trial and trial_undo is not None)
    inverse = await await_tool(tool.name, tool.undo(Ran(arguments, preview)), _PREVIEW_SECONDS)
    if isinstance(inverse, str):  # the reason why no call undoes the change
        return _Reversibility(can_be_undone=False, why_not=one_line(inverse))
    return _Reversibility(can_be_undone=True)


def _is_in_title(tool: Tool, arguments: Mapping[str, Any], field: PreviewField) -> bool:
    """Tell if the title quotes a field's value, so that the card need not show the field as well.

    The value may be in the title because another argument has the same words. So the summary is made again
    with a placeholder for this argument: the title quotes the value if the summary quotes the placeholder.
    """
    value = field.new_value
    if tool.title or field.old_value is not None or not value or re.search("[“”]", value):
        return False
    label = label_of(field.field)
    names = [name for name in arguments if label_of(name) == label]
    if len(names) != 1 or arguments[names[0]] != value:
        return False
    summary = tool.summary({**arguments, names[0]: _PLACEHOLDER})
    return f"“{_PLACEHOLDER}”" in summary


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
    """Return the proposal for a call with this verdict: approved if the rules let it run, else open.

    It does not belong to a conversation yet.
    """
    runs_by_rule = verdict.judgement is Judgement.RUN
    shown_reason = hide_values(" ".join(reason.split()), secrets_in(arguments, tool.parameters))
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
        reason=shown_reason[:_MAX_REASON_CHARS],
        requester=requester,
        state=State.APPROVED if runs_by_rule else State.PROPOSED,
        decided_by=f"policy ({verdict.rule_text})" if runs_by_rule else None,
        decided_at=now if runs_by_rule else None,
        round=1,
        version=1,
        digest=tool.make_digest(arguments),
        created_at=now,
        updated_at=now,
        connection=tool.connection.with_short_names if tool.connection else None,
        **make_terms(verdict, now),
    )


def clean_reason(reason: str, answer: str, last_message: str) -> str:
    """Return the agent's reason for a call as a card shows it.

    A reason that contains the agent's answer is dropped, because people read the answer right above the card.
    A reason that repeats the person's last message becomes a quotation of the message.
    """
    plain_reason = _normalise(reason)
    plain_answer = _normalise(answer)
    if plain_answer and plain_answer in plain_reason:
        return ""
    message = _normalise(last_message)
    is_repeated = len(message) > _MAX_SHORT_MESSAGE_CHARS and message in plain_reason
    adds_little = len(plain_reason) < len(message) + _MAX_AROUND_CHARS
    if is_repeated and adds_little and not is_echo(reason):
        return format_request(last_message)
    return reason


def _normalise(text: str) -> str:
    return " ".join(text.split()).casefold()
