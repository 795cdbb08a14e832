"""The end of the rights of an account that is gone from its platform. Part of one transaction."""

from datetime import datetime

from sqlmodel import Session

from bot.approvals import grants
from bot.approvals.accounts import changes, sign_in_links
from bot.approvals.accounts.linking import unlink_account
from bot.domain.audit import Act
from bot.domain.jobs import Job
from bot.domain.people import NOD, Actor
from bot.store.audit.log import Author

_NOD = Actor(NOD, "departures", "Nod")  # the author of these changes in the audit log


def end_departed_account(session: Session, account: Actor, now: datetime) -> tuple[int, tuple[Job, ...]]:
    """End the sessions, links and grants of someone whose platform no longer knows their account.

    The account is unlinked from the person's other accounts, and features are told. Returns the number of
    ended sessions, and the jobs.
    """
    ended_sessions = sign_in_links.end_sessions_of(session, account, _NOD, now, "account gone")
    unlinking = unlink_account(session, str(account), _NOD, now)
    if unlinking is not None:  # this has ended the grants, and told the features
        return ended_sessions, unlinking.jobs
    grants.end_given_by(session, str(account), Author.of_nod(Act.END_WITH_ACCOUNT), now)
    telling = changes.tell_features(session, account, now)
    return ended_sessions, telling.jobs
