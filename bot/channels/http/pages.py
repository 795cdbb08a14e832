"""Lists a page at a time: a page says with which ``before`` the next one begins."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query
from pydantic import AfterValidator

from bot.domain.proposals import Mark

PAGE = 200
NO_PLACE = "Send what an earlier page gave as `next`."

Limit = Annotated[int, Query(ge=1, le=PAGE, description="how many at most")]
Before = Annotated[str | None, Query(max_length=100, description="what an earlier page gave as `next`")]


def _since(value: datetime) -> datetime:
    """UTC unless it says; the ends of the calendar have no UTC everywhere."""
    try:
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        raise ValueError("this is too far away") from None


Since = Annotated[datetime, AfterValidator(_since)]


def cursor(mark: Mark | None) -> str | None:
    """As a client sends it back."""
    return f"{mark.at.isoformat()}~{mark.id}" if mark else None


def mark_of(text: str) -> Mark | None:
    """None where no page gave it."""
    at, _, ident = text.partition("~")
    try:
        found = datetime.fromisoformat(at.replace(" ", "+"))
    except ValueError:
        return None
    return Mark(found, ident) if found.tzinfo and ident.isalnum() else None
