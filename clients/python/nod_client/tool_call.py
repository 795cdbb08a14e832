"""The value of a tool call: one call of one of Nod's own tools, made with the token of an agent.

A call that only reads runs immediately. Any other waits until people approve it; then Nod runs the tool.
`Nod.call_tool` returns the value.
"""

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nod_client.request import Json

OPEN = frozenset({"waiting", "running"})
"""The states of a call that has not ended."""


@dataclass(frozen=True, slots=True)
class CallFile:
    """A file that came with a tool's output."""

    name: str
    media_type: str
    data: bytes  # of a text file the text in UTF-8

    @classmethod
    def read(cls, shown: Json) -> "CallFile":
        """Parse an entry of a call's ``files``: its ``data`` is base64, or null if it has ``text``.

        Raises KeyError, TypeError or ValueError.
        """
        base64_data, text = shown["data"], shown["text"]
        data = str(text).encode() if base64_data is None else b64decode(base64_data, validate=True)
        return cls(str(shown["name"]), str(shown["media_type"]), data)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that Nod makes for this token, and its state."""

    id: str
    """The id, for `Nod.look_call`; empty for a call that only read, which has ended."""
    tool: str
    end: str
    """The state: waiting (for people), running, or how the call ended.

    That is succeeded, failed, declined, expired, withdrawn (by people), cancelled (by this client),
    undeliverable or outcome_unknown.
    """
    text: str
    """The tool's output, or the state in words."""
    is_error: bool
    joined: bool = False
    """True if this is an earlier call that was made again: the same key is the same call."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """The arguments with which the tool runs, people's edits included."""
    edited: tuple[str, ...] = ()
    """The edits that people made before the tool ran, each in words."""
    decided_by: str | None = None
    """The name of the person who decided; None if no one did."""
    files: tuple[CallFile, ...] = ()

    @property
    def is_open(self) -> bool:
        """True while it waits for people or runs."""
        return self.end in OPEN

    @classmethod
    def read(cls, shown: Json) -> "ToolCall":
        """Read the API's ``call``. Raises KeyError, TypeError or ValueError for any other object."""
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
