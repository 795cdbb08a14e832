"""connections of people"""

import sqlalchemy as sa
from alembic import op
from sqlmodel.sql.sqltypes import UTCDateTime

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    is_personal = sa.text("subject <> '' AND identity = 'person'")
    op.create_table(
        "connecting",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("server", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("identity", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("owner_name", sa.String(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("person_name", sa.String(), nullable=False),
        sa.Column("conversation_id", sa.String(), nullable=True),
        sa.Column("step", sa.String(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("until", UTCDateTime(), nullable=False),
        sa.Column("state", sa.String(), nullable=True),
        sa.Column("browser", sa.String(), nullable=False),
        sa.Column("is_organised", sa.Boolean(), nullable=False),
        sa.Column("back", sa.String(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("issuer", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("digits", sa.String(), nullable=False),
        sa.Column("found", sa.String(), nullable=False),
        sa.Column("verifier", sa.String(), nullable=False),
        sa.Column("client", sa.String(), nullable=False),
        sa.Column("tokens", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("state"),
    )
    op.create_index("connecting_of_person", "connecting", ["person"])
    op.create_index("connecting_until", "connecting", ["until"])

    op.create_table(
        "connection",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("server", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("identity", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("owner_name", sa.String(), nullable=False),
        sa.Column("accounts", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("issuer", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("client", sa.String(), nullable=False),
        sa.Column("tokens", sa.String(), nullable=False),
        sa.Column("found", sa.String(), nullable=False),
        sa.Column("connected_by", sa.String(), nullable=False),
        sa.Column("connected_at", UTCDateTime(), nullable=False),
        sa.Column("expires_at", UTCDateTime(), nullable=True),
        sa.Column("last_used_at", UTCDateTime(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("busy_until", UTCDateTime(), nullable=True),
        sa.Column("refusals", sa.Integer(), nullable=False),
        sa.Column("told_lost", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "connection_of_account",
        "connection",
        ["server", "issuer", "subject"],
        unique=True,
        sqlite_where=is_personal,
        postgresql_where=is_personal,
    )
    op.create_index("connection_of_owner", "connection", ["server", "identity", "owner"])

    op.create_table(
        "revocation",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("server", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("client", sa.String(), nullable=False),
        sa.Column("tokens", sa.String(), nullable=False),
        sa.Column("found", sa.String(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("next_at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("revocation_due", "revocation", ["next_at"])
