"""Calls that a model wrote into its text instead of making them: nothing runs, so the model is told. Pure."""

import json
from collections.abc import Set as AbstractSet
from typing import Any

_LONGEST = 20_000  # characters; longer text is an answer, whatever it looks like
_OPENINGS = ("```json", "```", "<tool_call>", "[TOOL_CALLS]", "<|python_tag|>")
_CLOSINGS = ("```", "</tool_call>")


def is_written_call(text: str, names: AbstractSet[str]) -> bool:
    """Whether all of the text is JSON that names one of the tools together with arguments for it."""
    if len(text) > _LONGEST:
        return False
    bare = text.strip()
    for opening in _OPENINGS:
        bare = bare.removeprefix(opening)
    for closing in _CLOSINGS:
        bare = bare.removesuffix(closing)
    try:
        written = json.loads(bare)
    except (ValueError, RecursionError):
        return False
    return _names_tool(written, names)


def _names_tool(written: Any, names: AbstractSet[str]) -> bool:
    if isinstance(written, list):
        return bool(written) and all(_names_tool(each, names) for each in written)
    if not isinstance(written, dict):
        return False
    inner = written.get("function") or written.get("tool_calls")
    if isinstance(inner, dict | list):
        return _names_tool(inner, names)
    return written.get("name") in names and bool({"arguments", "parameters", "input"} & written.keys())
