"""Suggestions: a rule that Nod suggests to admins, as people approved the same kind of call again and again.

To approve it is to set the rule. *Never suggest this* declines it for good.
"""

from dataclasses import replace

from bot.domain.proposal_states import State, Tone
from bot.domain.proposals import AskerFacts, Proposal, ProposalKind
from bot.domain.verbs import BUTTONS, Needs, Verb


def _introduce(_: AskerFacts) -> str:
    return "Suggested by Nod"


def _find_outcome(proposal: Proposal) -> tuple[Tone, str] | None:
    if proposal.state is not State.DECLINED:
        return None
    never = any(vote.verb == Verb.NEVER for vote in proposal.votes)
    words = "Never to be suggested again" if never else "Not now"
    return Tone.QUIET, f"{words}, said {proposal.decided_by or 'someone'}."


def _offer(_: Proposal, **_given: bool) -> tuple[Verb, ...]:
    return (Verb.APPROVE, Verb.DECLINE, Verb.NEVER)


SUGGESTION = ProposalKind(
    "suggestion",
    "Suggested to admins. Nothing has been changed.",
    declined_text="Not now. It may be suggested again in a month.",
    no_edit_text="A suggestion is decided as it is. Set another rule with /approvals.",
    introduce=_introduce,
    find_outcome=_find_outcome,
    extra_verbs=frozenset({Verb.NEVER}),
    list_buttons=_offer,
    buttons={
        Verb.APPROVE: replace(BUTTONS[Verb.APPROVE], label="Set this rule", busy_label="Setting…"),
        Verb.DECLINE: replace(
            BUTTONS[Verb.DECLINE], label="Not now", busy_label="Saving…", needs=Needs.NOTHING
        ),
    },
    is_final=True,
    may_be_requested=False,
    is_counted=False,
)
