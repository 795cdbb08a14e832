"""The core as the channel sees it, manually: an inbox that remembers and a lookup of cards."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlmodel import Session

from bot.channels.base import Overview
from bot.domain import kinds
from bot.domain.cards import Card
from bot.domain.chat import Address, Answer, Command, Incoming, Message, Press, Reply
from bot.domain.deciders import DeciderNames
from bot.domain.people import Actor
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import State, Tone
from bot.domain.risks import Level
from bot.domain.similarity import GrantAudience, GrantScope
from bot.domain.verbs import Verb
from bot.store.database import Database
from bot.store.tables.conversations import ConversationRow
from bot.store.tables.proposals import ProposalRow
from tests.kit import FakeClock

PROPOSAL = "0197c1d2a3b44c5d8e9f0a1b2c3d4e5f"
SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 40, "description": "One line"},
        "number": {"type": "integer", "minimum": 1},
        "urgent": {"type": "boolean"},
        "state": {"enum": ["open", "closed"]},
        "owner": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "labels": {"type": "array", "items": {"type": "string"}},
    },
}
ARGUMENTS: dict[str, Any] = {
    "title": "Old title",
    "number": 7,
    "urgent": False,
    "state": "open",
    "owner": "ben",
    "labels": ["a"],
}


def make_card(**changes: Any) -> Card:
    values: dict[str, Any] = {
        "proposal_id": PROPOSAL,
        "round": 1,
        "version": 1,
        "kind": kinds.CALL,
        "title": "Close issue #7",
        "tool_name": "issue_close",
        "level": Level.WRITE,
        "risk_reason": "",
        "reason": "You asked me to",
        "fields": (PreviewField("state", "open", "closed"),),
        "arguments": ARGUMENTS,
        "schema": SCHEMA,
        "asked_by": "Ana",
        "decider_names": DeciderNames(("Ana", "any admin")),
        "votes": (),
        "quorum": 1,
        "expires_at": datetime(2026, 3, 3, 9, 0, tzinfo=UTC),
        "state": State.PROPOSED,
        "tone": Tone.WAITING,
        "outcome": "Waiting for a decision. Nothing has been changed.",
        "decided_at": None,
        "result": "",
        "result_url": None,
        "notes": (),
        "verbs": (Verb.APPROVE, Verb.DECLINE, Verb.EDIT),
        "group": None,
    }
    return Card(**(values | changes))


def done(card: Card, **changes: Any) -> Card:
    """Its resolved twin."""
    values: dict[str, Any] = {
        "state": State.SUCCEEDED,
        "tone": Tone.GOOD,
        "outcome": "Done. Approved by Ana.",
        "decided_at": datetime(2026, 3, 2, 9, 5, tzinfo=UTC),
        "result": "closed",
        "result_url": "https://issues.example.com/7",
        "verbs": (),
        "version": card.version + 1,
    }
    return replace(card, **(values | changes))


class FakeCore:
    """``inbox`` is the Inbox, the object itself the Lookup."""

    notice = ""

    def __init__(self, database: Database, clock: FakeClock) -> None:
        self.taken: list[Incoming] = []
        self.cards: dict[str, Card] = {}
        self.addresses: set[Address] = set()
        self.may = True
        self.named: set[str] = set()  # accounts that may decide wherever they are
        self.becomes: Card | None = None  # what the card is as soon as it was looked up once
        self.rungs: list[tuple[GrantScope, str]] = [
            (GrantScope.EXACT, "issue_close with exactly these arguments"),
            (GrantScope.KEY, "issue_close with number = 7, whatever the rest"),
            (GrantScope.TOOL, "issue_close with any arguments"),
        ]
        self.reply = Reply(Answer.ACCEPTED, "")
        self.hold: asyncio.Event | None = None
        self.fault: Exception | None = None
        self.opened: list[tuple[str, Actor]] = []  # whose *View all* was opened, and by whom
        self._changed = asyncio.Condition()
        self._database = database
        self._clock = clock

    async def inbox(self, incoming: Incoming) -> Reply:
        if self.fault is not None:
            raise self.fault
        self.taken.append(incoming)
        async with self._changed:
            self._changed.notify_all()
        if self.hold is not None and isinstance(incoming, Message):
            await self.hold.wait()
        if isinstance(incoming, Press) and incoming.verb is Verb.EDIT and incoming.arguments:
            self._edit(incoming)
        return self.reply

    def _edit(self, press: Press) -> None:
        card = self.cards[press.proposal_id]
        assert press.arguments is not None
        changed = tuple(
            PreviewField(k, str(card.arguments.get(k)), str(v))
            for k, v in press.arguments.items()
            if card.arguments.get(k) != v
        )
        self.cards[card.proposal_id] = replace(
            card, arguments=press.arguments, fields=changed, round=card.round + 1, version=card.version + 1
        )

    async def took(self, count: int = 1) -> Incoming:
        """Wait until so many came in; return the newest."""
        async with asyncio.timeout(30), self._changed:
            await self._changed.wait_for(lambda: len(self.taken) >= count)
        return self.taken[count - 1]

    @property
    def presses(self) -> list[Press]:
        return [p for p in self.taken if isinstance(p, Press)]

    @property
    def messages(self) -> list[Message]:
        return [m for m in self.taken if isinstance(m, Message)]

    @property
    def commands(self) -> list[Command]:
        return [c for c in self.taken if isinstance(c, Command)]

    def propose(self, card: Card, address: Address) -> Card:
        """Put a card on the desk, with the row it would have."""
        self.cards[card.proposal_id] = card
        self.addresses.add(address)
        self._database.write_now(_insert, card, self._clock())
        return card

    async def card(
        self,
        proposal_id: str,
        actor: Actor,
        address: Address | None = None,
        ref: str | None = None,
        *,
        together: bool = False,
    ) -> Card | None:
        here = address is None or address in self.addresses
        found = self.cards.get(proposal_id) if here else None
        if found is not None and self.becomes is not None:
            self.cards[proposal_id], self.becomes = self.becomes, None
        return found

    async def arguments(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Mapping[str, Any] | None:
        return self.cards[proposal_id].arguments if self.may else None

    async def note_opened(self, proposal_id: str, actor: Actor) -> None:
        self.opened.append((proposal_id, actor))

    async def reaches(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Sequence[tuple[GrantAudience, str]]:
        return [
            (GrantAudience.HERE, "Ana in the conversation where it was asked"),
            (GrantAudience.REQUESTER, "Ana everywhere"),
        ]

    async def ladder(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Sequence[tuple[GrantScope, str]]:
        return self.rungs if self.may else []

    async def follows(self, address: Address) -> bool:
        return False

    async def overview(self, actor: Actor) -> Overview:
        return Overview((), (), ())

    async def may_press(
        self, proposal_id: str, actor: Actor, address: Address | None = None, verb: Verb = Verb.APPROVE
    ) -> bool:
        return self.may

    async def decides(self, proposal_id: str, actor: Actor) -> bool:
        return proposal_id in self.cards and str(actor) in self.named


def _insert(session: Session, card: Card, now: datetime) -> None:
    session.add(
        ConversationRow(
            id="c1",
            channel="telegram",
            key="1",
            private=True,
            owner="x",
            title="",
            created_at=now,
            updated_at=now,
        )
    )
    session.flush()
    session.add(
        ProposalRow(
            id=card.proposal_id,
            kind="call",
            conversation_id="c1",
            message_id=1,
            call_id="k",
            position=0,
            tool_name=card.tool_name,
            tool_version="1",
            arguments={},
            description=card.title,
            preview=[],
            level="write",
            risk_reason="",
            reason="",
            requester="telegram:101",
            requester_name="Ana",
            deciders={"requester": True, "roles": [], "people": [], "members": None, "four_eyes": False},
            quorum=1,
            rule="",
            state="proposed",
            round=1,
            version=1,
            digest="d",
            idempotency_key="k",
            votes=[],
            created_at=now,
            updated_at=now,
            expires_at=card.expires_at,
        )
    )
