"""What was asked of people, and how it stands."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

Json = dict[str, Any]


class End(StrEnum):
    """How a request stands. Only `APPROVED` means: do it."""

    WAITING = "waiting"  # no one has decided yet
    APPROVED = "approved"
    DECLINED = "declined"  # a person said no
    EXPIRED = "expired"  # no one decided in time
    CANCELLED = "cancelled"  # withdrawn
    UNDELIVERABLE = "undeliverable"  # no one who may decide could be shown it
    FAILED = "failed"  # approved, but Nod could not finish
    OUTCOME_UNKNOWN = "outcome_unknown"  # approved, but Nod stopped before it could say so


_NO_ONE = {
    End.WAITING: "No one has decided yet. No one refused it.",
    End.EXPIRED: "No one decided in time. No one refused it.",
    End.CANCELLED: "It was withdrawn before anyone decided. No one refused it.",
    End.UNDELIVERABLE: "It could not be shown to anyone who may decide. No one refused it.",
    End.FAILED: "It was approved, but Nod could not finish. Ask again.",
    End.OUTCOME_UNKNOWN: "It was approved, but Nod stopped before it could say so. Ask again.",
}


@dataclass(frozen=True, slots=True)
class Request:
    """A question and its answer.

    ``arguments`` are what was asked, or, once approved, what people approved. ``edited_by`` says that they
    changed it. ``expires_at`` is when it stops waiting.
    """

    id: str
    end: End
    arguments: Mapping[str, Any]
    expires_at: datetime
    decided_by: str | None = None
    edited_by: str | None = None
    reason: str | None = None  # why it was declined, if they said

    @property
    def summary(self) -> str:
        return str(self.arguments.get("summary", ""))

    @property
    def fields(self) -> Mapping[str, str]:
        """The fields of a question, as text."""
        given: Mapping[str, str] = self.arguments.get("fields", {})
        return given

    @property
    def input(self) -> Json:
        """What a function or a tool may be given."""
        return dict(self.arguments.get("input", {}))

    @property
    def told(self) -> str:
        """How it stands, in one sentence or two, for people and models."""
        match self.end:
            case End.APPROVED:
                edited = f" {self.edited_by} changed it first." if self.edited_by else ""
                return f"{self.decided_by} approved it.{edited}"
            case End.DECLINED:
                return f"{self.decided_by} declined it." + (f" Reason: {self.reason}" if self.reason else "")
        return _NO_ONE[self.end]

    @classmethod
    def read(cls, shown: Json) -> "Request":
        """Read the API's ``proposal``. Raises KeyError, TypeError or ValueError for what it does not know."""
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
