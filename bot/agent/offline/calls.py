"""The calls of one answer of the scripted model."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from bot.agent.model import ToolCall


def calls_at(place: int, wanted: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[ToolCall, ...]:
    """Tools and their arguments as calls, whose IDs follow from them and from how far the transcript is.

    So the same transcript gives the same answer.
    """
    made = []
    for position, (tool, arguments) in enumerate(wanted):
        text = json.dumps(arguments, ensure_ascii=False)
        mark = hashlib.sha256(f"{place} {position} {tool} {text}".encode()).hexdigest()[:16]
        made.append(ToolCall(f"call_{mark}", tool, text))
    return tuple(made)
