"""recordings in messages"""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("output", sa.Column("origin", sa.String(), nullable=True))
