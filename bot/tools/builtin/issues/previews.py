"""What an issue tool would change, read from the database: the old → new values people approve.

Each preview takes the session and the call's canonical arguments, and raises `ToolError` when the call could
not or need not run. It is read again before the call runs, so whatever it shows as old is guarded.

What the fields of an issue may be; both databases can keep all of it.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError
from sqlmodel import Session

from bot.domain.proposals import PreviewField
from bot.errors import ToolError
from bot.store import issues
from bot.tools.signature import STORABLE, Storable
from bot.tools.tool import Arguments

CHANGEABLE = ("title", "body", "assignee", "priority", "labels", "state")


def wanted_fields(arguments: Arguments) -> dict[str, Any]:
    """Pick what an update sets, as the store keeps it (assignee "" is no one). Raises ToolError for none."""
    wanted = {name: arguments[name] for name in CHANGEABLE if name in arguments}
    if not wanted:
        raise ToolError(f"Say what to change: give at least one of {', '.join(CHANGEABLE)}.")
    if "assignee" in wanted:
        wanted["assignee"] = wanted["assignee"] or None
    if "labels" in wanted:
        wanted["labels"] = tuple(wanted["labels"])
    return wanted


def created(_: Session, arguments: Arguments) -> Sequence[PreviewField]:
    values = {"priority": "normal", **arguments}
    names = ("title", "body", "assignee", "priority", "labels")
    return [PreviewField(name, None, _shown(values[name])) for name in names if values.get(name)]


def updated(session: Session, arguments: Arguments) -> Sequence[PreviewField]:
    """Only what really changes."""
    wanted = wanted_fields(arguments)
    issue = issues.find(session, arguments["number"])
    real = issues.differences(issue, wanted)
    if not real:
        raise ToolError(f"This would change nothing: issue #{issue.number} is like that already.")
    return [PreviewField(name, _shown(getattr(issue, name)), _shown(value)) for name, value in real.items()]


def commented(session: Session, arguments: Arguments) -> Sequence[PreviewField]:
    issues.find(session, arguments["number"])
    return [PreviewField("comment", None, arguments["body"])]


def closed(session: Session, arguments: Arguments) -> Sequence[PreviewField]:
    issue = issues.find(session, arguments["number"])
    if issue.state == "closed":
        raise ToolError(f"This would change nothing: issue #{issue.number} is closed already.")
    reason = arguments.get("reason")
    return [
        PreviewField("state", issue.state, "closed"),
        *([PreviewField("comment", None, reason)] if reason else []),
    ]


def deleted(session: Session, arguments: Arguments) -> Sequence[PreviewField]:
    issue = issues.find(session, arguments["number"])
    said = len(issues.comments(session, issue.number))
    return [
        PreviewField("title", issue.title, None),
        PreviewField("state", issue.state, None),
        *([PreviewField("comments", str(said), None)] if said else []),
    ]


def _shown(value: Any) -> str | None:
    """Text for people; None where there is nothing."""
    if isinstance(value, (list, tuple)):
        return ", ".join(value) or None
    return value or None


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
