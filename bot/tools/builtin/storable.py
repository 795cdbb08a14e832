"""Text that both databases can keep and every program can be given: without the character NUL."""

from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError


def _storable(text: str) -> str:
    if "\x00" in text:
        raise PydanticCustomError("storable", "must not have the character NUL")
    return text


Storable = Annotated[str, AfterValidator(_storable)]
