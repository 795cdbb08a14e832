"""Sessions of the console, and the two ways to begin one.

By a one-time link: someone with an account in a chat asks Nod for a link and opens it in a browser. The chat
account gets an account in the console, and both are linked as one Person (someone with all their accounts).
By the organisation's own sign-in (OpenID Connect): the browser goes to the provider and comes back, and
`sign_in_by_organisation` begins the session.

A link has a code, and a browser has the secret of its session. Both are rows of `SignInRow` with only the
SHA-256 of the code or secret. Each function is part of one transaction.
"""

import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlmodel import Session, col, delete, select

from bot.approvals import grants, rights
from bot.approvals.accounts import changes
from bot.approvals.accounts.linking import link_accounts, unlink_account
from bot.domain.audit import Act
from bot.domain.jobs import Job
from bot.domain.people import NOD, Actor
from bot.domain.text import hash_text
from bot.store import people
from bot.store.audit import admin_changes
from bot.store.audit.admin_changes import Thing
from bot.store.audit.log import Author
from bot.store.rules import Policies
from bot.store.state import count_states, forget_states, pop_state, store_state
from bot.store.tables.people import SignInRow
from bot.store.tables.row import count_changed

LINK_LIFE = timedelta(minutes=10)
SESSION_LIFE = timedelta(days=30)  # of a session that a link began
ORGANISATION_LIFE = timedelta(hours=12)  # of a session that the organisation's sign-in began
MAX_AWAY = timedelta(minutes=10)
"""The longest time that a browser may spend at the organisation's sign-in."""
_BEGUN_SIGN_INS = "sign-in"
"""The group of stored states with an entry for each browser at the organisation's sign-in."""
_NOD = Actor(NOD, "departures", "Nod")  # the author of changes when an account is gone, in the audit log
_MAX_BEGUN_SIGN_INS = 10_000  # the most browsers at the organisation's sign-in at the same time


def create_link(session: Session, actor: Actor, now: datetime) -> str:
    """Store a link that signs this account in once, within `LINK_LIFE`, and return its code.

    Earlier links of the account end, and expired rows are deleted.
    """
    # a row is a link if ``code`` is true, else a session
    is_earlier_link = (col(SignInRow.code).is_(True)) & (col(SignInRow.account) == str(actor))
    session.execute(delete(SignInRow).where(is_earlier_link | (col(SignInRow.expires_at) <= now)))
    return _store_secret(session, actor, now + LINK_LIFE, is_link=True)


def sign_in(session: Session, policies: Policies, code: str, now: datetime) -> str | None:
    """Use up the link with this code, and return the secret of a new session.

    None for an unknown, used or expired link.
    """
    row = session.execute(
        delete(SignInRow)
        .where(col(SignInRow.hash) == hash_text(code), col(SignInRow.code).is_(True))
        .where(col(SignInRow.expires_at) > now)
        .returning(col(SignInRow.account), col(SignInRow.name))
    ).first()
    if row is None:
        return None
    chat = Actor.parse(row[0], row[1])
    console = Actor("http", f"console-{hash_text(str(chat))[:12]}", chat.label)
    if str(console) not in people.load_person(session, chat).accounts:
        link_accounts(session, policies, chat, console, chat, now)
    until = now + SESSION_LIFE
    _record(session, console, Act.SIGN_IN, chat, {"how": "link", "until": until.isoformat()}, now)
    return _store_secret(session, console, until, is_link=False)


def begin_sign_in(session: Session, state: str, values: Mapping[str, str], now: datetime) -> bool:
    """Store the values that a browser is checked by when it returns from the organisation's sign-in.

    ``state``: the value that the browser brings back, by which ``values`` are found. Anyone can begin a
    sign-in, so the number is limited: returns False if too many browsers have not returned.
    """
    forget_states(session, _BEGUN_SIGN_INS, now - MAX_AWAY)
    if count_states(session, _BEGUN_SIGN_INS) >= _MAX_BEGUN_SIGN_INS:
        return False
    store_state(session, _BEGUN_SIGN_INS, hash_text(state), values, now)
    return True


def take_begun_sign_in(session: Session, state: str, now: datetime) -> Mapping[str, str] | None:
    """Return the values that `begin_sign_in` stored, and delete them; None if unknown, used or too old."""
    return pop_state(session, _BEGUN_SIGN_INS, hash_text(state), now - MAX_AWAY)


def sign_in_by_organisation(session: Session, actor: Actor, now: datetime) -> str:
    """Begin a session for someone whom the organisation has signed in, and return its secret."""
    until = now + ORGANISATION_LIFE
    _record(session, actor, Act.SIGN_IN, actor, {"how": "organisation", "until": until.isoformat()}, now)
    return _store_secret(session, actor, until, is_link=False)


def find_signed_in(session: Session, secret: str, now: datetime) -> Actor | None:
    """Return the account of the session with this secret; None if it is unknown, ended or too old."""
    row = session.exec(
        select(SignInRow).where(
            SignInRow.hash == hash_text(secret), col(SignInRow.code).is_(False), SignInRow.expires_at > now
        )
    ).first()
    if row:
        return Actor.parse(row.account, row.name)
    return None


def sign_out(session: Session, actor: Actor, now: datetime, secret: str = "") -> None:
    """End the session with this secret; without a secret, all sessions and links of this account."""
    condition = col(SignInRow.account) == str(actor)
    how = "everywhere"
    if secret:
        condition &= col(SignInRow.hash) == hash_text(secret)
        how = "here"
    if count_changed(session.execute(delete(SignInRow).where(condition))):
        _record(session, actor, Act.SIGN_OUT, actor, {"how": how}, now)


def list_sessions(session: Session, now: datetime) -> list[tuple[Actor, datetime]]:
    """Return the account and the time of the end of each live session, ordered by both."""
    live = select(SignInRow).where(col(SignInRow.code).is_(False), SignInRow.expires_at > now)
    rows = session.exec(live.order_by(col(SignInRow.account), col(SignInRow.expires_at)))
    return [(Actor.parse(row.account, row.name), row.expires_at) for row in rows]


def end_departed_account(session: Session, account: Actor, now: datetime) -> tuple[int, tuple[Job, ...]]:
    """End the sessions, links and grants of someone whose platform no longer knows their account.

    The account is unlinked from the person's other accounts, and features are told. Returns the number of
    ended sessions, and the jobs.
    """
    ended = end_sessions_of(session, account, _NOD, now, "account gone")
    unlinking = unlink_account(session, str(account), _NOD, now)
    if unlinking is not None:
        return ended, unlinking.jobs
    grants.end_given_by(session, str(account), Author.nod(Act.END_WITH_ACCOUNT), now)
    return ended, changes.tell_features(session, account, now).jobs


def end_sessions_of(session: Session, who: Actor, by: Actor, now: datetime, how: str = "by an admin") -> int:
    """End every session and link of a person, and return the number of sessions."""
    accounts = rights.list_accounts(session, who)
    ended = [actor for actor, _ in list_sessions(session, now) if str(actor) in accounts]
    session.execute(delete(SignInRow).where(col(SignInRow.account).in_(accounts)))
    for actor in dict.fromkeys(ended):
        _record(session, actor, Act.SIGN_OUT, by, {"how": how}, now)
    return len(ended)


def _record(
    session: Session, account: Actor, act: Act, by: Actor, details: Mapping[str, str], now: datetime
) -> None:
    """Record a sign-in or sign-out of an account. Features are told of a sign-out."""
    author = people.make_author(session, act, by)
    admin_changes.record(session, Thing.SESSION, str(account), author, None, details, now)
    if act is Act.SIGN_OUT:
        changes.tell_features(session, account, now)


def _store_secret(session: Session, actor: Actor, until: datetime, *, is_link: bool) -> str:
    """Store a row for a link or a session, with the hash of its code or secret; return the latter."""
    secret = secrets.token_urlsafe(32)
    session.add(
        SignInRow(
            hash=hash_text(secret), account=str(actor), name=actor.label, code=is_link, expires_at=until
        )
    )
    return secret
