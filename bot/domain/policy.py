"""Policy: what needs approval, who may decide, how many must, how long it waits. Pure rules, no clock."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from bot.domain.people import Person, Role
from bot.domain.proposals import Deciders, Proposal
from bot.domain.risk import Level, Risk


class Mode(StrEnum):
    """What needs approval."""

    ALWAYS = "always"  # every tool, reads too
    WRITES = "writes"  # every tool that changes something
    DESTRUCTIVE = "destructive"  # only what cannot be undone; other writes run and are reported


class Judgement(StrEnum):
    RUN = "run"
    ASK = "ask"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What happens to a call, and which rule says so."""

    judgement: Judgement
    rule: str
    deciders: Deciders = Deciders(requester=False)
    quorum: int = 1
    ttl: timedelta = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules in force. ``admins`` and ``approvers`` hold accounts (Actors as text)."""

    mode: Mode = Mode.WRITES
    ttl: timedelta = timedelta(hours=24)
    admins: frozenset[str] = frozenset()
    approvers: frozenset[str] = frozenset()

    def roles_of(self, person: Person) -> frozenset[Role]:
        found = set()
        if person.accounts & self.admins:
            found.add(Role.ADMIN)
        if person.accounts & self.approvers:
            found.add(Role.APPROVER)
        return frozenset(found)

    def judge(self, risk: Risk, *, private: bool) -> Verdict:
        """Whether a call runs at once, asks people, or cannot be asked for at all."""
        rule = f"policy {self.mode}: {risk.level} calls"
        asks = {
            Mode.ALWAYS: True,
            Mode.WRITES: risk.writes,
            Mode.DESTRUCTIVE: risk.level is Level.DESTRUCTIVE,
        }[self.mode]
        deciders = self._deciders(private=private)
        judgement = Judgement.ASK if asks else Judgement.RUN
        if asks and not (deciders.requester or deciders.roles or deciders.people):
            return Verdict(Judgement.REFUSE, "nobody may decide here; an admin must name approvers", deciders)
        return Verdict(judgement, rule, deciders, 1, self.ttl)

    def _deciders(self, *, private: bool) -> Deciders:
        roles = tuple(
            role
            for role, people in ((Role.APPROVER, self.approvers), (Role.ADMIN, self.admins))
            if people and (role is Role.ADMIN or not private)
        )
        return Deciders(requester=True, roles=roles)

    def objection(self, proposal: Proposal, person: Person, requester: Person) -> str | None:
        """Why this person may not decide this proposal, in words; None when they may."""
        deciders = proposal.deciders
        if deciders.requester and person == requester:
            return None
        if person.id in deciders.people or self.roles_of(person) & set(deciders.roles):
            return None
        words = deciders.in_words(proposal.requester.label)
        return f"You may not decide this one. Who may: {words}. It stays open."

    def may_take_back(self, person: Person, requester: Person) -> bool:
        return person == requester or Role.ADMIN in self.roles_of(person)
