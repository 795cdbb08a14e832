"""What the fields of an issue may be; both databases can keep all of it."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from bot.tools.storable import STORABLE, Storable

_LINE_BREAK = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


def _one_line(text: str) -> str:
    if _LINE_BREAK.search(text):
        raise PydanticCustomError("one_line", "This must be one line, without control characters")
    return text


def _tidy(labels: list[str]) -> list[str]:
    return sorted(set(labels))


Number = Annotated[int, Field(ge=1, le=2**31 - 1)]
Text = Annotated[str, StringConstraints(strip_whitespace=True)]
Line = Annotated[Text, Field(min_length=1, max_length=200), AfterValidator(_one_line)]
Name = Annotated[Text, Field(max_length=80), AfterValidator(_one_line)]
Label = Annotated[Text, Field(min_length=1, max_length=40), AfterValidator(_one_line)]
Labels = Annotated[list[Label], Field(max_length=10), AfterValidator(_tidy)]
Body = Annotated[Storable, Field(max_length=20_000)]
Said = Annotated[Text, Field(min_length=1, max_length=20_000), STORABLE]
