"""The part of a request that a server refuses, where a request without it can succeed. Pure.

Words of makers, gateways and their libraries; sources in the checkers of the tests' model server.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import openai

STATUSES = frozenset({400, 422, 500})
"""With which servers refuse a request for what is in it; 500 is what templates and grammars end with."""

_MAX_CHARS = 20_000  # of an error that are read
_PLACES = (
    re.compile(r"function_declarations\[(\d{1,4})\]"),
    re.compile(r"\btools\[(\d{1,4})\]"),
    re.compile(r"\btools\.(\d{1,4})\b"),
    re.compile(r"\btools[\"']?[,/] ?(\d{1,4})\b"),
)
"""Where in a request a tool is; the first pattern that is found counts: Gemini's are in ``tools[0]``."""
_NAMED = re.compile(
    r"[\"'`]([A-Za-z0-9_-]{1,64})[\"'`]|\b(?:function|tool|because):? ([A-Za-z0-9_-]{1,64})\b"
)
"""A tool's name in quotes, or behind a word that says what it is of."""
_SAID_TO_BE = re.compile(r"\b(?:function|tool)s?:? [\"'`]([A-Za-z0-9_-]{1,64})[\"'`]", re.IGNORECASE)
"""A name in quotes that is said to be a tool's; other names next to it are of fields."""
_OF_TOOLS = re.compile(
    r"schema|grammar|function[_ ]?(?:declaration|parameter|call)|\btools?\b|properties|pattern must",
    re.IGNORECASE,
)
_OF_MESSAGES = re.compile(
    r"messages?[\[.]\d|\brole\b|context length|too long for|max_tokens|support tool|tool use", re.IGNORECASE
)
_OF_ORDER = re.compile(
    r"messages?[\[.]\s?\d|(?:unexpected|invalid|after) role|roles must alternate"
    r"|tool_use[`'\"]? (?:ids?|blocks?)|tool_result|must be followed by tool|tool_call_id"
    r"|function (?:response|call) (?:parts?|turn)",
    re.IGNORECASE,
)
"""About the messages, though words such as "tool" and "user" may stand there that tools are called."""
_OF_REASONING = re.compile(
    r"invalid_encrypted_content"
    r"|encrypted content .{0,500}could not be (?:verified|decrypted)"
    r"|invalid [`'\"]?(?:thought_?)?signature"
    r"|(?:thought.?signature|signature).{0,40}(?:invalid|not valid|corrupted)"
    r"|corrupted thought signature"
    r"|thinking[`'\"]? (?:or [`'\"]?redacted_thinking[`'\"]? )?blocks? .{0,80}"
    r"(?:cannot be modified|must remain|invalid)"
    r"|reasoning.{0,60}(?:could not be verified|not found|is invalid|extra inputs are not permitted)"
    r"|item [`'\"]?rs_\w+[`'\"]? .{0,80}(?:not found|without its)"
    r"|extra_content"
    r"|reasoning_(?:details|content).{0,80}(?:invalid|unexpected|not permitted|unsupported|unknown)",
    re.IGNORECASE | re.DOTALL,
)
_OF_NO_REASONING = re.compile(
    r"missing.{0,20}reasoning_content|reasoning_content.{0,60}(?:is missing|is required|must be passed back)",
    re.IGNORECASE,
)
_OF_NO_SIGNATURE = re.compile(r"missing (?:a )?[`'\"]?thought.?signature", re.IGNORECASE)


def words_of(error: openai.APIStatusError) -> str:
    """Return all that a server said, the words of those behind it as well, without the marks of quoting."""
    try:
        said = json.dumps(error.body, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        said = ""
    return f"{error.message} {said}"[:_MAX_CHARS].replace("\\", "")


def is_of_reasoning(words: str) -> bool:
    """Return whether what a model reasoned before can't be verified any longer."""
    return _OF_REASONING.search(words) is not None and not is_of_signature(words)


def is_of_missing_reasoning(words: str) -> bool:
    """Return whether a server wants each answer back with what was thought, also those of other models."""
    return _OF_NO_REASONING.search(words) is not None


def is_of_signature(words: str) -> bool:
    """Return whether a call of another model lacks the signature that this one gives to its own."""
    return _OF_NO_SIGNATURE.search(words) is not None


def is_of_tools(words: str) -> bool:
    """Return whether some tool is at fault, as far as the words tell, and no message."""
    is_about_messages = _OF_MESSAGES.search(words) or _OF_ORDER.search(words)
    return _OF_TOOLS.search(words) is not None and not is_about_messages


def find_tools(words: str, names: Sequence[str]) -> list[str]:
    """Return the names of the tools that a refusal is about, in the order in which they were sent."""
    found: set[str] = set()
    if _OF_ORDER.search(words):
        return []
    for place in _PLACES:
        places = {int(each) for each in place.findall(words)}
        if places:
            found = {names[at] for at in places if at < len(names)}
            break
    if _OF_TOOLS.search(words) or "function" in words:
        said_to_be = set(_SAID_TO_BE.findall(words)) & set(names)
        found |= said_to_be or set(_find_quoted(words)) & set(names)
    return [name for name in names if name in found]


def _find_quoted(words: str) -> Iterator[Any]:
    for match in _NAMED.finditer(words):
        yield match[1] or match[2]
