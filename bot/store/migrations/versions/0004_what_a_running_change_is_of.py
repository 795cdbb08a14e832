"""what a running change is of"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("proposal", sa.Column("thing", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("proposal", "thing")
