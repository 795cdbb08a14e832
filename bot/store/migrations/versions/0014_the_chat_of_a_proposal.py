"""the chat of a proposal"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

# The chat of the conversation's address, for conversations that are not private: for a thread, which has two
# slashes (slack:T1/C2/17.1), its chat (slack:T1/C2). The inner rtrim cuts what follows the last slash, as it
# trims every character that the address has, other than slashes.
_FILL = """
UPDATE proposal SET chat = (
    SELECT CASE
        WHEN length(seen_at) - length(replace(seen_at, '/', '')) >= 2
        THEN rtrim(rtrim(seen_at, replace(seen_at, '/', '')), '/')
        ELSE seen_at
    END
    FROM (
        SELECT id, coalesce(shown_at, channel || ':' || key) AS seen_at FROM conversation WHERE NOT private
    ) AS shared
    WHERE shared.id = proposal.conversation_id
)
"""


def upgrade() -> None:
    shared = sa.text("chat IS NOT NULL")
    op.add_column("proposal", sa.Column("chat", sa.String(), nullable=True))
    op.execute(_FILL)
    for name, first in (("proposal_of_chat", "chat"), ("proposal_shared_by", "requester")):
        columns = [first, "tool_name", "created_at"]
        op.create_index(name, "proposal", columns, sqlite_where=shared, postgresql_where=shared)
