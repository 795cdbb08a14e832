"""Several people, rules, votes, grants and clocks, in whatever order: the core does what a small model says.

The model is the issue's own words in plain Python: it counts persons, not rows. What breaks and dies is in
``test_state_machine.py``; here each reply and each state is foretold exactly.
"""

import asyncio
import contextlib
import tempfile
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bot.domain.chat import Answer, Reply
from bot.domain.people import Actor
from bot.domain.policy import Policy
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.store.audit import log, verification
from bot.store.proposals import OPEN
from bot.tools.decorator import tool
from bot.tools.toolset import FixedToolset
from tests.kit import ADA, ANA, BEN, EVE, FakeClock, Nod, call
from tests.kit.examples import examples
from tests.kit.urls import urls
from tests.machines.conftest import SLOW

pytestmark = pytest.mark.slow

CAT = Actor("chat", "cat", "Cat")
ANA2 = Actor("chat", "ana2", "Ana on her phone")  # an approver's account that turns out to be Ana's
EVERYBODY = (ANA, ANA2, BEN, CAT, ADA, EVE)
APPROVERS = {BEN, CAT, ANA2}
POLICY = Policy(admins=frozenset({str(ADA)}), approvers=frozenset(map(str, APPROVERS)))
DEFAULT = ("requester", "approver", "admin")
CIRCLES = (
    DEFAULT,
    ("requester",),
    ("approver", "admin"),
    ("chat:ana", "chat:ben", "chat:cat"),
    ("chat:eve",),
)
ASKS = {
    "always": {"write", "wipe"},
    "writes": {"write", "wipe"},
    "destructive": {"wipe"},
    "never": set[str](),
}
HOURS = {GrantDuration.HOUR: 1, GrantDuration.EIGHT_HOURS: 8, GrantDuration.DAY: 24}

people = st.sampled_from(EVERYBODY)
rungs = st.sampled_from([GrantScope.EXACT, GrantScope.KEY, GrantScope.TOOL])  # these tools have no prefix
likely = st.sampled_from([ANA, ANA2, BEN, BEN, CAT, CAT, ADA, EVE])
picks = st.integers(0, 9)


@dataclass
class Asked:
    """What the model knows of one proposal."""

    id: str
    tool: str
    arguments: dict[str, Any]
    circle: tuple[str, ...]
    four_eyes: bool
    needed: int
    declines: int
    ttl: timedelta
    expires: datetime
    state: State = State.PROPOSED
    round: int = 1
    votes: list[tuple[Actor, str, Actor | None]] = field(default_factory=list)  # and in whose place
    grant: int | None = None
    talk: int = 0  # which conversation asked for it


@dataclass
class Allowed:
    """A grant, as the model knows it."""

    rung: GrantScope
    tool: str
    arguments: dict[str, Any]
    giver: Actor
    only_in: int | None  # a conversation
    until: datetime | None
    ended: bool = False
    uses: int = 0

    def covers(self, tool_name: str, arguments: dict[str, Any]) -> bool:
        if tool_name != self.tool:
            return False
        same = {GrantScope.EXACT: ("folder", "text"), GrantScope.KEY: ("folder",), GrantScope.TOOL: ()}[
            self.rung
        ]
        return all(arguments.get(key) == self.arguments.get(key) for key in same)


class ApprovalMachine(RuleBasedStateMachine):
    kind = "sqlite"

    @initialize()
    def begin(self) -> None:
        self.runner = asyncio.Runner()
        self.places = contextlib.ExitStack()
        folder = Path(self.places.enter_context(tempfile.TemporaryDirectory()))
        self.url = self.places.enter_context(urls(self.kind, folder))("nod")
        self.asked: dict[str, Asked] = {}
        self.grants: list[Allowed] = []
        self.rules: dict[str, Any] = {}
        self.approvers = set(APPROVERS)
        self.linked = False
        self.away: list[tuple[Actor, Actor, datetime]] = []  # who, who stands in for them, until when
        self.paused_at: datetime | None = None
        self.ran: Counter[str] = Counter()
        self.taken: Counter[tuple[str, str, str]] = Counter()  # accepted presses: proposal, verb, account
        self.count = 0
        self.talk = 0
        self.done: list[str] = []
        self.run(self._begin())
        for tool_name in ("write", "wipe", "write"):
            self.ana_asks(tool_name, "a")

    async def _begin(self) -> None:
        self.nod = Nod(self.url, FakeClock(), policy=POLICY)
        self.nod.toolset = self._tools()
        await self.nod.restart()

    def _tools(self) -> FixedToolset:
        @tool(key=("folder",))
        async def write(folder: str, text: str) -> str:
            """Write a text."""
            self.done.append(f"write {folder} {text}")
            return "written"

        @tool(destructive=True)
        async def wipe(folder: str) -> str:
            """Wipe a folder."""
            self.done.append(f"wipe {folder}")
            return "wiped"

        return FixedToolset("texts", (write, wipe))

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    # the model

    @property
    def now(self) -> datetime:
        return self.nod.clock()

    def person(self, who: Actor) -> Actor:
        return ANA if self.linked and who == ANA2 else who

    def accounts(self, who: Actor) -> set[Actor]:
        return {each for each in EVERYBODY if self.person(each) == self.person(who)}

    def may(self, who: Actor, p: Asked, *, approving: bool) -> bool:
        return self.may_alone(who, p, approving=approving) or bool(self.absent(who, p, approving=approving))

    def absences(self) -> list[tuple[Actor, Actor]]:
        return [(who, stand_in) for who, stand_in, until in self.away if until > self.now]

    def absent(self, who: Actor, p: Asked, *, approving: bool) -> Actor | None:
        """In whose place someone may press, where their own right is not enough; Ana asked for all of it."""
        if self.may_alone(who, p, approving=approving) or self.person(who) == ANA:
            return None
        stood_in = (each for each, stand_in in self.absences() if self.person(stand_in) == self.person(who))
        return next((a for a in stood_in if self.may_alone(a, p, approving=approving)), None)

    def has_voted(self, who: Actor, p: Asked) -> bool:
        mine = {self.person(who)}
        for pair in ({self.person(each) for each in pair} for pair in self.absences()):
            mine |= pair if self.person(who) in pair else set()
        return any(mine & {self.person(voter), self.person(absent or voter)} for voter, _, absent in p.votes)

    def may_alone(self, who: Actor, p: Asked, *, approving: bool) -> bool:
        own = self.person(who) == ANA
        if own and p.four_eyes and approving:
            return False
        if own and "requester" in p.circle:
            return True
        accounts = self.accounts(who)
        return bool(
            {str(each) for each in accounts} & set(p.circle)
            or ("approver" in p.circle and accounts & self.approvers)
            or ("admin" in p.circle and ADA in accounts)
        )

    def persons(self, p: Asked, verb: str) -> set[Actor]:
        return {self.person(who) for who, what, _ in p.votes if what == verb}

    def asks(self, tool_name: str) -> bool:
        return tool_name in ASKS[self.rules.get("policy", "writes")]

    def terms(self, p: Asked) -> bool:
        """Give it the terms that hold now; False when too few could ever decide it."""
        p.circle = self.rules.get("approvers", DEFAULT)
        p.four_eyes = False
        others = any(self.may_alone(who, p, approving=True) for who in EVERYBODY if self.person(who) != ANA)
        p.four_eyes = p.tool == "wipe" and others
        p.needed, of = self.rules.get("quorum", (1, 0))
        p.declines = max(1, of - p.needed + 1) if of else 1
        p.ttl = timedelta(hours=self.rules.get("ttl", 24))
        p.expires = self.now + p.ttl
        return self.voters(p) >= p.needed

    def voters(self, p: Asked) -> int:
        """How many votes can come together: who is away and who stands in for them have one."""
        found = {self.person(who) for who in EVERYBODY if self.may_alone(who, p, approving=True)}
        for absent, stand_in in ((self.person(a), self.person(b)) for a, b in self.absences()):
            if absent != stand_in and {absent, stand_in} <= found:
                found.remove(stand_in)
        return len(found)

    def grantable(self, p: Asked) -> bool:
        return p.needed == 1 and (p.tool == "write" or "grants" in self.rules)

    def alive(self, grant: Allowed) -> bool:
        return not grant.ended and (grant.until is None or grant.until > self.now)

    def approved(self, p: Asked) -> None:
        p.state = State.APPROVED
        self.execute()

    def execute(self) -> None:
        for p in self.asked.values():
            if p.state is State.APPROVED and self.paused_at is None:
                p.state = State.SUCCEEDED
                self.ran[" ".join([p.tool, *map(str, p.arguments.values())])] += 1

    def expire(self) -> None:
        for p in self.asked.values():
            if p.state is State.PROPOSED and p.expires <= self.now and self.paused_at is None:
                p.state = State.EXPIRED

    def pick(self, pick: int) -> Asked | None:
        """One of them; the lower the pick, the likelier one that still can be decided."""
        found = sorted(self.asked.values(), key=lambda p: p.state is not State.PROPOSED)
        return found[pick % len(found)] if found else None

    # people

    @rule(tool_name=st.sampled_from(["write", "write", "write", "wipe"]), folder=st.sampled_from(["a", "b"]))
    def ana_asks(self, tool_name: str, folder: str) -> None:
        self.count += 1
        arguments = {"folder": folder}
        if tool_name == "write":
            arguments["text"] = f"text {self.count % 3}"
        found = self.run(self.nod.asked(call(tool_name, arguments), private=False))
        asked = Asked("", tool_name, arguments, (), False, 1, 1, timedelta(), self.now)  # noqa: FBT003
        enough = self.terms(asked)
        same = (self.talk, tool_name, arguments)
        is_open = any(p.state in OPEN and (p.talk, p.tool, p.arguments) == same for p in self.asked.values())
        if is_open or (self.asks(tool_name) and not enough):
            assert found == []
            return
        (proposal,) = found
        asked.id, asked.talk = proposal.id, self.talk
        self.asked[proposal.id] = asked
        if not self.asks(tool_name):
            self.approved(asked)
        elif grant := self.covering(asked):
            grant.uses += 1
            asked.grant = self.grants.index(grant) + 1
            self.approved(asked)

    def covering(self, p: Asked) -> Allowed | None:
        """The narrowest, then the oldest, whose giver could decide this alone."""
        found = [g for g in self.grants if self.alive(g) and g.covers(p.tool, p.arguments)]
        found = [g for g in found if g.only_in in (None, p.talk)]
        found = [g for g in found if self.grantable(p) and self.may_alone(g.giver, p, approving=True)]
        return min(found, key=lambda g: list(GrantScope).index(g.rung), default=None)

    @rule(
        pick=picks, who=likely, verb=st.sampled_from([Verb.APPROVE, Verb.APPROVE, Verb.APPROVE, Verb.DECLINE])
    )
    def someone_votes(self, pick: int, who: Actor, verb: Verb) -> None:
        if p := self.pick(pick):
            self.vote(p, who, verb, self.press(p, who, verb))

    @rule(pick=picks, who=likely, rung=rungs, lasting=st.sampled_from(GrantDuration))
    def someone_allows_similar_ones(
        self, pick: int, who: Actor, rung: GrantScope, lasting: GrantDuration
    ) -> None:
        p = self.pick(pick)
        if p is None or (rung is GrantScope.KEY and p.tool == "wipe"):
            return
        reply = self.press(p, who, Verb.SIMILAR, rung=rung, lasting=lasting)
        if self.absent(who, p, approving=True):
            assert reply.answer is Answer.REFUSED
            return
        decidable = self.may(who, p, approving=True) and p.state is State.PROPOSED and p.expires > self.now
        if (decidable or (self.paused_at and p.state is State.PROPOSED)) and not self.grantable(p):
            assert reply.answer is Answer.REFUSED
        elif (
            (decidable or (self.paused_at and p.state is State.PROPOSED and self.may(who, p, approving=True)))
            and lasting is GrantDuration.CONVERSATION
            and p.talk != self.talk  # that conversation has ended
        ):
            assert reply.answer is Answer.INVALID
        elif self.vote(p, who, Verb.SIMILAR, reply):
            only_in = p.talk if lasting is GrantDuration.CONVERSATION else None
            until = self.now + timedelta(hours=HOURS[lasting]) if lasting in HOURS else None
            self.grants.append(Allowed(rung, p.tool, p.arguments, who, only_in, until))

    def vote(self, p: Asked, who: Actor, verb: Verb, reply: Reply) -> bool:
        """What one vote does; True when it counted."""
        approving = verb is not Verb.DECLINE
        if not self.open(p, who, reply, approving=approving):
            return False
        p.votes = [v for v in p.votes if self.may_alone(v[2] or v[0], p, approving=v[1] == "approve")]
        if self.has_voted(who, p):
            assert reply.answer is Answer.ALREADY
            return False
        assert reply.answer is Answer.ACCEPTED
        self.taken[p.id, str(verb), str(who)] += 1
        absent = self.absent(who, p, approving=approving)
        p.votes.append((who, "approve" if approving else "decline", absent))
        if approving and len(self.persons(p, "approve")) >= p.needed:
            self.approved(p)
        if not approving and len(self.persons(p, "decline")) >= p.declines:
            p.state = State.DECLINED
        return True

    def open(self, p: Asked, who: Actor, reply: Reply, *, approving: bool) -> bool:
        """Whether a press by someone finds it open; what follows where it does not."""
        late = p.state is State.PROPOSED and p.expires <= self.now and self.paused_at is None
        if not self.may(who, p, approving=approving):
            assert reply.answer is Answer.REFUSED
            return False
        if late:
            p.state = State.EXPIRED
        if p.state is State.EXPIRED and approving:
            before = (p.circle, p.four_eyes, p.needed, p.declines, p.ttl, p.expires)
            if self.terms(p) or not self.asks(p.tool):
                assert reply.answer is Answer.STALE
                p.state, p.votes, p.round = State.PROPOSED, [], p.round + 1
                self.taken[p.id, "ask again", str(who)] += 1
            else:
                assert reply.answer is Answer.ALREADY
                p.circle, p.four_eyes, p.needed, p.declines, p.ttl, p.expires = before
            return False
        if p.state is not State.PROPOSED:
            assert reply.answer is Answer.ALREADY
            return False
        return True

    @rule(pick=picks, who=likely)
    def someone_edits(self, pick: int, who: Actor) -> None:
        p = self.pick(pick)
        if p is None or p.tool == "wipe":
            return
        self.count += 1
        arguments = {"folder": p.arguments["folder"], "text": f"edit {self.count}"}
        reply = self.press(p, who, Verb.EDIT, arguments=arguments)
        late = p.expires <= self.now and self.paused_at is None
        if self.may(who, p, approving=False) and p.state is State.PROPOSED and not (enough := self.enough(p)):
            assert reply.answer is Answer.INVALID, (reply, enough)
            return
        if self.open(p, who, reply, approving=False):
            assert not late
            assert reply.answer is Answer.ACCEPTED
            self.taken[p.id, "edit", str(who)] += 1
            p.arguments, p.votes, p.round = arguments, [], p.round + 1
            self.terms(p)

    def enough(self, p: Asked) -> bool:
        trial = Asked("", p.tool, p.arguments, (), False, 1, 1, timedelta(), self.now)  # noqa: FBT003
        return self.terms(trial) or not self.asks(p.tool)

    @rule(pick=picks, who=people)
    def someone_extends(self, pick: int, who: Actor) -> None:
        p = self.pick(pick)
        if p is None:
            return
        reply = self.press(p, who, Verb.EXTEND)
        if self.open(p, who, reply, approving=False):
            assert reply.answer is Answer.ACCEPTED
            self.taken[p.id, "extend", str(who)] += 1
            p.expires = self.now + p.ttl

    @rule(pick=picks, who=people)
    def someone_takes_it_back(self, pick: int, who: Actor) -> None:
        p = self.pick(pick)
        if p is None:
            return
        reply = self.press(p, who, Verb.CANCEL)
        late = p.state is State.PROPOSED and p.expires <= self.now and self.paused_at is None
        if self.person(who) not in (ANA, ADA):
            assert reply.answer is Answer.REFUSED
        elif late or p.state is not State.PROPOSED:
            assert reply.answer is Answer.ALREADY
            p.state = State.EXPIRED if late else p.state
        else:
            assert reply.answer is Answer.ACCEPTED
            p.state = State.CANCELLED
            self.taken[p.id, "cancel", str(who)] += 1

    @rule(pick=picks, circle=st.sampled_from(CIRCLES), who=st.sampled_from([ADA, ADA, ADA, BEN]))
    def someone_reassigns(self, pick: int, circle: tuple[str, ...], who: Actor) -> None:
        p = self.pick(pick)
        if p is None:
            return
        reply = self.press(p, who, Verb.REASSIGN, reason=" ".join(circle))
        late = p.state is State.PROPOSED and p.expires <= self.now and self.paused_at is None
        before = p.circle
        p.circle = circle
        deciding = self.voters(p)
        p.circle = before
        if who is not ADA:
            assert reply.answer is Answer.REFUSED
        elif late or p.state is not State.PROPOSED:
            assert reply.answer is Answer.ALREADY
            p.state = State.EXPIRED if late else p.state
        elif deciding < p.needed:
            assert reply.answer is Answer.INVALID
        else:
            assert reply.answer is Answer.ACCEPTED
            p.circle, p.votes = circle, []
            self.taken[p.id, "reassign", str(who)] += 1

    @rule(pick=picks, who=likely)
    def someone_presses_an_old_card(self, pick: int, who: Actor) -> None:
        p = self.pick(pick)
        if (
            p is None
            or p.state is not State.PROPOSED
            or p.expires <= self.now
            or not self.may(who, p, approving=True)
        ):
            return
        reply = self.run(self.nod.press(Verb.APPROVE, self.row(p), by=who, round_shown=p.round - 1))
        assert reply.answer is Answer.STALE

    def row(self, p: Asked) -> Proposal:
        found: list[Proposal] = self.run(self.nod.proposals())
        return next(each for each in found if each.id == p.id)

    def press(self, p: Asked, who: Actor, verb: Verb, **more: Any) -> Reply:
        async def press() -> Reply:
            found = next(each for each in await self.nod.proposals() if each.id == p.id)
            reply = await self.nod.press(verb, found, by=who, **more)
            await self.nod.idle()
            return reply

        reply: Reply = self.run(press())
        return reply

    @rule(who=likely, stand_in=likely, hours=st.sampled_from([1, 9, 25, 300]))
    def someone_goes_away(self, who: Actor, stand_in: Actor, hours: int) -> None:
        reply = self.run(self.nod.command(f"/nod away {stand_in} for {hours}h", by=who))
        gone = {self.person(each) for each, _ in self.absences()}
        if self.person(who) == self.person(stand_in) or self.person(stand_in) in gone:
            assert reply.answer is Answer.INVALID
            return
        assert reply.answer is Answer.ACCEPTED
        self.back(who)
        self.away.append((who, stand_in, self.now + timedelta(hours=hours)))

    @rule(who=people, admin=st.booleans())
    def someone_is_back(self, who: Actor, *, admin: bool) -> None:
        away = len([each for each, _ in self.absences() if each == who])
        if admin and away == 1:
            self.run(self.nod.command(f"/nod back {who}", by=ADA))
        else:
            self.run(self.nod.command("/nod back", by=who))
        self.back(who)

    def back(self, who: Actor) -> None:
        self.away = [each for each in self.away if self.person(each[0]) != self.person(who)]

    @precondition(lambda self: not self.linked)
    @rule(first=st.sampled_from([ANA, ANA2]))
    def ana_links_her_accounts(self, first: Actor) -> None:
        second = ANA if first is ANA2 else ANA2
        told = self.run(self.nod.link(first, second))
        if not told.startswith("Linked"):  # a role would be gained, so an admin agrees too
            told = self.say(f"link {first} {second}")
        assert told.startswith("Linked")
        self.linked = True

    # admins

    def say(self, words: str, who: Actor = ADA, *, answers: tuple[Answer, ...] = (Answer.ACCEPTED,)) -> str:
        reply = self.run(self.nod.command(f"/approvals {words}", by=who))
        assert reply.answer in (answers if who is ADA else (Answer.REFUSED,))
        return str(reply.text)

    def ruled(self, subject: str, value: Any, *, tightens: bool) -> None:
        """A rule that is stricter than what held before ends the grants."""
        self.rules[subject] = value
        if tightens:
            self.end_grants()

    def end_grants(self) -> None:
        for grant in self.grants:
            grant.ended = True

    @rule(mode=st.sampled_from(["writes", "writes", "always", "destructive", "never"]))
    def the_policy_changes(self, mode: str) -> None:
        self.say(f"policy {mode}")
        before = self.rules.get("policy", "writes")
        self.ruled("policy", mode, tightens=list(ASKS).index(mode) < list(ASKS).index(before))

    @rule(quorum=st.sampled_from([(1, 0), (2, 0), (2, 3), (1, 2), (3, 0)]))
    def the_quorum_changes(self, quorum: tuple[int, int]) -> None:
        self.say(f"quorum {quorum[0]}" + (f" of {quorum[1]}" if quorum[1] else ""))
        self.ruled("quorum", quorum, tightens=quorum[0] > self.rules.get("quorum", (1, 0))[0])

    @rule(circle=st.sampled_from(CIRCLES))
    def who_may_decide_changes(self, circle: tuple[str, ...]) -> None:
        self.say(f"approvers {' '.join(circle)}")
        before = self.rules.get("approvers", DEFAULT)
        self.ruled("approvers", circle, tightens=bool(set(before) - set(circle)))

    @rule(hours=st.sampled_from([2, 8, 24]))
    def the_time_to_live_changes(self, hours: int) -> None:
        self.say(f"ttl {hours}h")
        self.rules["ttl"] = hours

    @rule(joins=st.booleans())
    def eve_becomes_an_approver_or_no_longer(self, *, joins: bool) -> None:
        self.say(f"roles {'add' if joins else 'remove'} chat:eve approver")
        (self.approvers.add if joins else self.approvers.discard)(EVE)

    @rule()
    def grants_may_reach_what_is_destructive(self) -> None:
        self.say("grants allow destructive")
        self.rules["grants"] = True

    @rule(pick=st.integers(0, 4))
    def a_grant_is_revoked(self, pick: int) -> None:
        if pick == 0:
            self.say("revoke all")
            self.end_grants()
        elif self.grants:
            which = pick % len(self.grants)
            # what no rule asks for needs no grant, so whether that one still lives is left open
            live = self.alive(self.grants[which])
            answers = (Answer.ACCEPTED,) if live else (Answer.ACCEPTED, Answer.UNKNOWN)
            self.say(f"revoke G-{which + 1}", answers=answers)
            self.grants[which].ended = True

    @rule()
    def ana_starts_a_new_conversation(self) -> None:
        ended = self.run(self.nod.command("/nod new")).text.startswith("Done")
        for grant in self.grants:
            grant.ended = grant.ended or (ended and grant.only_in == self.talk)
        self.talk += ended

    @rule()
    def who_is_not_an_admin_changes_nothing(self) -> None:
        self.say("policy never", who=BEN)
        self.say("pause", who=EVE)

    @rule()
    def everything_pauses(self) -> None:
        self.say("pause")
        self.paused_at = self.paused_at or self.now

    @precondition(lambda self: self.paused_at is not None)
    @rule()
    def it_continues(self) -> None:
        assert self.paused_at is not None
        self.say("resume")
        for p in self.asked.values():
            stood = self.now - max(self.paused_at, p.expires - p.ttl)  # less, if it began during the pause
            if p.state is State.PROPOSED and stood > timedelta():
                p.expires += stood
                self.taken[p.id, "resume", "chat:ada"] += 1
        self.paused_at = None
        self.tick(timedelta())
        self.execute()

    # time and machines

    @rule(hours=st.sampled_from([0, 1, 3, 9, 25]))
    def time_passes(self, hours: int) -> None:
        self.tick(timedelta(hours=hours))

    def tick(self, time: timedelta) -> None:
        self.run(self.nod.tick(time))
        self.expire()
        self.away = [each for each in self.away if each[2] > self.now]  # no clock brings one back

    @rule(hours=st.sampled_from([-30, -2, 1, 9, 25]))
    def the_clock_jumps_and_no_tick_comes(self, hours: int) -> None:
        self.nod.clock.forward(timedelta(hours=hours))

    @rule(dies=st.booleans())
    def it_stops_and_starts(self, *, dies: bool) -> None:
        self.run(self.nod.crash() if dies else self.nod.restart())
        self.expire()

    # what must be so

    @invariant()
    def it_is_as_the_model_says(self) -> None:
        if hasattr(self, "nod"):
            self.run(self._compare())

    async def _compare(self) -> None:
        found = {p.id: p for p in await self.nod.proposals()}
        assert set(found) == set(self.asked)
        for p in self.asked.values():
            row = found[p.id]
            votes = [(v.actor, v.verb, v.absent) for v in row.votes]
            assert (row.state, row.round, votes) == (p.state, p.round, p.votes)
            assert (row.quorum, row.declines, row.grant_id) == (p.needed, p.declines, p.grant)
            assert (row.deciders.four_eyes, row.arguments) == (p.four_eyes, p.arguments)
            assert p.state is not State.PROPOSED or row.expires_at == p.expires
        assert Counter(self.done) == self.ran

    def teardown(self) -> None:
        if not hasattr(self, "nod"):
            return
        self.run(self._at_the_end())
        self.runner.close()
        self.places.close()

    async def _at_the_end(self) -> None:
        assert await self.nod.database.read(verification.find_faults_in_session) == []
        written: Counter[tuple[str, str, str]] = Counter()
        for p in self.asked.values():
            for entry in await self.nod.database.read(log.list_rows_of_proposal, p.id):
                if entry.channel == "chat":
                    written[p.id, entry.verb, entry.actor] += 1
        assert written == self.taken
        await self.nod.close()


TestApprovals = ApprovalMachine.TestCase
TestApprovals.settings = examples(32, stateful_step_count=30, suppress_health_check=SLOW)
