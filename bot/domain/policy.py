"""Policy: what needs approval, who may decide, how many must, how long it waits. Pure rules, no clock.

`Policy` joins the settings' defaults with the rulebook that admins keep at run time. `Policy.judge` is asked
before a call becomes a proposal, `Policy.objection` at every press; both say which rule spoke.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from bot.domain.people import LOCAL, Person, Role
from bot.domain.plans import Approver
from bot.domain.proposals import Deciders, Kind, Proposal, clock
from bot.domain.risk import Level, Risk
from bot.domain.rules import Found, Rulebook, Subject, span

UNASKED = " (warning: nothing here asks before it changes things)"


class Mode(StrEnum):
    """What needs approval."""

    ALWAYS = "always"  # every tool, reads too
    WRITES = "writes"  # every tool that changes something
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


class Judgement(StrEnum):
    RUN = "run"
    ASK = "ask"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call was asked for: the conversation's address as text, and whether it is a private chat."""

    address: str
    private: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """What happens to a call, and which rule says so."""

    judgement: Judgement
    risk: Risk
    rule: str
    deciders: Deciders
    quorum: int = 1
    declines: int = 1
    ttl: timedelta = timedelta(hours=24)
    remind_every: timedelta | None = None
    escalate_after: timedelta | None = None
    escalate_to: str | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules in force. ``admins`` and ``approvers`` hold accounts (Actors as text)."""

    mode: Mode = Mode.WRITES
    ttl: timedelta = timedelta(hours=24)
    admins: frozenset[str] = frozenset()
    approvers: frozenset[str] = frozenset()
    plans: Approver = Approver.HUMAN
    book: Rulebook = field(default_factory=Rulebook)

    def holders(self, role: Role) -> frozenset[str]:
        """Accounts with a role, by the settings or by an admin's rule."""
        settled = {Role.ADMIN: self.admins, Role.APPROVER: self.approvers}[role]
        return settled | self.book.accounts_with(role)

    def roles_of(self, person: Person) -> frozenset[Role]:
        return frozenset(role for role in Role if person.accounts & self.holders(role))

    def judge(
        self, tool_name: str, risk: Risk, place: Place, requester: Person, kind: Kind = Kind.CALL
    ) -> Verdict:
        """Whether a call runs at once, asks people, or cannot be asked for at all.

        A plan is always asked; so is a script's request, and never decided by the script that asks; so is a
        server's question, and only of the person whose call it is about.
        """
        overridden = self.book.level(place.address, tool_name, risk.level)
        if overridden.rule is not None:
            risk = Risk(Level(overridden.value), overridden.rule.words)
        found = self.book.mode(place.address, tool_name, self.mode)
        mode = Mode(found.value)
        rule = found.rule.words if found.rule else f"policy {mode}"
        asks = kind is not Kind.CALL or mode.asks(risk)
        if kind is Kind.PLAN:
            found = self.plan_rule(place.address)
            rule = found.rule.words if found.rule else f"plans {found.value}"
        elif asks and not mode.asks(risk):
            rule = f"a {kind} always asks"
        deciders = self._deciders(tool_name, risk, place, requester, kind)
        if not risk.writes and not asks:
            return Verdict(Judgement.RUN, risk, rule, deciders)
        needed, of = self.book.quorum(place.address, tool_name).value if kind is not Kind.QUESTION else (1, 0)
        ttl = self.book.ttl(place.address, tool_name, self.ttl.total_seconds())
        remind = self.book.soonest(Subject.REMIND, place.address, tool_name)
        escalate = self.book.soonest(Subject.ESCALATE, place.address, tool_name)
        verdict = Verdict(
            Judgement.ASK,
            risk,
            rule,
            deciders,
            quorum=needed,
            declines=max(1, of - needed + 1) if of else 1,
            ttl=timedelta(seconds=ttl.value),
            remind_every=timedelta(seconds=remind[0]) if remind else None,
            escalate_after=timedelta(seconds=escalate[0]) if escalate else None,
            escalate_to=escalate[1] if escalate else None,
        )
        if not asks:
            return replace(
                verdict, judgement=Judgement.RUN, rule=rule + (UNASKED if mode is Mode.NEVER else "")
            )
        if objection := self.too_few(deciders, requester, needed):
            objection += "; an admin must change that (/approvals approvers)"
            return replace(verdict, judgement=Judgement.REFUSE, rule=objection)
        return verdict

    def _deciders(self, tool_name: str, risk: Risk, place: Place, requester: Person, kind: Kind) -> Deciders:
        if kind is Kind.QUESTION:
            return Deciders(requester=True)
        found = self.book.deciders(place.address, tool_name)
        if found.rule is None:
            # what cannot be undone wants other eyes in a private chat, too, so they must be in the circle
            alone = place.private and risk.level is not Level.DESTRUCTIVE
            words = ["requester", Role.ADMIN] if alone else ["requester", Role.APPROVER, Role.ADMIN]
        else:
            words = list(found.value)
        roles = tuple(r for r in (Role.APPROVER, Role.ADMIN) if r in words and self.holders(r))
        others = frozenset().union(*(self.holders(r) for r in roles)) - requester.accounts
        named = tuple(w for w in words if ":" in w)
        members = "member" in words and kind is not Kind.REQUEST  # a script is in no chat
        second = bool(others or set(named) - requester.accounts) or (members and not place.private)
        other = kind is Kind.REQUEST and (second or str(LOCAL) not in requester.accounts)
        return Deciders(
            requester="requester" in words and not other,
            roles=roles,
            people=named,
            members=str(place.address) if members else None,
            four_eyes=other or (risk.level is Level.DESTRUCTIVE and second),
        )

    def too_few(self, deciders: Deciders, requester: Person, needed: int) -> str | None:
        """Why nobody, or too few, could ever decide; None when enough could."""
        accounts = set(deciders.people)
        for role in deciders.roles:
            accounts |= self.holders(Role(role))
        own = deciders.requester and not deciders.four_eyes
        if deciders.members:
            return None
        enough = len(accounts - requester.accounts) + int(
            own or (not deciders.four_eyes and bool(accounts & requester.accounts))
        )
        if enough == 0:
            return "nobody may decide this here"
        if enough < needed:
            return f"{needed} approvals are needed, but only {enough} may decide"
        return None

    def objection(
        self,
        proposal: Proposal,
        person: Person,
        requester: Person,
        at: str | None = None,
        *,
        approves: bool = True,
    ) -> str | None:
        """Why this person may not decide this proposal, in words; None when they may.

        ``at`` is the address where the card was pressed, for circles that are "whoever is in this chat".
        """
        deciders = proposal.deciders
        if person == requester and deciders.four_eyes and approves:
            return "Four eyes: you asked for it, so somebody else must approve it."
        if deciders.requester and person == requester:
            return None
        if person.accounts & set(deciders.people) or self.roles_of(person) & set(deciders.roles):
            return None
        if deciders.members is not None and at is not None and _same_chat(deciders.members, at):
            return None
        words = deciders.in_words(proposal.requester.label)
        return f"You may not decide this one. Who may: {words}. It stays open."

    def may_take_back(self, person: Person, requester: Person) -> bool:
        return person == requester or Role.ADMIN in self.roles_of(person)

    def plan_rule(self, place: str) -> Found:
        """Who approves plans at a place (an address as text): an `Approver`'s name, and the rule."""
        return self.book.plans(place, self.plans)

    def with_book(self, book: Rulebook) -> "Policy":
        return replace(self, book=book)


def _same_chat(origin: str, pressed: str) -> bool:
    """A thread of a chat, or the chat itself."""
    return pressed == origin or origin.startswith(f"{pressed}/") or pressed.startswith(f"{origin}/")


def terms(verdict: Verdict, now: datetime) -> dict[str, Any]:
    """What a verdict makes of a proposal: its fields by name, the clock starting now."""
    return {
        "risk": verdict.risk,
        "deciders": verdict.deciders,
        "quorum": verdict.quorum,
        "declines": verdict.declines,
        "rule": verdict.rule,
        "ttl": verdict.ttl,
        "remind_every": verdict.remind_every,
        "escalate_at": now + verdict.escalate_after if verdict.escalate_after else None,
        "escalate_to": verdict.escalate_to,
        **clock(verdict.ttl, verdict.remind_every, now),
    }


def explain(verdict: Verdict, requester: str) -> str:
    """What would happen to a call and why, for ``/approvals policy test``."""
    level = f"{verdict.risk.level} ({verdict.risk.reason})"
    match verdict.judgement:
        case Judgement.RUN:
            return f"It would run at once. Risk: {level}. Because: {verdict.rule}."
        case Judgement.REFUSE:
            return f"It would be refused: {verdict.rule}. Risk: {level}."
        case Judgement.ASK:
            who = verdict.deciders.in_words(requester)
            need = f"{verdict.quorum} approvals" if verdict.quorum > 1 else "one approval"
            wait = span(verdict.ttl.total_seconds())
            return (
                f"It would ask for {need}. Who may decide: {who}. It would wait {wait}. "
                f"Risk: {level}. Because: {verdict.rule}."
            )
