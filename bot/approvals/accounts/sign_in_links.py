"""Sessions of browsers in the console, and the one-time links that begin them.

A session begins in one of two ways. By a link: someone with an account in a chat asks Nod for a link and
opens it in a browser. The chat account gets an account in the console, and both are linked as one Person
(someone with all their accounts). By the organisation's own sign-in (OpenID Connect): the browser comes back
from it, as ``organisation_sign_ins.py`` tells.

A link has a code, and a browser has the secret of its session. Both are rows of `SignInRow` with only the
SHA-256 of the code or secret. Each function is part of one transaction.
"""

import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlmodel import Session, col, delete, select

from bot.approvals import rights
from bot.approvals.accounts import changes
from bot.approvals.accounts.linking import link_accounts
from bot.domain.audit import Act
from bot.domain.people import Actor
from bot.domain.text import hash_text
from bot.store import people
from bot.store.audit import admin_changes
from bot.store.audit.admin_changes import Thing
from bot.store.rules import Policies
from bot.store.tables.people import SignInRow
from bot.store.tables.row import count_changed

LINK_LIFE = timedelta(minutes=10)
SESSION_LIFE = timedelta(days=30)  # of a session that a link began
ORGANISATION_LIFE = timedelta(hours=12)  # of a session that the organisation's sign-in began

# the column ``code`` is true for a row with the hash of a link's code, else the row is a session
_IS_LINK = col(SignInRow.code).is_(True)
_IS_SESSION = col(SignInRow.code).is_(False)


def create_link(session: Session, actor: Actor, now: datetime) -> str:
    """Store a link that signs this account in once, within `LINK_LIFE`, and return its code.

    Earlier links of the account end, and expired rows are deleted.
    """
    is_earlier_link = _IS_LINK & (col(SignInRow.account) == str(actor))
    session.execute(delete(SignInRow).where(is_earlier_link | (col(SignInRow.expires_at) <= now)))
    return _store_secret(session, actor, now + LINK_LIFE, is_link=True)


def sign_in_by_link(session: Session, policies: Policies, code: str, now: datetime) -> str | None:
    """Use up the link with this code, and return the secret of a new session.

    None for an unknown, used or expired link.
    """
    row = session.execute(
        delete(SignInRow)
        .where(col(SignInRow.hash) == hash_text(code), _IS_LINK)
        .where(col(SignInRow.expires_at) > now)
        .returning(col(SignInRow.account), col(SignInRow.name))
    ).first()
    if row is None:
        return None
    chat_account = Actor.parse(row.account, row.name)
    console_key = f"console-{hash_text(str(chat_account))[:12]}"
    console_account = Actor("http", console_key, chat_account.label)
    if str(console_account) not in people.load_person(session, chat_account).accounts:
        link_accounts(session, policies, chat_account, console_account, chat_account, now)
    until = now + SESSION_LIFE
    details = {"how": "link", "until": until.isoformat()}
    _record(session, console_account, Act.SIGN_IN, chat_account, details, now)
    return _store_secret(session, console_account, until, is_link=False)


def sign_in_by_organisation(session: Session, actor: Actor, now: datetime) -> str:
    """Begin a session for someone whom the organisation has signed in, and return its secret."""
    until = now + ORGANISATION_LIFE
    _record(session, actor, Act.SIGN_IN, actor, {"how": "organisation", "until": until.isoformat()}, now)
    return _store_secret(session, actor, until, is_link=False)


def find_signed_in(session: Session, secret: str, now: datetime) -> Actor | None:
    """Return the account of the session with this secret; None if it is unknown, ended or too old."""
    row = session.exec(
        select(SignInRow).where(SignInRow.hash == hash_text(secret), _IS_SESSION, SignInRow.expires_at > now)
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
    live = select(SignInRow).where(_IS_SESSION, SignInRow.expires_at > now)
    rows = session.exec(live.order_by(col(SignInRow.account), col(SignInRow.expires_at)))
    return [(Actor.parse(row.account, row.name), row.expires_at) for row in rows]


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
        # it returns no jobs here: only an account that leaves its person causes some
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
