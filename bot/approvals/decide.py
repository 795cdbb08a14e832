"""Decisions on people's presses: each press is authorised, checked and recorded in one transaction.

A press is one use of a button by a person; what the button does is its verb. `decide` processes one press. It
checks the person's rights, and that the press fits the proposal's present state and the version of its
contents (the *round*). Then the function for the verb applies the press; these are in
``bot/approvals/verb_functions.py``.

A button may also press on several proposals, which ``bot/approvals/group_presses.py`` takes apart.
``bot/approvals/presses.py`` calls both.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from sqlmodel import Session

from bot.approvals import rights
from bot.approvals.lifecycle import expire
from bot.approvals.press_values import Prepared, PressContext, PressOutcome, refuse
from bot.approvals.verb_functions import APPLY_BY_VERB, reopen_expired
from bot.domain.chat import Answer, BatchDecision, Press, Reply
from bot.domain.jobs import Job
from bot.domain.outcomes import describe_too_late
from bot.domain.policy import Policy
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.redaction import hide_values, secrets_in
from bot.domain.verbs import CHOICES, Verb
from bot.errors import UnknownCard
from bot.store import posted_cards, proposals
from bot.store.connections import is_owner
from bot.store.hooks import hooks_of
from bot.store.locks import conversation_lock
from bot.store.rules import Policies

_STATE_OF_VERB = {
    Verb.RETRY: State.FAILED,
    Verb.STOP: State.EXECUTING,
    Verb.UNDO: State.SUCCEEDED,
    Verb.STOP_ALL: State.APPROVED,
}
"""The state in which a proposal takes a verb; an open proposal takes all other verbs."""
_WRONG_STATE_TEXTS = {Verb.STOP: "It isn't running.", Verb.STOP_ALL: "It has already started."}
"""The replies to verbs in another state, where the usual reply would not fit."""
_ONLY_PLANS_TEXT = "That only works on a teammate's plan."
_WRONG_KIND_TEXTS: Mapping[Verb, str] = {
    Verb.REVISE: _ONLY_PLANS_TEXT,
    Verb.APPROVE_STEPS: _ONLY_PLANS_TEXT,
    Verb.NEVER: "That only works on what Nod suggests.",
    Verb.STOP: "This can't be stopped.",
    **dict.fromkeys((Verb.ANSWER, *CHOICES), "That only works on a question of the agent."),
}
"""The replies to verbs that only some kinds of proposals take."""
APPROVING = (Verb.APPROVE, Verb.SIMILAR, Verb.APPROVE_STEPS, Verb.FOR_REAL)
"""The verbs of a vote for the proposal."""
_TOLD_TO_FEATURES = frozenset({*APPROVING, Verb.DECLINE, Verb.NEVER, Verb.REVISE})
"""The verbs of votes for and against, of which features are told by the hook ``note_decision``."""
_RUNNING = (*APPROVING, Verb.RETRY)
"""The verbs after which the call may run."""
_NEEDING_A_ROUND = (Verb.APPROVE, Verb.SIMILAR, Verb.EDIT, Verb.FOR_REAL)
"""The verbs that, by the API and on an edited proposal, must say which contents the person saw."""
_SAY_ROUND_TEXT = "It was edited after it was proposed. Send what you saw of it: seen or round."


def decide(
    session: Session,
    press: Press,
    policies: Policies,
    now: datetime,
    prepared: Prepared = Prepared(),  # noqa: B008 - frozen
) -> PressOutcome:
    """Process one press: authorise it, check that it is for the current state, apply and record it.

    ``policies``: the stored rules and settings. ``prepared``: the input that ``presses.py`` has computed
    before this transaction. Raises UnknownCard if the press was made on a message that is not a card of the
    proposal.
    """
    conversation_lock.lock_conversation_of(session, press.proposal_id)
    loaded = policies.find_proposal_with_policy(session, press.proposal_id, press.actor)
    if loaded is None:
        return PressOutcome(Reply(Answer.UNKNOWN, f"There is no proposal {press.proposal_id}."))
    proposal, policy, person = loaded
    check_card(session, press, proposal)
    # ``absent``: the person in whose place a stand-in presses, if it is one
    refusal, absent = rights.judge_press(
        session, policy, proposal, person, press.actor, press.verb, press.address
    )
    if refusal:
        return refuse(Answer.REFUSED, proposal, refusal)
    if press.reason:  # it must not repeat a secret of the call
        schema = proposals.load_schema(session, proposal.tool_name, proposal.tool_version)
        press = replace(press, reason=hide_values(press.reason, secrets_in(proposal.arguments, schema)))
    context = PressContext(
        press=press,
        person=person,
        policies=policies,
        now=now,
        is_paused=policy.rulebook.paused,
        prepared=prepared,
        absences=policy.absences,
        absent=absent,
    )
    outcome = _apply(session, context, policy, proposal)
    if outcome.reply.answer is Answer.ACCEPTED and press.verb in _TOLD_TO_FEATURES:
        for note_decision in hooks_of(session).note_decision:
            note_decision(session, proposal, press, now)
    return outcome


def check_card(session: Session, press: Press | BatchDecision, proposal: Proposal) -> None:
    """Raise UnknownCard if a press was made on a message that is not a card of the proposal."""
    if press.address is None or press.ref is None:
        return
    if not posted_cards.is_card_of(session, proposal, press.address.channel, press.ref):
        raise UnknownCard


def _apply(session: Session, context: PressContext, policy: Policy, proposal: Proposal) -> PressOutcome:
    """Apply an authorised press, if it is for the state that the proposal is in."""
    press = context.press
    now = context.now
    prepared = context.prepared

    # the state: a proposal whose time is over ends first
    jobs: tuple[Job, ...] = ()
    if proposal.state is State.PROPOSED and proposal.expires_at <= now and not policy.rulebook.paused:
        proposal, jobs = expire(session, proposal, now)
    # ``presses.py`` computes the contents of an expired proposal again, and repeats the press with these
    # (``current``). Then the proposal is opened again, unless programs act on its end (``is_final``)
    if proposal.state is State.EXPIRED and prepared.current is not None and not proposal.kind.is_final:
        return reopen_expired(session, context, proposal, prepared.current)
    # the owner of a call, in whose name it runs, may withdraw it even when it is approved
    owner_withdraws = (
        press.verb is Verb.CANCEL and proposal.state is State.APPROVED and is_owner(proposal, context.person)
    )
    needed_state = _STATE_OF_VERB.get(press.verb, State.PROPOSED)
    if proposal.state is not needed_state and not owner_withdraws:
        text = _WRONG_STATE_TEXTS.get(press.verb) or describe_too_late(proposal, now)
        return PressOutcome(Reply(Answer.ALREADY, text, (proposal,)), jobs)

    # the round: the person must have seen what the press applies to
    if _is_outdated(press, proposal):
        return refuse(Answer.STALE, proposal, _describe_changes(proposal, press.round))
    if press.by_api and proposal.edited_by and press.verb in _NEEDING_A_ROUND and _names_no_round(press):
        return refuse(Answer.STALE, proposal, _SAY_ROUND_TEXT)

    refusal = _find_verb_refusal(session, context, policy, proposal)
    if refusal:
        return refusal
    return APPLY_BY_VERB[press.verb](session, context, proposal)


def _find_verb_refusal(
    session: Session, context: PressContext, policy: Policy, proposal: Proposal
) -> PressOutcome | None:
    """Return the refusal of a verb; None if the proposal takes the verb, and no rule forbids its run."""
    press = context.press
    if proposal.undoes_proposal_id and (
        press.verb in (Verb.EDIT, Verb.SIMILAR) or press.arguments is not None
    ):
        return refuse(Answer.INVALID, proposal, "What undoes a change can't be edited or allowed in advance.")
    if press.verb in _RUNNING and policy.rulebook.has_forbid_rule:  # there are rules that forbid calls
        call = replace(rights.call_of(session, proposal), at=context.now)
        why = policy.find_call_objection(call)
        if why:
            return refuse(Answer.REFUSED, proposal, f"This is now forbidden: {why}. Nothing runs.")
    if press.verb in _WRONG_KIND_TEXTS and press.verb not in proposal.kind.extra_verbs:
        return refuse(Answer.INVALID, proposal, _WRONG_KIND_TEXTS[press.verb])
    return None


def _is_outdated(press: Press, proposal: Proposal) -> bool:
    """Tell if the proposal has changed since the person saw it.

    A press may name what the person saw by three values: the round, the digest of the call, and ``seen``, the
    hash of the full contents of the card. Each named value must be current. A digest alone does not tell
    one round of the same call from the next, so it can't approve a call that was asked again.
    """
    if press.round is not None and press.round != proposal.round:
        return True
    if press.digest is not None and press.digest != proposal.digest:
        return True
    if press.seen is not None and press.seen != proposal.seen:
        return True
    names_only_digest = press.digest is not None and press.round is None and press.seen is None
    # ``shown_again``: a card of an earlier round showed the same arguments, with other values to change
    return names_only_digest and proposal.shown_again and press.verb in APPROVING


def _names_no_round(press: Press) -> bool:
    """Tell if a press names none of the three values of `_is_outdated`."""
    return press.round is None and press.digest is None and press.seen is None


def _describe_changes(proposal: Proposal, seen_round: int | None) -> str:
    """Return the refusal of a press on an earlier round, with the edits that were made since."""
    text = "This changed after the card was shown"
    if seen_round is not None:
        edits = [edit.description for edit in proposal.edits if edit.round > seen_round]
        if edits:
            text += f": {'; '.join(edits)}"
    return f"{text}. Look at the new card, then decide."
