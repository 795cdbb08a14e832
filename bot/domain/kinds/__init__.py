"""The kinds of proposals: one `ProposalKind` value each, in modules of their own, found by the name in rows.

A kind says in which words a proposal is shown, what people may do with it, who decides it, and whether a tool
runs for it. Begin with ``calls.py``, the usual kind; `ProposalKind` in ``bot/domain/proposals.py`` explains
each field. A new kind is a value in a module here and a member of `KINDS`, since every process that reads
rows knows all kinds. Nothing here reads rows, and nothing is drawn here.
"""

from bot.domain.kinds.agents import AGENT
from bot.domain.kinds.calls import CALL
from bot.domain.kinds.memory import MEMORY
from bot.domain.kinds.plans import PLAN
from bot.domain.kinds.questions import FORM, QUESTION
from bot.domain.kinds.readings import READING
from bot.domain.kinds.requests import REQUEST
from bot.domain.kinds.suggestions import SUGGESTION
from bot.domain.proposals import Proposal, ProposalKind
from bot.domain.verbs import Verb

__all__ = (
    "AGENT",
    "CALL",
    "FORM",
    "KINDS",
    "MEMORY",
    "PLAN",
    "QUESTION",
    "READING",
    "REQUEST",
    "SUGGESTION",
    "find_kind",
)

# QUESTION is missing, since it has the name of FORM: it is found as `FORM.kind_if_model_asked`
KINDS = (CALL, PLAN, REQUEST, FORM, SUGGESTION, MEMORY, READING, AGENT)
_BY_NAME = {kind.name: kind for kind in KINDS}
_UNKNOWN_TEXT = "This version of Nod can't decide it."


def find_kind(name: str, *, asked_by_model: bool = False) -> ProposalKind:
    """Return the kind of a proposal by its name. ``asked_by_model``: a call of the agent's model led to it.

    For a name that this release does not know, since another one wrote the row, a kind is made up: such a
    proposal is shown and can be declined or withdrawn. It is not approved, not edited, and never runs.
    """
    found = _BY_NAME.get(name)
    if found is None:
        return ProposalKind(
            name,
            _UNKNOWN_TEXT,
            no_approval_text=_UNKNOWN_TEXT,
            no_edit_text=_UNKNOWN_TEXT,
            runs=False,
            list_buttons=_offer_nothing,
        )
    if asked_by_model and found.kind_if_model_asked:
        return found.kind_if_model_asked
    return found


def _offer_nothing(_: Proposal, **_unused_facts: bool) -> tuple[Verb, ...]:
    return ()
