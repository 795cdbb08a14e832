"""The vocabulary of the audit log: what its rows say was done, and the filter by which rows are found.

A row says who did what to which thing. What was done is a `Verb` that someone pressed, an `Act`, or the
`State` in which a call ended. The log itself is in ``bot/store/audit``.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from bot.domain.proposal_states import State
from bot.domain.verbs import Verb


class Act(StrEnum):
    """The deed of an audit row that is neither a press nor the end of a call. Rows have these words."""

    # to a proposal
    PROPOSE = "propose"  # a call becomes a proposal
    SUPERSEDED = "superseded"  # a plan, by its next version
    REVIEWED = "reviewed"  # a plan, by the lead agent, which approves it
    REJECT = "reject"  # a plan, by the lead agent
    WARN = "warn"  # deciders are told that it expires soon
    REMIND = "remind"
    ESCALATE = "escalate"  # further people may decide, as no one did in time
    NOTIFY = "notify"  # by a notifier, or a reminder that is a step
    RAISE = "raise"  # one more approval is needed, after a second opinion
    UNDELIVERABLE = "undeliverable"  # its card could not be posted anywhere
    NO_LONGER_ASKED = "unasked"  # the call that asked this question has ended
    CHANGED = "changed"  # current values changed after its approval
    ANNOTATE = "annotate"  # a feature adds a line to its card
    HOLD = "hold"  # people are notified of it later, since too many cards reached them
    RELEASE = "release"  # people whose notification was held are notified now
    EXECUTE = "execute"  # a process claims its run
    RERUN = "rerun"  # it runs again, as its process ended during the run
    ASK_AGAIN = "ask again"  # people are asked again about an expired proposal
    ABANDONED = "abandoned"  # its process ended during the run, so no one knows the outcome
    STOP = "stop"  # its conversation or its teammate was stopped
    FAIL = "fail"  # its teammate failed
    UNDONE = "undone"  # by another proposal
    TICK = "tick"  # steps of a plan are done
    NOT_UNDONE = "not undone"  # the proposal that should undo it did not
    UNDO_AGAIN = "undo again"  # the proposal that undoes it asks or runs once more
    # to rules, grants, accounts, tokens and sessions
    SET = "set"
    DROP = "drop"
    END_BY_ITSELF = "end by itself"  # a rule, at its time
    PAUSE = "pause"
    RESUME = "resume"
    GIVE = "give"
    REVOKE = "revoke"
    END_WITH_CONVERSATION = "end with its conversation"
    END_WITH_TEAMMATE = "end with its teammate"
    END_WITH_RULES = "end with a change of rules"
    END_WITH_UPDATE = "end with an update"
    END_WITH_ACCOUNT = "end with an account that is gone"
    LINK = "link"
    UNLINK = "unlink"
    LEAVE = "leave"  # a person is away from then on
    RETURN = "return"
    MUTE = "mute"  # a person is not notified of a kind of card
    UNMUTE = "unmute"
    REMEMBER = "remember"  # a fact
    FORGET = "forget"
    MOVE = "move"  # with its chat, which has another address
    ISSUE = "issue"
    SIGN_IN = "sign in"
    SIGN_OUT = "sign out"
    SEAL_WITH = "seal with"  # a key
    CONNECT = "connect"  # an account at a server
    DISCONNECT = "disconnect"
    # to a call, before it is proposed
    TRY = "try"  # a trial of it begins
    TRIED = "tried"  # the trial has ended
    # to the conversation that led to a proposal
    READ = "read"  # by someone who may decide
    # to a schedule, besides what is done to rules
    RUN = "run"  # before its time


Deed = Verb | Act | State
"""The deed in a row: a press, an act, or the state in which a call ended."""


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """The filter of the audit rows that someone wants to see; empty fields match all."""

    who: str = ""  # an account; all accounts of its Person match
    tool: str = ""  # the name of a tool; its calls match, and rules about it
    proposal: str = ""
    since: datetime | None = None
    grant: int | None = None  # the number of a grant; calls under it match, and changes of the grant
    # True: a tool with the name ``tool`` exists, so rows on rules about several tools (``issue_*``) match,
    # too. False: of the rows on rules, only those about exactly this name match
    matches_patterns: bool = True
    before: int | None = None  # only rows with a smaller number
    after: int | None = None  # only rows with a larger number

    def with_numbers_below(self, number: int | None) -> "AuditFilter":
        """Return the same filter for rows with a smaller number only; None: with any number."""
        return replace(self, before=number)

    def between(self, after: int, before: int) -> "AuditFilter":
        """Return the same filter for rows between two numbers only, both excluded."""
        return replace(self, after=after, before=before)
