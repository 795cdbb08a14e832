"""Calls that a model wrote into its text instead of making them: nothing runs, so the model is told. Pure."""

import json
import re
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Any

_LONGEST_CALL = 20_000  # characters; longer text is an answer, whatever it looks like
_MOST = 20  # places looked at
_TAGS = re.compile(r"<(?:function=|invoke name=)[\"']?([\w.-]{1,64})")  # as Qwen writes them
_OBJECT = re.compile(r'\{\s{0,9}"(?:type|id|name|function|tool_calls|arguments|parameters|input)"')
_DECODER = json.JSONDecoder()


def is_written_call(text: str, names: AbstractSet[str]) -> bool:
    """Whether a tag, or JSON somewhere in it, names one of the tools together with arguments for it."""
    if len(text) > _LONGEST_CALL:
        return False
    if not names.isdisjoint(_TAGS.findall(text)):
        return True
    for begun in islice(_OBJECT.finditer(text), _MOST):
        try:
            written, _ = _DECODER.raw_decode(text, begun.start())
        except (ValueError, RecursionError):
            continue
        if _names_tool(written, names):
            return True
    return False


def _names_tool(written: Any, names: AbstractSet[str]) -> bool:
    if isinstance(written, list):
        return bool(written) and all(_names_tool(each, names) for each in written)
    if not isinstance(written, dict):
        return False
    inner = written.get("function") or written.get("tool_calls")
    if isinstance(inner, dict | list):
        return _names_tool(inner, names)
    return written.get("name") in names and bool({"arguments", "parameters", "input"} & written.keys())
