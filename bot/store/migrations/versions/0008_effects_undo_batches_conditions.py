"""effects, undo, batches, conditions"""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "absence",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("account", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("stand_in", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("stand_in_name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("since", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("until", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("ended_by", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("ended_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )

    with op.batch_alter_table("proposal", schema=None) as batch_op:
        batch_op.add_column(sa.Column("trial", sa.JSON(none_as_null=True), nullable=True))
        batch_op.add_column(sa.Column("for_real", sa.Boolean(), nullable=True))
        batch_op.add_column(sa.Column("read_again", sa.JSON(none_as_null=True), nullable=True))
        batch_op.add_column(sa.Column("undo_seconds", sa.Float(), nullable=True))
        batch_op.add_column(sa.Column("inverse", sa.JSON(none_as_null=True), nullable=True))
        batch_op.add_column(sa.Column("undoes", sqlmodel.sql.sqltypes.AutoString(), nullable=True))
        batch_op.add_column(sa.Column("undone_by", sqlmodel.sql.sqltypes.AutoString(), nullable=True))
        batch_op.add_column(sa.Column("undone", sqlmodel.sql.sqltypes.AutoString(), nullable=True))
        batch_op.add_column(sa.Column("undo_until", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True))
        batch_op.add_column(sa.Column("batch", sqlmodel.sql.sqltypes.AutoString(), nullable=True))
        batch_op.add_column(sa.Column("vouched", sa.Boolean(), nullable=True))
        batch_op.create_index("proposal_made", ["created_at", "id"], unique=False)
        batch_op.create_index("proposal_made_by", ["requester", "created_at", "id"], unique=False)

    op.create_table(
        "inverse",
        sa.Column("id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("conversation_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("arguments", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["id"], ["proposal.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("inverse", schema=None) as batch_op:
        batch_op.create_index(op.f("ix_inverse_conversation_id"), ["conversation_id"], unique=False)
        batch_op.create_index(op.f("ix_inverse_created_at"), ["created_at"], unique=False)

    op.create_table(
        "trial_token",
        sa.Column("id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("created_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("trial_token_created", "trial_token", ["created_at"], unique=False)

    with op.batch_alter_table("rule", schema=None) as batch_op:
        batch_op.add_column(sa.Column("condition", sqlmodel.sql.sqltypes.AutoString(), nullable=True))
        batch_op.add_column(sa.Column("who", sqlmodel.sql.sqltypes.AutoString(), nullable=True))
        batch_op.add_column(sa.Column("hours", sa.JSON(none_as_null=True), nullable=True))
        batch_op.add_column(sa.Column("until", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True))

    with op.batch_alter_table("turn", schema=None) as batch_op:
        batch_op.add_column(sa.Column("cost", sa.Float(), nullable=True))
        batch_op.add_column(sa.Column("model", sqlmodel.sql.sqltypes.AutoString(), nullable=True))
        batch_op.add_column(sa.Column("asker", sqlmodel.sql.sqltypes.AutoString(), nullable=True))
        batch_op.add_column(
            sa.Column("asked", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True)
        )

    for name, table, columns, where in (
        ("absence_now", "absence", ["id"], "ended_at IS NULL"),
        ("proposal_batch", "proposal", ["batch"], "batch IS NOT NULL"),
        ("proposal_undo", "proposal", ["undo_until"], "undo_until IS NOT NULL"),
        ("ledger_trial", "ledger", ["actor", "at"], "thing = 'trial'"),
        ("turn_priced", "turn", ["created_at"], "cost IS NOT NULL"),
        ("turn_of_order", "turn", ["asked"], "cost IS NOT NULL"),
    ):
        condition = sa.text(where)
        op.create_index(
            name, table, columns, unique=False, sqlite_where=condition, postgresql_where=condition
        )
