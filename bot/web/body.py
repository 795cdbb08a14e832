"""The rules of request bodies and lists: known fields only, storable text, a page at a time.

`Body` is the base of all JSON bodies. `Limit`, `Since` and `Before` are the query parameters of lists. A list
is read in pages; ``before`` is the ``next`` of an earlier page, a mark of the place where that page ended.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from bot.domain.proposal_lists import PageCursor
from bot.domain.text import is_halved
from bot.web.answers import HttpError

MAX_VALUES = 2000  # values in all lists and objects of a body
MAX_DEPTH = 32  # levels of lists and objects in each other
MAX_PAGE_ENTRIES = 200  # the most entries of a page
_NO_PLACE_TEXT = "Send what an earlier page gave as `next`."


class Body(BaseModel):
    """A JSON object. Unknown fields are refused, and so is text with half a surrogate pair."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _check_values(cls, value: Any) -> Any:
        return check_storable(value)


def check_storable(value: Any, max_values: int = MAX_VALUES) -> Any:
    """Return a JSON value as it is.

    Raises PydanticCustomError for too many or too deeply nested values, and for text that can't be stored.
    """
    _, fault = count_values(value, max_values)
    if fault is not None:
        raise fault
    return value


def count_values(value: Any, max_values: int) -> tuple[int, PydanticCustomError | None]:
    """Return the number of values in a JSON value, and the error that refuses it, if any.

    The names of an object's fields count, too. After an error the number is that of the values looked at.
    """
    count = 0
    level: Iterable[Any] = [value]
    for _ in range(MAX_DEPTH):
        next_level: list[Any] = []
        for item in level:
            count += 1
            if count > max_values:
                return count, PydanticCustomError("values", f"At most {max_values:,} values in one request.")
            match item:
                case str() if is_halved(item):
                    return count, PydanticCustomError(
                        "storable", "Text must be valid Unicode, without half a surrogate pair."
                    )
                case dict():
                    next_level += item.keys()
                    next_level += item.values()
                case list():
                    next_level += item
        if not next_level:
            return count, None
        level = next_level
    return count, PydanticCustomError("depth", f"At most {MAX_DEPTH} levels of lists and objects.")


Limit = Annotated[int, Query(ge=1, le=MAX_PAGE_ENTRIES, description="how many at most")]


def _convert_to_utc(value: datetime) -> datetime:
    """Return the time in UTC; a time without a zone is taken as UTC.

    Raises ValueError at the ends of the calendar.
    """
    try:
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        raise ValueError("this is too far away") from None


Since = Annotated[datetime, AfterValidator(_convert_to_utc)]


def format_cursor(mark: PageCursor | None) -> str | None:
    """Return the mark of a page's end as text, which a client sends back for the next page."""
    return str(mark) if mark else None


async def _parse_mark(
    before: Annotated[
        str | None, Query(max_length=100, description="what an earlier page gave as `next`")
    ] = None,
) -> PageCursor | None:
    if before is None:
        return None
    try:
        return PageCursor.parse(before)
    except ValueError:
        raise HttpError(422, _NO_PLACE_TEXT, fields={"before": _NO_PLACE_TEXT}) from None


Before = Annotated[PageCursor | None, Depends(_parse_mark)]
