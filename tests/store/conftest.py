"""Rows to work on, made by the store's own functions, with defaults."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from sqlmodel import Session

from bot.approvals import decide, group_presses, incoming, runs
from bot.approvals.incoming import StoredLine
from bot.approvals.press_values import PressOutcome
from bot.domain.chat import Address, Message, Press, Reply
from bot.domain.conversations import Call, Turn, Usage
from bot.domain.digests import make_digest
from bot.domain.events import Ending
from bot.domain.policy import Policy
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.domain.work_limits import Bounds
from bot.store import proposals, transitions, turns
from bot.store.audit.log import Author
from bot.store.database import Database
from bot.store.rules import Policies
from tests.domain.test_cards import make_proposal
from tests.kit import ANA, ROOM, FakeClock
from tests.web.conftest import serve  # noqa: F401 - a fixture, for a cycle over HTTP

POLICIES = Policies(Policy())
UNBOUND = Bounds(messages=1_000_000, conversations=1_000_000)


@dataclass
class Rows:
    """Makes rows in a database and moves them on."""

    database: Database
    clock: FakeClock

    def __post_init__(self) -> None:
        self._count = count(1)

    def say(self, text: str = "please", *, at: Address = ROOM, event: str | None = None) -> StoredLine | None:
        message = Message(at, ANA, text, event or f"e{next(self._count)}")
        return self.database.write_now(incoming.store_message, message, self.clock(), UNBOUND)

    def turn(self, conversation_id: str) -> Turn:
        turn = self.database.read_now(turns.load_turn, conversation_id)
        assert turn is not None
        return turn

    def propose(self, how_many: int = 1, *, at: Address = ROOM, **changes: Any) -> list[Proposal]:
        """A person asks, an answer with so many proposals is committed, and the turn ends waiting."""
        said = self.say(at=at)
        assert said is not None
        turn = self.turn(said.conversation_id)
        return self.database.write_now(self._answer, turn, how_many, changes)

    def _answer(self, session: Session, turn: Turn, how_many: int, changes: dict[str, Any]) -> list[Proposal]:
        now = self.clock()
        calls = [Call(f"call_{n}", "paint", "{}", "Paint") for n in range(how_many)]
        used, waits = replace(turn, usage=Usage(1, 10, 5)), Ending.WAITING
        answered = turns.store_answer(session, used, "I will.", calls, {}, waits, delivered=True, now=now)
        assert answered is not None
        assert answered.ending is waits
        arguments = {"lamp": "desk", "color": "red"}
        opened = [
            replace(
                make_proposal(
                    id=f"p{next(self._count)}",
                    conversation_id=turn.transcript.conversation.id,
                    message_id=answered.message_id,
                    call_id=f"call_{n}",
                    position=n,
                    arguments=arguments,
                    digest=make_digest("paint", "1", arguments),
                    decided_by=None,
                    decided_from=None,
                    created_at=now,
                    updated_at=now,
                    expires_at=now + timedelta(hours=24),
                ),
                **changes,
            )
            for n in range(how_many)
        ]
        transitions.insert_proposals(session, opened, Author.of_nod("propose"))
        return opened

    def decide(self, proposal: Proposal, verb: Verb = Verb.APPROVE, **press: Any) -> PressOutcome:
        asked = Press(**({"actor": ANA, "verb": verb, "proposal_id": proposal.id} | press))
        if verb in group_presses.BATCH_VERBS:
            found = self.database.read_now(group_presses.split_press, asked)
            if isinstance(found, Reply):
                return PressOutcome(found)
            each = self.database.write_now(group_presses.decide_all, found.presses, POLICIES, self.clock())
            return group_presses.sum_up(found, each)
        return self.database.write_now(decide.decide, asked, POLICIES, self.clock())

    def claim(self, proposal: Proposal, process: str = "") -> Proposal | None:
        """``process``: the id of the one that runs it."""
        return self.database.write_now(runs.claim, POLICIES, self.now(proposal), process, self.clock())

    def running(self, how_many: int = 1) -> list[Proposal]:
        """Proposals of one answer that are being executed."""
        found = []
        for p in self.propose(how_many):
            self.decide(p)
            claimed = self.claim(p)
            assert claimed is not None
            found.append(claimed)
        return found

    def finish(self, claimed: Proposal) -> Any:
        return self.database.write_now(runs.finish, claimed, State.SUCCEEDED, self.clock(), result="ok")

    def now(self, proposal: Proposal) -> Proposal:
        found = self.database.read_now(proposals.get, proposal.id)
        assert found is not None
        return found


@pytest.fixture
def rows(database: Database, clock: FakeClock) -> Rows:
    return Rows(database, clock)


DatabaseCluster = Callable[[list[Callable[[], Any]]], list[Any]]


@pytest.fixture
def together() -> Iterator[DatabaseCluster]:
    """Run functions at the same time, each in its own thread; gives their results or what they raised."""
    with ThreadPoolExecutor(20) as threads:

        def run(functions: list[Callable[[], Any]]) -> list[Any]:
            futures = [threads.submit(function) for function in functions]
            return [future.exception() or future.result() for future in futures]

        yield run
