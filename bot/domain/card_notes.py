"""Sentences of a card on the details of a proposal: its notes, whether it can be undone, its checks. Pure.

`list_notes` returns the notes, such as on votes, edits and a trial. The sentences of `describe_undo` and
`describe_checks` have fields of their own on the card.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from bot.domain.cards import CAN_BE_UNDONE_TEXT
from bot.domain.connections import CONSENT
from bot.domain.files import fits_card
from bot.domain.people import Names, with_names
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text
from bot.domain.text import SHORT_ID_CHARS, make_sentence, one_line
from bot.domain.times import format_relative, format_span
from bot.domain.trials import Trial
from bot.domain.verbs import Verb

_MAX_EDIT_NOTES = 5  # the most edits that a card names, the newest ones
_MAX_CHECKED_FIELDS = 3  # the most fields, read again after the run, that a card names
_LEAD_TEXTS: Mapping[str | None, str] = {
    "lead": "A person or the lead agent approves it",
    "both": "A person and the lead agent must each approve it",
}
"""The approvers of a plan in words, by `Deciders.lead`; for None people alone decide."""


def list_notes(
    proposal: Proposal,
    secrets: Sequence[str],
    names: Names,
    *,
    pause_words: str,
    declined_before: Proposal | None,
) -> list[str]:
    """Return the notes of a card, without secrets, such as on the votes, edits, a trial and an undo."""
    notes = []
    is_open = proposal.state is State.PROPOSED
    if proposal.quorum > 1 and is_open:
        approvals = sum(vote.verb == Verb.APPROVE for vote in proposal.votes)
        notes.append(f"{approvals} of {proposal.quorum} approvals so far.")
    if pause_words and proposal.state in (State.PROPOSED, State.APPROVED):
        notes.append(f"{one_line(pause_words)}. Nothing runs until an admin uses /approvals resume.")
    if declined_before and declined_before.decided_at and is_open:
        ago = format_relative(declined_before.decided_at, proposal.created_at)
        who = declined_before.decided_by or "Someone"
        notes.append(f"{who} declined the same, {ago} when this was asked.")
    if proposal.ran_without_asking:
        notes.append(f"No one was asked: {with_names(proposal.rule_text, names)}.")
    if is_open and proposal.deciders.lead in _LEAD_TEXTS:
        notes.append(f"{_LEAD_TEXTS[proposal.deciders.lead]}: {with_names(proposal.rule_text, names)}.")
    if proposal.edited_by and not proposal.edits:
        notes.append(f"Edited by {proposal.edited_by} before approval.")
    edits = [one_line(make_sentence(edit.description)) for edit in proposal.edits[-_MAX_EDIT_NOTES:]]
    notes += [redact_text(edit, secrets) for edit in edits]
    if proposal.trial is not None:
        notes += _list_trial_notes(proposal, proposal.trial)
    if proposal.connection and proposal.connection.is_personal and _waits_for_owner(proposal):
        notes.append(f"Only {proposal.connection.owner_label} can let it run: it runs as them.")
    if proposal.values_changed and is_open:
        notes.append("The data changed after approval, so this needs a new decision.")
    if proposal.result and proposal.result_sentence is None and not fits_card(proposal.result):
        notes.append("The result is long. All of it is in a file.")
    notes += [redact_text(note, secrets) for note in _list_undo_notes(proposal)]
    return notes


def _list_trial_notes(proposal: Proposal, trial: Trial) -> list[str]:
    """Return notes on a trial, also on whether people chose its result or to run the call for real."""
    if proposal.for_real:
        begun = "It ran" if proposal.state is State.SUCCEEDED else "Approved to run"
        return [f"{begun} for real, instead of applying its trial."]
    if proposal.state is not State.PROPOSED:
        return []
    why = one_line(make_sentence(trial.why))
    if not trial.tried:
        return [f"Not tried first. {why}"]
    if not trial.applies:
        return [f"Tried in a closed copy. It can't be applied: {why}"]
    return ["Tried in a closed copy. Approve applies exactly this, without running it again."]


def _waits_for_owner(proposal: Proposal) -> bool:
    """Tell if the call still needs the consent of the person under whose account it runs.

    That person agrees by a vote to approve, or by a `CONSENT` if they may not decide. Where the requester
    decides alone, no consent besides the decision is needed.
    """
    if proposal.state is not State.PROPOSED or proposal.connection is None:
        return False
    if proposal.requester_decides_alone or is_asker_enough(proposal):
        return False
    owner = proposal.connection.owner
    return not any(
        vote.verb in (Verb.APPROVE, CONSENT) and str(vote.actor) == owner for vote in proposal.votes
    )


def is_asker_enough(proposal: Proposal) -> bool:
    """Tell if the requester's approval is enough by the rules, and these name no other people."""
    deciders = proposal.deciders
    return deciders.requester and not deciders.four_eyes and not deciders.people and proposal.quorum == 1


def _list_undo_notes(proposal: Proposal) -> Iterator[str]:
    """Yield notes on what the call undoes, on fields that are not as approved, and on the call's own Undo."""
    if proposal.undoes_proposal_id and proposal.state is State.PROPOSED:
        yield f"This undoes proposal {proposal.undoes_proposal_id[:SHORT_ID_CHARS]}."
    if proposal.state is not State.SUCCEEDED:
        return
    if proposal.wrong_fields:
        values = ", ".join(
            one_line(field.description) for field in proposal.wrong_fields[:_MAX_CHECKED_FIELDS]
        )
        yield f"⚠️ Checked: this is not what was approved: {values}."
    if proposal.undo_seconds and proposal.inverse and proposal.inverse.reason:
        yield make_sentence(f"It can't be undone after all: {one_line(proposal.inverse.reason)}")
    if proposal.undo_proposal_id and not proposal.undone_by_name:
        yield "Undo was pressed. It has a card of its own."


def describe_undo(proposal: Proposal) -> str:
    """Return a sentence for deciders on whether the call can be undone; empty where that is unknown."""
    if proposal.state is not State.PROPOSED or proposal.undo_seconds is None:
        return ""
    if proposal.undo_seconds:
        return f"{CAN_BE_UNDONE_TEXT} for {format_span(timedelta(seconds=proposal.undo_seconds))}."
    reason = proposal.inverse.reason if proposal.inverse else ""
    if reason:
        return make_sentence(f"Nod can't undo this: {reason}")
    return "Nod can't undo this."


def describe_checks(proposal: Proposal) -> str:
    """Return a sentence that the fields, read again after the run, are as approved.

    Empty where a field differs, or none could be read.
    """
    if proposal.wrong_fields or not proposal.read_again or proposal.undone_by_name:
        return ""
    values = ", ".join(one_line(field.description) for field in proposal.read_again[:_MAX_CHECKED_FIELDS])
    others = len(proposal.read_again) - _MAX_CHECKED_FIELDS
    if others > 0:
        return f"Checked: {values} and {others} more as approved."
    return f"Checked: {values}."
