"""The bodies of the HTTP API's responses, as pydantic models, which the OpenAPI page describes.

Here is what all of them share; models of a small part of the API are with its routes. A `View` is a part of a
body, in most cases made of the attributes of a value of the core. Times are ISO 8601 in UTC; secrets are
redacted as on every card.
"""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

Time = Annotated[datetime, PlainSerializer(datetime.isoformat, return_type=str)]
"""A time as ISO 8601, with its offset, and with microseconds if it has any."""
OrNull = BeforeValidator(lambda value: value or None)
"""Makes an empty value of a field null, such as a text without characters."""


class View(BaseModel):
    """A part of an answer.

    It is made of arguments, or of a value whose attributes have the names of its fields.
    """

    model_config = ConfigDict(
        from_attributes=True,
        validate_by_name=True,
        serialize_by_alias=True,
        json_schema_serialization_defaults_required=True,  # they are always sent
    )

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Make a view of values that are not views yet."""
        return cls.model_validate(values)


def is_none(value: object) -> bool:
    """Return True for None: fields with ``exclude_if=is_none`` are left out instead of being null."""
    return value is None


class DoneBody(View):
    ok: Literal[True] = True


class SaidBody(DoneBody):
    text: str = Field(description="for the person who asked")
