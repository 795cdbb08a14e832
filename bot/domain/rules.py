"""The rules that admins set at run time, as one value: the rulebook.

A rule has a subject, a scope (where), a pattern (which tools) and a value. Where several rules of one subject
match, the strictest wins; `Found.rule` says which one that was. Judging calls with it is in
``bot/domain/policy.py``; the rows are in ``bot/store/rules.py``.
"""

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

from bot.domain.plans import APPROVERS
from bot.domain.risk import Level
from bot.domain.times import written

EVERYWHERE = "*"
EVERYWHERE_WORD = "everywhere"  # ends a role that counts in every workspace
_MEMO = 4096  # subjects times tools for which a book keeps what it found


class Subject(StrEnum):
    """What a rule is about, and the shape of its value."""

    POLICY = "policy"  # a Mode's name
    RISK = "risk"  # a Level's name: what this tool's calls are, whatever the tool says
    TTL = "ttl"  # seconds a proposal waits
    QUORUM = "quorum"  # [needed, of]: approvals needed; ``of`` 0 when one decline ends it
    DECIDERS = "deciders"  # list of: requester, admin, approver, member, or accounts
    ROUTE = "route"  # an address where cards are posted too
    ESCALATE = "escalate"  # [seconds, address]: posted there when no one has decided for that long
    REMIND = "remind"  # [seconds] between reminders
    QUIET = "quiet"  # [from, to] as HH:MM in UTC: no reminders then
    DIGEST = "digest"  # [HH:MM in UTC, address]
    ROLE = "role"  # [account, role], and "everywhere" where it counts in every workspace
    PLANS = "plans"  # who approves teammates' plans: an `Approver`'s name
    GRANTS = "grants"  # "destructive": grants may reach destructive calls here

    @property
    def typed(self) -> str:
        """The word of `/approvals` that sets it."""
        return {"deciders": "approvers", "role": "roles add", "grants": "grants allow"}.get(self, self)


STRICTNESS = ("never", "destructive", "writes", "always")
"""Policy modes from the loosest to the strictest."""

LEVELS = (Level.READ, Level.WRITE, Level.DESTRUCTIVE)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. ``scope`` is `EVERYWHERE`, ``slack:*``, or an address of which a conversation is a part."""

    id: int
    subject: Subject
    scope: str
    pattern: str  # of tool names, with * and ?
    value: Any

    def concerns(self, tool_name: str) -> bool:
        return self.pattern == EVERYWHERE or _compiled(self.pattern).match(tool_name) is not None

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


class Found(NamedTuple):
    """What the strictest matching rule says, and that rule; ``rule`` None says: the default."""

    value: Any
    rule: Rule | None


@dataclass(frozen=True, slots=True)
class Rulebook:
    """All current rules, at one version. ``paused``: nothing executes, clocks stand."""

    version: int = 0
    rules: tuple[Rule, ...] = ()
    paused: bool = False
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
    ) -> Found:
        """The value with the highest strictness among the matching rules, or the default where none does."""
        rules = self.matching(subject, place, tool_name)
        if not rules:
            return Found(default, None)
        best = max(rules, key=lambda rule: strictness(rule.value))
        return Found(best.value, best)

    def mode(self, place: str, tool_name: str, default: str) -> Found:
        return self.strictest(Subject.POLICY, place, tool_name, default, STRICTNESS.index)

    def level(self, place: str, tool_name: str, default: Level) -> Found:
        """An override replaces what the tool says of itself; of several overrides the highest counts."""
        found = self.strictest(Subject.RISK, place, tool_name, default, lambda v: LEVELS.index(Level(v)))
        return Found(Level(found.value), found.rule)

    def ttl(self, place: str, tool_name: str, default: float) -> Found:
        """Seconds; the shortest counts."""
        return self.strictest(Subject.TTL, place, tool_name, default, lambda seconds: -seconds)

    def quorum(self, place: str, tool_name: str) -> Found:
        return self.strictest(Subject.QUORUM, place, tool_name, [1, 0], lambda value: value[0])

    def deciders(self, place: str, tool_name: str) -> Found:
        """The narrowest circle counts; from wide to narrow: anyone there, the requester, roles, accounts."""
        return self.strictest(Subject.DECIDERS, place, tool_name, None, _narrowness)

    def soonest(self, subject: Subject, place: str, tool_name: str) -> list[Any] | None:
        """Of rules whose value begins with seconds, the shortest."""
        return self.strictest(subject, place, tool_name, None, lambda value: -value[0]).value  # type: ignore[no-any-return]

    def routes(self, place: str, tool_name: str) -> list[str]:
        return list(dict.fromkeys(rule.value for rule in self.matching(Subject.ROUTE, place, tool_name)))

    def plans(self, place: str, default: str) -> Found:
        """Who approves plans."""
        return self.strictest(Subject.PLANS, place, EVERYWHERE, default, APPROVERS.index)

    def grants_reach_destructive(self, place: str, tool_name: str) -> bool:
        return any(r.value == "destructive" for r in self.matching(Subject.GRANTS, place, tool_name))

    def accounts_with(self, role: str, *, everywhere: bool = False) -> frozenset[str]:
        """Accounts with a role; ``everywhere``: only those that have it in every workspace."""
        rules = (r for r in self.about(Subject.ROLE) if r.value[1] == role)
        return frozenset(r.value[0] for r in rules if not everywhere or EVERYWHERE_WORD in r.value[2:])


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


def value_words(subject: Subject, value: Any) -> str:
    """The value as an admin would write it."""
    parts = list(value) if isinstance(value, list | tuple) else [value]
    match subject:
        case Subject.QUORUM:
            return f"{parts[0]} of {parts[1]}" if parts[1] else str(parts[0])
        case Subject.TTL | Subject.REMIND | Subject.ESCALATE:
            parts[0] = written(parts[0])
    return " ".join(map(str, parts))
