"""lines of features on cards"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("proposal", sa.Column("annotations", sa.JSON(none_as_null=True), nullable=True))
