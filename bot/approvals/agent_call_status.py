"""The state of an agent's call, as the agent gets it: one word for programs, and a text."""

from dataclasses import dataclass

from bot.domain.conversations import CallResult
from bot.domain.files import File, choose_for_program
from bot.domain.outcomes import bound_text, for_model
from bot.domain.people import AGENTS
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal


@dataclass(frozen=True, slots=True)
class CallStatus:
    """The state of an agent's call, for the agent."""

    tool_name: str
    end: str  # "waiting", "running", or how the call ended: see `name_end`
    text: str  # the result, or the state in words
    id: str = ""  # the call's id; empty for a read, which has no proposal either
    proposal: Proposal | None = None
    joined: bool = False  # True if this is the state of an earlier call with the same key or arguments
    files: tuple[File, ...] = ()  # the files of the tool's answer
    pause: float = 0  # the seconds after which the agent is to ask again about an open call

    @property
    def is_open(self) -> bool:
        return self.end in ("waiting", "running")

    @property
    def is_error(self) -> bool:
        return not self.is_open and self.end != "succeeded"


def describe_read(tool_name: str, result: CallResult) -> CallStatus:
    """Return the state of a call that only read, by its result."""
    files, left_out_text = choose_for_program(result.files)
    text = "\n".join(filter(None, (bound_text(result.text), left_out_text)))
    return CallStatus(tool_name, "succeeded" if result.ok else "failed", text, files=files)


def describe_call(proposal: Proposal, *, joined: bool = False, files: tuple[File, ...] = ()) -> CallStatus:
    """Return the state of a call by its proposal.

    ``proposal`` has the tool's answer, which rows of proposals don't have: see ``bot/store/agent_calls.py``.
    """
    end = name_end(proposal)
    return CallStatus(
        tool_name=proposal.tool_name,
        end=end,
        text=_describe_end(proposal, end),
        id=proposal.conversation_id,
        proposal=proposal,
        joined=joined,
        files=files,
    )


def name_end(proposal: Proposal) -> str:
    """Return the state of a call as one word for programs.

    A call is *cancelled* by the agent itself, and *withdrawn* by people.
    """
    match proposal.state:
        case State.PROPOSED:
            return "waiting"
        case State.APPROVED | State.EXECUTING:
            return "running"
        case State.FAILED if proposal.cause in (Cause.OUTCOME_UNKNOWN, Cause.STOPPED):
            return "outcome_unknown"
        case State.CANCELLED if proposal.cause is Cause.UNDELIVERABLE:
            return "undeliverable"
        case State.CANCELLED:
            return "cancelled" if proposal.decided_from == AGENTS else "withdrawn"
        case _:
            return str(proposal.state)


def _describe_end(proposal: Proposal, end: str) -> str:
    """Return the text on a call for the agent: the result, or the state in words. ``end``: see `name_end`."""
    if end != "succeeded" or proposal.ended_badly:
        return bound_text(for_model(proposal))
    edits = "".join(f"{edit.description_for_model}.\n" for edit in proposal.edits)
    return edits + bound_text(proposal.result or "Done.")
