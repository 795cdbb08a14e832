"""The states of a proposal, the legal changes between them, and the causes that tell alike ends apart.

A card shows the state in a `Tone`. `bot.domain.outcomes` puts it in words.
"""

from collections.abc import Mapping
from enum import StrEnum


class State(StrEnum):
    """The state of a proposal."""

    PROPOSED = "proposed"  # waits for people; votes gather
    APPROVED = "approved"  # enough votes; nothing has run yet
    EXECUTING = "executing"  # claimed by exactly one process; the tool may be running
    SUCCEEDED = "succeeded"  # the tool said so; its result is stored
    FAILED = "failed"  # the tool said no, or no one knows (`Cause.OUTCOME_UNKNOWN`); a person may retry
    DECLINED = "declined"  # a person said no
    EXPIRED = "expired"  # no one decided in time
    CANCELLED = "cancelled"  # withdrawn, or it could not be shown to anyone (`Cause.UNDELIVERABLE`)


TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.PROPOSED: frozenset({State.APPROVED, State.DECLINED, State.EXPIRED, State.CANCELLED}),
    # back to proposed: what the preview showed as old has changed, so people look again
    State.APPROVED: frozenset({State.EXECUTING, State.PROPOSED, State.CANCELLED, State.FAILED}),
    State.EXECUTING: frozenset({State.SUCCEEDED, State.FAILED}),
    # a retry is approved again, so that every execution passes the same checks and the same claim; or people
    # are asked again, where the call runs as someone other than the person who retries it
    State.FAILED: frozenset({State.APPROVED, State.PROPOSED}),
    State.SUCCEEDED: frozenset(),
    State.DECLINED: frozenset(),
    State.EXPIRED: frozenset({State.PROPOSED}),  # a late press asks again, with a fresh preview
    State.CANCELLED: frozenset(),
}
"""Every legal change of state; `bot.store.transitions.change_proposal` guards each by state and version."""
SETTLED = frozenset({State.SUCCEEDED, State.FAILED, State.DECLINED, State.EXPIRED, State.CANCELLED})
"""States in which the model can be told how the call ended."""
APPROVED_STATES = frozenset({State.APPROVED, State.EXECUTING, State.SUCCEEDED, State.FAILED})
"""States of a call that people approved, or that needed no approval."""


class Cause(StrEnum):
    """The cause of a state, where the state alone would blur two different ends."""

    ERROR = "error"  # failed: the tool refused or raised
    OUTCOME_UNKNOWN = "outcome_unknown"  # failed: it may or may not have happened
    STOPPED = "stopped"  # failed: a person ended its run; while it executes: a person wants the run to end
    REFUSED = "refused"  # failed: the tool refused and says that asking again cannot help
    TOOL_CHANGED = "tool_changed"  # failed: the tool is not the one that was shown
    FORBIDDEN = "forbidden"  # failed: a rule forbids it by now, so it was not run
    DISCONNECTED = "disconnected"  # failed: the account in whose name it runs is gone, or another one
    UNDELIVERABLE = "undeliverable"  # cancelled: the card could not be posted anywhere
    TAKEN_BACK = "taken_back"  # cancelled: by the requester or an admin
    NO_LONGER_ASKED = "unasked"  # cancelled: the call that asked this question no longer waits for the answer
    WRITTEN = "written"  # cancelled: the person who was asked wrote in the conversation instead
    SUPERSEDED = "superseded"  # cancelled: a newer version of the plan took its place
    REVISE = "revise"  # declined: the plan goes back for changes; ``decline_reason`` says which


class Tone(StrEnum):
    """The tone in which a card shows its outcome, such as a colour. A text always says the same."""

    WAITING = "waiting"  # no one has decided, or the call has not ended
    GOOD = "good"
    BAD = "bad"
    WARNED = "warned"  # the call ran, but did not end well
    QUIET = "quiet"  # nothing ran, or what ran was undone
