"""What must be so after any number of kills, asked of the rows in plain SQL and of what the tool left."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sqlalchemy import Connection, create_engine, text
from sqlmodel import Session

from bot.store.record import seals

_ORPHANS = {
    "a turn is wanted": "SELECT count(*) FROM turn WHERE state = 'wanted'",
    "a change is under way": "SELECT count(*) FROM proposal WHERE state IN ('approved', 'executing')",
    "a message has no answer": """
        SELECT count(*) FROM message AS said WHERE said.role = 'user' AND NOT EXISTS (
            SELECT 1 FROM message AS later WHERE later.conversation_id = said.conversation_id
            AND later.role IN ('assistant', 'notice') AND later.after >= said.id)
    """,
    "a change that ended is not told to the model": """
        SELECT count(*) FROM proposal WHERE state NOT IN ('proposed', 'approved', 'executing')
        AND NOT EXISTS (SELECT 1 FROM message AS later
            WHERE later.conversation_id = proposal.conversation_id AND later.id > proposal.message_id)
    """,
}
_DOUBLED = {
    "one message led to two proposals": """
        SELECT count(*) FROM (SELECT 1 FROM proposal GROUP BY conversation_id HAVING count(*) > 1) AS d
    """,
    "one call is in two answers": """
        SELECT count(*) FROM (SELECT 1 FROM message WHERE role = 'assistant' AND calls IS NOT NULL
        AND CAST(calls AS text) <> 'null' GROUP BY conversation_id HAVING count(*) > 1) AS d
    """,
    "a proposal was claimed twice": """
        SELECT count(*) FROM (SELECT 1 FROM audit WHERE verb = 'execute'
        GROUP BY proposal_id HAVING count(*) > 1) AS d
    """,
}


def faults(url: str, effects: Path, told: Mapping[str, Sequence[str]], accepted: Sequence[str]) -> list[str]:
    """Everything that is wrong, in words. ``told``: what was answered to presses of each proposal.

    ``accepted``: the texts of all messages that were taken in.
    """
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            found = [*_counted(connection), *_effects(connection, effects), *_told(connection, told)]
            kept = set(connection.execute(text("SELECT text FROM message WHERE role = 'user'")).scalars())
            found += [f"a message was lost: {each}" for each in accepted if each not in kept]
        with Session(engine) as session:
            found += seals.faults(session)
    finally:
        engine.dispose()
    return found


def _counted(connection: Connection) -> Iterator[str]:
    for words, query in (_ORPHANS | _DOUBLED).items():
        if count := connection.execute(text(query)).scalar_one():
            yield f"{words} ({count})"


def _effects(connection: Connection, effects: Path) -> Iterator[str]:
    """Each change acted at most once; a success did act; what acted was approved and says how it ended."""
    lines = effects.read_text().splitlines() if effects.exists() else []
    acted = Counter(line.split(" ", 1)[0] for line in lines)
    rows = connection.execute(text("SELECT idempotency_key, id, state, cause FROM proposal")).all()
    known = {row.idempotency_key for row in rows}
    yield from (f"it acted {many} times: {key}" for key, many in acted.items() if many > 1)
    yield from (f"it acted without a proposal: {key}" for key in acted if key not in known)
    for row in rows:
        if row.state == "succeeded" and not acted[row.idempotency_key]:
            yield f"{row.id} says that it succeeded, and did not act"
        unknown = row.state == "failed" and row.cause == "outcome_unknown"
        if acted[row.idempotency_key] and row.state != "succeeded" and not unknown:
            yield f"{row.id} acted, and says {row.state} ({row.cause})"


def _told(connection: Connection, told: Mapping[str, Sequence[str]]) -> Iterator[str]:
    states = dict(connection.execute(text("SELECT id, state FROM proposal")).tuples().all())
    for ident, answers in told.items():
        if answers.count("accepted") > 1:
            yield f"{ident}: two presses were told that they decided"
        if answers and states.get(ident) == "proposed":
            yield f"{ident}: a press was told {answers[0]}, and it is still open"
