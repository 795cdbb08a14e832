"""Calls that a model wrote into its text, in the dialect that it was trained in. Pure.

Servers without a parser for it leave them there. Read strictly: outside code, complete, for tools that are
offered, and nothing else left that looks like a call. One that stands word for word in what people or tools
said is a quotation and runs nothing. What is read passes the same gate as any other call.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from bot.agent.openai.answers.arguments import read_arguments
from bot.agent.openai.answers.calls import find_name
from bot.domain.model import Entry, ToolCall, ToolResult, ToolSpec, UserText

QUOTED = (
    "this call stands word for word in what a person or a tool said, and a quotation calls nothing. If it is "
    "what people want, write the call in your own words."
)
_MAX_CHARS = 20_000  # longer text is an answer, whatever it looks like
_MAX_CALLS = 20
_NAME = r"([\w.-]{1,64})"
_SPACE = r"(?:[|\uff5c\u2016]{0,2}DSML[|\uff5c\u2016]{0,2}|[\w-]{1,20}:)?"  # a name before the tag's own
_INVOKE = re.compile(rf'<{_SPACE}invoke\s+name="{_NAME}"\s*>(.*?)</{_SPACE}invoke>', re.DOTALL)
_PARAMETER = re.compile(
    rf'<{_SPACE}parameter\s+name="([^"<>]{{1,64}})"(?:\s+string="(true|false)")?\s*>(.*?)</{_SPACE}parameter>',
    re.DOTALL,
)
_FUNCTION = re.compile(rf"(?:<tool_call>\s*)?<function=[\"']?{_NAME}[\"']?\s*>(.*?)</function>", re.DOTALL)
_FIELD = re.compile(r"<parameter=([^<>]{1,64})()>(.*?)</parameter>", re.DOTALL)
_KEYED = re.compile(rf"<tool_call>\s*{_NAME}\s*((?:<arg_key>.*?)?)</tool_call>", re.DOTALL)
_PAIR = re.compile(r"<arg_key>([^<>]{1,64})()</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)
_TAGGED = ((_INVOKE, _PARAMETER), (_FUNCTION, _FIELD), (_KEYED, _PAIR))
_NAMED = re.compile(
    rf"(?:<\|tool_call_begin\|>\s*)?(?:functions\.)?{_NAME}:\d{{1,6}}"  # Kimi
    r"\s*<\|tool_call_argument_begin\|>\s*(?=\{)"
    rf"|<\uff5ctool▁call▁begin\uff5c>(?:function<\uff5ctool▁sep\uff5c>)?{_NAME}"  # DeepSeek
    r"(?:<\uff5ctool▁sep\uff5c>|\s*```json)\s*(?=\{)"
    rf"|\[TOOL_CALLS\]\s*{_NAME}(?:\[CALL_ID\][\w-]{{1,40}})?(?:\[ARGS\])?\s*(?=\{{)"  # Mistral
    rf"|(?:<\|start\|>assistant)?(?:<\|channel\|>commentary)? ?to=functions\.{_NAME}"  # gpt-oss
    r"[^{}\n]{0,80}<\|message\|>\s*(?=\{)"
    rf"|(?:\A|\n)>>>{_NAME}\n\s*(?=\{{)"  # Functionary
    rf"|✿FUNCTION✿:\s*{_NAME}\s*✿ARGS✿:\s*(?=\{{)"  # Qwen's agent
)
_WRAPPED = re.compile(
    r"(?:<tool_calls?>|<TOOLCALL>|<\|tool_calls?\|>|<function_?call>|<tool_use>|\[TOOL_CALLS\]|\[TOOL_REQUEST\]"
    r"|<\|python_tag\|>|<\|START_ACTION\|>|<\|plugin\|>)\s*(?=[\[{])"
)
_MARK = re.compile(
    r"</?(?:tool_calls?|TOOLCALL|function_?calls?|tool_use|function)>|<\|/?[\w:/ ]{1,40}\|>"
    r"|<\uff5c[^<>\n]{1,40}\uff5c>|\[/?(?:END_)?TOOL_\w{1,12}\]|\[ARGS\]|✿\w{1,12}✿:?"
    rf"|</?{_SPACE}(?:function_calls|tool_calls?|calls)>|```(?:json)?"
)
_OPENED = re.compile(
    r"<(?:tool_call|TOOLCALL|function_?call|tool_use)>|<function=|<arg_key>|tool_call_begin\|>|tool▁call▁begin"
    rf"|<{_SPACE}(?:invoke|parameter)\b|\[TOOL_(?:CALLS|REQUEST)\]|<\|python_tag\|>|to=functions\.|✿FUNCTION"
)
"""What begins one call; where it stands in what is left, not all could be read."""
_TOKENS = re.compile(
    r"<\|[\w ]{1,40}\|?>|<\uff5c|DSML|✿FUNCTION|<arg_key>|<\w{1,20}:(?:tool_call|invoke)"
    r"|<start_function_call>|(?:\A|\n)>>>\w"
)
_FENCED = r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)"
_CODE = re.compile(rf"{_FENCED}|`[^`\n]{{1,500}}`", re.MULTILINE | re.DOTALL)
_NEXT = re.compile(r"\s*[,;]?\s*(?=\{|\[\s*\{)")
"""What stands between one object and the next."""
_DECODER = json.JSONDecoder(strict=False)


def _object_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs as a dictionary. Raises ValueError on a repeated name."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


_CALL_DECODER = json.JSONDecoder(object_pairs_hook=_object_once, strict=False)


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call in a text, from ``start`` to ``end``.

    ``quote`` is the part that a quotation of it would repeat.
    """

    start: int
    end: int
    name: str
    arguments: str
    quote: str


def has_tokens(text: str) -> bool:
    """Return whether a text has marks that only a model's own template brings about."""
    return len(text) <= _MAX_CHARS and _TOKENS.search(_CODE.sub("", text)) is not None


def read_written_calls(
    text: str, specs: Sequence[ToolSpec], history: Sequence[Entry]
) -> tuple[str, tuple[ToolCall, ...]]:
    """Split an answer's text into prose and calls; no calls where any of them is in doubt."""
    offered = {spec.name: spec.parameters for spec in specs}
    if len(text) > _MAX_CHARS or not offered:
        return text, ()
    found = sorted(_find(text, offered), key=lambda call: call.start)
    if not found or len(found) > _MAX_CALLS or any(call.name not in offered for call in found):
        return text, ()
    said, at = "", 0
    for call in found:
        if call.start < at:
            return text, ()
        said, at = said + text[at : call.start], call.end
    left = said + text[at:]
    if _OPENED.search(_CODE.sub("", left)):
        return text, ()
    said = _MARK.sub("", left).strip()
    heard = _squeeze("\n".join(entry.text for entry in history if isinstance(entry, UserText | ToolResult)))
    return said, tuple(_call(call, heard) for call in found)


def _call(call: WrittenCall, heard: str) -> ToolCall:
    read = read_arguments(call.arguments)
    refused = QUOTED if _squeeze(call.quote) in heard else read.refused
    return ToolCall(f"call_{uuid4().hex}", call.name, read.text, refused=refused)


def _squeeze(text: str) -> str:
    return "".join(text.split())


def _find(text: str, offered: Mapping[str, Mapping[str, Any]]) -> Iterator[WrittenCall]:
    bare = text.strip()
    if bare.startswith(("{", "[{")) and bare.endswith(("}", "]")):
        yield from _objects(bare, 0, offered, is_all=True)
        return
    code = [match.span() for match in _CODE.finditer(text)]
    for pattern, field in _TAGGED:
        for match in pattern.finditer(text):
            name = find_name(match[1], offered.keys())
            if not _is_within(match.start(), code) and (
                arguments := _fields(match[2], field, offered.get(name, {}))
            ):
                yield WrittenCall(match.start(), match.end(), name, arguments, match[0])
    for match in _NAMED.finditer(text):
        if _is_within(match.start(), code):
            end = 0
        else:
            end = _end_of_object(text, match.end())
        if end and not _NEXT.match(text, end):  # with two objects it is in doubt which are the arguments
            name = next(group for group in match.groups() if group)
            quote = text[match.start() : end]
            yield WrittenCall(
                match.start(), end, find_name(name, offered.keys()), text[match.end() : end], quote
            )
    for match in _WRAPPED.finditer(text):
        if not _is_within(match.start(), code):
            yield from _objects(text, match.end(), offered, start=match.start())


def _is_within(at: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= at < end for start, end in spans)


def _end_of_object(text: str, at: int) -> int:
    """Return the end of a JSON object that begins at ``at``; 0 for none."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return 0
    return end if isinstance(value, dict) else 0


def _objects(
    text: str, at: int, offered: Mapping[str, Any], *, start: int = 0, is_all: bool = False
) -> Iterator[WrittenCall]:
    """Yield the calls of JSON objects in a row, or of lists of them; none where one of them is no call."""
    found: list[WrittenCall] = []
    while True:
        try:
            value, end = _CALL_DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        for made in value if isinstance(value, list) else [value]:
            call = _read_object(made)
            if call is None:
                return
            name, arguments = call
            found.append(WrittenCall(start, end, find_name(name, offered.keys()), arguments, text[at:end]))
            start = end  # the others of a list stand in the same place
        following = _NEXT.match(text, end)
        if is_all or following is None:
            break
        at = following.end()
    if not (is_all and text[end:].strip()):
        yield from found


def _read_object(made: Any) -> tuple[str, str] | None:
    """Return the name and the arguments of one call; None for anything else."""
    inner = made.get("function", made) if isinstance(made, dict) else None
    if not isinstance(inner, dict):
        return None
    name = inner.get("name") or inner.get("tool_name")
    fields = [inner[key] for key in ("arguments", "parameters", "input") if key in inner]
    if not isinstance(name, str) or len(fields) != 1:
        return None
    return name, fields[0] if isinstance(fields[0], str) else json.dumps(fields[0], ensure_ascii=False)


def _fields(body: str, field: re.Pattern[str], schema: Mapping[str, Any]) -> str:
    """Return the arguments as JSON; "" where something else stands between them."""
    if body.strip().startswith("{"):
        if _end_of_object(body.strip(), 0) == len(body.strip()):
            return body
        return ""
    if field.sub("", body).strip():
        return ""
    properties = schema.get("properties")
    given = [(name.strip(), text, kind) for name, kind, text in field.findall(body)]
    if len({name for name, _, _ in given}) < len(given):
        return ""
    known = properties if isinstance(properties, Mapping) else {}
    found = {name: _value(text, kind, known.get(name)) for name, text, kind in given}
    return json.dumps(found, ensure_ascii=False)


def _value(text: str, is_text: str, schema: Any) -> Any:
    """Return a value written without quotes, as the tool's schema has it."""
    text = text.removeprefix("\n").removesuffix("\n")
    kinds = _kinds(schema)
    if is_text == "true" or (not is_text and (not kinds or "string" in kinds)):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _kinds(schema: Any) -> set[str]:
    if not isinstance(schema, Mapping):
        return set()
    kind, choices = schema.get("type"), schema.get("anyOf")
    kinds = [kind] if isinstance(kind, str) else kind
    found = set(map(str, kinds)) if isinstance(kinds, list) else set()
    for choice in choices if isinstance(choices, list) else ():
        found |= _kinds(choice)
    return found
