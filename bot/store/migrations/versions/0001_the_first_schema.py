"""the first schema"""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "account",
        sa.Column("actor", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("person_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("linked_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("actor"),
    )
    with op.batch_alter_table("account", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_account_person_id"), ["person_id"], unique=False)

    op.create_table(
        "book",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("paused_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("memory", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "checkpoint",
        sa.Column("day", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("last_audit_id", sa.Integer(), nullable=False),
        sa.Column("last_ledger_id", sa.Integer(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("previous", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("hash", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("made_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("day"),
    )
    op.create_table(
        "ledger",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("thing", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("key", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("tool", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("verb", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("actor", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("person", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("channel", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("before", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("after", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("previous", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("hash", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("previous"),
    )
    op.create_table(
        "conversation",
        sa.Column("id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("channel", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("key", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("private", sa.Boolean(), nullable=False),
        sa.Column("owner", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("title", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("created_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("ended_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("shown_at", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("conversation", schema=None) as batch_op:
        batch_op.create_index(
            "one_open_conversation",
            ["channel", "key"],
            unique=True,
            sqlite_where=sa.text("ended_at IS NULL"),
            postgresql_where=sa.text("ended_at IS NULL"),
        )

    op.create_table(
        "board",
        sa.Column("lead_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("channel", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("key", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("ref", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("wanted", sa.Integer(), nullable=False),
        sa.Column("rendered", sa.Integer(), nullable=False),
        sa.Column("gone", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["lead_id"], ["conversation.id"]),
        sa.PrimaryKeyConstraint("lead_id"),
    )
    with op.batch_alter_table("board", schema=None) as batch_op:
        batch_op.create_index(
            "board_behind",
            ["lead_id"],
            unique=False,
            sqlite_where=sa.text("rendered < wanted AND gone = 0"),
            postgresql_where=sa.text("rendered < wanted AND NOT gone"),
        )

    op.create_table(
        "teammate",
        sa.Column("id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("lead_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("place", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("role", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("task", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("tools", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("needs_plan", sa.Boolean(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("asked", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("rounds", sa.Integer(), nullable=False),
        sa.Column("plan_id", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("standing", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("words", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("created_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("ended_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["id"], ["conversation.id"]),
        sa.ForeignKeyConstraint(["lead_id"], ["conversation.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("lead_id", "name", name="teammate_once"),
    )
    with op.batch_alter_table("teammate", schema=None) as batch_op:
        batch_op.create_index("teammate_place", ["place"], unique=False)

    op.create_table(
        "dialogue",
        sa.Column("channel", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("key", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("state", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("updated_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("channel", "key"),
    )
    op.create_table(
        "event",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("channel", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("event_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("payload", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("received_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("handled_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("channel", "event_id", name="event_once"),
    )
    with op.batch_alter_table("event", schema=None) as batch_op:
        batch_op.create_index(
            "event_unhandled",
            ["channel", "id"],
            unique=False,
            sqlite_where=sa.text("handled_at IS NULL"),
            postgresql_where=sa.text("handled_at IS NULL"),
        )

    op.create_table(
        "issue",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("title", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("body", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("state", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("priority", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("assignee", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("author", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("created_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("updated_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("idempotency_key", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("idempotency_key"),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("issue", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_issue_state"), ["state"], unique=False)

    op.create_table(
        "link_code",
        sa.Column("code_hash", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("actor", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("expires_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("code_hash"),
    )
    op.create_table(
        "output",
        sa.Column("id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("conversation_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("proposal_id", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("posted", sa.Boolean(), nullable=False),
        sa.Column("created_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("output", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_output_conversation_id"), ["conversation_id"], unique=False)
        batch_op.create_index(
            "output_unposted",
            ["conversation_id", "created_at", "id"],
            unique=False,
            sqlite_where=sa.text("posted = 0"),
            postgresql_where=sa.text("NOT posted"),
        )

    op.create_table(
        "rule",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("subject", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("scope", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("pattern", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("value", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("set_by", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("set_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("ended_by", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("ended_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "slack_home",
        sa.Column("team", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("user", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("opened_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("team", "user"),
    )
    op.create_table(
        "slack_install",
        sa.Column("state", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("issued_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("state"),
    )
    op.create_table(
        "slack_workspace",
        sa.Column("team", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("token", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("bot_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("bot_user", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("scopes", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("installed_by", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("installed_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("off_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("off_reason", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.PrimaryKeyConstraint("team"),
    )
    op.create_table(
        "issue_comment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("issue_number", sa.Integer(), nullable=False),
        sa.Column("body", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("author", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("created_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("idempotency_key", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.ForeignKeyConstraint(["issue_number"], ["issue.number"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("idempotency_key"),
    )
    with op.batch_alter_table("issue_comment", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_issue_comment_issue_number"), ["issue_number"], unique=False)

    op.create_table(
        "message",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("conversation_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("role", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("text", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("after", sa.Integer(), nullable=True),
        sa.Column("actor", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("channel", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("event_id", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("calls", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("results", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("delivered", sa.Boolean(), nullable=False),
        sa.Column("created_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversation.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("channel", "event_id", name="message_once"),
    )
    with op.batch_alter_table("message", schema=None) as batch_op:
        batch_op.create_index("message_of_conversation", ["conversation_id", "id"], unique=False)
        batch_op.create_index(
            "message_undelivered",
            ["id"],
            unique=False,
            sqlite_where=sa.text("delivered = 0"),
            postgresql_where=sa.text("NOT delivered"),
        )

    op.create_table(
        "proposal",
        sa.Column("id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("kind", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("conversation_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("message_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("call_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("tool_name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("tool_version", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("arguments", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("description", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("preview", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("level", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("risk_reason", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("reason", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("requester", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("requester_name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("deciders", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("quorum", sa.Integer(), nullable=False),
        sa.Column("rule", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("declines", sa.Integer(), nullable=False),
        sa.Column("grant_id", sa.Integer(), nullable=True),
        sa.Column("ttl_seconds", sa.Float(), nullable=False),
        sa.Column("warn_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("remind_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("remind_every", sa.Float(), nullable=True),
        sa.Column("escalate_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("escalate_to", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("teammate", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("state", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("cause", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("digest", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("idempotency_key", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("votes", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("decided_by", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("decided_from", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("decided_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("decline_reason", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("edited_by", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("edits", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("changed", sa.Boolean(), nullable=False),
        sa.Column("result", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("result_url", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("error", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("lease_until", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("created_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("updated_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("expires_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversation.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("idempotency_key"),
    )
    with op.batch_alter_table("proposal", schema=None) as batch_op:
        batch_op.create_index(
            "proposal_due",
            ["expires_at"],
            unique=False,
            sqlite_where=sa.text("state = 'proposed'"),
            postgresql_where=sa.text("state = 'proposed'"),
        )
        batch_op.create_index(
            "proposal_moving",
            ["state"],
            unique=False,
            sqlite_where=sa.text("state IN ('approved', 'executing')"),
            postgresql_where=sa.text("state IN ('approved', 'executing')"),
        )
        batch_op.create_index("proposal_of_conversation", ["conversation_id", "message_id"], unique=False)
        batch_op.create_index("proposal_of_message", ["message_id"], unique=False)
        batch_op.create_index("proposal_recent", ["state", "updated_at"], unique=False)

    op.create_table(
        "tool_version",
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("version", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("parameters", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("name", "version"),
    )
    op.create_table(
        "turn",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("conversation_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("state", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("model_calls", sa.Integer(), nullable=False),
        sa.Column("prompt_tokens", sa.Integer(), nullable=False),
        sa.Column("completion_tokens", sa.Integer(), nullable=False),
        sa.Column("error", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("created_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("ended_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversation.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("turn", schema=None) as batch_op:
        batch_op.create_index(
            "one_wanted_turn",
            ["conversation_id"],
            unique=True,
            sqlite_where=sa.text("state = 'wanted'"),
            postgresql_where=sa.text("state = 'wanted'"),
        )

    op.create_table(
        "callback",
        sa.Column("proposal_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("url", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("told_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("over", sa.Boolean(), nullable=False),
        sa.Column("fault", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.ForeignKeyConstraint(["proposal_id"], ["proposal.id"]),
        sa.PrimaryKeyConstraint("proposal_id"),
    )
    with op.batch_alter_table("callback", schema=None) as batch_op:
        batch_op.create_index(
            "callback_open",
            ["next_at"],
            unique=False,
            sqlite_where=sa.text("over = 0"),
            postgresql_where=sa.text("NOT over"),
        )

    op.create_table(
        "audit",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("proposal_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("verb", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("state", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("actor", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("person", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("channel", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("reason", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("digest", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("rule", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("grant_id", sa.Integer(), nullable=True),
        sa.Column("previous", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("hash", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.ForeignKeyConstraint(["proposal_id"], ["proposal.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("proposal_id", "version", name="audit_once"),
    )
    op.create_table(
        "copy",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("proposal_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("channel", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("key", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("ref", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("wanted", sa.Integer(), nullable=False),
        sa.Column("rendered", sa.Integer(), nullable=False),
        sa.Column("gone", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["proposal_id"], ["proposal.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("channel", "key", "ref", name="copy_once"),
    )
    with op.batch_alter_table("copy", schema=None) as batch_op:
        batch_op.create_index(
            "copy_behind",
            ["proposal_id"],
            unique=False,
            sqlite_where=sa.text("rendered < wanted AND gone = 0"),
            postgresql_where=sa.text("rendered < wanted AND NOT gone"),
        )
        batch_op.create_index("copy_of_proposal", ["proposal_id"], unique=False)

    op.create_table(
        "grant_given",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("tool_name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("tool_version", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("rung", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("match", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("words", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("person_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("person_name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("conversation_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("only_there", sa.Boolean(), nullable=False),
        sa.Column("proposal_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("plan_digest", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("uses", sa.Integer(), nullable=False),
        sa.Column("created_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("expires_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("revoked_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("revoked_by", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.ForeignKeyConstraint(["proposal_id"], ["proposal.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("grant_given", schema=None) as batch_op:
        batch_op.create_index(
            "grant_of_tool",
            ["tool_name"],
            unique=False,
            sqlite_where=sa.text("revoked_at IS NULL"),
            postgresql_where=sa.text("revoked_at IS NULL"),
        )


def downgrade() -> None:
    with op.batch_alter_table("grant_given", schema=None) as batch_op:
        batch_op.drop_index(
            "grant_of_tool",
            sqlite_where=sa.text("revoked_at IS NULL"),
            postgresql_where=sa.text("revoked_at IS NULL"),
        )

    op.drop_table("grant_given")
    with op.batch_alter_table("copy", schema=None) as batch_op:
        batch_op.drop_index("copy_of_proposal")
        batch_op.drop_index(
            "copy_behind",
            sqlite_where=sa.text("rendered < wanted AND gone = 0"),
            postgresql_where=sa.text("rendered < wanted AND NOT gone"),
        )

    op.drop_table("copy")
    op.drop_table("audit")
    with op.batch_alter_table("callback", schema=None) as batch_op:
        batch_op.drop_index(
            "callback_open",
            sqlite_where=sa.text("over = 0"),
            postgresql_where=sa.text("NOT over"),
        )

    op.drop_table("callback")
    with op.batch_alter_table("turn", schema=None) as batch_op:
        batch_op.drop_index(
            "one_wanted_turn",
            sqlite_where=sa.text("state = 'wanted'"),
            postgresql_where=sa.text("state = 'wanted'"),
        )

    op.drop_table("turn")
    op.drop_table("tool_version")
    with op.batch_alter_table("proposal", schema=None) as batch_op:
        batch_op.drop_index("proposal_recent")
        batch_op.drop_index("proposal_of_message")
        batch_op.drop_index("proposal_of_conversation")
        batch_op.drop_index(
            "proposal_moving",
            sqlite_where=sa.text("state IN ('approved', 'executing')"),
            postgresql_where=sa.text("state IN ('approved', 'executing')"),
        )
        batch_op.drop_index(
            "proposal_due",
            sqlite_where=sa.text("state = 'proposed'"),
            postgresql_where=sa.text("state = 'proposed'"),
        )

    op.drop_table("proposal")
    with op.batch_alter_table("message", schema=None) as batch_op:
        batch_op.drop_index(
            "message_undelivered",
            sqlite_where=sa.text("delivered = 0"),
            postgresql_where=sa.text("NOT delivered"),
        )
        batch_op.drop_index("message_of_conversation")

    op.drop_table("message")
    with op.batch_alter_table("issue_comment", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_issue_comment_issue_number"))

    op.drop_table("issue_comment")
    op.drop_table("slack_workspace")
    op.drop_table("slack_install")
    op.drop_table("slack_home")
    op.drop_table("rule")
    with op.batch_alter_table("output", schema=None) as batch_op:
        batch_op.drop_index(
            "output_unposted", sqlite_where=sa.text("posted = 0"), postgresql_where=sa.text("NOT posted")
        )
        batch_op.drop_index(batch_op.f("ix_output_conversation_id"))

    op.drop_table("output")
    op.drop_table("link_code")
    with op.batch_alter_table("issue", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_issue_state"))

    op.drop_table("issue")
    with op.batch_alter_table("event", schema=None) as batch_op:
        batch_op.drop_index(
            "event_unhandled",
            sqlite_where=sa.text("handled_at IS NULL"),
            postgresql_where=sa.text("handled_at IS NULL"),
        )

    op.drop_table("event")
    op.drop_table("dialogue")
    with op.batch_alter_table("conversation", schema=None) as batch_op:
        batch_op.drop_index(
            "one_open_conversation",
            sqlite_where=sa.text("ended_at IS NULL"),
            postgresql_where=sa.text("ended_at IS NULL"),
        )

    op.drop_table("conversation")
    op.drop_table("ledger")
    op.drop_table("checkpoint")
    op.drop_table("book")
    with op.batch_alter_table("account", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_account_person_id"))

    op.drop_table("account")
