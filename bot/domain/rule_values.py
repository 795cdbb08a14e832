"""The subjects of rules, and the values that rules give them.

A `Subject` is what a rule sets, such as the quorum (the number of approvals that are needed). Each subject
has its own type of value. Of several values the strictest counts (`STRICTNESS_BY_SUBJECT`). A value is
written as text by `format_value`, and as JSON by `store_value`, which `read_value` reads back.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import time, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from bot.domain.budgets import Budget, Per
from bot.domain.people import Role
from bot.domain.plans import APPROVERS_BY_STRICTNESS, Approver
from bot.domain.risks import LEVELS, Level, Risk
from bot.domain.steps import TimedStep, format_steps
from bot.domain.text import one_line, shorten
from bot.domain.times import format_length

EVERYWHERE_WORD = "everywhere"  # the last word of a role that counts in every workspace
_MAX_QUOTED_CHARS = 60  # the most characters of instructions in a list of rules


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

    delay: timedelta
    target: str  # an address as text


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


def _measure_narrowness(words: Sequence[str]) -> tuple[int, ...]:
    """Return a sort key for the deciders that a rule names: the fewer people may decide, the larger it is.

    Members of the chat count first, then the requester, then the number of roles, then of all words.
    """
    has_members, has_requester = int("member" in words), int("requester" in words)
    role_count = sum(":" not in word for word in words)  # accounts and groups have a colon
    return -has_members, -has_requester, -role_count, -len(words)


STRICTNESS_BY_SUBJECT: Mapping[Subject, Callable[[Any], Any]] = {
    Subject.POLICY: MODES.index,
    Subject.RISK: LEVELS.index,
    Subject.TTL: lambda length: -length,
    Subject.QUORUM: lambda value: value.needed,
    Subject.DECIDERS: _measure_narrowness,
    Subject.REMIND: lambda length: -length,
    Subject.ESCALATE: lambda value: -value.delay,
    Subject.NOTIFY: lambda steps: -min(step.delay for step in steps),
    Subject.OPINION: lambda value: list(OpinionEffect).index(value.effect),
    Subject.PLANS: APPROVERS_BY_STRICTNESS.index,
    Subject.ATTENTION: lambda value: -value.cards,
    Subject.UNDO: lambda length: -length,
}
"""The function that measures how strict a value is, by subject: of several rules the largest counts."""


def format_value(subject: Subject, value: RuleValue) -> str:
    """Return the value as an admin would write it."""
    match value:
        case Budget():
            return value.text
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
        return [part.target, part.delay.total_seconds()]
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
