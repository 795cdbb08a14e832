"""Descriptions of issues, for people and for models."""

from typing import Any

from bot.features.issues.fields import join_names
from bot.features.issues.rows import Issue
from bot.tools.call import Arguments


def describe_update(arguments: Arguments) -> str:
    return f"Change {join_names(arguments) or 'nothing'} of issue #{arguments['number']}"


def name_issue(issue: Issue) -> str:
    return f"issue #{issue.number} “{issue.title}”"


def describe_comments(count: int) -> str:
    """Return words to follow an issue's name: ``and its 3 comments``; empty for none."""
    if not count:
        return ""
    if count == 1:
        return " and its comment"
    return f" and its {count} comments"


def describe_issue(issue: Issue) -> dict[str, Any]:
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


def describe_taking_back(arguments: Arguments) -> str:
    actions = []
    if arguments.get("reopen"):
        actions.append("reopen")
    if arguments.get("comment") is not None:
        actions.append("remove the comment from")
    words = " and ".join(actions) or "leave"  # a call without either changes nothing
    return f"{words[0].upper()}{words[1:]} issue #{arguments['number']}"
