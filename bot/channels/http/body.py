"""What every request's body must be: known fields only, and text that can be stored and shown."""

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from bot.domain.text import halved


class Body(BaseModel):
    """A JSON object. Unknown fields are refused, and so is text with half a surrogate pair."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        return check_storable(value)


def check_storable(value: Any) -> Any:
    """The JSON as it is; raises PydanticCustomError where some text in it can't be stored."""
    if not _storable(value):
        raise PydanticCustomError("storable", "Text must be valid Unicode, without half a surrogate pair.")
    return value


def _storable(value: Any) -> bool:
    match value:
        case str():
            return not halved(value)
        case dict():
            return all(_storable(key) and _storable(each) for key, each in value.items())
        case list():
            return all(map(_storable, value))
    return True
