"""The hook that adds lines about what is unusual about a call to its card, such as an address used first.

The facts come from the record, which is the proposals before (`find_unusual`).
"""

from collections.abc import Sequence

from sqlmodel import Session

from bot.domain.annotations import RECORD_NAME, Annotation
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.unusual_facts import find_unusual
from bot.store import past_proposals


def annotate_unusual(session: Session, proposal: Proposal) -> Sequence[Annotation]:
    """Return lines about what is unusual about an open call; none for a question, a form or an undo.

    It takes one read.
    """
    kind = proposal.kind
    is_asked = proposal.state is State.PROPOSED and kind.runs and kind.is_counted
    if not is_asked or kind.is_answer or kind.is_form or kind.has_steps or proposal.undoes_proposal_id:
        return ()
    facts = find_unusual(proposal, past_proposals.find_past_calls(session, proposal), proposal.updated_at)
    return [Annotation(RECORD_NAME, fact) for fact in facts]
