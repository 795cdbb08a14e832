"""what Nod says by itself"""

import sqlalchemy as sa
from alembic import op
from sqlmodel.sql.sqltypes import UTCDateTime

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "notice",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("instead", sa.String(), nullable=False),
        sa.Column("proposal_id", sa.String(), nullable=True),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("next_at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("notice_due", "notice", ["next_at"])
    where = sa.text("handled_at IS NOT NULL")  # what housekeeping looks for
    op.create_index("event_handled", "event", ["handled_at"], sqlite_where=where, postgresql_where=where)
    op.create_index("output_created", "output", ["created_at"])


def downgrade() -> None:
    op.drop_index("event_handled", "event")
    op.drop_index("output_created", "output")
    op.drop_table("notice")
