"""The table of workspaces of Slack that installed Nod, each with a token of its own.

Where there are several, an admin of one workspace is not an admin of the others.
"""

from datetime import datetime

from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.secrets import make_secret_column
from bot.store.tables.row import Row


class WorkspaceRow(Row, table=True):
    """A workspace of Slack that installed Nod."""

    __tablename__ = "slack_workspace"

    team: str = Field(primary_key=True)
    name: str = ""
    token: str = make_secret_column()
    bot_id: str
    bot_user: str
    scopes: str = ""
    installed_by: str = ""
    installed_at: datetime = Field(sa_type=UTCDateTime)
    off_at: datetime | None = Field(default=None, sa_type=UTCDateTime)  # the token was revoked or Nod removed
    off_reason: str = ""
