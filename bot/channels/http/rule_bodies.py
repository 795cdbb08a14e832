"""Rules as typed bodies. Each says in the words of ``/approvals`` what it sets, so both are judged alike."""

from typing import Annotated, Literal

from pydantic import Field

from bot.channels.http.body import Body
from bot.domain.people import Role
from bot.domain.plans import Approver
from bot.domain.risk import Level
from bot.domain.rules import Mode

Word = Annotated[str, Field(pattern=r"^[^\s]+$", max_length=200)]
Seconds = Annotated[int, Field(ge=10, le=90 * 86400)]
Hour = Annotated[str, Field(pattern=r"^[0-2][0-9]:[0-5][0-9]$", description="HH:MM, UTC")]


class _Rule(Body):
    """``tools``: a name, with * and ?. ``place``: where it holds, such as slack:T1/C2 or slack:*."""

    tools: Word = "*"
    place: Word = "*"

    @property
    def words(self) -> str:
        """As an admin would say it."""
        tools = "" if self.tools == "*" else f" for {self.tools}"
        where = "" if self.place == "*" else f" in {self.place}"
        return f"{self.said}{tools}{where}"

    @property
    def said(self) -> str:
        raise NotImplementedError


class PolicyRule(_Rule):
    subject: Literal["policy"]
    mode: Mode

    @property
    def said(self) -> str:
        return f"policy {self.mode}"


class RiskRule(_Rule):
    subject: Literal["risk"]
    level: Level

    @property
    def said(self) -> str:
        return f"risk {self.level}"


class ApproversRule(_Rule):
    """``who``: requester, approver, admin, member, or accounts such as slack:T1/U7."""

    subject: Literal["approvers"]
    who: Annotated[list[Word], Field(min_length=1, max_length=50)]

    @property
    def said(self) -> str:
        return f"approvers {' '.join(self.who)}"


class QuorumRule(_Rule):
    subject: Literal["quorum"]
    needed: Annotated[int, Field(ge=1, le=20)]
    of: Annotated[int | None, Field(ge=1, le=20)] = None

    @property
    def said(self) -> str:
        return f"quorum {self.needed}" + (f" of {self.of}" if self.of else "")


class PlansRule(_Rule):
    subject: Literal["plans"]
    approver: Approver

    @property
    def said(self) -> str:
        return f"plans {self.approver}"


class TtlRule(_Rule):
    subject: Literal["ttl"]
    seconds: Seconds

    @property
    def said(self) -> str:
        return f"ttl {self.seconds}s"


class RemindRule(_Rule):
    subject: Literal["remind"]
    seconds: Seconds

    @property
    def said(self) -> str:
        return f"remind {self.seconds}s"


class EscalateRule(_Rule):
    subject: Literal["escalate"]
    seconds: Seconds
    to: Word

    @property
    def said(self) -> str:
        return f"escalate {self.seconds}s {self.to}"


class QuietRule(_Rule):
    subject: Literal["quiet"]
    start: Hour
    end: Hour

    @property
    def said(self) -> str:
        return f"quiet {self.start} {self.end}"


class RouteRule(_Rule):
    subject: Literal["route"]
    to: Word

    @property
    def said(self) -> str:
        return f"route {self.to}"


class DigestRule(_Rule):
    subject: Literal["digest"]
    at: Hour
    to: Word

    @property
    def said(self) -> str:
        return f"digest {self.at} {self.to}"


class RoleRule(_Rule):
    subject: Literal["role"]
    account: Word
    role: Role

    @property
    def said(self) -> str:
        return f"roles add {self.account} {self.role}"


class GrantsRule(_Rule):
    """Grants may reach what cannot be undone."""

    subject: Literal["grants"]
    allow: Literal["destructive"]

    @property
    def said(self) -> str:
        return f"grants allow {self.allow}"


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
    | GrantsRule,
    Field(discriminator="subject"),
]


class Pausing(Body):
    """Whether executions and clocks stop."""

    paused: bool
