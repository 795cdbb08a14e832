"""Parts of a streamed answer in the form in which the next request sends them back. Pure."""

import json
from typing import Any

from bot.domain.model import ToolCall, ToolResult
from bot.domain.outcomes import OUTSIDE

Json = dict[str, Any]


def format_tool_result(result: ToolResult) -> str:
    if result.outside:
        return f"{OUTSIDE}\n{result.text}"
    return result.text


def find_part_to_send_back(call: ToolCall, model: str, part: str) -> Json:
    """Return the data that the same model's server sent with an answer or call and wants back."""
    found = call.extra.get(part)
    if found and call.extra.get("model") == model:
        return dict(found)
    return {}


def argument_object(arguments: str) -> str:
    """Repair arguments that are sent back: some servers refuse every history that holds broken JSON."""
    try:
        whole = isinstance(json.loads(arguments), dict)
    except ValueError:
        whole = False
    if whole:
        return arguments
    return json.dumps({"not_json": arguments})
