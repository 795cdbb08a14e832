"""The scopes that a server demanded and a connection lacks.

The first sign-in asks for scopes to read only. If the server refuses a call because it needs a further scope,
this scope is stored here, for the server and the owner of the connection. The owner's next sign-in there asks
for it as well; once the account is connected, the stored scopes are forgotten.
"""

import re
from datetime import datetime

from sqlmodel import Session

from bot.store import state

_ROOM = "lacking-scopes"
_MAX_SCOPES = 20  # of one server and owner
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,100}")  # visible ASCII but " and \ (RFC 6749, section 3.3)


def keep_lacking(session: Session, server: str, owner: str, scope: str, now: datetime) -> None:
    """Store scopes that a server demanded, in addition to those stored before. ``scope``: split by spaces."""
    asked = [each for each in scope.split() if _SCOPE.fullmatch(each)]
    known = list_lacking(session, server, owner)
    kept = list(dict.fromkeys((*known, *asked)))[:_MAX_SCOPES]
    if kept and kept != known:
        state.store_state(session, _ROOM, _name_key(server, owner), {"scopes": kept}, now)


def list_lacking(session: Session, server: str, owner: str) -> list[str]:
    """Return the stored scopes, for which the owner's next sign-in asks."""
    kept = state.load_state(session, _ROOM, _name_key(server, owner)) or {}
    return [str(each) for each in kept.get("scopes", ())]


def forget_lacking(session: Session, server: str, owner: str, now: datetime) -> None:
    """Forget the stored scopes, because the account was connected."""
    state.store_state(session, _ROOM, _name_key(server, owner), None, now)


def _name_key(server: str, owner: str) -> str:
    return f"{server} {owner}"
