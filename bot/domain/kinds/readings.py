"""Readings: a call that only reads, but under a person's account, in a conversation with other people.

Such a call runs without asking where the account's owner caused it and no one else reads along. Where others
would see what is read, or caused the call, the owner is asked by a card that no one else sees: allow it in
this conversation, only in private, or not now. ``bot/approvals/read_consents.py`` asks. `ProposalKind`
explains the fields of `READING`.
"""

from dataclasses import replace

from bot.domain.outcomes import WAITING
from bot.domain.proposal_states import State, Tone
from bot.domain.proposals import AskerFacts, Proposal, ProposalKind
from bot.domain.verbs import BUTTONS, Needs, Verb


def _offer(_: Proposal, **_unused_facts: bool) -> tuple[Verb, ...]:
    return (Verb.APPROVE, Verb.NEVER, Verb.DECLINE)


def _is_always_own(_: object) -> bool:
    """Return True: the requester, who here is the account's owner, decides alone."""
    return True


def _introduce(asker: AskerFacts) -> str:
    return f"Read as you, for {asker.place}" if asker.place else "Read as you"


def _find_outcome(proposal: Proposal) -> tuple[Tone, str] | None:
    if proposal.state is not State.DECLINED:
        return None
    words = "Only in private" if is_private_only(proposal) else "Not now"
    return Tone.QUIET, f"{words}, said {proposal.decided_by or 'someone'}. Nothing was read."


def _tell_model(proposal: Proposal) -> str:
    who = proposal.decided_by or "someone"
    match proposal.state:
        case State.PROPOSED:
            return f"{WAITING}: nothing was read yet. {proposal.requester.label} was asked; do not ask again."
        case State.DECLINED if is_private_only(proposal):
            return f"DECLINED: {who} lets this be read only in a private chat. Nothing was read. Say so."
        case State.DECLINED:
            return f"DECLINED: {who} does not want this to be read now. Nothing was read. Do not ask again."
    return ""


def is_private_only(proposal: Proposal) -> bool:
    """Tell if the owner of the account said that the call is to run only in private."""
    return any(vote.verb == Verb.NEVER for vote in proposal.votes)


READING = ProposalKind(
    "reading",
    "Waiting for your answer. Nothing has been read.",
    approved_word="Allowed",
    decided_word="answered",
    approved_text="Allowed. It is being read.",
    declined_text="Not now. Nothing was read.",
    duplicate_text=(
        "ERROR: The owner of the account is being asked whether it may be read here. "
        "Make this call again once they have answered."
    ),
    no_edit_text="It is answered as it is.",
    introduce=_introduce,
    find_outcome=_find_outcome,
    tell_model=_tell_model,
    extra_verbs=frozenset({Verb.NEVER}),
    list_buttons=_offer,
    buttons={
        Verb.APPROVE: replace(BUTTONS[Verb.APPROVE], label="This conversation", busy_label="Allowing…"),
        Verb.NEVER: replace(
            BUTTONS[Verb.NEVER], label="Only in private", busy_label="Saving…", is_in_menu=False
        ),
        Verb.DECLINE: replace(
            BUTTONS[Verb.DECLINE], label="Not now", busy_label="Saving…", needs=Needs.NOTHING
        ),
    },
    is_own=_is_always_own,
    hides_own=True,
    has_no_current_values=True,
    is_final=True,
    may_be_requested=False,
    is_counted=False,
)
