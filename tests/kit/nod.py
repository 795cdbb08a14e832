"""The core over a database file: people `say` and `press`, `idle` lets the work end.

`restart` and `crash` build it again over the same rows. Nothing of our own code is replaced.
"""

import asyncio
import contextlib
import copy
import os
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache, partial
from itertools import count, pairwise
from typing import Any, TypeVar

from sqlalchemy import text
from sqlmodel import Session

from bot.agent.loop import TurnLimits
from bot.agent.prompt import Briefing
from bot.app.features import FEATURES, hooks_of
from bot.approvals.agent_questions import ask_tools
from bot.approvals.tools.decisions import decision_tools
from bot.approvals.tools.team import team_tools
from bot.channels.base import ask_membership, has_account
from bot.core import Ports, make_core
from bot.domain.attachments import Upload
from bot.domain.chat import Address, BatchDecision, Command, Message, PickedRow, Press, Reply
from bot.domain.conversations import Transcript
from bot.domain.hooks import Hooks
from bot.domain.jobs import Process
from bot.domain.model import ToolCall
from bot.domain.named_models import NamedModel
from bot.domain.people import NO_NAMES, Actor
from bot.domain.policy import Policy
from bot.domain.prices import Prices
from bot.domain.proposal_states import TRANSITIONS, State
from bot.domain.proposals import Proposal
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.domain.work_limits import Bounds
from bot.features.feature import FeatureParts, SweepParts
from bot.features.insights.suggestions import make_suggestion_toolset
from bot.features.schedules.sweep import Schedules
from bot.features.schedules.tools import make_schedule_toolset
from bot.jobs.dispatcher import EmbeddedDispatcher
from bot.settings import Settings
from bot.store import conversations, proposals, transcripts
from bot.store.audit import log, verification
from bot.store.rules import Policies
from bot.testing.control import FakeClock
from bot.tools.registry import Registry
from bot.tools.toolset import FixedToolset, Toolset
from tests.kit.channel import RecordingChannel, ShowingChannel
from tests.kit.crash import FusedDatabase, Valve, kill
from tests.kit.model import ScriptedModel, says
from tests.kit.people import ANA, ROOM
from tests.kit.tables import make_tables
from tests.kit.urls import Urls
from tests.kit.world import World, lamp_tools

AnyNod = TypeVar("AnyNod", bound="Nod")


@cache
def _load_settings(_environment: frozenset[tuple[str, str]]) -> Settings:
    return Settings.load()


@contextlib.asynccontextmanager
async def cores(
    kind: Callable[..., AnyNod], database_of: Urls, clock: FakeClock
) -> AsyncIterator[Callable[..., AnyNod]]:
    """A factory of cores, each over its own database; what always holds is checked at the end."""
    made: list[AnyNod] = []

    def make(**parts: Any) -> AnyNod:
        made.append(kind(database_of(str(len(made))), clock, **parts))
        return made[-1]

    yield make
    for nod in made:
        await nod.check()
        await nod.close()


class Nod:
    """The core over one database, with people to say and press things."""

    def __init__(
        self,
        url: str,
        clock: FakeClock,
        *,
        policy: Policy | None = None,
        limits: TurnLimits | None = None,
        bounds: Bounds | None = None,
        channels: Sequence[ShowingChannel] | None = None,
        routes: Sequence[Address] = (),
        admins: Sequence[Actor] = (),
        team: bool = False,
        schedules_each: int = 0,
        schedule_tokens: int = 100_000,
        insights: bool = True,
        briefing: Briefing | None = None,
        others: Sequence[ScriptedModel] = (),
        named: Sequence[NamedModel] = (),
        prices: Prices | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        self.url = url
        self.with_team = team
        self.schedules_each = schedules_each
        self.changed_settings = {"schedule_tokens": schedule_tokens, "insights": insights}
        self.clock = clock
        self.policy = policy or Policy()
        self.limits = limits or TurnLimits()
        self.briefing = briefing or Briefing()
        self.bounds = bounds or Bounds()
        self.model = ScriptedModel()
        self.others, self.named, self.prices = others, named, prices
        self.hooks = hooks or Hooks()
        self.world = World()
        self.toolset = lamp_tools(self.world)
        self.channels = {c.name: c for c in channels or (RecordingChannel(),)}
        self.routes = routes
        self.admins = admins
        self.altered: dict[
            str, str
        ] = {}  # proposals whose rows a test altered: what the audit must say of them
        self._events = count(1)
        make_tables(url)
        self.rebuild()

    @property
    def chat(self) -> RecordingChannel:
        return self.channels["chat"]

    def tools(self) -> Toolset:
        """The tools of the world; a suite may put its own in their place."""
        return self.toolset

    def rebuild(self) -> None:
        """Make the core over the rows, as ``bot/app`` makes it. Nothing is found in them yet."""
        self.database = FusedDatabase(self.url)
        self.process = Process.this()
        self.dispatcher = EmbeddedDispatcher()
        self.valve = Valve(self.dispatcher)
        accounts = frozenset(str(admin) for admin in self.admins)
        policies = Policies(replace(self.policy, admins=self.policy.admins | accounts), self.clock)
        always = [
            decision_tools(self.database, policies),
            make_suggestion_toolset(self.database, policies, self.clock),
            make_schedule_toolset(self.database, policies, self.clock, self.schedules_each),
            ask_tools(),
            *([team_tools(policies, self.limits.team)] if self.with_team else []),
        ]
        brought = FixedToolset("Nod", tuple(tool for each in always for tool in each.fixed))
        registry = Registry([self.tools(), brought])
        environment = frozenset((k, v) for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST")
        settings = _load_settings(environment).model_copy(update=self.changed_settings)
        parts = FeatureParts(settings=settings, database=self.database, policies=policies, clock=self.clock)
        made = make_core(
            Ports(
                self.database,
                self.valve,
                registry,
                self.model,
                self.channels,
                self.clock,
                self.process,
                other_models=self.others,
            ),
            policies,
            named_models=self.named,
            prices=self.prices,
            bounds=self.bounds,
            limits=self.limits,
            briefing=self.briefing,
            routes=self.routes,
            hooks=Hooks.join([hooks_of(parts), self.hooks]),
            commands=[partial(each.make_commands, settings) for each in FEATURES],
        )
        self.gate, self.execution, self.turns = made.gate, made.execution, made.turns
        self.assistant, self.lookup = made.assistant, made.lookup
        self.recovery, self.reminders = made.recovery, made.reminders
        there = partial(ask_membership, self.channels)
        self.schedules = Schedules(self.database, policies, self.valve.wake, self.clock, there)
        sweeping = SweepParts(
            **vars(parts),
            registry=registry,
            wake=self.valve.wake,
            standing=there,
            has_account=partial(has_account, self.channels),
            models=made.loop.models,
            prices=made.loop.prices,
            redraw=made.cards.announce_change,
        )
        self.sweeps = [sweep for each in FEATURES for sweep in each.make_sweeps(sweeping)]
        self.dispatcher.start(self.assistant.run, self.assistant.queue_of)

    def beside(self) -> "Nod":
        """Another process over the same rows and in the same chats, with a model of its own."""
        other = copy.copy(self)
        other.model = ScriptedModel()
        other.rebuild()
        return other

    # people

    async def say(
        self,
        text: str = "please",
        *,
        by: Actor = ANA,
        at: Address = ROOM,
        event: str | None = None,
        private: bool = True,
        names: Mapping[str, str] = NO_NAMES,
        files: Sequence[Upload] = (),
    ) -> Reply:
        event = event or f"event-{next(self._events)}"
        said = Message(at, by, text, event, private=private, names=names, files=tuple(files))
        return await self.assistant.handle(said)

    async def press(
        self,
        verb: Verb,
        proposal: Proposal,
        *,
        by: Actor = ANA,
        round_shown: int | None = None,
        reason: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        digest: str | None = None,
        at: Address | None = None,
        rung: GrantScope | None = None,
        lasting: GrantDuration | None = None,
        reach: GrantAudience = GrantAudience.HERE,
        ref: str | None = None,
        seen: str | None = None,
    ) -> Reply:
        return await self.assistant.handle(
            Press(
                by,
                verb,
                proposal.id,
                round_shown,
                reason,
                arguments,
                digest,
                at,
                rung,
                lasting,
                reach,
                ref,
                seen,
            )
        )

    async def choose(
        self,
        batch: Proposal,
        *,
        approve: Sequence[Proposal] = (),
        decline: Sequence[Proposal] = (),
        by: Actor = ANA,
        round_shown: int | None = None,
        reason: str | None = None,
    ) -> Reply:
        """Decide rows of a batch as they are given, by what was seen of each."""
        yes, no = (tuple(PickedRow(p.id, p.seen) for p in rows) for rows in (approve, decline))
        return await self.assistant.handle(
            BatchDecision(by, batch.batch or batch.id, yes, no, reason, round_shown)
        )

    async def command(self, text: str, *, by: Actor = ANA, at: Address = ROOM) -> Reply:
        """``/nod status`` as a person types it."""
        name, _, rest = text.removeprefix("/").partition(" ")
        return await self.assistant.handle(Command(by, name, rest, at))

    async def link(self, first: Actor, second: Actor) -> str:
        """Both accounts agree to be one person; gives the last answer."""
        code = (await self.command("/nod link", by=first)).text.split("`")[1]
        await self.command(f"/nod link {code} yes", by=second)
        return (await self.command(f"/nod link yes {second}", by=first)).text

    async def asked(
        self,
        *calls: ToolCall,
        text: str = "please",
        by: Actor = ANA,
        at: Address = ROOM,
        private: bool = True,
    ) -> list[Proposal]:
        """A person asks, the model answers with these calls; gives what was proposed."""
        before = await self.idents()
        self.model.will(says("I will.", *calls))
        await self.say(text, by=by, at=at, private=private)
        await self.idle()
        return await self.proposals(but=before)

    async def approve(self, proposal: Proposal, *, by: Actor = ANA) -> Proposal:
        """Press Approve and let everything happen."""
        await self.press(Verb.APPROVE, proposal, by=by)
        await self.idle()
        return await self.now(proposal)

    # time

    async def idle(self) -> None:
        await self.dispatcher.wait_until_idle()

    async def tick(self, passed: timedelta = timedelta()) -> None:
        """Time passes and the scheduler's sweeps run."""
        self.clock.forward(passed)
        await self.recovery.expire_due(self.clock())
        for sweep in self.sweeps:
            await sweep.run(self.clock())
        await self.reminders.remind(self.clock())
        await self.recovery.retry_refused_posts(self.clock())
        await self.recovery.recover(self.clock())
        await self.idle()

    async def close(self) -> None:
        await self.dispatcher.close(0)
        self.execution.close()
        self.database.close()

    async def restart(self) -> None:
        """Down in good order, and up again."""
        await self.close()
        await self.up()

    async def crash(self, *, wait: bool = True) -> None:
        """Dead immediately: what runs gets to do nothing more. And up again; ``wait`` until it is idle."""
        self.database.dead.set()
        await kill(*self.dispatcher.tasks.values())
        self.execution.close()
        self.database.close()
        await self.up(wait=wait)

    async def dies_in(self, story: Coroutine[Any, Any, None], fuse: int, *, after_commit: bool) -> None:
        """Tell a story until it ends or the process dies at its ``fuse``-th write; then be up again."""
        self.database.fuse, self.database.dies_after_commit = fuse, after_commit
        telling = asyncio.create_task(story)
        death = asyncio.create_task(self.database.dead.wait())
        await asyncio.wait((telling, death), return_when=asyncio.FIRST_COMPLETED)
        death.cancel()
        await kill(telling)
        await self.crash()

    async def up(self, *, wait: bool = True) -> None:
        """As a start does it: build, and find in the rows what is not done."""
        self.rebuild()
        await self.recovery.take_over(self.clock())
        await self.recovery.expire_due(self.clock())
        await self.recovery.recover(self.clock(), starting=True)
        if wait:
            await self.idle()

    # looking

    async def idents(self) -> list[str]:
        """Of all proposals."""
        return await self.database.read(_idents)

    async def proposals(self, *, but: Collection[str] = ()) -> list[Proposal]:
        """All there are but these, in the order they were asked for."""
        found = await self.database.read(_all, but)
        return sorted(found, key=lambda p: (p.message_id, p.position))

    async def now(self, proposal: Proposal) -> Proposal:
        found = await self.database.read(proposals.get, proposal.id)
        assert found is not None
        return found

    async def transcript(self, at: Address = ROOM) -> Transcript:
        conversation = await self.database.read(conversations.find_current_conversation, at)
        assert conversation is not None
        found = await self.database.read(transcripts.read_transcript, conversation.id)
        assert found is not None
        return found

    async def said(self, at: Address = ROOM) -> list[str]:
        """The texts of a conversation's lines, in reading order."""
        return [line.text for line in (await self.transcript(at)).lines]

    async def check(self) -> None:
        """What must always hold: valid histories, intact audit chains, legal moves, no unapproved run."""
        assert self.model.faults == []
        faults = [
            fault
            for fault in await self.database.read(verification.find_faults_in_session)
            if fault.startswith("proposal ")
        ]
        assert faults == [f"proposal {ident}: {words}" for ident, words in sorted(self.altered.items())]
        for proposal in await self.proposals():
            runs = len(self.world.runs_of(proposal))  # before the history, as a call may still be at work
            history = await self.database.read(log.list_rows_of_proposal, proposal.id)
            for before, after in pairwise(history):
                moved = after.state != before.state
                assert not moved or State(after.state) in TRANSITIONS[State(before.state)], history
            claims = sum(1 for entry in history if entry.verb == "execute")
            assert runs <= claims


def _idents(session: Session) -> list[str]:
    return list(session.execute(text("SELECT id FROM proposal")).scalars())


def _all(session: Session, but: Collection[str]) -> list[Proposal]:
    return [
        found for ident in _idents(session) if ident not in but and (found := proposals.get(session, ident))
    ]


MakeNod = Callable[..., Nod]
