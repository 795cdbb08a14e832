"""The tools of the built-in issue tracker.

A tool that changes an issue has further functions, which the kernel calls before and after the run:

- ``preview`` and ``current`` return values of the issue before and after the run (``previews.py``).
- ``undo`` returns the call of another tool that reverses the change. It gets the values that the run returned
  as ``kept`` in its `ToolOutput`. (``told`` there is the text for people.)

The preview is computed again in the transaction that makes the change (`_change_as_shown`). If the old values
have changed since people saw them, nothing is done.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, TypeVar

from sqlmodel import Session

from bot.domain.chat import Clock
from bot.domain.preview import PreviewField, old_values
from bot.errors import ToolError
from bot.features.issues import rows as issues
from bot.features.issues.descriptions import (
    describe_comments,
    describe_issue,
    describe_taking_back,
    describe_update,
    name_issue,
)
from bot.features.issues.fields import (
    FIELDS,
    Body,
    CommentBody,
    Label,
    Labels,
    Line,
    Name,
    Number,
    join_names,
    read_fields,
)
from bot.features.issues.previews import (
    load_with_comments,
    preview_closing,
    preview_comment,
    preview_creation,
    preview_deletion,
    preview_taking_back,
    preview_update,
    read_after_deletion,
    read_current,
    read_newest_titled,
    read_with_comment,
)
from bot.features.issues.rows import Issue, IssueState, Priority
from bot.store.database import Database
from bot.tools.call import Arguments, CallContext, InverseCall, Ran, ToolOutput
from bot.tools.decorator import tool
from bot.tools.looks import Undo
from bot.tools.tool import Tool
from bot.tools.toolset import FixedToolset

T = TypeVar("T")
ToolDecorator = Callable[[Callable[..., Awaitable[Any]]], Tool]  # turns an async function into a tool

_MAX_LISTED = 50  # the most issues in one answer


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
        issue, comments = await database.read(load_with_comments, number)
        return {
            **describe_issue(issue),
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
        preview=preview_creation,
        touches="",  # a new issue: no other call can change it
        current=lambda arguments: database.read(read_newest_titled, arguments),
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
        return ToolOutput(describe_issue(issue), told=f"Created {name_issue(issue)}", kept=issue.number)

    @issue_tool(
        summary=describe_update,
        preview=preview_update,
        touches="issue {number}",
        current=read_current,
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
        values = (title, body, assignee, priority, labels, state)  # in the order of `FIELDS`
        given = {name: value for name, value in zip(FIELDS, values, strict=True) if value is not None}
        wanted = read_fields(given)
        before, issue = await change_as_shown(
            context,
            preview_update,
            {"number": number, **given},
            lambda session: issues.change_issue(session, number, wanted, clock()),
        )
        kept = {name: getattr(before, name) for name in wanted}
        told = f"Changed {join_names(wanted)} of {name_issue(issue)}"
        return ToolOutput(describe_issue(issue), told=told, kept=kept)

    @issue_tool(
        summary="Comment on issue #{number}".format_map,
        preview=preview_comment,
        touches="",  # a new comment: no other call can change it
        current=read_with_comment,
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
        told = f"Commented on {name_issue(issue)}"
        return ToolOutput({**describe_issue(issue), "comment": body}, told=told, kept={"comment": comment_id})

    @issue_tool(
        summary="Close issue #{number}".format_map,
        preview=preview_closing,
        touches="issue {number}",
        current=read_with_comment,
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
            preview_closing,
            {"number": number, "reason": reason},
            lambda session: issues.close(session, number, reason, **_make_authorship(context), now=clock()),
        )
        kept: dict[str, Any] = {"reopen": True}
        if reason:
            comment_id = await database.read(issues.find_comment_id, context.idempotency_key)
            kept = {"comment": comment_id, "reopen": True}
        return ToolOutput(describe_issue(issue), told=f"Closed {name_issue(issue)}", kept=kept)

    async def describe_deletion(arguments: Arguments) -> str:
        issue, comments = await database.read(load_with_comments, arguments["number"])
        return f"Delete {name_issue(issue)}{describe_comments(len(comments))}"

    @tool(
        destructive=True,
        group="issues",
        summary="Delete issue #{number} and its comments",
        title=describe_deletion,
        preview=lambda arguments: database.read(preview_deletion, arguments),
        touches="issue {number}",
        current=lambda arguments: database.read(read_after_deletion, arguments),
    )
    async def delete_issue(number: Number, context: CallContext) -> ToolOutput:
        """Delete an issue and its comments permanently. To end an issue, prefer close_issue.

        Args:
            number: the issue's number, without #

        """
        _, (issue, comment_count) = await change_as_shown(
            context,
            preview_deletion,
            {"number": number},
            lambda session: issues.remove_issue(session, number),
        )
        deleted = {"deleted": issue.number, "title": issue.title, "comments_deleted": comment_count}
        return ToolOutput(deleted, told=f"Deleted {name_issue(issue)}{describe_comments(comment_count)}")

    return create_issue, update_issue, comment_issue, close_issue, delete_issue


def _make_undo_tool(database: Database, clock: Clock) -> Tool:
    """Return the tool that undoes a comment or a closing. No model is offered it."""

    @_make_issue_decorator(database)(
        summary=describe_taking_back,
        preview=preview_taking_back,
        touches="issue {number}",
        current=read_current,
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
        _, issue = await _change_as_shown(database, context, preview_taking_back, arguments, change)
        action = "Reopened" if reopen else "Removed the comment on"
        return ToolOutput(describe_issue(issue), told=f"{action} {name_issue(issue)}")

    return replace(take_back_comment, offered=False, only_for_undo=True)


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


def _make_authorship(context: CallContext) -> dict[str, Any]:
    """Return a new row's author, and the idempotency key by which a second run of the call finds the row."""
    return {"author": context.requested_by, "key": context.idempotency_key or None}


async def _find_similarity_key(arguments: Arguments) -> Arguments:
    """Return the key of *Approve similar*: calls about the same issue are similar."""
    return {"issue": f"#{arguments['number']}"}


def _make_page(found: list[Issue], total: int) -> dict[str, Any]:
    """Return listed issues for the model. ``total``: the number of matches, of which these are the newest."""
    return {"issues": [describe_issue(issue) for issue in found], "total": total}
