"""The rules that admins set at run time, as one value: the rulebook.

A rule has a subject, a scope (where), a pattern (which tools) and a value. Where several rules of one subject
match, the strictest wins; `Found.rule` says which one that was. Judging calls with it is in
``bot/domain/policy.py``; the rows are in ``bot/store/rules.py``.
"""

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta, tzinfo
from enum import StrEnum
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

from bot.domain.people import Role
from bot.domain.plans import APPROVERS, Approver
from bot.domain.proposals import Level, Risk
from bot.domain.times import written

T = TypeVar("T")

EVERYWHERE = "*"
UNDO_FOR = timedelta(minutes=30)  # where no rule says how long
EVERYWHERE_WORD = "everywhere"  # ends a role that counts in every workspace
_MEMO = 4096  # subjects times tools for which a book keeps what it found


class Subject(StrEnum):
    """What a rule is about, and the type of its value."""

    POLICY = "policy"  # Mode
    RISK = "risk"  # Level: what this tool's calls are, whatever the tool says
    TTL = "ttl"  # timedelta: how long a proposal waits
    QUORUM = "quorum"  # Quorum
    DECIDERS = "deciders"  # tuple of: requester, admin, approver, member, accounts, or user groups
    ROUTE = "route"  # str: an address where cards are posted too
    ESCALATE = "escalate"  # Escalation
    REMIND = "remind"  # timedelta between reminders
    QUIET = "quiet"  # QuietHours
    DIGEST = "digest"  # DailyDigest
    ROLE = "role"  # GivenRole
    PLANS = "plans"  # Approver of teammates' plans
    GRANTS = "grants"  # "destructive": grants may reach destructive calls here
    FETCH = "fetch"  # str: a host, with * and ?, whose every page is read without asking
    OUTSIDERS = "outsiders"  # "talk": guests and people of another company are heard here
    UNDO = "undo"  # timedelta: how long what was done can be undone; 0: it can't

    @property
    def typed(self) -> str:
        """The word of `/approvals` that sets it."""
        return {"deciders": "approvers", "role": "roles add", "grants": "grants allow"}.get(self, self)


class Mode(StrEnum):
    """What needs approval."""

    ALWAYS = "always"  # every tool, reads too
    WRITES = "writes"  # every tool that isn't read-only
    DESTRUCTIVE = "destructive"  # what cannot be undone, or might not be; other writes run and are reported
    NEVER = "never"  # nothing; an admin's own decision, warned about in the conversation

    def asks(self, risk: Risk) -> bool:
        match self:
            case Mode.ALWAYS:
                return True
            case Mode.WRITES:
                return risk.writes
            case Mode.DESTRUCTIVE:
                return risk.level is Level.DESTRUCTIVE or (risk.writes and not risk.vouched)
            case Mode.NEVER:
                return False


STRICTNESS = (Mode.NEVER, Mode.DESTRUCTIVE, Mode.WRITES, Mode.ALWAYS)
"""Policy modes from the loosest to the strictest."""

LEVELS = (Level.READ, Level.WRITE, Level.DESTRUCTIVE)


class Quorum(NamedTuple):
    """Approvals needed; ``of`` 0 when one decline ends it."""

    needed: int = 1
    of: int = 0


class Escalation(NamedTuple):
    """Where a card is posted too when no one has decided for that long: an address as text."""

    after: timedelta
    to: str


class QuietHours(NamedTuple):
    """From when to when, in UTC, no one is reminded; they may go over midnight."""

    begin: time
    end: time

    def cover(self, clock: time) -> bool:
        if self.begin <= self.end:
            return self.begin <= clock < self.end
        return clock >= self.begin or clock < self.end


class DailyDigest(NamedTuple):
    """When, in UTC, and at which address (as text) people are told what is open."""

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
    | QuietHours
    | DailyDigest
    | GivenRole
    | tuple[str, ...]
    | str
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. ``scope`` is `EVERYWHERE`, ``slack:*``, or an address of which a conversation is a part."""

    id: int
    subject: Subject
    scope: str
    pattern: str  # of tool names, with * and ?
    value: RuleValue

    def concerns(self, tool_name: str) -> bool:
        return self.pattern == EVERYWHERE or _compiled(self.pattern).match(tool_name) is not None

    @property
    def posts_at(self) -> str:
        """The address, as text, where it has Nod post; empty where it names none."""
        if isinstance(self.value, Escalation | DailyDigest):
            return self.value.to
        return str(self.value) if self.subject is Subject.ROUTE else ""

    @property
    def words(self) -> str:
        """For example ``rule 7: policy always for delete_* in slack:T1/C2``."""
        return f"rule {self.id}: {self.said}"

    @property
    def said(self) -> str:
        """As an admin says it after ``/approvals``."""
        tools = "" if self.pattern == EVERYWHERE else f" for {self.pattern}"
        where = "" if self.scope == EVERYWHERE else f" in {self.scope}"
        return f"{self.subject.typed} {value_words(self.subject, self.value)}{tools}{where}"


class Found(NamedTuple, Generic[T]):
    """What the strictest matching rule says, and that rule; ``rule`` None says: the default."""

    value: T
    rule: Rule | None


@dataclass(frozen=True, slots=True)
class Rulebook:
    """All current rules, at one version. ``paused``: nothing executes, clocks stand."""

    version: int = 0
    rules: tuple[Rule, ...] = ()
    paused: bool = False
    zone: tzinfo = UTC
    _by_subject: Mapping[Subject, tuple[Rule, ...]] = field(init=False, compare=False, repr=False)
    _by_tool: dict[tuple[Subject, str], tuple[Rule, ...]] = field(
        init=False, compare=False, repr=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        grouped: dict[Subject, list[Rule]] = {}
        for rule in self.rules:
            grouped.setdefault(rule.subject, []).append(rule)
        object.__setattr__(self, "_by_subject", {k: tuple(v) for k, v in grouped.items()})

    def about(self, subject: Subject) -> Sequence[Rule]:
        return self._by_subject.get(subject, ())

    def matching(self, subject: Subject, place: str, tool_name: str) -> list[Rule]:
        """Rules about a tool at a place (an address as text), in the order they were set."""
        rules = self._by_tool.get((subject, tool_name))
        if rules is None:
            rules = tuple(rule for rule in self.about(subject) if rule.concerns(tool_name))
            if len(self._by_tool) < _MEMO:
                self._by_tool[subject, tool_name] = rules
        return [rule for rule in rules if covers(rule.scope, place)]

    def strictest(
        self, subject: Subject, place: str, tool_name: str, default: Any, strictness: Callable[[Any], Any]
    ) -> Found[Any]:
        """The value with the highest strictness among the matching rules, or the default where none does."""
        rules = self.matching(subject, place, tool_name)
        if not rules:
            return Found(default, None)
        best = max(rules, key=lambda rule: strictness(rule.value))
        return Found(best.value, best)

    def mode(self, place: str, tool_name: str, default: Mode) -> Found[Mode]:
        return self.strictest(Subject.POLICY, place, tool_name, default, STRICTNESS.index)

    def level(self, place: str, tool_name: str, default: Level) -> Found[Level]:
        """An override replaces what the tool says of itself; of several overrides the highest counts."""
        return self.strictest(Subject.RISK, place, tool_name, default, LEVELS.index)

    def ttl(self, place: str, tool_name: str, default: timedelta) -> Found[timedelta]:
        """The shortest counts."""
        return self.strictest(Subject.TTL, place, tool_name, default, lambda length: -length)

    def quorum(self, place: str, tool_name: str) -> Quorum:
        found: Found[Quorum] = self.strictest(
            Subject.QUORUM, place, tool_name, Quorum(), lambda value: value.needed
        )
        return found.value

    def deciders(self, place: str, tool_name: str) -> Found[tuple[str, ...] | None]:
        """The narrowest circle counts; from wide to narrow: anyone there, the requester, roles, accounts."""
        return self.strictest(Subject.DECIDERS, place, tool_name, None, _narrowness)

    def remind_every(self, place: str, tool_name: str) -> timedelta | None:
        """The shortest counts."""
        found: Found[timedelta | None] = self.strictest(
            Subject.REMIND, place, tool_name, None, lambda length: -length
        )
        return found.value

    def escalation(self, place: str, tool_name: str) -> Escalation | None:
        """The soonest counts."""
        found: Found[Escalation | None] = self.strictest(
            Subject.ESCALATE, place, tool_name, None, lambda value: -value.after
        )
        return found.value

    def routes(self, place: str, tool_name: str) -> list[str]:
        return list(dict.fromkeys(str(rule.value) for rule in self.matching(Subject.ROUTE, place, tool_name)))

    def plans(self, place: str, default: Approver) -> Found[Approver]:
        """Who approves plans."""
        return self.strictest(Subject.PLANS, place, EVERYWHERE, default, APPROVERS.index)

    def grants_reach_destructive(self, place: str, tool_name: str) -> bool:
        return any(r.value == "destructive" for r in self.matching(Subject.GRANTS, place, tool_name))

    def hosts(self, place: str, tool_name: str) -> list[str]:
        """Hosts of which every page is read without asking, with * and ?."""
        return [str(rule.value) for rule in self.matching(Subject.FETCH, place, tool_name)]

    def undo(self, place: str, tool_name: str) -> timedelta:
        """How long what was done can be undone; the shortest counts."""
        found: Found[timedelta] = self.strictest(
            Subject.UNDO, place, tool_name, UNDO_FOR, lambda length: -length
        )
        return found.value

    def hears_outsiders(self, place: str) -> bool:
        return bool(self.matching(Subject.OUTSIDERS, place, EVERYWHERE))

    def accounts_with(self, role: str) -> dict[str, bool]:
        """Accounts with a role, and whether each has it in every workspace."""
        found: dict[str, bool] = {}
        for each in (rule.value for rule in self.about(Subject.ROLE)):
            if isinstance(each, GivenRole) and each.role == role:
                found[each.account] = each.everywhere or found.get(each.account, False)
        return found


class Pause(NamedTuple):
    """Since when nothing runs, and who paused it: an account as text, and its name; both may be empty."""

    since: datetime
    by: str
    name: str


def _narrowness(words: Sequence[str]) -> tuple[int, ...]:
    """Compares circles: first by the widest word in them, then by how many words let people in."""
    roles = sum(":" not in word for word in words)
    return (-("member" in words), -("requester" in words), -roles, -len(words))


def covers(scope: str, place: str) -> bool:
    """Whether a place lies in a scope: the same address, or a part of it below a slash."""
    if scope in (EVERYWHERE, place):
        return True
    if scope.endswith(":*"):
        return place.startswith(scope[:-1])
    return place.startswith(f"{scope}/")


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern))


def value_words(subject: Subject, value: RuleValue) -> str:
    """The value as an admin would write it."""
    match value:
        case Quorum(needed, of):
            return f"{needed} of {of}" if of else str(needed)
        case timedelta():
            return written(value.total_seconds()) if value else "off"
        case Escalation(after, to):
            return f"{written(after.total_seconds())} {to}"
    return " ".join(map(str, _parts(stored(subject, value))))


def _parts(kept: Any) -> list[Any]:
    return kept if isinstance(kept, list) else [kept]


def stored(subject: Subject, value: RuleValue) -> Any:
    """The value as rows and the record keep it: JSON."""
    match value:
        case timedelta():
            return value.total_seconds() if subject is Subject.TTL else [value.total_seconds()]
        case Escalation(after, to):
            return [after.total_seconds(), to]
        case QuietHours(begin, end):
            return [f"{begin:%H:%M}", f"{end:%H:%M}"]
        case DailyDigest(at, to):
            return [f"{at:%H:%M}", to]
        case GivenRole(account, role, everywhere):
            return [account, str(role), *([EVERYWHERE_WORD] if everywhere else [])]
        case tuple():
            return list(value)
    return str(value)


def value_of(subject: Subject, kept: Any) -> RuleValue:
    """What `stored` wrote; raises ValueError, TypeError or IndexError for anything else."""
    match subject:
        case Subject.POLICY:
            return Mode(kept)
        case Subject.RISK:
            return Level(kept)
        case Subject.PLANS:
            return Approver(kept)
        case Subject.TTL:
            return timedelta(seconds=kept)
        case Subject.REMIND | Subject.UNDO:
            return timedelta(seconds=kept[0])
        case Subject.QUORUM:
            return Quorum(*kept)
        case Subject.DECIDERS:
            return tuple(kept)
        case Subject.ESCALATE:
            return Escalation(timedelta(seconds=kept[0]), kept[1])
        case Subject.QUIET:
            return QuietHours(time.fromisoformat(kept[0]), time.fromisoformat(kept[1]))
        case Subject.DIGEST:
            return DailyDigest(time.fromisoformat(kept[0]), kept[1])
        case Subject.ROLE:
            return GivenRole(kept[0], Role(kept[1]), EVERYWHERE_WORD in kept[2:])
        case Subject.ROUTE | Subject.GRANTS | Subject.FETCH | Subject.OUTSIDERS:
            return str(kept)
