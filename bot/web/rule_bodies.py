"""Rules as typed bodies of requests. Each becomes the text of ``/approvals``, so both ways are checked alike.

A body has a ``subject``, such as ``quorum``; the fields of its class, in the order in which the command takes
them; ``tools`` and ``place``, to which the rule is limited; and for a rule about calls further limits. So
``{"subject": "quorum", "needed": 2, "tools": "deploy*"}`` becomes ``quorum 2 for deploy*``.
"""

from typing import Annotated, Literal

from pydantic import Field

from bot.domain.budgets import Per
from bot.domain.conditions.parser import MAX_CONDITION_CHARS
from bot.domain.people import Role
from bot.domain.plans import Approver
from bot.domain.risks import Level
from bot.domain.rule_values import Mode, Subject
from bot.domain.rules import MAX_INSTRUCTIONS_CHARS
from bot.domain.steps import MAX_STEPS
from bot.web.body import Body

Word = Annotated[str, Field(pattern=r"^[^\s]+$", max_length=200)]
Seconds = Annotated[int, Field(ge=10, le=90 * 86400)]  # up to 90 days
ClockTime = Annotated[str, Field(pattern=r"^[0-2][0-9]:[0-5][0-9]$")]
Hour = Annotated[ClockTime, Field(description="HH:MM, on the team's clock")]

# such as: in 3d; friday 18:00; a date, with or without a time and its zone
_UNTIL_PATTERN = r"^(in )?\S{1,40}( [0-9]{1,2}:[0-9]{2}([+-][0-9]{2}:[0-9]{2})?)?$"
_SUBJECTS = {"approvers": Subject.DECIDERS}  # the subjects that the API names differently


def _format_value(name: str, value: object) -> str:
    """Return the value of a field as an admin types it. The field's name says which form the value has."""
    if name == "seconds":
        if value == "off":
            return value
        return f"{value}s"
    if name == "per":
        return f"a {value}"
    if isinstance(value, float):  # without an exponent: 0.00001, not 1e-05
        return f"{value:.6f}".rstrip("0").rstrip(".")
    if isinstance(value, list) and name == "steps":
        return ", ".join(step.command_text for step in value)
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value)


class _Rule(Body):
    """The fields of every rule: the tools and the place to which it is limited."""

    tools: Annotated[Word, Field(description="a name, with * and ?")] = "*"
    place: Annotated[Word, Field(description="where it holds, such as slack:T1/C2 or slack:*")] = "*"

    @property
    def command_text(self) -> str:
        """The rule as an admin types it: the subject, the values of its own fields, then all limits."""
        limit_fields = (*_Rule.model_fields, *_CallRule.model_fields)
        # in the order in which the class of the rule declares them, which is that of the command
        values = {name: value for name, value in self if name not in limit_fields and value is not None}
        subject = str(values.pop("subject"))
        words = [Subject(_SUBJECTS.get(subject, subject)).command_words]
        words += [_format_value(name, value) for name, value in values.items()]
        if self.tools != "*":
            words.append(f"for {self.tools}")
        if self.place != "*":
            words.append(f"in {self.place}")
        return " ".join(words + self.limits)

    @property
    def limits(self) -> list[str]:
        """The limits of the rule besides its tools and its place, as an admin types them."""
        return []


class _CallRule(_Rule):
    """A rule about calls, which may be narrowed further. All times are on the team's clock."""

    by: Annotated[Word | None, Field(description="only what the person with this account asks for")] = None
    until: Annotated[str | None, Field(pattern=_UNTIL_PATTERN, description="when it ends by itself")] = None
    between: Annotated[
        tuple[ClockTime, ClockTime] | None, Field(description="the hours in which it holds")
    ] = None
    on: Annotated[
        str | None,
        Field(
            max_length=100,
            pattern=r"^[A-Za-z]+((,| and) [A-Za-z]+)*$",
            description="the days on which it holds, such as weekdays, or monday and thursday",
        ),
    ] = None
    where: Annotated[
        str | None,
        Field(
            max_length=MAX_CONDITION_CHARS,
            description="a condition on the arguments, such as amount > 100 and currency in (EUR, USD)",
        ),
    ] = None

    @property
    def limits(self) -> list[str]:
        words = []
        if self.by:
            words.append(f"by {self.by}")
        if self.until:
            words.append(f"until {self.until}")
        if self.between:
            words.append(f"between {self.between[0]} and {self.between[1]}")
        if self.on:
            words.append(f"on {self.on}")
        if self.where:
            words.append(f"where {self.where}")
        return words


class PolicyRule(_CallRule):
    """The calls that need approval."""

    subject: Literal["policy"]
    mode: Mode


class RiskRule(_CallRule):
    """The risk of a tool's calls, whatever the tool itself says."""

    subject: Literal["risk"]
    level: Level


class ApproversRule(_CallRule):
    """The people who may decide.

    ``who``: requester, approver, admin, member, accounts (slack:T1/U7) or user groups (slack:T1/S2).
    """

    subject: Literal["approvers"]
    who: Annotated[list[Word], Field(min_length=1, max_length=50)]


class QuorumRule(_CallRule):
    """The number of people who must approve.

    ``of``: the number of deciders; the proposal is declined once too few of them are left.
    """

    subject: Literal["quorum"]
    needed: Annotated[int, Field(ge=1, le=20)]
    of: Annotated[int | None, Field(ge=1, le=20)] = None


class PlansRule(_Rule):
    """The approver of teammates' plans."""

    subject: Literal["plans"]
    approver: Approver


class TtlRule(_CallRule):
    """The time that a proposal waits for a decision before it expires."""

    subject: Literal["ttl"]
    seconds: Seconds


class RemindRule(_CallRule):
    """The time between two reminders while no one decides."""

    subject: Literal["remind"]
    seconds: Seconds


class EscalateRule(_CallRule):
    """The further place where a card is posted, and may be decided, if no one has decided in time."""

    subject: Literal["escalate"]
    seconds: Seconds
    to: Word


class NotifyStep(Body):
    """One step of `NotifyRule`: a target, and the time after which it is notified.

    ``to``: ``reminder``, a notifier such as ``push`` or ``page``, a place, an account or a group.
    """

    to: Word
    seconds: Seconds

    @property
    def command_text(self) -> str:
        return f"{self.to} after {self.seconds}s"


class NotifyRule(_CallRule):
    """The steps by which people are notified while no one decides, one after another."""

    subject: Literal["notify"]
    steps: Annotated[list[NotifyStep], Field(min_length=1, max_length=MAX_STEPS)]


class QuietRule(_Rule):
    """The hours in which no one is reminded."""

    subject: Literal["quiet"]
    start: Hour
    end: Hour


class RouteRule(_CallRule):
    """A further place where cards are posted."""

    subject: Literal["route"]
    to: Word


class DigestRule(_Rule):
    """The time and the place of a daily digest of open proposals."""

    subject: Literal["digest"]
    at: Hour
    to: Word


class RoleRule(_Rule):
    """A role that an account gets."""

    subject: Literal["role"]
    account: Word
    role: Role


class GrantsRule(_CallRule):
    """Grants may let calls run that cannot be undone."""

    subject: Literal["grants"]
    allow: Literal["destructive"]


class FetchRule(_CallRule):
    """Every page of ``host`` (with ``*.`` also of those below it) is read without asking."""

    subject: Literal["fetch"]
    host: Word


class OutsidersRule(_Rule):
    """Guests and people of another company may write to Nod in ``place``."""

    subject: Literal["outsiders"]
    allow: Literal["talk"]


class UndoRule(_CallRule):
    """For how long what was done can be undone: seconds, or ``off``."""

    subject: Literal["undo"]
    seconds: Seconds | Literal["off"]


class BatchRule(_Rule):
    """When a row of a batch fails, the rows that have not begun are withdrawn."""

    subject: Literal["batch"]
    failed: Literal["stop"]


class OpinionRule(_CallRule):
    """The model that gives cards a second opinion, and which of its answers ask for one more approval."""

    subject: Literal["opinion"]
    model: Word
    raising: Literal["raises", "raises, or is missing"] | None = None


class AttentionRule(_Rule):
    """The most cards an hour that reach a person; ``place`` may be an account or a user group.

    Further cards that are not urgent come together at the next half hour.
    """

    subject: Literal["attention"]
    cards: Annotated[int, Field(ge=1, le=1000)]


class InstructionsRule(_Rule):
    """Instructions to the agent in ``place``, in addition to those in the settings."""

    subject: Literal["instructions"]
    text: Annotated[str, Field(min_length=1, max_length=MAX_INSTRUCTIONS_CHARS)]

    @property
    def command_text(self) -> str:
        return f"instructions in {self.place} {self.text}"


class BudgetRule(_Rule):
    """What the model may cost, in the currency of the prices; ``place`` may be an account, too."""

    subject: Literal["budget"]
    amount: Annotated[float, Field(gt=0, le=1_000_000)]
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    per: Per


class ModelRule(_Rule):
    """Which language model answers in ``place``, which may be an account, too."""

    subject: Literal["model"]
    model: Word


AnyRule = Annotated[
    PolicyRule
    | RiskRule
    | ApproversRule
    | QuorumRule
    | PlansRule
    | TtlRule
    | RemindRule
    | EscalateRule
    | NotifyRule
    | QuietRule
    | RouteRule
    | DigestRule
    | RoleRule
    | GrantsRule
    | FetchRule
    | OutsidersRule
    | UndoRule
    | BatchRule
    | BudgetRule
    | ModelRule
    | OpinionRule
    | AttentionRule
    | InstructionsRule,
    Field(discriminator="subject"),
]


class Pausing(Body):
    """Whether executions and clocks stop."""

    paused: bool
