"""what the first review from outside asked for"""

import sqlalchemy as sa
import sqlmodel
from alembic import op

from bot.store.migrations.chain_begins import begin_the_chain, end_the_chain

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


_NAMES_SAID = """
    INSERT INTO name (key, name) SELECT message.actor, message.name FROM message JOIN (
        SELECT max(id) AS id FROM message WHERE role = 'user' AND name <> '' GROUP BY actor
    ) AS newest ON newest.id = message.id
"""
"""What people were called when they last wrote."""
_NAMES_LINKED = """
    INSERT INTO name (key, name) SELECT actor, name FROM account
    WHERE name <> '' AND actor NOT IN (SELECT key FROM name)
"""


def upgrade() -> None:
    op.add_column("proposal", sa.Column("told", sqlmodel.sql.sqltypes.AutoString(), nullable=True))
    op.add_column("proposal", sa.Column("progress", sqlmodel.sql.sqltypes.AutoString(), nullable=True))
    op.add_column("proposal", sa.Column("ended_badly", sqlmodel.sql.sqltypes.AutoString(), nullable=True))
    for name in ("requester", "place"):
        op.add_column("grant_given", sa.Column(name, sqlmodel.sql.sqltypes.AutoString(), nullable=True))
    deleted_at = sa.Column("deleted_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True)
    op.add_column("conversation", deleted_at)
    op.create_index("conversation_of_owner", "conversation", ["channel", "owner", "created_at", "id"])
    of_people = sa.text("role = 'user'")
    op.create_index(
        "message_of_person",
        "message",
        ["actor", "created_at"],
        sqlite_where=of_people,
        postgresql_where=of_people,
    )
    is_open = sa.text("state = 'proposed'")
    op.create_index(
        "proposal_open_in", "proposal", ["conversation_id"], sqlite_where=is_open, postgresql_where=is_open
    )
    op.drop_index("proposal_recent", "proposal")
    op.create_index("proposal_recent", "proposal", ["state", "updated_at", "id"])
    op.create_index("proposal_asked", "proposal", ["requester", "state", "updated_at", "id"])
    decider = op.create_table(
        "decider",
        sa.Column("account", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("proposal_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.ForeignKeyConstraint(["proposal_id"], ["proposal.id"]),
        sa.PrimaryKeyConstraint("account", "proposal_id"),
    )
    _name_deciders(decider)
    op.add_column("link_code", sa.Column("other", sqlmodel.sql.sqltypes.AutoString(), nullable=True))
    op.add_column(
        "link_code",
        sa.Column("other_name", sqlmodel.sql.sqltypes.AutoString(), server_default="", nullable=False),
    )
    op.add_column("link_code", sa.Column("wanted", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("copy", sa.Column("shown", sqlmodel.sql.sqltypes.AutoString(), nullable=True))
    op.create_table(
        "name",
        sa.Column("key", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.execute(_NAMES_SAID)
    op.execute(_NAMES_LINKED)
    op.create_table(
        "token",
        *(
            sa.Column(name, sqlmodel.sql.sqltypes.AutoString(), nullable=False)
            for name in ("label", "name", "hash", "made_by")
        ),
        sa.Column("made_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("revoked_by", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("revoked_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("label"),
    )
    op.create_table(
        "mcp_login",
        *(
            sa.Column(name, sqlmodel.sql.sqltypes.AutoString(), nullable=False)
            for name in ("server", "url", "client", "tokens", "found")
        ),
        sa.Column("expires_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("signed_in_by", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("signed_in_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("busy_until", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("server"),
    )
    op.create_table(
        "mcp_sign_in",
        *(
            sa.Column(name, sqlmodel.sql.sqltypes.AutoString(), nullable=False)
            for name in ("id", "state", "server")
        ),
        sa.Column("until", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("said", sa.JSON(), nullable=True),
        sa.Column("back", sa.Boolean(), nullable=False),
        sa.Column("ended", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("well", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("state"),
    )
    op.add_column(
        "turn", sa.Column("owner", sqlmodel.sql.sqltypes.AutoString(), server_default="", nullable=False)
    )
    op.drop_column("proposal", "lease_until")
    op.add_column("proposal", sa.Column("owner", sqlmodel.sql.sqltypes.AutoString(), nullable=True))
    op.create_table(
        "process",
        sa.Column("id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("host", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("began_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("beats", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "hold",
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("owner", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "sign_in",
        *(
            sa.Column(name, sqlmodel.sql.sqltypes.AutoString(), nullable=False)
            for name in ("hash", "account", "name")
        ),
        sa.Column("code", sa.Boolean(), nullable=False),
        sa.Column("expires_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("hash"),
    )
    op.create_index(op.f("ix_sign_in_account"), "sign_in", ["account"], unique=False)
    begin_the_chain()  # last: it hashes rows as everything above leaves them


def _name_deciders(decider: sa.Table) -> None:
    """Whom the proposals of before name, and who voted on them."""
    columns = (sa.column("id"), sa.column("deciders", sa.JSON()), sa.column("votes", sa.JSON()))
    proposal = sa.table("proposal", *columns)
    for ident, deciders, votes in op.get_bind().execute(sa.select(*proposal.c)).all():
        for account in dict.fromkeys((*deciders["people"], *(vote[1] for vote in votes))):
            op.get_bind().execute(decider.insert().values(account=account, proposal_id=ident))


def downgrade() -> None:
    end_the_chain()
    op.drop_table("mcp_sign_in")
    op.drop_table("hold")
    op.drop_table("process")
    op.drop_column("proposal", "owner")
    op.add_column("proposal", sa.Column("lease_until", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True))
    op.drop_column("turn", "owner")
    op.drop_table("sign_in")
    op.drop_table("mcp_login")
    op.drop_table("name")
    op.drop_column("copy", "shown")
    op.drop_table("token")
    for name in ("place", "requester"):
        op.drop_column("grant_given", name)
    op.drop_table("decider")
    op.drop_index("proposal_asked", "proposal")
    op.drop_index("proposal_recent", "proposal")
    op.create_index("proposal_recent", "proposal", ["state", "updated_at"])
    op.drop_index("proposal_open_in", "proposal")
    op.drop_index("message_of_person", "message")
    op.drop_index("conversation_of_owner", "conversation")
    op.drop_column("conversation", "deleted_at")
    op.drop_column("proposal", "ended_badly")
    op.drop_column("proposal", "progress")
    for name in ("wanted", "other_name", "other"):
        op.drop_column("link_code", name)
    op.drop_column("proposal", "told")
