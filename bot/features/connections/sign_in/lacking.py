"""Scopes that a server wants and a connection lacks: kept until the account is connected with them.

Reading scopes are asked for first. Where a call is refused for want of another one, that is asked for with
the next sign-in of the same owner there, together with those that were granted before.
"""

import re
from datetime import datetime

from sqlmodel import Session

from bot.store import state

_ROOM = "lacking-scopes"
_MOST = 20
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,100}")  # RFC 6749, section 3.3


def keep_lacking(session: Session, server: str, owner: str, scope: str, now: datetime) -> None:
    """Keep scopes that the server asked for, next to those that it asked for before."""
    asked = [each for each in scope.split() if _SCOPE.fullmatch(each)]
    known = list_lacking(session, server, owner)
    kept = list(dict.fromkeys((*known, *asked)))[:_MOST]
    if kept and kept != known:
        state.keep_state(session, _ROOM, _name_key(server, owner), {"scopes": kept}, now)


def list_lacking(session: Session, server: str, owner: str) -> list[str]:
    """Return the scopes that are asked for with the owner's next sign-in."""
    kept = state.load_state(session, _ROOM, _name_key(server, owner)) or {}
    return [str(each) for each in kept.get("scopes", ())]


def forget_lacking(session: Session, server: str, owner: str, now: datetime) -> None:
    """Forget them: the account was connected."""
    state.keep_state(session, _ROOM, _name_key(server, owner), None, now)


def _name_key(server: str, owner: str) -> str:
    return f"{server} {owner}"
