"""Telling features what happened to a person's account.

What ends a right happens whatever a feature does: one that raises is told again until it does not, and keeps
nothing of that try. Its own end of what it holds is late then, and the log says so.
"""

from datetime import datetime

from sqlalchemy.exc import OperationalError
from sqlmodel import Session

from bot.domain.hooks import ChangePerson
from bot.domain.people import Actor
from bot.store import state
from bot.store.hooks import hooks_of
from bot.telemetry.logs import logger

log = logger(__name__)

_ROOM = "untold-changes"


def tell_features(session: Session, account: Actor, now: datetime) -> bool:
    """Tell every feature of an account's change; where one raises, note that it is to be told again."""
    told = [_tell(session, change_person, account, now) for change_person in hooks_of(session).change_person]
    is_told = all(told)
    if not is_told:
        state.keep_state(session, _ROOM, str(account), {}, now)
    return is_told


def tell_again(session: Session, now: datetime) -> int:
    """Tell the features of each change that one of them has not taken; return how many remain."""
    untold = sorted(state.list_states(session, _ROOM))
    for account in untold:
        if tell_features(session, Actor.parse(account), now):
            state.keep_state(session, _ROOM, account, None, now)
    return state.count_states(session, _ROOM) if untold else 0


def _tell(session: Session, change_person: ChangePerson, account: Actor, now: datetime) -> bool:
    """Tell one feature. Raises OperationalError: then the database ends the transaction, not the feature."""
    try:
        with session.begin_nested():
            change_person(session, account, now)
    except OperationalError:
        raise
    except Exception:
        log.exception("a feature was not told of a person's change; it is told again", account=str(account))
        return False
    return True
