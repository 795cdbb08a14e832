"""the first schema"""

import sqlalchemy as sa
from alembic import op

from bot.store.audit import chain
from bot.store.migrations import first_schema

revision = "0007"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    first_schema.make(op.get_bind())
    end = sa.table("chain_end", *(sa.column(name) for name in ("id", "number", "hash", "key", "mark")))
    op.get_bind().execute(end.insert(), chain.blank(op.get_bind()))
