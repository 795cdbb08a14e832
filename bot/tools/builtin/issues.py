"""The built-in issue tracker as tools. Rows: ``bot/store/issues.py``; previews: ``issue_previews.py``."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from sqlmodel import Session

from bot.domain.chat import Clock
from bot.domain.proposals import PreviewField
from bot.store import issues
from bot.store.database import Database
from bot.store.issues import Comment, Issue, IssueState, Priority
from bot.tools.builtin import issue_previews as previews
from bot.tools.builtin.issue_fields import Body, Label, Labels, Name, Number, Said, Title
from bot.tools.tool import Arguments, CallContext, FixedToolset, Preview, Tool, tool

_LISTED = 50  # issues in one answer


def issue_tools(database: Database, clock: Clock) -> FixedToolset:
    """All tools of the tracker, over ``database``."""
    return FixedToolset("issues", (*_reads(database), *_writes(database, clock), *_ends(database, clock)))


def _reads(database: Database) -> tuple[Tool, ...]:
    @tool(writes=False, group="issues", summary="Search issues for “{query}”")
    async def search_issues(query: Title, state: IssueState | None = None) -> dict[str, Any]:
        """Find issues by words in their title or body. Every word must occur; newest first.

        Args:
            query: the words to look for
            state: only open or only closed issues; both when not given

        """
        return _listed(*await database.read_aside(issues.search, query, state, limit=_LISTED))

    @tool(writes=False, group="issues", summary="Read issue #{number}")
    async def get_issue(number: Number) -> dict[str, Any]:
        """Read one issue in full, with its comments.

        Args:
            number: the issue's number, without #

        """
        issue, said = await database.read(_with_comments, number)
        comments = [{**asdict(each), "created_at": each.created_at.isoformat()} for each in said]
        return {**_told(issue), "body": issue.body, "author": issue.author, "comments": comments}

    @tool(writes=False, group="issues", summary="List issues")
    async def list_issues(
        state: IssueState | None = None, assignee: Name | None = None, label: Label | None = None
    ) -> dict[str, Any]:
        """List issues, newest first, without their bodies. Filters narrow it together.

        Args:
            state: only open or only closed issues
            assignee: only this person's issues; "" for issues that nobody has
            label: only issues with this label

        """
        return _listed(*await database.read_aside(issues.listing, state, assignee, label, limit=_LISTED))

    @tool(writes=False, group="issues", summary="Count open issues by assignee")
    async def workload() -> dict[str, Any]:
        """Count the open and urgent issues of each assignee. Assignee null is the issues nobody has."""
        return {"workload": [asdict(load) for load in await database.read_aside(issues.workload)]}

    return search_issues, get_issue, list_issues, workload


def _writes(database: Database, clock: Clock) -> tuple[Tool, ...]:
    @tool(
        group="issues",
        idempotent=True,
        summary="Create issue “{title}”",
        preview=_read_by(database, previews.created),
    )
    async def create_issue(
        *,
        context: CallContext,
        title: Title,
        body: Body = "",
        assignee: Name = "",
        priority: Priority = "normal",
        labels: Labels = [],  # noqa: B006 - never changed
    ) -> dict[str, Any]:
        """Create an issue. Search first: it may exist already.

        Args:
            title: one line, up to 200 characters
            body: what is wrong or wanted, in Markdown
            assignee: who should do it; nobody when not given
            priority: normal when not given
            labels: up to 10 labels of up to 40 characters

        """
        issue = await database.write(
            issues.create,
            title=title,
            body=body,
            assignee=assignee or None,
            priority=priority,
            labels=labels,
            author=context.requested_by,
            key=context.idempotency_key or None,
            now=clock(),
        )
        return _told(issue)

    @tool(
        group="issues",
        idempotent=True,
        summary=_update_in_words,
        preview=_read_by(database, previews.updated),
    )
    async def update_issue(
        *,
        number: Number,
        title: Title | None = None,
        body: Body | None = None,
        assignee: Name | None = None,
        priority: Priority | None = None,
        labels: Labels | None = None,
        state: IssueState | None = None,
    ) -> dict[str, Any]:
        """Change fields of an issue; fields that are not given stay. Give at least one.

        Args:
            number: the issue's number, without #
            title: the new title, one line
            body: the new body; it replaces the old one, "" empties it
            assignee: who should do it; "" for nobody
            priority: the new priority
            labels: all labels it shall have; they replace the old ones, [] removes all
            state: open to reopen, closed to close

        """
        given = {
            "title": title,
            "body": body,
            "assignee": assignee,
            "priority": priority,
            "labels": labels,
            "state": state,
        }
        wanted = previews.wanted_fields({name: value for name, value in given.items() if value is not None})
        return _told(await database.write(issues.change, number, wanted, clock()))

    @tool(
        group="issues",
        idempotent=True,
        summary="Comment on issue #{number}",
        preview=_read_by(database, previews.commented),
    )
    async def comment_issue(context: CallContext, number: Number, body: Said) -> dict[str, Any]:
        """Add a comment to an issue.

        Args:
            number: the issue's number, without #
            body: the comment, in Markdown

        """
        author, key = context.requested_by, context.idempotency_key or None
        issue = await database.write(issues.comment, number, body, author=author, key=key, now=clock())
        return {**_told(issue), "comment": body}

    return create_issue, update_issue, comment_issue


def _ends(database: Database, clock: Clock) -> tuple[Tool, ...]:
    @tool(
        group="issues",
        idempotent=True,
        summary="Close issue #{number}",
        preview=_read_by(database, previews.closed),
    )
    async def close_issue(context: CallContext, number: Number, reason: Said | None = None) -> dict[str, Any]:
        """Close an issue. It can be reopened with update_issue.

        Args:
            number: the issue's number, without #
            reason: why; it is added as a comment

        """
        author, key = context.requested_by, context.idempotency_key or None
        issue = await database.write(issues.close, number, reason, author=author, key=key, now=clock())
        return _told(issue)

    @tool(
        destructive=True,
        group="issues",
        summary="Delete issue #{number} and its comments",
        preview=_read_by(database, previews.deleted),
    )
    async def delete_issue(number: Number) -> dict[str, Any]:
        """Delete an issue and its comments for good. To end an issue, prefer close_issue.

        Args:
            number: the issue's number, without #

        """
        issue, said = await database.write(issues.remove, number)
        return {"deleted": issue.number, "title": issue.title, "comments_deleted": said}

    return close_issue, delete_issue


def _read_by(database: Database, preview: Callable[[Session, Arguments], Sequence[PreviewField]]) -> Preview:
    async def read(arguments: Arguments) -> Sequence[PreviewField]:
        return await database.read(preview, arguments)

    return read


def _with_comments(session: Session, number: int) -> tuple[Issue, list[Comment]]:
    return issues.find(session, number), issues.comments(session, number)


def _update_in_words(arguments: Arguments) -> str:
    names = [name for name in previews.CHANGEABLE if name in arguments]
    return f"Change {', '.join(names) or 'nothing'} of issue #{arguments['number']}"


def _told(issue: Issue) -> dict[str, Any]:
    """Tell an issue as JSON, without its body."""
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


def _listed(found: list[Issue], total: int) -> dict[str, Any]:
    return {"issues": [_told(issue) for issue in found], "total": total}
