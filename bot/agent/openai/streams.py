"""Parts of a streamed answer in the form in which the next request sends them back. Pure."""

import json
from typing import Any

from bot.domain.model import ToolCall, ToolResult
from bot.domain.outcomes import OUTSIDE

Json = dict[str, Any]


def format_tool_result(result: ToolResult) -> str:
    return f"{OUTSIDE}\n{result.text}" if result.outside else result.text


def find_part_to_send_back(call: ToolCall, model: str, part: str) -> Json:
    """Return the data that the same model's server sent with an answer or call and wants back."""
    found = call.extra.get(part)
    return dict(found) if found and call.extra.get("model") == model else {}


def argument_object(arguments: str) -> str:
    """Repair arguments that are sent back: some servers refuse every history that holds broken JSON."""
    try:
        whole = isinstance(json.loads(arguments), dict)
    except ValueError:
        whole = False
    return arguments if whole else json.dumps({"not_json": arguments})
