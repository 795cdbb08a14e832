"""Millions may wait: what happens all the time finds its rows by an index, and reads no more of them."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, insert, select

from bot.approvals import pause
from bot.approvals.lookup import rule_simulation
from bot.domain.audit import AuditFilter
from bot.domain.chat import Address, Parts
from bot.domain.people import SHELL
from bot.domain.proposal_lists import PageCursor
from bot.domain.proposal_states import State
from bot.domain.rule_values import Mode, Subject
from bot.domain.rules import Rule
from bot.domain.verbs import Verb
from bot.features.insights import suggestions
from bot.store import (
    abandoned_work,
    asked_calls,
    counts,
    outputs,
    past_proposals,
    posted_cards,
    proposals,
    questions,
    rules,
    teams,
    turns,
)
from bot.store.audit import search, verification
from bot.store.database import Database
from bot.store.proposals import SearchScope
from bot.store.tables.audit import AuditRow
from bot.store.tables.conversations import MessageRow
from bot.store.tables.proposals import TIMED_ACTIONS, ProposalRow
from bot.store.tables.row import table_of
from tests.kit import ADA, ANA, BEN, ROOM, FakeClock, Nod, call, make_tables, says
from tests.kit.plans import AskedTexts, read_from_end_to_end
from tests.store.conftest import Rows

pytestmark = pytest.mark.slow

_LISTS_BROWSERS = "FROM sign_in"
"""Once an hour every browser that is signed in is looked at: whose account is gone is signed out."""


@pytest.fixture
async def nod(database_url: str, clock: FakeClock) -> AsyncIterator[Nod]:
    nod = Nod(database_url, clock)
    yield nod
    await nod.close()


async def test_nothing_that_happens_all_the_time_reads_a_table_from_end_to_end(nod: Nod) -> None:
    asked = AskedTexts(nod.database)
    red, blue = call("paint", lamp="desk", color="red"), call("paint", lamp="door", color="blue")
    await nod.asked(red, blue)
    await nod.asked(red, at=Address("chat", "elsewhere"))
    first, second, third = await nod.proposals()
    nod.model.will(says("Done."))
    asked.texts.clear()
    await nod.press(Verb.DECLINE, first)
    await nod.approve(second)
    await nod.say("and now?")
    await nod.idle()
    for reach in (
        SearchScope(frozenset(), everything=True),
        SearchScope(frozenset({str(ANA), str(BEN)}), everything=False),
    ):
        await nod.database.read(proposals.list_within_reach, reach, [State.PROPOSED, State.FAILED])
    await nod.tick()
    await nod.tick(third.ttl)
    assert (await nod.now(third)).state is State.EXPIRED
    await nod.recovery.purge(nod.clock())
    texts = [text for text in asked.texts if _LISTS_BROWSERS not in text]
    assert len(texts) > 80
    found = {text: ends for text in texts if (ends := read_from_end_to_end(nod.database, text))}
    assert not found, "\n\n".join(f"{ends}: {text}" for text, ends in found.items())


async def test_what_people_look_back_on_is_found_by_an_index(nod: Nod) -> None:
    asked = AskedTexts(nod.database)
    [p] = await nod.asked(call("paint", lamp="desk", color="red"))
    await nod.approve(p)
    asked.texts.clear()
    month = nod.clock() - timedelta(days=30)
    rule = Rule(0, Subject.POLICY, str(ROOM), "paint", Mode.NEVER)
    policies, tools = nod.gate.policies, await nod.gate.registry.load_tools()
    for accounts in (None, frozenset({str(ANA)})):
        await nod.database.read(past_proposals.count_insights, month, accounts, UTC)
    await nod.database.read(rule_simulation.try_rule, policies, rule, month, PageCursor(nod.clock(), p.id))
    await nod.database.read(suggestions.find_suggestions, policies, tools, nod.clock())
    await nod.command(f"/approvals context {p.id[:8]}", by=BEN)
    texts = [text for text in asked.texts if "FROM account ORDER BY" not in text]  # linked ones: they are few
    assert len(texts) >= 8
    found = {text: ends for text in texts if (ends := read_from_end_to_end(nod.database, text))}
    assert not found, "\n\n".join(f"{ends}: {text}" for text, ends in found.items())


async def test_what_admins_and_monitors_look_at_is_found_by_an_index(nod: Nod) -> None:
    asked = AskedTexts(nod.database)
    first, second = await nod.asked(
        call("paint", lamp="desk", color="red"), call("paint", lamp="door", color="blue")
    )
    await nod.press(Verb.DECLINE, first)
    if nod.database.dialect == "postgresql":  # chooses by how many rows there are
        await nod.asked(
            *(call("paint", lamp=f"{n}", color="red") for n in range(30)), at=Address("chat", "elsewhere")
        )
    now = nod.clock()
    tally = await nod.database.read(counts.count_all)
    asked.texts.clear()
    for by in Parts:
        await nod.database.read(counts.list_usage, by, now - timedelta(days=30), None)
    await nod.database.read(counts.count_waiting)
    await nod.database.read(counts.list_turns, *await nod.database.read(counts.find_turns_under_way))
    await nod.database.read(counts.list_turns, 0, ())
    await nod.database.read(counts.update_tally, tally)
    await nod.database.read(search.load_page, AuditFilter(proposal=second.id[:8]), 9)
    await nod.database.read(counts.sum_spent_since, now, str(ROOM), {str(ANA)})
    await nod.database.write(rules.pause_all, ADA, now)
    while not (step := await nod.database.write(pause.take_resume_step, ADA, now)) or not step.is_last:
        pass
    texts = list(asked.texts)
    assert any("proposal.id >" in text for text in texts)
    found = {text: ends for text in texts if (ends := read_from_end_to_end(nod.database, text))}
    assert not found, "\n\n".join(f"{ends}: {text}" for text, ends in found.items())


def test_who_asked_last_is_not_looked_for_among_the_messages_of_everyone(rows: Rows) -> None:
    if rows.database.dialect != "postgresql":
        pytest.skip("SQLite chooses without looking at what is in the table")
    [p] = rows.propose()
    others = [each for place in range(30) if (each := rows.say(at=Address(SHELL, f"{place}")))]
    everywhere = [p.conversation_id, *(each.conversation_id for each in others)]
    lines = [
        {"conversation_id": each, "role": "user", "text": "", "created_at": rows.clock()}
        for each in everywhere * 100
    ]
    with rows.database.engine.begin() as connection:
        connection.execute(insert(table_of(MessageRow)), lines)
        connection.exec_driver_sql("ANALYZE conversation, message")  # not the tables of other tests, too
    asked: list[tuple[str, Any]] = []
    event.listen(rows.database.engine, "before_cursor_execute", lambda *given: asked.append(given[2:4]))
    rows.database.read_now(asked_calls.find_calls_already_asked, p.conversation_id, rows.clock())
    [(words, given)] = asked
    with rows.database.engine.connect() as connection:
        plan = "\n".join(connection.exec_driver_sql(f"EXPLAIN {words}", given).scalars())
    assert "message_of_conversation" in plan
    assert "Index Scan Backward using message_pkey" not in plan


def test_a_part_of_the_audit_log_is_verified_without_what_was_verified_before(rows: Rows) -> None:
    if rows.database.dialect != "postgresql":
        pytest.skip("SQLite chooses without looking at what is in the table")
    rows.propose()
    ids = [f"{number:032x}" for number in range(4000)]
    with rows.database.engine.begin() as connection:
        proposal = connection.execute(select(table_of(ProposalRow))).mappings().one()
        change = connection.execute(select(table_of(AuditRow))).mappings().one()
        connection.execute(
            insert(table_of(ProposalRow)), [{**proposal, "id": each, "idempotency_key": each} for each in ids]
        )
        connection.execute(
            insert(table_of(AuditRow)),
            [
                {**change, "id": 4 * row + version + 2, "proposal_id": each, "version": version}
                for row, each in enumerate(ids)
                for version in range(4)
            ],
        )
        connection.exec_driver_sql("ANALYZE proposal, audit")
    asked = AskedTexts(rows.database)
    rows.database.read_now(verification.find_faults_in_session)
    texts = [text for text in asked.texts if "LEFT OUTER JOIN audit" in text]
    assert len(texts) == 4
    for text in texts:
        assert "audit_once" not in read_from_end_to_end(rows.database, text, few=False), text


def test_a_look_takes_as_many_steps_however_much_has_ended(tmp_path: Path) -> None:
    few, many = (_steps_of_looks(tmp_path / f"{ended}.db", ended) for ended in (10, 100))
    assert few.keys() == many.keys()
    assert all(abs(few[each] - many[each]) <= 2 for each in few), (few, many)


def _steps_of_looks(file: Path, ended: int) -> Counter[str]:
    """How many instructions SQLite runs for each, with so many proposals that ended long ago."""
    make_tables(url := f"sqlite:///{file}")
    database = Database(url)
    taken: Counter[str] = Counter()
    doing = ""

    def count() -> None:
        taken[doing] += 1

    event.listen(database.engine, "connect", lambda connection, _: connection.set_progress_handler(count, 1))
    rows = Rows(database, FakeClock())
    for place in range(ended):
        [p] = rows.propose(at=Address(SHELL, f"{place:03}"))
        rows.decide(p)
        claimed = rows.claim(p)
        assert claimed is not None
        rows.finish(claimed)
        database.write_now(turns.end_turn, rows.turn(p.conversation_id), "finished", rows.clock())
    tally = database.read_now(counts.count_all)
    rows.clock.forward(timedelta(days=40))
    declined, waiting = rows.propose(2)
    rows.decide(declined, Verb.DECLINE)
    now = rows.clock()
    newest, _ = database.read_now(counts.find_turns_under_way)
    looks: dict[str, tuple[Callable[..., object], ...]] = {
        "asked already": (asked_calls.find_calls_already_asked, waiting.conversation_id, now),
        "audit": (search.load_page, AuditFilter(), 5),
        "audit of a proposal": (search.load_page, AuditFilter(proposal=waiting.id), 5),
        "what a resume reads": (proposals.list_waiting_after, "", 9),
        "usage": (counts.list_usage, Parts.DAY, now - timedelta(days=30), None),
        "what stands": (counts.count_waiting,),
        "moves": (counts.update_tally, tally),
        "turns": (counts.list_turns, newest + counts.REREAD_IDS, ()),
    }
    for name, (look, *given) in looks.items():
        doing = name
        database.read_now(look, *given)
    doing = ""
    database.close()
    del taken[""]
    return taken


def test_a_press_a_list_and_a_tick_take_as_many_steps_however_much_waits(tmp_path: Path) -> None:
    few, many = (_steps(tmp_path / f"{waiting}.db", waiting) for waiting in (20, 200))
    assert few.keys() == many.keys()
    # where an id, which is drawn by chance, falls in an index is a step more or less
    assert all(abs(few[each] - many[each]) <= 2 for each in few)


def _steps(file: Path, waiting: int) -> Counter[str]:
    """How many instructions SQLite runs for each, with so many proposals that wait."""
    make_tables(url := f"sqlite:///{file}")
    database = Database(url)
    taken: Counter[str] = Counter()
    doing = ""

    def count() -> None:
        taken[doing] += 1

    event.listen(database.engine, "connect", lambda connection, _: connection.set_progress_handler(count, 1))
    rows = Rows(database, FakeClock())
    pressed = [rows.propose(at=Address(SHELL, f"{place:03}"))[0] for place in range(waiting)][-1]
    said = rows.say(at=ROOM)
    assert said is not None
    turn = rows.turn(said.conversation_id)
    now = rows.clock()
    database.write_now(turns.store_answer, turn, "Hello.", [], {}, None, delivered=False, now=now)
    database.write_now(turns.end_turn, turn, "finished", now)
    before = now - timedelta(minutes=1)
    looks: dict[str, tuple[Callable[..., object], ...]] = {
        "list": (proposals.list_in_states, [State.PROPOSED], 9),
        "due": (proposals.list_due_to_expire, now, 9),
        **{what: (proposals.list_due_for_action, what, now, 9) for what in TIMED_ACTIONS},
        "abandoned": (abandoned_work.list_abandoned_runs, "me"),
        "questions left": (abandoned_work.list_abandoned_questions, "me"),
        "approved": (proposals.list_approved,),
        "wanted": (turns.list_wanted,),
        "undelivered": (turns.list_with_undelivered, before, now),
        "unposted": (outputs.list_conversations_with_unposted, before, now),
        "untold": (questions.list_homes_with_untold, before, now),
        "cards": (posted_cards.list_outdated_messages,),
        "teams": (teams.list_with_outdated_message,),
    }
    for name, (look, *given) in looks.items():
        doing = name
        database.read_now(look, *given)
    doing = "press"
    rows.decide(pressed, Verb.DECLINE)
    doing = ""
    database.close()
    del taken[""]
    return taken
