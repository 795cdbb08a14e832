"""Questions: of the agent to people, and of a tool's server to the person for whom the server runs a call.

An answer approves nothing. Rows have the name ``question`` for both kinds: it is the agent's `QUESTION` if a
call of its model led to it, else a `FORM` (see `ProposalKind.kind_if_model_asked`). `ProposalKind` explains
the fields of both.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bot.domain.outcomes import WAITING, format_reason, why_expired
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import AskerFacts, Proposal, ProposalKind, introduce_asker
from bot.domain.text import one_line
from bot.domain.verbs import BUTTONS, CHOICES, Verb

_WAITING_TEXT = "Waiting for an answer."


def _is_always_own(_: Mapping[str, Any]) -> bool:
    """Return True: the requester, who here is the person asked, decides alone."""
    return True


def _introduce(asker: AskerFacts) -> str:
    """Return the line on the person who is asked, or on the requester if others may answer as well."""
    return introduce_asker(asker, "Asked of" if asker.decides else "Asked by")


def _introduce_asked(asker: AskerFacts) -> str:
    """Return the line on the person who is asked."""
    return introduce_asker(asker, "Asked of")


def _offer_choices(proposal: Proposal, **_unused_facts: bool) -> tuple[Verb, ...]:
    """Return the verbs of a question's buttons: one for each choice, an answer in words, or none at all."""
    return (*CHOICES[: len(proposal.choices or ())], Verb.ANSWER, Verb.DECLINE)


def _offer_form(_: Proposal, *, fillable: bool, **_unused_facts: bool) -> tuple[Verb, ...]:
    """Return the verbs of a form's buttons. ``fillable``: it has fields; a form without any is confirmed."""
    filling = (Verb.EDIT,) if fillable else ()
    return (*filling, Verb.APPROVE, Verb.DECLINE)


def _tell_model(proposal: Proposal) -> str:
    """Return the text for the model on how its question stands or ended."""
    who = proposal.decided_by or "someone"
    match proposal.state:
        case State.PROPOSED:
            deciders = one_line(proposal.deciders.describe(proposal.requester.label))
            return f"{WAITING}: the question is open, and {deciders} can answer it. Do not ask it again."
        case State.SUCCEEDED:
            return f"ANSWERED by {who}: “{proposal.result}”. An answer approves nothing."
        case State.DECLINED:
            return f"DECLINED: {who} gives no answer{format_reason(proposal)}. Do not ask it again."
        case State.EXPIRED:
            why = why_expired(proposal, "answered")
            return f"EXPIRED: {why}. Continue without an answer, or say what you need."
        case State.CANCELLED if proposal.cause is Cause.WRITTEN:
            return f"CANCELLED: {who} wrote in the conversation instead. What they wrote may be the answer."
        case State.CANCELLED:
            reason = format_reason(proposal)
            return f"CANCELLED: it was withdrawn or reached no one{reason}. Continue without an answer."
        case State.FAILED:
            return (
                f"FAILED: the answer was lost: {proposal.error or 'no one knows why'}. You may ask it again."
            )
        case State.APPROVED | State.EXECUTING:
            return f"{WAITING}: {who} has answered, and you get the answer in a moment."


QUESTION = ProposalKind(
    "question",
    _WAITING_TEXT,
    approved_word="Answered",
    decided_word="answered",
    duplicate_text="ERROR: You already ask a question in this answer. Ask one at a time.",
    risk_text="An answer approves nothing.",
    no_approval_text="It is a question: answer it. There is nothing to approve.",
    no_edit_text="It is a question: answer it. There is nothing to edit.",
    introduce=_introduce,
    tell_model=_tell_model,
    extra_verbs=frozenset({Verb.ANSWER, *CHOICES}),
    list_buttons=_offer_choices,
    is_own=_is_always_own,
    is_final=True,
    is_answer=True,
    hides_arguments=True,
    may_be_requested=False,
    is_counted=False,
)
"""A question of the agent, with choices or for an answer in words."""

FORM = ProposalKind(
    "question",
    _WAITING_TEXT,
    approved_word="Answered",
    decided_word="answered",
    approved_text="Sent.",
    edited_text="Filled in, not sent yet. Press Send answer on its card.",
    introduce=_introduce_asked,
    list_buttons=_offer_form,
    buttons={
        Verb.APPROVE: replace(BUTTONS[Verb.APPROVE], label="Send answer", busy_label="Sending…"),
        Verb.EDIT: replace(BUTTONS[Verb.EDIT], label="Fill in"),
    },
    is_own=_is_always_own,
    is_final=True,
    is_answer=True,
    is_form=True,
    is_counted=False,
    kind_if_model_asked=QUESTION,
)
"""A question of a tool's server: people fill in its arguments, and the call that waits for them continues."""
