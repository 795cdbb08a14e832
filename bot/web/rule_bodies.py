"""Rules as typed bodies. Each says in the words of ``/approvals`` what it sets, so both are judged alike."""

from typing import Annotated, Literal

from pydantic import Field

from bot.domain.people import Role
from bot.domain.plans import Approver
from bot.domain.proposals import Level
from bot.domain.rules import Mode, Subject
from bot.web.body import Body

Word = Annotated[str, Field(pattern=r"^[^\s]+$", max_length=200)]
Seconds = Annotated[int, Field(ge=10, le=90 * 86400)]
Hour = Annotated[str, Field(pattern=r"^[0-2][0-9]:[0-5][0-9]$", description="HH:MM, UTC")]


_SUBJECTS = {"approvers": Subject.DECIDERS}  # where the API has a word of its own


def _said(name: str, value: object) -> str:
    if name == "seconds":
        return value if value == "off" else f"{value}s"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


class _Rule(Body):
    """``tools``: a name, with * and ?. ``place``: where it holds, such as slack:T1/C2 or slack:*."""

    tools: Word = "*"
    place: Word = "*"

    @property
    def words(self) -> str:
        """As an admin would say it: the subject, each value in its order, and what the rule is limited to."""
        values = {name: value for name, value in self if name not in _Rule.model_fields and value is not None}
        subject = str(values.pop("subject"))
        said = [Subject(_SUBJECTS.get(subject, subject)).typed]
        said += [_said(name, value) for name, value in values.items()]
        said += [f"for {self.tools}"] if self.tools != "*" else []
        said += [f"in {self.place}"] if self.place != "*" else []
        return " ".join(said)


class PolicyRule(_Rule):
    subject: Literal["policy"]
    mode: Mode


class RiskRule(_Rule):
    subject: Literal["risk"]
    level: Level


class ApproversRule(_Rule):
    """``who``: requester, approver, admin, member, accounts (slack:T1/U7) or user groups (slack:T1/S2)."""

    subject: Literal["approvers"]
    who: Annotated[list[Word], Field(min_length=1, max_length=50)]


class QuorumRule(_Rule):
    subject: Literal["quorum"]
    needed: Annotated[int, Field(ge=1, le=20)]
    of: Annotated[int | None, Field(ge=1, le=20)] = None


class PlansRule(_Rule):
    subject: Literal["plans"]
    approver: Approver


class TtlRule(_Rule):
    subject: Literal["ttl"]
    seconds: Seconds


class RemindRule(_Rule):
    subject: Literal["remind"]
    seconds: Seconds


class EscalateRule(_Rule):
    subject: Literal["escalate"]
    seconds: Seconds
    to: Word


class QuietRule(_Rule):
    subject: Literal["quiet"]
    start: Hour
    end: Hour


class RouteRule(_Rule):
    subject: Literal["route"]
    to: Word


class DigestRule(_Rule):
    subject: Literal["digest"]
    at: Hour
    to: Word


class RoleRule(_Rule):
    subject: Literal["role"]
    account: Word
    role: Role


class GrantsRule(_Rule):
    """Grants may reach what cannot be undone."""

    subject: Literal["grants"]
    allow: Literal["destructive"]


class FetchRule(_Rule):
    """Every page of ``host`` (with ``*.`` also of those below it) is read without asking."""

    subject: Literal["fetch"]
    host: Word


class OutsidersRule(_Rule):
    """Guests and people of another company are heard there."""

    subject: Literal["outsiders"]
    allow: Literal["talk"]


class UndoRule(_Rule):
    """For how long what was done can be undone: seconds, or ``off``."""

    subject: Literal["undo"]
    seconds: Seconds | Literal["off"]


class BatchRule(_Rule):
    """When a row of a batch fails, those that have not begun are withdrawn."""

    subject: Literal["batch"]
    failed: Literal["stop"]


AnyRule = Annotated[
    PolicyRule
    | RiskRule
    | ApproversRule
    | QuorumRule
    | PlansRule
    | TtlRule
    | RemindRule
    | EscalateRule
    | QuietRule
    | RouteRule
    | DigestRule
    | RoleRule
    | GrantsRule
    | FetchRule
    | OutsidersRule
    | UndoRule
    | BatchRule,
    Field(discriminator="subject"),
]


class Pausing(Body):
    """Whether executions and clocks stop."""

    paused: bool
