"""Names of tools and of their arguments, as every maker accepts them."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

_MAX_NAME_CHARS = 64
_DIGEST_CHARS = 8
_MAX_SEARCHED_PARTS = 60_000
_ACCEPTED_NAME = re.compile(rf"[a-zA-Z0-9_.-]{{1,{_MAX_NAME_CHARS}}}")


def make_tool_name(name: str) -> str:
    """Return a tool's name as it is sent: a letter, then letters, digits, ``_`` and ``-``."""
    clean = re.sub(r"[^a-zA-Z0-9_-]", "_", name)
    if not clean[:1].isalpha():
        clean = f"t{clean}"
    if clean == name and len(name) <= _MAX_NAME_CHARS:
        return name
    return _add_digest(clean, name)


def make_argument_name(name: str, taken: AbstractSet[str]) -> str:
    """Return an argument's name as it is sent; none of those that are taken."""
    clean = re.sub(r"[^a-zA-Z0-9_.-]+", "_", name).strip("_") or "argument"
    if len(clean) <= _MAX_NAME_CHARS and clean not in taken:
        return clean
    return _add_digest(clean, name)


def _add_digest(clean: str, name: str) -> str:
    """Return a name that is short enough, and that no other name leads to."""
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_DIGEST_CHARS]
    return f"{clean[: _MAX_NAME_CHARS - len(digest) - 1]}_{digest}"


def is_accepted_name(name: str) -> bool:
    """Tell if an argument of this name can be sent as it is."""
    return _ACCEPTED_NAME.fullmatch(name) is not None


def list_property_names(schema: Any) -> Iterator[str]:
    """Yield the names of all properties in a schema, as far as its first 60,000 parts go."""
    unread, count = [schema], 0
    while unread and count < _MAX_SEARCHED_PARTS:
        part = unread.pop()
        count += 1
        if isinstance(part, Mapping):
            properties = part.get("properties")
            if isinstance(properties, Mapping):
                yield from properties
            unread.extend(part.values())
        elif isinstance(part, list):
            unread.extend(part)
