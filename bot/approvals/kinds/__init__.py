"""The steps that approvals take with some kinds of proposals in place of the usual ones, one module a kind.

Begin with ``procedure.py``. Facts of a kind, such as its words and its buttons, are in ``bot/domain/kinds/``.
Nothing here decides: votes are counted in ``bot/approvals/votes.py`` for all kinds.
"""

from collections.abc import Mapping

from bot.approvals.kinds.plans import PLANNING
from bot.approvals.kinds.procedure import USUAL, Procedure
from bot.approvals.kinds.questions import ASKING
from bot.domain.kinds import PLAN, QUESTION
from bot.domain.proposals import ProposalKind

_PROCEDURES: Mapping[ProposalKind, Procedure] = {PLAN: PLANNING, QUESTION: ASKING}


def find_procedure(kind: ProposalKind) -> Procedure:
    """Return the steps of a kind; those of a call where it has none of its own."""
    return _PROCEDURES.get(kind, USUAL)
