"""The built-in issue tracker as tools, and its sample issues for the demo. Its rows are in `rows.py`.

A preview has the changes of a call: the old → new values that people approve. It raises `ToolError` when
the call could not or need not run. It is read again in the transaction that makes the change, so the old
values that it shows are guarded.
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
from bot.errors import Hopeless, ToolError
from bot.features.issues import rows as issues
from bot.features.issues.rows import Comment, Issue, IssueState, Priority
from bot.store.database import Database
from bot.tools.signature import SEEN, STORABLE, Storable
from bot.tools.tool import (
    Arguments,
    CallContext,
    FixedToolset,
    InverseCall,
    Ran,
    Tool,
    ToolOutput,
    Undo,
    tool,
)

T = TypeVar("T")

_LISTED = 50  # the most issues in one answer
_CHANGEABLE = ("title", "body", "assignee", "priority", "labels", "state")
_LINE_BREAK = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")
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


def _tidy(labels: list[str]) -> list[str]:
    return sorted(set(labels))


# the types of an issue's fields, whose values both databases can store
Number = Annotated[int, Field(ge=1, le=2**31 - 1)]
Text = Annotated[str, StringConstraints(strip_whitespace=True)]
Line = Annotated[Text, Field(min_length=1, max_length=200), AfterValidator(_one_line), SEEN]
Name = Annotated[Text, Field(max_length=80), AfterValidator(_one_line), SEEN]
Label = Annotated[Text, Field(min_length=1, max_length=40), AfterValidator(_one_line), SEEN]
Labels = Annotated[list[Label], Field(max_length=10), AfterValidator(_tidy)]
Body = Annotated[Storable, Field(max_length=20_000)]
CommentBody = Annotated[Text, Field(min_length=1, max_length=20_000), STORABLE]


def issue_tools(database: Database, clock: Clock) -> FixedToolset:
    """Return all tools of the tracker, over ``database``."""
    return FixedToolset("issues", (*_reads(database), *_writes(database, clock), _undoes(database, clock)))


def _reads(database: Database) -> tuple[Tool, ...]:
    @tool(writes=False, group="issues", summary="Search issues for “{query}”")
    async def search_issues(query: Line, state: IssueState | None = None) -> dict[str, Any]:
        """Find issues by words in their title or body. Every word must occur; newest first.

        Args:
            query: the words to look for
            state: only open or only closed issues; both when not given

        """
        return _page(*await database.read(issues.search, query, state, limit=_LISTED))

    @tool(writes=False, group="issues", summary="Read issue #{number}")
    async def get_issue(number: Number) -> dict[str, Any]:
        """Read one issue in full, with its comments.

        Args:
            number: the issue's number, without #

        """
        issue, found = await database.read(_with_comments, number)
        comments = [{**asdict(each), "created_at": each.created_at.isoformat()} for each in found]
        return {**_fields(issue), "body": issue.body, "author": issue.author, "comments": comments}

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
        return _page(*await database.read(issues.listing, state, assignee, label, priority, limit=_LISTED))

    @tool(writes=False, group="issues", summary="Count open issues by assignee")
    async def workload() -> dict[str, Any]:
        """Count the open and urgent issues of each assignee. Assignee null is the issues no one has."""
        return {"workload": [asdict(load) for load in await database.read(issues.workload)]}

    return search_issues, get_issue, list_issues, workload


def _of_one_issue(database: Database) -> Callable[..., Callable[[Callable[..., Awaitable[Any]]], Tool]]:
    """Return a decorator for tools that change one issue. Their cards have the issue's title, too."""

    def of(
        summary: Callable[[Arguments], str],
        preview: Callable[[Session, Arguments], Sequence[PreviewField]],
        touches: str,
        current: Callable[[Session, Arguments], Mapping[str, str | None]],
        undo: Undo | None = None,
    ) -> Callable[[Callable[..., Awaitable[Any]]], Tool]:
        async def title(arguments: Arguments) -> str:
            issue = await database.read(issues.find, arguments["number"])
            return f"{summary(arguments)} “{issue.title}”"

        return tool(
            group="issues",
            idempotent=True,
            summary=summary,
            title=title,
            key=_issue,
            preview=lambda arguments: database.read(preview, arguments),
            touches=touches,
            current=lambda arguments: database.read(current, arguments),
            undo=undo,
        )

    return of


async def _as_shown(
    database: Database,
    context: CallContext,
    preview: Callable[[Session, Arguments], Sequence[PreviewField]],
    arguments: Arguments,
    change: Callable[[Session], T],
) -> tuple[Issue, T]:
    """Change an issue if the old values that the card showed are still current, else raise ToolError.

    Returns the issue from before the change, and the result of the change.
    """

    def checked(session: Session) -> tuple[Issue, T]:
        before = issues.find(session, arguments["number"], lock=True)
        if context.preview and old_values(preview(session, arguments)) != old_values(context.preview):
            raise ToolError(f"Issue #{arguments['number']} changed after it was shown. Nothing was done.")
        return before, change(session)

    return await database.write(checked)


def _writes(database: Database, clock: Clock) -> tuple[Tool, ...]:
    of_one_issue, as_shown = _of_one_issue(database), partial(_as_shown, database)

    @tool(
        group="issues",
        idempotent=True,
        summary="Create issue “{title}”",
        preview=_preview_creation,
        touches="",  # a new issue: no other call can change it
        current=lambda arguments: database.read(_find_newest, arguments),
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
            **_by(context),
            now=clock(),
        )
        issue = await database.write(create)
        return ToolOutput(_fields(issue), told=f"Created {_name_issue(issue)}", kept=issue.number)

    @of_one_issue(_update_in_words, _preview_update, "issue {number}", _now, _undo_update)
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
        values = (title, body, assignee, priority, labels, state)
        given = {name: value for name, value in zip(_CHANGEABLE, values, strict=True) if value is not None}
        wanted = _read_fields(given)
        before, issue = await as_shown(
            context,
            _preview_update,
            {"number": number, **given},
            lambda session: issues.change_issue(session, number, wanted, clock()),
        )
        kept = {name: getattr(before, name) for name in wanted}
        return ToolOutput(
            _fields(issue), told=f"Changed {_listing(wanted)} of {_name_issue(issue)}", kept=kept
        )

    @of_one_issue("Comment on issue #{number}".format_map, _preview_comment, "", _find_comment, _undo_comment)
    async def comment_issue(context: CallContext, number: Number, body: CommentBody) -> ToolOutput:
        """Add a comment to an issue.

        Args:
            number: the issue's number, without #
            body: the comment, in Markdown

        """
        comment = partial(issues.comment, **_by(context), now=clock())
        issue = await database.write(comment, number, body)
        made = await database.read(issues.comment_of_key, context.idempotency_key)
        told = f"Commented on {_name_issue(issue)}"
        return ToolOutput({**_fields(issue), "comment": body}, told=told, kept={"comment": made})

    @of_one_issue(
        "Close issue #{number}".format_map, _preview_closing, "issue {number}", _find_comment, _undo_comment
    )
    async def close_issue(
        context: CallContext, number: Number, reason: CommentBody | None = None
    ) -> ToolOutput:
        """Close an issue. It can be reopened with update_issue.

        Args:
            number: the issue's number, without #
            reason: why; it is added as a comment

        """
        _, issue = await as_shown(
            context,
            _preview_closing,
            {"number": number, "reason": reason},
            lambda session: issues.close(session, number, reason, **_by(context), now=clock()),
        )
        if reason:
            made = await database.read(issues.comment_of_key, context.idempotency_key)
        else:
            made = None
        kept = {"comment": made, "reopen": True} if reason else {"reopen": True}
        return ToolOutput(_fields(issue), told=f"Closed {_name_issue(issue)}", kept=kept)

    async def deletion(arguments: Arguments) -> str:
        issue, comments = await database.read(_with_comments, arguments["number"])
        return f"Delete {_name_issue(issue)}{_with_its(len(comments))}"

    @tool(
        destructive=True,
        group="issues",
        summary="Delete issue #{number} and its comments",
        title=deletion,
        preview=lambda arguments: database.read(_preview_deletion, arguments),
        touches="issue {number}",
        current=lambda arguments: database.read(_find_left, arguments),
    )
    async def delete_issue(number: Number, context: CallContext) -> ToolOutput:
        """Delete an issue and its comments permanently. To end an issue, prefer close_issue.

        Args:
            number: the issue's number, without #

        """
        _, (issue, comments) = await as_shown(
            context,
            _preview_deletion,
            {"number": number},
            lambda session: issues.remove_issue(session, number),
        )
        gone = {"deleted": issue.number, "title": issue.title, "comments_deleted": comments}
        return ToolOutput(gone, told=f"Deleted {_name_issue(issue)}{_with_its(comments)}")

    return create_issue, update_issue, comment_issue, close_issue, delete_issue


def _undoes(database: Database, clock: Clock) -> Tool:
    @_of_one_issue(database)(_title_taking_back, _preview_taking_back, "issue {number}", _now)
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
            return issues.change_issue(session, number, {"state": "open"} if reopen else {}, clock())

        given = {"number": number, "comment": comment, "reopen": reopen}
        _, issue = await _as_shown(database, context, _preview_taking_back, given, change)
        return ToolOutput(
            _fields(issue),
            told=f"{'Reopened' if reopen else 'Removed the comment on'} {_name_issue(issue)}",
        )

    return replace(take_back_comment, offered=False, undoes=True)


# -- previews


async def _preview_creation(arguments: Arguments) -> Sequence[PreviewField]:
    values = {"priority": "normal", **arguments}
    return [PreviewField(name, None, _format_value(values[name])) for name in _CHANGEABLE if values.get(name)]


def _preview_update(session: Session, arguments: Arguments) -> Sequence[PreviewField]:
    """Return the fields whose values would change."""
    issue = issues.find(session, arguments["number"])
    real = issues.differences(issue, _read_fields(arguments))
    if not real:
        raise ToolError(f"This would change nothing: issue #{issue.number} already has these values.")
    return [
        PreviewField(name, _format_value(getattr(issue, name)), _format_value(value))
        for name, value in real.items()
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
    issue, comments = _with_comments(session, arguments["number"])
    fields = [PreviewField("title", issue.title, None), PreviewField("state", issue.state, None)]
    if comments:
        fields.append(PreviewField("comments", str(len(comments)), None))
    return fields


def _preview_taking_back(session: Session, arguments: Arguments) -> Sequence[PreviewField]:
    issue = issues.find(session, arguments["number"])
    if arguments.get("reopen"):
        fields = [PreviewField("state", issue.state, "open")]
    else:
        fields = []
    ident = arguments.get("comment")
    if ident is not None:
        comment = issues.comment_with(session, issue.number, ident)
        if comment is None:
            raise Hopeless(f"The comment on issue #{issue.number} is gone already.")
        fields.append(PreviewField("comment", comment.body, None))
    return fields


# -- read again


def _now(session: Session, arguments: Arguments) -> Mapping[str, str | None]:
    issue = issues.find(session, arguments["number"])
    found = {name: _format_value(getattr(issue, name)) for name in _CHANGEABLE}
    ident = arguments.get("comment")
    if ident is not None:
        comment = issues.comment_with(session, issue.number, ident)
        found["comment"] = comment.body if comment else None
    return found


def _find_comment(session: Session, arguments: Arguments) -> Mapping[str, str | None]:
    given = arguments.get("body") or arguments.get("reason")
    there = {each.body for each in issues.comments(session, arguments["number"])}
    return {**_now(session, arguments), "comment": given if given in there else None}


def _find_newest(session: Session, arguments: Arguments) -> Mapping[str, str | None]:
    found = issues.newest_titled(session, arguments["title"])
    return {name: _format_value(getattr(found, name)) if found else None for name in _CHANGEABLE}


def _find_left(session: Session, arguments: Arguments) -> Mapping[str, str | None]:
    try:
        return _now(session, arguments)
    except Hopeless:
        return {"title": None, "state": None, "comments": None}


# -- undo


async def _undo_creation(ran: Ran) -> InverseCall:
    return InverseCall("delete_issue", {"number": ran.kept})


async def _undo_update(ran: Ran) -> InverseCall:
    before = {
        name: list(value) if name == "labels" else value or "" for name, value in (ran.kept or {}).items()
    }
    return InverseCall("update_issue", {"number": ran.arguments["number"], **before})


async def _undo_comment(ran: Ran) -> InverseCall:
    return InverseCall("take_back_comment", {"number": ran.arguments["number"], **(ran.kept or {})})


def _title_taking_back(arguments: Arguments) -> str:
    parts = ["Reopen"] if arguments.get("reopen") else []
    parts += ["remove the comment from"] if arguments.get("comment") is not None else []
    said = " and ".join(parts) or "Leave"
    return f"{said[0].upper()}{said[1:]} issue #{arguments['number']}"


def _read_fields(arguments: Arguments) -> dict[str, Any]:
    """Return the fields that an update sets, in the form of the store (assignee "" is no one).

    Raises ToolError if no field is given.
    """
    wanted = {name: arguments[name] for name in _CHANGEABLE if name in arguments}
    if not wanted:
        raise ToolError(f"Say what to change: give at least one of {', '.join(_CHANGEABLE)}.")
    if "assignee" in wanted:
        wanted["assignee"] = wanted["assignee"] or None
    if "labels" in wanted:
        wanted["labels"] = tuple(wanted["labels"])
    return wanted


def _format_value(value: Any) -> str | None:
    if isinstance(value, (list, tuple)):
        return ", ".join(value) or None
    return value or None


# -- descriptions of an issue


def _with_comments(session: Session, number: int) -> tuple[Issue, list[Comment]]:
    return issues.find(session, number), issues.comments(session, number)


def _by(context: CallContext) -> dict[str, Any]:
    """Return a row's author and the idempotency key by which a second run finds it."""
    return {"author": context.requested_by, "key": context.idempotency_key or None}


async def _issue(arguments: Arguments) -> Arguments:
    """Return the key of similar calls, which are calls about the same issue."""
    return {"issue": f"#{arguments['number']}"}


def _update_in_words(arguments: Arguments) -> str:
    return f"Change {_listing(arguments) or 'nothing'} of issue #{arguments['number']}"


def _listing(fields: Iterable[str]) -> str:
    *some, last = [name for name in _CHANGEABLE if name in fields] or [""]
    if some:
        return f"{', '.join(some)} and {last}"
    return last


def _name_issue(issue: Issue) -> str:
    return f"issue #{issue.number} “{issue.title}”"


def _with_its(comments: int) -> str:
    if not comments:
        return ""
    if comments == 1:
        return " and its comment"
    return f" and its {comments} comments"


def _fields(issue: Issue) -> dict[str, Any]:
    """Return an issue as JSON, without its body."""
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


def _page(found: list[Issue], total: int) -> dict[str, Any]:
    return {"issues": [_fields(issue) for issue in found], "total": total}


# -- the demo


def seed(session: Session, now: datetime) -> None:
    """Fill an empty tracker. A tracker with issues is left alone."""
    if issues.listing(session, limit=1)[1]:
        return
    made = [
        issues.create(session, **each, author="demo", key=None, now=now - timedelta(days=9 - place))
        for place, each in enumerate(_SAMPLES)
    ]
    issues.comment(
        session,
        made[0].number,
        "Seen by two more people this morning.",
        author="demo",
        key=None,
        now=now - timedelta(hours=3),
    )
    issues.change_issue(session, made[-1].number, {"state": "closed"}, now - timedelta(hours=2))
