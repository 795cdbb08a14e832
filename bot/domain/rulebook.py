"""The rulebook: all rules that hold now, as one value.

`Rulebook` has a method for each subject, which looks at the rules that match a call. Where several match, the
strictest wins; `StrictestValue.rule` says which one that was.

Judging calls with the rulebook is in ``bot/domain/policy.py``; the rows are in ``bot/store/rules.py``.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Generic, NamedTuple, TypeVar

from bot.domain.call_facts import CallFacts, is_agents_place
from bot.domain.plans import Approver
from bot.domain.risks import Level
from bot.domain.rule_values import (
    MODES,
    STRICTNESS_BY_SUBJECT,
    Attention,
    Escalation,
    GivenRole,
    Mode,
    Opinion,
    Quorum,
    Subject,
)
from bot.domain.rules import ANY_TOOL, Rule, covers
from bot.domain.steps import TimedStep

T = TypeVar("T")
UNDO_FOR = timedelta(minutes=30)  # the time for Undo where no rule sets one
_MAX_CACHED_TOOLS = 4096  # pairs of a subject and a tool
# An agent here is a program that calls tools with a token, at a place of its own. A rule for all places was
# made with people in mind. So for agents such a rule may only make calls stricter.
_MAY_LOOSEN = frozenset({Subject.POLICY, Subject.RISK})
"""Subjects whose rules may loosen or tighten. For an agent only rules that name agents' places may loosen."""
_ONLY_LOOSEN = frozenset({Subject.GRANTS, Subject.FETCH})
"""Subjects whose rules only loosen. For an agent, such a rule counts only if it names agents' places."""


class StrictestValue(NamedTuple, Generic[T]):
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

    def _strictest(self, subject: Subject, call: CallFacts, default: Any) -> StrictestValue[Any]:
        """Return the strictest value among the matching rules; the default if none matches.

        At the place of an agent (a program with a token), unless a matching rule names agents, rules on the
        subjects in `_MAY_LOOSEN` count only if they are stricter than the default.
        """
        strictness = STRICTNESS_BY_SUBJECT[subject]
        rules = self.list_applying(subject, call)
        if subject in _MAY_LOOSEN and is_agents_place(call.place.address):
            has_rule_for_agents = any(is_agents_place(rule.scope) for rule in rules)
            if not has_rule_for_agents:
                rules = [rule for rule in rules if strictness(rule.value) > strictness(default)]
        best = max(rules, key=lambda rule: strictness(rule.value), default=None)
        found = StrictestValue(best.value, best) if best else StrictestValue(default, None)

        # `list_applying` leaves out rules whose condition is unknown. Such a rule counts if it is stricter
        # than the value so far. Without a value (no rule matches, no default) there is nothing to compare
        if subject in self._subjects_with_limits and found.value is not None:
            for rule in self._list_at(subject, call.place.address, call.tool_name):
                is_stricter = strictness(rule.value) > strictness(found.value)
                if is_stricter and rule.match_limits(call, self.zone) is None:
                    found = StrictestValue(rule.value, rule)
        return found

    def mode(self, call: CallFacts, default: Mode) -> StrictestValue[Mode]:
        """Return the strictest mode.

        A rule may forbid calls by a condition on a field that this tool lacks. Then it is unknown whether the
        rule forbids the call, so the mode is at least `Mode.WRITES`: writes ask.
        """
        found: StrictestValue[Mode] = self._strictest(Subject.POLICY, call, default)
        if not self.has_conditions or MODES.index(found.value) >= MODES.index(Mode.WRITES):
            return found
        for rule in self._list_at(Subject.POLICY, call.place.address, call.tool_name):
            is_unclear = rule.value is Mode.FORBID and rule.find_lacking_field(call.schema)
            if is_unclear and rule.limits and rule.limits.match_without_condition(call, self.zone):
                return StrictestValue(Mode.WRITES, rule)
        return found

    def level(self, call: CallFacts) -> StrictestValue[Level]:
        """Return a call's risk level. Rules replace the tool's own; of several the highest counts."""
        return self._strictest(Subject.RISK, call, call.risk.level)

    def ttl(self, call: CallFacts, default: timedelta) -> StrictestValue[timedelta]:
        """Return the shortest lifetime among the matching rules."""
        return self._strictest(Subject.TTL, call, default)

    def quorum(self, call: CallFacts) -> Quorum:
        found: StrictestValue[Quorum] = self._strictest(Subject.QUORUM, call, Quorum())
        return found.value

    def deciders(self, call: CallFacts, default: tuple[str, ...]) -> StrictestValue[tuple[str, ...]]:
        """Return the narrowest deciders among the matching rules.

        From wide to narrow: anyone there, the requester, roles, accounts.
        """
        return self._strictest(Subject.DECIDERS, call, default)

    def remind_every(self, call: CallFacts) -> timedelta | None:
        """Return the shortest interval among the matching rules."""
        found: StrictestValue[timedelta | None] = self._strictest(Subject.REMIND, call, None)
        return found.value

    def escalation(self, call: CallFacts) -> Escalation | None:
        """Return the soonest escalation among the matching rules."""
        found: StrictestValue[Escalation | None] = self._strictest(Subject.ESCALATE, call, None)
        return found.value

    def steps(self, call: CallFacts) -> tuple[TimedStep, ...]:
        """Return the steps of the matching rule whose first step comes soonest."""
        found: StrictestValue[tuple[TimedStep, ...] | None] = self._strictest(Subject.NOTIFY, call, None)
        return found.value or ()

    def opinion(self, call: CallFacts) -> Opinion | None:
        """Return the second opinion that a call needs, None if it needs none: of several, the strictest."""
        opinions = [
            rule.value
            for rule in self.list_applying(Subject.OPINION, call)
            if isinstance(rule.value, Opinion)
        ]
        return max(opinions, key=STRICTNESS_BY_SUBJECT[Subject.OPINION], default=None)

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

    def plans(self, place: str, default: Approver) -> StrictestValue[Approver]:
        """Return the approver of plans at a place (an address as text): of several, the strictest."""
        rules = self._list_at(Subject.PLANS, place, ANY_TOOL)
        best = max(rules, key=lambda rule: STRICTNESS_BY_SUBJECT[Subject.PLANS](rule.value), default=None)
        return StrictestValue(default, None) if best is None else StrictestValue(best.value, best)  # type: ignore[arg-type]

    def grants_reach_destructive(self, call: CallFacts) -> bool:
        return any(rule.value == "destructive" for rule in self.list_applying(Subject.GRANTS, call))

    def hosts(self, call: CallFacts) -> list[str]:
        """Return the hosts whose pages are read without asking, with * and ?."""
        return [str(rule.value) for rule in self.list_applying(Subject.FETCH, call)]

    def undo(self, call: CallFacts) -> timedelta:
        """Return the time for Undo; the shortest counts."""
        found: StrictestValue[timedelta] = self._strictest(Subject.UNDO, call, UNDO_FOR)
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
        strictness = STRICTNESS_BY_SUBJECT.get(rule.subject)
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
