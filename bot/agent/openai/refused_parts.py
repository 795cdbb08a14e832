"""The part of a request that a server refuses, found in the words of the refusal. Pure.

A request without that part may succeed. ``requests.py`` asks here, for each refusal, if it is about a tool or
about earlier reasoning that is sent back. Some servers sign reasoning, or encrypt it, and refuse what they
can't verify. Others refuse an answer without its reasoning. The patterns match the messages of model makers,
gateways and inference servers. Each message and its source is in ``tests/fakes``, where the checkers of the
tests' model server refuse with the same words.
"""

import json
import re
from collections.abc import Iterator, Sequence

import openai

REFUSAL_STATUSES = frozenset({400, 422, 500})
"""HTTP statuses of a refusal for the contents of a request; 500 is for a failed template or grammar."""

_MAX_CHARS = 20_000  # the most characters of an error that are read
_TOOL_POSITIONS = (
    re.compile(r"function_declarations\[(\d{1,4})\]"),
    re.compile(r"\btools\[(\d{1,4})\]"),
    re.compile(r"\btools\.(\d{1,4})\b"),
    re.compile(r"\btools[\"']?[,/] ?(\d{1,4})\b"),
)
"""The position of a tool in a request, such as "tools[3].function.name".

The first pattern that matches counts: Gemini's tools are all in ``tools[0]``.
"""
_POSSIBLE_NAME = re.compile(
    r"[\"'`]([A-Za-z0-9_-]{1,64})[\"'`]|\b(?:function|tool|because):? ([A-Za-z0-9_-]{1,64})\b"
)
"""A tool's name in quotes, or after "tool", "function" or "because" (Google: "… because x has …")."""
_STATED_TOOL_NAME = re.compile(r"\b(?:function|tool)s?:? [\"'`]([A-Za-z0-9_-]{1,64})[\"'`]", re.IGNORECASE)
"""A name in quotes after "tool" or "function"; other names next to it are names of fields."""
_ABOUT_TOOLS = re.compile(
    r"schema|grammar|function[_ ]?(?:declaration|parameter|call)|\btools?\b|properties|pattern must",
    re.IGNORECASE,
)
"""Words that a refusal of a tool has."""
_ABOUT_OTHER_PARTS = re.compile(
    r"messages?[\[.]\d|\brole\b|context length|too long for|max_tokens|support tool|tool use", re.IGNORECASE
)
"""Words of refusals for a message, for too much text, or for tools in general, so for no single tool."""
_ABOUT_MESSAGE_ORDER = re.compile(
    r"messages?[\[.]\s?\d|(?:unexpected|invalid|after) role|roles must alternate"
    r"|tool_use[`'\"]? (?:ids?|blocks?)|tool_result|must be followed by tool|tool_call_id"
    r"|function (?:response|call) (?:parts?|turn)",
    re.IGNORECASE,
)
"""Complaints about the order of messages.

They quote roles, such as "tool" and "user", which may be names of tools as well. So no tool's name is looked
for in them.
"""
_REJECTED_REASONING = re.compile(
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
"""Complaints about reasoning that is sent back: it can't be verified, or its field is not known."""
_MISSING_REASONING = re.compile(
    r"missing.{0,20}reasoning_content|reasoning_content.{0,60}(?:is missing|is required|must be passed back)",
    re.IGNORECASE,
)
"""Complaints about an answer without the reasoning before it."""
_MISSING_SIGNATURE = re.compile(r"missing (?:a )?[`'\"]?thought.?signature", re.IGNORECASE)
"""Complaints about a call without the signature of its model."""


def find_error_text(error: openai.APIStatusError) -> str:
    """Return a server's full message and its answer's body, without backslashes before quotation marks."""
    try:
        body = json.dumps(error.body, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        body = ""
    return f"{error.message} {body}"[:_MAX_CHARS].replace("\\", "")


def rejects_reasoning(error_text: str) -> bool:
    """Return whether a server refuses earlier reasoning that was sent back.

    A missing signature is another complaint.
    """
    return _REJECTED_REASONING.search(error_text) is not None and not wants_signature(error_text)


def wants_reasoning_back(error_text: str) -> bool:
    """Return whether a server wants the reasoning of each answer back, also of another model's answer."""
    return _MISSING_REASONING.search(error_text) is not None


def wants_signature(error_text: str) -> bool:
    """Return whether a server complains of a call without its model's signature."""
    return _MISSING_SIGNATURE.search(error_text) is not None


def blames_tool(error_text: str) -> bool:
    """Return whether the words of a refusal blame a tool, and no message."""
    is_about_messages = _ABOUT_OTHER_PARTS.search(error_text) or _ABOUT_MESSAGE_ORDER.search(error_text)
    return _ABOUT_TOOLS.search(error_text) is not None and not is_about_messages


def find_tools(error_text: str, names: Sequence[str]) -> list[str]:
    """Return the names of the refused tools, in the order in which they were sent."""
    if _ABOUT_MESSAGE_ORDER.search(error_text):
        return []
    blamed: set[str] = set()
    for pattern in _TOOL_POSITIONS:
        positions = {int(number) for number in pattern.findall(error_text)}
        if positions:
            blamed = {names[position] for position in positions if position < len(names)}
            break
    # "function" alone is enough here, since only names of tools that were sent count
    if _ABOUT_TOOLS.search(error_text) or "function" in error_text:
        stated = set(_STATED_TOOL_NAME.findall(error_text)) & set(names)
        possible = set(_list_possible_names(error_text)) & set(names)
        blamed |= stated or possible
    return [name for name in names if name in blamed]


def _list_possible_names(error_text: str) -> Iterator[str]:
    for match in _POSSIBLE_NAME.finditer(error_text):
        yield str(match[1] or match[2])
