"""what grows is found by an index"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    waits = sa.text("NOT state <> 'proposed'")
    op.create_index("proposal_waiting", "proposal", ["id"], sqlite_where=waits, postgresql_where=waits)
    op.drop_index("turn_priced", "turn")
    op.create_index("turn_begun", "turn", ["created_at"])
