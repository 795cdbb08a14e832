"""the first schema"""

import sqlalchemy as sa
from alembic import op

from bot.store import migrations
from bot.store.audit import chain

revision = "0007"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    migrations.create_first_schema(op.get_bind())
    end = sa.table("chain_end", *(sa.column(name) for name in ("id", "number", "hash", "key", "mark")))
    op.get_bind().execute(end.insert(), chain.make_empty_end(op.get_bind()))
