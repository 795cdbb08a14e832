"""Votes on a proposal: what each kind of press has prepared, and what a vote leads to.

What a press is checked for before it counts is in ``bot/approvals/decide.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlmodel import Session

from bot.approvals import rights
from bot.approvals.lifecycle import end, moved, redraw
from bot.domain.chat import Answer, Press, Reply
from bot.domain.jobs import Job, Work
from bot.domain.people import Person
from bot.domain.policy import Verdict, terms
from bot.domain.proposals import Edited, PreviewField, Proposal, State, Vote
from bot.domain.redaction import differences
from bot.domain.similarity import GrantAudience, GrantDuration, Scope
from bot.domain.verbs import Verb
from bot.store import people, transitions
from bot.store.audit.log import By
from bot.store.rules import Policies


@dataclass(frozen=True, slots=True)
class Edit:
    """New arguments, validated, with everything that follows from them; ``schema`` says which are secret."""

    arguments: Mapping[str, Any]
    tool_version: str
    digest: str
    description: str
    preview: tuple[PreviewField, ...]
    verdict: Verdict
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Similar:
    """The grant a press wants to give, worked out by the tool's own key."""

    scope: Scope
    words: str
    lasting: GrantDuration
    reach: GrantAudience


@dataclass(frozen=True, slots=True)
class FreshPreview:
    """What an expired proposal would show today."""

    preview: tuple[PreviewField, ...]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class StepGrants:
    """The grants that approving a plan with its steps gives."""

    grants: tuple[tuple[Scope, str], ...]


Prepared = Edit | Similar | StepGrants | FreshPreview | None
"""What a press needs worked out before its transaction, since a preview may need the network."""


@dataclass(frozen=True, slots=True)
class Decided:
    """The answer to the person who pressed, and the work it made."""

    reply: Reply
    jobs: tuple[Job, ...] = ()


@dataclass(frozen=True, slots=True)
class Pressed:
    """A press while it is decided: who made it, under which rules, and what was worked out for it."""

    press: Press
    person: Person
    policies: Policies
    now: datetime
    prepared: Prepared
    paused: bool

    @property
    def by(self) -> By:
        """For the record."""
        return By.press(self.press.verb, self.press.actor, self.person, self.press.reason)

    @property
    def who(self) -> str:
        """For cards."""
        return self.person.name or self.person.id

    def vote(self, verb: Verb) -> Vote:
        return Vote(self.person.id, self.press.actor, verb, self.press.reason, self.now)


def decline(session: Session, pressed: Pressed, p: Proposal) -> Decided:
    """One vote against; as many as the rule asks for end it."""
    by, now = pressed.by, pressed.now
    if pressed.person.id in people.voters(session, p):
        return Decided(Reply(Answer.ALREADY, "Your vote has already been counted.", (p,)))
    votes = (*p.votes, pressed.vote(Verb.DECLINE))
    against = 1 + len(people.voters(session, p, Verb.DECLINE))
    if against < p.declines:
        p = moved(transitions.move(session, p, by, now, votes=votes))
        text = f"Your vote counts: {against} of the {p.declines} that decline it."
        return Decided(Reply(Answer.ACCEPTED, text, (p,)), (redraw(session, p),))
    changes = {"decline_reason": pressed.press.reason, "votes": votes}
    p, jobs = end(session, p, by, now, State.DECLINED, pressed.who, **changes)
    return Decided(Reply(Answer.ACCEPTED, "Declined.", (p,)), jobs)


def edit(
    session: Session, pressed: Pressed, p: Proposal, said: str = "Edited. It needs approval in this form."
) -> Decided:
    """Change what it would do, and ask again."""
    changed = edited(session, pressed, p)
    if changed is None:
        return Decided(Reply(Answer.INVALID, "There is nothing to edit: no arguments were given.", (p,)))
    return Decided(Reply(Answer.ACCEPTED, said, (changed,)), (redraw(session, changed),))


def edited(session: Session, pressed: Pressed, p: Proposal) -> Proposal | None:
    """Change what it would do, as the press says; None where it says nothing."""
    edit = pressed.prepared
    if not isinstance(edit, Edit):
        return None
    if edit.digest == p.digest:
        return p
    what = differences(p.arguments, edit.arguments, edit.schema)
    return moved(
        transitions.move(
            session,
            p,
            replace(pressed.by, verb=Verb.EDIT),
            pressed.now,
            arguments=dict(edit.arguments),
            tool_version=edit.tool_version,
            digest=edit.digest,
            description=edit.description,
            preview=edit.preview,
            **_terms(p, edit.verdict, pressed.now),
            round=p.round + 1,
            votes=(),
            edited_by=pressed.who,
            edits=(*p.edits, Edited(p.round + 1, pressed.who, what)),
            changed=False,
        )
    )


def approve(session: Session, pressed: Pressed, p: Proposal) -> Decided:
    """Change what it would do, if the press came with an edit, and vote for it."""
    now_is = as_edited(session, pressed, p)
    return now_is if isinstance(now_is, Decided) else vote(session, pressed, now_is)


def as_edited(session: Session, pressed: Pressed, p: Proposal) -> Proposal | Decided:
    """What is voted on: as the press changed it, if it did and the person may approve that, too."""
    changed, press = edited(session, pressed, p), pressed.press
    if changed is None:
        return p
    if refusal := rights.objection(session, pressed.policies, changed, press.actor, at=press.address):
        # the edit brought it under another rule, which this person's vote does not satisfy
        text = f"Edited, not approved. {refusal}"
        return Decided(Reply(Answer.ACCEPTED, text, (changed,)), (redraw(session, changed),))
    return changed


def vote(session: Session, pressed: Pressed, p: Proposal, said: str = "Approved.") -> Decided:
    """One vote for; as many as the rule asks for let it run."""
    votes = gathered(session, pressed, p)
    return votes if isinstance(votes, Decided) else let_run(session, pressed, p, votes, pressed.who, said)


def gathered(session: Session, pressed: Pressed, p: Proposal) -> tuple[Vote, ...] | Decided:
    """All votes with this one, where that is enough of them; otherwise it is kept, and said to who voted."""
    if pressed.person.id in people.voters(session, p):
        return Decided(Reply(Answer.ALREADY, "Your vote has already been counted.", (p,)))
    votes = (*p.votes, pressed.vote(Verb.APPROVE))
    approvals = 1 + len(people.voters(session, p, Verb.APPROVE))
    if approvals >= p.quorum:
        return votes
    p = moved(transitions.move(session, p, pressed.by, pressed.now, votes=votes))
    text = f"Your vote counts: {approvals} of {p.quorum}."
    return Decided(Reply(Answer.ACCEPTED, text, (p,)), (redraw(session, p),))


def let_run(
    session: Session, pressed: Pressed, p: Proposal, votes: tuple[Vote, ...], who: str, said: str
) -> Decided:
    """It is decided: it runs. ``who`` is shown on its cards."""
    p = moved(
        transitions.move(
            session,
            p,
            pressed.by,
            pressed.now,
            State.APPROVED,
            votes=votes,
            decided_by=who,
            decided_from=pressed.press.actor.channel,
            decided_at=pressed.now,
        )
    )
    if pressed.paused:
        said += " Everything is paused, so it runs after /approvals resume."
    return Decided(Reply(Answer.ACCEPTED, said, (p,)), (Job(Work.EXECUTE, p.id), redraw(session, p)))


def _terms(p: Proposal, verdict: Verdict, now: datetime) -> dict[str, Any]:
    """What an edit makes of a proposal. An outside script does not wait longer because of it."""
    anew = terms(verdict, now)
    clocks = ("ttl", "expires_at", "warn_at", "remind_at") if p.told_once else ()
    return {name: value for name, value in anew.items() if name not in clocks}
