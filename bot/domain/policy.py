"""Policy: which calls need approval, who may decide, how many must, and how long a proposal waits. Pure.

`Policy` joins the defaults of the settings with the rulebook that admins keep at run time
(``bot/domain/rulebook.py``). `Policy.judge` is asked before a call becomes a proposal; its `Verdict`
(``bot/domain/verdicts.py``) is frozen into the proposal. The *quorum* is the number of approvals that a call
needs. An *own* call is one that its requester decides alone (`ProposalKind.is_own`), so rules on deciders,
the quorum and escalation do not count for it.

Four methods look for an objection. Each returns it in words, or None: `Policy.find_call_objection` (a rule
forbids the call), `Policy.find_message_objection` (this person may not talk to Nod here),
`Policy.find_quorum_objection` (too few people could decide) and `Policy.find_decision_objection` (this person
may not decide this proposal).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import NamedTuple

from bot.domain.call_facts import CallFacts
from bot.domain.chat import same_chat
from bot.domain.deciders import Deciders
from bot.domain.people import (
    LOCAL,
    Absence,
    Actor,
    Membership,
    Person,
    Role,
    UserGroup,
    is_group,
    role_counts_at,
    workspace_of,
)
from bot.domain.plans import Approver
from bot.domain.proposals import Proposal
from bot.domain.risks import LEVELS, Level, Risk
from bot.domain.rule_values import MODES, Mode, Quorum, Subject
from bot.domain.rulebook import Rulebook, StrictestValue
from bot.domain.rules import Rule
from bot.domain.verdicts import UNASKED_WARNING, Judgement, Verdict

_USUAL_DECIDERS = ("requester", *Role)  # the deciders if no rule names any
_PRIVATE_DECIDERS = ("requester", Role.ADMIN)  # the deciders in a private chat if no rule names any
_FEW_DECIDERS_ADVICE = "an admin must change that (/approvals approvers)"
_FEW_AGENT_DECIDERS_ADVICE = (
    "an admin sets who may (/approvals approvers WHO in agents/NAME) and where they are asked "
    "(/approvals route CHAT in agents/NAME)"
)


class _JudgedRisk(NamedTuple):
    """The risk of a call under the rules."""

    risk: Risk
    is_spared: bool  # a rule says that people need not be asked about it


class _Asking(NamedTuple):
    """The decision to ask people about a call or not, and the rule behind it in words."""

    asks: bool
    rule_text: str


@dataclass(frozen=True, slots=True)
class Policy:
    """The current rules: the defaults of the settings, and the rulebook. Accounts are Actors as text."""

    mode: Mode = Mode.WRITES  # the calls that ask, where no rule says it
    ttl: timedelta = timedelta(hours=24)  # the time that a proposal waits, where no rule says it
    admins: frozenset[str] = frozenset()
    approvers: frozenset[str] = frozenset()
    plan_approver: Approver = Approver.HUMAN  # who approves teammates' plans, where no rule says it
    rulebook: Rulebook = field(default_factory=Rulebook)
    groups: Mapping[str, UserGroup] = field(default_factory=dict)  # the groups whose members are known now
    # filled by the methods here: the groups that were needed but not known, which are fetched next
    unknown_groups_needed: set[str] = field(default_factory=set, compare=False)
    absences: tuple[Absence, ...] = ()  # the absences of people who are away now

    def list_holders(self, role: Role, place: str | None = None) -> frozenset[str]:
        """Return the accounts with a role, by the settings or by an admin's rule.

        At a ``place`` (an address as text), an account of another workspace counts only where a rule gave it
        the role everywhere.
        """
        by_settings = {Role.ADMIN: self.admins, Role.APPROVER: self.approvers}[role]
        by_rules = self.rulebook.accounts_with(role)  # by account, True if its role counts everywhere
        accounts = by_settings | by_rules.keys()
        return frozenset(
            account for account in accounts if by_rules.get(account) or role_counts_at(account, place)
        )

    def expand_groups(self, named: Iterable[str]) -> frozenset[str]:
        """Return the named accounts, with the members in place of each group that is known."""
        accounts: set[str] = set()
        for name in named:
            group = self.groups.get(name)
            accounts |= group.members if group else {name}
        return frozenset(accounts)

    def groups_of(self, person: Person) -> frozenset[str]:
        """Return the groups of which a person of the team is a member, among the groups known now."""
        if person.is_outsider:
            return frozenset()
        return frozenset(name for name, group in self.groups.items() if person.accounts & group.members)

    def _note_unknown_groups(self, named: Iterable[str], person: Person) -> list[str]:
        """Return the named groups that are not known now and that the person may be in.

        All that are not known are added to ``unknown_groups_needed``.
        """
        unknown = [name for name in named if is_group(name) and name not in self.groups]
        self.unknown_groups_needed.update(unknown)
        if person.is_outsider:
            return []
        channels = {account.partition(":")[0] for account in person.accounts}
        return [group for group in unknown if group.partition(":")[0] in channels]

    def may_be_in_group(self, proposal: Proposal, person: Person) -> bool:
        """Tell if a person may be in a group that decides a proposal, whose members are not known now."""
        return bool(self._note_unknown_groups(proposal.deciders.people, person))

    def roles_of(self, person: Person, place: str | None = None) -> frozenset[Role]:
        """Return the roles of a person anywhere, or at one place."""
        return frozenset(role for role in Role if person.accounts & self.list_holders(role, place))

    def roles_for(self, person: Person, proposal: Proposal) -> frozenset[Role]:
        """Return the roles of a person at the place of a proposal."""
        return self.roles_of(person, proposal.deciders.place or str(proposal.requester))

    def find_admin_workspace(self, person: Person) -> str | None:
        """Return the only workspace in which a person is an admin.

        None for an admin of all or of several workspaces, and for someone who is not an admin.
        """
        admin_accounts = person.accounts & self.list_holders(Role.ADMIN)
        by_rules = self.rulebook.accounts_with(Role.ADMIN)
        workspaces: set[str | None] = set()
        for account in admin_accounts:
            is_admin_everywhere = by_rules.get(account, False)
            workspaces.add(None if is_admin_everywhere else workspace_of(account))
        return workspaces.pop() if len(workspaces) == 1 else None

    def judge(self, call: CallFacts) -> Verdict:
        """Return the verdict on a call: it runs, needs approval, or can't be proposed.

        1. The rules may change the risk of the call (`_override_risk`).
        2. The mode of a rule, or of the settings, may forbid the call.
        3. The mode and the kind of the proposal say if people are asked (`_decide_to_ask`).
        4. The rules set who decides, the quorum and the times (`_find_deciders`, `_set_terms`).
        5. A call that too few people could approve is refused.
        """
        risk, is_spared = self._override_risk(call)
        found = self.rulebook.mode(call, self._find_default_mode(call))
        mode = found.value
        deciders = self._find_deciders(call, risk)
        if mode is Mode.FORBID:
            return Verdict(Judgement.REFUSE, risk, _name_mode_rule(found), deciders)

        asks, rule = self._decide_to_ask(call, risk, found, is_spared=is_spared)
        if call.requester.is_outsider:
            deciders = replace(deciders, requester=False)
        if not risk.writes and not asks:
            return Verdict(Judgement.RUN, risk, rule, deciders)

        verdict = self._set_terms(call, Verdict(Judgement.ASK, risk, rule, deciders))
        if not asks:  # a write that runs unasked is a proposal too, so it has all terms
            warning = UNASKED_WARNING if is_spared or mode is Mode.NEVER else ""
            return replace(verdict, judgement=Judgement.RUN, rule_text=rule + warning)
        objection = self.find_quorum_objection(deciders, call.requester, verdict.quorum)
        if objection:
            advice = _FEW_AGENT_DECIDERS_ADVICE if call.place.is_of_agent else _FEW_DECIDERS_ADVICE
            return replace(verdict, judgement=Judgement.REFUSE, rule_text=f"{objection}; {advice}")
        return verdict

    def _set_terms(self, call: CallFacts, verdict: Verdict) -> Verdict:
        """Return the verdict with the rules on its proposal: the quorum, the times, where it escalates."""
        # one approval is enough for an own call, and to undo a call that was approved
        quorum = Quorum() if call.requester_decides_alone or call.is_undo else self.rulebook.quorum(call)
        # rules on escalation, steps and reminders may look at the risk as the rules see it
        judged = replace(call, risk=verdict.risk)
        escalation = None if call.requester_decides_alone else self.rulebook.escalation(judged)
        return replace(
            verdict,
            quorum=quorum.needed,
            # with these declines, too few deciders are left to approve
            declines=max(1, quorum.of - quorum.needed + 1),
            ttl=self.rulebook.ttl(call, self.ttl).value,
            remind_every=self.rulebook.remind_every(judged),
            escalate_after=escalation.delay if escalation else None,
            escalate_to=escalation.target if escalation else None,
            steps=() if call.requester_decides_alone else self.rulebook.steps(judged),
            undo=self.rulebook.undo(call) if call.kind.may_be_undone else None,
        )

    def _decide_to_ask(
        self, call: CallFacts, risk: Risk, found: StrictestValue[Mode], *, is_spared: bool
    ) -> _Asking:
        """Decide whether people are asked about a call whose mode was ``found``.

        ``is_spared``: a rule says that people need not be asked; then the mode asks only if it is ``always``.
        The first row that fits counts:

        =============================================  ================  =========================
        Call                                           Asks              Rule that is named
        =============================================  ================  =========================
        a plan                                         yes               the rule on plans
        a write by someone outside that would run      yes               that outsiders always ask
        only its kind asks, not its mode               yes               its kind
        spared, and its mode is writes or destructive  no                the rule that spares it
        any other                                      if its mode asks  its mode
        =============================================  ================  =========================
        """
        mode, kind = found.value, call.kind
        asks_by_mode = mode is Mode.ALWAYS if is_spared else mode.asks(risk)
        asks = asks_by_mode or kind.always_asks
        if kind.has_lead:
            plans = self.plan_rule(call.place.address)
            return _Asking(asks, plans.rule.description if plans.rule else f"plans {plans.value}")
        if call.requester.is_outsider and risk.writes and not asks:
            return _Asking(asks=True, rule_text="requests from outside the team always ask")
        if asks and not asks_by_mode:
            return _Asking(asks=True, rule_text=f"a {kind} always asks")
        if is_spared and mode in (Mode.WRITES, Mode.DESTRUCTIVE):
            return _Asking(asks, risk.reason)
        return _Asking(asks, _name_mode_rule(found))

    def _find_default_mode(self, call: CallFacts) -> Mode:
        """Return the mode that counts without a rule. Calls of agents ask at least about each write."""
        if call.place.is_of_agent:
            return max(self.mode, Mode.WRITES, key=MODES.index)
        return self.mode

    def find_call_objection(self, call: CallFacts, *, always: bool = False) -> str | None:
        """Return the rule, in words, that forbids a call; None if no rule does.

        A rule whose condition is unknown for the call forbids it, too. With ``always``, only rules count
        whose condition certainly holds. Asked for a call without arguments, these are the rules that forbid
        the tool with any arguments, perhaps only to this person or only now.
        """
        if not self.rulebook.has_forbid_rule:
            return None
        if always:
            rules = self.rulebook.list_applying(Subject.POLICY, call)
            return next((rule.description for rule in rules if rule.value is Mode.FORBID), None)
        found = self.rulebook.mode(call, self.mode)  # the default never forbids, so any will do
        if found.rule and found.value is Mode.FORBID:
            return found.rule.description
        return None

    def find_lasting_objection(self, call: CallFacts) -> str | None:
        """Return the rule, in words, that certainly and lastingly forbids a call; None if no rule does.

        Rules that hold only at some hours, on some days or until an end do not count. Asked for a call
        without arguments, it is a rule that forbids the tool with any arguments.
        """
        rules = self.rulebook.list_applying(Subject.POLICY, call)
        lasting = (rule for rule in rules if rule.value is Mode.FORBID and not rule.is_for_a_time)
        return next((rule.description for rule in lasting), None)

    def find_message_objection(self, person: Person, place: str) -> str | None:
        """Return why a person may not talk to Nod at a place (an address as text); None if they may.

        Guests and people of another company may only where a rule says so, or where they have a role.
        """
        if not person.is_outsider or self.rulebook.hears_outsiders(place) or self.roles_of(person, place):
            return None
        if person.standing is Membership.UNKNOWN:
            return "I can't check who you are right now. Please send it again."
        return "I only work for people of this team. An admin can let others write to me here."

    def _override_risk(self, call: CallFacts) -> _JudgedRisk:
        """Return a call's risk under the rules.

        The rule ``risk read`` for a tool that writes spares people the question and no more: the call stays a
        write, with a proposal and a claim of its own. The rule has no effect on calls that can't be undone.
        """
        found = self.rulebook.level(call)
        if found.rule is None:
            return _JudgedRisk(call.risk, is_spared=False)
        if found.value is not Level.READ or not call.risk.writes:
            return _JudgedRisk(Risk(found.value, found.rule.description), is_spared=False)
        if call.risk.level is Level.DESTRUCTIVE:
            return _JudgedRisk(call.risk, is_spared=False)
        return _JudgedRisk(Risk(Level.WRITE, found.rule.description), is_spared=True)

    def _find_deciders(self, call: CallFacts, risk: Risk) -> Deciders:
        """Return the people who may decide a call, by the rules or as usual.

        A call that can't be undone is approved by someone other than the requester, if there is anyone.
        """
        if call.requester_decides_alone:
            return Deciders(requester=True)
        place, requester, kind = call.place, call.requester, call.kind
        home = place.home or place.address  # the place where roles count
        is_destructive = risk.level is Level.DESTRUCTIVE

        # in a private chat, approvers decide only calls that can't be undone or that a rule routes to others
        is_private = place.private and not is_destructive and not self.rulebook.routes(call)
        usual = _PRIVATE_DECIDERS if is_private else _USUAL_DECIDERS
        # the words of the rule: roles, "requester" and "member", accounts and groups
        decider_words = self.rulebook.deciders(call, usual).value

        holders = {role: self.list_holders(role, home) for role in (Role.APPROVER, Role.ADMIN)}
        roles = tuple(role for role, accounts in holders.items() if role in decider_words and accounts)
        named = tuple(word for word in decider_words if ":" in word)  # accounts and groups
        # an agent's own place has no members
        may_members = "member" in decider_words and not kind.for_approvers and not place.is_of_agent

        # four eyes: the requester may not approve. That holds for a call that can't be undone, if anyone else
        # may decide it; and for a kind that is for approvers, unless the requester is alone at this machine
        accounts = self.expand_groups(named)
        for role in roles:
            accounts |= holders[role]
        has_others = bool(accounts - requester.accounts) or (may_members and not place.private)
        is_local = str(LOCAL) in requester.accounts  # at the command line there may be no one else
        needs_someone_else = kind.for_approvers and (has_others or not is_local)
        four_eyes = needs_someone_else or (is_destructive and has_others)
        if four_eyes:
            named = tuple(name for name in named if name not in requester.accounts)
        return Deciders(
            requester="requester" in decider_words and not needs_someone_else,
            roles=roles,
            people=named,
            members=str(place.address) if may_members else None,
            four_eyes=four_eyes,
            lead=self._find_lead(place.address) if kind.has_lead else None,  # the lead agent of a team
            place=home,
        )

    def _find_lead(self, place: str) -> str | None:
        """Return the say of the lead agent on plans at a place, as `Deciders.lead`; None if it has none."""
        approver = self.plan_rule(place).value
        return None if approver is Approver.HUMAN else str(approver)

    def find_quorum_objection(self, deciders: Deciders, requester: Person, needed: int) -> str | None:
        """Return why no one, or too few, could ever approve; None if enough could.

        None also for chats and for groups whose members are not known, since no one can count them.
        """
        accounts = self.expand_groups(deciders.people)
        for role in deciders.roles:
            accounts |= self.list_holders(Role(role), deciders.place)
        has_unknown_group = any(is_group(account) for account in accounts)
        if deciders.members or has_unknown_group:
            return None

        voters = set(accounts - requester.accounts)  # the requester counts once, as a Person
        requester_may = deciders.requester or bool(accounts & requester.accounts)
        if requester_may and not deciders.four_eyes:
            voters.add(requester.id)
        for absence in self.absences:  # someone who is away and their stand-in have one vote
            away = _name_voter(absence.absent, requester)
            stand_in = _name_voter(absence.stand_in, requester)
            if away != stand_in and away in voters:
                voters.discard(stand_in)

        if not voters:
            return "no one may decide this here"
        if len(voters) < needed:
            return f"{needed} approvals are needed, but only {len(voters)} may decide"
        return None

    def find_decision_objection(
        self,
        proposal: Proposal,
        person: Person,
        requester: Person,
        at: str | None = None,
        *,
        approves: bool = True,
    ) -> str | None:
        """Return why this person may not decide this proposal, in words; None if they may.

        ``at``: the address where the card was pressed. ``approves``: the person would approve it; who asked
        under four eyes may still decline.

        The first row that fits counts:

        ==================================================================  ============================
        Person                                                              May decide
        ==================================================================  ============================
        asked for it, approves, and four eyes are needed                    no
        asked for it, is of the team, and the requester may decide          yes
        is named by an account, or has a named role at that place           yes
        may or may not be of the team: the platform does not say now        no: they can't be checked
        is of the team, and presses in a chat whose members may decide      yes
        it was escalated to them alone                                      yes
        is in a named group                                                 yes
        may be in a named group whose members are not known now             no: they can't be checked
        anyone else                                                         no
        ==================================================================  ============================
        """
        deciders = proposal.deciders
        is_requester = person == requester
        if is_requester and deciders.four_eyes and approves:
            return "Four eyes: you asked for it, so someone else must approve it."
        if is_requester and deciders.requester and not person.is_outsider:
            return None

        is_named = not person.accounts.isdisjoint(deciders.people)
        if is_named or not self.roles_for(person, proposal).isdisjoint(deciders.roles):
            return None
        if person.standing is Membership.UNKNOWN:
            return "I can't check who you are right now. Press again. It stays open."

        chats = [chat for chat in (deciders.members, *deciders.escalation_chats) if chat]
        if at is not None and not person.is_outsider and any(same_chat(chat, at) for chat in chats):
            return None
        if not person.accounts.isdisjoint(deciders.escalation_chats):
            return None

        if not self.groups_of(person).isdisjoint(deciders.people):
            return None
        unknown = self._note_unknown_groups(deciders.people, person)
        if unknown:
            return f"I can't check who is in {' or '.join(unknown)} right now. Press again. It stays open."
        # members of the chat who press there may decide, so this is only read elsewhere
        words = deciders.describe(proposal.requester.label, elsewhere=True)
        return f"You may not decide this one. Who may: {words}. It stays open."

    def may_withdraw(self, proposal: Proposal, person: Person, requester: Person) -> bool:
        """Tell if a person may withdraw a proposal: the requester, or an admin there."""
        return person == requester or Role.ADMIN in self.roles_for(person, proposal)

    def plan_rule(self, place: str) -> StrictestValue[Approver]:
        """Return the approver of plans at a place (an address as text), and the rule."""
        return self.rulebook.plans(place, self.plan_approver)

    def is_stricter_than(self, before: "Policy", call: CallFacts) -> bool:
        """Tell if the rules may ask more of a call than those of ``before``.

        The call stands for calls with any arguments, by anyone, at any time. A rule with limits matches some
        of these calls and not others, so the two books are compared as follows:

        - a new rule with limits counts as if it always matched
        - a removed rule with limits counts as if it never matched
        - the rules with limits that are in both books are tried both ways: none of them matches, or all do
        """
        limited = {rule for rule in self.rulebook.rules if rule.limits}
        limited_in_both = limited.intersection(before.rulebook.rules)
        limited_and_new = limited - limited_in_both
        no_rules: set[Rule] = set()
        for matching in (no_rules, limited_in_both):
            old_book = before.rulebook.lift_limits(matching)
            new_book = self.rulebook.lift_limits(limited_and_new | matching)
            if _is_stricter(before.with_rulebook(old_book), self.with_rulebook(new_book), call):
                return True
        return False

    def with_rulebook(self, rulebook: Rulebook) -> "Policy":
        return replace(self, rulebook=rulebook)


def _is_stricter(before: Policy, after: Policy, call: CallFacts) -> bool:
    """Tell if the mode, the risk or the quorum grew, or if someone may no longer decide."""
    old_mode = before.rulebook.mode(call, before.mode).value
    new_mode = after.rulebook.mode(call, after.mode).value
    if MODES.index(new_mode) > MODES.index(old_mode):
        return True
    old_level, new_level = before.rulebook.level(call).value, after.rulebook.level(call).value
    if LEVELS.index(new_level) > LEVELS.index(old_level):
        return True
    if after.rulebook.quorum(call).needed > before.rulebook.quorum(call).needed:
        return True
    old_deciders = set(before.rulebook.deciders(call, _USUAL_DECIDERS).value)
    new_deciders = set(after.rulebook.deciders(call, _USUAL_DECIDERS).value)
    return not old_deciders <= new_deciders


def _name_mode_rule(found: StrictestValue[Mode]) -> str:
    """Return the words of the rule that sets this mode; without one, the mode of the settings."""
    return found.rule.description if found.rule else f"policy {found.value}"


def _name_voter(account: Actor, requester: Person) -> str:
    """Return the account as text; for the requester the Person's id, as all their accounts have one vote."""
    return requester.id if str(account) in requester.accounts else str(account)
