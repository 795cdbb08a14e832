"""Sign-ins under way at the organisation's own sign-in (OpenID Connect), to which a browser goes and returns.

While the browser is away, the values by which it is checked when it returns are stored. They are found by the
*state*: a random text that the browser takes to the provider and brings back. Each function is part of one
transaction. The session is begun by `sign_in_links.sign_in_by_organisation`.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlmodel import Session

from bot.domain.text import hash_text
from bot.store.state import count_states, forget_states, pop_state, store_state

MAX_AWAY = timedelta(minutes=10)
"""The longest time that a browser may spend at the organisation's sign-in."""
_UNDER_WAY = "sign-in"  # the group of stored states with an entry for each browser at that sign-in
_MAX_UNDER_WAY = 10_000


def begin(session: Session, state: str, values: Mapping[str, str], now: datetime) -> bool:
    """Store the values by which a browser is checked when it returns, under its ``state``.

    Anyone can begin a sign-in, so the number is limited: returns False if too many browsers have not
    returned.
    """
    forget_states(session, _UNDER_WAY, now - MAX_AWAY)
    if count_states(session, _UNDER_WAY) >= _MAX_UNDER_WAY:
        return False
    store_state(session, _UNDER_WAY, hash_text(state), values, now)
    return True


def take(session: Session, state: str, now: datetime) -> Mapping[str, str] | None:
    """Return the values that `begin` stored, and delete them; None if they are unknown, used or too old."""
    return pop_state(session, _UNDER_WAY, hash_text(state), now - MAX_AWAY)
