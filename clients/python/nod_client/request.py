"""The value of a request: what was asked of people, and its state, as the API's ``proposal`` gives it.

A request is a question (`Nod.ask`), or the use of a tool that needs permission (`Nod.permit`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

Json = dict[str, Any]


class End(StrEnum):
    """The state of a request: `WAITING`, or how it ended. Only `APPROVED` means: do it."""

    WAITING = "waiting"  # no one has decided yet
    APPROVED = "approved"
    DECLINED = "declined"  # a person said no
    EXPIRED = "expired"  # no one decided in time
    CANCELLED = "cancelled"  # withdrawn
    UNDELIVERABLE = "undeliverable"  # no one who may decide could be shown it
    FAILED = "failed"  # approved, but Nod could not finish
    OUTCOME_UNKNOWN = "outcome_unknown"  # approved, but Nod stopped before it could say so


_STATE_TEXTS = {  # the sentences for states in which no person's name is said
    End.WAITING: "No one has decided yet. No one refused it.",
    End.EXPIRED: "No one decided in time. No one refused it.",
    End.CANCELLED: "It was withdrawn before anyone decided. No one refused it.",
    End.UNDELIVERABLE: "It could not be shown to anyone who may decide. No one refused it.",
    End.FAILED: "It was approved, but Nod could not finish. Ask again.",
    End.OUTCOME_UNKNOWN: "It was approved, but Nod stopped before it could say so. Ask again.",
}


@dataclass(frozen=True, slots=True)
class Request:
    """A request and its state."""

    id: str
    end: End
    arguments: Mapping[str, Any]
    """The contents: as they were sent, or, once approved, as people approved them.

    A question has ``summary``, ``details`` and ``fields``; the use of a tool has ``tool_name`` and ``input``.
    """
    expires_at: datetime
    """The time at which people can no longer decide."""
    decided_by: str | None = None
    """The name of the person who decided; None if no one did."""
    edited_by: str | None = None
    """The name of the person who changed the contents; None if they are as they were sent."""
    reason: str | None = None
    """The reason for a refusal, in the person's words; None if they gave none."""

    @property
    def summary(self) -> str:
        """The one line of a question that says what you are about to do."""
        return str(self.arguments.get("summary", ""))

    @property
    def fields(self) -> Mapping[str, str]:
        """The fields of a question, as text."""
        given: Mapping[str, str] = self.arguments.get("fields", {})
        return given

    @property
    def input(self) -> Json:
        """The input of a tool's use. Once it is approved, use this input: people may have edited it."""
        return dict(self.arguments.get("input", {}))

    @property
    def told(self) -> str:
        """The state in one or two sentences, for people and models: "Ana declined it. Reason: too early"."""
        match self.end:
            case End.APPROVED:
                edited = f" {self.edited_by} changed it first." if self.edited_by else ""
                return f"{self.decided_by} approved it.{edited}"
            case End.DECLINED:
                reason = f" Reason: {self.reason}" if self.reason else ""
                return f"{self.decided_by} declined it.{reason}"
        return _STATE_TEXTS[self.end]

    @classmethod
    def read(cls, shown: Json) -> "Request":
        """Read the API's ``proposal``. Raises KeyError, TypeError or ValueError for any other object."""
        ident, arguments = shown["id"], shown["arguments"]
        if not (isinstance(ident, str) and ident.isalnum()):
            raise ValueError("id")
        if not isinstance(arguments, dict) or not isinstance(arguments.get("input", {}), dict):
            raise TypeError("arguments")
        return cls(
            id=ident,
            end=End(shown["end"]),
            arguments=arguments,
            expires_at=datetime.fromisoformat(shown["expires_at"]),
            decided_by=_text_or_none(shown["decided_by"]),
            edited_by=_text_or_none(shown["edited_by"]),
            reason=_text_or_none(shown["decline_reason"]),
        )


def _text_or_none(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"{value!r:.40} is not text")
