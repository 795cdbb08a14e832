"""The state of a proposal, or its end, as its card tells it: a tone and one sentence. Pure."""

from bot.domain.outcomes import format_reason, why_expired
from bot.domain.proposal_states import Cause, State, Tone
from bot.domain.proposals import Proposal


def describe_state(proposal: Proposal) -> tuple[Tone, str]:
    """Return the tone of a proposal's state, and the sentence on it; also for one that has not ended."""
    outcome_of_kind = proposal.kind.find_outcome(proposal)
    if outcome_of_kind:
        return outcome_of_kind
    who = proposal.decided_by or "someone"
    answered = proposal.kind.approved_word  # "Approved", unless the kind has another word
    # cards of final kinds have neither "Done." nor "Nothing was changed."; where a tool has a sentence of its
    # own on the result, that takes the place of "Done."
    done = "" if proposal.kind.is_final or proposal.result_sentence else "Done. "
    unchanged = "" if proposal.kind.is_final else " Nothing was changed."
    match proposal.state:
        case State.PROPOSED:
            return Tone.WAITING, proposal.kind.waiting_text
        case State.APPROVED:
            return Tone.WAITING, f"{answered} by {who}. It has not run yet."
        case State.EXECUTING:
            return Tone.WAITING, f"{answered} by {who}. {_describe_run(proposal)}…"
        case State.SUCCEEDED:
            if proposal.ended_badly:
                done = f"{proposal.ended_badly}. "
            if proposal.undone_by_name:
                return Tone.QUIET, f"{done}{answered} by {who}. Undone by {proposal.undone_by_name}."
            tone = Tone.WARNED if proposal.ended_badly or proposal.wrong_fields else Tone.GOOD
            return tone, f"{done}{answered} by {who}."
        case State.DECLINED:
            return Tone.QUIET, f"Declined by {who}{format_reason(proposal)}."
        case State.EXPIRED:
            return Tone.QUIET, f"Expired: {why_expired(proposal, proposal.kind.decided_word)}.{unchanged}"
        case State.CANCELLED if proposal.cause is Cause.UNDELIVERABLE:
            return Tone.BAD, f"Could not be delivered to anyone who may decide.{unchanged}"
        case State.CANCELLED:
            return Tone.QUIET, _describe_withdrawal(proposal, who)
        case State.FAILED:
            return Tone.BAD, _describe_failure(proposal, who)


def _describe_run(proposal: Proposal) -> str:
    if proposal.cause is Cause.STOPPED:
        return "Stopping"
    if proposal.progress and not find_printed_lines(proposal):
        return f"Running ({proposal.progress})"
    return "Running"


def find_printed_lines(proposal: Proposal) -> str:
    """Return the lines that a run printed last; empty if its progress is a few words, or none."""
    progress = proposal.progress or ""
    return progress if "\n" in progress else ""


def _describe_withdrawal(proposal: Proposal, who: str) -> str:
    match proposal.cause:
        case Cause.NO_LONGER_ASKED:
            return "Withdrawn: the call that asked this has ended."
        case Cause.WRITTEN:
            return f"Withdrawn: {who} wrote in the conversation instead."
        case _:
            return f"Withdrawn by {who}{format_reason(proposal)}."


def _describe_failure(proposal: Proposal, who: str) -> str:
    match proposal.cause:
        case Cause.OUTCOME_UNKNOWN:
            return (
                f"Outcome unknown: {who} approved it and it started, but never reported back. "
                "Check whether it happened before you retry."
            )
        case Cause.STOPPED:
            return f"Stopped while it ran, after {who} approved it. Check what it did before you retry."
        case Cause.TOOL_CHANGED:
            return f"Not run: the tool changed after {who} approved it. Nothing was changed."
        case Cause.FORBIDDEN:
            return f"Not run: {who} approved it, but a rule now forbids it. Nothing was changed."
        case Cause.DISCONNECTED:
            return f"Not run after {who} approved it. Nothing was changed."
        case _:
            return f"Failed after {who} approved it."
