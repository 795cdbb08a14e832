"""Budgets are set, used up, extended and dropped in any order: the model is asked exactly while one may."""

import asyncio
import contextlib
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import text

from bot.approvals import budgets
from bot.domain.budgets import WARNED_AT, Budget, Per
from bot.domain.chat import Address, Answer
from bot.domain.people import Actor
from bot.domain.policy import Policy
from bot.domain.prices import Price, Prices
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.rules import covers
from bot.domain.verbs import Verb
from bot.store.audit import verification
from tests.kit import ADA, ANA, BEN, FakeClock, Nod, call, says
from tests.kit.examples import examples
from tests.kit.urls import urls
from tests.machines.conftest import SLOW

pytestmark = pytest.mark.slow

PRICES = Prices("EUR", {"scripted": Price(0.0, 200_000.0, 0.0)})  # 1 EUR for each answer
HALL = Address("chat", "T1/hall/1")
PLACES = {HALL: [ANA, BEN], Address("chat", "D1"): [ANA], Address("chat", "D2"): [BEN]}
SCOPES = ("*", "chat:T1", str(HALL), str(ANA), str(BEN))
places = st.sampled_from(list(PLACES))
picks = st.integers(0, 9)


@dataclass
class Answered:
    """What one answer of the model was for; ``order`` counts what people asked."""

    place: Address
    asker: Actor
    order: int
    at: datetime


class BudgetMachine(RuleBasedStateMachine):
    kind = "sqlite"

    @initialize()
    def begin(self) -> None:
        self.runner = asyncio.Runner()
        self.places = contextlib.ExitStack()
        folder = Path(self.places.enter_context(tempfile.TemporaryDirectory()))
        url = self.places.enter_context(urls(self.kind, folder))("nod")
        self.budgets: dict[int, tuple[str, Budget]] = {}  # by the number of the rule
        self.answers: list[Answered] = []
        self.last: dict[Address, tuple[Actor, int]] = {}  # who asked last there, and which order that was
        self.warned: set[tuple[int, object]] = set()  # rules, with a period or an order
        self.stopped = 0
        self.orders = 0
        self.paid: set[int] = set()
        self.run(self._begin(url))

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    async def _begin(self, url: str) -> None:
        self.nod = Nod(url, FakeClock(), policy=Policy(admins=frozenset({str(ADA)})), prices=PRICES)

    # the model

    @property
    def now(self) -> datetime:
        return self.nod.clock()

    def spent(self, scope: str, budget: Budget, order: int) -> int:
        if budget.per is Per.TURN:
            return sum(each.order == order for each in self.answers)
        begin = budget.per.begin(self.now)
        return sum(
            each.at >= begin and (covers(scope, str(each.place)) or scope == str(each.asker))
            for each in self.answers
        )

    def concerning(self, place: Address) -> dict[int, tuple[float, float]]:
        """What is spent of each budget that counts there, and what may be."""
        asker, order = self.last[place]
        return {
            number: (self.spent(scope, budget, order), budget.limit(self.now))
            for number, (scope, budget) in self.budgets.items()
            if covers(scope, str(place)) or scope == str(asker)
        }

    def answered(self, place: Address) -> None:
        """The model is asked once there, and that counts, unless a budget is used up: then people know."""
        if any(spent >= limit for spent, limit in self.concerning(place).values()):
            self.stopped += 1
            return
        asker, order = self.last[place]
        self.answers.append(Answered(place, asker, order, self.now))
        for number, (spent, limit) in self.concerning(place).items():
            per = self.budgets[number][1].per
            if WARNED_AT * limit <= spent < limit:
                self.warned.add((number, order if per is Per.TURN else per.begin(self.now)))

    # people

    @rule(place=places, who=picks, pays=st.booleans(), dies=st.sampled_from([0, 0, 0, 1, 2, 3, 4]))
    def someone_asks(self, place: Address, who: int, *, pays: bool, dies: int) -> None:
        self.run(self._ask(place, PLACES[place][who % len(PLACES[place])], pays=pays, dies=dies))

    async def _ask(self, place: Address, who: Actor, *, pays: bool, dies: int) -> None:
        self.orders += 1
        self.last[place] = who, self.orders
        wanted = [call("pay", amount=self.orders)] if pays else []
        self.nod.model.rule = lambda _: says("Well.", *wanted)
        said: dict[str, Any] = {"by": who, "at": place, "private": place != HALL, "event": f"e{self.orders}"}
        if dies:
            telling = self.nod.say(**said)
            await self.nod.dies_in(telling, self.nod.database.writes + dies, after_commit=bool(dies % 2))
        await self.nod.say(**said)
        await self.nod.idle()
        self.answered(place)

    @rule(pick=picks, dies=st.booleans())
    def a_change_is_approved(self, pick: int, *, dies: bool) -> None:
        self.run(self._approve(pick, dies=dies))

    async def _approve(self, pick: int, *, dies: bool) -> None:
        found = [p for p in await self.nod.proposals() if p.state is State.PROPOSED]
        if not found:
            return
        p = found[pick % len(found)]
        self.nod.model.rule = lambda _: says("Done.")
        if dies:
            self.nod.valve.shut = True
        assert (await self.nod.press(Verb.APPROVE, p, by=ADA)).answer is Answer.ACCEPTED
        await (self.nod.crash() if dies else self.nod.idle())
        assert (await self.nod.now(p)).state is State.SUCCEEDED, "a budget stopped an approved change"
        self.paid.add(p.arguments["amount"])
        self.answered(await self._place(p))

    async def _place(self, p: Proposal) -> Address:
        for place in self.last:
            if (await self.nod.transcript(place)).conversation.id == p.conversation_id:
                return place
        raise AssertionError(p)

    # admins

    @rule(
        scope=st.sampled_from(SCOPES),
        amount=st.sampled_from([1, 2, 5, 5, 10]),
        per=st.sampled_from([*Per, Per.DAY, Per.MONTH]),
    )
    def an_admin_sets_one(self, scope: str, amount: int, per: Per) -> None:
        where = "" if scope == "*" else f" for {scope}"
        reply = self.admin(f"budget {amount} EUR a {per}{where}")
        same = [n for n, (at, each) in self.budgets.items() if (at, each.per) == (scope, per)]
        for number in same:
            del self.budgets[number]
        self.budgets[reply] = scope, Budget(amount, "EUR", per)

    @rule(pick=picks, by=st.sampled_from([None, 2, 20]))
    def an_admin_extends_one_twice(self, pick: int, by: int | None) -> None:
        """As from two places: the second finds that it is extended."""
        if not self.budgets:
            return
        number = list(self.budgets)[pick % len(self.budgets)]
        scope, budget = self.budgets[number]
        words = f"budget extend {number}" + (f" {by} EUR" if by else "")
        self.admin(words, who=BEN)
        if budget.per is Per.TURN:
            self.admin(words, answer=Answer.UNKNOWN)
            return
        new = self.admin(words)
        self.admin(words, answer=Answer.UNKNOWN)
        del self.budgets[number]
        self.budgets[new] = scope, budget.extend(by or budget.amount / 4, self.now)

    @rule(pick=picks)
    def an_admin_drops_one(self, pick: int) -> None:
        if self.budgets:
            number = list(self.budgets)[pick % len(self.budgets)]
            self.admin(f"drop {number}")
            del self.budgets[number]

    def admin(self, words: str, who: Actor = ADA, answer: Answer = Answer.ACCEPTED) -> int:
        reply = self.run(self.nod.command(f"/approvals {words}", by=who))
        assert reply.answer is (answer if who is ADA else Answer.REFUSED)
        return int(reply.rule or 0)

    @rule(days=st.sampled_from([0, 1, 7, 31]), dies=st.booleans())
    def time_passes(self, days: int, *, dies: bool) -> None:
        self.run(self._pass(timedelta(days=days), dies=dies))

    async def _pass(self, time: timedelta, *, dies: bool) -> None:
        """What is open is decided before: so that no two conversations are woken at the same time."""
        for p in await self.nod.proposals():
            if time and p.state is State.PROPOSED:
                self.nod.model.rule = lambda _: says("As you like.")
                await self.nod.press(Verb.DECLINE, p, by=ADA)
                await self.nod.idle()
                self.answered(await self._place(p))
        await self.nod.tick(time)
        await self.nod.recovery.purge(self.now)
        await (self.nod.crash() if dies else self.nod.restart())

    # what must be so

    @invariant()
    def it_is_as_the_model_says(self) -> None:
        if hasattr(self, "nod"):
            self.run(self._check())

    async def _check(self) -> None:
        [[kept, cost]] = await self.rows(
            "SELECT (SELECT count(*) FROM message WHERE role = 'assistant'), coalesce(sum(cost), 0) FROM turn"
        )
        assert (kept, cost) == (len(self.answers), len(self.answers))
        told = "SELECT count(*) FROM message WHERE role = 'notice' AND text LIKE "
        assert await self.rows(told + "'%of a budget is used%'") == [[len(self.warned)]]
        assert await self.rows(told + "'The budget %is used up%'") == [[self.stopped]]
        book = (await self.nod.database.read(self.nod.gate.policies.load)).rulebook
        shown = await self.nod.database.read(budgets.list_uses, book, self.now)
        assert {each.rule.id: (each.spent, each.limit) for each in shown} == {
            number: (self.spent(scope, budget, 0), budget.limit(self.now))
            for number, (scope, budget) in self.budgets.items()
            if budget.per is not Per.TURN
        }
        assert set(self.nod.world.paid.values()) == self.paid

    async def rows(self, query: str) -> list[list[Any]]:
        return [list(row) for row in await self.nod.database.read(lambda s: s.execute(text(query)).all())]

    def teardown(self) -> None:
        if not hasattr(self, "nod"):
            return
        self.run(self.nod.check())
        assert self.run(self.nod.database.read(verification.find_faults_in_session)) == []
        self.run(self.nod.close())
        self.runner.close()
        self.places.close()


TestBudgets = BudgetMachine.TestCase
TestBudgets.settings = examples(32, stateful_step_count=20, suppress_health_check=SLOW)
