"""What an issue tool would change, read from the database: the old → new values people approve.

Each preview takes the session and the call's canonical arguments, and raises `ToolError` when the call could
not or need not run. It is read again before the call runs, so whatever it shows as old is guarded.
"""

from collections.abc import Sequence
from typing import Any

from sqlmodel import Session

from bot.domain.proposals import PreviewField
from bot.errors import ToolError
from bot.store import issues
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
