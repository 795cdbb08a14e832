"""Earlier calls and results in the form in which a request sends them back to the model's server. Pure.

Both interfaces use these functions when they write a history: ``chat.py`` and ``responses.py``.
"""

import json
from typing import Any

from bot.domain.model import ToolCall, ToolResult
from bot.domain.outcomes import OUTSIDE_WARNING

Json = dict[str, Any]


def format_tool_result(result: ToolResult) -> str:
    """Return the text of a result, marked as data from outside unless Nod wrote it."""
    if result.is_from_tool:
        return f"{OUTSIDE_WARNING}\n{result.text}"
    return result.text


def find_fields_to_send_back(call: ToolCall, model: str, owner: str) -> Json:
    """Return the fields that the model's server sent with a call and wants back; empty without any.

    ``owner``: "call" for the fields of the call, "answer" for those of its answer, which are kept with the
    answer's first call. Fields that another model's server sent are not returned.
    """
    fields = call.server_fields.get(owner)
    if fields and call.server_fields.get("model") == model:
        return dict(fields)
    return {}


def format_arguments(arguments: str) -> str:
    """Return the text of arguments that are sent back, which is always that of a JSON object.

    Any other text is put into an object, since some servers refuse every history with broken JSON.
    """
    try:
        is_object = isinstance(json.loads(arguments), dict)
    except ValueError:
        is_object = False
    if is_object:
        return arguments
    return json.dumps({"not_json": arguments})
