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
    op.create_index(
        "absence_now",
        "absence",
        ["id"],
        unique=False,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
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
        batch_op.create_index(
            "proposal_batch",
            ["batch"],
            unique=False,
            sqlite_where=sa.text("batch IS NOT NULL"),
            postgresql_where=sa.text("batch IS NOT NULL"),
        )
        batch_op.create_index(
            "proposal_undo",
            ["undo_until"],
            unique=False,
            sqlite_where=sa.text("undo_until IS NOT NULL"),
            postgresql_where=sa.text("undo_until IS NOT NULL"),
        )

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
    op.create_index(
        "ledger_trial",
        "ledger",
        ["actor", "at"],
        unique=False,
        sqlite_where=sa.text("thing = 'trial'"),
        postgresql_where=sa.text("thing = 'trial'"),
    )

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
        for name, column in (("turn_priced", "created_at"), ("turn_of_order", "asked")):
            batch_op.create_index(
                name,
                [column],
                unique=False,
                sqlite_where=sa.text("cost IS NOT NULL"),
                postgresql_where=sa.text("cost IS NOT NULL"),
            )
