"""Calls of the hook by which features are told that a person's account has changed.

An account changes when it is unlinked from a person, signed out, or gone from its platform. A feature then
ends what it keeps for the account. The change itself must not fail because of a feature. So a feature that
raises is rolled back alone, the account is noted, and a sweep calls `tell_again` until no feature raises.
Until then the feature still has its data, and the log says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.exc import OperationalError
from sqlmodel import Session

from bot.domain.hooks import ChangePerson
from bot.domain.jobs import Job
from bot.domain.people import Actor
from bot.store import state
from bot.store.hooks import hooks_of
from bot.telemetry.logs import logger

log = logger(__name__)

_UNTOLD = "untold-changes"  # the group of stored states that has an entry for each account to tell again


@dataclass(frozen=True, slots=True)
class TellingOutcome:
    """The outcome of telling the features of a change."""

    is_told: bool  # True if no feature raised
    jobs: tuple[Job, ...]


def tell_features(session: Session, account: Actor, now: datetime) -> TellingOutcome:
    """Tell every feature of an account's change. If one raises, all are told again later."""
    is_told = True
    jobs: list[Job] = []
    for change_person in hooks_of(session).change_person:
        jobs_of_feature = _tell(session, change_person, account, now)
        if jobs_of_feature is None:
            is_told = False
        else:
            jobs += jobs_of_feature
    if not is_told:
        state.store_state(session, _UNTOLD, str(account), {}, now)
    return TellingOutcome(is_told, tuple(jobs))


def tell_again(session: Session, now: datetime) -> tuple[int, tuple[Job, ...]]:
    """Tell the features again of each change at which a feature raised.

    Returns the number of changes that remain, and the jobs.
    """
    untold = sorted(state.list_states(session, _UNTOLD))
    jobs: list[Job] = []
    for account in untold:
        change = tell_features(session, Actor.parse(account), now)
        jobs += change.jobs
        if change.is_told:
            state.store_state(session, _UNTOLD, account, None, now)  # None: the entry is deleted
    remaining = state.count_states(session, _UNTOLD) if untold else 0
    return remaining, tuple(jobs)


def _tell(
    session: Session, change_person: ChangePerson, account: Actor, now: datetime
) -> Sequence[Job] | None:
    """Tell one feature, by its hook ``change_person``. Returns its jobs, or None if it raised.

    Raises OperationalError if the database did: then the full transaction has ended, not only the feature's
    part.
    """
    try:
        with session.begin_nested():
            return tuple(change_person(session, account, now))
    except OperationalError:
        raise
    except Exception:
        log.exception("a feature was not told of a person's change; it is told again", account=str(account))
        return None
