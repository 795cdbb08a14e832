"""The sample issues of the demo."""

from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session

from bot.features.issues import rows as issues

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


def store_samples(session: Session, now: datetime) -> None:
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
