"""how people read"""

import sqlalchemy as sa
from alembic import op
from sqlmodel.sql.sqltypes import UTCDateTime

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "shown_copy",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("card_id", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("ref", sa.String(), nullable=False),
        sa.Column("rounds", sa.Integer(), nullable=False),
        sa.Column("at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("channel", "ref", name="shown_copy_once"),
    )
    op.create_index("ix_shown_copy_card_id", "shown_copy", ["card_id"])
    op.create_index("ix_shown_copy_at", "shown_copy", ["at"])
    op.create_table(
        "opened_card",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("card_id", sa.String(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("rounds", sa.Integer(), nullable=False),
        sa.Column("part", sa.String(), nullable=False),
        sa.Column("at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("card_id", "account", "rounds", "part", name="opened_card_once"),
    )
    op.create_index("ix_opened_card_at", "opened_card", ["at"])
    op.create_table(
        "read_decision",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("proposal_id", sa.String(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("at", UTCDateTime(), nullable=False),
        sa.Column("rounds", sa.Integer(), nullable=False),
        sa.Column("words", sa.Integer(), nullable=False),
        sa.Column("shown_at", UTCDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("proposal_id", "account", "at", name="read_decision_once"),
    )
    op.create_index("ix_read_decision_at", "read_decision", ["at"])
