"""The rules that admins set at run time, as one value: the rulebook.

A rule has a subject, a scope (where), a pattern (which tools) and a value. Where several rules of one subject
match, the strictest wins; `Found.rule` says which one that was. Judging calls with it is in
``bot/domain/policy.py``; the rows are in ``bot/store/rules.py``.
"""

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta, tzinfo
from enum import StrEnum
from functools import lru_cache, partial
from typing import Any, Generic, NamedTuple, TypeVar

from bot.domain import kinds
from bot.domain.budgets import Budget, Per
from bot.domain.conditions import Condition
from bot.domain.connections import Identity
from bot.domain.people import AGENTS, Person, Role, is_group
from bot.domain.plans import APPROVERS, Approver
from bot.domain.proposals import Level, ProposalKind, Risk
from bot.domain.steps import TimedStep, format_steps, is_place
from bot.domain.text import one_line, shorten
from bot.domain.times import format_length, format_moment, parse_weekdays

T = TypeVar("T")

EVERYWHERE = "*"
UNDO_FOR = timedelta(minutes=30)  # where no rule says how long
EVERYWHERE_WORD = "everywhere"  # ends a role that counts in every workspace
LONGEST_INSTRUCTIONS = 2_000
"""Characters of what is asked of the agent at one place."""
_QUOTED = 60  # characters of instructions in a list of rules
_WILD = re.compile(r"[*?\[]")
_MEMO = 4096  # subjects times tools for which a book keeps what it found
LEVELS = (Level.READ, Level.WRITE, Level.DESTRUCTIVE)


class Subject(StrEnum):
    """The subject of a rule, which also sets the type of its value."""

    POLICY = "policy"  # Mode
    RISK = "risk"  # Level: what this tool's calls are, whatever the tool says
    TTL = "ttl"  # timedelta: how long a proposal waits
    QUORUM = "quorum"  # Quorum
    DECIDERS = "deciders"  # tuple of: requester, admin, approver, member, accounts, or user groups
    ROUTE = "route"  # str: an address where cards are posted too
    ESCALATE = "escalate"  # Escalation
    REMIND = "remind"  # timedelta between reminders
    NOTIFY = "notify"  # tuple of TimedStep
    QUIET = "quiet"  # Hours, on the team's clock, in which no one is reminded
    DIGEST = "digest"  # DailyDigest
    ROLE = "role"  # GivenRole
    PLANS = "plans"  # Approver of teammates' plans
    GRANTS = "grants"  # "destructive": grants may reach destructive calls here
    FETCH = "fetch"  # str: a host, with * and ?, whose every page is read without asking
    OUTSIDERS = "outsiders"  # "talk": guests and people of another company are heard here
    BUDGET = "budget"  # Budget: what models may cost
    MODEL = "model"  # str: the name of the model that answers there, or this person
    UNDO = "undo"  # timedelta: how long what was done can be undone; 0: it can't
    INSTRUCTIONS = "instructions"  # str: what is asked of the agent there, in addition to the settings' own
    OPINION = "opinion"  # Opinion: the model whose words stand on the card, and what its no does
    ATTENTION = "attention"  # Attention: how many cards an hour reach a person before others wait
    BATCH = "batch"  # "stop": a row that fails stops those of its batch that have not begun

    @property
    def typed(self) -> str:
        """The word of `/approvals` that sets it."""
        return {"deciders": "approvers", "role": "roles add", "grants": "grants allow"}.get(self, self)


class Mode(StrEnum):
    """The calls that need approval."""

    ALWAYS = "always"  # every tool, reads too
    WRITES = "writes"  # every tool that isn't read-only
    DESTRUCTIVE = "destructive"  # what cannot be undone, or might not be; other writes run and are reported
    NEVER = "never"  # nothing; an admin's own decision, warned about in the conversation
    FORBID = "forbid"  # it can't be asked for at all; stronger than every other rule and every grant

    def asks(self, risk: Risk) -> bool:
        match self:
            case Mode.ALWAYS | Mode.FORBID:
                return True
            case Mode.WRITES:
                return risk.writes
            case Mode.DESTRUCTIVE:
                return risk.level is Level.DESTRUCTIVE or (risk.writes and not risk.vouched)
            case Mode.NEVER:
                return False


STRICTNESS = (Mode.NEVER, Mode.DESTRUCTIVE, Mode.WRITES, Mode.ALWAYS, Mode.FORBID)
"""Policy modes from the loosest to the strictest."""

_LOOSENS = frozenset({Subject.POLICY, Subject.RISK})
"""Subjects whose rules may loosen: for an agent, one that names no agents' place only makes stricter."""
_ONLY_LOOSENS = frozenset({Subject.GRANTS, Subject.FETCH})
"""Subjects whose rules do nothing else: they count for an agent only where they name its place."""

BY_RISK = frozenset({Subject.OPINION, Subject.ESCALATE, Subject.REMIND, Subject.NOTIFY})
"""Subjects whose rules may look at the risk of a call: they are asked once that is judged."""

FOR_WHOM = frozenset({Subject.BUDGET, Subject.MODEL, Subject.ATTENTION})
"""Subjects of rules that are for a place or a person, not about calls."""


class Quorum(NamedTuple):
    """Approvals needed; ``of`` 0 when one decline ends it."""

    needed: int = 1
    of: int = 0


class Escalation(NamedTuple):
    """The place where a card is posted, too, when no one has decided in time. ``to``: an address as text."""

    after: timedelta
    to: str


class Raising(StrEnum):
    """The answers of a second opinion that make a call need one more approval."""

    NEVER = ""
    NO = "raises"  # it says that this is not what was asked
    NO_OR_MISSING = "raises, or is missing"  # that, or it did not come in time


class Opinion(NamedTuple):
    """The model that gives a second opinion, by its name here."""

    model: str
    raising: Raising = Raising.NEVER


class Attention(NamedTuple):
    """The number of cards that reach a person in an hour. What is beyond it and not urgent waits a little."""

    cards: int


class Hours(NamedTuple):
    """A span of hours on a clock; it may go over midnight."""

    begin: time
    end: time

    def cover(self, clock: time) -> bool:
        if self.begin <= self.end:
            return self.begin <= clock < self.end
        return clock >= self.begin or clock < self.end


class DailyDigest(NamedTuple):
    """The time of day, on the team's clock, and the address of a digest of open proposals."""

    at: time
    to: str


class GivenRole(NamedTuple):
    """The role that an account (as text) has, and whether in every workspace."""

    account: str
    role: Role
    everywhere: bool = False


RuleValue = (
    Mode
    | Level
    | Approver
    | timedelta
    | Quorum
    | Escalation
    | Opinion
    | Attention
    | Hours
    | DailyDigest
    | GivenRole
    | Budget
    | tuple[TimedStep, ...]
    | tuple[str, ...]
    | str
)


@dataclass(frozen=True, slots=True)
class Place:
    """The place where a call was asked for: the conversation's address as text, and if it is private.

    ``home``: where roles are held, if that is elsewhere: an agent's person, as text.
    """

    address: str
    private: bool
    home: str = ""

    @property
    def is_of_agent(self) -> bool:
        return is_agents_place(self.address)


@dataclass(frozen=True, slots=True)
class CallFacts:
    """The facts on one call that rules look at. ``schema``: the tool's JSON schema, with its defaults."""

    tool_name: str
    risk: Risk  # as the tool says; of one that was judged, by the rules
    place: Place
    requester: Person
    at: datetime
    kind: ProposalKind = kinds.CALL
    arguments: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str, Any] = field(default_factory=dict)
    undoes: bool = False  # it puts back what was approved
    followed: Mapping[str, Any] = field(
        default_factory=dict
    )  # arguments that go through links, with their ends
    identity: Identity = Identity.NOD  # under whose account it is made

    @property
    def own(self) -> bool:
        """True if who asks decides alone."""
        return self.kind.is_own(self.arguments)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a rule besides tools and a place: arguments, a person, hours, an end."""

    condition: Condition | None = None
    who: str = ""  # an account: only what this Person asks for
    hours: Hours | None = None  # on the team's clock
    until: datetime | None = None  # in the team's time zone
    days: str = ""  # of the week; hours that go over midnight are of the day on which they begin

    def hold(self, call: CallFacts, zone: tzinfo, *, of_several: bool = False) -> bool | None:
        """Return whether a call is within them; None where the condition can't be told of it.

        ``of_several``: a tool that lacks a field of the condition is not meant.
        """
        if not self.reach(call, zone):
            return False
        if self.condition is None:
            return True
        ways = [call.arguments, *([{**call.arguments, **call.followed}] if call.followed else [])]
        told = partial(
            self.condition.holds, of_several=of_several, identity=call.identity, level=call.risk.level
        )
        answers = {told(each, call.schema) for each in ways}
        if len(answers) == 1:
            return answers.pop()
        return None

    def reach(self, call: CallFacts, zone: tzinfo) -> bool:
        """Return whether a call is within those that look at no arguments."""
        if self.until is not None and call.at.astimezone(UTC) >= self.until.astimezone(UTC):
            return False
        if self.who and self.who not in call.requester.accounts:
            return False
        local = call.at.astimezone(zone)
        if self.hours is not None and not self.hours.cover(local.time()):
            return False
        return not self.days or self._find_beginning(local).weekday() in parse_weekdays(self.days)

    def _find_beginning(self, local: datetime) -> datetime:
        """Return a moment of the day on which the current hours began, which may be yesterday."""
        over = self.hours and self.hours.begin > self.hours.end > local.time()
        if over:
            return local - timedelta(days=1)
        return local

    @property
    def said(self) -> str:
        """The limits as an admin types them at the end of a rule."""
        parts = [f"by {self.who}"] if self.who else []
        parts += [f"until {format_moment(self.until)}"] if self.until else []
        parts += [f"between {self.hours.begin:%H:%M} and {self.hours.end:%H:%M}"] if self.hours else []
        parts += [f"on {self.days}"] if self.days else []
        parts += [f"where {self.condition.text}"] if self.condition else []
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. ``scope`` is `EVERYWHERE`, ``slack:*``, or an address of which a conversation is a part."""

    id: int
    subject: Subject
    scope: str
    pattern: str  # of tool names, with * and ?
    value: RuleValue
    limits: Limits | None = None

    @property
    def slot(self) -> tuple[object, ...]:
        """The key by which one rule replaces another; roles and routes can have several rules side by side.

        Rules that expire replace only expiring rules; forbid rules replace only forbid rules.
        """
        limits = self.limits or Limits()
        many: object = self.value is Mode.FORBID
        if isinstance(self.value, Budget):
            many = self.value.per
        elif self.subject in (Subject.ROLE, Subject.ROUTE):
            many = self.value
        lasts = limits.until is None
        return self.subject, self.scope, self.pattern, replace(limits, until=None), lasts, many

    @property
    def is_pattern(self) -> bool:
        """True if it may be about several tools."""
        return bool(_WILD.search(self.pattern))

    def hold(self, call: CallFacts, zone: tzinfo) -> bool | None:
        """Tell if the limits hold for a call, or None where that can't be known. True without limits."""
        return self.limits is None or self.limits.hold(call, zone, of_several=self.is_pattern)

    def lacks(self, schema: Mapping[str, Any]) -> str | None:
        """Return the field of its condition that a tool, one of several, lacks; None where it has all."""
        condition = self.limits.condition if self.limits else None
        if condition and self.is_pattern:
            return condition.lacking(schema)
        return None

    def concerns(self, tool_name: str) -> bool:
        return self.pattern == EVERYWHERE or _compile(self.pattern).match(tool_name) is not None

    @property
    def budget(self) -> Budget:
        """The value of a budget rule; raises TypeError for another rule."""
        if not isinstance(self.value, Budget):
            raise TypeError(self.subject)
        return self.value

    @property
    def steps(self) -> tuple[TimedStep, ...]:
        """The steps that it sets: of a notify rule its own, of an escalate rule the one; else none."""
        if isinstance(self.value, Escalation):
            return (TimedStep(self.value.to, self.value.after),)
        if self.subject is Subject.NOTIFY and isinstance(self.value, tuple):
            return tuple(step for step in self.value if isinstance(step, TimedStep))
        return ()

    @property
    def posts_at(self) -> tuple[str, ...]:
        """The addresses, as text, where it has Nod post; empty where it names none."""
        if isinstance(self.value, DailyDigest):
            return (self.value.to,)
        if self.subject is Subject.ROUTE:
            return (str(self.value),)
        return tuple(step.to for step in self.steps if is_place(step.to) and not is_group(step.to))

    @property
    def words(self) -> str:
        """For example ``rule 7: policy always for delete_* in slack:T1/C2``."""
        return f"rule {self.id}: {self.said}"

    @property
    def said(self) -> str:
        """The rule as an admin types it after ``/approvals``."""
        tools = "" if self.pattern == EVERYWHERE else f" for {self.pattern}"
        word = "for" if self.subject in FOR_WHOM else "in"
        where = "" if self.scope == EVERYWHERE else f" {word} {self.scope}"
        limits = f" {self.limits.said}" if self.limits else ""
        return f"{self.subject.typed} {value_words(self.subject, self.value)}{tools}{where}{limits}"


class Found(NamedTuple, Generic[T]):
    """The value of the strictest matching rule, and that rule; ``rule`` is None for the default."""

    value: T
    rule: Rule | None


@dataclass(frozen=True, slots=True)
class Rulebook:
    """The current rules, at one version. ``paused``: nothing executes, timers stop.

    A rule whose condition can't be told of a call (`Limits.hold` gives None) counts where it makes the call
    stricter than what holds without it, and not where it would spare anything.
    """

    version: int = 0
    rules: tuple[Rule, ...] = ()
    paused: bool = False
    zone: tzinfo = UTC  # the team's, for hours and ends
    _by_subject: Mapping[Subject, tuple[Rule, ...]] = field(init=False, compare=False, repr=False)
    _by_tool: dict[tuple[Subject, str], tuple[Rule, ...]] = field(
        init=False, compare=False, repr=False, default_factory=dict
    )
    _limited: frozenset[Subject] = field(init=False, compare=False, repr=False)
    forbids: bool = field(init=False, compare=False, repr=False)  # whether any rule forbids anything
    conditional: bool = field(init=False, compare=False, repr=False)  # whether any rule has a condition

    def __post_init__(self) -> None:
        grouped: dict[Subject, list[Rule]] = {}
        for rule in self.rules:
            grouped.setdefault(rule.subject, []).append(rule)
        object.__setattr__(self, "_by_subject", {k: tuple(v) for k, v in grouped.items()})
        object.__setattr__(self, "_limited", frozenset(r.subject for r in self.rules if r.limits))
        forbids = any(rule.value is Mode.FORBID for rule in grouped.get(Subject.POLICY, ()))
        object.__setattr__(self, "forbids", forbids)
        conditional = any(rule.limits and rule.limits.condition for rule in self.rules)
        object.__setattr__(self, "conditional", conditional)

    def list_about(self, subject: Subject) -> Sequence[Rule]:
        return self._by_subject.get(subject, ())

    def matching(self, subject: Subject, call: CallFacts) -> list[Rule]:
        """Return the rules that apply to a call, in the order they were set.

        A rule whose condition can't be told does not apply.
        """
        there = self._there(subject, call.place.address, call.tool_name)
        if subject not in self._limited:
            return there
        return [rule for rule in there if rule.hold(call, self.zone)]

    def _there(self, subject: Subject, place: str, tool_name: str) -> list[Rule]:
        """Return the rules about a tool at a place (an address as text), whatever their other limits.

        What only loosens counts for an agent where the rule names its place.
        """
        rules = self._by_tool.get((subject, tool_name))
        if rules is None:
            rules = tuple(rule for rule in self.list_about(subject) if rule.concerns(tool_name))
            if len(self._by_tool) < _MEMO:
                self._by_tool[subject, tool_name] = rules
        if subject in _ONLY_LOOSENS and is_agents_place(place):
            return [rule for rule in rules if is_agents_place(rule.scope) and covers(rule.scope, place)]
        return [rule for rule in rules if covers(rule.scope, place)]

    def _strictest(self, subject: Subject, call: CallFacts, default: Any) -> Found[Any]:
        """Return the strictest value among the matching rules, or the default where none does.

        Of those whose condition can't be told, one that is stricter than this counts.
        """
        strictness = _STRICTNESS[subject]
        rules = self.matching(subject, call)
        if subject in _LOOSENS and is_agents_place(call.place.address):
            named = any(is_agents_place(rule.scope) for rule in rules)
            rules = [rule for rule in rules if named or strictness(rule.value) > strictness(default)]
        best = max(rules, key=lambda rule: strictness(rule.value), default=None)
        found = Found(default, None) if best is None else Found(best.value, best)
        if subject in self._limited and found.value is not None:
            for rule in self._there(subject, call.place.address, call.tool_name):
                stricter = strictness(rule.value) > strictness(found.value)
                if stricter and rule.hold(call, self.zone) is None:
                    found = Found(rule.value, rule)
        return found

    def mode(self, call: CallFacts, default: Mode) -> Found[Mode]:
        """Return the strictest; a tool that lacks the field of what forbids asks for each change."""
        found: Found[Mode] = self._strictest(Subject.POLICY, call, default)
        if not self.conditional or STRICTNESS.index(found.value) >= STRICTNESS.index(Mode.WRITES):
            return found
        there = self._there(Subject.POLICY, call.place.address, call.tool_name)
        lacked = (rule for rule in there if rule.value is Mode.FORBID and rule.lacks(call.schema))
        rule = next((each for each in lacked if each.limits and each.limits.reach(call, self.zone)), None)
        if rule:
            return Found(Mode.WRITES, rule)
        return found

    def level(self, call: CallFacts) -> Found[Level]:
        """Return a call's risk level. Overrides replace what the tool says; of several the highest counts."""
        return self._strictest(Subject.RISK, call, call.risk.level)

    def ttl(self, call: CallFacts, default: timedelta) -> Found[timedelta]:
        """Return the shortest lifetime among the matching rules."""
        return self._strictest(Subject.TTL, call, default)

    def quorum(self, call: CallFacts) -> Quorum:
        found: Found[Quorum] = self._strictest(Subject.QUORUM, call, Quorum())
        return found.value

    def deciders(self, call: CallFacts, default: tuple[str, ...]) -> Found[tuple[str, ...]]:
        """Return the narrowest circle among the matching rules.

        From wide to narrow: anyone there, the requester, roles, accounts.
        """
        return self._strictest(Subject.DECIDERS, call, default)

    def remind_every(self, call: CallFacts) -> timedelta | None:
        """Return the shortest interval among the matching rules."""
        found: Found[timedelta | None] = self._strictest(Subject.REMIND, call, None)
        return found.value

    def escalation(self, call: CallFacts) -> Escalation | None:
        """Return the soonest escalation among the matching rules."""
        found: Found[Escalation | None] = self._strictest(Subject.ESCALATE, call, None)
        return found.value

    def steps(self, call: CallFacts) -> tuple[TimedStep, ...]:
        """Return the steps of the matching rule whose first step comes soonest."""
        found: Found[tuple[TimedStep, ...] | None] = self._strictest(Subject.NOTIFY, call, None)
        return found.value or ()

    def opinion(self, call: CallFacts) -> Opinion | None:
        """Return whose second opinion a card gets; of several the one that raises most."""
        found: list[Opinion] = [
            rule.value for rule in self.matching(Subject.OPINION, call) if isinstance(rule.value, Opinion)
        ]
        return max(found, key=_STRICTNESS[Subject.OPINION], default=None)

    def attention(self, names: AbstractSet[str]) -> int | None:
        """Return how many cards an hour reach a person; the fewest of several rules, None without one.

        ``names``: the person's accounts, and the groups that they are in.
        """
        found = [
            rule.value.cards
            for rule in self.list_about(Subject.ATTENTION)
            if isinstance(rule.value, Attention) and any(covers(rule.scope, name) for name in names)
        ]
        return min(found, default=None)

    def routes(self, call: CallFacts) -> list[str]:
        return list(dict.fromkeys(str(rule.value) for rule in self.matching(Subject.ROUTE, call)))

    def plans(self, place: str, default: Approver) -> Found[Approver]:
        """Return the approver of plans."""
        rules = self._there(Subject.PLANS, place, EVERYWHERE)
        best = max(rules, key=lambda rule: _STRICTNESS[Subject.PLANS](rule.value), default=None)
        return Found(default, None) if best is None else Found(best.value, best)  # type: ignore[arg-type]

    def grants_reach_destructive(self, call: CallFacts) -> bool:
        return any(rule.value == "destructive" for rule in self.matching(Subject.GRANTS, call))

    def hosts(self, call: CallFacts) -> list[str]:
        """Return the hosts whose pages are read without asking, with * and ?."""
        return [str(rule.value) for rule in self.matching(Subject.FETCH, call)]

    def undo(self, call: CallFacts) -> timedelta:
        """Return the time for Undo; the shortest counts."""
        found: Found[timedelta] = self._strictest(Subject.UNDO, call, None)
        if found.rule is None:
            return UNDO_FOR
        return found.value

    def stops_batch(self, call: CallFacts) -> bool:
        """Return whether a row that fails stops those of its batch that have not begun."""
        return bool(self.matching(Subject.BATCH, call))

    def model(self, place: str, accounts: AbstractSet[str]) -> Rule | None:
        """Return the rule that says which model answers: that of a person, else of the narrowest place."""
        rules = [r for r in self.list_about(Subject.MODEL) if r.scope in accounts or covers(r.scope, place)]
        return max(rules, key=lambda rule: (rule.scope in accounts, len(rule.scope)), default=None)

    def instructions(self, place: str) -> list[str]:
        """Return the instructions for a place (an address as text), the widest first."""
        found = sorted(self._there(Subject.INSTRUCTIONS, place, EVERYWHERE), key=lambda rule: len(rule.scope))
        return [str(rule.value) for rule in found]

    def hears_outsiders(self, place: str) -> bool:
        return bool(self._there(Subject.OUTSIDERS, place, EVERYWHERE))

    def outweighing(self, rule: Rule, tool_names: Sequence[str]) -> list[Rule]:
        """Return the rules that win over this one where both apply to one of these tools."""
        strictness = _STRICTNESS.get(rule.subject)
        if strictness is None:
            return []
        return [
            other
            for other in self.list_about(rule.subject)
            if other.id != rule.id
            and strictness(other.value) > strictness(rule.value)
            and (covers(other.scope, rule.scope) or covers(rule.scope, other.scope))
            and any(rule.concerns(name) and other.concerns(name) for name in (*tool_names, rule.pattern))
        ]

    def list_ended(self, now: datetime) -> list[Rule]:
        """Return the expired rules, which match nothing."""
        over = now.astimezone(UTC)
        limited = ((rule, rule.limits.until) for rule in self.rules if rule.limits)
        return [rule for rule, until in limited if until and until.astimezone(UTC) <= over]

    def misfits(self, schemas: Mapping[str, Mapping[str, Any]], *, every: bool = False) -> dict[int, str]:
        """Return the rules whose condition does not fit a tool, by number, each with the reason.

        ``schemas`` are tools' by name. ``every``: they are all tools there are, so a rule about several is
        reported where it fits none.
        """
        found: dict[int, str] = {}
        for rule in (each for each in self.rules if each.limits and each.limits.condition):
            condition = rule.limits.condition if rule.limits else None
            there = {name: schema for name, schema in schemas.items() if rule.concerns(name)}
            lacking = [field for schema in there.values() if (field := rule.lacks(schema))]
            if every and there and len(lacking) == len(there):
                found[rule.id] = f"fits no tool: none has {lacking[0]}"
            for name, schema in there.items():
                if condition and not rule.lacks(schema) and (why := condition.misfit(schema)):
                    found[rule.id] = f"does not fit {name}: {why}"
        return found

    def lift_limits(self, which: AbstractSet[Rule]) -> "Rulebook":
        """Return the rules without their limits: of those that have any, only these."""
        rules = (replace(rule, limits=None) for rule in self.rules if rule.limits is None or rule in which)
        return replace(self, rules=tuple(rules))

    def accounts_with(self, role: str) -> dict[str, bool]:
        """Return the accounts with a role, and True for those that have it in every workspace."""
        found: dict[str, bool] = {}
        for each in (rule.value for rule in self.list_about(Subject.ROLE)):
            if isinstance(each, GivenRole) and each.role == role:
                found[each.account] = each.everywhere or found.get(each.account, False)
        return found


class Pause(NamedTuple):
    """The pause of everything: its start, and who paused, as account and name; both may be empty."""

    since: datetime
    by: str
    name: str


def _narrowness(words: Sequence[str]) -> tuple[int, ...]:
    """Return the sort key of a circle: its widest word first, then the number of words that admit people."""
    roles = sum(":" not in word for word in words)
    return (-("member" in words), -("requester" in words), -roles, -len(words))


_STRICTNESS: Mapping[Subject, Callable[[Any], Any]] = {
    Subject.POLICY: STRICTNESS.index,
    Subject.RISK: LEVELS.index,
    Subject.TTL: lambda length: -length,
    Subject.QUORUM: lambda value: value.needed,
    Subject.DECIDERS: _narrowness,
    Subject.REMIND: lambda length: -length,
    Subject.ESCALATE: lambda value: -value.after,
    Subject.NOTIFY: lambda steps: -min(step.after for step in steps),
    Subject.OPINION: lambda value: list(Raising).index(value.raising),
    Subject.PLANS: APPROVERS.index,
    Subject.ATTENTION: lambda value: -value.cards,
    Subject.UNDO: lambda length: -length,
}
"""What makes one value of a subject stricter than another; of several matching rules the strictest counts."""
_COUNTS: Mapping[Subject, Callable[..., RuleValue]] = {
    Subject.QUORUM: Quorum,
    Subject.ATTENTION: Attention,
}
"""Values of whole numbers."""


def is_agents_place(place: str) -> bool:
    """Tell if an address or a scope (as text) is that of agents' calls."""
    return place.startswith(f"{AGENTS}:")


def covers(scope: str, place: str) -> bool:
    """Return whether a place lies in a scope: the same address, or a part of it below a slash."""
    if scope in (EVERYWHERE, place):
        return True
    if scope.endswith(":*"):
        return place.startswith(scope[:-1])
    return place.startswith(f"{scope}/")


@lru_cache(maxsize=4096)
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern))


def value_words(subject: Subject, value: RuleValue) -> str:
    """Return the value as an admin would write it."""
    match value:
        case Budget():
            return value.words
        case Quorum(needed, of):
            if of:
                return f"{needed} of {of}"
            return str(needed)
        case timedelta():
            if value:
                return format_length(value.total_seconds())
            return "off"
        case Attention(cards):
            return f"{cards} an hour"
        case Opinion(model, raising):
            return f"{model} {raising}".strip()
        case Escalation(after, to):
            return f"{format_length(after.total_seconds())} {to}"
    if subject is Subject.NOTIFY and isinstance(value, tuple):
        return format_steps(step for step in value if isinstance(step, TimedStep))
    if subject is Subject.INSTRUCTIONS:
        return f"“{shorten(one_line(str(value)), _QUOTED)}”"
    return " ".join(map(str, _parts(store_value(subject, value))))


def _parts(kept: Any) -> list[Any]:
    if isinstance(kept, list):
        return kept
    return [kept]


def store_value(subject: Subject, value: RuleValue) -> Any:
    """Return the value as rows and the record keep it: JSON."""
    match value:
        case timedelta():
            if subject is Subject.TTL:
                return value.total_seconds()
            return [value.total_seconds()]
        case Escalation(after, to):
            return [after.total_seconds(), to]
        case Opinion(model, raising):
            return [model, str(raising)]
        case Hours(begin, end):
            return [f"{begin:%H:%M}", f"{end:%H:%M}"]
        case DailyDigest(at, to):
            return [f"{at:%H:%M}", to]
        case GivenRole(account, role, everywhere):
            return [account, str(role), *([EVERYWHERE_WORD] if everywhere else [])]
        case tuple():
            return [_store_part(part) for part in value]
    return str(value)


def _store_part(part: Any) -> Any:
    if isinstance(part, TimedStep):
        return [part.to, part.after.total_seconds()]
    return part


def _read_part(part: Any) -> Any:
    if isinstance(part, list):
        to, seconds = part
        return TimedStep(to, timedelta(seconds=seconds))
    return part


def value_of(subject: Subject, kept: Any) -> RuleValue:
    """Read a stored value. Raises ValueError, TypeError or IndexError for anything else."""
    match subject:
        case Subject.POLICY | Subject.RISK | Subject.PLANS:
            return {Subject.POLICY: Mode, Subject.RISK: Level, Subject.PLANS: Approver}[subject](kept)
        case Subject.TTL:
            return timedelta(seconds=kept)
        case Subject.REMIND | Subject.UNDO:
            return timedelta(seconds=kept[0])
        case Subject.QUORUM | Subject.ATTENTION:
            return _COUNTS[subject](*kept)
        case Subject.DECIDERS | Subject.NOTIFY:
            return tuple(map(_read_part, kept))
        case Subject.ESCALATE:
            return Escalation(timedelta(seconds=kept[0]), kept[1])
        case Subject.OPINION:
            return Opinion(kept[0], Raising(kept[1]))
        case Subject.QUIET:
            return Hours(time.fromisoformat(kept[0]), time.fromisoformat(kept[1]))
        case Subject.DIGEST:
            return DailyDigest(time.fromisoformat(kept[0]), kept[1])
        case Subject.BUDGET:
            return Budget(kept[0], kept[1], Per(kept[2]), *kept[3:])
        case Subject.ROLE:
            return GivenRole(kept[0], Role(kept[1]), EVERYWHERE_WORD in kept[2:])
        case _:
            return str(kept)
