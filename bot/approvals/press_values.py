"""The values that pass between the steps of a press: its prepared input, its context, and its outcome.

A press is one use of a button on a card by a person. ``presses.py`` prepares the input (`Prepared`), which
may need the network. ``decide.py`` makes the context (`PressContext`) inside of the transaction, adds the
input to it, and hands it to the function for the button's verb. That function returns the outcome
(`PressOutcome`), mostly by `accept` or `refuse`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlmodel import Session

from bot.approvals.lifecycle import end_proposal, move_or_raise, request_redraw
from bot.domain.audit import Deed
from bot.domain.chat import Answer, Press, Reply
from bot.domain.jobs import Job
from bot.domain.people import Absence, Actor, Person
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal, Vote
from bot.domain.similarity import Scope
from bot.domain.trials import Trial
from bot.domain.verbs import Verb
from bot.domain.verdicts import Verdict
from bot.store import people
from bot.store.audit.log import Author
from bot.store.rules import Policies

Scopes = Sequence[tuple[Scope, str]]
"""Scopes of grants, each with the words that describe it to people."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The call of a proposal and what people see of it, prepared before a press's transaction."""

    arguments: Mapping[str, Any]
    tool_version: str
    digest: str
    description: str
    preview: tuple[PreviewField, ...]
    verdict: Verdict  # what the rules say of the call: who decides, how many must approve …
    schema: Mapping[str, Any]  # the schema of the arguments, which marks secret arguments
    trial: Trial | None = None  # the run without lasting effect that made the preview, if there was one


@dataclass(frozen=True, slots=True)
class Undoing:
    """The drafted call that undoes a change."""

    draft: Proposal  # the proposal, not yet in a conversation
    is_unchanged: bool  # True if the values are still those that the change has left


@dataclass(frozen=True, slots=True)
class UndoPosition:
    """The position of an undo among several undos of one press."""

    first_inverse: Proposal | None
    """The inverse that was opened first, whose batch this one joins; None while none was opened."""
    position: int  # counted from 0


@dataclass(frozen=True, slots=True)
class Prepared:
    """The input of a press that is computed before its transaction. Each field is for some verbs only."""

    contents: Contents | None = None  # the new contents, for a press with an edit
    current: Contents | None = None  # the current contents of an expired proposal, to ask again
    scopes: Scopes | None = None  # the scopes of the grants to give; None for a press that gives no grant
    undoing: Undoing | None = None  # the drafted inverse, for a press on Undo
    undo_position: UndoPosition | None = None  # for one of several undos


@dataclass(frozen=True, slots=True)
class PressOutcome:
    """The reply to a press, and the jobs that follow."""

    reply: Reply
    jobs: tuple[Job, ...] = ()


@dataclass(frozen=True, slots=True)
class PressContext:
    """The context of a press: who made it, the rules, and the prepared input."""

    press: Press
    person: Person  # the person who pressed
    policies: Policies  # the rules and settings
    now: datetime
    is_paused: bool  # everything is paused
    prepared: Prepared
    absences: tuple[Absence, ...] = ()  # of all people who are away now, each with a stand-in
    absent: Actor | None = None  # the absent person in whose place this person pressed, as a stand-in

    @property
    def log_author(self) -> Author:
        """The author for the audit log. The reason says in whose place a stand-in pressed."""
        reason = self.press.reason
        if self.absent:
            in_place_of = f"for {self.absent.label} ({self.absent})"
            reason = f"{in_place_of}: {reason}" if reason else in_place_of
        return Author.of_person(self.press.verb, self.press.actor, self.person, reason)

    @property
    def card_author(self) -> str:
        """The person's name for cards."""
        who = self.person.name or self.person.id
        if self.absent:
            return f"{who} for {self.absent.label}"
        return who

    @property
    def decision_columns(self) -> dict[str, Any]:
        """The columns that record who decided the proposal."""
        return {
            "decided_by": self.card_author,
            "decided_from": self.press.actor.channel,
            "decided_at": self.now,
        }

    def move(
        self,
        session: Session,
        proposal: Proposal,
        state: State | None = None,
        verb: Deed | None = None,
        **changes: Any,
    ) -> Proposal:
        """Change a proposal in the name of the person who pressed, and return it. Raises LostRace.

        ``verb``: the verb for the audit log, if it is not the press's own. ``changes``: the columns to
        change.
        """
        author = self.log_author if verb is None else replace(self.log_author, verb=verb)
        return move_or_raise(session, proposal, author, self.now, state, **changes)

    def end(
        self, session: Session, proposal: Proposal, state: State, **changes: Any
    ) -> tuple[Proposal, tuple[Job, ...]]:
        """End a proposal in the name of the person who pressed: see `lifecycle.end_proposal`."""
        return end_proposal(session, proposal, self.log_author, self.now, state, self.card_author, **changes)

    def make_vote(self, verb: Verb | str) -> Vote:
        """Return the person's vote, which is not stored yet."""
        return Vote(self.person.id, self.press.actor, verb, self.press.reason, self.now, self.absent)

    def has_voted(self, session: Session, proposal: Proposal) -> bool:
        """Tell if the person has voted already. An absent person and their stand-in share one vote."""
        sharing_ids = {self.person.id}
        for absence in self.absences:
            pair = {people.load_person(session, actor).id for actor in (absence.absent, absence.stand_in)}
            if self.person.id in pair:
                sharing_ids |= pair
        return any(sharing_ids & voter_ids for voter_ids in people.list_voters(session, proposal))


def accept(session: Session, proposal: Proposal, text: str, *jobs: Job) -> PressOutcome:
    """Return the reply to a press that counts, with the job that redraws the cards."""
    return PressOutcome(Reply(Answer.ACCEPTED, text, (proposal,)), (*jobs, request_redraw(session, proposal)))


def refuse(
    answer: Answer, proposal: Proposal, text: str, field_faults: Mapping[str, str] | None = None
) -> PressOutcome:
    """Return the reply to a press that changes nothing. ``field_faults``: the form's faults, by field."""
    return PressOutcome(Reply(answer, text, (proposal,), field_faults or {}))
