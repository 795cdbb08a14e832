"""Votes on proposals and their consequences: approving, declining, editing and asking for changes.

Each public function applies a press with one verb, which ``bot/approvals/decide.py`` has authorised and
checked. A press for or against a proposal is a vote. A proposal is approved once it has as many votes for it
as its quorum. It may need two further approvals: that of its owner, the person in whose name it runs, and for
a teammate's plan that of the lead agent, which started the teammate. An edit begins a new round, which ends
all votes. With a vote, a person may also give a grant, which lets later calls run without asking.

A call may have been tried before people are asked: it was run without lasting effect, and its card shows the
changes of that *trial*. Voters then choose between applying these changes and running the call *for real*.
"""

from dataclasses import replace
from typing import Any

from sqlmodel import Session

from bot.approvals import grants, ownership, rights
from bot.approvals.grants import GrantTerms
from bot.approvals.press_values import Contents, PressContext, PressOutcome, accept, refuse
from bot.approvals.team import plans
from bot.domain.chat import Answer, Reply
from bot.domain.connections import CONSENT
from bot.domain.digests import to_canonical_json
from bot.domain.forms import defaults_of
from bot.domain.jobs import Job, Work
from bot.domain.plans import Plan
from bot.domain.preview import Edit
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal, Vote
from bot.domain.redaction import list_differences
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope, Scope
from bot.domain.verbs import Verb
from bot.domain.verdicts import make_terms
from bot.store import conversations, people, proposals
from bot.store.connections import is_owner


def approve(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    """Apply the edit of a press, if it has one, and vote for the proposal. With enough votes it runs."""
    press = context.press

    # the edit; after it a new trial may show other changes, and the rules may let other people decide
    if context.prepared.contents is not None:
        proposal = _store_edit(session, context, proposal, context.prepared.contents)
        if proposal.trial is not None and proposal.trial.tried:
            return accept(session, proposal, "Edited, not approved. Look at what it does now, then decide.")
        policy = context.policies.load(session)
        refusal, absent = rights.judge_press(
            session, policy, proposal, context.person, press.actor, address=press.address
        )
        if refusal:
            return accept(session, proposal, f"Edited, not approved. {refusal}")
        context = replace(context, absent=absent)

    # the vote, if the proposal can be approved as it is
    refusal_of_state = _refuse_if_not_approvable(session, proposal)
    if refusal_of_state:
        return refusal_of_state
    for_real: bool | None = None  # None without a trial, since there is no choice then
    if proposal.trial is not None and proposal.trial.tried:
        for_real = press.verb is Verb.FOR_REAL
    # not of people who may no longer decide
    proposal = rights.without_void_votes(session, context.policies, proposal)
    why = _find_trial_objection(proposal, press.verb, for_real=for_real)
    if why:
        return refuse(Answer.INVALID, proposal, why)
    if context.has_voted(session, proposal):
        return refuse(Answer.ALREADY, proposal, "Your vote has already been counted.")
    counts_for_quorum = _counts_for_quorum(session, context, proposal)
    # CONSENT: the owner agrees to the call, but their vote does not count for the quorum
    votes = (*proposal.votes, context.make_vote(Verb.APPROVE if counts_for_quorum else CONSENT))

    # the further approvals that are needed, if any
    approvals = len(people.list_voters(session, proposal, Verb.APPROVE)) + int(counts_for_quorum)
    p_with_vote = replace(proposal, votes=votes)
    missing_text = _find_missing_approval(
        session, p_with_vote, approvals, counts_for_quorum=counts_for_quorum
    )
    if missing_text:
        proposal = context.move(session, proposal, votes=votes, for_real=for_real)
        return accept(session, proposal, missing_text)
    # ``has_lead``: true of plans, on which the lead agent may have a say
    if proposal.kind.has_lead and proposal.teammate and plans.lacks_lead(session, context.policies, proposal):
        # rows are locked in the same order as by a review of the lead agent: first its turn, then the plan
        review_jobs = plans.ask_lead(session, proposal, context.now)
        proposal = context.move(session, proposal, votes=votes)
        text = "Your approval counts. The lead agent must approve the plan as well."
        return accept(session, proposal, text, *review_jobs)

    return _store_approval(session, context, proposal, votes, for_real=for_real)


def _store_approval(
    session: Session,
    context: PressContext,
    proposal: Proposal,
    votes: tuple[Vote, ...],
    *,
    for_real: bool | None,
) -> PressOutcome:
    """Approve a proposal that has all ``votes`` it needs, and give the grants that its plan asks for."""
    decision = context.decision_columns
    if plans.was_reviewed(proposal):  # the lead agent has approved the plan before
        decision["decided_by"] += f" and {plans.LEAD.name}"
    proposal = context.move(session, proposal, State.APPROVED, votes=votes, for_real=for_real, **decision)
    if proposal.kind.has_steps:
        _allow_listed_calls(session, context, proposal)
    text = proposal.kind.approved_text
    if context.is_paused:
        effect = "runs" if proposal.kind.runs else "takes effect"
        text += f" Everything is paused, so it {effect} after /approvals resume."
    return accept(session, proposal, text, Job(Work.EXECUTE, proposal.id))


def _refuse_if_not_approvable(session: Session, proposal: Proposal) -> PressOutcome | None:
    """Return the refusal if no one can approve the proposal as it is now; None if it can be approved."""
    if proposal.kind.no_approval_text:
        return refuse(Answer.INVALID, proposal, proposal.kind.no_approval_text)
    if proposal.kind.is_form:  # a form of an MCP server, which people fill in
        missing = _find_unanswered(session, proposal)
        if missing:
            text = f"It can't be sent yet. Fill in first: {', '.join(missing)}."
            return refuse(Answer.INVALID, proposal, text, missing)
    return None


def _find_missing_approval(
    session: Session, proposal: Proposal, approvals: int, *, counts_for_quorum: bool
) -> str:
    """Return the reply to a vote after which people's approvals are still missing; empty if none is.

    ``proposal``: the proposal with the new vote. ``approvals``: the number of votes that count towards the
    quorum.
    ``counts_for_quorum``: the new vote is one of them.
    """
    if approvals < proposal.quorum:
        if counts_for_quorum:
            return f"Your vote counts: {approvals} of {proposal.quorum}."
        return "Your yes counts. It waits for the approval of others as well."
    if ownership.lacks_owner(session, proposal):
        owner = ownership.name_owner(proposal)
        return f"Your approval counts. It runs as {owner}, so {owner} must approve it, too."
    return ""


def _counts_for_quorum(session: Session, context: PressContext, proposal: Proposal) -> bool:
    """Tell if the person's vote counts towards the quorum.

    The owner of a call, in whose name it runs, must agree to the call. Their vote counts towards the quorum
    only if the rules would let them decide anyway.
    """
    if not is_owner(proposal, context.person):
        return True
    policy = context.policies.load(session)
    press = context.press
    refusal, _ = rights.judge_press_by_role(
        session, policy, proposal, context.person, press.actor, address=press.address
    )
    return refusal is None


def _find_trial_objection(proposal: Proposal, verb: Verb, *, for_real: bool | None) -> str:
    """Return why a vote does not fit the proposal's trial; empty if it fits.

    ``for_real``: the vote is for running the call instead of applying the trial's changes.
    """
    if proposal.trial is None or not proposal.trial.tried:
        if verb is Verb.FOR_REAL:
            return "It was not tried first. Approving it runs it."
        return ""
    if proposal.trial.is_refused and not for_real:
        return f"The result of its trial can't be applied. {proposal.trial.why} It can be run for real."
    if proposal.for_real not in (None, for_real):
        theirs = "running it for real" if proposal.for_real else "the result of its trial"
        return f"Others approved {theirs}. Approve the same."
    return ""


def decline(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    """Vote against the proposal, which ends once it has as many such votes as the rules ask for.

    The vote of the call's owner ends it alone.
    """
    proposal = rights.without_void_votes(session, context.policies, proposal)
    if context.has_voted(session, proposal):
        return refuse(Answer.ALREADY, proposal, "Your vote has already been counted.")
    votes = (*proposal.votes, context.make_vote(Verb.DECLINE))
    against = 1 + len(people.list_voters(session, proposal, Verb.DECLINE))
    # ``declines``: how many votes against it end it
    if against < proposal.declines and not is_owner(proposal, context.person):
        proposal = context.move(session, proposal, votes=votes)
        return accept(
            session, proposal, f"Your vote counts: {against} of the {proposal.declines} that decline it."
        )
    changes = {"decline_reason": context.press.reason, "votes": votes}
    proposal, jobs = context.end(session, proposal, State.DECLINED, **changes)
    text = proposal.kind.declined_text
    if proposal.kind.has_steps:
        text = f"{text} {plans.describe_stop(session, proposal)}".strip()
    return PressOutcome(Reply(Answer.ACCEPTED, text, (proposal,)), jobs)


def decline_for_good(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    """Decline a rule that Nod suggests, so that Nod does not suggest it again. The verb is *never*."""
    votes = (*proposal.votes, context.make_vote(Verb.NEVER))
    proposal, jobs = context.end(session, proposal, State.DECLINED, votes=votes)
    return PressOutcome(Reply(Answer.ACCEPTED, "It will not be suggested again.", (proposal,)), jobs)


def edit_proposal(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    """Replace the call's arguments without a vote, and ask people again."""
    if context.prepared.contents is None:
        return refuse(Answer.INVALID, proposal, "There is nothing to edit: no arguments were given.")
    proposal = _store_edit(session, context, proposal, context.prepared.contents)
    return accept(session, proposal, proposal.kind.edited_text)


def approve_similar(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    """Vote for a proposal and give a grant on the chosen terms, in one transaction.

    The press names the terms in the words of the API: its ``lasting`` is the grant's duration, and its
    ``reach`` the audience (the people and places whose calls may run). Its ``rung``, which says how similar
    the calls must be, has become the one prepared scope.
    """
    duration = context.press.lasting
    audience = context.press.reach
    if proposal.schedule and audience is GrantAudience.HERE:
        audience = GrantAudience.SCHEDULE  # each run of a schedule is a conversation of its own
    if not context.prepared.scopes or duration is None:
        return refuse(Answer.INVALID, proposal, "Choose what else to allow, and for how long.")
    why = grants.find_grant_objection(session, context.policies, proposal) or _find_owner_objection(
        proposal, context
    )
    if why:
        return refuse(Answer.REFUSED, proposal, why)
    in_conversation = duration is GrantDuration.CONVERSATION
    if in_conversation and conversations.has_ended(session, proposal.conversation_id):
        text = "Its conversation has ended, so nothing more can be allowed there. Choose a time, such as 1h."
        return refuse(Answer.INVALID, proposal, text)
    # such as "Ana everywhere"
    whose = audience.describe(proposal.requester.label, schedule=proposal.schedule or "")
    if audience not in grants.list_audiences(session, context.policies, proposal, context.person):
        return refuse(Answer.REFUSED, proposal, f"Only an admin can allow that for {whose}. It stays open.")
    if in_conversation and audience in (GrantAudience.REQUESTER, GrantAudience.EVERYONE):
        text = "This reaches beyond this conversation, so it can't end with it. Choose a time, such as 1h."
        return refuse(Answer.INVALID, proposal, text)
    voted = approve(session, context, proposal)
    if voted.reply.answer is not Answer.ACCEPTED:
        return voted
    [(scope, words)] = context.prepared.scopes
    grant_terms = GrantTerms(scope, words, audience, duration)
    grant = grants.give_grant(
        session, proposal, context.press.actor, context.person, grant_terms, context.now
    )
    if in_conversation:
        until = "until this conversation ends"
    else:
        until = f"for {duration}"
    text = f"Approved. {grant.label} now allows {words}, for {whose}, {until}. An admin can revoke it."
    return replace(voted, reply=replace(voted.reply, text=text))


def _find_owner_objection(proposal: Proposal, context: PressContext) -> str:
    """Return why this person can't allow calls in another person's name; empty if no such name is used."""
    if (
        proposal.connection is None
        or not proposal.connection.is_personal
        or is_owner(proposal, context.person)
    ):
        return ""
    owner = ownership.name_owner(proposal)
    return f"It runs as {owner}, so only {owner} can allow calls like it. It stays open."


def approve_steps(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    """Approve a teammate's plan, and allow the tools of its steps while the teammate works."""
    if not proposal.teammate:
        return refuse(Answer.INVALID, proposal, "That only works on a teammate's plan. Approve the plan.")
    if proposal.quorum > 1:
        text = "Several people must approve this, so one person can't allow its steps. Approve the plan."
        return refuse(Answer.REFUSED, proposal, text)
    if plans.lacks_lead(session, context.policies, proposal):
        text = (
            "The lead agent also has to approve this plan and hasn't yet. Approve the plan, "
            "or allow its steps once it has."
        )
        return refuse(Answer.REFUSED, proposal, text)
    if context.prepared.scopes is None:
        return refuse(Answer.INVALID, proposal, "The steps can't be allowed from here. Approve the plan.")
    voted = approve(session, context, proposal)
    if voted.reply.answer is not Answer.ACCEPTED:
        return voted
    [proposal] = voted.reply.proposals
    for scope, words in context.prepared.scopes:
        _allow_here(session, context, proposal, scope, words)
    names = ", ".join(scope.tool_name for scope, _ in context.prepared.scopes)
    if names:
        allowed = f"{proposal.teammate} may use {names} without asking until it ends"
    else:
        allowed = "no step needs more"
    text = f"Plan approved: {allowed}. What can't be undone still asks."
    return replace(voted, reply=replace(voted.reply, text=text))


def _allow_listed_calls(session: Session, context: PressContext, plan: Proposal) -> None:
    """Give a grant for each call that an approved plan lists, for one run of exactly this call."""
    for call in Plan.of(plan.arguments).calls:
        scope = Scope(call.tool, call.version, GrantScope.EXACT, to_canonical_json(call.arguments))
        words = f"{call.tool} once, exactly as the plan shows it"
        _allow_here(session, context, plan, scope, words)


def _allow_here(session: Session, context: PressContext, proposal: Proposal, scope: Scope, text: str) -> None:
    """Give a grant for the requester's calls in the proposal's conversation, until the conversation ends.

    ``text``: the scope for people.
    """
    grant_terms = GrantTerms(scope, text, GrantAudience.HERE, GrantDuration.CONVERSATION)
    grants.give_grant(session, proposal, context.press.actor, context.person, grant_terms, context.now)


def revise(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    """Send a plan back for changes. One person is enough, since no work is lost."""
    feedback = (context.press.reason or "").strip()
    if not feedback:
        return refuse(Answer.INVALID, proposal, "Say what should change.", {"reason": "This is needed."})
    context = replace(context, press=replace(context.press, reason=feedback))
    votes = (*proposal.votes, context.make_vote(Verb.REVISE))
    changes = {"cause": Cause.REVISE, "decline_reason": feedback, "votes": votes}
    proposal, jobs = context.end(session, proposal, State.DECLINED, **changes)
    told = f"{proposal.teammate or 'The agent'} has been told and will revise the plan."
    text = plans.describe_stop(session, proposal) or told
    return PressOutcome(Reply(Answer.ACCEPTED, text, (proposal,)), jobs)


def _store_edit(session: Session, context: PressContext, proposal: Proposal, contents: Contents) -> Proposal:
    """Store edited contents as a new round, and return the proposal. The same contents change nothing."""
    if contents.digest == proposal.digest:
        return proposal
    new_terms = make_terms(contents.verdict, context.now)  # the columns of deciders, quorum, timers …
    if proposal.kind.is_final:  # a program waits and was told the time, so the timer is not restarted
        for name in ("ttl", "expires_at", "warn_at", "remind_at"):
            new_terms.pop(name, None)
    before = {**_find_defaults(contents), **proposal.arguments}  # earlier releases stored no defaults
    edit_words = list_differences(before, contents.arguments, contents.schema)
    return context.move(
        session,
        proposal,
        verb=Verb.EDIT,
        arguments=dict(contents.arguments),
        tool_version=contents.tool_version,
        digest=contents.digest,
        description=contents.description,
        preview=contents.preview,
        trial=contents.trial,
        for_real=None,
        **new_terms,
        round=proposal.round + 1,
        votes=(),
        edited_by=context.card_author,
        edits=(*proposal.edits, Edit(proposal.round + 1, context.card_author, edit_words)),
        values_changed=False,
    )


def _find_defaults(contents: Contents) -> dict[str, Any]:
    """Return the default values of the arguments that the contents have."""
    defaults = defaults_of(contents.schema)
    return {name: value for name, value in defaults.items() if name in contents.arguments}


def _find_unanswered(session: Session, proposal: Proposal) -> dict[str, str]:
    """Return the required fields of a form that have no value yet, each with the fault in words."""
    schema = proposals.load_schema(session, proposal.tool_name, proposal.tool_version) or {}
    return {
        name: "fill this in first" for name in schema.get("required", ()) if name not in proposal.arguments
    }
