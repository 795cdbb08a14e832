"""A call that can be tried is tried before people decide, and what they approve is what it did then."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlmodel import Session

from bot.approvals.requests import RequestGate
from bot.domain.audit import AuditFilter
from bot.domain.card_rendering import render_card
from bot.domain.chat import Answer, Request
from bot.domain.outcomes import for_model
from bot.domain.policy import Policy
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.rule_values import Mode
from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.trials import Trial
from bot.domain.verbs import Verb
from bot.errors import ToolError
from bot.store import trials as store
from bot.store.audit import search
from bot.tools.builtin.shell.tools import shell_tools
from bot.tools.call import CallContext, ToolOutput
from bot.tools.decorator import tool
from bot.tools.tool import Tool
from bot.tools.toolset import FixedToolset
from bot.tools.trial import TrialOutput
from tests.kit import ADA, ANA, BEN, ROOM, FakeClock, Nod, call, cores
from tests.kit.urls import Urls
from tests.tools.builtin.trials.world import World, world

pytestmark = pytest.mark.slow


def ledger_tools(books: dict[str, Any]) -> list[Tool]:
    """A tool that books in a ledger: tried over a copy of it, and applied."""

    async def trial(arguments: Mapping[str, Any]) -> TrialOutput:
        books["tried"] = books.get("tried", 0) + 1
        if books.get("waits"):
            await books["waits"].wait()
        if arguments["amount"] < 0:
            raise ToolError("a ledger takes no debts")
        old, new = books["total"], books["total"] + arguments["amount"]
        refused = "A total of more than 100 is for the bank." if new > 100 else ""
        change = PreviewField("total", str(old), str(new))
        return TrialOutput([change], {"from": old, "to": new}, output="booked in a copy", refused=refused)

    async def apply(_: Mapping[str, Any], token: Any, context: CallContext) -> ToolOutput:
        if books["total"] != token["from"]:
            raise ToolError("The total changed.")
        books["total"] = token["to"]
        books["applied"] = context.idempotency_key
        return ToolOutput("booked", told=f"The total is {token['to']}")

    @tool(trial=trial, apply=apply, summary="Book {amount}")
    async def book(amount: int) -> str:
        """Book an amount."""
        books["ran"] = books.get("ran", 0) + 1
        books["total"] += amount
        return "ran"

    return [book]


class Bank(Nod):
    """The core with a ledger."""

    def tools(self) -> FixedToolset:
        self.books: dict[str, Any] = getattr(self, "books", {"total": 10})
        return FixedToolset("bank", (*self.toolset.fixed, *ledger_tools(self.books)))

    async def proposed(self, *amounts: int) -> list[Proposal]:
        """What comes of the calls, as people are asked."""
        return await self.asked(*(call("book", amount=amount) for amount in amounts))


@pytest.fixture
async def make(database_of: Urls, clock: FakeClock) -> AsyncIterator[Any]:
    async with cores(Bank, database_of, clock) as made:
        yield made


async def test_a_call_is_tried_and_its_card_shows_what_it_would_change(make):
    bank = make()
    [p] = await bank.proposed(5)
    assert bank.books["total"] == 10
    assert [(f.field, f.old_value, f.new_value) for f in p.preview] == [
        ("printed", None, "booked in a copy"),
        ("total", "10", "15"),
    ]
    card = render_card(p, {})
    assert "Tried in a closed copy. Approve applies exactly this, without running it again." in card.notes
    assert {Verb.APPROVE, Verb.FOR_REAL} <= set(card.verbs)


async def test_an_approval_applies_what_was_tried_and_does_not_run_the_call(make):
    bank = make()
    [p] = await bank.proposed(5)
    await bank.press(Verb.APPROVE, p)
    await bank.idle()
    done = await bank.now(p)
    assert (done.state, done.result_sentence) == (State.SUCCEEDED, "The total is 15")
    assert bank.books == {"total": 15, "tried": 2, "applied": p.idempotency_key}  # once more before it


async def test_the_model_is_told_nothing_of_a_trial_before_the_end(make):
    bank = make()
    [p] = await bank.proposed(5)
    assert "booked in a copy" not in for_model(p)
    assert not any("booked" in each for each in bank.model.heard)


async def test_where_the_world_changed_since_it_is_tried_again_and_people_are_asked_again(make):
    bank = make()
    [p] = await bank.proposed(5)
    bank.books["total"] = 20
    await bank.press(Verb.APPROVE, p)
    await bank.idle()
    again = await bank.now(p)
    assert (again.state, again.round, again.values_changed) == (State.PROPOSED, 2, True)
    assert again.preview[-1] == PreviewField("total", "20", "25")
    assert again.seen != p.seen
    assert (await bank.press(Verb.APPROVE, p, seen=p.seen)).answer is Answer.STALE
    await bank.press(Verb.APPROVE, again, seen=again.seen)
    await bank.idle()
    assert bank.books["total"] == 25
    assert "ran" not in bank.books


async def test_run_it_for_real_runs_the_call_and_says_so(make):
    bank = make()
    [p] = await bank.proposed(5)
    await bank.press(Verb.FOR_REAL, p)
    await bank.idle()
    done = await bank.now(p)
    assert (done.state, done.for_real, done.result) == (State.SUCCEEDED, True, "ran")
    assert bank.books["ran"] == 1
    assert "applied" not in bank.books
    assert "It ran for real, instead of applying its trial." in render_card(done, {}).notes
    running = replace(done, state=State.EXECUTING)
    assert "Approved to run for real, instead of applying its trial." in render_card(running, {}).notes


async def test_what_cannot_be_applied_can_only_be_run_for_real(make):
    bank = make()
    [p] = await bank.proposed(95)
    card = render_card(p, {})
    assert Verb.APPROVE not in card.verbs
    assert Verb.SIMILAR not in card.verbs
    assert any("A total of more than 100 is for the bank." in note for note in card.notes)
    refused = await bank.press(Verb.APPROVE, p)
    assert (refused.answer, (await bank.now(p)).state) == (Answer.INVALID, State.PROPOSED)
    await bank.press(Verb.FOR_REAL, p)
    await bank.idle()
    assert bank.books["ran"] == 1


async def test_what_could_not_be_tried_says_why_and_asks_as_before(make):
    bank = make()
    [p] = await bank.proposed(-5)
    card = render_card(p, {})
    assert "Not tried first. A ledger takes no debts." in card.notes
    assert Verb.FOR_REAL not in card.verbs
    await bank.press(Verb.APPROVE, p)
    await bank.idle()
    assert bank.books == {"total": 5, "tried": 1, "ran": 1}


async def test_nothing_is_tried_that_is_not_asked_for(make):
    bank = make(policy=replace(Policy(), mode=Mode.DESTRUCTIVE))
    await bank.proposed(5)
    assert "tried" not in bank.books
    assert bank.books["ran"] == 1


async def test_nothing_is_tried_while_everything_is_paused(make):
    bank = make(admins=[ADA])
    await bank.command("/approvals pause", by=ADA)
    [p] = await bank.proposed(5)
    assert p.trial is None
    assert "tried" not in bank.books


async def test_nothing_is_tried_that_a_grant_lets_run(make):
    bank = make()
    [p] = await bank.proposed(5)
    await bank.press(Verb.SIMILAR, p, rung=GrantScope.TOOL, lasting=GrantDuration.HOUR)
    await bank.idle()
    tried = bank.books["tried"]
    await bank.proposed(6)
    assert bank.books["tried"] == tried
    assert bank.books["ran"] == 1


async def test_an_edit_is_tried_too_and_asks_again(make):
    bank = make()
    [p] = await bank.proposed(5)
    reply = await bank.press(Verb.APPROVE, p, arguments={"amount": 7})
    assert reply.text == "Edited, not approved. Look at what it does now, then decide."
    edited = await bank.now(p)
    assert (edited.state, edited.preview[-1].new_value) == (State.PROPOSED, "17")
    await bank.press(Verb.APPROVE, edited)
    await bank.idle()
    assert bank.books["total"] == 17


async def test_votes_are_all_for_what_was_tried_or_all_for_running_it(make):
    bank = make(admins=[ADA, BEN])
    await bank.command("/approvals quorum 2", by=ADA)
    [p] = await bank.proposed(5)
    await bank.press(Verb.FOR_REAL, p, by=ADA)
    refused = await bank.press(Verb.APPROVE, p, by=BEN)
    assert (refused.answer, refused.text) == (
        Answer.INVALID,
        "Others approved running it for real. Approve the same.",
    )
    await bank.press(Verb.FOR_REAL, p, by=BEN)
    await bank.idle()
    assert bank.books["ran"] == 1


async def test_two_run_at_the_same_time_and_thirty_an_hour_for_one_person(make, clock):
    bank = make()
    bank.books["waits"] = asyncio.Event()
    asked = asyncio.create_task(bank.proposed(*range(1, 6)))
    while bank.books.get("tried", 0) < 2:  # noqa: ASYNC110 - of the tool
        await asyncio.sleep(0)
    for _ in range(100):  # more could begin
        await asyncio.sleep(0)
    assert bank.books["tried"] == 2
    bank.books["waits"].set()
    assert len(await asked) == 5
    for more in range(6, 31, 5):
        await bank.proposed(*range(more, more + 5))
    found = await bank.proposed(31)
    assert bank.books["tried"] == 30
    assert found[0].trial.why == "30 calls were tried for this person within an hour."
    clock.forward(timedelta(hours=1, seconds=1))
    await bank.proposed(32)
    assert bank.books["tried"] == 31


async def test_a_request_of_a_script_is_tried_as_well(make):
    bank = make()
    opened = await RequestGate(bank.gate).open(Request(ANA, "book", {"amount": 5}, ROOM, "please"))
    assert opened.proposal.trial.applies


async def test_trials_are_in_the_audit_log_with_who_what_and_how_they_ended(make):
    bank = make()
    [p] = await bank.proposed(5)
    rows = [row for row in await bank.database.read(_rows) if row["thing"] == "trial"]
    assert [row["verb"] for row in rows] == ["try", "tried"]
    assert {row["actor"] for row in rows} == {str(ANA)}
    assert rows[0]["after"]["call"] == "Book 5"
    assert rows[1]["after"]["applies"] == p.trial.token_hash


@pytest.mark.parametrize("fault", [ConnectionError, asyncio.CancelledError])
async def test_a_trial_has_ended_also_if_people_could_not_be_shown_that_it_began(make, fault):
    bank = make()
    [book] = ledger_tools(bank.books)

    async def show(_: str) -> None:
        raise fault

    with pytest.raises(fault):
        await bank.gate.trials.attempt(book, {"amount": 5}, (), ANA, show)
    rows = [row for row in await bank.database.read(_rows) if row["thing"] == "trial"]
    assert [row["verb"] for row in rows] == ["try", "tried"]
    assert rows[1]["after"]["ended"] == "it was stopped"
    assert "tried" not in bank.books


def test_a_trial_is_stored_under_the_keys_of_earlier_releases():
    trial = Trial(token_hash="abc", why_not_undone="It is too big.")
    assert trial.as_json == {"tried": True, "token": "abc", "final": "It is too big."}
    assert Trial.from_json(trial.as_json) == trial


def _rows(session: Session) -> list[dict[str, Any]]:
    return search.list_matching_rows(session, AuditFilter())


async def test_what_was_tried_is_not_applied_once_it_is_altered(make):
    bank = make()
    [p] = await bank.proposed(5)

    def alter(session):
        session.get(store.TrialTokenRow, p.trial.token_hash).content = '{"from": 10, "to": 1000}'

    await bank.database.write(alter)
    await bank.press(Verb.APPROVE, p)
    await bank.idle()
    assert (await bank.now(p)).state is not State.SUCCEEDED
    assert bank.books["total"] == 10


class Shell(Nod):
    """The core with a shell whose commands are tried."""

    around: World

    def tools(self) -> FixedToolset:
        return shell_tools(self.around.workspace, environment={}, trials=True)

    async def tried(self, script: str) -> Proposal:
        [p] = await self.asked(call("shell_run", argv=["sh", "-c", script]))
        return p


@pytest.fixture
async def shell(database_of: Urls, clock: FakeClock) -> AsyncIterator[Any]:
    with world() as around:

        class Here(Shell):
            pass

        Here.around = around
        async with cores(Here, database_of, clock) as made:
            yield made()


async def test_a_command_is_shown_by_what_it_does_and_applied_without_running_again(shell):
    p = await shell.tried("date +%N > now; echo three >> a.txt; echo said; exit 3")
    assert not (shell.around.workspace / "now").exists()
    shown = {f.field: (f.old_value, f.new_value) for f in p.preview}
    assert shown["when tried"] == (None, "ended with code 3, 2 files would change")
    assert shown["printed"] == (None, "said")
    assert shown["content of a.txt"] == ("one\ntwo\n", "one\ntwo\nthree\n")
    done = await shell.approve(p)
    assert (done.state, done.ended_badly) == (State.SUCCEEDED, "Ended with code 3")
    assert done.result_sentence == "Applied the result of its trial: 2 files changed"
    assert (shell.around.workspace / "now").read_text() == shown["content of now"][1]
    assert json.loads(done.result)["stdout"] == "said\n"
    assert [(each.field, each.agrees) for each in done.read_again] == [
        ("content of a.txt", True),
        ("content of now", True),
    ]


async def test_a_file_that_changed_since_is_tried_again(shell):
    p = await shell.tried("echo three >> a.txt")
    (shell.around.workspace / "a.txt").write_text("mine\n")
    again = await shell.approve(p)
    assert (again.state, again.values_changed) == (State.PROPOSED, True)
    assert again.preview[-1] == PreviewField("content of a.txt", "mine\n", "mine\nthree\n")


async def test_a_death_at_any_write_leaves_a_true_end(shell):
    for fuse in range(1, 40):
        number = f"n{fuse}"
        p = await shell.tried(f"echo three > {number}; echo x >> a.txt")

        async def story(p=p) -> None:
            await shell.approve(p)

        await shell.dies_in(story(), fuse, after_commit=bool(fuse % 2))
        now = await shell.now(p)
        if now.state is State.PROPOSED:
            now = await shell.approve(p)
        assert now.cause is not Cause.OUTCOME_UNKNOWN
        assert (now.state is State.SUCCEEDED) == (shell.around.workspace / number).exists()
        if now.state is State.SUCCEEDED:  # also where a restart finished it
            assert shell.chat.card_of(now).verbs == (Verb.UNDO,)
            assert len(now.read_again) == 2
        if fuse > 12 and now.state is State.SUCCEEDED:
            break
    assert not list(shell.around.workspace.glob(".nod-*"))


async def test_what_was_applied_is_undone_by_the_reverse_diff(shell):
    before = {path: found for path, found in shell.around.seen().items() if "/ws/" in path}
    p = await shell.tried("echo three >> a.txt; rm -r b; echo file > b; mkdir d; echo x > d/n; ln -s a.txt l")
    assert shell.chat.card_of(p).undo_sentence == "Can be undone for 30 min."
    done = await shell.approve(p)
    assert (shell.around.workspace / "d" / "n").exists()
    reply = await shell.press(Verb.UNDO, done)
    await shell.idle()
    assert reply.answer is Answer.ACCEPTED, reply.text
    inverse = (await shell.proposals())[-1]
    assert inverse.description == "Put back a.txt, b, b/c.txt and 3 more"
    assert inverse.read_again
    assert not inverse.wrong_fields
    assert {path: found for path, found in shell.around.seen().items() if "/ws/" in path} == before


async def test_an_undo_after_another_change_is_a_card_and_no_loss(shell):
    done = await shell.approve(await shell.tried("echo three >> a.txt"))
    (shell.around.workspace / "a.txt").write_text("mine")
    reply = await shell.press(Verb.UNDO, done)
    await shell.idle()
    assert "Something changed since" in reply.text
    assert (shell.around.workspace / "a.txt").read_text() == "mine"
    newest = (await shell.proposals())[-1]
    assert newest.preview[0].old_value == "mine"
    await shell.approve(newest)
    assert (shell.around.workspace / "a.txt").read_text() == "one\ntwo\n"


async def test_an_edited_command_can_be_undone_as_well(shell):
    p = await shell.tried("echo three >> a.txt")
    await shell.press(Verb.EDIT, p, arguments={"argv": ["sh", "-c", "echo four >> a.txt"]})
    edited = await shell.now(p)
    assert shell.chat.card_of(edited).undo_sentence == "Can be undone for 30 min."
    done = await shell.approve(edited)
    await shell.press(Verb.UNDO, done)
    await shell.idle()
    assert (shell.around.workspace / "a.txt").read_text() == "one\ntwo\n"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("head -c 1000001 /dev/zero > long", "What was there before is more than 1 MB"),
        ("touch a.txt; rm -f none", "It changes no file"),
    ],
)
async def test_that_a_command_cannot_be_undone_is_on_its_card(shell, script, why):
    (shell.around.workspace / "long").write_bytes(b"x" * 1_000_001)
    p = await shell.tried(script)
    assert shell.chat.card_of(p).undo_sentence == f"Nod can't undo this: {why}."
    done = await shell.approve(p)
    assert (done.state, shell.chat.card_of(done).verbs) == (State.SUCCEEDED, ())


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("for n in $(seq 1001); do : > $n; done", "It changes more than 1,000 files."),
        ("head -c 17000000 /dev/zero > f", "It changes more than 16 MB."),
        ("d=d; for n in $(seq 61); do d=$d/d; done; mkdir -p $d", "It made folders more than 60 deep."),
        ("yes | head -c 9000000", "It was ended: it said more than 4096000 bytes."),
        ("ln -s / l", "It makes a link that leads out of the workspace: l."),
    ],
)
async def test_a_bound_that_a_command_meets_is_told_on_its_card(shell, script, why):
    p = await shell.tried(script)
    card = shell.chat.card_of(p)
    assert f"Tried in a closed copy. It can't be applied: {why}" in card.notes
    assert Verb.APPROVE not in card.verbs
    assert Verb.FOR_REAL in card.verbs


async def test_a_workspace_beyond_the_bounds_is_not_tried_and_the_card_says_so(shell):
    (shell.around.workspace / "/".join(["d"] * 62)).mkdir(parents=True)
    p = await shell.tried("echo three >> a.txt")
    card = shell.chat.card_of(p)
    assert "Not tried first. The workspace has folders more than 60 deep." in card.notes
    assert Verb.FOR_REAL not in card.verbs


async def test_what_ran_for_real_cannot_be_undone_and_says_so(shell):
    p = await shell.tried("echo three >> a.txt")
    await shell.press(Verb.FOR_REAL, p)
    await shell.idle()
    done = await shell.now(p)
    assert done.state is State.SUCCEEDED
    assert (shell.around.workspace / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert (await shell.press(Verb.UNDO, done)).answer is Answer.INVALID
