"""in whose name a call is made"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("proposal", sa.Column("connection", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("grant_given", sa.Column("connection", sa.String(), nullable=True))
