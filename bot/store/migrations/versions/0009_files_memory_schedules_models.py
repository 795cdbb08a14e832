"""files, memory, schedules, models"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ledger_context",
        "ledger",
        ["key", "person"],
        unique=False,
        sqlite_where=sa.text("thing = 'context'"),
        postgresql_where=sa.text("thing = 'context'"),
    )
