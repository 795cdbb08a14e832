"""agents"""

import sqlalchemy as sa
from alembic import op
from sqlmodel.sql.sqltypes import UTCDateTime

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("proposal", sa.Column("agent", sa.String(), nullable=True))
    asked = sa.text("agent IS NOT NULL")
    op.create_index(
        "proposal_of_agent", "proposal", ["agent", "state"], sqlite_where=asked, postgresql_where=asked
    )
    op.add_column("token", sa.Column("tools", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("token", sa.Column("person", sa.String(), nullable=True))
    op.add_column("token", sa.Column("person_name", sa.String(), nullable=True))
    op.add_column("token", sa.Column("accounts", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("token", sa.Column("servers", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("token", sa.Column("until", UTCDateTime(), nullable=True))
    op.add_column("token", sa.Column("agreed_at", UTCDateTime(), nullable=True))
    op.add_column("token", sa.Column("known", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("token", sa.Column("last_used_at", UTCDateTime(), nullable=True))
    personal = sa.text("person IS NOT NULL")
    op.create_index("token_of_person", "token", ["person"], sqlite_where=personal, postgresql_where=personal)

    op.create_table(
        "agent_call",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("proposal_id", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("told_at", UTCDateTime(), nullable=True),
        sa.Column("outcome", sa.JSON(none_as_null=True), nullable=True),
        sa.ForeignKeyConstraint(["proposal_id"], ["proposal.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("proposal_id"),
    )
    op.create_index("agent_call_same", "agent_call", ["agent", "digest", "created_at"])
    op.create_index("ix_agent_call_created_at", "agent_call", ["created_at"])
