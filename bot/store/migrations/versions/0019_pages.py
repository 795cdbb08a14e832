"""pages"""

import sqlalchemy as sa
from alembic import op
from sqlmodel.sql.sqltypes import UTCDateTime

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "page",
        sa.Column("proposal_id", sa.String(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("more", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("paged_at", UTCDateTime(), nullable=False),
        sa.Column("next_at", UTCDateTime(), nullable=False),
        sa.Column("sending_until", UTCDateTime(), nullable=True),
        sa.Column("is_over", sa.Boolean(), nullable=False),
        sa.Column("fault", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["proposal_id"], ["proposal.id"]),
        sa.PrimaryKeyConstraint("proposal_id"),
    )
    op.create_index(
        "page_open",
        "page",
        ["next_at"],
        sqlite_where=sa.text("is_over = 0"),
        postgresql_where=sa.text("NOT is_over"),
    )
