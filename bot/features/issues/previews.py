"""The previews of calls that change an issue, and the issue's values after a call.

A preview function (``preview_…``) is called before people are asked. It returns the fields with the old and
new values that people approve. It raises `ToolError` if the call could not run, or would change nothing. A
function that reads current values (``read_…``) is called after the run, to check that the change was made.
It returns them by the names of the preview's fields.
"""

from collections.abc import Mapping, Sequence

from sqlmodel import Session

from bot.domain.preview import PreviewField
from bot.errors import PermanentRefusal, ToolError
from bot.features.issues import rows as issues
from bot.features.issues.fields import FIELDS, format_value, read_fields
from bot.features.issues.rows import Comment, Issue
from bot.tools.call import Arguments


async def preview_creation(arguments: Arguments) -> Sequence[PreviewField]:
    values = {"priority": "normal", **arguments}
    return [PreviewField(name, None, format_value(values[name])) for name in FIELDS if values.get(name)]


def preview_update(session: Session, arguments: Arguments) -> Sequence[PreviewField]:
    """Return the fields whose values would change."""
    issue = issues.find(session, arguments["number"])
    changes = issues.find_changes(issue, read_fields(arguments))
    if not changes:
        raise ToolError(f"This would change nothing: issue #{issue.number} already has these values.")
    return [
        PreviewField(name, format_value(getattr(issue, name)), format_value(value))
        for name, value in changes.items()
    ]


def preview_comment(session: Session, arguments: Arguments) -> Sequence[PreviewField]:
    issues.find(session, arguments["number"])
    return [PreviewField("comment", None, arguments["body"])]


def preview_closing(session: Session, arguments: Arguments) -> Sequence[PreviewField]:
    issue = issues.find(session, arguments["number"])
    if issue.state == "closed":
        raise ToolError(f"This would change nothing: issue #{issue.number} is closed already.")
    fields = [PreviewField("state", issue.state, "closed")]
    reason = arguments.get("reason")
    if reason:
        fields.append(PreviewField("comment", None, reason))
    return fields


def preview_deletion(session: Session, arguments: Arguments) -> Sequence[PreviewField]:
    issue, comments = load_with_comments(session, arguments["number"])
    fields = [PreviewField("title", issue.title, None), PreviewField("state", issue.state, None)]
    if comments:
        fields.append(PreviewField("comments", str(len(comments)), None))
    return fields


def preview_taking_back(session: Session, arguments: Arguments) -> Sequence[PreviewField]:
    issue = issues.find(session, arguments["number"])
    fields = []
    if arguments.get("reopen"):
        fields.append(PreviewField("state", issue.state, "open"))
    comment_id = arguments.get("comment")
    if comment_id is not None:
        comment = issues.find_comment(session, issue.number, comment_id)
        if comment is None:
            raise PermanentRefusal(f"The comment on issue #{issue.number} is gone already.")
        fields.append(PreviewField("comment", comment.body, None))
    return fields


def read_current(session: Session, arguments: Arguments) -> Mapping[str, str | None]:
    issue = issues.find(session, arguments["number"])
    current = {name: format_value(getattr(issue, name)) for name in FIELDS}
    comment_id = arguments.get("comment")
    if comment_id is not None:
        comment = issues.find_comment(session, issue.number, comment_id)
        current["comment"] = comment.body if comment else None
    return current


def read_with_comment(session: Session, arguments: Arguments) -> Mapping[str, str | None]:
    """Return the current values of an issue, with the comment that a call was to add if it is there."""
    body = arguments.get("body") or arguments.get("reason")
    bodies = {comment.body for comment in issues.list_comments(session, arguments["number"])}
    return {**read_current(session, arguments), "comment": body if body in bodies else None}


def read_newest_titled(session: Session, arguments: Arguments) -> Mapping[str, str | None]:
    """Return the values of the newest issue with the title of a creation; nulls without such an issue."""
    issue = issues.find_newest_titled(session, arguments["title"])
    if issue is None:
        return dict.fromkeys(FIELDS)
    return {name: format_value(getattr(issue, name)) for name in FIELDS}


def read_after_deletion(session: Session, arguments: Arguments) -> Mapping[str, str | None]:
    """Return the current values of an issue; nulls if it was deleted."""
    try:
        return read_current(session, arguments)
    except PermanentRefusal:
        return {"title": None, "state": None, "comments": None}


def load_with_comments(session: Session, number: int) -> tuple[Issue, list[Comment]]:
    return issues.find(session, number), issues.list_comments(session, number)
