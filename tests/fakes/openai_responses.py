"""OpenAI's Responses API: what it refuses, and an answer's events, made of Chat Completions' chunks. Pure.

What a model reasoned is given out encrypted where that is asked for, and nothing else is accepted again.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.fakes.model_dialects import check_openai_tools, check_strict_schema
from tests.fakes.openai_rules import RefusalError, check_parts

Json = dict[str, Any]
_ROLES = {"system", "developer", "user", "assistant"}
_PARTS = {"input_text": ("text",), "input_image": ("image_url", "detail")}
_CHAT_ONLY = ("messages", "max_tokens", "reasoning_effort", "n")
_ids = itertools.count(1)
_given_out: set[str] = set()


def check_response(body: Json) -> None:
    """Raise RefusalError, with words like OpenAI's, for a request it would answer with 400."""
    for name in _CHAT_ONLY:
        if name in body:
            raise RefusalError(f"Unsupported parameter: '{name}'.", "unsupported_parameter")
    if "include_usage" in (body.get("stream_options") or {}):
        raise RefusalError("Unknown parameter: 'stream_options.include_usage'.", "unknown_parameter")
    if not body.get("input"):
        raise RefusalError("Missing required parameter: 'input'.", "missing_required_parameter")
    _check_items(body["input"], stored=body.get("store", True))
    tools = body.get("tools", ())
    for at, tool in enumerate(tools):
        if "name" not in tool or "function" in tool:
            raise RefusalError(
                f"Missing required parameter: 'tools[{at}].name'.", "missing_required_parameter"
            )
    check_openai_tools([(tool, tool["parameters"]) for tool in tools])
    for tool in tools:
        # https://platform.openai.com/docs/guides/migrate-to-responses: functions are strict by default
        if tool.get("strict", True):
            check_strict_schema(tool["name"], tool["parameters"])


def _check_items(items: Sequence[Json], *, stored: bool) -> None:
    called: set[str] = set()
    for at, item in enumerate(items):
        match item.get("type", "message"):
            case "message":
                _check_message(item, at)
            case "reasoning":
                if item.get("encrypted_content") not in _given_out:
                    raise RefusalError(
                        f"Item '{item.get('id')}' not found. Items are not persisted when `store` is false."
                    )
                if "status" in item:
                    raise RefusalError(f"Unknown parameter: 'input[{at}].status'.", "unknown_parameter")
            case "function_call":
                if "id" in item and not stored:
                    raise RefusalError(
                        f"Item '{item['id']}' of type 'function_call' was provided without its reasoning."
                    )
                called.add(item["call_id"])
            case "function_call_output":
                if item.get("call_id") not in called:
                    raise RefusalError(
                        f"No tool call found for function call output with call_id {item.get('call_id')}."
                    )
                called.discard(item["call_id"])
            case other:
                raise RefusalError(
                    f"Invalid value: '{other}'. Supported values are: 'message'…", "invalid_value"
                )
    if called:
        raise RefusalError(f"No tool output found for function call {min(called)}.")


def _check_message(item: Json, at: int) -> None:
    if item.get("role") not in _ROLES:
        raise RefusalError(f"Invalid value: '{item.get('role')}'.", "invalid_value")
    if not isinstance(item.get("content"), str | list):
        raise RefusalError(f"Missing required parameter: 'input[{at}].content'.")
    if item["role"] == "user" and isinstance(item["content"], list):
        check_parts(item["content"], _PARTS)


def response_events(body: Json, chunks: Sequence[Json]) -> Iterator[Json]:
    """The events of a stream; the last has the complete response."""
    text, calls, finish, usage, thought = "", list[Json](), "stop", Json(), ""
    yield {"type": "response.created", "response": {"object": "response", "status": "in_progress"}}
    for chunk in chunks:
        usage = chunk.get("usage") or usage
        for choice in chunk.get("choices", ()):
            delta, finish = choice["delta"], choice.get("finish_reason") or finish
            if said := delta.get("content"):
                text += said
                yield _delta("output_text", said)
            if said := delta.get("reasoning_content"):
                thought += said
                yield _delta("reasoning_summary_text", said)
            for each in delta.get("tool_calls") or ():
                function = each["function"]
                if function.get("name"):
                    calls.append({"call_id": each["id"], "name": function["name"], "arguments": ""})
                calls[-1]["arguments"] += function["arguments"]
                yield _delta("function_call_arguments", function["arguments"])
    output = [*_reasoned(body, thought), *_message(text)]
    output += [
        {"type": "function_call", "id": f"fc_{next(_ids)}", "status": "completed", **each} for each in calls
    ]
    for at, item in enumerate(output):
        yield {"type": "response.output_item.done", "output_index": at, "item": item}
    yield _end(finish, output, usage)


def _delta(kind: str, said: str) -> Json:
    return {"type": f"response.{kind}.delta", "output_index": 0, "item_id": "x", "delta": said}


def _reasoned(body: Json, thought: str) -> list[Json]:
    if not thought:
        return []
    item = {"type": "reasoning", "id": f"rs_{next(_ids)}", "status": "completed", "summary": []}
    if "reasoning.encrypted_content" in body.get("include", ()):
        item["encrypted_content"] = f"secret-{item['id']}"
        _given_out.add(item["encrypted_content"])
    return [item]


def _message(text: str) -> list[Json]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return (
        [{"type": "message", "id": f"msg_{next(_ids)}", "role": "assistant", "content": content}]
        if text
        else []
    )


def _end(finish: str, output: list[Json], usage: Mapping[str, int]) -> Json:
    reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
    status = "incomplete" if finish in reasons else "completed"
    response: Json = {"object": "response", "id": "resp_1", "status": status, "output": output}
    response["incomplete_details"] = {"reason": reasons[finish]} if finish in reasons else None
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)  # type: ignore[attr-defined]
    response["usage"] = {
        "input_tokens": usage.get("prompt_tokens", 0),
        "output_tokens": usage.get("completion_tokens", 0),
        "input_tokens_details": {"cached_tokens": cached},
    }
    return {"type": f"response.{status}", "response": response}
