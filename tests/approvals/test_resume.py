"""A pause ends: every open proposal gets its time back in a recorded move, and its card is redrawn."""

import ast
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from bot.approvals import pause
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.store import rules
from bot.store.audit import log, verification
from tests.kit import ADA, MakeNod, Nod, call

HOURS = timedelta(hours=5)
WATCHED = "expires_at warn_at remind_at escalate_at state quorum declines deciders votes version"


@pytest.fixture
def nod(make_nod: MakeNod) -> Nod:
    return make_nod(admins=[ADA])


async def say(nod: Nod, words: str) -> str:
    text_ = (await nod.command(f"/approvals {words}", by=ADA)).text
    await nod.idle()
    return text_


async def asked(nod: Nod) -> Proposal:
    coats = len(await nod.proposals()) + 1  # what is open already is not asked for again
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red", coats=coats))
    return painted


async def test_resume_records_the_new_deadline_of_each_open_proposal_and_redraws_its_card(nod: Nod) -> None:
    await say(nod, "remind 10h")
    await say(nod, "escalate 12h wall:approvals")
    before = await asked(nod)
    await say(nod, "pause")
    nod.clock.forward(HOURS)
    assert await say(nod, "resume") == "Resumed. Open proposals have 5h added to their deadlines."
    after = await nod.now(before)
    assert after.version == before.version + 1
    for name in ("expires_at", "warn_at", "remind_at", "escalate_at"):
        assert getattr(after, name) == getattr(before, name) + HOURS, name
    last = (await nod.database.read(log.list_rows_of_proposal, before.id))[-1]
    assert (last.verb, last.actor) == ("resume", str(ADA))
    assert nod.chat.card_of(before).expires_at == after.expires_at
    assert await nod.database.read(verification.find_faults_in_session) == []


async def test_what_was_proposed_within_the_pause_gets_only_its_own_part_of_it(nod: Nod) -> None:
    await say(nod, "pause")
    nod.clock.forward(timedelta(hours=4))
    late = await asked(nod)
    nod.clock.forward(timedelta(hours=1))
    await say(nod, "resume")
    assert (await nod.now(late)).expires_at == late.expires_at + timedelta(hours=1)


async def test_a_resume_that_was_cut_off_is_finished_by_the_next(nod: Nod) -> None:
    both = [await asked(nod), await asked(nod)]
    await say(nod, "pause")
    nod.clock.forward(HOURS)
    first = await nod.database.write(pause.take_resume_step, ADA, nod.clock(), 1)
    assert first is not None
    assert not first.is_last
    assert await nod.database.read(rules.find_paused_since) is not None
    nod.clock.forward(HOURS)
    await say(nod, "resume")
    assert await nod.database.read(rules.find_paused_since) is None
    for each in both:
        assert (await nod.now(each)).expires_at == each.expires_at + 2 * HOURS
    assert await nod.database.read(verification.find_faults_in_session) == []


@pytest.mark.slow
async def test_no_update_changes_an_open_proposal_past_its_version_its_row_and_its_card(nod: Nod) -> None:
    """The database itself watches: an UPDATE of what people see without a new version is refused."""
    if nod.database.dialect != "sqlite":
        pytest.skip("its trigger is SQLite's")
    cells = " OR ".join(f"NEW.{name} IS NOT OLD.{name}" for name in WATCHED.split())
    with nod.database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE watched (proposal_id TEXT, version INTEGER, wanted INTEGER)"))
        connection.execute(
            text(  # the words are the test's own
                f"CREATE TRIGGER watch AFTER UPDATE ON proposal WHEN {cells} BEGIN "
                "SELECT RAISE(ABORT, 'past the record') WHERE NEW.version <> OLD.version + 1; "
                "INSERT INTO watched SELECT NEW.id, NEW.version, (SELECT max(wanted) FROM copy "
                "WHERE proposal_id = NEW.id); END"
            )
        )
    await say(nod, "remind 1h")
    await say(nod, "escalate 2h wall:approvals")
    proposed = [await asked(nod) for _ in range(5)]
    await nod.press(Verb.EXTEND, proposed[0])
    await nod.press(Verb.REASSIGN, proposed[1], by=ADA, reason="requester admin")
    await nod.press(Verb.EDIT, proposed[2], arguments={"lamp": "desk", "color": "blue"})
    await nod.press(Verb.DECLINE, proposed[3])
    await nod.approve(proposed[4])
    await say(nod, "pause")
    nod.clock.forward(HOURS)
    await say(nod, "resume")
    for hours in (1, 1, 18, 30):
        await nod.tick(timedelta(hours=hours))
    assert {p.state for p in await nod.proposals()} == {State.EXPIRED, State.DECLINED, State.SUCCEEDED}
    with nod.database.engine.connect() as connection:
        unrecorded = connection.execute(
            text(
                "SELECT proposal_id, version FROM watched EXCEPT SELECT proposal_id, version FROM audit "
                "UNION ALL SELECT w.proposal_id, w.version FROM watched w JOIN copy c USING (proposal_id) "
                "WHERE w.wanted IS NOT NULL AND c.wanted <= w.wanted"
            )
        ).all()
        seen = connection.execute(text("SELECT count(*) FROM watched")).scalar_one()
        verbs = set(connection.execute(text("SELECT verb FROM audit")).scalars())
    assert unrecorded == []
    assert seen > 15
    assert {"extend", "reassign", "edit", "resume", "remind", "escalate", "warn", "expire"} <= verbs


@pytest.mark.slow
def test_only_one_module_writes_proposals() -> None:
    """No other statement updates the table, and no one changes a row of it as an object."""
    store = Path(__file__).parents[2] / "bot"
    found = []
    for path in store.rglob("*.py"):
        if path.parts[-2] in ("versions", "migrations") or path.stem == "proposals":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                table = ast.unparse(node.args[0]) if node.args else ""
                if node.func.id in ("update", "insert", "delete") and table in ("ProposalRow", "_PROPOSAL"):
                    found.append(f"{path.name}:{node.lineno}")
    assert found == []
