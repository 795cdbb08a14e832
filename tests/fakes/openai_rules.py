"""What OpenAI refuses in a Chat Completions request, as far as Nod could get it wrong. Pure."""

import re
from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]
_ROLES = {"system", "developer", "user", "assistant", "tool"}
_PICTURE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}$")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class RefusalError(Exception):
    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


def check(body: Json) -> None:
    """Raise RefusalError, with words like OpenAI's, for a request it would answer with 400."""
    if not body.get("messages"):
        raise RefusalError("[] is too short - 'messages'")
    if body.get("stream_options") and not body.get("stream"):
        raise RefusalError("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
    _check_messages(body["messages"])
    _check_tools(body)


def _check_messages(messages: list[Json]) -> None:
    awaited: set[str] = set()
    for position, message in enumerate(messages):
        role = message.get("role")
        if role not in _ROLES:
            raise RefusalError(f"Invalid value: '{role}'. Supported: {sorted(_ROLES)}.", "invalid_value")
        if awaited and role != "tool":
            raise RefusalError(_unanswered(awaited))
        if role == "tool":
            if message.get("tool_call_id") not in awaited:
                raise RefusalError(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceding message "
                    "with 'tool_calls'."
                )
            awaited.discard(message["tool_call_id"])
        if isinstance(message.get("content"), list):
            check_parts(message["content"], {"text": ("text",), "image_url": ("image_url",)})
        calls = message.get("tool_calls")
        if message.get("content") is None and not calls:
            raise RefusalError(f"Invalid 'content': expected a string, got null. messages[{position}]")
        if role == "assistant" and not calls and not str(message["content"]).strip():
            # OpenAI takes it; Mistral's, Anthropic's and Bedrock's compatible servers do not
            raise RefusalError("Assistant message must have either content or tool_calls, but not none.")
        if calls is not None:
            awaited = _called(role, calls)
    if awaited:
        raise RefusalError(_unanswered(awaited))


def check_parts(parts: list[Json], kinds: Mapping[str, tuple[str, ...]]) -> None:
    """Words and pictures: each with the fields of its kind, a picture as PNG, JPEG, GIF or WebP in base64."""
    for part in parts:
        if part.get("type") not in kinds:
            raise RefusalError(f"Invalid value: '{part.get('type')}'. Supported: {sorted(kinds)}.")
        if lacking := [name for name in kinds[part["type"]] if name not in part]:
            raise RefusalError(f"Missing required parameter: '{lacking[0]}'.", "missing_required_parameter")
        if found := part.get("image_url"):
            address = found if isinstance(found, str) else found["url"]
            if not _PICTURE.match(address):
                raise RefusalError(f"Invalid image URL: {address[:40]!r}.", "invalid_image_url")


def _called(role: str, calls: list[Json]) -> set[str]:
    if role != "assistant":
        raise RefusalError(f"'tool_calls' is not allowed with role '{role}'.")
    if not calls:
        raise RefusalError("[] is too short - 'tool_calls'")
    ids = [call["id"] for call in calls]
    if len(set(ids)) < len(ids):
        raise RefusalError("Duplicate tool_call ids.")
    for call in calls:
        if call.get("type") != "function" or not _NAME.fullmatch(call["function"].get("name", "")):
            raise RefusalError("Invalid tool call.")
        if not isinstance(call["function"].get("arguments"), str):
            raise RefusalError("Invalid type for 'arguments': expected a string.")
    return set(ids)


def _unanswered(ids: set[str]) -> str:
    return (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        f"'tool_call_id'. These tool_call_ids did not have response messages: {', '.join(sorted(ids))}"
    )


def _check_tools(body: Json) -> None:
    tools = body.get("tools")
    if tools is None:
        if "parallel_tool_calls" in body:
            raise RefusalError("'parallel_tool_calls' is only allowed when 'tools' are specified.")
        return
    if not tools:
        raise RefusalError("[] is too short - 'tools'")
    names = [tool["function"]["name"] for tool in tools]
    for name in names:
        if not _NAME.fullmatch(name):
            raise RefusalError(f"Invalid 'tools': '{name}' does not match pattern '^[a-zA-Z0-9_-]+$'.")
        if names.count(name) > 1:
            raise RefusalError(f"Tool names must be unique. '{name}' is given twice.")
    for tool in tools:
        function = tool["function"]
        if function.get("strict"):
            check_strict(function["name"], function["parameters"], ())


def check_strict(name: str, schema: Any, path: tuple[str, ...] = ()) -> None:
    """Walk a schema as strict mode does: all properties required, no others allowed, no defaults."""
    if isinstance(schema, list):
        for item in schema:
            check_strict(name, item, path)
    if not isinstance(schema, Mapping):
        return
    if problem := _strict_problem(schema):
        words = f"Invalid schema for function '{name}': In context={path}, {problem}"
        raise RefusalError(words, "invalid_function_parameters")
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            for inner, subschema in value.items():
                check_strict(name, subschema, (*path, key, inner))
        elif key not in ("enum", "const", "required", "examples"):
            check_strict(name, value, (*path, key))


def _strict_problem(schema: Json) -> str | None:
    if "default" in schema:
        return "'default' is not permitted."
    if schema.get("type") != "object":
        return None
    if schema.get("additionalProperties") is not False:
        return "'additionalProperties' is required to be supplied and to be false."
    if sorted(schema.get("required", ())) != sorted(schema.get("properties", {})):
        return "'required' is required to be supplied and to be an array including every key in properties."
    return None
