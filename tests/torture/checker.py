"""What must be so after any number of kills, asked of the rows in plain SQL and of what the tools left."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, create_engine, text
from sqlmodel import Session

from bot.store.audit import verification
from tests.torture import accounts
from tests.torture.figures import Figures
from tests.torture.people import OVER_BUDGET, People, Told

_ORPHANS = {
    "a turn is wanted": "SELECT count(*) FROM turn WHERE state = 'wanted'",
    "a change is under way": "SELECT count(*) FROM proposal WHERE state IN ('approved', 'executing')",
    "a message has no answer": """
        SELECT count(*) FROM message AS said WHERE (said.role = 'user' OR said.channel = 'nod')
        AND NOT EXISTS (
            SELECT 1 FROM message AS later WHERE later.conversation_id = said.conversation_id
            AND later.role IN ('assistant', 'notice') AND later.after >= said.id)
        AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.conversation_id = said.conversation_id
            AND turn.state = 'stopped')
    """,
    "a change that ended is not told to the model": """
        SELECT count(*) FROM proposal WHERE state NOT IN ('proposed', 'approved', 'executing')
        AND agent IS NULL AND (undoes IS NULL OR state = 'succeeded')
        AND NOT EXISTS (SELECT 1 FROM message AS later
            WHERE later.conversation_id = proposal.conversation_id AND later.id > proposal.message_id)
        AND NOT EXISTS (SELECT 1 FROM teammate
            WHERE teammate.id = proposal.conversation_id AND standing <> 'working')
    """,
    "the end of a teammate is not told to the model": """
        SELECT count(*) FROM teammate WHERE NOT EXISTS (SELECT 1 FROM message
            WHERE conversation_id = lead_id AND role = 'note'
            AND text LIKE '[Nod] Teammate ' || teammate.name || ' %')
    """,
    "a teammate waits for nothing": """
        SELECT count(*) FROM teammate WHERE standing = 'working'
    """,
    "a conversation is empty": """
        SELECT count(*) FROM conversation WHERE NOT EXISTS
        (SELECT 1 FROM message WHERE message.conversation_id = conversation.id)
    """,
}
_DOUBLED = {
    "one message led to two answers with calls": """
        SELECT count(*) FROM (SELECT 1 FROM message WHERE role = 'assistant' AND calls IS NOT NULL
        AND CAST(calls AS text) <> 'null' AND conversation_id NOT IN (SELECT id FROM teammate)
        GROUP BY conversation_id, after HAVING count(*) > 1) AS d
    """,
    "a teammate asked twice for one thing": """
        SELECT count(*) FROM (SELECT 1 FROM proposal WHERE conversation_id IN (SELECT id FROM teammate)
        GROUP BY conversation_id, kind HAVING count(*) > 1) AS d
    """,
    "one call led to two proposals": """
        SELECT count(*) FROM (SELECT 1 FROM proposal GROUP BY message_id, call_id HAVING count(*) > 1) AS d
    """,
    "a message was taken in twice": """
        SELECT count(*) FROM
        (SELECT 1 FROM message WHERE role = 'user' GROUP BY text HAVING count(*) > 1) AS d
    """,
    "one decision was executed twice": """
        SELECT count(*) FROM (SELECT audit.proposal_id,
            sum(CASE WHEN verb = 'execute' THEN 1 ELSE 0 END) AS runs,
            sum(CASE WHEN verb = 'retry' OR (verb = 'rerun'
                AND (kind = 'plan' OR tool_name IN ('schedule_task', 'ask_person', 'remember')))
                THEN 1 ELSE 0 END) AS again
        FROM audit JOIN proposal ON proposal.id = audit.proposal_id
        GROUP BY audit.proposal_id) AS d WHERE runs > again + 1
    """,
    "what was spent is not the sum of the answers": """
        SELECT count(*) FROM conversation WHERE
        (SELECT coalesce(sum(cost), 0) FROM turn WHERE turn.conversation_id = conversation.id)
        <> (SELECT count(*) FROM message WHERE message.conversation_id = conversation.id
            AND role = 'assistant')
    """,
    "a budget warned twice": """
        SELECT count(*) FROM (SELECT 1 FROM message WHERE role = 'notice'
        AND text LIKE '%of a budget is used%' GROUP BY conversation_id HAVING count(*) > 1) AS d
    """,
    "a run of a schedule is lost, or was told twice": """
        SELECT count(*) FROM schedule WHERE runs <> (SELECT count(*) FROM message
            WHERE message.channel = 'nod' AND event_id LIKE schedule.id || '.%')
    """,
    "a question was answered twice, or by someone else": """
        SELECT count(*) FROM (SELECT 1 FROM audit JOIN proposal ON proposal.id = audit.proposal_id
        WHERE verb = 'answer' GROUP BY audit.proposal_id
        HAVING count(*) > 1 OR max(actor) <> max(requester)) AS d
    """,
    "one change was undone twice": """
        SELECT count(*) FROM (SELECT 1 FROM proposal WHERE undoes IS NOT NULL AND (state = 'succeeded'
        OR (state = 'failed' AND cause = 'outcome_unknown')) GROUP BY undoes HAVING count(*) > 1) AS d
    """,
    "what undoes a change is not what the change names, or did not tell it": """
        SELECT count(*) FROM proposal JOIN proposal AS original ON original.id = proposal.undoes
        WHERE (proposal.state = 'succeeded' AND (original.undone_by IS NULL
            OR original.undone_by <> proposal.id OR original.undone IS NULL))
        OR (original.undone_by = proposal.id AND original.undone IS NOT NULL
            AND proposal.state <> 'succeeded')
    """,
    "one message started two teammates": """
        SELECT count(*) FROM (SELECT 1 FROM teammate GROUP BY lead_id HAVING count(*) > 1) AS d
    """,
    "a teammate acted without an approved plan": """
        SELECT count(*) FROM teammate JOIN proposal ON proposal.conversation_id = teammate.id
        WHERE proposal.kind = 'call' AND NOT EXISTS (SELECT 1 FROM proposal AS plan
            WHERE plan.conversation_id = teammate.id AND plan.kind = 'plan' AND plan.state = 'succeeded')
    """,
    "a grant was used after it was revoked": """
        SELECT count(*) FROM ledger JOIN audit ON CAST(ledger.key AS text) = 'G-' || audit.grant_id
        WHERE ledger.thing = 'grant' AND ledger.verb = 'revoke' AND audit.id > ledger.id
        AND audit.id = (SELECT min(id) FROM audit AS first WHERE first.proposal_id = audit.proposal_id)
    """,
    "it ran with fewer approvals than it needs": """
        SELECT count(*) FROM proposal WHERE grant_id IS NULL AND EXISTS
        (SELECT 1 FROM audit WHERE proposal_id = proposal.id AND verb = 'execute')
        AND quorum > (SELECT count(DISTINCT person) FROM audit
            WHERE proposal_id = proposal.id AND verb IN ('approve', 'similar', 'undo', 'answer'))
    """,
}
_AT_REST = ("succeeded", "declined", "cancelled")


@dataclass(frozen=True)
class Row:
    """A proposal, as far as it is checked."""

    ident: str
    tool: str
    kind: str
    key: str
    state: str
    cause: str | None
    text: str
    runs: int


def faults(url: str, effects: Path, people: People, figures: Figures) -> list[str]:
    """Everything that is wrong, in words."""
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            rows = _rows(connection)
            found = [
                *_counted(connection),
                *_effects(rows, effects),
                *_told(connection, rows, people.told),
                *_given_up(connection, figures),
            ]
            kept = set(connection.execute(text("SELECT text FROM message WHERE role = 'user'")).scalars())
            found += [f"a message was lost: {each}" for each in people.accepted if each not in kept]
        with Session(engine) as session:
            found += verification.find_faults_in_session(session)
    finally:
        engine.dispose()
    return found


def versions(url: str) -> dict[str, int]:
    """The version of each proposal."""
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            found = connection.execute(text("SELECT id, version FROM proposal"))
            return {row.id: row.version for row in found}
    finally:
        engine.dispose()


def _rows(connection: Connection) -> list[Row]:
    query = """
        SELECT id, tool_name, CASE WHEN tool_name = 'schedule_task' THEN 'schedule' ELSE kind END AS kind,
        idempotency_key, state, cause, CAST(arguments AS text) AS arguments,
        (SELECT count(*) FROM audit WHERE proposal_id = proposal.id AND verb = 'execute') AS runs
        FROM proposal
    """
    return [
        Row(r.id, r.tool_name, r.kind, r.idempotency_key, r.state, r.cause, _words(r.arguments), r.runs)
        for r in connection.execute(text(query))
    ]


def _words(arguments: str) -> str:
    """What a mark says, the summary of a plan, the task of a schedule, a question, or a fact."""
    found: dict[str, str] = json.loads(arguments)
    return next(found[each] for each in ("text", "summary", "task", "question", "fact") if each in found)


def _counted(connection: Connection) -> Iterator[str]:
    for words, query in (_ORPHANS | _DOUBLED).items():
        if count := connection.execute(text(query)).scalar_one():
            yield f"{words} ({count})"


def _effects(rows: Sequence[Row], effects: Path) -> Iterator[str]:
    """Each acted at most once a run, with what was shown; a success did act; what acted says how it ended."""
    lines = effects.read_text().splitlines() if effects.exists() else []
    acted = Counter(line.split(" ", 1)[0] for line in lines)
    said = {(key, words) for key, _, words in (line.partition(" ") for line in lines)}
    known = {row.key: row for row in rows}
    yield from (f"it acted without a proposal: {key}" for key in acted if key not in known)
    here = [row for row in rows if row.kind == "call" and row.tool != accounts.TOOL]
    for row in here:
        if acted[row.key] > row.runs:
            yield f"{row.ident} acted {acted[row.key]} times in {row.runs} runs"
        if acted[row.key] and {words for key, words in said if key == row.key} != {row.text}:
            yield f"{row.ident} acted with other arguments than those it shows"
        if row.state == "succeeded" and not acted[row.key]:
            yield f"{row.ident} says that it succeeded, and did not act"
        unknown = row.state == "failed" and row.cause == "outcome_unknown"
        if acted[row.key] and row.state != "succeeded" and not unknown:
            yield f"{row.ident} acted, and says {row.state} ({row.cause})"


def _told(connection: Connection, rows: Sequence[Row], told: Sequence[Told]) -> Iterator[str]:
    """Each press that was accepted is in the record, once each; what was shown as its end is its end."""
    states = {row.ident: row.state for row in rows}
    query = "SELECT proposal_id, actor, verb, count(*) AS many FROM audit GROUP BY proposal_id, actor, verb"
    recorded = {(r.proposal_id, r.actor, r.verb): r.many for r in connection.execute(text(query))}
    heard = Counter((each.ident, f"http:{each.who}", each.verb) for each in told if each.answer == "accepted")
    for (ident, who, verb), many in heard.items():
        if not verb.endswith("_all") and many > recorded.get((ident, who, verb), 0):
            yield f"{ident}: {who} was told {many} times that their {verb} counts"
    for each in told:
        if each.state in _AT_REST and states[each.ident] != each.state:
            yield f"{each.ident} was shown as {each.state}, and is {states[each.ident]}"


def _given_up(connection: Connection, figures: Figures) -> Iterator[str]:
    """A turn is given up only after processes died over it, and else fails for want of a budget alone.

    Of several one that was only very slow may have been taken for dead.
    """
    least = 2 if connection.dialect.name == "sqlite" else 1
    query = (
        "SELECT id, conversation_id, error, {} AS began, {} AS ended FROM turn WHERE state = 'failed'".format(
            *(_seconds(connection, column) for column in ("created_at", "ended_at"))
        )
    )
    for row in connection.execute(text(query)):
        kills = sum(float(row.began) <= when <= float(row.ended) for when in figures.kills)
        if row.error.startswith(OVER_BUDGET):
            continue
        if "kept being restarted" not in row.error or kills < least:
            yield f"a turn failed after {kills} kills: {row.error}"


def _seconds(connection: Connection, column: str) -> str:
    """A moment as seconds since the epoch."""
    if connection.dialect.name == "sqlite":
        return f"(julianday({column}) - 2440587.5) * 86400.0"
    return f"extract(epoch FROM {column})"
