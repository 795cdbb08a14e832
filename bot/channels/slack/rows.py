"""The rows of Slack: workspaces in which Nod is installed, installs that were begun, and open App Homes.

An installation is a `WorkspaceRow`. An install is its beginning: someone was sent to Slack to agree to it.
"""

from datetime import datetime, timedelta

from sqlalchemy import delete, update
from sqlmodel import Field, Session, col, select
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.errors import SecretLost
from bot.store.secrets import decrypt_in, encrypt_in
from bot.store.tables.row import Row
from bot.store.tables.workspaces import WorkspaceRow

_STATE_LIFETIME = timedelta(minutes=10)


class InstallRow(Row, table=True):
    """An install that someone began.

    ``state`` is OAuth's: a random text, which Slack sends back at the end of the install. It is used once.
    """

    __tablename__ = "slack_install"

    state: str = Field(primary_key=True)
    issued_at: datetime = Field(sa_type=UTCDateTime)


class HomeRow(Row, table=True):
    """A person whose App Home has to be kept current."""

    __tablename__ = "slack_home"

    team: str = Field(primary_key=True)
    user: str = Field(primary_key=True)
    opened_at: datetime = Field(sa_type=UTCDateTime)


def remember_home(session: Session, team: str, user: str, now: datetime) -> None:
    session.merge(HomeRow(team=team, user=user, opened_at=now))


def list_homes(session: Session) -> list[tuple[str, str]]:
    """List team and user of everybody whose App Home is kept current."""
    return list(session.exec(select(HomeRow.team, HomeRow.user)))


def save_workspace(session: Session, row: WorkspaceRow) -> None:
    """Insert or replace an installation. An ended one is in use again: ``row`` has no ``off_at``."""
    token = encrypt_in(session, WorkspaceRow, "token", row.team, row.token)
    session.merge(_with_token(row, token))


def find_workspace(session: Session, team: str) -> WorkspaceRow | None:
    """Return the installation of a workspace.

    None without one, if it has ended, or if its token can't be decrypted.
    """
    row = session.get(WorkspaceRow, team)
    if row is None or row.off_at is not None:
        return None
    token = _decrypt_token(session, row)
    return _with_token(row, token) if token else None


def find_team_of_bot(session: Session, bot_id: str) -> str | None:
    """Return the team of a bot's installation; None if it is unknown.

    None also if several teams have a bot with this id: it does not tell which of them is meant.
    """
    is_on = col(WorkspaceRow.off_at).is_(None)
    statement = select(WorkspaceRow.team).where(WorkspaceRow.bot_id == bot_id, is_on)
    teams = session.exec(statement.limit(2)).all()
    return teams[0] if len(teams) == 1 else None


def end_installation(session: Session, team: str, token: str, reason: str, now: datetime) -> None:
    """End an installation whose ``token`` no longer works, unless it has got a new token since."""
    row = session.get(WorkspaceRow, team)
    if row is None or _decrypt_token(session, row) != token:
        return
    statement = update(WorkspaceRow).where(
        col(WorkspaceRow.team) == team,
        col(WorkspaceRow.token) == row.token,
        col(WorkspaceRow.off_at).is_(None),
    )
    session.execute(statement.values(off_at=now, off_reason=reason, token=""))


def store_install_state(session: Session, state: str, now: datetime) -> None:
    """Store the state of a new install, and delete those that are too old."""
    session.execute(delete(InstallRow).where(col(InstallRow.issued_at) < now - _STATE_LIFETIME))
    session.add(InstallRow(state=state, issued_at=now))


def consume_install_state(session: Session, state: str, now: datetime) -> bool:
    """Use up the state of an install; False if it was never issued, was used before or is too old."""
    statement = delete(InstallRow).where(
        col(InstallRow.state) == state, col(InstallRow.issued_at) >= now - _STATE_LIFETIME
    )
    deleted = session.execute(statement.returning(col(InstallRow.state))).scalar_one_or_none()
    return deleted is not None


def _decrypt_token(session: Session, row: WorkspaceRow) -> str:
    """Return the token of an installation; empty if it has none, or if it can't be decrypted."""
    try:
        return decrypt_in(session, WorkspaceRow, "token", row.team, row.token)
    except SecretLost:
        return ""


def _with_token(row: WorkspaceRow, token: str) -> WorkspaceRow:
    """Return a copy with this token. It is not attached to a session, so it is not stored by itself."""
    return WorkspaceRow(**row.model_dump() | {"token": token})
