"""Calls that a model wrote into its text, in the dialect that it was trained in. Pure.

Servers without a parser for the dialect leave such calls in the text. They are read strictly: outside code,
complete, for tools that are offered, and nothing else left that looks like a call. A call that people or
tools wrote word for word is a quotation and runs nothing. Every call passes the same gate as any other call.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from bot.agent.openai.answers.arguments import make_distinct_object, read_arguments
from bot.agent.openai.answers.calls import find_name
from bot.domain.model import Entry, ToolCall, ToolResult, ToolSpec, UserText

QUOTED = (
    "this call stands word for word in what a person or a tool said, and a quotation calls nothing. If it is "
    "what people want, write the call in your own words."
)
_MAX_CHARS = 20_000  # longer text is an answer, whatever it looks like
_MAX_CALLS = 20
_NAME_PART = r"([\w.-]{1,64})"
_NAMESPACE_PART = r"(?:[|\uff5c\u2016]{0,2}DSML[|\uff5c\u2016]{0,2}|[\w-]{1,20}:)?"
"""The pattern of a name before the tag's own."""
_INVOKE_PATTERN = re.compile(
    rf'<{_NAMESPACE_PART}invoke\s+name="{_NAME_PART}"\s*>(.*?)</{_NAMESPACE_PART}invoke>', re.DOTALL
)
_PARAMETER_PATTERN = re.compile(
    rf'<{_NAMESPACE_PART}parameter\s+name="([^"<>]{{1,64}})"(?:\s+string="(true|false)")?\s*>(.*?)</{_NAMESPACE_PART}parameter>',
    re.DOTALL,
)
_FUNCTION_PATTERN = re.compile(
    rf"(?:<tool_call>\s*)?<function=[\"']?{_NAME_PART}[\"']?\s*>(.*?)</function>", re.DOTALL
)
_FIELD_PATTERN = re.compile(r"<parameter=([^<>]{1,64})()>(.*?)</parameter>", re.DOTALL)
_KEYED_PATTERN = re.compile(rf"<tool_call>\s*{_NAME_PART}\s*((?:<arg_key>.*?)?)</tool_call>", re.DOTALL)
_PAIR_PATTERN = re.compile(r"<arg_key>([^<>]{1,64})()</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)
_TAG_PATTERNS = (
    (_INVOKE_PATTERN, _PARAMETER_PATTERN),
    (_FUNCTION_PATTERN, _FIELD_PATTERN),
    (_KEYED_PATTERN, _PAIR_PATTERN),
)
_NAMED_PATTERN = re.compile(
    rf"(?:<\|tool_call_begin\|>\s*)?(?:functions\.)?{_NAME_PART}:\d{{1,6}}"  # Kimi
    r"\s*<\|tool_call_argument_begin\|>\s*(?=\{)"
    rf"|<\uff5ctool▁call▁begin\uff5c>(?:function<\uff5ctool▁sep\uff5c>)?{_NAME_PART}"  # DeepSeek
    r"(?:<\uff5ctool▁sep\uff5c>|\s*```json)\s*(?=\{)"
    rf"|\[TOOL_CALLS\]\s*{_NAME_PART}(?:\[CALL_ID\][\w-]{{1,40}})?(?:\[ARGS\])?\s*(?=\{{)"  # Mistral
    rf"|(?:<\|start\|>assistant)?(?:<\|channel\|>commentary)? ?to=functions\.{_NAME_PART}"  # gpt-oss
    r"[^{}\n]{0,80}<\|message\|>\s*(?=\{)"
    rf"|(?:\A|\n)>>>{_NAME_PART}\n\s*(?=\{{)"  # Functionary
    rf"|✿FUNCTION✿:\s*{_NAME_PART}\s*✿ARGS✿:\s*(?=\{{)"  # Qwen's agent
)
_WRAPPED_PATTERN = re.compile(
    r"(?:<tool_calls?>|<TOOLCALL>|<\|tool_calls?\|>|<function_?call>|<tool_use>|\[TOOL_CALLS\]|\[TOOL_REQUEST\]"
    r"|<\|python_tag\|>|<\|START_ACTION\|>|<\|plugin\|>)\s*(?=[\[{])"
)
_MARK_PATTERN = re.compile(
    r"</?(?:tool_calls?|TOOLCALL|function_?calls?|tool_use|function)>|<\|/?[\w:/ ]{1,40}\|>"
    r"|<\uff5c[^<>\n]{1,40}\uff5c>|\[/?(?:END_)?TOOL_\w{1,12}\]|\[ARGS\]|✿\w{1,12}✿:?"
    rf"|</?{_NAMESPACE_PART}(?:function_calls|tool_calls?|calls)>|```(?:json)?"
)
_OPENING_PATTERN = re.compile(
    r"<(?:tool_call|TOOLCALL|function_?call|tool_use)>|<function=|<arg_key>|tool_call_begin\|>|tool▁call▁begin"
    rf"|<{_NAMESPACE_PART}(?:invoke|parameter)\b|\[TOOL_(?:CALLS|REQUEST)\]|<\|python_tag\|>|to=functions\.|✿FUNCTION"
)
"""The beginning of a call. If the prose still has such a beginning, not all calls could be read."""
_TOKEN_PATTERN = re.compile(
    r"<\|[\w ]{1,40}\|?>|<\uff5c|DSML|✿FUNCTION|<arg_key>|<\w{1,20}:(?:tool_call|invoke)"
    r"|<start_function_call>|(?:\A|\n)>>>\w"
)
_FENCED_PART = r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)"
_CODE_PATTERN = re.compile(rf"{_FENCED_PART}|`[^`\n]{{1,500}}`", re.MULTILINE | re.DOTALL)
_SEPARATOR_PATTERN = re.compile(r"\s*[,;]?\s*(?=\{|\[\s*\{)")
"""The separator of one object and the next."""
_DECODER = json.JSONDecoder(strict=False)
_CALL_DECODER = json.JSONDecoder(object_pairs_hook=make_distinct_object, strict=False)


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call in a text, from ``start`` to ``end``.

    ``quote`` is the part that a quotation of the call would repeat.
    """

    start: int
    end: int
    name: str
    arguments: str
    quote: str


def has_tokens(text: str) -> bool:
    """Tell if a text has marks that only a model's own template produces."""
    return len(text) <= _MAX_CHARS and _TOKEN_PATTERN.search(_CODE_PATTERN.sub("", text)) is not None


def read_written_calls(
    text: str, specs: Sequence[ToolSpec], history: Sequence[Entry]
) -> tuple[str, tuple[ToolCall, ...]]:
    """Split an answer's text into prose and calls. If any call is in doubt, return the text and no calls."""
    offered = {spec.name: spec.parameters for spec in specs}
    if len(text) > _MAX_CHARS or not offered:
        return text, ()
    calls = sorted(_find_calls(text, offered), key=lambda call: call.start)
    if not calls or len(calls) > _MAX_CALLS or any(call.name not in offered for call in calls):
        return text, ()
    outside, end = "", 0  # the text outside the calls
    for call in calls:
        if call.start < end:
            return text, ()
        outside += text[end : call.start]
        end = call.end
    outside += text[end:]
    if _OPENING_PATTERN.search(_CODE_PATTERN.sub("", outside)):
        return text, ()
    prose = _MARK_PATTERN.sub("", outside).strip()
    texts = [entry.text for entry in history if isinstance(entry, UserText | ToolResult)]
    spoken = _remove_spaces("\n".join(texts))
    return prose, tuple(_make_call(call, spoken) for call in calls)


def _make_call(call: WrittenCall, spoken: str) -> ToolCall:
    arguments = read_arguments(call.arguments)
    refused = QUOTED if _remove_spaces(call.quote) in spoken else arguments.refused
    return ToolCall(f"call_{uuid4().hex}", call.name, arguments.text, refused=refused)


def _remove_spaces(text: str) -> str:
    return "".join(text.split())


def _find_calls(text: str, offered: Mapping[str, Mapping[str, Any]]) -> Iterator[WrittenCall]:
    stripped = text.strip()
    if stripped.startswith(("{", "[{")) and stripped.endswith(("}", "]")):
        yield from _read_objects(stripped, 0, offered, is_all=True)
        return
    code = [match.span() for match in _CODE_PATTERN.finditer(text)]
    for pattern, field in _TAG_PATTERNS:
        for match in pattern.finditer(text):
            if _is_within(match.start(), code):
                continue
            name = find_name(match[1], offered.keys())
            arguments = _read_fields(match[2], field, offered.get(name, {}))
            if arguments:
                yield WrittenCall(match.start(), match.end(), name, arguments, match[0])
    for match in _NAMED_PATTERN.finditer(text):
        if _is_within(match.start(), code):
            continue
        end = _end_of_object(text, match.end())
        if end and not _SEPARATOR_PATTERN.match(
            text, end
        ):  # with two objects it is not certain which of them has the arguments
            name = next(group for group in match.groups() if group)
            quote = text[match.start() : end]
            yield WrittenCall(
                match.start(), end, find_name(name, offered.keys()), text[match.end() : end], quote
            )
    for match in _WRAPPED_PATTERN.finditer(text):
        if not _is_within(match.start(), code):
            yield from _read_objects(text, match.end(), offered, start=match.start())


def _is_within(position: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= position < end for start, end in spans)


def _end_of_object(text: str, at: int) -> int:
    """Return the end of the JSON object that begins at ``at``; 0 if there is no object."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return 0
    return end if isinstance(value, dict) else 0


def _read_objects(
    text: str, at: int, offered: Mapping[str, Any], *, start: int = 0, is_all: bool = False
) -> Iterator[WrittenCall]:
    """Yield the calls of JSON objects, or lists of objects, in a row; nothing if an object is no call."""
    calls: list[WrittenCall] = []
    while True:
        try:
            value, end = _CALL_DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        for item in value if isinstance(value, list) else [value]:
            call = _read_object(item)
            if call is None:
                return
            name, arguments = call
            calls.append(WrittenCall(start, end, find_name(name, offered.keys()), arguments, text[at:end]))
            start = end  # the other calls of a list have the same position
        following = _SEPARATOR_PATTERN.match(text, end)
        if is_all or following is None:
            break
        at = following.end()
    if not (is_all and text[end:].strip()):
        yield from calls


def _read_object(item: Any) -> tuple[str, str] | None:
    """Return the name and the arguments of one call; None for anything else."""
    inner = item.get("function", item) if isinstance(item, dict) else None
    if not isinstance(inner, dict):
        return None
    name = inner.get("name") or inner.get("tool_name")
    fields = [inner[key] for key in ("arguments", "parameters", "input") if key in inner]
    if not isinstance(name, str) or len(fields) != 1:
        return None
    if isinstance(fields[0], str):
        return name, fields[0]
    return name, json.dumps(fields[0], ensure_ascii=False)


def _read_fields(body: str, field: re.Pattern[str], schema: Mapping[str, Any]) -> str:
    """Return a call's arguments as JSON; empty if there is other text between them."""
    if body.strip().startswith("{"):
        if _end_of_object(body.strip(), 0) == len(body.strip()):
            return body
        return ""
    if field.sub("", body).strip():
        return ""
    properties = schema.get("properties")
    fields = [(name.strip(), text, is_text) for name, is_text, text in field.findall(body)]
    if len({name for name, _, _ in fields}) < len(fields):
        return ""
    schemas = properties if isinstance(properties, Mapping) else {}
    arguments = {name: _read_value(text, is_text, schemas.get(name)) for name, text, is_text in fields}
    return json.dumps(arguments, ensure_ascii=False)


def _read_value(text: str, is_text: str, schema: Any) -> Any:
    """Return a value that is written without quotes, in the type of the tool's schema."""
    text = text.removeprefix("\n").removesuffix("\n")
    types = _list_types(schema)
    if is_text == "true" or (not is_text and (not types or "string" in types)):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _list_types(schema: Any) -> set[str]:
    if not isinstance(schema, Mapping):
        return set()
    kind, choices = schema.get("type"), schema.get("anyOf")
    listed = [kind] if isinstance(kind, str) else kind
    types = set(map(str, listed)) if isinstance(listed, list) else set()
    for choice in choices if isinstance(choices, list) else ():
        types |= _list_types(choice)
    return types
