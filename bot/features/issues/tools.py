"""The tools of the built-in issue tracker, and its sample issues for the demo.

A tool that changes an issue has further functions, which the kernel calls before and after the run:

- ``preview``, before people are asked. It returns the fields with the old and new values that people approve,
  and raises `ToolError` if the call could not run, or would change nothing.
- ``current``, after the run. It returns the current values, to check that the change was made.
- ``undo``. It returns the call of another tool that reverses the change. It gets the values that the run
  returned as ``kept`` in its `ToolOutput`. (``told`` there is the text for people.)

The preview is computed again in the transaction that makes the change (`_change_as_shown`). If the old values
have changed since people saw them, nothing is done.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError
from sqlmodel import Session

from bot.domain.chat import Clock
from bot.domain.proposals import PreviewField, old_values
from bot.errors import PermanentRefusal, ToolError
from bot.features.issues import rows as issues
from bot.features.issues.rows import Comment, Issue, IssueState, Priority
from bot.store.database import Database
from bot.tools.call import Arguments, CallContext, InverseCall, Ran, ToolOutput
from bot.tools.decorator import tool
from bot.tools.looks import Undo
from bot.tools.signature import NOT_BLANK, STORABLE, Storable
from bot.tools.tool import Tool
from bot.tools.toolset import FixedToolset

T = TypeVar("T")
ToolDecorator = Callable[[Callable[..., Awaitable[Any]]], Tool]  # turns an async function into a tool

_MAX_LISTED = 50  # the most issues in one answer
# the fields of an issue that people change, in the order of a card
_FIELDS = ("title", "body", "assignee", "priority", "labels", "state")
_LINE_BREAK = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")  # and any other control character of ASCII
_SAMPLES: tuple[dict[str, Any], ...] = (
    {
        "title": "Login fails after a password reset",
        "body": "The new password is accepted on the reset page, then refused at login for about a minute. "
        "Probably the cached session of the old password.",
        "assignee": "Ana",
        "priority": "urgent",
        "labels": ["auth", "bug"],
    },
    {
        "title": "Exported CSV has wrong dates for users east of Berlin",
        "body": "Dates shift by one day. The export formats local midnight as UTC.",
        "assignee": "Sam",
        "priority": "high",
        "labels": ["bug", "export"],
    },
    {
        "title": "Dark mode for the settings page",
        "body": "The rest of the application has it; settings still glow.",
        "priority": "low",
        "labels": ["design"],
    },
    {
        "title": "Invoices are sent twice when the mail server is slow",
        "body": "A time-out is taken for a failure and the job is run again. Three customers wrote to us.",
        "priority": "urgent",
        "labels": ["billing", "bug"],
    },
    {
        "title": "Document the rate limits of the public API",
        "assignee": "Ana",
        "labels": ["docs"],
    },
    {
        "title": "Upgrade the staging database",
        "body": "The version in use no longer gets security fixes.",
        "assignee": "Priya",
        "labels": ["operations"],
    },
)


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


def make_issue_toolset(database: Database, clock: Clock) -> FixedToolset:
    """Return all tools of the tracker, over ``database``."""
    tools = (
        *_make_reading_tools(database),
        *_make_writing_tools(database, clock),
        _make_undo_tool(database, clock),
    )
    return FixedToolset("issues", tools)


def _make_reading_tools(database: Database) -> tuple[Tool, ...]:
    @tool(writes=False, group="issues", summary="Search issues for “{query}”")
    async def search_issues(query: Line, state: IssueState | None = None) -> dict[str, Any]:
        """Find issues by words in their title or body. Every word must occur; newest first.

        Args:
            query: the words to look for
            state: only open or only closed issues; both when not given

        """
        found, total = await database.read(issues.search, query, state, limit=_MAX_LISTED)
        return _make_page(found, total)

    @tool(writes=False, group="issues", summary="Read issue #{number}")
    async def get_issue(number: Number) -> dict[str, Any]:
        """Read one issue in full, with its comments.

        Args:
            number: the issue's number, without #

        """
        issue, comments = await database.read(_load_with_comments, number)
        return {
            **_describe_issue(issue),
            "body": issue.body,
            "author": issue.author,
            "comments": [
                {**asdict(comment), "created_at": comment.created_at.isoformat()} for comment in comments
            ],
        }

    @tool(writes=False, group="issues", summary="List issues")
    async def list_issues(
        state: IssueState | None = None,
        assignee: Name | None = None,
        label: Label | None = None,
        priority: Priority | None = None,
    ) -> dict[str, Any]:
        """List issues, newest first, without their bodies. Filters narrow it together.

        Args:
            state: only open or only closed issues
            assignee: only this person's issues; "" for issues that no one has
            label: only issues with this label
            priority: only issues of this priority

        """
        found, total = await database.read(
            issues.list_issues, state, assignee, label, priority, limit=_MAX_LISTED
        )
        return _make_page(found, total)

    @tool(writes=False, group="issues", summary="Count open issues by assignee")
    async def workload() -> dict[str, Any]:
        """Count the open and urgent issues of each assignee. Assignee null is the issues no one has."""
        loads = await database.read(issues.count_workload)
        return {"workload": [asdict(load) for load in loads]}

    return search_issues, get_issue, list_issues, workload


def _make_issue_decorator(database: Database) -> Callable[..., ToolDecorator]:
    """Return a decorator for tools that change one issue. The titles of their cards name the issue, too."""

    def issue_tool(
        summary: Callable[[Arguments], str],
        preview: Callable[[Session, Arguments], Sequence[PreviewField]],
        touches: str,
        current: Callable[[Session, Arguments], Mapping[str, str | None]],
        undo: Undo | None = None,
    ) -> ToolDecorator:
        async def make_title(arguments: Arguments) -> str:
            issue = await database.read(issues.find, arguments["number"])
            return f"{summary(arguments)} “{issue.title}”"

        return tool(
            group="issues",
            idempotent=True,
            summary=summary,
            title=make_title,
            key=_find_similarity_key,
            preview=lambda arguments: database.read(preview, arguments),
            touches=touches,
            current=lambda arguments: database.read(current, arguments),
            undo=undo,
        )

    return issue_tool


async def _change_as_shown(
    database: Database,
    context: CallContext,
    preview: Callable[[Session, Arguments], Sequence[PreviewField]],
    arguments: Arguments,
    change: Callable[[Session], T],
) -> tuple[Issue, T]:
    """Change an issue if the old values that the card showed are still current, else raise ToolError.

    Returns the issue from before the change, and the result of ``change``, which makes the change. A call
    that was run without a card has no preview in its context, and is not checked.
    """

    def check_and_change(session: Session) -> tuple[Issue, T]:
        before = issues.find(session, arguments["number"], lock=True)
        if context.preview and old_values(preview(session, arguments)) != old_values(context.preview):
            raise ToolError(f"Issue #{arguments['number']} changed after it was shown. Nothing was done.")
        return before, change(session)

    return await database.write(check_and_change)


def _make_writing_tools(database: Database, clock: Clock) -> tuple[Tool, ...]:
    issue_tool = _make_issue_decorator(database)
    change_as_shown = partial(_change_as_shown, database)

    @tool(
        group="issues",
        idempotent=True,
        summary="Create issue “{title}”",
        preview=_preview_creation,
        touches="",  # a new issue: no other call can change it
        current=lambda arguments: database.read(_read_newest_titled, arguments),
        undo=_undo_creation,
    )
    async def create_issue(
        *,
        context: CallContext,
        title: Line,
        body: Body = "",
        assignee: Name = "",
        priority: Priority = "normal",
        labels: Labels = [],  # noqa: B006 - never changed
    ) -> ToolOutput:
        """Create an issue. Search first: it may exist already.

        Args:
            title: one line, up to 200 characters
            body: what is wrong or wanted, in Markdown
            assignee: who should do it; no one when not given
            priority: normal when not given
            labels: up to 10 labels of up to 40 characters

        """
        create = partial(
            issues.create,
            title=title,
            body=body,
            assignee=assignee or None,
            priority=priority,
            labels=labels,
            **_make_authorship(context),
            now=clock(),
        )
        issue = await database.write(create)
        return ToolOutput(_describe_issue(issue), told=f"Created {_name_issue(issue)}", kept=issue.number)

    @issue_tool(
        summary=_describe_update,
        preview=_preview_update,
        touches="issue {number}",
        current=_read_current,
        undo=_undo_update,
    )
    async def update_issue(
        *,
        number: Number,
        title: Line | None = None,
        body: Body | None = None,
        assignee: Name | None = None,
        priority: Priority | None = None,
        labels: Labels | None = None,
        state: IssueState | None = None,
        context: CallContext,
    ) -> ToolOutput:
        """Change fields of an issue; fields that are not given stay. Give at least one.

        Args:
            number: the issue's number, without #
            title: the new title, one line
            body: the new body; it replaces the old one, "" empties it
            assignee: who should do it; "" for no one
            priority: the new priority
            labels: all labels it should have; they replace the old ones, [] removes all
            state: open to reopen, closed to close

        """
        values = (title, body, assignee, priority, labels, state)  # in the order of `_FIELDS`
        given = {name: value for name, value in zip(_FIELDS, values, strict=True) if value is not None}
        wanted = _read_fields(given)
        before, issue = await change_as_shown(
            context,
            _preview_update,
            {"number": number, **given},
            lambda session: issues.change_issue(session, number, wanted, clock()),
        )
        kept = {name: getattr(before, name) for name in wanted}
        told = f"Changed {_join_names(wanted)} of {_name_issue(issue)}"
        return ToolOutput(_describe_issue(issue), told=told, kept=kept)

    @issue_tool(
        summary="Comment on issue #{number}".format_map,
        preview=_preview_comment,
        touches="",  # a new comment: no other call can change it
        current=_read_with_comment,
        undo=_undo_comment,
    )
    async def comment_issue(context: CallContext, number: Number, body: CommentBody) -> ToolOutput:
        """Add a comment to an issue.

        Args:
            number: the issue's number, without #
            body: the comment, in Markdown

        """
        add_comment = partial(issues.add_comment, **_make_authorship(context), now=clock())
        issue = await database.write(add_comment, number, body)
        comment_id = await database.read(issues.find_comment_id, context.idempotency_key)
        told = f"Commented on {_name_issue(issue)}"
        return ToolOutput(
            {**_describe_issue(issue), "comment": body}, told=told, kept={"comment": comment_id}
        )

    @issue_tool(
        summary="Close issue #{number}".format_map,
        preview=_preview_closing,
        touches="issue {number}",
        current=_read_with_comment,
        undo=_undo_comment,
    )
    async def close_issue(
        context: CallContext, number: Number, reason: CommentBody | None = None
    ) -> ToolOutput:
        """Close an issue. It can be reopened with update_issue.

        Args:
            number: the issue's number, without #
            reason: why; it is added as a comment

        """
        _, issue = await change_as_shown(
            context,
            _preview_closing,
            {"number": number, "reason": reason},
            lambda session: issues.close(session, number, reason, **_make_authorship(context), now=clock()),
        )
        kept: dict[str, Any] = {"reopen": True}
        if reason:
            comment_id = await database.read(issues.find_comment_id, context.idempotency_key)
            kept = {"comment": comment_id, "reopen": True}
        return ToolOutput(_describe_issue(issue), told=f"Closed {_name_issue(issue)}", kept=kept)

    async def describe_deletion(arguments: Arguments) -> str:
        issue, comments = await database.read(_load_with_comments, arguments["number"])
        return f"Delete {_name_issue(issue)}{_describe_comments(len(comments))}"

    @tool(
        destructive=True,
        group="issues",
        summary="Delete issue #{number} and its comments",
        title=describe_deletion,
        preview=lambda arguments: database.read(_preview_deletion, arguments),
        touches="issue {number}",
        current=lambda arguments: database.read(_read_after_deletion, arguments),
    )
    async def delete_issue(number: Number, context: CallContext) -> ToolOutput:
        """Delete an issue and its comments permanently. To end an issue, prefer close_issue.

        Args:
            number: the issue's number, without #

        """
        _, (issue, comment_count) = await change_as_shown(
            context,
            _preview_deletion,
            {"number": number},
            lambda session: issues.remove_issue(session, number),
        )
        deleted = {"deleted": issue.number, "title": issue.title, "comments_deleted": comment_count}
        return ToolOutput(deleted, told=f"Deleted {_name_issue(issue)}{_describe_comments(comment_count)}")

    return create_issue, update_issue, comment_issue, close_issue, delete_issue


def _make_undo_tool(database: Database, clock: Clock) -> Tool:
    """Return the tool that undoes a comment or a closing. No model is offered it."""

    @_make_issue_decorator(database)(
        summary=_describe_taking_back,
        preview=_preview_taking_back,
        touches="issue {number}",
        current=_read_current,
    )
    async def take_back_comment(
        context: CallContext, number: Number, comment: Number | None = None, *, reopen: bool = False
    ) -> ToolOutput:
        """Remove a comment of an issue, reopen it, or both: what undoes a comment or a closing.

        Args:
            number: the issue's number, without #
            comment: the comment's own number
            reopen: whether the issue is opened again

        """

        def change(session: Session) -> Issue:
            if comment is not None:
                issues.remove_comment(session, number, comment, clock())
            wanted = {"state": "open"} if reopen else {}  # without a field, only the issue is returned
            return issues.change_issue(session, number, wanted, clock())

        arguments = {"number": number, "comment": comment, "reopen": reopen}
        _, issue = await _change_as_shown(database, context, _preview_taking_back, arguments, change)
        action = "Reopened" if reopen else "Removed the comment on"
        return ToolOutput(_describe_issue(issue), told=f"{action} {_name_issue(issue)}")

    return replace(take_back_comment, offered=False, only_for_undo=True)


# -- previews: the changes of a call, before people are asked


async def _preview_creation(arguments: Arguments) -> Sequence[PreviewField]:
    values = {"priority": "normal", **arguments}
    return [PreviewField(name, None, _format_value(values[name])) for name in _FIELDS if values.get(name)]


def _preview_update(session: Session, arguments: Arguments) -> Sequence[PreviewField]:
    """Return the fields whose values would change."""
    issue = issues.find(session, arguments["number"])
    changes = issues.find_changes(issue, _read_fields(arguments))
    if not changes:
        raise ToolError(f"This would change nothing: issue #{issue.number} already has these values.")
    return [
        PreviewField(name, _format_value(getattr(issue, name)), _format_value(value))
        for name, value in changes.items()
    ]


def _preview_comment(session: Session, arguments: Arguments) -> Sequence[PreviewField]:
    issues.find(session, arguments["number"])
    return [PreviewField("comment", None, arguments["body"])]


def _preview_closing(session: Session, arguments: Arguments) -> Sequence[PreviewField]:
    issue = issues.find(session, arguments["number"])
    if issue.state == "closed":
        raise ToolError(f"This would change nothing: issue #{issue.number} is closed already.")
    fields = [PreviewField("state", issue.state, "closed")]
    reason = arguments.get("reason")
    if reason:
        fields.append(PreviewField("comment", None, reason))
    return fields


def _preview_deletion(session: Session, arguments: Arguments) -> Sequence[PreviewField]:
    issue, comments = _load_with_comments(session, arguments["number"])
    fields = [PreviewField("title", issue.title, None), PreviewField("state", issue.state, None)]
    if comments:
        fields.append(PreviewField("comments", str(len(comments)), None))
    return fields


def _preview_taking_back(session: Session, arguments: Arguments) -> Sequence[PreviewField]:
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


# -- the current values, by the names of the preview's fields, after a call ran


def _read_current(session: Session, arguments: Arguments) -> Mapping[str, str | None]:
    issue = issues.find(session, arguments["number"])
    current = {name: _format_value(getattr(issue, name)) for name in _FIELDS}
    comment_id = arguments.get("comment")
    if comment_id is not None:
        comment = issues.find_comment(session, issue.number, comment_id)
        current["comment"] = comment.body if comment else None
    return current


def _read_with_comment(session: Session, arguments: Arguments) -> Mapping[str, str | None]:
    """Return the current values of an issue, with the comment that a call was to add if it is there."""
    body = arguments.get("body") or arguments.get("reason")
    bodies = {comment.body for comment in issues.list_comments(session, arguments["number"])}
    return {**_read_current(session, arguments), "comment": body if body in bodies else None}


def _read_newest_titled(session: Session, arguments: Arguments) -> Mapping[str, str | None]:
    """Return the values of the newest issue with the title of a creation; nulls without such an issue."""
    issue = issues.find_newest_titled(session, arguments["title"])
    if issue is None:
        return dict.fromkeys(_FIELDS)
    return {name: _format_value(getattr(issue, name)) for name in _FIELDS}


def _read_after_deletion(session: Session, arguments: Arguments) -> Mapping[str, str | None]:
    """Return the current values of an issue; nulls if it was deleted."""
    try:
        return _read_current(session, arguments)
    except PermanentRefusal:
        return {"title": None, "state": None, "comments": None}


# -- undo: the call that reverses a call, from what the call kept


async def _undo_creation(ran: Ran) -> InverseCall:
    return InverseCall("delete_issue", {"number": ran.kept})


async def _undo_update(ran: Ran) -> InverseCall:
    # the old values, as the argument "" for an empty field
    before = {name: value or "" for name, value in (ran.kept or {}).items()}
    if "labels" in before:
        before["labels"] = list(before["labels"])
    return InverseCall("update_issue", {"number": ran.arguments["number"], **before})


async def _undo_comment(ran: Ran) -> InverseCall:
    return InverseCall("take_back_comment", {"number": ran.arguments["number"], **(ran.kept or {})})


def _describe_taking_back(arguments: Arguments) -> str:
    actions = []
    if arguments.get("reopen"):
        actions.append("reopen")
    if arguments.get("comment") is not None:
        actions.append("remove the comment from")
    words = " and ".join(actions) or "leave"  # a call without either changes nothing
    return f"{words[0].upper()}{words[1:]} issue #{arguments['number']}"


def _read_fields(arguments: Arguments) -> dict[str, Any]:
    """Return the fields that an update sets, as an `Issue` has them: the argument "" for no assignee is None.

    Raises ToolError if no field is given.
    """
    wanted = {name: arguments[name] for name in _FIELDS if name in arguments}
    if not wanted:
        raise ToolError(f"Say what to change: give at least one of {', '.join(_FIELDS)}.")
    if "assignee" in wanted:
        wanted["assignee"] = wanted["assignee"] or None
    if "labels" in wanted:
        wanted["labels"] = tuple(wanted["labels"])
    return wanted


def _format_value(value: Any) -> str | None:
    """Return a field's value as text for a card; None for an empty value."""
    if isinstance(value, (list, tuple)):
        return ", ".join(value) or None
    return value or None


# -- descriptions of an issue


def _load_with_comments(session: Session, number: int) -> tuple[Issue, list[Comment]]:
    return issues.find(session, number), issues.list_comments(session, number)


def _make_authorship(context: CallContext) -> dict[str, Any]:
    """Return a new row's author, and the idempotency key by which a second run of the call finds the row."""
    return {"author": context.requested_by, "key": context.idempotency_key or None}


async def _find_similarity_key(arguments: Arguments) -> Arguments:
    """Return the key of *Approve similar*: calls about the same issue are similar."""
    return {"issue": f"#{arguments['number']}"}


def _describe_update(arguments: Arguments) -> str:
    return f"Change {_join_names(arguments) or 'nothing'} of issue #{arguments['number']}"


def _join_names(fields: Iterable[str]) -> str:
    """Return the names of an issue's fields among ``fields``: ``title, body and labels``; empty for none."""
    names = [name for name in _FIELDS if name in fields]
    if len(names) > 1:
        return f"{', '.join(names[:-1])} and {names[-1]}"
    return "".join(names)


def _name_issue(issue: Issue) -> str:
    return f"issue #{issue.number} “{issue.title}”"


def _describe_comments(count: int) -> str:
    """Return words to follow an issue's name: ``and its 3 comments``; empty for none."""
    if not count:
        return ""
    if count == 1:
        return " and its comment"
    return f" and its {count} comments"


def _describe_issue(issue: Issue) -> dict[str, Any]:
    """Return an issue for the model, without its body."""
    return {
        "number": issue.number,
        "title": issue.title,
        "state": issue.state,
        "priority": issue.priority,
        "assignee": issue.assignee,
        "labels": list(issue.labels),
        "created_at": issue.created_at.isoformat(),
        "updated_at": issue.updated_at.isoformat(),
    }


def _make_page(found: list[Issue], total: int) -> dict[str, Any]:
    """Return listed issues for the model. ``total``: the number of matches, of which these are the newest."""
    return {"issues": [_describe_issue(issue) for issue in found], "total": total}


# -- the demo


def seed(session: Session, now: datetime) -> None:
    """Fill an empty tracker with the sample issues. A tracker with issues is left alone."""
    _, issue_count = issues.list_issues(session, limit=1)
    if issue_count:
        return
    samples = [
        issues.create(session, **sample, author="demo", key=None, now=now - timedelta(days=9 - index))
        for index, sample in enumerate(_SAMPLES)
    ]
    issues.add_comment(
        session,
        samples[0].number,
        "Seen by two more people this morning.",
        author="demo",
        key=None,
        now=now - timedelta(hours=3),
    )
    issues.change_issue(session, samples[-1].number, {"state": "closed"}, now - timedelta(hours=2))
