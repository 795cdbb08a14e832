"""steps of notifying"""

import sqlalchemy as sa
from alembic import op
from sqlmodel.sql.sqltypes import UTCDateTime

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    waiting = sa.text("NOT state <> 'proposed' AND notify_at IS NOT NULL")
    op.add_column("proposal", sa.Column("notify_at", UTCDateTime(), nullable=True))
    op.add_column("proposal", sa.Column("steps", sa.JSON(none_as_null=True), nullable=True))
    op.create_index(
        "proposal_notify", "proposal", ["notify_at"], sqlite_where=waiting, postgresql_where=waiting
    )
