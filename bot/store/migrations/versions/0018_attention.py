"""attention"""

import sqlalchemy as sa
from alembic import op
from sqlmodel.sql.sqltypes import UTCDateTime

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "held",
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("proposal_id", sa.String(), nullable=False),
        sa.Column("place", sa.String(), nullable=False),
        sa.Column("held_at", UTCDateTime(), nullable=False),
        sa.Column("until", UTCDateTime(), nullable=False),
        sa.Column("released_at", UTCDateTime(), nullable=True),
        sa.Column("recorded", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["proposal_id"], ["proposal.id"]),
        sa.PrimaryKeyConstraint("account", "proposal_id"),
    )
    op.create_index("held_of_card", "held", ["proposal_id"])
    op.create_index(
        "held_now",
        "held",
        ["account", "until"],
        sqlite_where=sa.text("released_at IS NULL"),
        postgresql_where=sa.text("released_at IS NULL"),
    )
    op.create_index(
        "held_unrecorded",
        "held",
        ["released_at"],
        sqlite_where=sa.text("recorded = 0"),
        postgresql_where=sa.text("NOT recorded"),
    )
    op.create_table(
        "reached",
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("proposal_id", sa.String(), nullable=False),
        sa.Column("reached_at", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["proposal_id"], ["proposal.id"]),
        sa.PrimaryKeyConstraint("account", "proposal_id"),
    )
    op.create_index("reached_lately", "reached", ["reached_at"])
    with op.batch_alter_table("notice") as batch_op:
        batch_op.add_column(sa.Column("offers", sa.JSON(none_as_null=True), nullable=True))
