"""Text that both databases can keep and every program can be given: no NUL, and no half of a character."""

from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from bot.domain.text import unstorable


def _storable(text: str) -> str:
    if why := unstorable(text):
        # not as the template, for that reads braces
        raise PydanticCustomError("storable", "{why}", {"why": why})
    return text


STORABLE = AfterValidator(_storable)  # stands last: the rules after it would not see a text
Storable = Annotated[str, STORABLE]
