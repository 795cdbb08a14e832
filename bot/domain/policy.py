"""Policy: what needs approval, who may decide, how many must, how long it waits. Pure rules, no clock.

`Policy` joins the settings' defaults with the rulebook that admins keep at run time. `Policy.judge` is asked
before a call becomes a proposal, `Policy.objection` at every press; both say which rule spoke.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from bot.domain.people import (
    LOCAL,
    Absence,
    Membership,
    Person,
    Role,
    UserGroup,
    counts_at,
    is_group,
    workspace_of,
)
from bot.domain.plans import Approver
from bot.domain.proposals import Deciders, Inverse, Level, Proposal, Risk, clock, time_steps
from bot.domain.rules import LEVELS, STRICTNESS, CallFacts, Found, Mode, Quorum, Rule, Rulebook, Subject
from bot.domain.steps import TimedStep, start_steps
from bot.domain.times import format_length

_USUAL = ("requester", *Role)  # who decides where no rule says it
_CHANGED = "an admin must change that (/approvals approvers)"
_ROUTED = (
    "an admin sets who may (/approvals approvers WHO in agents/NAME) and where they are asked "
    "(/approvals route CHAT in agents/NAME)"
)
UNASKED = " (warning: nothing here asks before it changes things)"


class Judgement(StrEnum):
    RUN = "run"
    ASK = "ask"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The policy's judgement on a call, and the rule behind it."""

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
    steps: tuple[TimedStep, ...] = ()
    undo: timedelta | None = None  # how long the call can be undone once done; None: it is no call of a tool
    no_undo: str = ""  # why it can't


@dataclass(frozen=True, slots=True)
class Policy:
    """The current rules. ``admins`` and ``approvers`` hold accounts (Actors as text).

    ``groups``: those that platforms were asked for lately. ``missed``: those that were looked for in vain.
    ``absences``: of people who are away now.
    """

    mode: Mode = Mode.WRITES
    ttl: timedelta = timedelta(hours=24)
    admins: frozenset[str] = frozenset()
    approvers: frozenset[str] = frozenset()
    plans: Approver = Approver.HUMAN
    book: Rulebook = field(default_factory=Rulebook)
    groups: Mapping[str, UserGroup] = field(default_factory=dict)
    missed: set[str] = field(default_factory=set, compare=False)
    absences: tuple[Absence, ...] = ()

    def holders(self, role: Role, place: str | None = None) -> frozenset[str]:
        """Return the accounts with a role, by the settings or by an admin's rule.

        At a ``place`` (an address as text), an account of another workspace counts only where a rule gave it
        the role everywhere.
        """
        settled = {Role.ADMIN: self.admins, Role.APPROVER: self.approvers}[role]
        given = self.book.accounts_with(role)
        return frozenset(each for each in settled | given.keys() if given.get(each) or counts_at(each, place))

    def expand_groups(self, named: Iterable[str]) -> frozenset[str]:
        """Return the accounts named, with those of each group's people; an unknown group stands alone."""
        return frozenset[str]().union(*(g.members if (g := self.groups.get(n)) else {n} for n in named))

    def groups_of(self, person: Person) -> frozenset[str]:
        """Return the groups that a person of the team is in, of those that are known now."""
        mine = (name for name, group in self.groups.items() if person.accounts & group.members)
        if person.outside:
            return frozenset()
        return frozenset(mine)

    def _unknown(self, named: Iterable[str], person: Person) -> list[str]:
        """List the groups whose members can't be looked up now, among those that the person could be in."""
        if person.outside:
            there = set()
        else:
            there = {account.partition(":")[0] for account in person.accounts}
        unknown = [each for each in named if is_group(each) and each not in self.groups]
        self.missed.update(unknown)
        return [each for each in unknown if each.partition(":")[0] in there]

    def may_be_in_group(self, proposal: Proposal, person: Person) -> bool:
        """Return whether they are in a group that decides it, as far as anyone can say now."""
        return bool(self._unknown(proposal.deciders.people, person))

    def roles_of(self, person: Person, place: str | None = None) -> frozenset[Role]:
        """Return the roles of a person anywhere, or at one place."""
        return frozenset(role for role in Role if person.accounts & self.holders(role, place))

    def roles_for(self, person: Person, proposal: Proposal) -> frozenset[Role]:
        """Return the roles of a person at the place of a proposal."""
        return self.roles_of(person, proposal.deciders.place or str(proposal.requester))

    def bind_admin(self, person: Person) -> str | None:
        """Return the only workspace in which a person is an admin.

        None for an admin of all workspaces, and for no admin.
        """
        held = person.accounts & self.holders(Role.ADMIN)
        given = self.book.accounts_with(Role.ADMIN)
        found = {None if given.get(each) else workspace_of(each) for each in held}
        if len(found) == 1:
            return found.pop()
        return None

    def judge(self, call: CallFacts) -> Verdict:
        """Return the verdict on a call: it runs, needs approval, or can't be proposed.

        A plan always needs approval, and so does a fact to remember. So does a script's request, which that
        script can never decide, and a server's question, which only who asked can answer. For what puts back
        what was approved, one approval is enough.
        """
        kind, outside = call.kind, call.requester.outside
        risk, spared = self._overridden(call)
        found = self.book.mode(call, self._usual_mode(call))
        mode = found.value
        rule = found.rule.words if found.rule else f"policy {mode}"
        if mode is Mode.FORBID:
            return Verdict(Judgement.REFUSE, risk, rule, self._deciders(call, risk))
        usual = mode.asks(risk)
        asks = kind.always_asks or (mode is Mode.ALWAYS if spared else usual)
        guarded = outside and risk.writes and not asks
        if spared and mode in (Mode.WRITES, Mode.DESTRUCTIVE):
            rule = risk.reason
        if kind.has_lead:
            plans = self.plan_rule(call.place.address)
            rule = plans.rule.words if plans.rule else f"plans {plans.value}"
        elif guarded:
            asks, rule = True, "requests from outside the team always ask"
        elif asks and not usual:
            rule = f"a {kind} always asks"
        deciders = self._deciders(call, risk)
        deciders = replace(deciders, requester=deciders.requester and not outside)
        if not risk.writes and not asks:
            return Verdict(Judgement.RUN, risk, rule, deciders)
        own = call.own
        needed, of = Quorum() if own or call.undoes else self.book.quorum(call)
        ttl = self.book.ttl(call, self.ttl)
        escalation = None if own else self.book.escalation(call)
        steps = () if own else self.book.steps(call)
        verdict = Verdict(
            Judgement.ASK,
            risk,
            rule,
            deciders,
            quorum=needed,
            declines=max(1, of - needed + 1),
            ttl=ttl.value,
            remind_every=self.book.remind_every(call),
            escalate_after=escalation.after if escalation else None,
            escalate_to=escalation.to if escalation else None,
            steps=steps,
            undo=self.book.undo(call) if kind.may_be_undone else None,
        )
        if not asks:
            return replace(
                verdict,
                judgement=Judgement.RUN,
                rule=rule + (UNASKED if spared or mode is Mode.NEVER else ""),
            )
        objection = self.too_few(deciders, call.requester, needed)
        if objection:
            objection += f"; {_ROUTED if call.place.is_of_agent else _CHANGED}"
            return replace(verdict, judgement=Judgement.REFUSE, rule=objection)
        return verdict

    def _usual_mode(self, call: CallFacts) -> Mode:
        """Return the mode where no rule says another: for agents one that asks for each change at least."""
        if call.place.is_of_agent:
            return max(self.mode, Mode.WRITES, key=STRICTNESS.index)
        return self.mode

    def forbidding(self, call: CallFacts, *, always: bool = False) -> str | None:
        """Return the rule, in words, that forbids a call; None where none does.

        ``always``: only one that forbids it with any arguments.
        """
        if not self.book.forbids:
            return None
        if always:
            rules = self.book.matching(Subject.POLICY, call)
            return next((rule.words for rule in rules if rule.value is Mode.FORBID), None)
        found = self.book.mode(call, self.mode)
        if found.rule and found.value is Mode.FORBID:
            return found.rule.words
        return None

    def refusal(self, person: Person, place: str) -> str | None:
        """Return why what a person says at a place (an address as text) is not for Nod; None where it is.

        Guests and people of another company are heard only where a rule says so, or where they have a role.
        """
        if not person.outside or self.book.hears_outsiders(place) or self.roles_of(person, place):
            return None
        if person.standing is Membership.UNKNOWN:
            return "I can't check who you are right now. Please send it again."
        return "I only work for people of this team. An admin can let others write to me here."

    def _overridden(self, call: CallFacts) -> tuple[Risk, bool]:
        """Return a call's risk under the rules, and True if a rule spares people the question.

        ``risk read`` for a tool that writes spares the question and no more: the call stays a write, with a
        proposal and a claim of its own. It has no effect on what can't be undone.
        """
        risk, found = call.risk, self.book.level(call)
        if found.rule is None:
            return risk, False
        level = found.value
        if level is Level.READ and risk.writes:
            if risk.level is Level.DESTRUCTIVE:
                return risk, False
            return Risk(Level.WRITE, found.rule.words), True
        return Risk(level, found.rule.words), False

    def _deciders(self, call: CallFacts, risk: Risk) -> Deciders:
        if call.own:
            return Deciders(requester=True)
        place, requester, kind = call.place, call.requester, call.kind
        # in a private chat approvers decide only what can't be undone, and what a rule routes to others
        alone = place.private and risk.level is not Level.DESTRUCTIVE and not self.book.routes(call)
        words = self.book.deciders(call, ("requester", Role.ADMIN) if alone else _USUAL).value
        home = place.home or place.address
        holders = {role: self.holders(role, home) for role in Role}
        roles = tuple(r for r in (Role.APPROVER, Role.ADMIN) if r in words and holders[r])
        others = frozenset().union(*(holders[r] for r in roles)) - requester.accounts
        named = tuple(w for w in words if ":" in w)
        members = "member" in words and not kind.for_approvers and not place.is_of_agent  # no one is there
        further = self.expand_groups(named) - requester.accounts
        second = bool(others or further) or (members and not place.private)
        other = kind.for_approvers and (second or str(LOCAL) not in requester.accounts)
        four_eyes = other or (risk.level is Level.DESTRUCTIVE and second)
        return Deciders(
            requester="requester" in words and not other,
            roles=roles,
            people=tuple(w for w in named if not (four_eyes and w in requester.accounts)),
            members=str(place.address) if members else None,
            four_eyes=four_eyes,
            lead=self._lead_of(place.address) if kind.has_lead else None,
            place=home,
        )

    def _lead_of(self, place: str) -> str | None:
        approver = self.plan_rule(place).value
        if approver is Approver.HUMAN:
            return None
        return str(approver)

    def too_few(self, deciders: Deciders, requester: Person, needed: int) -> str | None:
        """Return why no one, or too few, could ever decide; None when enough could."""
        accounts = self.expand_groups(deciders.people)
        for role in deciders.roles:
            accounts |= self.holders(Role(role), deciders.place)
        own = deciders.requester and not deciders.four_eyes
        if deciders.members or any(map(is_group, accounts)):  # how many are in a group is not known now
            return None
        asker = not deciders.four_eyes and bool(own or accounts & requester.accounts)
        voters = {*(accounts - requester.accounts), *((requester.id,) if asker else ())}
        for each in self.absences:  # who is away and who stands in for them have one vote
            named = (str(each.who), str(each.stand_in))
            who, stand_in = (requester.id if one in requester.accounts else one for one in named)
            if who != stand_in and {who, stand_in} <= voters:
                voters.remove(stand_in)
        enough = len(voters)
        if enough == 0:
            return "no one may decide this here"
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
        """Return why this person may not decide this proposal, in words; None when they may.

        ``at`` is the address where the card was pressed, for circles that are "anyone in this chat".
        """
        deciders = proposal.deciders
        if person == requester and deciders.four_eyes and approves:
            return "Four eyes: you asked for it, so someone else must approve it."
        if deciders.requester and person == requester and not person.outside:
            return None
        if person.accounts & set(deciders.people) or self.roles_for(person, proposal) & set(deciders.roles):
            return None
        if person.standing is Membership.UNKNOWN:
            return "I can't check who you are right now. Press again. It stays open."
        chats = (deciders.members, *deciders.escalation_chats)
        if not person.outside and at is not None and any(chat and same_chat(chat, at) for chat in chats):
            return None
        if person.accounts & set(deciders.escalation_chats) or self.groups_of(person) & set(deciders.people):
            return None
        unknown = self._unknown(deciders.people, person)
        if unknown:
            return f"I can't check who is in {' or '.join(unknown)} right now. Press again. It stays open."
        words = deciders.in_words(proposal.requester.label, elsewhere=True)  # who is there was let in above
        return f"You may not decide this one. Who may: {words}. It stays open."

    def may_take_back(self, proposal: Proposal, person: Person, requester: Person) -> bool:
        """Return whether a person may withdraw a proposal: the requester, or an admin there."""
        return person == requester or Role.ADMIN in self.roles_for(person, proposal)

    def plan_rule(self, place: str) -> Found[Approver]:
        """Return the approver of plans at a place (an address as text), and the rule."""
        return self.book.plans(place, self.plans)

    def stricter(self, before: "Policy", call: CallFacts) -> bool:
        """Tell if rules may ask more of calls like one, with any arguments, by anyone, at any time.

        A limited rule that is new counts as if it always matched, and one that is gone as if it never did.
        """
        limited = {rule for rule in self.book.rules if rule.limits}
        common = limited.intersection(before.book.rules)
        for both in (set[Rule](), common):
            old = before.book.lift_limits(both)
            new = self.book.lift_limits(limited - common | both)
            if _is_stricter(before.with_book(old), self.with_book(new), call):
                return True
        return False

    def with_book(self, book: Rulebook) -> "Policy":
        return replace(self, book=book)


def _is_stricter(before: Policy, after: Policy, call: CallFacts) -> bool:
    both = (before, after)
    modes = [STRICTNESS.index(policy.book.mode(call, policy.mode).value) for policy in both]
    levels = [LEVELS.index(policy.book.level(call).value) for policy in both]
    needed = [policy.book.quorum(call).needed for policy in both]
    circles = [set(policy.book.deciders(call, _USUAL).value) for policy in both]
    grew = (modes[1] > modes[0], levels[1] > levels[0], needed[1] > needed[0])
    return any(grew) or bool(circles[0] - circles[1])


def same_chat(origin: str, pressed: str) -> bool:
    """Tell if two addresses are the same chat, or one is a thread of the other."""
    return pressed == origin or origin.startswith(f"{pressed}/") or pressed.startswith(f"{origin}/")


def terms(verdict: Verdict, now: datetime) -> dict[str, Any]:
    """Return the columns that a verdict gives a proposal, its clock starting now."""
    steps = verdict.steps
    if steps and verdict.escalate_to and verdict.escalate_after:
        steps = (*steps, TimedStep(verdict.escalate_to, verdict.escalate_after))
    due_steps = start_steps(steps, now)
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
        **(time_steps(due_steps) if due_steps else {"steps": (), "notify_at": None}),
        "undo_seconds": None if verdict.undo is None else verdict.undo.total_seconds(),
        "inverse": Inverse(verdict.no_undo) if verdict.no_undo else None,
        **clock(verdict.ttl, verdict.remind_every, now),
    }


def explain(verdict: Verdict, requester: str) -> str:
    """Describe a call's treatment and the reason, for ``/approvals policy test``."""
    if verdict.risk.reason:
        level = f"{verdict.risk.level} ({verdict.risk.reason})"
    else:
        level = verdict.risk.level
    match verdict.judgement:
        case Judgement.RUN:
            return f"It would run immediately. Risk: {level}. Because: {verdict.rule}."
        case Judgement.REFUSE:
            return f"It would be refused: {verdict.rule}. Risk: {level}."
        case Judgement.ASK:
            who = verdict.deciders.in_words(requester)
            need = f"{verdict.quorum} approvals" if verdict.quorum > 1 else "one approval"
            wait = format_length(verdict.ttl.total_seconds())
            return (
                f"It would ask for {need}. Who may decide: {who}. It would wait {wait}. "
                f"Risk: {level}. Because: {verdict.rule}."
            )
