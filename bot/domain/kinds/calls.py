"""Calls: one write call of a tool, the usual kind of proposal.

It is the only kind that rules and grants may let run without asking people. Its flags are explained in
`ProposalKind`; all that is not said here is as usual.
"""

from bot.domain.proposals import ProposalKind
from bot.domain.verbs import Verb

CALL = ProposalKind(
    "call",
    "Waiting for a decision. Nothing has been changed.",
    extra_verbs=frozenset({Verb.SIMILAR, Verb.STOP}),
    always_asks=False,
    may_be_undone=True,
    is_batched=True,
    runs_one_by_one=True,
    may_claim_early=True,
)
