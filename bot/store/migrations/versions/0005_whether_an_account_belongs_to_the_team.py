"""whether an account belongs to the team"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("name", sa.Column("standing", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("name", "standing")
