"""what was recorded of held cards is found by an index"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "held_recorded",
        "held",
        ["released_at"],
        sqlite_where=sa.text("recorded = 1"),
        postgresql_where=sa.text("recorded"),
    )
