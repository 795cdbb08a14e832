"""a sign-in under way names no conversation"""

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_column("connecting", "conversation_id")
