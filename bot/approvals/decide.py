"""Decisions on people's presses: each press is authorised, checked and recorded in one transaction.

A press is one use of a button by a person; what the button does is its verb. `decide` processes one press. It
checks the person's rights, and that the press fits the proposal's present state and the version of its
contents (the *round*). Then the function for the verb (`_FUNCTIONS`) applies the press.

A button may also press on several proposals: on all of one answer of the agent, or on the rows of a *batch*,
which share one card. `split_press` splits such a press into one for each, and `count_outcomes` sums up the
replies.

Votes are counted in ``bot/approvals/votes.py``. Expiry, claims and ends of runs are in
``bot/approvals/lifecycle.py``. ``bot/approvals/presses.py`` calls all of it.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from sqlmodel import Session

from bot.approvals import agent_questions, card_questions, ownership, rights, undo, votes
from bot.approvals.lifecycle import expire, request_redraw
from bot.approvals.press_values import Contents, Prepared, PressContext, PressOutcome, accept, refuse
from bot.approvals.team import teammates
from bot.domain.audit import Act
from bot.domain.chat import Answer, BatchDecision, Press, Reply
from bot.domain.deciders import Deciders
from bot.domain.jobs import Job, Work
from bot.domain.outcomes import describe_too_late
from bot.domain.people import Actor, Role
from bot.domain.policy import Policy
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal, start_timers
from bot.domain.redaction import hide_values, secrets_in
from bot.domain.risks import Level
from bot.domain.times import format_relative
from bot.domain.verbs import CHOICES, Verb
from bot.domain.verdicts import make_terms
from bot.errors import UnknownCard
from bot.store import people, posted_cards, proposals
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
_CLEARED_RUN = dict.fromkeys(("cause", "error", "result", "told", "ended_badly"))
"""The columns that a failed run has set, emptied for the next try."""
_CLEARED_DECISION = dict.fromkeys(("decided_by", "decided_from", "decided_at"))
"""The columns that a decision has set, emptied for the next decision."""

# for a press on several proposals
_NONE_LEFT_TEXTS = {
    Verb.STOP_ALL: "None of these is waiting to run.",
    Verb.UNDO_ALL: "None of these can be undone now.",
}
"""The replies if no proposal gets a press, by the verb. All other verbs share one reply."""
_OUTCOMES = {
    Verb.APPROVE: "approved",
    Verb.DECLINE: "declined",
    Verb.STOP_ALL: "stopped",
    Verb.UNDO: "being undone",
}
"""The words for a count of accepted presses, by the verb on each proposal."""
_OPEN_OUTCOMES = dict.fromkeys(_OUTCOMES, "counted as a vote") | {Verb.UNDO: "asked about on a card"}
"""The words for presses after which a proposal is still open."""
_MAX_REASONS = 5  # the most reasons of refusals in one reply


class _PressOnEach(NamedTuple):
    """The presses of a verb on several proposals."""

    verb: Verb  # the verb on each proposal
    state: State  # only proposals in this state get a press


_EACH_OF_ALL = {
    Verb.APPROVE_ALL: _PressOnEach(Verb.APPROVE, State.PROPOSED),
    Verb.DECLINE_ALL: _PressOnEach(Verb.DECLINE, State.PROPOSED),
    Verb.STOP_ALL: _PressOnEach(Verb.STOP_ALL, State.APPROVED),  # it is also the verb of the press on each
    Verb.UNDO_ALL: _PressOnEach(Verb.UNDO, State.SUCCEEDED),
}
"""The presses that a verb on several proposals stands for."""
BATCH_VERBS = frozenset(_EACH_OF_ALL)
"""The verbs of buttons that press on several proposals."""


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
    _check_card(session, press, proposal)
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
        is_paused=policy.book.paused,
        prepared=prepared,
        absences=policy.absences,
        absent=absent,
    )
    outcome = _apply(session, context, policy, proposal)
    if outcome.reply.answer is Answer.ACCEPTED and press.verb in _TOLD_TO_FEATURES:
        for note_decision in hooks_of(session).note_decision:
            note_decision(session, proposal, press, now)
    return outcome


def _check_card(session: Session, press: Press | BatchDecision, proposal: Proposal) -> None:
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
    if proposal.state is State.PROPOSED and proposal.expires_at <= now and not policy.book.paused:
        proposal, jobs = expire(session, proposal, now)
    # ``presses.py`` computes the contents of an expired proposal again, and repeats the press with these
    # (``current``). Then the proposal is opened again, unless programs act on its end (``is_final``)
    if proposal.state is State.EXPIRED and prepared.current is not None and not proposal.kind.is_final:
        return _reopen(session, context, proposal, prepared.current)
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
    return _FUNCTIONS[press.verb](session, context, proposal)


def _find_verb_refusal(
    session: Session, context: PressContext, policy: Policy, proposal: Proposal
) -> PressOutcome | None:
    """Return the refusal of a verb; None if the proposal takes the verb, and no rule forbids its run."""
    press = context.press
    # ``undoes``: the id of the proposal whose change this one undoes
    if proposal.undoes and (press.verb in (Verb.EDIT, Verb.SIMILAR) or press.arguments is not None):
        return refuse(Answer.INVALID, proposal, "What undoes a change can't be edited or allowed in advance.")
    if press.verb in _RUNNING and policy.book.has_forbid_rule:  # there are rules that forbid calls
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
        edits = [edit.words for edit in proposal.edits if edit.round > seen_round]
        if edits:
            text += f": {'; '.join(edits)}"
    return f"{text}. Look at the new card, then decide."


def _reopen(session: Session, context: PressContext, proposal: Proposal, current: Contents) -> PressOutcome:
    """Open an expired proposal again with current values, instead of applying the press."""
    why, jobs = undo.reopen_inverse(session, context, proposal)  # if it undoes a change
    if why:
        return refuse(Answer.ALREADY, proposal, why)
    proposal = context.move(
        session,
        proposal,
        State.PROPOSED,
        Act.ASK_AGAIN,
        **make_terms(current.verdict, context.now),
        preview=current.preview,
        trial=current.trial,
        for_real=None,
        round=proposal.round + 1,
        votes=(),
        decided_at=None,
    )
    text = "It had expired, so nothing ran. Here it is again with current values."
    work = (request_redraw(session, proposal), *jobs, *teammates.resume_work(session, proposal))
    return PressOutcome(Reply(Answer.STALE, text, (proposal,)), work)


def _stop(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    """Note that the run should end. The process that runs the call reads this, and stores the outcome."""
    if proposal.cause is Cause.STOPPED:
        return refuse(Answer.ALREADY, proposal, "It is being stopped already.")
    error = f"{context.card_author} stopped it. What it did until then is unknown."
    proposal = context.move(session, proposal, cause=Cause.STOPPED, error=error)
    return accept(session, proposal, "Stopping it.")


def _retry(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    """Approve a failed proposal again, so that it runs once more."""
    if proposal.cause is Cause.TOOL_CHANGED:
        return refuse(Answer.STALE, proposal, "The tool has changed since. Please request it again.")
    if proposal.cause is Cause.REFUSED:
        return refuse(Answer.STALE, proposal, f"Trying again can't help. {proposal.error}")
    why, jobs = undo.reopen_inverse(session, context, proposal)  # if it undoes a change
    if why:
        return refuse(Answer.ALREADY, proposal, why)
    if proposal.connection and proposal.connection.is_personal and not is_owner(proposal, context.person):
        return _ask_owner_again(session, context, proposal, jobs)
    proposal = context.move(session, proposal, State.APPROVED, **_CLEARED_RUN, round=proposal.round + 1)
    team_jobs = teammates.resume_work(session, proposal)
    return accept(session, proposal, "Trying again.", Job(Work.EXECUTE, proposal.id), *jobs, *team_jobs)


def _ask_owner_again(
    session: Session, context: PressContext, proposal: Proposal, jobs: tuple[Job, ...]
) -> PressOutcome:
    """Open a failed proposal again, because someone retries it who is not its owner.

    The call runs in the owner's name, so the owner is asked. The press counts as a vote.
    """
    proposal = context.move(
        session,
        proposal,
        State.PROPOSED,
        **_CLEARED_RUN,
        **_CLEARED_DECISION,
        **start_timers(proposal.ttl, proposal.remind_every, context.now),
        round=proposal.round + 1,
        votes=(context.vote(Verb.APPROVE),),
    )
    team_jobs = teammates.resume_work(session, proposal)
    owner = ownership.name_owner(proposal)
    return accept(session, proposal, f"It runs as {owner}, so {owner} is asked again.", *jobs, *team_jobs)


def _withdraw(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    changes = {"cause": Cause.TAKEN_BACK, "decline_reason": context.press.reason}
    proposal, jobs = context.end(session, proposal, State.CANCELLED, **changes)
    return PressOutcome(Reply(Answer.ACCEPTED, "Withdrawn.", (proposal,)), jobs)


def _expire(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    proposal, jobs = context.end(session, proposal, State.EXPIRED)
    return PressOutcome(Reply(Answer.ACCEPTED, "Expired.", (proposal,)), jobs)


def _extend(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    """Restart the timer of an open proposal."""
    now = context.now
    proposal = context.move(session, proposal, **start_timers(proposal.ttl, proposal.remind_every, now))
    return accept(session, proposal, f"It now expires {format_relative(proposal.expires_at, now)}.")


def _take_by_feature(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    """Hand a press to the features, in turn. The first feature that takes the press replies."""
    for take_press in hooks_of(session).take_press:
        text = take_press(session, proposal, context.press, context.person, context.now)
        if text:
            return PressOutcome(Reply(Answer.ACCEPTED, text, (proposal,)))
    return refuse(Answer.INVALID, proposal, "That can't be done here.")


def _reassign(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    """Let the accounts and roles decide that the press's reason lists, and no one else.

    A rule that the requester may not decide (four eyes) stays: no admin can assign it away.
    """
    written = re.split(r"[,;\s]+", context.press.reason or "")
    words = [word for word in written if word and word != "and"]
    for word in words:
        if word not in ("requester", *Role) and not _is_account(word):
            text = (
                f"{word[:40]!r} is neither an account nor a role. "
                "Write requester, admin, approver or http:NAME."
            )
            return refuse(Answer.INVALID, proposal, text)
    deciders = Deciders(
        four_eyes=proposal.deciders.four_eyes,
        place=proposal.deciders.place,
        requester="requester" in words,
        roles=tuple(word for word in words if word in set(Role)),
        people=tuple(word for word in words if ":" in word),
    )
    requester = people.load_person(session, proposal.requester)
    why = context.policies.load(session).find_quorum_objection(deciders, requester, proposal.quorum)
    if why:
        return refuse(Answer.INVALID, proposal, f"Say who should decide: {why}.")
    proposal = context.move(session, proposal, deciders=deciders, votes=(), for_real=None)
    return accept(session, proposal, "Reassigned. Earlier votes were reset.")


def _is_account(word: str) -> bool:
    try:
        return str(Actor.parse(word)) == word
    except ValueError:
        return False


_FUNCTIONS: Mapping[Verb, Callable[[Session, PressContext, Proposal], PressOutcome]] = {
    Verb.APPROVE: votes.approve,
    Verb.DECLINE: votes.decline,
    Verb.EDIT: votes.edit_proposal,
    Verb.NEVER: votes.decline_for_good,
    Verb.SIMILAR: votes.approve_similar,
    Verb.APPROVE_STEPS: votes.approve_steps,
    Verb.REVISE: votes.revise,
    Verb.ASK: card_questions.ask_agent,
    Verb.STOP: _stop,
    Verb.RETRY: _retry,
    Verb.CANCEL: _withdraw,
    Verb.STOP_ALL: _withdraw,
    Verb.EXPIRE: _expire,
    Verb.EXTEND: _extend,
    Verb.REASSIGN: _reassign,
    Verb.MUTE: _take_by_feature,
    Verb.FOR_REAL: votes.approve,
    Verb.UNDO: undo.undo_proposal,
    **dict.fromkeys((Verb.ANSWER, *CHOICES), agent_questions.take_answer),
}
"""The function that applies each verb to one proposal."""


@dataclass(frozen=True, slots=True)
class SplitPress:
    """A press on several proposals, split into one press for each."""

    presses: tuple[Press, ...]
    needing_own_card: tuple[Proposal, ...] = ()
    """The proposals that get no press: a call that can't be undone is approved only on a card of its own."""


def split_press(session: Session, press: Press | BatchDecision) -> SplitPress | Reply:
    """Split a press on several proposals into one press for each, or return the refusal.

    The press is either a verb for all proposals of a group, or a choice: the rows of a batch to approve and
    the rows to decline. Raises UnknownCard as `decide` does.
    """
    pressed = proposals.get(session, press.proposal_id)
    if pressed is None or (isinstance(press, BatchDecision) and pressed.batch != press.batch):
        what = "batch" if isinstance(press, BatchDecision) else "proposal"
        return Reply(Answer.UNKNOWN, f"There is no {what} {press.proposal_id}.")
    _check_card(session, press, pressed)
    group = proposals.list_group_of(session, pressed)
    # the round of this press is the sum of the group's rounds, which grows with a change to any proposal
    if press.round is not None and press.round != sum(proposal.round for proposal in group):
        return Reply(Answer.STALE, "One of these has changed. Please look at the cards again.", tuple(group))
    if isinstance(press, BatchDecision):
        presses = _list_chosen(press, group)
    else:
        presses = _list_same(press, group)
    if isinstance(presses, Reply):
        return presses
    by_id = {proposal.id: proposal for proposal in group}
    kept: list[Press] = []
    needing_own_card: list[Proposal] = []
    for each_press in presses:
        proposal = by_id[each_press.proposal_id]
        if each_press.verb is Verb.APPROVE and proposal.risk.level is Level.DESTRUCTIVE:
            needing_own_card.append(proposal)
        else:
            kept.append(each_press)
    if kept:
        return SplitPress(tuple(kept), tuple(needing_own_card))
    return Reply(Answer.INVALID, _describe_needing_own_card(needing_own_card), tuple(needing_own_card))


def _list_same(press: Press, group: Sequence[Proposal]) -> list[Press] | Reply:
    """Return a press for each proposal of the group whose state fits the verb, or a refusal if none fits."""
    verb, state = _EACH_OF_ALL[press.verb]
    fitting = [proposal for proposal in group if proposal.state is state]
    if verb is Verb.UNDO:
        fitting = [proposal for proposal in fitting if proposal.undo_until is not None]
    if not fitting:
        text = _NONE_LEFT_TEXTS.get(press.verb, "All of these are already decided.")
        return Reply(Answer.ALREADY, text, tuple(group))
    presses = []
    for proposal in fitting:
        # digest, ``seen`` and message are those of the pressed card, not of each proposal's own
        press_on_each = replace(press, verb=verb, proposal_id=proposal.id, digest=None, seen=None, ref=None)
        if press.round is not None:
            press_on_each = replace(press_on_each, round=proposal.round)
        presses.append(press_on_each)
    return presses


def _list_chosen(choice: BatchDecision, group: Sequence[Proposal]) -> list[Press] | Reply:
    """Return a press for each row that the choice approves or declines, or a refusal."""
    rows = [(Verb.APPROVE, row) for row in choice.approve]
    rows += [(Verb.DECLINE, row) for row in choice.decline]
    if not rows:
        return Reply(Answer.INVALID, "Say which rows to approve or decline.")
    ids = {proposal.id for proposal in group}
    chosen = [row.id for _, row in rows]
    for row_id in chosen:
        if row_id not in ids:
            return Reply(Answer.INVALID, f"There is no {row_id} in this batch.")
    for row_id in chosen:
        if chosen.count(row_id) > 1:
            return Reply(Answer.INVALID, f"{row_id} is there twice. Approve it or decline it.")
    return [
        Press(
            choice.actor,
            verb,
            row.id,
            row.round,
            choice.reason,
            address=choice.address,
            seen=row.seen,
            by_api=choice.by_api,
        )
        for verb, row in rows
    ]


def _describe_needing_own_card(needing_own_card: Sequence[Proposal]) -> str:
    count = len(needing_own_card)
    each_one = "it" if count == 1 else "each"
    return f"{count} can't be undone, so approve {each_one} on its own card."


def decide_all(
    session: Session, presses: Sequence[Press], policies: Policies, now: datetime
) -> list[PressOutcome]:
    """Process presses in their order, each like `decide`."""
    return [decide(session, press, policies, now) for press in presses]


def find_inverse(outcome: PressOutcome) -> Proposal | None:
    """Return the proposal that a press on Undo has opened, or None."""
    for proposal in outcome.reply.proposals:
        if proposal.undoes:
            return proposal
    return None


def count_outcomes(split: SplitPress, outcomes: Sequence[PressOutcome]) -> PressOutcome:
    """Summarise a press on several proposals: the number of each outcome, and the reasons of refusals.

    For example: "2 approved. “Delete the page” not: You may not decide this."
    """
    jobs: dict[Job, None] = {}  # each job once, in their order
    proposals_shown: list[Proposal] = []
    accepted: Counter[str] = Counter()
    refused: dict[str, list[PressOutcome]] = {}  # by the reason in words
    for press, outcome in zip(split.presses, outcomes, strict=True):
        reply = outcome.reply
        jobs |= dict.fromkeys(outcome.jobs)
        proposals_shown += reply.proposals
        if reply.answer is not Answer.ACCEPTED:
            refused.setdefault(reply.text, []).append(outcome)
        # the last proposal of a reply: after Undo the one of the inverse call, else the pressed one
        elif reply.proposals[-1].state is State.PROPOSED:
            accepted[_OPEN_OUTCOMES[press.verb]] += 1
        else:
            accepted[_OUTCOMES[press.verb]] += 1
    sentences = []
    if accepted:
        counts = [f"{count} {word}" for word, count in accepted.items()]
        sentences.append(f"{', '.join(counts)}.")
    needs_subject = bool(accepted) or len(refused) > 1
    for reason, refusals in list(refused.items())[:_MAX_REASONS]:
        if needs_subject:
            sentences.append(f"{_name_refused(refusals)} not: {reason}")
        else:
            sentences.append(reason)
    if split.needing_own_card:
        sentences.append(_describe_needing_own_card(split.needing_own_card))
    answer = Answer.ACCEPTED if accepted else outcomes[0].reply.answer
    reply = Reply(answer, " ".join(sentences), (*proposals_shown, *split.needing_own_card))
    return PressOutcome(reply, tuple(jobs))


def _name_refused(refusals: Sequence[PressOutcome]) -> str:
    """Return the title of the proposal if there is one refusal, else the number of refusals."""
    proposals_of_first = refusals[0].reply.proposals
    if len(refusals) == 1 and proposals_of_first:
        return f"“{proposals_of_first[0].description}”"
    return str(len(refusals))
