"""Names of tools and of their arguments in the form in which they are sent to every maker's server.

Makers limit the characters and the length of names. A name that fits is sent as it is. Any other name is
cleaned and, if it would be too long or could be mistaken for another, gets a digest of the original at its
end.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

_MAX_NAME_CHARS = 64
_DIGEST_CHARS = 8
_MAX_SEARCHED_PARTS = 60_000  # the most values of a schema in which names are searched
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
    """Return the name under which an argument is sent. It differs from the ``taken`` names."""
    clean = re.sub(r"[^a-zA-Z0-9_.-]+", "_", name).strip("_") or "argument"
    if len(clean) <= _MAX_NAME_CHARS and clean not in taken:
        return clean
    return _add_digest(clean, name)  # a name with a digest is not taken by any other name


def _add_digest(clean: str, name: str) -> str:
    """Return the cleaned name, shortened, with a digest of the original name."""
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_DIGEST_CHARS]
    return f"{clean[: _MAX_NAME_CHARS - len(digest) - 1]}_{digest}"


def is_accepted_name(name: str) -> bool:
    """Tell if an argument of this name can be sent as it is."""
    return _ACCEPTED_NAME.fullmatch(name) is not None


def list_property_names(schema: Any) -> Iterator[str]:
    """Yield the names of all properties in a schema, at any depth, up to a limit of its size."""
    unread = [schema]
    count = 0
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
