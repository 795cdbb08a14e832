"""The fields of an issue that people change: their types as arguments, and their values on cards."""

import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from bot.errors import ToolError
from bot.tools.call import Arguments
from bot.tools.signature import NOT_BLANK, STORABLE, Storable

# the fields of an issue that people change, in the order of a card
FIELDS = ("title", "body", "assignee", "priority", "labels", "state")
_LINE_BREAK = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")  # and any other control character of ASCII


def _one_line(text: str) -> str:
    if _LINE_BREAK.search(text):
        raise PydanticCustomError("one_line", "This must be one line, without control characters")
    return text


def _sort_labels(labels: list[str]) -> list[str]:
    return sorted(set(labels))


# the types of an issue's fields, whose values both databases can store
Number = Annotated[int, Field(ge=1, le=2**31 - 1)]
Text = Annotated[str, StringConstraints(strip_whitespace=True)]
Line = Annotated[Text, Field(min_length=1, max_length=200), AfterValidator(_one_line), NOT_BLANK]
Name = Annotated[Text, Field(max_length=80), AfterValidator(_one_line), NOT_BLANK]
Label = Annotated[Text, Field(min_length=1, max_length=40), AfterValidator(_one_line), NOT_BLANK]
Labels = Annotated[list[Label], Field(max_length=10), AfterValidator(_sort_labels)]
Body = Annotated[Storable, Field(max_length=20_000)]
CommentBody = Annotated[Text, Field(min_length=1, max_length=20_000), STORABLE]


def read_fields(arguments: Arguments) -> dict[str, Any]:
    """Return the fields that an update sets, as an `Issue` has them: the argument "" for no assignee is None.

    Raises ToolError if no field is given.
    """
    wanted = {name: arguments[name] for name in FIELDS if name in arguments}
    if not wanted:
        raise ToolError(f"Say what to change: give at least one of {', '.join(FIELDS)}.")
    if "assignee" in wanted:
        wanted["assignee"] = wanted["assignee"] or None
    if "labels" in wanted:
        wanted["labels"] = tuple(wanted["labels"])
    return wanted


def format_value(value: Any) -> str | None:
    """Return a field's value as text for a card; None for an empty value."""
    if isinstance(value, (list, tuple)):
        return ", ".join(value) or None
    return value or None


def join_names(fields: Iterable[str]) -> str:
    """Return the names of an issue's fields among ``fields``: ``title, body and labels``; empty for none."""
    names = [name for name in FIELDS if name in fields]
    if len(names) > 1:
        return f"{', '.join(names[:-1])} and {names[-1]}"
    return "".join(names)
