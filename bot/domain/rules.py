"""The rules that admins set at run time, as one value: the rulebook.

A `Rule` has a subject (what it sets, such as the quorum: the number of approvals that are needed), a scope
(where it counts), a pattern (for which tools), limits (an end, hours, a condition on the call) and a value.
`Rulebook` has a method for each subject, which looks at the rules that match a call. Where several match, the
strictest wins; `Found.rule` says which one that was. A *grant*, by which people let similar calls run without
asking, is no rule (``bot/domain/similarity.py``), but rules limit it.

Judging calls with the rulebook is in ``bot/domain/policy.py``; the rows are in ``bot/store/rules.py``.
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
from bot.domain.plans import APPROVERS_BY_STRICTNESS, Approver
from bot.domain.proposals import Level, ProposalKind, Risk
from bot.domain.steps import TimedStep, format_steps, is_place
from bot.domain.text import one_line, shorten
from bot.domain.times import format_length, format_moment, parse_weekdays

T = TypeVar("T")

EVERYWHERE = "*"
ANY_TOOL = "*"  # the pattern of a rule about all tools, and of rules that are not about tools at all
UNDO_FOR = timedelta(minutes=30)  # the time for Undo where no rule sets one
EVERYWHERE_WORD = "everywhere"  # the last word of a role that counts in every workspace
MAX_INSTRUCTIONS_CHARS = 2_000
"""The most characters of the instructions for one place."""
_MAX_QUOTED_CHARS = 60  # the most characters of instructions in a list of rules
_WILDCARD = re.compile(r"[*?\[]")  # the wildcards of `fnmatch`
_MAX_CACHED_TOOLS = 4096  # pairs of a subject and a tool
LEVELS = (Level.READ, Level.WRITE, Level.DESTRUCTIVE)
"""Levels of risk from the lowest to the highest."""


class Subject(StrEnum):
    """The subject of a rule; each comment begins with the type of its value."""

    POLICY = "policy"  # Mode
    RISK = "risk"  # Level: the risk of the tool's calls, whatever the tool says
    TTL = "ttl"  # timedelta: the time that a proposal waits
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
    OUTSIDERS = "outsiders"  # "talk": guests and people of another company may talk to Nod here
    BUDGET = "budget"  # Budget: the most that models may cost
    MODEL = "model"  # str: the name of the model that answers there, or this person
    UNDO = "undo"  # timedelta: the time in which a call can be undone; 0: it can't
    INSTRUCTIONS = "instructions"  # str: instructions to the agent there, in addition to the settings'
    OPINION = "opinion"  # Opinion: the model whose opinion is on the card, and the effect of its no
    ATTENTION = "attention"  # Attention: the most cards an hour that notify a person
    BATCH = "batch"  # "stop": a row that fails stops the rows of its batch that have not begun

    @property
    def command_words(self) -> str:
        """The words after ``/approvals`` that set a rule of this subject."""
        return {"deciders": "approvers", "role": "roles add", "grants": "grants allow"}.get(self, self)


class Mode(StrEnum):
    """The calls that need approval, as the value of a policy rule."""

    ALWAYS = "always"  # every tool, reads too
    WRITES = "writes"  # every tool that isn't read-only
    DESTRUCTIVE = "destructive"  # calls that can't or may not be undone; other writes run and are reported
    NEVER = "never"  # nothing; an admin's own decision, warned about in the conversation
    FORBID = "forbid"  # the call can't even be proposed; stronger than every other rule and every grant

    def asks(self, risk: Risk) -> bool:
        """Return whether calls of a risk ask, if no other rule says so.

        ===========  =====  ==============  ==================  ===========
        Mode         Reads  Vouched writes  Writes not vouched  Destructive
        ===========  =====  ==============  ==================  ===========
        always       ask    ask             ask                 ask
        writes       run    ask             ask                 ask
        destructive  run    run             ask                 ask
        never        run    run             run                 run
        ===========  =====  ==============  ==================  ===========
        """
        match self:
            case Mode.ALWAYS | Mode.FORBID:
                return True
            case Mode.WRITES:
                return risk.writes
            case Mode.DESTRUCTIVE:
                return risk.level is Level.DESTRUCTIVE or (risk.writes and not risk.vouched)
            case Mode.NEVER:
                return False


MODES = (Mode.NEVER, Mode.DESTRUCTIVE, Mode.WRITES, Mode.ALWAYS, Mode.FORBID)
"""Modes of a policy rule from the loosest to the strictest."""

# An agent here is a program that calls tools with a token, at a place of its own. A rule for all places was
# made with people in mind. So for agents such a rule may only make calls stricter.
_MAY_LOOSEN = frozenset({Subject.POLICY, Subject.RISK})
"""Subjects whose rules may loosen or tighten. For an agent only rules that name agents' places may loosen."""
_ONLY_LOOSEN = frozenset({Subject.GRANTS, Subject.FETCH})
"""Subjects whose rules only loosen. For an agent, such a rule counts only if it names agents' places."""

BY_RISK = frozenset({Subject.OPINION, Subject.ESCALATE, Subject.REMIND, Subject.NOTIFY})
"""Subjects whose rules may have a condition on risk, since they are read after the risk was judged."""

FOR_PERSON_OR_PLACE = frozenset({Subject.BUDGET, Subject.MODEL, Subject.ATTENTION})
"""Subjects whose rules name a person or a place after ``for``."""


class Quorum(NamedTuple):
    """The approvals that a proposal needs, as in ``2`` or ``2 of 3``."""

    needed: int = 1
    # the number of deciders, as the 3 in "2 of 3": the proposal is declined once fewer than ``needed`` of
    # them can still approve. 0: one decline ends it
    of: int = 0


class Escalation(NamedTuple):
    """The further place where a card is posted, and may be decided, when no one has decided in time."""

    after: timedelta
    to: str  # an address as text


class OpinionEffect(StrEnum):
    """The answers of a second opinion that raise the number of approvals by one."""

    NEVER = ""
    NO = "raises"  # the model says that the call is not what was asked
    NO_OR_MISSING = "raises, or is missing"  # the same, or the opinion did not come in time


class Opinion(NamedTuple):
    """The model that gives a second opinion on a call, and the effect of its answer."""

    model: str  # its name in Nod's settings
    effect: OpinionEffect = OpinionEffect.NEVER  # the answers after which the call needs one more approval


class Attention(NamedTuple):
    """A limit on how many cards notify a person in an hour. People are told of further cards later."""

    cards: int


class Hours(NamedTuple):
    """A span of hours on a clock; it may go past midnight, as from 22:00 to 6:00."""

    begin: time
    end: time

    def contains(self, clock: time) -> bool:
        """Return whether a time of day lies in the span, whose end is excluded."""
        if self.begin <= self.end:
            return self.begin <= clock < self.end
        return clock >= self.begin or clock < self.end


class DailyDigest(NamedTuple):
    """The time of day, on the team's clock, and the address of a digest of open proposals."""

    at: time
    to: str


class GivenRole(NamedTuple):
    """The role of an account."""

    account: str  # an Actor as text
    role: Role
    everywhere: bool = False  # in every workspace


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
    """The place where a call was asked for."""

    address: str  # the address of the conversation, as text
    private: bool
    home: str = ""  # for an agent, its person's place, where roles count; empty: they count at ``address``

    @property
    def is_of_agent(self) -> bool:
        return is_agents_place(self.address)


@dataclass(frozen=True, slots=True)
class CallFacts:
    """The facts on one call that rules use."""

    tool_name: str
    risk: Risk  # as the tool says; once the policy has judged the risk, as the rules say
    place: Place
    requester: Person
    at: datetime
    kind: ProposalKind = kinds.CALL
    arguments: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str, Any] = field(default_factory=dict)  # the JSON schema of the tool's arguments
    undoes: bool = False  # the call undoes an approved one
    # the arguments whose path is a symbolic link or leads through one, each with the path that it leads to
    link_targets: Mapping[str, Any] = field(default_factory=dict)
    identity: Identity = Identity.NOD  # the account under which the call is made

    @property
    def requester_decides_alone(self) -> bool:
        """True if the requester decides alone, as the kind of the proposal says."""
        return self.kind.is_own(self.arguments)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a rule besides tools and a place: a condition, a person, hours, days, an end."""

    condition: Condition | None = None
    who: str = ""  # an account: the rule is only for requests of its Person
    hours: Hours | None = None  # on the team's clock
    until: datetime | None = None  # in the team's time zone
    days: str = ""  # days of the week; hours past midnight belong to the day on which they begin

    def match_call(self, call: CallFacts, zone: tzinfo, *, of_several: bool = False) -> bool | None:
        """Return whether a call is within all of the limits; None if the condition is unknown for the call.

        ``of_several``: the rule is about several tools, so a tool that lacks a field of the condition is
        outside the rule. The condition is judged twice: with links in arguments as written, and with their
        targets. If the two answers differ, the answer is None.
        """
        if not self.match_without_condition(call, zone):
            return False
        if self.condition is None:
            return True
        check = partial(
            self.condition.holds, of_several=of_several, identity=call.identity, level=call.risk.level
        )
        answer = check(call.arguments, call.schema)
        if call.link_targets and check({**call.arguments, **call.link_targets}, call.schema) != answer:
            return None
        return answer

    def match_without_condition(self, call: CallFacts, zone: tzinfo) -> bool:
        """Return whether a call is within the limits on person, hours, days and end; not on the condition."""
        if self.until is not None and call.at.astimezone(UTC) >= self.until.astimezone(UTC):
            return False
        if self.who and self.who not in call.requester.accounts:
            return False
        local = call.at.astimezone(zone)
        if self.hours is not None and not self.hours.contains(local.time()):
            return False
        return not self.days or self._find_first_day(local).weekday() in parse_weekdays(self.days)

    def _find_first_day(self, local: datetime) -> datetime:
        """Return a moment on the day on which the hours around ``local`` began, perhaps the day before."""
        hours = self.hours
        if hours is not None and hours.begin > hours.end and local.time() < hours.end:
            return local - timedelta(days=1)  # the hours go past midnight
        return local

    @property
    def command_text(self) -> str:
        """The limits as an admin types them at the end of a rule."""
        parts = []
        if self.who:
            parts.append(f"by {self.who}")
        if self.until:
            parts.append(f"until {format_moment(self.until)}")
        if self.hours:
            parts.append(f"between {self.hours.begin:%H:%M} and {self.hours.end:%H:%M}")
        if self.days:
            parts.append(f"on {self.days}")
        if self.condition:
            parts.append(f"where {self.condition.text}")
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the rulebook."""

    id: int
    subject: Subject
    scope: str  # `EVERYWHERE`, a channel (``slack:*``), or an address with all that lies below it
    pattern: str  # a pattern of tool names, with * and ?
    value: RuleValue
    limits: Limits | None = None

    @property
    def slot(self) -> "RuleSlot":
        """The key of the rule: a new rule replaces the earlier rule with the same key.

        Rules that expire replace only expiring rules; forbid rules replace only forbid rules. There may be
        several roles or routes with different values, and several budgets for different periods.
        """
        limits = self.limits or Limits()
        return RuleSlot(
            subject=self.subject,
            scope=self.scope,
            pattern=self.pattern,
            limits=replace(limits, until=None),
            expires=limits.until is not None,
            part_of_value=self._part_of_value_in_slot,
        )

    @property
    def _part_of_value_in_slot(self) -> object:
        if isinstance(self.value, Budget):
            return self.value.per
        if self.subject in (Subject.ROLE, Subject.ROUTE):
            return self.value
        return self.value is Mode.FORBID

    @property
    def is_pattern(self) -> bool:
        """True if it may be about several tools, since its pattern has a wildcard."""
        return bool(_WILDCARD.search(self.pattern))

    @property
    def is_for_a_time(self) -> bool:
        """True if the rule holds only in some hours, only on some days, or until an end."""
        return self.limits is not None and bool(self.limits.hours or self.limits.days or self.limits.until)

    def match_limits(self, call: CallFacts, zone: tzinfo) -> bool | None:
        """Return whether a call is within the limits; None if that is unknown (`Limits.match_call`)."""
        return self.limits is None or self.limits.match_call(call, zone, of_several=self.is_pattern)

    def find_lacking_field(self, schema: Mapping[str, Any]) -> str | None:
        """Return the first field of the condition that is not in a tool's schema; None if all are.

        None also for a rule about a single tool, whose condition was checked when the rule was set.
        """
        condition = self.limits.condition if self.limits else None
        if condition and self.is_pattern:
            return condition.find_lacking_field(schema)
        return None

    def is_about(self, tool_name: str) -> bool:
        """Return whether the rule is about a tool, wherever and whenever it counts."""
        return self.pattern == ANY_TOOL or _compile(self.pattern).match(tool_name) is not None

    @property
    def budget(self) -> Budget:
        """The value of a budget rule; raises TypeError for another rule."""
        if not isinstance(self.value, Budget):
            raise TypeError(self.subject)
        return self.value

    @property
    def steps(self) -> tuple[TimedStep, ...]:
        """The steps of a notify rule, or the single step of an escalate rule; empty for any other rule."""
        if isinstance(self.value, Escalation):
            return (TimedStep(self.value.to, self.value.after),)
        if self.subject is Subject.NOTIFY and isinstance(self.value, tuple):
            return tuple(step for step in self.value if isinstance(step, TimedStep))
        return ()

    @property
    def posts_at(self) -> tuple[str, ...]:
        """The addresses, as text, where Nod posts because of the rule; empty where the rule names none."""
        if isinstance(self.value, DailyDigest):
            return (self.value.to,)
        if self.subject is Subject.ROUTE:
            return (str(self.value),)
        return tuple(step.to for step in self.steps if is_place(step.to) and not is_group(step.to))

    @property
    def words(self) -> str:
        """For example ``rule 7: policy always for delete_* in slack:T1/C2``."""
        return f"rule {self.id}: {self.command_text}"

    @property
    def command_text(self) -> str:
        """The rule as an admin types it after ``/approvals``: ``policy always for delete_*``."""
        tools = "" if self.pattern == ANY_TOOL else f" for {self.pattern}"
        word = "for" if self.subject in FOR_PERSON_OR_PLACE else "in"
        where = "" if self.scope == EVERYWHERE else f" {word} {self.scope}"
        limits = f" {self.limits.command_text}" if self.limits else ""
        return f"{self.subject.command_words} {format_value(self.subject, self.value)}{tools}{where}{limits}"


class RuleSlot(NamedTuple):
    """The properties in which a new rule and the rule that it replaces are equal."""

    subject: Subject
    scope: str
    pattern: str
    limits: Limits  # without the end
    expires: bool
    part_of_value: object  # a part of the value for some subjects; else True if the rule forbids


def _measure_narrowness(words: Sequence[str]) -> tuple[int, ...]:
    """Return a sort key for the deciders that a rule names: the fewer people may decide, the larger it is.

    Members of the chat count first, then the requester, then the number of roles, then of all words.
    """
    has_members, has_requester = int("member" in words), int("requester" in words)
    role_count = sum(":" not in word for word in words)  # accounts and groups have a colon
    return -has_members, -has_requester, -role_count, -len(words)


_STRICTNESS_BY_SUBJECT: Mapping[Subject, Callable[[Any], Any]] = {
    Subject.POLICY: MODES.index,
    Subject.RISK: LEVELS.index,
    Subject.TTL: lambda length: -length,
    Subject.QUORUM: lambda value: value.needed,
    Subject.DECIDERS: _measure_narrowness,
    Subject.REMIND: lambda length: -length,
    Subject.ESCALATE: lambda value: -value.after,
    Subject.NOTIFY: lambda steps: -min(step.after for step in steps),
    Subject.OPINION: lambda value: list(OpinionEffect).index(value.effect),
    Subject.PLANS: APPROVERS_BY_STRICTNESS.index,
    Subject.ATTENTION: lambda value: -value.cards,
    Subject.UNDO: lambda length: -length,
}
"""The function that measures how strict a value is, by subject: of several rules the largest counts."""


class Found(NamedTuple, Generic[T]):
    """The value of the strictest matching rule, and that rule; ``rule`` is None for the default."""

    value: T
    rule: Rule | None


@dataclass(frozen=True, slots=True)
class Rulebook:
    """The current rules.

    If the condition of a rule is unknown for a call (`Limits.match_call` returns None), the rule counts where
    it is stricter than all others, and not where it would loosen anything.
    """

    version: int = 0
    rules: tuple[Rule, ...] = ()
    paused: bool = False  # nothing executes, timers stop
    zone: tzinfo = UTC  # the team's time zone, for hours and ends
    _by_subject: Mapping[Subject, tuple[Rule, ...]] = field(init=False, compare=False, repr=False)
    # a cache of the rules by subject and tool, whatever their places and limits
    _by_tool: dict[tuple[Subject, str], tuple[Rule, ...]] = field(
        init=False, compare=False, repr=False, default_factory=dict
    )
    # the subjects that have a rule with limits; for others no limits need to be looked at
    _subjects_with_limits: frozenset[Subject] = field(init=False, compare=False, repr=False)
    has_forbid_rule: bool = field(init=False, compare=False, repr=False)  # a rule forbids something
    has_conditions: bool = field(init=False, compare=False, repr=False)  # a rule has a condition

    def __post_init__(self) -> None:
        grouped: dict[Subject, list[Rule]] = {}
        for rule in self.rules:
            grouped.setdefault(rule.subject, []).append(rule)
        by_subject = {subject: tuple(rules) for subject, rules in grouped.items()}
        object.__setattr__(self, "_by_subject", by_subject)
        with_limits = frozenset(rule.subject for rule in self.rules if rule.limits)
        object.__setattr__(self, "_subjects_with_limits", with_limits)
        has_forbid_rule = any(rule.value is Mode.FORBID for rule in grouped.get(Subject.POLICY, ()))
        object.__setattr__(self, "has_forbid_rule", has_forbid_rule)
        has_conditions = any(rule.limits and rule.limits.condition for rule in self.rules)
        object.__setattr__(self, "has_conditions", has_conditions)

    def list_about(self, subject: Subject) -> Sequence[Rule]:
        return self._by_subject.get(subject, ())

    def list_applying(self, subject: Subject, call: CallFacts) -> list[Rule]:
        """Return the rules that certainly apply to a call, in the order they were set."""
        rules = self._list_at(subject, call.place.address, call.tool_name)
        if subject not in self._subjects_with_limits:
            return rules
        return [rule for rule in rules if rule.match_limits(call, self.zone)]

    def _list_at(self, subject: Subject, place: str, tool_name: str) -> list[Rule]:
        """Return the rules about a tool at a place (an address as text), whatever their other limits."""
        rules = self._by_tool.get((subject, tool_name))
        if rules is None:
            rules = tuple(rule for rule in self.list_about(subject) if rule.is_about(tool_name))
            if len(self._by_tool) < _MAX_CACHED_TOOLS:
                self._by_tool[subject, tool_name] = rules
        if subject in _ONLY_LOOSEN and is_agents_place(place):
            rules = tuple(rule for rule in rules if is_agents_place(rule.scope))
        return [rule for rule in rules if covers(rule.scope, place)]

    def _strictest(self, subject: Subject, call: CallFacts, default: Any) -> Found[Any]:
        """Return the strictest value among the matching rules; the default if none matches.

        At the place of an agent (a program with a token), unless a matching rule names agents, rules on the
        subjects in `_MAY_LOOSEN` count only if they are stricter than the default.
        """
        strictness = _STRICTNESS_BY_SUBJECT[subject]
        rules = self.list_applying(subject, call)
        if subject in _MAY_LOOSEN and is_agents_place(call.place.address):
            has_rule_for_agents = any(is_agents_place(rule.scope) for rule in rules)
            if not has_rule_for_agents:
                rules = [rule for rule in rules if strictness(rule.value) > strictness(default)]
        best = max(rules, key=lambda rule: strictness(rule.value), default=None)
        found = Found(best.value, best) if best else Found(default, None)

        # `list_applying` leaves out rules whose condition is unknown. Such a rule counts if it is stricter
        # than the value so far. Without a value (no rule matches, no default) there is nothing to compare
        if subject in self._subjects_with_limits and found.value is not None:
            for rule in self._list_at(subject, call.place.address, call.tool_name):
                is_stricter = strictness(rule.value) > strictness(found.value)
                if is_stricter and rule.match_limits(call, self.zone) is None:
                    found = Found(rule.value, rule)
        return found

    def mode(self, call: CallFacts, default: Mode) -> Found[Mode]:
        """Return the strictest mode.

        A rule may forbid calls by a condition on a field that this tool lacks. Then it is unknown whether the
        rule forbids the call, so the mode is at least `Mode.WRITES`: writes ask.
        """
        found: Found[Mode] = self._strictest(Subject.POLICY, call, default)
        if not self.has_conditions or MODES.index(found.value) >= MODES.index(Mode.WRITES):
            return found
        for rule in self._list_at(Subject.POLICY, call.place.address, call.tool_name):
            is_unclear = rule.value is Mode.FORBID and rule.find_lacking_field(call.schema)
            if is_unclear and rule.limits and rule.limits.match_without_condition(call, self.zone):
                return Found(Mode.WRITES, rule)
        return found

    def level(self, call: CallFacts) -> Found[Level]:
        """Return a call's risk level. Rules replace the tool's own; of several the highest counts."""
        return self._strictest(Subject.RISK, call, call.risk.level)

    def ttl(self, call: CallFacts, default: timedelta) -> Found[timedelta]:
        """Return the shortest lifetime among the matching rules."""
        return self._strictest(Subject.TTL, call, default)

    def quorum(self, call: CallFacts) -> Quorum:
        found: Found[Quorum] = self._strictest(Subject.QUORUM, call, Quorum())
        return found.value

    def deciders(self, call: CallFacts, default: tuple[str, ...]) -> Found[tuple[str, ...]]:
        """Return the narrowest deciders among the matching rules.

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
        """Return the second opinion that a call needs, None if it needs none: of several, the strictest."""
        opinions = [
            rule.value
            for rule in self.list_applying(Subject.OPINION, call)
            if isinstance(rule.value, Opinion)
        ]
        return max(opinions, key=_STRICTNESS_BY_SUBJECT[Subject.OPINION], default=None)

    def attention(self, names: AbstractSet[str]) -> int | None:
        """Return the number of cards an hour that reach a person: the least of several; None without a rule.

        ``names``: the person's accounts, and the groups that they are in.
        """
        fewest: int | None = None
        for rule in self.list_about(Subject.ATTENTION):
            if not isinstance(rule.value, Attention):
                continue
            is_for_person = any(covers(rule.scope, name) for name in names)
            if is_for_person and (fewest is None or rule.value.cards < fewest):
                fewest = rule.value.cards
        return fewest

    def routes(self, call: CallFacts) -> list[str]:
        """Return the addresses where the call's card is posted too."""
        return list(dict.fromkeys(str(rule.value) for rule in self.list_applying(Subject.ROUTE, call)))

    def plans(self, place: str, default: Approver) -> Found[Approver]:
        """Return the approver of plans at a place (an address as text): of several, the strictest."""
        rules = self._list_at(Subject.PLANS, place, ANY_TOOL)
        best = max(rules, key=lambda rule: _STRICTNESS_BY_SUBJECT[Subject.PLANS](rule.value), default=None)
        return Found(default, None) if best is None else Found(best.value, best)  # type: ignore[arg-type]

    def grants_reach_destructive(self, call: CallFacts) -> bool:
        return any(rule.value == "destructive" for rule in self.list_applying(Subject.GRANTS, call))

    def hosts(self, call: CallFacts) -> list[str]:
        """Return the hosts whose pages are read without asking, with * and ?."""
        return [str(rule.value) for rule in self.list_applying(Subject.FETCH, call)]

    def undo(self, call: CallFacts) -> timedelta:
        """Return the time for Undo; the shortest counts."""
        found: Found[timedelta] = self._strictest(Subject.UNDO, call, UNDO_FOR)
        return found.value

    def stops_batch(self, call: CallFacts) -> bool:
        """Return whether a row that fails stops the rows of its batch that have not begun."""
        return bool(self.list_applying(Subject.BATCH, call))

    def model(self, place: str, accounts: AbstractSet[str]) -> Rule | None:
        """Return the rule on the model that answers: the person's, else the rule of the narrowest place."""
        all_rules = self.list_about(Subject.MODEL)
        rules = [rule for rule in all_rules if rule.scope in accounts or covers(rule.scope, place)]
        return max(rules, key=lambda rule: (rule.scope in accounts, len(rule.scope)), default=None)

    def instructions(self, place: str) -> list[str]:
        """Return the instructions for a place (an address as text), the widest first."""
        rules = self._list_at(Subject.INSTRUCTIONS, place, ANY_TOOL)
        rules.sort(key=lambda rule: len(rule.scope))
        return [str(rule.value) for rule in rules]

    def hears_outsiders(self, place: str) -> bool:
        """Return whether guests and people of another company may talk to Nod at a place."""
        return bool(self._list_at(Subject.OUTSIDERS, place, ANY_TOOL))

    def list_stricter_rivals(self, rule: Rule, tool_names: Sequence[str]) -> list[Rule]:
        """Return the stricter rules of the same subject that win over this rule for one of these tools."""
        strictness = _STRICTNESS_BY_SUBJECT.get(rule.subject)
        if strictness is None:
            return []
        return [
            other
            for other in self.list_about(rule.subject)
            if other.id != rule.id
            and strictness(other.value) > strictness(rule.value)
            and (covers(other.scope, rule.scope) or covers(rule.scope, other.scope))
            and any(rule.is_about(name) and other.is_about(name) for name in (*tool_names, rule.pattern))
        ]

    def list_ended(self, now: datetime) -> list[Rule]:
        """Return the expired rules, which match nothing."""
        ended = []
        for rule in self.rules:
            until = rule.limits.until if rule.limits else None
            if until and until.astimezone(UTC) <= now.astimezone(UTC):
                ended.append(rule)
        return ended

    def explain_misfits(
        self, schemas: Mapping[str, Mapping[str, Any]], *, all_tools: bool = False
    ) -> dict[int, str]:
        """Return why the conditions of rules do not fit the tools that they are about, by the rules' numbers.

        ``schemas``: the tools' JSON schemas, by name. ``all_tools``: these are all tools, so a rule about
        several tools is reported if it fits none of them.
        """
        reasons: dict[int, str] = {}
        for rule in self.rules:
            condition = rule.limits.condition if rule.limits else None
            if condition is None:
                continue
            lacking_fields: list[str] = []  # for each tool that lacks a field: the first that it lacks
            schemas_of_rule = {name: schema for name, schema in schemas.items() if rule.is_about(name)}
            for name, schema in schemas_of_rule.items():
                lacking_field = rule.find_lacking_field(schema)
                if lacking_field:
                    lacking_fields.append(lacking_field)
                    continue
                misfit = condition.find_misfit(schema)
                if misfit:
                    reasons[rule.id] = f"does not fit {name}: {misfit}"
            if all_tools and lacking_fields and len(lacking_fields) == len(schemas_of_rule):
                reasons[rule.id] = f"fits no tool: none has {lacking_fields[0]}"
        return reasons

    def lift_limits(self, always_within: AbstractSet[Rule]) -> "Rulebook":
        """Return the rulebook as if every call were within the limits of these rules, and of no others."""
        rules = (
            replace(rule, limits=None) for rule in self.rules if rule.limits is None or rule in always_within
        )
        return replace(self, rules=tuple(rules))

    def accounts_with(self, role: str) -> dict[str, bool]:
        """Return the accounts with a role, and True for those that have it in every workspace."""
        accounts: dict[str, bool] = {}
        for rule in self.list_about(Subject.ROLE):
            given = rule.value
            if isinstance(given, GivenRole) and given.role == role:
                accounts[given.account] = given.everywhere or accounts.get(given.account, False)
        return accounts


class Pause(NamedTuple):
    """The pause of all of Nod."""

    since: datetime
    by: str  # the account of the admin; empty if it is not known
    name: str  # the admin's name; empty if it is not known


def is_agents_place(place: str) -> bool:
    """Tell if an address or a scope (as text) is for agents' calls."""
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


def format_value(subject: Subject, value: RuleValue) -> str:
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
        case Opinion(model, effect):
            return f"{model} {effect}".strip()
        case Escalation(after, to):
            return f"{format_length(after.total_seconds())} {to}"
    if subject is Subject.NOTIFY and isinstance(value, tuple):
        return format_steps(step for step in value if isinstance(step, TimedStep))
    if subject is Subject.INSTRUCTIONS:
        return f"“{shorten(one_line(str(value)), _MAX_QUOTED_CHARS)}”"
    stored = store_value(subject, value)
    parts = stored if isinstance(stored, list) else [stored]
    return " ".join(str(part) for part in parts)


def store_value(subject: Subject, value: RuleValue) -> Any:
    """Return the value as JSON, for rows and the audit log."""
    match value:
        case timedelta():  # rows have a TTL as a number, and the other lengths of time as a list of one
            if subject is Subject.TTL:
                return value.total_seconds()
            return [value.total_seconds()]
        case Escalation(after, to):
            return [after.total_seconds(), to]
        case Opinion(model, effect):
            return [model, str(effect)]
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


_ENUM_SUBJECTS: Mapping[Subject, Callable[[str], RuleValue]] = {
    Subject.POLICY: Mode,
    Subject.RISK: Level,
    Subject.PLANS: Approver,
}
"""The types of values that are stored as one word."""
_COUNT_SUBJECTS: Mapping[Subject, Callable[..., RuleValue]] = {
    Subject.QUORUM: Quorum,
    Subject.ATTENTION: Attention,
}
"""The types of values that are stored as lists of whole numbers."""


def read_value(subject: Subject, stored: Any) -> RuleValue:
    """Read what `store_value` returned. Raises ValueError, TypeError or IndexError for anything else."""
    if subject in _ENUM_SUBJECTS:
        return _ENUM_SUBJECTS[subject](stored)
    if subject in _COUNT_SUBJECTS:
        return _COUNT_SUBJECTS[subject](*stored)
    match subject:
        case Subject.TTL:
            return timedelta(seconds=stored)
        case Subject.REMIND | Subject.UNDO:
            return timedelta(seconds=stored[0])
        case Subject.DECIDERS | Subject.NOTIFY:
            return tuple(_read_part(part) for part in stored)
        case Subject.ESCALATE:
            return Escalation(timedelta(seconds=stored[0]), stored[1])
        case Subject.OPINION:
            return Opinion(stored[0], OpinionEffect(stored[1]))
        case Subject.QUIET:
            return Hours(time.fromisoformat(stored[0]), time.fromisoformat(stored[1]))
        case Subject.DIGEST:
            return DailyDigest(time.fromisoformat(stored[0]), stored[1])
        case Subject.BUDGET:
            amount, currency, per, *extension = stored
            return Budget(amount, currency, Per(per), *extension)
        case Subject.ROLE:
            return GivenRole(stored[0], Role(stored[1]), EVERYWHERE_WORD in stored[2:])
        case _:
            return str(stored)
