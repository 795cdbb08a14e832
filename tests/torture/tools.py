"""The tools that the torture's Nods run: a line each time they acted; on request the process dies."""

import asyncio
import contextlib
import hashlib
import os
import random
import signal
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bot import CallContext, InverseCall, PreviewField, Ran, ToolOutput, TrialOutput, tool
from bot.tools.builtin.trials.cage import Cage
from bot.tools.builtin.trials.command import CommandTrials
from bot.tools.trial import TrialFunctions
from tests.torture import points

EFFECTS = Path(os.environ.get("TORTURE_EFFECTS", "effects.log"))
points.arm(EFFECTS.with_name("points.log"))

BEFORE, AFTER = "die before", "die after"
"""Words of a mark that kill the process that makes it first, before or after it acted."""
LATER = "die later"
"""Words of a mark by which what undoes it kills its process."""
SLOWLY = "slowly"
"""A word of a mark that ends only once the file ``go`` is there."""


def _leave(line: str) -> None:
    with EFFECTS.open("a") as effects:
        effects.write(line)


def _die_once(key: str) -> None:
    with contextlib.suppress(FileExistsError):
        EFFECTS.with_name(f"died-{key}").touch(exist_ok=False)
        os.kill(os.getpid(), signal.SIGKILL)


async def _act(text: str, context: CallContext) -> ToolOutput:
    await asyncio.sleep(random.uniform(0, 0.05))
    if BEFORE in text:
        _die_once(context.idempotency_key)
    await asyncio.to_thread(_leave, f"{context.idempotency_key} {text}\n")
    while SLOWLY in text and not EFFECTS.with_name("go").exists():  # noqa: ASYNC110 - a file rings no bell
        await asyncio.sleep(0.01)
    if AFTER in text:
        _die_once(context.idempotency_key)
    await asyncio.sleep(random.uniform(0, 0.05))
    return ToolOutput(f"Marked {text}.")


@tool()
async def mark(text: str, context: CallContext) -> ToolOutput:
    """Leave a mark.

    Args:
        text: what it says
    """
    return await _act(text, context)


async def _unmarked(ran: Ran) -> InverseCall:
    return InverseCall("unmark", {"text": f"undo {ran.arguments['text']}".replace(LATER, AFTER)})


@tool(undo=_unmarked)
async def mark_back(text: str, context: CallContext) -> ToolOutput:
    """Leave a mark that can be undone.

    Args:
        text: what it says
    """
    return await _act(text, context)


@tool()
async def unmark(text: str, context: CallContext) -> ToolOutput:
    """Undo a mark, which leaves one as well.

    Args:
        text: what it says
    """
    return await _act(text, context)


_WORKSPACE = EFFECTS.with_name("workspace")


def _commands() -> CommandTrials:
    _WORKSPACE.mkdir(exist_ok=True)
    return CommandTrials(_WORKSPACE, Cage(_WORKSPACE))


def _twins(text: str) -> list[Path]:
    name = hashlib.sha256(text.encode()).hexdigest()
    return [_WORKSPACE / "one" / name, _WORKSPACE / "two" / name]


async def _tried(arguments: Mapping[str, Any]) -> TrialOutput:
    """Two files, both or none of which are there in the end."""
    first, second = (each.relative_to(_WORKSPACE) for each in _twins(arguments["text"]))
    script = f'mkdir -p one two; printf %s "$0" > {first}; printf %s "$0" > {second}'
    return await _commands().trial({"argv": ["sh", "-c", script, arguments["text"]]})


async def _applied(arguments: Mapping[str, Any], token: Any, context: CallContext) -> ToolOutput:
    if BEFORE in arguments["text"]:  # in the middle, more or less
        threading.Timer(random.uniform(0, 0.02), _die_once, [context.idempotency_key]).start()
    applied = await _commands().apply(arguments, token, context)
    return replace(_settled(arguments, context.idempotency_key) or ToolOutput(""), kept=applied.kept)


def _settled(arguments: Mapping[str, Any], key: str) -> ToolOutput | None:
    """Leave the line of what is there; what is there by half says so."""
    text = arguments["text"]
    there = [each.exists() and each.read_text() == text for each in _twins(text)]
    if all(there) and f"{key} {text}\n" not in (EFFECTS.read_text() if EFFECTS.exists() else ""):
        _leave(f"{key} {text}\n")
    elif any(there) and not all(there):
        _leave(f"{key} half of it\n")
    return ToolOutput(f"Marked {text}.") if all(there) else None


async def _recovered(arguments: Mapping[str, Any], token: Any, key: str) -> ToolOutput | None:
    found = await _commands().settle(arguments, token, key)
    left = _settled(arguments, key) if found else None
    return left and replace(left, kept=found.kept if found else None)


async def _unchanged(arguments: Mapping[str, Any], token: Any) -> bool:
    return await _commands().unchanged(arguments, token)


async def _untried(ran: Ran) -> InverseCall:
    text = f"undo {ran.arguments['text']}".replace(BEFORE, "").replace(LATER, BEFORE)
    return InverseCall("unmark_tried", {"text": text, **(ran.kept or {})})


def _gone(arguments: Mapping[str, Any], key: str) -> ToolOutput:
    """Leave the line of what is gone; what is gone by half says so."""
    there = [(_WORKSPACE / each["path"]).is_file() for each in arguments["changes"]]
    line = f"{key} {'half of it' if any(there) else arguments['text']}\n"
    if line not in (EFFECTS.read_text() if EFFECTS.exists() else ""):
        _leave(line)
    return ToolOutput(f"Marked {arguments['text']}.")


async def _undone(arguments: Mapping[str, Any], key: str) -> ToolOutput | None:
    settle = _commands().make_undo_tool().settle
    found = await settle({"changes": arguments["changes"]}, key) if settle else None
    return found and _gone(arguments, key)


async def _as_it_is(arguments: Mapping[str, Any]) -> Sequence[PreviewField]:
    preview = _commands().make_undo_tool().preview
    return await preview({"changes": arguments["changes"]}) if preview else ()


@tool(preview=_as_it_is, touches="workspace")
async def _unmark_tried(text: str, changes: list[dict[str, Any]], context: CallContext) -> ToolOutput:
    """Undo a mark in two files.

    Args:
        text: what it says
        changes: each file, and what it becomes
    """
    if BEFORE in text:  # in the middle, more or less
        threading.Timer(random.uniform(0, 0.02), _die_once, [context.idempotency_key]).start()
    await _commands().make_undo_tool().run({"changes": changes}, context)
    return _gone({"text": text, "changes": changes}, context.idempotency_key)


unmark_tried = replace(_unmark_tried, name="unmark_tried", settle=_undone, offered=False, only_for_undo=True)


@tool(trial=_tried, apply=_applied, touches="workspace")
async def _mark_tried(text: str, context: CallContext) -> ToolOutput:
    """Leave a mark in two files, tried first.

    Args:
        text: what it says
    """
    return await _act(text, context)


mark_tried = replace(
    _mark_tried,
    name="mark_tried",
    trial_functions=TrialFunctions(
        _tried, _applied, _unchanged, _recovered, undo=_untried, touches="workspace"
    ),
)


@tool()
async def mark_together(text: str, context: CallContext) -> ToolOutput:
    """Leave a mark that two people must approve.

    Args:
        text: what it says
    """
    return await _act(text, context)


@tool()
async def mark_soon(text: str, context: CallContext) -> ToolOutput:
    """Leave a mark that must be approved within seconds.

    Args:
        text: what it says
    """
    return await _act(text, context)


@tool(writes=False)
async def blow_up(text: str) -> str:
    """Take down the process that reads this.

    Args:
        text: what it is about
    """
    os.kill(os.getpid(), signal.SIGKILL)
    return ""
