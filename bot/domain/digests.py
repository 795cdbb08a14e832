"""The digest of a call, and the canonical JSON that it is made over.

Only what people saw can run: before a run, the digest is made again and compared.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from bot.domain.connections import Connection

_CANONICAL_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def to_canonical_json(value: Any) -> str:
    """Return JSON with sorted keys and no spaces: equal values give equal text."""
    return _CANONICAL_ENCODER.encode(value)


def make_digest(
    tool_name: str, tool_version: str, arguments: Mapping[str, Any], connection: Connection | None = None
) -> str:
    """Return the SHA-256, in hex, of a call: the tool, its version, every argument, and the account."""
    call: list[Any] = [tool_name, tool_version, arguments]
    if connection:
        call.append(connection.key)
    return hashlib.sha256(to_canonical_json(call).encode()).hexdigest()
