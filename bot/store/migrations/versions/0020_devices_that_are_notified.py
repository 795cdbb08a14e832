"""devices that are notified"""

import sqlalchemy as sa
from alembic import op
from sqlmodel.sql.sqltypes import UTCDateTime

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "push_device",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("account_name", sa.String(), nullable=False),
        sa.Column("session", sa.String(), nullable=True),
        sa.Column("until", UTCDateTime(), nullable=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("endpoint", sa.String(), nullable=False),
        sa.Column("secret", sa.String(), nullable=False),
        sa.Column("public_key", sa.String(), nullable=False),
        sa.Column("vapid", sa.String(), nullable=False),
        sa.Column("is_detailed", sa.Boolean(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("sent_at", UTCDateTime(), nullable=True),
        sa.Column("tested_at", UTCDateTime(), nullable=True),
        sa.Column("crowded_at", UTCDateTime(), nullable=True),
        sa.Column("next_at", UTCDateTime(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("fault", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("push_device_of_account", "push_device", ["account"])
    op.create_table(
        "push_quiet",
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("begins", sa.String(), nullable=False),
        sa.Column("ends", sa.String(), nullable=False),
        sa.Column("zone", sa.String(), nullable=False),
        sa.Column("set_at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("account"),
    )
    op.create_table(
        "push_again",
        sa.Column("card_id", sa.String(), nullable=False),
        sa.Column("asked_at", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["card_id"], ["proposal.id"]),
        sa.PrimaryKeyConstraint("card_id"),
    )
    op.create_table(
        "push_notification",
        sa.Column("card_id", sa.String(), nullable=False),
        sa.Column("device_id", sa.String(), nullable=False),
        sa.Column("wanted", sa.Integer(), nullable=False),
        sa.Column("sent", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("is_shown", sa.Boolean(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("next_at", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["card_id"], ["proposal.id"]),
        sa.ForeignKeyConstraint(["device_id"], ["push_device.id"]),
        sa.PrimaryKeyConstraint("card_id", "device_id"),
    )
    op.create_index(
        "push_notification_due",
        "push_notification",
        ["device_id", "next_at"],
        sqlite_where=sa.text("sent < wanted"),
        postgresql_where=sa.text("sent < wanted"),
    )
    op.create_index(
        "push_notification_shown",
        "push_notification",
        ["card_id"],
        sqlite_where=sa.text("is_shown = 1"),
        postgresql_where=sa.text("is_shown"),
    )
