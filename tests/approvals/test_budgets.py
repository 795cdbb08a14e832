"""Budgets: a warning is told once in a period, and one extension counts, also of two at the same time."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from bot.domain.chat import Address, Answer
from bot.domain.prices import Price, Prices
from bot.testing.control import Hold
from tests.kit import ADA, BEN, FakeClock, MakeNod, Nod, cores, says
from tests.kit.urls import Urls, needs_postgres, urls

PRICES = Prices("EUR", {"scripted": Price(0.0, 200_000.0, 0.0)})  # 1 EUR for each answer
HERE, THERE = Address("chat", "D1"), Address("chat", "D2")


@pytest.fixture
async def make(database_of: Urls, clock: FakeClock) -> AsyncIterator[MakeNod]:
    async with cores(Nod, database_of, clock) as factory:
        yield factory


@pytest.fixture
def nod(make: MakeNod) -> Nod:
    return make(admins=[ADA], prices=PRICES)


@pytest.fixture
def on_postgres(tmp_path: Path) -> Iterator[str]:
    with urls("postgres", tmp_path) as url:
        yield url("nod")


async def admin(nod: Nod, words: str) -> str:
    return (await nod.command(f"/approvals {words}", by=ADA)).text


async def spend(nod: Nod, answers: int) -> None:
    for _ in range(answers):
        await nod.say()
        await nod.idle()


def warned(nod: Nod) -> list[str]:
    return [text for _, text in nod.chat.texts if "of a budget is used" in text]


async def test_a_budget_that_most_was_spent_of_before_it_was_set_warns_with_the_next_answer(nod: Nod) -> None:
    await spend(nod, 8)
    await admin(nod, "budget 10 EUR a month for chat:ana")
    await spend(nod, 1)
    assert warned(nod) == ["90% of a budget is used: 9 EUR of 10 EUR a month for Ana."]
    await nod.restart()
    await nod.say()
    assert len(warned(nod)) == 1


@needs_postgres
async def test_two_processes_that_answer_at_the_same_time_warn_once(
    on_postgres: str, clock: FakeClock
) -> None:
    nod = Nod(on_postgres, clock, admins=[ADA], prices=PRICES)
    other = nod.beside()
    await admin(nod, "budget 10 EUR a day for chat:ana")
    for day in range(1, 6):
        clock.forward(timedelta(days=1))
        await spend(nod, 7)
        holds = [Hold(), Hold()]
        for each, at, hold in zip((nod, other), (HERE, THERE), holds, strict=True):
            each.model.will(says("Well.", hold=hold))
            await each.say(at=at)
        await asyncio.gather(*(hold.reached.wait() for hold in holds))
        for hold in holds:
            hold.go.set()
        await asyncio.gather(nod.idle(), other.idle())
        assert len(warned(nod)) == day
    await other.close()
    await nod.close()


@needs_postgres
async def test_a_budget_that_two_admins_extend_at_the_same_time_is_extended_once(
    on_postgres: str, clock: FakeClock
) -> None:
    nod = Nod(on_postgres, clock, admins=[ADA, BEN], prices=PRICES)
    other = nod.beside()
    number = 1
    await admin(nod, "budget 10 EUR a day for chat:ana")
    for _ in range(5):
        clock.forward(timedelta(days=1))
        told = await asyncio.gather(
            nod.command(f"/approvals budget extend {number} 5 EUR", by=ADA),
            other.command(f"/approvals budget extend {number} 3 EUR", by=BEN),
        )
        assert sorted(each.answer for each in told) == [Answer.ACCEPTED, Answer.UNKNOWN]
        [number] = [each.rule for each in told if each.rule]
    await other.close()
    await nod.close()
