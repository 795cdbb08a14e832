"""when a turn is tried again"""

import sqlalchemy as sa
from alembic import op
from sqlmodel.sql.sqltypes import UTCDateTime

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("turn", sa.Column("retry_at", UTCDateTime(), nullable=True))
    where = sa.text("retry_at IS NOT NULL")
    op.create_index("turn_to_retry", "turn", ["retry_at"], sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    op.drop_index("turn_to_retry", "turn")
    op.drop_column("turn", "retry_at")
