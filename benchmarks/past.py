"""A rule tried on many proposals, and insights over them: how long it takes, and what holds the loop."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from time import perf_counter

from sqlalchemy import insert
from sqlmodel import Session

from benchmarks import rules
from benchmarks.table import Row
from bot.approvals.lookup import rule_simulation
from bot.domain.deciders import Deciders
from bot.domain.people import Actor
from bot.domain.policy import Policy
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal, Vote
from bot.domain.risks import Level, Risk
from bot.domain.rule_values import Mode, Subject
from bot.domain.rules import EVERYWHERE, Rule
from bot.domain.times import now
from bot.domain.verbs import Verb
from bot.features.insights import cost_report as insights
from bot.store import migrations
from bot.store.database import Database
from bot.store.proposal_rows import to_row
from bot.store.rules import Policies
from bot.store.tables.conversations import ConversationRow
from bot.store.tables.proposals import ProposalRow

PEOPLE = [Actor("slack", f"T1/U{number}", name) for number, name in enumerate(("Ana", "Ben", "Eve", "Sam"))]
TOOLS = (
    "comment_issue",
    "create_issue",
    "update_issue",
    "close_issue",
    "shell_run",
    "file_write",
    "http_post",
)
_PLACES = ("C1", "C2", "C3", "D4")
_BATCH = 5000
_FIRST_PAGE, _HELD = 2.0, 50.0  # seconds; milliseconds
_MONTH = timedelta(days=30)
_ENDS = (State.SUCCEEDED, State.SUCCEEDED, State.SUCCEEDED, State.FAILED, State.DECLINED, State.EXPIRED)


async def rows(where: Path, *, count: int, times: int = 5) -> list[Row]:
    database = Database(f"sqlite:///{where / 'past.db'}")
    migrations.upgrade(database.engine)
    at = now()
    try:
        for first in range(0, count, _BATCH):
            database.write_now(fill, first, min(_BATCH, count - first), count, at)
        policies = Policies(Policy(admins=frozenset({str(PEOPLE[0])})))
        tried = {
            "one tool in one place": Rule(0, Subject.POLICY, "slack:T1/C2", TOOLS[0], Mode.NEVER),
            "every tool everywhere": Rule(0, Subject.POLICY, EVERYWHERE, EVERYWHERE, Mode.NEVER),
        }
        found: list[Row] = []
        for words, rule in tried.items():

            async def page(rule: Rule = rule) -> int:
                given = await database.read(rule_simulation.try_rule, policies, rule, at - _MONTH)
                return given.looked

            took, held, looked = await _measured(page, times)
            found += [
                Row(
                    f"policy try for {words}: seconds to its first page, {looked:,} of {count:,} looked at",
                    f"{took:.2f}",
                    f"≤ {_FIRST_PAGE:.0f}",
                    took <= _FIRST_PAGE,
                ),
                Row(
                    "  the longest that the loop was held, ms", f"{held:.0f}", f"≤ {_HELD:.0f}", held <= _HELD
                ),
            ]

        async def seen() -> int:
            given = await database.read(insights.count_visible_insights, policies, PEOPLE[0], at - _MONTH)
            return given.total.asked if given else 0

        async def rest() -> int:
            await asyncio.sleep(1)
            return 0

        _, held, _ = await _measured(rest, times)
        found.append(Row("the longest that the loop was held while nothing was done, ms", f"{held:.0f}"))
        took, held, asked = await _measured(seen, times)
        return [
            *found,
            Row(f"insights: seconds, {asked:,} of {count:,} counted", f"{took:.2f}"),
            Row("  the longest that the loop was held, ms", f"{held:.0f}", f"≤ {_HELD:.0f}", held <= _HELD),
        ]
    finally:
        database.close()


async def _measured(look: Callable[[], Awaitable[int]], times: int) -> tuple[float, float, int]:
    """The median of the seconds it took, the longest pause of a loop that only ticks, and what it gave."""
    longest, took, given = 0.0, [], 0

    async def tick() -> None:
        nonlocal longest
        while True:
            begun = perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, perf_counter() - begun - 0.001)

    ticking = asyncio.create_task(tick())
    for _ in range(times):
        begun = perf_counter()
        given = await look()
        took.append(perf_counter() - begun)
    ticking.cancel()
    return median(took), 1000 * longest, given


def fill(session: Session, first: int, count: int, of: int, at: datetime) -> None:
    """Proposals of four people in four places with seven tools, each decided, over a month."""
    numbers = range(first, first + count)
    session.connection().execute(
        insert(ConversationRow),
        [
            {
                "id": f"c{n}",
                "channel": "slack",
                "key": f"T1/{_PLACES[n % 4]}/{n}",
                "private": n % 4 == 3,
                "owner": str(PEOPLE[n % 4]),
                "title": "",
                "created_at": at,
            }
            for n in numbers
        ],
    )
    session.connection().execute(insert(ProposalRow), [to_row(decided(n, of, at)) for n in numbers])


def decided(n: int, of: int, at: datetime) -> Proposal:
    """The ``n``-th of so many, the first a month before."""
    asked_at = at - _MONTH + timedelta(days=29.9) * (n / of)
    tool, asker, decider = TOOLS[n * n % len(TOOLS)], PEOPLE[n % 4], PEOPLE[n * 7 % 3]
    state = _ENDS[n * 5 % 41 % len(_ENDS)]
    took = timedelta(seconds=20 + n * 7919 % 9000)
    votes: tuple[Vote, ...] = ()
    if state is not State.EXPIRED:
        verb = Verb.DECLINE if state is State.DECLINED else Verb.APPROVE
        votes = (Vote(str(decider), decider, verb, None, asked_at + took),)
    return rules.proposal(
        n,
        asked_at,
        tool_name=tool,
        description=f"{tool.replace('_', ' ').capitalize()} {n}",
        risk=Risk(Level.DESTRUCTIVE if tool == "shell_run" else Level.WRITE, "it changes something"),
        requester=asker,
        deciders=Deciders(requester=True, roles=("admin",)),
        state=state,
        votes=votes,
        decided_by=decider.name if votes else None,
        decided_at=asked_at + took,
        edited_by=decider.name if votes and n % 17 == 0 else None,
    )
