"""Interrupts, AG-UI's form of open proposals: a proposal is a call that waits for people.

An interrupt carries the proposal's id and its round, a number that grows with each edit. So an answer counts
only for the content that was shown.
"""

from typing import Any

from ag_ui.core import Interrupt

from bot.domain import kinds
from bot.domain.verbs import Verb
from bot.web.schemas.proposals import ProposalView

_REASON_OF_KIND = {kinds.QUESTION.name: "input_required", kinds.PLAN.name: "confirmation"}
_CALL_REASON = "tool_call"
_MAX_REASON_CHARS = 1000
_MAX_ROUND_DIGITS = 8


def make_interrupt(proposal: ProposalView, refusal: str | None) -> Interrupt:
    """Return the interrupt of a proposal. ``refusal``: why an answer in this run was refused, if one was."""
    return Interrupt(
        id=_make_interrupt_id(proposal),
        reason=_REASON_OF_KIND.get(proposal.kind, _CALL_REASON),
        message=f"{refusal} {proposal.headline}" if refusal else proposal.headline,
        tool_call_id=proposal.id,
        response_schema=_make_response_schema(proposal),
        # ``expires_at`` is only in here: a front end closes a thread whose interrupt has that field
        metadata={"nod": proposal.model_dump(mode="json")},
    )


def _make_interrupt_id(proposal: ProposalView) -> str:
    """Return the id of a proposal's interrupt, ``ID-ROUND``: an edit begins a new round."""
    return f"{proposal.id}-{proposal.round}"


def parse_interrupt_id(interrupt_id: str) -> tuple[str, int] | None:
    """Return the proposal's id and the round in an interrupt's id; None for an id of another form."""
    proposal_id, _, digits = interrupt_id.partition("-")
    has_round = digits.isdecimal() and len(digits) <= _MAX_ROUND_DIGITS
    if not proposal_id.isalnum() or not has_round:
        return None
    return proposal_id, int(digits)


def _make_response_schema(proposal: ProposalView) -> dict[str, Any]:
    """Return the JSON schema of the answer to a proposal's interrupt, from which front ends make a form."""
    approved = {
        "type": "boolean",
        "description": "false declines; leave it out to decide later",
    }
    text_schema = {"type": "string", "maxLength": _MAX_REASON_CHARS}
    reason = text_schema | {"description": "why it is declined"}
    properties: dict[str, Any] = {"approved": approved, "reason": reason}
    if Verb.ANSWER in proposal.verbs:
        properties["answer"] = text_schema | {"description": "your answer"}
        if proposal.choices:
            properties["answer"]["examples"] = proposal.choices
    if Verb.EDIT in proposal.verbs:
        properties["editedArgs"] = {
            **proposal.schema_,
            "description": "instead of the proposed arguments; without approved, people are asked again",
        }
    if Verb.REVISE in proposal.verbs:
        properties["revise"] = text_schema | {"description": "what should change instead"}
    return {"type": "object", "properties": properties}
