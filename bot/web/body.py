"""The rules of request bodies and lists: known fields only, storable text, a page at a time."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from bot.domain.proposals import Mark
from bot.domain.text import is_halved
from bot.web.answers import Fault

MOST_VALUES = 2000  # in all lists and objects of a body
DEEPEST = 32
PAGE = 200
_NO_PLACE = "Send what an earlier page gave as `next`."


class Body(BaseModel):
    """A JSON object. Unknown fields are refused, and so is text with half a surrogate pair."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        return check_storable(value)


def check_storable(value: Any, most: int = MOST_VALUES) -> Any:
    """Return the JSON as it is.

    Raises PydanticCustomError where it is too much, or some text can't be stored.
    """
    _, fault = count_values(value, most)
    if fault is not None:
        raise fault
    return value


def count_values(value: Any, most: int) -> tuple[int, PydanticCustomError | None]:
    """Return the number of values, and the error that refuses the JSON, if any."""
    count = 0
    level: Iterable[Any] = [value]
    for _ in range(DEEPEST):
        inside: list[Any] = []
        for each in level:
            count += 1
            if count > most:
                return count, PydanticCustomError("values", f"At most {most:,} values in one request.")
            match each:
                case str() if is_halved(each):
                    return count, PydanticCustomError(
                        "storable", "Text must be valid Unicode, without half a surrogate pair."
                    )
                case dict():
                    inside += each
                    inside += each.values()
                case list():
                    inside += each
        if not inside:
            return count, None
        level = inside
    return count, PydanticCustomError("depth", f"At most {DEEPEST} levels of lists and objects.")


Limit = Annotated[int, Query(ge=1, le=PAGE, description="how many at most")]


def _since(value: datetime) -> datetime:
    """Return the time in UTC, which is also the default zone.

    Raises ValueError at the ends of the calendar.
    """
    try:
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        raise ValueError("this is too far away") from None


Since = Annotated[datetime, AfterValidator(_since)]


def cursor(mark: Mark | None) -> str | None:
    """Return the mark as text, which a client sends back for the next page."""
    return str(mark) if mark else None


async def _mark(
    before: Annotated[
        str | None, Query(max_length=100, description="what an earlier page gave as `next`")
    ] = None,
) -> Mark | None:
    if before is None:
        return None
    try:
        return Mark.parse(before)
    except ValueError:
        raise Fault(422, _NO_PLACE, fields={"before": _NO_PLACE}) from None


Before = Annotated[Mark | None, Depends(_mark)]
