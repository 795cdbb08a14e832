"""files, memory, schedules, models"""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "schedule",
        sa.Column("id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("conversation_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("person", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("task", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("start", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("repeats", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("zone", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("until", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("follows", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("created_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("due_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.Column("ran_for", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("last_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("spent", sa.Integer(), nullable=False),
        sa.Column("paused_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("ended_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("ended_by", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("why", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversation.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    for table in ("grant_given", "proposal"):
        op.add_column(table, sa.Column("schedule", sqlmodel.sql.sqltypes.AutoString(), nullable=True))
    op.create_table(
        "memory",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("about", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("scope", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("fact", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("asked_by", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("said_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("until", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("memory_of_scope", "memory", ["about", "scope"], unique=False)

    with op.batch_alter_table("message", schema=None) as batch_op:
        batch_op.add_column(sa.Column("files", sa.JSON(none_as_null=True), nullable=True))

    text = sqlmodel.sql.sqltypes.AutoString()
    with op.batch_alter_table("output", schema=None) as batch_op:
        batch_op.add_column(sa.Column("data", sa.LargeBinary(), nullable=True))
        batch_op.add_column(sa.Column("kind", text, nullable=False, server_default=""))
        batch_op.add_column(sa.Column("size", sa.Integer(), nullable=False, server_default="0"))
        batch_op.add_column(sa.Column("actor", text, nullable=True))
        batch_op.add_column(sa.Column("ref", text, nullable=False, server_default=""))
        batch_op.add_column(sa.Column("fault", text, nullable=False, server_default=""))
        batch_op.add_column(sa.Column("ready", sa.Boolean(), nullable=False, server_default=sa.true()))
    op.add_column("proposal", sa.Column("ticked", sa.JSON(none_as_null=True), nullable=True))

    is_active = "ended_at IS NULL AND paused_at IS NULL"
    for name, table, columns, where in (
        ("ledger_context", "ledger", ["key", "person"], "thing = 'context'"),
        ("memory_due", "memory", ["until"], "until IS NOT NULL"),
        ("output_of_person", "output", ["actor", "created_at"], "actor IS NOT NULL"),
        ("schedule_due", "schedule", ["due_at"], f"{is_active} AND due_at IS NOT NULL"),
        ("schedule_follows", "schedule", ["follows"], f"{is_active} AND follows IS NOT NULL AND runs = 0"),
        ("schedule_of_person", "schedule", ["person"], "ended_at IS NULL"),
        ("schedule_last", "schedule", ["last_at"], "ended_at IS NULL"),
        ("schedule_in", "schedule", ["conversation_id"], "ended_at IS NULL"),
    ):
        condition = sa.text(where)
        op.create_index(
            name, table, columns, unique=False, sqlite_where=condition, postgresql_where=condition
        )
