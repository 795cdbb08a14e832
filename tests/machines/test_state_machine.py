"""Whatever people, tools, time and crashes do, in whatever order: the rules that always hold, hold.

Hypothesis plays the rest of the world against the real core. The model alongside it is small: which presses
were accepted, and which messages.
"""

import asyncio
import contextlib
import tempfile
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlmodel import Session, select

from bot.approvals.lookup import rule_simulation
from bot.approvals.lookup.context import read_context
from bot.domain import kinds
from bot.domain.chat import Answer
from bot.domain.conversations import LineRole
from bot.domain.digests import make_digest
from bot.domain.outcomes import for_model
from bot.domain.people import NOD
from bot.domain.policy import Policy
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.rule_values import Mode, Subject
from bot.domain.rules import EVERYWHERE, Rule
from bot.domain.verbs import Verb
from bot.errors import ModelCut, ModelError, ToolError
from bot.features.schedules import rows as schedules
from bot.store import past_proposals
from bot.store.audit import log
from bot.store.tables.conversations import MessageRow
from bot.tools.call import InverseCall, Ran
from bot.tools.toolset import FixedToolset
from tests.kit import ADA, ANA, BEN, EVE, FakeClock, Hold, Nod, breaks, call, says
from tests.kit.examples import examples
from tests.kit.urls import urls
from tests.machines.conftest import SLOW

pytestmark = pytest.mark.slow

TEAM = Policy(admins=frozenset({str(ADA)}), approvers=frozenset({str(BEN)}))
ALLOWED = {str(ANA), str(BEN), str(ADA)}
PEOPLE = st.sampled_from([ANA, BEN, ADA, EVE, EVE])
LAMPS = st.sampled_from(["desk", "door", "roof"])
COLORS = st.sampled_from(["red", "green", "blue"])
PAINT = st.builds(lambda lamp, color: ("paint", {"lamp": lamp, "color": color}), LAMPS, COLORS)
CALLS = st.one_of(
    PAINT,
    PAINT,
    st.builds(lambda amount: ("pay", {"amount": amount}), st.integers(1, 9)),
    st.builds(lambda lamp: ("look", {"lamp": lamp}), LAMPS),
    st.just(("schedule_task", {"task": "look around", "at": "11:00", "every": "6h"})),
    st.sampled_from([("trip", {}), ("hang", {}), ("paint", {"lamp": "sun"}), ("unknown", {})]),
)
IDEMPOTENT = {"pay", "schedule_task"}
VERBS = st.sampled_from([*[Verb.APPROVE] * 5, Verb.RETRY, Verb.RETRY, *Verb])


_RAN = frozenset({State.APPROVED, State.EXECUTING, State.SUCCEEDED, State.FAILED})


async def _unpainted(ran: Ran) -> InverseCall:
    lamp = ran.arguments["lamp"]
    return InverseCall("paint", {"lamp": lamp, "color": ran.old(lamp) or ""})


def _can_undo(p: Proposal) -> bool:
    """Whether it undid something, may have, or still can without anyone's asking for that again."""
    if p.state is State.FAILED:
        return p.cause in (Cause.OUTCOME_UNKNOWN, Cause.STOPPED)
    return p.state not in (State.DECLINED, State.EXPIRED, State.CANCELLED)


def _runs(session: Session, schedule_id: str) -> set[str]:
    keys = session.exec(select(MessageRow.event_id).where(MessageRow.channel == NOD)).all()
    return {key for key in keys if key and key.startswith(f"{schedule_id}.")}


class UndoableNod(Nod):
    """The core, in which paint can be undone."""

    def tools(self) -> FixedToolset:
        brought = (replace(t, undo=_unpainted) if t.name == "paint" else t for t in self.toolset.fixed)
        return FixedToolset("lamps", tuple(brought))


class CoreMachine(RuleBasedStateMachine):
    kind = "sqlite"

    @initialize()
    def begin(self) -> None:
        self.runner = asyncio.Runner()
        self.places = contextlib.ExitStack()
        folder = Path(self.places.enter_context(tempfile.TemporaryDirectory()))
        self.url = self.places.enter_context(urls(self.kind, folder))("nod")
        self.approvals: Counter[str] = Counter()  # accepted approvals and retries by proposal id
        self.accepted: list[str] = []
        self.run(self._begin())

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    async def _begin(self) -> None:
        self.nod = UndoableNod(self.url, FakeClock(), policy=TEAM, schedules_each=9)
        await self.say([("paint", {"lamp": "desk", "color": "red"}), ("pay", {"amount": 5})])
        await self.nod.idle()

    async def say(self, calls: Sequence[tuple[str, dict[str, Any]]]) -> None:
        text = f"message {len(self.accepted)}"
        wanted = [call(name, arguments) for name, arguments in calls]
        self.nod.model.will(says("So be it.", *wanted))
        reply = await self.nod.say(text, private=False)
        assert reply.answer is Answer.ACCEPTED
        self.accepted.append(text)

    def proposal(self, pick: int) -> Proposal:
        """One of them; the lower the pick, the likelier one that still can be decided."""
        found: list[Proposal] = self.run(self.nod.proposals())
        ordered = sorted(found, key=lambda p: p.state not in (State.PROPOSED, State.FAILED))
        return ordered[pick % len(ordered)]

    @rule(calls=st.lists(CALLS, max_size=6), wait=st.booleans())
    def a_person_writes(self, calls: list[tuple[str, dict[str, Any]]], *, wait: bool) -> None:
        self.run(self.say(calls))
        if wait:
            self.run(self.nod.idle())

    @rule(fault=st.sampled_from([ModelError("busy"), ModelCut()]))
    def the_model_breaks(self, fault: Exception) -> None:
        self.nod.model.will(breaks(fault, after="Well,"))

    @rule()
    def someone_writes_while_the_model_breaks(self) -> None:
        self.run(self._break_between())

    async def _break_between(self) -> None:
        await self.nod.idle()
        self.nod.model.answers.clear()
        hold = Hold()
        self.nod.model.will(breaks(ModelError("busy"), hold=hold))
        await self.say([])
        await hold.reached.wait()
        await self.say([])
        hold.go.set()

    @rule(
        pick=st.integers(0, 9),
        presses=st.lists(st.tuples(VERBS, PEOPLE), min_size=1, max_size=4),
        wait=st.booleans(),
        stale=st.sampled_from([False, False, False, True]),
    )
    def people_press(self, pick: int, presses: list[tuple[Verb, Any]], *, wait: bool, stale: bool) -> None:
        self.run(self._press(self.proposal(pick), presses, stale=stale))
        if wait:
            self.run(self.nod.idle())

    @rule(pick=st.integers(0, 9), who=PEOPLE, split=st.integers(0, 5), wait=st.booleans())
    def someone_decides_rows_of_a_batch(self, pick: int, who: Any, split: int, *, wait: bool) -> None:
        self.run(self._choose(self.proposal(pick), who, split))
        if wait:
            self.run(self.nod.idle())

    async def _choose(self, p: Proposal, who: Any, split: int) -> None:
        rows = [q for q in await self.nod.proposals() if p.batch and q.batch == p.batch]
        if not rows:
            return
        reply = await self.nod.choose(p, approve=rows[:split], decline=rows[split:], by=who)
        if reply.answer is Answer.ACCEPTED:
            assert str(who) in ALLOWED
            self.approvals.update(q.id for q in reply.proposals if q.state is State.APPROVED)

    async def _press(self, p: Proposal, presses: list[tuple[Verb, Any]], *, stale: bool) -> None:
        group_verbs = (Verb.APPROVE_ALL, Verb.DECLINE_ALL, Verb.STOP_ALL, Verb.UNDO_ALL)
        arguments = {"lamp": "roof", "color": "black"} if p.tool_name == "paint" else dict(p.arguments)
        replies = await asyncio.gather(
            *(
                self.nod.press(
                    verb,
                    p,
                    by=who,
                    arguments=arguments if verb is Verb.EDIT else None,
                    round_shown=None if verb in group_verbs else p.round - stale,
                )
                for verb, who in presses
            )
        )
        for (verb, who), reply in zip(presses, replies, strict=True):
            if reply.answer is not Answer.ACCEPTED:
                continue
            assert str(who) in ALLOWED
            assert verb in group_verbs or not stale
            if verb in (Verb.APPROVE, Verb.RETRY):
                self.approvals[p.id] += 1
            if verb in (Verb.UNDO, Verb.UNDO_ALL):
                self.approvals.update(
                    q.id for q in reply.proposals if q.undoes_proposal_id and q.state is State.APPROVED
                )
            if verb is Verb.APPROVE_ALL:
                self.approvals.update(q.id for q in reply.proposals if q.state is State.APPROVED)

    @rule(hours=st.integers(0, 30))
    def time_passes(self, hours: int) -> None:
        self.run(self.nod.tick(timedelta(hours=hours)))

    @rule(lamp=LAMPS, color=COLORS)
    def someone_else_paints(self, lamp: str, color: str) -> None:
        self.nod.world.lamps[lamp] = color

    @rule(broken=st.booleans())
    def tools_break_or_recover(self, *, broken: bool) -> None:
        self.nod.world.broken = ToolError("out of order") if broken else None

    @rule()
    def it_restarts(self) -> None:
        self.run(self.nod.restart())

    @rule(write=st.integers(1, 6), after=st.booleans(), calls=st.lists(CALLS, min_size=1, max_size=2))
    def it_crashes_at_a_write(
        self, write: int, calls: list[tuple[str, dict[str, Any]]], *, after: bool
    ) -> None:
        self.run(self._crash(write, calls, after=after))

    async def _crash(self, write: int, calls: list[tuple[str, dict[str, Any]]], *, after: bool) -> None:
        await self.say(calls)
        self.nod.database.fuse = self.nod.database.writes + write
        self.nod.database.dies_after_commit = after
        idle = asyncio.create_task(self.nod.idle())
        death = asyncio.create_task(self.nod.database.dead.wait())
        await asyncio.wait((idle, death), return_when=asyncio.FIRST_COMPLETED)
        for task in (idle, death):
            task.cancel()
        await self.nod.crash()

    @rule(pick=st.integers(0, 3), happened=st.sampled_from([None, False, True]))
    def it_crashes_after_an_approval(self, pick: int, *, happened: bool | None) -> None:
        """Before the tool runs (None), while it runs and has not yet acted, or after it acted."""
        p = self.proposal(pick)
        if p.state is not State.PROPOSED or p.tool_name not in ("paint", "pay"):
            return
        if happened is None:
            self.nod.valve.shut = True
            self.run(self._press(p, [(Verb.APPROVE, ANA)], stale=False))
            self.run(self.nod.crash())
        else:
            self.run(self._crash_in_tool(p, happened=happened))

    async def _crash_in_tool(self, p: Proposal, *, happened: bool) -> None:
        await self.nod.idle()
        hold = Hold()
        (self.nod.world.after if happened else self.nod.world.before)[p.tool_name] = hold
        await self._press(p, [(Verb.APPROVE, ANA)], stale=False)
        reached = asyncio.create_task(hold.reached.wait())
        idle = asyncio.create_task(self.nod.idle())
        await asyncio.wait((reached, idle), return_when=asyncio.FIRST_COMPLETED)
        for task in (reached, idle):
            task.cancel()
        self.nod.world.after.clear()
        self.nod.world.before.clear()
        await self.nod.crash()

    @invariant()
    def what_always_holds(self) -> None:
        if hasattr(self, "nod"):
            self.run(self._check())

    async def _check(self) -> None:
        await self.nod.check()
        could = [p for p in await self.nod.proposals() if p.undoes_proposal_id and _can_undo(p)]
        undoing = Counter(p.undoes_proposal_id for p in could)
        assert not undoing or max(undoing.values()) == 1, "undone twice"
        for p in await self.nod.proposals():
            history = await self.nod.database.read(log.list_rows_of_proposal, p.id)
            granted = [e for e in history if e.verb in ("approve", "retry", "rerun")]
            granted += [e for e in history[:1] if p.undoes_proposal_id and e.state == State.APPROVED]
            claims = [e for e in history if e.verb == "execute"]
            runs = self.nod.world.runs_of(p)
            people = [e for e in granted if e.verb != "rerun"]
            assert len(people) <= self.approvals[p.id], "an approval that nobody was told of"
            assert len(claims) <= len(granted), "more executions than approvals"
            assert len(runs) <= len(claims)
            if p.tool_name not in IDEMPOTENT:
                assert len(claims) <= len(people)
            assert all(e.actor in ALLOWED for e in people)
            assert all(c.digest in {g.digest for g in granted} for c in claims)
            self._ran_as_approved(p, runs[-1:] if p.state is State.SUCCEEDED else [])
        await self._check_schedules()
        assert len(self.nod.world.paid) == len(
            {r.key for r in self.nod.world.runs if r.tool == "pay" and r.key in self.nod.world.paid}
        )

    async def _check_schedules(self) -> None:
        """Each is of one approved call, and each of its runs was told to the model, once."""
        approved = {p.id for p in await self.nod.proposals() if p.tool_name == "schedule_task" and p.votes}
        for each in await self.nod.database.read(schedules.list_of_people, None, ended=True):
            assert each.id in approved
            assert await self.nod.database.read(_runs, each.id) == {
                f"{each.id}.{n + 1}" for n in range(each.runs)
            }

    @staticmethod
    def _ran_as_approved(p: Proposal, runs: Sequence[Any]) -> None:
        for run in runs:
            assert {k: v for k, v in run.arguments.items() if k in p.arguments} == p.arguments
            assert p.digest == make_digest(p.tool_name, p.tool_version, p.arguments)

    def teardown(self) -> None:
        if not hasattr(self, "nod"):
            return
        self.run(self._at_the_end())
        self.runner.close()
        self.places.close()

    async def _at_the_end(self) -> None:
        nod = self.nod
        nod.world.broken = None
        nod.model.answers.clear()
        await nod.idle()
        await nod.tick(timedelta(days=10))
        await nod.tick(timedelta(minutes=5))
        seen = {entry.text for transcript in nod.model.transcripts for entry in transcript}
        assert set(self.accepted) <= seen
        assert not (await nod.transcript()).awaits_answer or await self._failed_last()
        for each in await nod.database.read(schedules.list_of_people, None):
            assert each.due_at is not None
            assert each.due_at > nod.clock()
        for p in await nod.proposals():
            assert p.settled
            told = p.undoes_proposal_id or any(for_model(p) in text for text in seen)
            assert told, f"its end was never told: {p}"
            assert nod.chat.card_of(p).state is p.state
        await self._check()
        await self._look_back()
        await nod.close()

    async def _look_back(self) -> None:
        """Insights count what there is, and what led to a proposal ends with its call and is not for Eve."""
        nod, policies = self.nod, self.nod.gate.policies
        each = [p for p in await nod.proposals() if p.kind not in (kinds.QUESTION, kinds.SUGGESTION)]
        asked = [
            p
            for p in each
            if not p.undoes_proposal_id and (p.votes or p.state not in _RAN) and p.grant_id is None
        ]
        begin = nod.clock() - timedelta(days=300)
        counted = await nod.database.read(past_proposals.count_insights, begin, None, UTC)
        ends = Counter("approved" if p.state in _RAN else str(p.state) for p in asked)
        total = counted.total
        assert (total.asked, total.approved) == (len(asked), ends["approved"])
        assert (total.declined, total.expired) == (ends["declined"], ends["expired"])
        never = Rule(0, Subject.POLICY, EVERYWHERE, "*", Mode.NEVER)
        tried = await nod.database.read(rule_simulation.try_rule, policies, never, begin)
        assert tried.looked == sum(
            p.kind is kinds.CALL and p.risk.writes and not p.undoes_proposal_id for p in each
        )
        groups, registry = nod.gate.groups, nod.gate.registry
        for p in each:
            lines = await read_context(groups, registry, p.id, ADA)
            assert lines is not None
            assert all(line.id <= p.message_id for line in lines)
            roles = [line.role for line in lines]  # what Nod noted before the order stands before it
            assert not p.is_from_model or (LineRole.USER in roles and lines[-1].id == p.message_id)
            assert await read_context(groups, registry, p.id, EVE) is None

    async def _failed_last(self) -> bool:
        """A turn that failed has told people so; they have the word."""
        return (await self.nod.transcript()).lines[-1].role == "notice"


TestCore = CoreMachine.TestCase
TestCore.settings = examples(40, stateful_step_count=20, suppress_health_check=SLOW)
