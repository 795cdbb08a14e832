"""The steps that some kinds of proposals take in place of the usual steps, in one module for each kind.

A kind is what a proposal is: a tool's call, a plan, a question of the agent. Begin with ``procedure.py``.
Facts of a kind, such as its words and its buttons, are in ``bot/domain/kinds/``. Nothing here decides: votes
are counted in ``bot/approvals/votes.py`` for all kinds.
"""

from collections.abc import Mapping

from bot.approvals.kinds.plans import PLANNING
from bot.approvals.kinds.procedure import USUAL, Procedure
from bot.approvals.kinds.questions import ASKING
from bot.domain.kinds.plans import PLAN
from bot.domain.kinds.questions import QUESTION
from bot.domain.proposals import ProposalKind

_PROCEDURES: Mapping[ProposalKind, Procedure] = {PLAN: PLANNING, QUESTION: ASKING}


def find_procedure(kind: ProposalKind) -> Procedure:
    """Return the procedure of a kind; for a kind without one, the usual procedure."""
    return _PROCEDURES.get(kind, USUAL)
