"""A rule that an admin sets at run time.

A `Rule` has a subject (what it sets), a scope (where it counts), a pattern (for which tools), limits (an end,
hours, a condition on the call) and a value (``bot/domain/rule_values.py``). All rules together are the
rulebook (``bot/domain/rulebook.py``). A *grant*, by which people let similar calls run without asking, is no
rule (``bot/domain/similarity.py``), but rules limit it.

The rows are in ``bot/store/rules.py``.
"""

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache, partial
from typing import Any, NamedTuple

from bot.domain.budgets import Budget
from bot.domain.call_facts import CallFacts
from bot.domain.conditions import Condition
from bot.domain.people import is_group
from bot.domain.rule_values import (
    FOR_PERSON_OR_PLACE,
    DailyDigest,
    Escalation,
    Hours,
    Mode,
    RuleValue,
    Subject,
    format_value,
)
from bot.domain.steps import TimedStep, is_place
from bot.domain.times import format_moment, parse_weekdays

EVERYWHERE = "*"
ANY_TOOL = "*"  # the pattern of a rule about all tools, and of rules that are not about tools at all
MAX_INSTRUCTIONS_CHARS = 2_000
"""The most characters of the instructions for one place."""
_WILDCARD = re.compile(r"[*?\[]")  # the wildcards of `fnmatch`


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
            return (TimedStep(self.value.target, self.value.delay),)
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
        return tuple(
            step.target for step in self.steps if is_place(step.target) and not is_group(step.target)
        )

    @property
    def description(self) -> str:
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
