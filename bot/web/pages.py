"""Lists a page at a time: a page says with which ``before`` the next one begins."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, Query
from pydantic import AfterValidator

from bot.domain.proposals import Mark
from bot.web.errors import Fault

PAGE = 200
_NO_PLACE = "Send what an earlier page gave as `next`."

Limit = Annotated[int, Query(ge=1, le=PAGE, description="how many at most")]


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


async def _mark(
    before: Annotated[
        str | None, Query(max_length=100, description="what an earlier page gave as `next`")
    ] = None,
) -> Mark | None:
    if before is None:
        return None
    at, _, ident = before.partition("~")
    with suppress(ValueError):
        found = datetime.fromisoformat(at.replace(" ", "+"))
        if found.tzinfo and ident.isalnum():
            return Mark(found, ident)
    raise Fault(422, _NO_PLACE, fields={"before": _NO_PLACE})


Before = Annotated[Mark | None, Depends(_mark)]
