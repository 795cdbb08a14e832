"""A press on several proposals: on all of one answer of the agent, or on the rows of a *batch* on one card.

`split_press` splits such a press into one for each proposal, `decide_all` decides these in turn, and
`sum_up` makes one reply of theirs.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from sqlmodel import Session

from bot.approvals.decide import check_card, decide
from bot.approvals.press_values import PressOutcome
from bot.domain.chat import Answer, BatchDecision, Press, Reply
from bot.domain.jobs import Job
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.risks import Level
from bot.domain.verbs import Verb
from bot.store import proposals
from bot.store.rules import Policies

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
    """The press that each proposal of a group gets, where a button presses on all of them."""

    verb: Verb
    state: State  # only proposals in this state get the press


_EACH_OF_ALL = {
    Verb.APPROVE_ALL: _PressOnEach(Verb.APPROVE, State.PROPOSED),
    Verb.DECLINE_ALL: _PressOnEach(Verb.DECLINE, State.PROPOSED),
    Verb.STOP_ALL: _PressOnEach(Verb.STOP_ALL, State.APPROVED),  # STOP is for runs that have begun
    Verb.UNDO_ALL: _PressOnEach(Verb.UNDO, State.SUCCEEDED),
}
"""The press that each proposal gets, by the verb of the button for all."""
BATCH_VERBS = frozenset(_EACH_OF_ALL)
"""The verbs of buttons that press on several proposals."""


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
    check_card(session, press, pressed)
    group = proposals.list_group_of(session, pressed)
    # a button for a group has the sum of the rounds of its proposals, which grows with each new round
    round_of_group = sum(proposal.round for proposal in group)
    if press.round is not None and press.round != round_of_group:
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
        # digest, ``seen`` and ``ref`` belong to the pressed card, not to the card of this proposal
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


def find_undo_proposal(outcome: PressOutcome) -> Proposal | None:
    """Return the proposal that a press on Undo has opened, or None."""
    for proposal in outcome.reply.proposals:
        if proposal.undoes_proposal_id:
            return proposal
    return None


def sum_up(split: SplitPress, outcomes: Sequence[PressOutcome]) -> PressOutcome:
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
        elif _is_still_open(outcome):
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


def _is_still_open(outcome: PressOutcome) -> bool:
    """Return whether people are still asked after an accepted press."""
    decided = outcome.reply.proposals[-1]  # the pressed proposal; after Undo, the one that undoes it
    return decided.state is State.PROPOSED


def _name_refused(refusals: Sequence[PressOutcome]) -> str:
    """Return the title of the proposal if there is one refusal, else the number of refusals."""
    proposals_of_first = refusals[0].reply.proposals
    if len(refusals) == 1 and proposals_of_first:
        return f"“{proposals_of_first[0].description}”"
    return str(len(refusals))
