"""The built-in issue tracker as tools. Rows: ``bot/store/issues.py``; previews: ``previews.py``."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar

from sqlmodel import Session

from bot.domain.chat import Clock
from bot.domain.proposals import PreviewField, old_values
from bot.errors import ToolError
from bot.store import issues
from bot.store.database import Database
from bot.store.issues import Comment, Issue, IssueState, Priority
from bot.tools.builtin.issues import previews
from bot.tools.builtin.issues.previews import Body, Label, Labels, Line, Name, Number, Said
from bot.tools.tool import Arguments, CallContext, FixedToolset, Preview, Title, Tool, ToolOutput, tool

T = TypeVar("T")
_Preview = Callable[[Session, Arguments], Sequence[PreviewField]]

_LISTED = 50  # issues in one answer
_ONE_ISSUE = "issue {number}"


def issue_tools(database: Database, clock: Clock) -> FixedToolset:
    """All tools of the tracker, over ``database``."""
    return FixedToolset("issues", (*_reads(database), *_writes(database, clock), *_ends(database, clock)))


def _reads(database: Database) -> tuple[Tool, ...]:
    @tool(writes=False, group="issues", summary="Search issues for “{query}”")
    async def search_issues(query: Line, state: IssueState | None = None) -> dict[str, Any]:
        """Find issues by words in their title or body. Every word must occur; newest first.

        Args:
            query: the words to look for
            state: only open or only closed issues; both when not given

        """
        return _listed(*await database.read(issues.search, query, state, limit=_LISTED))

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
        wanted = (state, assignee, label, priority)
        return _listed(*await database.read(issues.listing, *wanted, limit=_LISTED))

    @tool(writes=False, group="issues", summary="Count open issues by assignee")
    async def workload() -> dict[str, Any]:
        """Count the open and urgent issues of each assignee. Assignee null is the issues no one has."""
        return {"workload": [asdict(load) for load in await database.read(issues.workload)]}

    return search_issues, get_issue, list_issues, workload


def _writes(database: Database, clock: Clock) -> tuple[Tool, ...]:
    @tool(
        group="issues",
        idempotent=True,
        summary="Create issue “{title}”",
        preview=_read_by(database, previews.created),
        touches="",  # a new one: there is nothing that could have changed
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
        made = partial(
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
        issue = await database.write(made)
        return ToolOutput(_told(issue), told=f"Created {_called(issue)}")

    @tool(
        group="issues",
        idempotent=True,
        summary=_update_in_words,
        title=_named(database, _update_in_words),
        key=_issue,
        preview=_read_by(database, previews.updated),
        touches=_ONE_ISSUE,
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
        given = {
            "title": title,
            "body": body,
            "assignee": assignee,
            "priority": priority,
            "labels": labels,
            "state": state,
        }
        given = {name: value for name, value in given.items() if value is not None}
        wanted = previews.wanted_fields(given)
        change = partial(issues.change, number=number, wanted=wanted, now=clock())
        issue = await database.write(
            _as_shown, previews.updated, {"number": number, **given}, context, change
        )
        return ToolOutput(_told(issue), told=f"Changed {_listing(wanted)} of {_called(issue)}")

    @tool(
        group="issues",
        idempotent=True,
        summary="Comment on issue #{number}",
        title=_named(database, "Comment on issue #{number}".format_map),
        key=_issue,
        preview=_read_by(database, previews.commented),
        touches="",
    )
    async def comment_issue(context: CallContext, number: Number, body: Said) -> ToolOutput:
        """Add a comment to an issue.

        Args:
            number: the issue's number, without #
            body: the comment, in Markdown

        """
        author, key = context.requested_by, context.idempotency_key or None
        issue = await database.write(
            partial(issues.comment, author=author, key=key, now=clock()), number, body
        )
        return ToolOutput({**_told(issue), "comment": body}, told=f"Commented on {_called(issue)}")

    return create_issue, update_issue, comment_issue


def _ends(database: Database, clock: Clock) -> tuple[Tool, ...]:
    @tool(
        group="issues",
        idempotent=True,
        summary="Close issue #{number}",
        title=_named(database, "Close issue #{number}".format_map),
        key=_issue,
        preview=_read_by(database, previews.closed),
        touches=_ONE_ISSUE,
    )
    async def close_issue(context: CallContext, number: Number, reason: Said | None = None) -> ToolOutput:
        """Close an issue. It can be reopened with update_issue.

        Args:
            number: the issue's number, without #
            reason: why; it is added as a comment

        """
        author, key = context.requested_by, context.idempotency_key or None
        given = {"number": number, "reason": reason}
        close = partial(issues.close, number=number, reason=reason, author=author, key=key, now=clock())
        issue = await database.write(_as_shown, previews.closed, given, context, close)
        return ToolOutput(_told(issue), told=f"Closed {_called(issue)}")

    @tool(
        destructive=True,
        group="issues",
        summary="Delete issue #{number} and its comments",
        title=_deleting(database),
        preview=_read_by(database, previews.deleted),
        touches=_ONE_ISSUE,
    )
    async def delete_issue(number: Number, context: CallContext) -> ToolOutput:
        """Delete an issue and its comments permanently. To end an issue, prefer close_issue.

        Args:
            number: the issue's number, without #

        """
        remove = partial(issues.remove, number=number)
        issue, said = await database.write(_as_shown, previews.deleted, {"number": number}, context, remove)
        gone = {"deleted": issue.number, "title": issue.title, "comments_deleted": said}
        return ToolOutput(gone, told=f"Deleted {_called(issue)}{_with_its(said)}")

    return close_issue, delete_issue


def _read_by(database: Database, preview: _Preview) -> Preview:
    async def read(arguments: Arguments) -> Sequence[PreviewField]:
        return await database.read(preview, arguments)

    return read


def _as_shown(
    session: Session,
    preview: _Preview,
    arguments: Arguments,
    context: CallContext,
    change: Callable[[Session], T],
) -> T:
    """Change an issue in the transaction of one more look at it.

    Raises ToolError where the look finds other old values than the card showed.
    """
    issues.find(session, arguments["number"], lock=True)
    if context.preview and old_values(preview(session, arguments)) != old_values(context.preview):
        raise ToolError(f"Issue #{arguments['number']} changed after it was shown. Nothing was done.")
    return change(session)


def _with_comments(session: Session, number: int) -> tuple[Issue, list[Comment]]:
    return issues.find(session, number), issues.comments(session, number)


def _update_in_words(arguments: Arguments) -> str:
    return f"Change {_listing(arguments) or 'nothing'} of issue #{arguments['number']}"


def _listing(fields: Iterable[str]) -> str:
    """The fields that change, as people list them."""
    *some, last = [name for name in previews.CHANGEABLE if name in fields] or [""]
    return f"{', '.join(some)} and {last}" if some else last


def _named(database: Database, summary: Callable[[Arguments], str]) -> Title:
    """The summary with the issue's own title, so that a card says which issue it is about."""

    async def title(arguments: Arguments) -> str:
        issue = await database.read(issues.find, arguments["number"])
        return f"{summary(arguments)} “{issue.title}”"

    return title


def _deleting(database: Database) -> Title:
    async def title(arguments: Arguments) -> str:
        issue, said = await database.read(_with_comments, arguments["number"])
        return f"Delete {_called(issue)}{_with_its(len(said))}"

    return title


async def _issue(arguments: Arguments) -> Arguments:
    """What makes two calls similar: that they are about the same issue."""
    return {"issue": f"#{arguments['number']}"}


def _called(issue: Issue) -> str:
    return f"issue #{issue.number} “{issue.title}”"


def _with_its(comments: int) -> str:
    return "" if not comments else " and its comment" if comments == 1 else f" and its {comments} comments"


def _told(issue: Issue) -> dict[str, Any]:
    """An issue as JSON, without its body."""
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
