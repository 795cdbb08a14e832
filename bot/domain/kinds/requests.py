"""Requests: something that a script asks people to approve over HTTP. The script acts afterwards, not Nod.

So no tool runs for a request, and its end is final: the script has read it.
"""

from bot.domain.proposals import AskerFacts, ProposalKind, introduce_asker


def _introduce(asker: AskerFacts) -> str:
    if asker.pending:
        return f"Asked by {asker.name}, whose script carries it out"
    return introduce_asker(asker)


REQUEST = ProposalKind(
    "request",
    "Waiting for a decision.",
    introduce=_introduce,
    is_of_script=True,
    for_approvers=True,
    runs=False,
    is_final=True,
)
