"""second opinions"""

import sqlalchemy as sa
from alembic import op
from sqlmodel.sql.sqltypes import UTCDateTime

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "opinion",
        sa.Column("proposal_id", sa.String(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("raising", sa.String(), nullable=False),
        sa.Column("waits", sa.Boolean(), nullable=False),
        sa.Column("asked_at", UTCDateTime(), nullable=False),
        sa.Column("due_at", UTCDateTime(), nullable=False),
        sa.Column("taken_until", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["proposal_id"], ["proposal.id"]),
        sa.PrimaryKeyConstraint("proposal_id", "round"),
    )
    op.create_index(
        "opinion_waiting",
        "opinion",
        ["asked_at"],
        sqlite_where=sa.text("waits = 1"),
        postgresql_where=sa.text("waits"),
    )
