"""Telling features what happened to a person's account.

What ends a right happens whatever a feature does: one that raises is told again until it does not, and keeps
nothing of that try. Its own end of what it holds is late then, and the log says so.
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

_ROOM = "untold-changes"


@dataclass(frozen=True, slots=True)
class ToldChange:
    """The outcome of telling features: whether all of them took it, and the work to start."""

    is_told: bool
    jobs: tuple[Job, ...]


def tell_features(session: Session, account: Actor, now: datetime) -> ToldChange:
    """Tell every feature of an account's change; where one raises, note that it is to be told again."""
    told = [_tell(session, change_person, account, now) for change_person in hooks_of(session).change_person]
    if None in told:
        state.keep_state(session, _ROOM, str(account), {}, now)
    return ToldChange(None not in told, tuple(job for jobs in told for job in jobs or ()))


def tell_again(session: Session, now: datetime) -> tuple[int, tuple[Job, ...]]:
    """Tell the features of each change that one of them has not taken.

    Returns how many remain, and work to start.
    """
    untold = sorted(state.list_states(session, _ROOM))
    jobs: list[Job] = []
    for account in untold:
        change = tell_features(session, Actor.parse(account), now)
        jobs += change.jobs
        if change.is_told:
            state.keep_state(session, _ROOM, account, None, now)
    remaining = state.count_states(session, _ROOM) if untold else 0
    return remaining, tuple(jobs)


def _tell(
    session: Session, change_person: ChangePerson, account: Actor, now: datetime
) -> Sequence[Job] | None:
    """Tell one feature; returns work to start, or None where it raised.

    Raises OperationalError: then the database ends the transaction, not the feature.
    """
    try:
        with session.begin_nested():
            return tuple(change_person(session, account, now))
    except OperationalError:
        raise
    except Exception:
        log.exception("a feature was not told of a person's change; it is told again", account=str(account))
        return None
