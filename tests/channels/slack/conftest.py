"""The Slack channel against the fake Slack, with the core's two ports (inbox and lookup) written manually."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette

from bot.channels.base import Overview
from bot.channels.slack.channel import SlackChannel
from bot.domain import kinds
from bot.domain.card_rendering import render_card
from bot.domain.cards import Card, Group
from bot.domain.chat import Address, Answer, Incoming, Message, Reply
from bot.domain.deciders import Deciders
from bot.domain.people import Actor
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.risks import Level, Risk
from bot.domain.similarity import GrantAudience, GrantScope
from bot.domain.verbs import Verb
from bot.settings import Settings
from bot.store.database import Database
from tests.fakes.slack_server import APP_TOKEN, BOT_TOKEN, SECRET, FakeSlack
from tests.kit import FakeClock

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "title": "Title", "description": "What it is called", "minLength": 1},
        "body": {"type": "string", "title": "Body"},
        "priority": {"enum": ["low", "high"], "title": "Priority"},
        "urgent": {"type": "boolean", "title": "Urgent"},
        "count": {"type": "integer", "title": "Count"},
        "due": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "title": "Due"},
        "labels": {"type": "array", "items": {"enum": ["bug", "idea"]}, "title": "Labels"},
        "paths": {"type": "array", "items": {"type": "string"}, "title": "Paths"},
        "owner": {"type": "string", "format": "user", "title": "Owner"},
    },
    "required": ["title"],
}


def make_proposal(**changes: Any) -> Proposal:
    arguments = changes.pop("arguments", {"title": "New roof", "priority": "low"})
    proposal = Proposal(
        id="p1",
        kind=kinds.CALL,
        conversation_id="c1",
        message_id=1,
        call_id="call-1",
        position=0,
        tool_name="update_issue",
        tool_version="1",
        arguments=arguments,
        description="Change issue 7",
        preview=(PreviewField("title", "Old roof", "New roof"), PreviewField("priority", None, "low")),
        risk=Risk(Level.WRITE, "changes an issue"),
        reason="Ana asked for it",
        requester=Actor("slack", "T1/U7", "Ana"),
        deciders=Deciders(requester=True, roles=("admin",)),
        quorum=1,
        state=State.PROPOSED,
        round=1,
        version=1,
        digest="d" * 64,
        created_at=NOW,
        updated_at=NOW,
        expires_at=NOW + timedelta(hours=24),
    )
    return replace(proposal, **changes)


@pytest.fixture
def card_factory() -> Callable[..., Card]:
    """A card with defaults; name what matters. ``group`` makes it the first of that many."""

    def make(group: int = 0, schema: Mapping[str, Any] = SCHEMA, **changes: Any) -> Card:
        card = render_card(make_proposal(**changes), schema)
        if not group:
            return card
        siblings = [make_proposal(id=f"p{n}") for n in range(1, group + 1)]
        members = tuple(s.id for s in siblings)
        return replace(
            render_card(make_proposal(**changes), schema, siblings), group=Group(group, group, group, members)
        )

    return make


@dataclass
class FakeCore:
    """The inbox and the lookup: notes what comes, answers as told."""

    notice = ""

    got: list[Incoming] = field(default_factory=list)
    cards: dict[str, Card] = field(default_factory=dict)
    deciders: set[str] = field(default_factory=lambda: {"slack:T1/U7"})
    circles: set[str] = field(default_factory=set)  # addresses where anyone there may decide
    rungs: tuple[tuple[GrantScope, str], ...] = (
        (GrantScope.EXACT, "update_issue with exactly these arguments"),
        (GrantScope.TOOL, "update_issue with any arguments"),
    )
    visible_at: set[str] = field(default_factory=set)  # addresses; empty: everywhere in T1
    team: str = "T1"  # whose accounts see cards
    followed: set[Address] = field(default_factory=set)  # where a conversation is open
    reply: Reply = field(default_factory=lambda: Reply(Answer.ACCEPTED, ""))
    seen: set[str] = field(default_factory=set)
    broken: int = 0
    opened: list[tuple[str, Actor]] = field(default_factory=list)  # whose *View all* was opened, by whom

    async def inbox(self, incoming: Incoming) -> Reply:
        if self.broken:
            self.broken -= 1
            raise OSError("the disk is full")
        if isinstance(incoming, Message):
            if incoming.event_id in self.seen:
                return Reply(Answer.DUPLICATE, "I have this already.")
            self.seen.add(incoming.event_id)
        self.got.append(incoming)
        return self.reply

    async def card(
        self,
        proposal_id: str,
        actor: Actor,
        address: Address | None = None,
        ref: str | None = None,
        *,
        together: bool = False,
    ) -> Card | None:
        if not actor.key.startswith(f"{self.team}/"):
            return None
        if self.visible_at and str(address) not in self.visible_at:
            return None
        return self.cards.get(proposal_id)

    async def arguments(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Mapping[str, Any] | None:
        may = await self.may_press(proposal_id, actor, address)
        return self.cards[proposal_id].arguments if may else None

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
        return self.rungs if await self.may_press(proposal_id, actor, address) else []

    async def follows(self, address: Address) -> bool:
        return address in self.followed

    async def overview(self, actor: Actor) -> Overview:
        shown = tuple(self.cards.values())
        waiting = tuple(c for c in shown if c.pending and str(actor) in self.deciders)
        return Overview(
            waiting, tuple(c for c in shown if c.pending), tuple(c for c in shown if not c.pending)
        )

    async def may_press(
        self, proposal_id: str, actor: Actor, address: Address | None = None, verb: Verb = Verb.APPROVE
    ) -> bool:
        return str(actor) in self.deciders or (address is not None and str(address) in self.circles)

    @property
    def last(self) -> Incoming:
        return self.got[-1]


@pytest.fixture
def core() -> FakeCore:
    return FakeCore()


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    fake = FakeSlack()
    await fake.start()
    yield fake
    await fake.stop()


def settings_for(slack: FakeSlack, **changes: Any) -> Settings:
    """Settings from these values alone, whatever the environment of the test run says."""
    names = {
        "NOD_DATABASE_URL": "sqlite:///unused.db",
        "SLACK_BOT_TOKEN": BOT_TOKEN,
        "SLACK_SIGNING_SECRET": SECRET,
        "SLACK_API_URL": slack.url,
    }
    return Settings(_env_file=None, **{k: v for k, v in (names | changes).items() if v is not None})


class HttpServer:
    """The channel's routes on a real web server."""

    def __init__(self, channel: SlackChannel) -> None:
        config = uvicorn.Config(
            Starlette(routes=channel.routes()), port=0, log_config=None, lifespan="off", ws="none"
        )
        self._server = uvicorn.Server(config)
        self._server.capture_signals = _no_signals  # type: ignore[method-assign,assignment]

    async def start(self) -> str:
        self._task = asyncio.create_task(self._server.serve())
        while not self._server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.005)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    async def stop(self) -> None:
        self._server.should_exit = True
        await self._task


class _no_signals:  # noqa: N801 - stands in for a context manager function
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


class Silent:
    """Other processes that say nothing."""

    def on(self, kind: str, handler: Callable[[Any], None]) -> None: ...

    def broadcast(self, kind: str, body: Any) -> None: ...

    def on_arrival(self, handler: Callable[[], None]) -> None: ...

    async def lease(self, name: str) -> bool:
        raise NotImplementedError


@dataclass
class Running:
    channel: SlackChannel
    slack: FakeSlack
    core: FakeCore
    root: str = ""


async def no_pause(seconds: float) -> None:
    """What stands for waiting between two tries."""
    assert seconds
    await asyncio.sleep(0)


@pytest.fixture(params=["http", "socket"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def running(
    slack: FakeSlack, core: FakeCore, database: Database, clock: FakeClock, transport: str
) -> AsyncIterator[Running]:
    """The channel, started, over each transport."""
    app_token = APP_TOKEN if transport == "socket" else None
    channel = SlackChannel(settings_for(slack, SLACK_APP_TOKEN=app_token), database, clock, no_pause)
    await channel.start(core.inbox, core)
    server = HttpServer(channel)
    root = await server.start()
    slack.events_url = f"{root}/slack/events"
    if transport == "socket":
        await slack.until(lambda: slack._socket)
    yield Running(channel, slack, core, root)
    await server.stop()
    await channel.stop()
