"""A call of a tool through Nod, and how it stands."""

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nod_client.request import Json

OPEN = frozenset({"waiting", "running"})


@dataclass(frozen=True, slots=True)
class CallFile:
    """A file that came with a tool's answer; a text is its bytes in UTF-8."""

    name: str
    media_type: str
    data: bytes

    @classmethod
    def read(cls, shown: Json) -> "CallFile":
        """Parse an entry of a call's ``files``. Raises KeyError, TypeError or ValueError."""
        coded, text = shown["data"], shown["text"]
        data = str(text).encode() if coded is None else b64decode(coded, validate=True)
        return cls(str(shown["name"]), str(shown["media_type"]), data)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that Nod makes for this token.

    ``end`` is waiting, running, succeeded, failed, declined, expired, withdrawn (by people), cancelled (by
    this client), undeliverable or outcome_unknown. ``text`` is the tool's answer, or how the call stands in
    words. ``id`` is empty of a call that only read. ``arguments`` are those that run, edits included.
    ``files`` came with the answer.
    """

    id: str
    tool: str
    end: str
    text: str
    is_error: bool
    joined: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)
    edited: tuple[str, ...] = ()
    decided_by: str | None = None
    files: tuple[CallFile, ...] = ()

    @property
    def is_open(self) -> bool:
        """True while it waits for people or runs."""
        return self.end in OPEN

    @classmethod
    def read(cls, shown: Json) -> "ToolCall":
        """Read the API's ``call``. Raises KeyError or TypeError for what it does not know."""
        ident, arguments, edited = shown["id"], shown["arguments"], shown["edited"]
        if not isinstance(ident, str) or not (ident == "" or ident.isalnum()):
            raise TypeError("id")
        if not isinstance(arguments, dict | None) or not isinstance(edited, list):
            raise TypeError("arguments")
        return cls(
            id=ident,
            tool=str(shown["tool"]),
            end=str(shown["end"]),
            text=str(shown["text"]),
            is_error=shown["is_error"] is True,
            joined=shown["joined"] is True,
            arguments=arguments or {},
            edited=tuple(map(str, edited)),
            decided_by=shown["decided_by"],
            files=tuple(CallFile.read(each) for each in shown.get("files", ())),
        )
