"""What every request's body must be: known fields only, and text that can be stored and shown."""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from bot.domain.text import halved

MOST_VALUES = 2000  # in all lists and objects of a body
DEEPEST = 32


class Body(BaseModel):
    """A JSON object. Unknown fields are refused, and so is text with half a surrogate pair."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        return check_storable(value)


def check_storable(value: Any, most: int = MOST_VALUES) -> Any:
    """The JSON as it is; raises PydanticCustomError where it is too much, or some text can't be stored."""
    count = 0
    level: Iterable[Any] = [value]
    for _ in range(DEEPEST):
        inside: list[Any] = []
        for each in level:
            count += 1
            if count > most:
                raise PydanticCustomError("values", f"At most {most:,} values in one request.")
            match each:
                case str() if halved(each):
                    raise PydanticCustomError(
                        "storable", "Text must be valid Unicode, without half a surrogate pair."
                    )
                case dict():
                    inside += each
                    inside += each.values()
                case list():
                    inside += each
        if not inside:
            return value
        level = inside
    raise PydanticCustomError("depth", f"At most {DEEPEST} levels of lists and objects.")
