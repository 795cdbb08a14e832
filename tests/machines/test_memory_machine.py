"""Facts are remembered, forgotten, edited and undone by anyone in any order: none reaches others."""

import asyncio
import contextlib
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bot.domain.chat import Address, Answer
from bot.domain.people import Actor
from bot.domain.policy import Policy
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.store.audit import verification
from tests.features.memory.test_memory import Remembering
from tests.kit import FakeClock, call, says
from tests.kit.examples import examples
from tests.kit.urls import urls
from tests.machines.conftest import SLOW

pytestmark = pytest.mark.slow

ANA, BEN, ADA = (Actor("chat", f"T1/{name}", name.title()) for name in ("ana", "ben", "ada"))
ZOE, PHONE = Actor("chat", "T2/zoe", "Zoe"), Actor("chat", "phone", "Ana")
ALL = (ANA, BEN, ADA, ZOE, PHONE)
PEOPLE = st.sampled_from(ALL)
Kept = tuple[str, str]  # about, and whose


def private(who: Actor) -> Address:
    return Address(who.channel, who.key)


def room(who: Actor) -> Address:
    return Address("chat", f"{who.key.partition('/')[0]}/hall/1")


def whose(about: str, who: Actor) -> str:
    return str(who) if about == "person" else who.key.partition("/")[0] if "/" in who.key else ""


class MemoryMachine(RuleBasedStateMachine):
    kind = "sqlite"

    @initialize()
    def begin(self) -> None:
        self.runner = asyncio.Runner()
        self.places = contextlib.ExitStack()
        folder = Path(self.places.enter_context(tempfile.TemporaryDirectory()))
        url = self.places.enter_context(urls(self.kind, folder))("nod")
        self.kept: dict[str, Kept] = {}
        self.asked: dict[str, tuple[str, Kept]] = {}  # by the id of the proposal: the fact
        self.linked = False
        self.count = 0
        self.run(self._begin(url))

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    async def _begin(self, url: str) -> None:
        self.nod = Remembering(url, FakeClock(), policy=Policy(admins=frozenset({str(ADA)})))

    def same(self, one: Actor, other: Actor) -> bool:
        return one == other or (self.linked and {one, other} == {ANA, PHONE})

    @rule(who=PEOPLE, about=st.sampled_from(["person", "person", "team", "place"]))
    def someone_has_it_remembered(self, who: Actor, about: str) -> None:
        if about == "place" and who is PHONE:
            return
        self.count += 1
        fact = f"Fact {self.count} is known."
        at = room(who) if about == "place" else private(who)
        given = call("remember", fact=fact, about=about)
        [p] = self.run(self.nod.asked(given, by=who, at=at, private=about != "place"))
        self.asked[p.id] = fact, (about, whose(about, who))

    @rule(pick=st.integers(0, 9), who=PEOPLE, verb=st.sampled_from([Verb.APPROVE, Verb.APPROVE, Verb.UNDO]))
    def someone_presses(self, pick: int, who: Actor, verb: Verb) -> None:
        found: list[Proposal] = [p for p in self.run(self.nod.proposals()) if p.id in self.asked]
        if found:
            self.run(self._press(found[-1 - pick % len(found)], who, verb))

    async def _press(self, p: Proposal, who: Actor, verb: Verb) -> None:
        fact, kept = self.asked[p.id]
        if verb is Verb.APPROVE:
            self.nod.model.will(says("Done."))
        reply = await self.nod.press(verb, p, by=who)
        await self.nod.idle()
        self.nod.model.answers.clear()
        accepted = reply.answer is Answer.ACCEPTED
        if accepted and kept[0] == "person":
            assert self.same(who, p.requester)
        if accepted and verb is Verb.APPROVE and (await self.nod.now(p)).state is State.SUCCEEDED:
            self.kept[fact] = kept
        rows = {row.fact for row in await self.nod.rows()}
        if accepted and verb is Verb.UNDO:
            assert fact not in rows or kept[0] != "person"
            if fact not in rows:
                self.kept.pop(fact, None)

    @rule(who=PEOPLE, number=st.integers(1, 12), edits=st.booleans())
    def someone_changes_one(self, who: Actor, number: int, *, edits: bool) -> None:
        self.run(self._change(who, number, edits=edits))

    async def _change(self, who: Actor, number: int, *, edits: bool) -> None:
        there = {row.id: row for row in await self.nod.rows()}
        self.count += 1
        new = f"Fact {self.count} is known."
        words = f"edit {number} {new}" if edits else f"forget {number}"
        reply = await self.nod.command(f"/nod memory {words}", by=who, at=private(who))
        if reply.answer is not Answer.ACCEPTED:
            return
        row = there[number]
        assert row.about != "person" or self.same(who, Actor.parse(row.scope))
        assert row.about == "person" or who == ADA or self.same(who, Actor.parse(row.asked_by))
        kept = self.kept.pop(row.fact)
        if edits:
            self.kept[new] = kept

    @rule(who=PEOPLE)
    def someone_forgets_all_of_theirs(self, who: Actor) -> None:
        self.run(self.nod.command("/nod memory forget all", by=who, at=private(who)))
        mine = {str(each) for each in ALL if self.same(who, each)}
        self.kept = {fact: k for fact, k in self.kept.items() if k[0] != "person" or k[1] not in mine}

    @rule()
    def two_accounts_become_one_person(self) -> None:
        if not self.linked:
            self.run(self.nod.link(ANA, PHONE))
            self.linked = True

    @rule()
    def it_crashes(self) -> None:
        self.run(self.nod.crash())

    @invariant()
    def each_is_told_their_own_and_no_more(self) -> None:
        if hasattr(self, "nod"):
            self.run(self._check())

    async def _check(self) -> None:
        assert {row.fact for row in await self.nod.rows()} == set(self.kept)
        for who in ALL:
            mine = {str(each) for each in ALL if self.same(who, each)}
            own = {fact for fact, kept in self.kept.items() if kept[0] == "person" and kept[1] in mine}
            team = {f for f, kept in self.kept.items() if kept == ("team", whose("team", who))}
            alone = await self.nod.told(by=who, at=private(who))
            assert _told(alone) == own | team, who
            if who is not PHONE:
                there = {f for f, kept in self.kept.items() if kept == ("place", whose("place", who))}
                assert _told(await self.nod.told(by=who, at=room(who), private=False)) == there | team
            listed = await self.nod.memory(by=who, at=private(who))
            others = {f for f, kept in self.kept.items() if kept[0] == "person"} - own
            assert not any(fact in listed for fact in others)

    def teardown(self) -> None:
        if not hasattr(self, "nod"):
            return
        assert self.run(self.nod.database.read(verification.find_faults_in_session)) == []
        self.run(self.nod.close())
        self.runner.close()
        self.places.close()


def _told(prompt: str) -> set[str]:
    lines = (line for line in prompt.splitlines() if line.startswith("- ") and ": Fact " in line)
    return {line.partition(": ")[2] for line in lines}


TestMemory = MemoryMachine.TestCase
TestMemory.settings = examples(24, stateful_step_count=12, suppress_health_check=SLOW)
