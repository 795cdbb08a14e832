"""What a call is made into before it is shown or stored. A tool's own code runs here, and may break."""

import asyncio
import contextlib
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from bot.domain.people import Actor
from bot.domain.policy import Judgement, Verdict, terms
from bot.domain.proposals import PreviewField, Proposal, State, canonical, digest
from bot.domain.redaction import HIDDEN, redact
from bot.domain.unseen import one_line
from bot.errors import BadArguments, ToolError, ToolTimedOut
from bot.telemetry import logger
from bot.tools.tool import Tool

log = logger(__name__)

_PREVIEW_SECONDS = 20.0


def decoded(arguments: str) -> dict[str, Any]:
    """The JSON object that the model wrote; raises BadArguments where it is none."""
    try:
        raw = json.loads(arguments or "{}")
        canonical(raw).encode()  # numbers and characters that JSON has no words for
    except (ValueError, RecursionError) as error:
        raise BadArguments({"arguments": f"this is not JSON: {error}"}) from None
    if not isinstance(raw, dict):
        raise BadArguments({"arguments": "this must be a JSON object"})
    return raw


def summary_of(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """One line for people; it stands on cards and in lists, so it never learns a secret."""
    return one_line(tool.summary(redact(arguments, tool.parameters)))


async def preview_of(tool: Tool, arguments: Mapping[str, Any]) -> tuple[PreviewField, ...]:
    """What will change. Where a tool has no preview of its own, every argument, without its secrets."""
    shown = arguments if tool.preview else redact(arguments, tool.parameters)
    fields: tuple[PreviewField, ...] = await in_time(tool.preview_fields(shown), _PREVIEW_SECONDS)
    return fields


def draft(
    tool: Tool,
    arguments: Mapping[str, Any],
    preview: tuple[PreviewField, ...],
    verdict: Verdict,
    requester: Actor,
    reason: str,
    now: datetime,
) -> Proposal:
    """The proposal that a verdict makes of a call, with no place in any conversation yet."""
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
        description=summary_of(tool, arguments),
        preview=preview,
        reason=" ".join(reason.split())[:500],
        requester=requester,
        state=State.APPROVED if auto else State.PROPOSED,
        decided_by=f"policy ({verdict.rule})" if auto else None,
        decided_at=now if auto else None,
        round=1,
        version=1,
        digest=digest(tool.name, tool.version, arguments),
        created_at=now,
        updated_at=now,
        **terms(verdict, now),
    )


def old_values(preview: Sequence[PreviewField]) -> list[tuple[str, str | None]]:
    """What a preview says is there now; where that moves, people look again."""
    return [(f.field, f.old_value) for f in preview]


def unhidden(given: Mapping[str, Any], before: Mapping[str, Any], shown: Mapping[str, Any]) -> dict[str, Any]:
    """What came back as it was shown stays what it was; raises BadArguments for a secret half rewritten."""
    true: dict[str, Any] = {}
    for key, value in given.items():
        if key in before and value == shown[key]:
            true[key] = before[key]
        elif isinstance(value, Mapping) and isinstance(before.get(key), Mapping):
            true[key] = unhidden(value, before[key], shown[key])
        elif HIDDEN in canonical(value):
            raise BadArguments({key: "a part of this is hidden; write all of it, or leave it as it was"})
        else:
            true[key] = value
    return true


async def in_time(work: Any, seconds: float) -> Any:
    """Wait for a tool's own coroutine; raises ToolTimedOut where it does not end by itself in time."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        raise ToolTimedOut(f"It did not answer within {seconds:g} s.") from None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ToolTimedOut("It broke itself off before it answered.") from None  # nobody cancelled us


@contextlib.contextmanager
def told(tool_name: str) -> Iterator[None]:
    """Whatever a tool's own code breaks with here becomes a ToolError, which a person hears."""
    try:
        yield
    except ToolError:
        raise
    except Exception as error:  # noqa: BLE001 - a tool's own code
        raise ToolError(words_of(error, tool_name)) from None


def words_of(error: Exception, tool_name: str) -> str:
    """What went wrong, for the model and people; the rest is for the log."""
    if isinstance(error, ToolError):
        return error.message
    log.error("tool raised", tool=tool_name, exc_info=error)
    return f"{tool_name} broke with {type(error).__name__}; the log says more."
