"""Calls that a model wrote into its text, in the dialect that it was trained in. Pure.

A dialect is a way to write calls, such as ``<function=search><parameter=query>login</parameter></function>``.
A server with a parser for it turns such text into calls; a server without one leaves it in the answer. Then
`read_written_calls` reads it, strictly: the calls must be complete, outside of code, of tools that are
offered, and nothing else in the text may look like a call. A call that people or tools wrote word for word
before is a quotation and runs nothing. Every call passes the same gate as any other call.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import uuid4

from bot.agent.openai.answers.arguments import make_object_without_repeats, read_arguments
from bot.agent.openai.answers.calls import find_offered_name
from bot.domain.model import Entry, ToolCall, ToolResult, ToolSpec, UserText

QUOTED_TEXT = (
    "this call stands word for word in what a person or a tool said, and a quotation calls nothing. If it is "
    "what people want, write the call in your own words."
)
_MAX_CHARS = 20_000  # longer text is an answer, whatever it looks like
_MAX_CALLS = 20

# parts of the patterns below
_NAME_PART = r"([\w.-]{1,64})"
_NAMESPACE_PART = r"(?:[|\uff5c\u2016]{0,2}DSML[|\uff5c\u2016]{0,2}|[\w-]{1,20}:)?"
"""A namespace before a tag's name, as in "antml:invoke"; DSML is that of DeepSeek."""

# tags of Claude: <invoke name="x"><parameter name="a" string="true">1</parameter></invoke>
_INVOKE_PATTERN = re.compile(
    rf'<{_NAMESPACE_PART}invoke\s+name="{_NAME_PART}"\s*>(.*?)</{_NAMESPACE_PART}invoke>', re.DOTALL
)
_PARAMETER_PATTERN = re.compile(
    rf'<{_NAMESPACE_PART}parameter\s+name="(?P<name>[^"<>]{{1,64}})"(?:\s+string="(?P<is_text>true|false)")?\s*>'
    rf"(?P<value>.*?)</{_NAMESPACE_PART}parameter>",
    re.DOTALL,
)

# tags of Qwen: <tool_call><function=x><parameter=a>1</parameter></function>
_FUNCTION_PATTERN = re.compile(
    rf"(?:<tool_call>\s*)?<function=[\"']?{_NAME_PART}[\"']?\s*>(.*?)</function>", re.DOTALL
)
_FIELD_PATTERN = re.compile(r"<parameter=(?P<name>[^<>]{1,64})>(?P<value>.*?)</parameter>", re.DOTALL)

# tags of GLM: <tool_call>x<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>
_KEYED_PATTERN = re.compile(rf"<tool_call>\s*{_NAME_PART}\s*((?:<arg_key>.*?)?)</tool_call>", re.DOTALL)
_PAIR_PATTERN = re.compile(
    r"<arg_key>(?P<name>[^<>]{1,64})</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>", re.DOTALL
)
_TAG_PATTERNS = (
    (_INVOKE_PATTERN, _PARAMETER_PATTERN),
    (_FUNCTION_PATTERN, _FIELD_PATTERN),
    (_KEYED_PATTERN, _PAIR_PATTERN),
)
"""The patterns of a call and of its fields, by dialect.

A call's groups are the tool's name and the call's body. A field's groups are ``name``, ``value`` and, in a
dialect that has such a mark, ``is_text``: "true" if the value is a text, "false" if it is JSON.
"""

# a name, with marks around it, before the JSON object of the arguments
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

# the opening mark before JSON that has both name and arguments: <tool_call>{"name": "x", "arguments": {}}
_WRAPPED_PATTERN = re.compile(
    r"(?:<tool_calls?>|<TOOLCALL>|<\|tool_calls?\|>|<function_?call>|<tool_use>|\[TOOL_CALLS\]|\[TOOL_REQUEST\]"
    r"|<\|python_tag\|>|<\|START_ACTION\|>|<\|plugin\|>)\s*(?=[\[{])"
)

# marks around calls, which are dropped from the prose
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

# marks that only a model's template writes, and no person or tool
_TOKEN_PATTERN = re.compile(
    r"<\|[\w ]{1,40}\|?>|<\uff5c|DSML|✿FUNCTION|<arg_key>|<\w{1,20}:(?:tool_call|invoke)"
    r"|<start_function_call>|(?:\A|\n)>>>\w"
)

# code of Markdown, in fences and in backticks
_FENCED_PART = r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)"
_CODE_PATTERN = re.compile(rf"{_FENCED_PART}|`[^`\n]{{1,500}}`", re.MULTILINE | re.DOTALL)
_SEPARATOR_PATTERN = re.compile(r"\s*[,;]?\s*(?=\{|\[\s*\{)")  # between two objects, or lists of objects
_DECODER = json.JSONDecoder(strict=False)
_CALL_DECODER = json.JSONDecoder(object_pairs_hook=make_object_without_repeats, strict=False)
"""A decoder that refuses an object with a name twice."""


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call in a text, from ``start`` to ``end``."""

    start: int
    end: int
    name: str
    arguments: str  # as they are written, usually a JSON object
    as_written: str  # the part of the text that a quotation of the call would repeat


class SplitAnswer(NamedTuple):
    """The text of an answer, divided into prose and calls."""

    prose: str  # the full text if there are no calls
    calls: tuple[ToolCall, ...] = ()


def has_call_marks(text: str) -> bool:
    """Tell if a text has marks that only a model's own template produces."""
    return len(text) <= _MAX_CHARS and _TOKEN_PATTERN.search(_CODE_PATTERN.sub("", text)) is not None


def read_written_calls(text: str, specs: Sequence[ToolSpec], history: Sequence[Entry]) -> SplitAnswer:
    """Split an answer's text into prose and calls. If any call is in doubt, all of it is prose.

    ``specs``: the offered tools. ``history``: the conversation before the answer, to recognise quotations. A
    quotation is returned as a call that is refused.
    """
    offered = {spec.name: spec.parameters for spec in specs}
    if len(text) > _MAX_CHARS or not offered:
        return SplitAnswer(text)
    calls = sorted(_find_calls(text, offered), key=lambda call: call.start)
    if not calls or len(calls) > _MAX_CALLS or any(call.name not in offered for call in calls):
        return SplitAnswer(text)
    outside = ""  # the text outside the calls
    end = 0  # the end of the last call
    for call in calls:
        if call.start < end:  # two calls overlap
            return SplitAnswer(text)
        outside += text[end : call.start]
        end = call.end
    outside += text[end:]
    if _OPENING_PATTERN.search(_CODE_PATTERN.sub("", outside)):
        return SplitAnswer(text)
    prose = _MARK_PATTERN.sub("", outside).strip()
    texts = [entry.text for entry in history if isinstance(entry, UserText | ToolResult)]
    earlier_text = _remove_spaces("\n".join(texts))
    return SplitAnswer(prose, tuple(_make_call(call, earlier_text) for call in calls))


def _make_call(call: WrittenCall, earlier_text: str) -> ToolCall:
    """Return a written call as a tool call.

    ``earlier_text``: what people and tools wrote, without white space.
    """
    arguments = read_arguments(call.arguments)
    is_quotation = _remove_spaces(call.as_written) in earlier_text
    refusal = QUOTED_TEXT if is_quotation else arguments.refusal
    return ToolCall(f"call_{uuid4().hex}", call.name, arguments.text, refusal=refusal)


def _remove_spaces(text: str) -> str:
    return "".join(text.split())


def _find_calls(text: str, offered: Mapping[str, Mapping[str, Any]]) -> Iterator[WrittenCall]:
    """Yield the calls in a text, dialect by dialect. ``offered``: the schemas of the tools, by name."""
    stripped = text.strip()
    if stripped.startswith(("{", "[{")) and stripped.endswith(("}", "]")):
        yield from _read_objects(stripped, 0, offered, must_be_full_text=True)
        return
    code_spans = [match.span() for match in _CODE_PATTERN.finditer(text)]
    for pattern, field_pattern in _TAG_PATTERNS:
        for match in pattern.finditer(text):
            if not _is_within(match.start(), code_spans):
                yield from _read_tags(match, field_pattern, offered)
    for match in _NAMED_PATTERN.finditer(text):
        if not _is_within(match.start(), code_spans):
            yield from _read_named(text, match, offered)
    for match in _WRAPPED_PATTERN.finditer(text):
        if not _is_within(match.start(), code_spans):
            yield from _read_objects(text, match.end(), offered, start=match.start())


def _is_within(position: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= position < end for start, end in spans)


def _read_tags(
    match: re.Match[str], field_pattern: re.Pattern[str], offered: Mapping[str, Mapping[str, Any]]
) -> Iterator[WrittenCall]:
    """Yield the call that is written in tags; nothing if its fields can't be read."""
    name = find_offered_name(match[1], offered.keys())
    arguments = _read_fields(match[2], field_pattern, offered.get(name, {}))
    if arguments is not None:
        yield WrittenCall(match.start(), match.end(), name, arguments, match[0])


def _read_named(text: str, match: re.Match[str], offered: Mapping[str, Any]) -> Iterator[WrittenCall]:
    """Yield the call whose name and marks ``match`` has; nothing unless exactly one object follows."""
    end = _find_object_end(text, match.end())
    if end is None or _SEPARATOR_PATTERN.match(text, end):
        return  # with two objects it is not certain which of them has the arguments
    name = next(group for group in match.groups() if group)
    arguments = text[match.end() : end]
    as_written = text[match.start() : end]
    yield WrittenCall(match.start(), end, find_offered_name(name, offered.keys()), arguments, as_written)


def _find_object_end(text: str, position: int) -> int | None:
    """Return the end of the JSON object that begins at a position; None if no object begins there."""
    try:
        value, end = _DECODER.raw_decode(text, position)
    except (ValueError, RecursionError):
        return None
    return end if isinstance(value, dict) else None


def _read_objects(
    text: str, position: int, offered: Mapping[str, Any], *, start: int = 0, must_be_full_text: bool = False
) -> Iterator[WrittenCall]:
    """Yield the calls of JSON objects, or lists of objects, in a row; nothing if an object is no call.

    ``position``: of the first object. ``start``: where the first call begins, at the mark before its object.
    Each later call begins at the end of the one before. ``must_be_full_text``: there is one object or list,
    and no other text.
    """
    calls: list[WrittenCall] = []
    while True:
        try:
            value, end = _CALL_DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return
        for item in value if isinstance(value, list) else [value]:
            call = _read_object(item)
            if call is None:
                return
            name, arguments = call
            as_written = text[position:end]
            calls.append(
                WrittenCall(start, end, find_offered_name(name, offered.keys()), arguments, as_written)
            )
            start = end  # a further call of the same list gets an empty span, so that calls don't overlap
        separator = _SEPARATOR_PATTERN.match(text, end)
        if must_be_full_text or separator is None:
            break
        position = separator.end()
    has_other_text = must_be_full_text and text[end:].strip() != ""
    if not has_other_text:
        yield from calls


def _read_object(item: Any) -> tuple[str, str] | None:
    """Return the tool's name and the arguments of a call in one of the usual shapes; None for anything else.

    For example ``{"function": {"name": "x", "arguments": {}}}``, or the inner object alone.
    """
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


def _read_fields(body: str, field_pattern: re.Pattern[str], schema: Mapping[str, Any]) -> str | None:
    """Return the arguments in the body of a tag as JSON; None if it has other text, or a field twice.

    ``schema``: the schema of the tool's arguments.
    """
    if body.strip().startswith("{"):
        is_one_object = _find_object_end(body.strip(), 0) == len(body.strip())
        return body if is_one_object else None
    if field_pattern.sub("", body).strip():
        return None
    properties = schema.get("properties")
    schemas = properties if isinstance(properties, Mapping) else {}
    arguments: dict[str, Any] = {}
    for match in field_pattern.finditer(body):
        name = match["name"].strip()
        if name in arguments:
            return None
        is_text_mark = match.groupdict().get("is_text")
        arguments[name] = _read_value(match["value"], is_text_mark, schemas.get(name))
    return json.dumps(arguments, ensure_ascii=False)


def _read_value(text: str, is_text_mark: str | None, schema: Any) -> Any:
    """Return a value that is written without quotes, in the type of the tool's schema.

    ``is_text_mark``: "true" if the model marked the value as text, "false" if not, None without such a mark.
    """
    text = text.removeprefix("\n").removesuffix("\n")
    types = _list_types(schema)
    may_be_text = not types or "string" in types
    if is_text_mark == "true" or (is_text_mark is None and may_be_text):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _list_types(schema: Any) -> set[str]:
    """Return the types that a schema and its alternatives state; empty if they state none."""
    if not isinstance(schema, Mapping):
        return set()
    stated = schema.get("type")
    alternatives = schema.get("anyOf")
    if isinstance(stated, str):
        stated = [stated]
    types = set(map(str, stated)) if isinstance(stated, list) else set()
    if isinstance(alternatives, list):
        for alternative in alternatives:
            types |= _list_types(alternative)
    return types
