"""Plans: what the agent or a teammate (a sub-agent of it) wants to do, step by step.

The approval alone changes nothing outside Nod: an approved plan unlocks its teammate, which could only read
before, and lets the calls that its steps list run (``bot/domain/plans.py``). People may also send it back for
changes. `ProposalKind` explains the fields of `PLAN`.
"""

from dataclasses import replace

from bot.domain.outcomes import format_reason
from bot.domain.plans import Plan
from bot.domain.proposal_states import Cause, State, Tone
from bot.domain.proposals import Proposal, ProposalKind
from bot.domain.verbs import BUTTONS, Verb


def _find_outcome(proposal: Proposal) -> tuple[Tone, str] | None:
    """Return the tone and the words of a plan's state on its card; None: the usual words."""
    who, why = proposal.decided_by or "someone", format_reason(proposal)
    match proposal.state:
        case State.PROPOSED:
            until = f" Until then {proposal.teammate} can only look around." if proposal.teammate else ""
            return Tone.WAITING, f"Plan waiting for approval.{until}"
        case State.SUCCEEDED:
            steps = f"{len(proposal.ticked)} of {len(Plan.of(proposal.arguments).steps)} steps done."
            if proposal.ticked or not proposal.teammate:
                progress = steps
            else:
                progress = f"{proposal.teammate} may carry it out."
            return Tone.GOOD, f"Plan approved by {who}. {progress}"
        case State.DECLINED if proposal.cause is Cause.REVISE:
            return Tone.QUIET, f"Sent back for changes by {who}{why}."
        case State.DECLINED:
            return Tone.QUIET, f"Plan rejected by {who}{why}."
        case State.CANCELLED if proposal.cause is Cause.SUPERSEDED:
            return Tone.QUIET, "Replaced by a newer version of the plan."
    return None  # the words that most kinds use


def _tell_model(proposal: Proposal) -> str:
    """Return the text for the model on a plan that was sent back, rejected or replaced; empty for another."""
    if proposal.state is State.CANCELLED and proposal.cause is Cause.SUPERSEDED:
        return "CANCELLED: a newer version of the plan took its place."
    if proposal.state is not State.DECLINED:
        return ""
    who = proposal.decided_by or "someone"
    locked = "You are still locked. " if proposal.teammate else ""
    if proposal.cause is Cause.REVISE:
        return (
            f"CHANGES ASKED FOR: {who} sent the plan back. What should change: {proposal.decline_reason}. "
            f"{locked}Submit a new version with plan_submit."
        )
    return (
        f"DECLINED: {who} rejected the plan. Reason: {proposal.decline_reason or 'none given'}. "
        f"{locked}Submit another plan only if the reason asks for one; otherwise end with what "
        "you found."
    )


def _offer(proposal: Proposal, **_unused_facts: bool) -> tuple[Verb, ...]:
    """Return the verbs of a waiting plan's buttons. It has ASK only if a model's call made the plan."""
    ask = (Verb.ASK,) if proposal.is_from_model else ()
    approve_steps = (Verb.APPROVE_STEPS,) if proposal.quorum == 1 and proposal.teammate else ()
    return (Verb.APPROVE, Verb.DECLINE, Verb.REVISE, *ask, *approve_steps, Verb.EXTEND)


PLAN = ProposalKind(
    "plan",
    "Plan waiting for approval.",
    declined_text="Plan rejected.",
    duplicate_text="ERROR: You already submitted a plan in this answer. One is enough.",
    no_edit_text="A plan is the agent's own words: ask for changes instead of editing it.",
    find_outcome=_find_outcome,
    tell_model=_tell_model,
    extra_verbs=frozenset({Verb.REVISE, Verb.APPROVE_STEPS}),
    list_buttons=_offer,
    buttons={
        Verb.APPROVE: replace(BUTTONS[Verb.APPROVE], label="Approve plan"),
        Verb.DECLINE: replace(BUTTONS[Verb.DECLINE], label="Reject", busy_label="Rejecting…"),
    },
    has_lead=True,  # a rule may let the lead agent approve it, alone or with a person
    has_steps=True,
    runs_locked=True,  # a teammate that may only read until its plan is approved can submit the plan
    has_no_current_values=True,  # its card has nothing but the plan, so nothing on it changes while it waits
    may_be_requested=False,
)
