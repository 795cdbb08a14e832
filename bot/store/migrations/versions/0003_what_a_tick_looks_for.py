"""what a tick looks for"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_WAITS = "NOT state <> 'proposed'"
_ON = {
    "proposal_question": ("owner", "kind = 'question' AND NOT (state <> 'proposed' AND state <> 'approved')"),
    "proposal_due": ("expires_at", _WAITS),
    "proposal_warn": ("warn_at", f"{_WAITS} AND warn_at IS NOT NULL"),
    "proposal_remind": ("remind_at", f"{_WAITS} AND remind_at IS NOT NULL"),
    "proposal_escalate": ("escalate_at", f"{_WAITS} AND escalate_at IS NOT NULL"),
}
"""By the index: its column, and the rows that are in it."""


def upgrade() -> None:
    op.drop_index("proposal_due", "proposal")
    for name, (column, which) in _ON.items():
        _make(name, column, which)


def downgrade() -> None:
    for name in _ON:
        op.drop_index(name, "proposal")
    _make("proposal_due", "expires_at", "state = 'proposed'")


def _make(name: str, column: str, which: str) -> None:
    where = sa.text(which)
    op.create_index(name, "proposal", [column], sqlite_where=where, postgresql_where=where)
