"""Responses of the HTTP interface: one pydantic model for each, which the OpenAPI page describes.

This module has what they share; those of a small part are with its routes. Most are read from a value's
attributes. Times are ISO 8601 in UTC; secrets are redacted as on every card.
"""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

Time = Annotated[datetime, PlainSerializer(datetime.isoformat, return_type=str)]
"""A time as ISO 8601, with microseconds where it has them, and its offset."""
OrNull = BeforeValidator(lambda value: value or None)
"""Null for what is empty."""


class View(BaseModel):
    """A part of an answer, made by name or of a value whose attributes have the names of its fields."""

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
    """Tell if a field is to be left out; otherwise it would be null."""
    return value is None


class DoneBody(View):
    ok: Literal[True] = True


class SaidBody(DoneBody):
    """``text`` is for the person who asked."""

    text: str
