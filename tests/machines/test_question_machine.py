"""Questions are asked, answered, overtaken and expire in any order: each ends once, and approves nothing."""

import asyncio
import contextlib
import tempfile
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bot.domain.chat import Address, Answer
from bot.domain.model import ToolResult
from bot.domain.people import Actor
from bot.domain.policy import Policy
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.store.audit import log, verification
from tests.kit import ADA, ANA, BEN, EVE, FakeClock, Nod, call
from tests.kit.examples import examples
from tests.kit.urls import urls
from tests.machines.conftest import SLOW

pytestmark = pytest.mark.slow

HALL, ROOM = Address("chat", "T1/hall"), Address("chat", "D1")
PLACES = {HALL: [ANA, BEN, EVE], ROOM: [ANA]}
CHOICES = {Verb.FIRST: "yes, approved", Verb.SECOND: "no"}
ANSWERS = st.sampled_from([Verb.FIRST, Verb.SECOND, Verb.THIRD, Verb.ANSWER, Verb.ANSWER])
OTHERS = st.sampled_from([Verb.APPROVE, Verb.SIMILAR, Verb.RETRY, Verb.UNDO, Verb.EDIT, Verb.APPROVE_ALL])
DAY = timedelta(days=1)
places = st.sampled_from(list(PLACES))
people = st.sampled_from([ANA, ANA, BEN, EVE, ADA])
picks = st.integers(0, 9)


@dataclass
class Asked:
    """What the model knows of a question; ``may`` answer it: these accounts."""

    place: Address
    may: set[Actor]
    expires: datetime
    state: State = State.PROPOSED
    answer: str = ""
    by: Actor | None = None


class QuestionMachine(RuleBasedStateMachine):
    kind = "sqlite"

    @initialize()
    def begin(self) -> None:
        self.runner = asyncio.Runner()
        self.places = contextlib.ExitStack()
        folder = Path(self.places.enter_context(tempfile.TemporaryDirectory()))
        url = self.places.enter_context(urls(self.kind, folder))("nod")
        self.asked: dict[str, Asked] = {}
        self.pays: set[str] = set()  # ids of changes that were proposed next to a question
        self.count = 0
        self.run(self._begin(url))

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    async def _begin(self, url: str) -> None:
        policy = Policy(admins=frozenset({str(ADA)}), approvers=frozenset({str(BEN)}))
        self.nod = Nod(url, FakeClock(), policy=policy)
        for place, theirs in PLACES.items():
            for who in theirs:
                await self._write(place, who)

    def open_at(self, place: Address) -> list[Asked]:
        return [q for q in self.asked.values() if q.place == place and q.state is State.PROPOSED]

    def pick(self, pick: int) -> tuple[str, Asked] | None:
        """One of them; the lower the pick, the likelier one that is open."""
        found = sorted(self.asked.items(), key=lambda each: each[1].state is not State.PROPOSED)
        return found[pick % len(found)] if found else None

    @rule(
        place=places,
        who=picks,
        named=st.lists(st.sampled_from([ANA, BEN, EVE]), max_size=2),
        pays=st.booleans(),
    )
    def the_model_asks(self, place: Address, who: int, named: list[Actor], *, pays: bool) -> None:
        """Someone writes, which withdraws a question that they could have answered, and the model asks."""
        theirs = PLACES[place]
        self.run(self._ask(place, theirs[who % len(theirs)], [n for n in named if n in theirs], pays=pays))

    async def _ask(self, place: Address, who: Actor, named: list[Actor], *, pays: bool) -> None:
        self.count += 1
        more = {"who": [each.name for each in named]} if named else {}
        asks = call("ask_person", question=f"Question {self.count}?", choices=[*CHOICES.values()], **more)
        also = [call("pay", amount=self.count)] if pays else []
        self.overtake(place, who)
        found = await self.nod.asked(asks, *also, by=who, at=place, private=place != HALL)
        self.pays |= {p.id for p in found if p.tool_name == "pay"}
        questions = [p for p in found if p.choices is not None]
        assert len(questions) == (not self.open_at(place)), "one is open at a time"
        for p in questions:
            self.asked[p.id] = Asked(place, set(named) or {who}, self.nod.clock() + DAY)

    @rule(place=places, who=picks)
    def someone_writes(self, place: Address, who: int) -> None:
        theirs = PLACES[place]
        self.overtake(place, theirs[who % len(theirs)])
        self.run(self._write(place, theirs[who % len(theirs)]))

    def overtake(self, place: Address, who: Actor) -> None:
        for q in self.open_at(place):
            if who in q.may:
                q.state = State.CANCELLED

    async def _write(self, place: Address, who: Actor, words: str = "Approve everything.") -> None:
        await self.nod.say(words, by=who, at=place, private=place != HALL)
        await self.nod.idle()

    @rule(pick=picks, presses=st.lists(st.tuples(ANSWERS, people), min_size=1, max_size=4))
    def people_answer_at_the_same_time(self, pick: int, presses: list[tuple[Verb, Actor]]) -> None:
        if found := self.pick(pick):
            self.run(self._answer(*found, presses))

    async def _answer(self, ident: str, q: Asked, presses: list[tuple[Verb, Actor]]) -> None:
        p = await self._row(ident)
        words = [f"approve it, says {who.name}" for _, who in presses]
        replies = await asyncio.gather(
            *(
                self.nod.press(verb, p, by=who, reason=said if verb is Verb.ANSWER else None, round_shown=1)
                for (verb, who), said in zip(presses, words, strict=True)
            )
        )
        await self.nod.idle()
        given = [
            (who, CHOICES.get(verb, said))
            for (verb, who), said, reply in zip(presses, words, replies, strict=True)
            if reply.answer is Answer.ACCEPTED
        ]
        could = any(who in q.may and verb is not Verb.THIRD for verb, who in presses)
        assert len(given) == (q.state is State.PROPOSED and could)
        for q.by, q.answer in given:
            assert q.by in q.may
            q.state = State.SUCCEEDED

    @rule(pick=picks, who=people, fuse=st.integers(1, 6), after=st.booleans())
    def it_crashes_while_someone_answers(self, pick: int, who: Actor, fuse: int, *, after: bool) -> None:
        if found := self.pick(pick):
            self.run(self._crash(*found, who, fuse, after=after))

    async def _crash(self, ident: str, q: Asked, who: Actor, fuse: int, *, after: bool) -> None:
        p = await self._row(ident)

        async def story() -> None:
            await self.nod.press(Verb.SECOND, p, by=who, round_shown=1)
            await self.nod.idle()

        await self.nod.dies_in(story(), self.nod.database.writes + fuse, after_commit=after)
        if (await self._row(ident)).state is not q.state:
            assert q.state is State.PROPOSED
            assert who in q.may
            q.state, q.answer, q.by = State.SUCCEEDED, CHOICES[Verb.SECOND], who

    @rule(pick=picks, who=people, verb=OTHERS)
    def someone_presses_what_is_for_changes(self, pick: int, who: Actor, verb: Verb) -> None:
        if found := self.pick(pick):
            reply = self.run(self._press(found[0], who, verb))
            assert reply is not Answer.ACCEPTED

    async def _press(self, ident: str, who: Actor, verb: Verb) -> Answer:
        given = {"answer": "yes"} if verb is Verb.EDIT else None
        reply = await self.nod.press(verb, await self._row(ident), by=who, reason="yes", arguments=given)
        await self.nod.idle()
        return reply.answer

    @rule(pick=picks, who=people)
    def someone_declines(self, pick: int, who: Actor) -> None:
        if found := self.pick(pick):
            answer = self.run(self._press(found[0], who, Verb.DECLINE))
            q = found[1]
            assert (answer is Answer.ACCEPTED) == (q.state is State.PROPOSED and who in q.may)
            if answer is Answer.ACCEPTED:
                q.state = State.DECLINED

    @rule(hours=st.sampled_from([0, 1, 23, 25]), dies=st.booleans())
    def time_passes(self, hours: int, *, dies: bool) -> None:
        self.run(self.nod.tick(timedelta(hours=hours)))
        for q in self.asked.values():
            if q.state is State.PROPOSED and q.expires <= self.nod.clock():
                q.state = State.EXPIRED
        self.run(self.nod.crash() if dies else self.nod.restart())

    @invariant()
    def it_is_as_the_model_says(self) -> None:
        if hasattr(self, "nod"):
            self.run(self._check())

    async def _row(self, ident: str) -> Proposal:
        return next(p for p in await self.nod.proposals() if p.id == ident)

    async def _check(self) -> None:
        rows = {p.id: p for p in await self.nod.proposals()}
        assert set(rows) == {*self.asked, *self.pays}
        for ident, q in self.asked.items():
            p = rows[ident]
            assert (p.state, p.result or "") == (q.state, q.answer)
            done = Counter(e.verb for e in await self.nod.database.read(log.list_rows_of_proposal, ident))
            assert done["answer"] == (q.state is State.SUCCEEDED)
            assert sum(done[each] for each in ("answer", "decline", "expire", "unask")) <= 1, "it ended twice"
        assert all(not rows[ident].votes for ident in self.pays)
        assert self.nod.world.runs == [], "an answer approved a change"

    def teardown(self) -> None:
        if hasattr(self, "nod"):
            self.run(self._at_the_end())
            self.runner.close()
            self.places.close()

    async def _at_the_end(self) -> None:
        """The model was told each answer, once."""
        await self.nod.tick(timedelta(days=3))
        for place in PLACES:
            asked = f"What did you hear at {place}?"
            await self._write(place, ANA, asked)
            here = [each for each in self.nod.model.transcripts if any(asked in e.text for e in each)]
            told = [e.text for e in here[-1] if isinstance(e, ToolResult) and e.text.startswith("ANSWERED")]
            given = [q for q in self.asked.values() if q.place == place and q.by]
            assert sorted(told) == sorted(
                f"ANSWERED by {q.by.name}: “{q.answer}”. An answer approves nothing." for q in given if q.by
            )
        await self.nod.check()
        assert await self.nod.database.read(verification.find_faults_in_session) == []
        await self.nod.close()


TestQuestions = QuestionMachine.TestCase
TestQuestions.settings = examples(32, stateful_step_count=20, suppress_health_check=SLOW)
