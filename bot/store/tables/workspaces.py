"""Workspaces that installed Nod, each with a token of its own. Where there are several, admins are of one."""

from datetime import datetime

from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.secrets import make_secret_column
from bot.store.tables.row import Row


class WorkspaceRow(Row, table=True):
    """A workspace with a token of its own; off when the token was revoked or the app removed."""

    __tablename__ = "slack_workspace"

    team: str = Field(primary_key=True)
    name: str = ""
    token: str = make_secret_column()
    bot_id: str
    bot_user: str
    scopes: str = ""
    installed_by: str = ""
    installed_at: datetime = Field(sa_type=UTCDateTime)
    off_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    off_reason: str = ""
