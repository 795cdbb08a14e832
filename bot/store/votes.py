"""Votes on a proposal: who may cast them, what each kind of press has prepared, and what a vote leads to.

What a press is checked for before it counts is in ``bot/store/decisions.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlmodel import Session

from bot.domain.chat import Address, Answer, Press, Reply, Verb
from bot.domain.jobs import Job, Work
from bot.domain.people import Actor, Person, Role
from bot.domain.policy import Policy, Verdict, terms
from bot.domain.proposals import Cause, Edited, Kind, PreviewField, Proposal, State, Vote
from bot.domain.redaction import differences
from bot.domain.similarity import Lasting, Scope
from bot.store import conversations, grants, people, proposals, steering, tool_versions
from bot.store.audit import By
from bot.store.endings import end, moved, redraw
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
    lasting: Lasting


@dataclass(frozen=True, slots=True)
class Fresh:
    """What an expired proposal would show today."""

    preview: tuple[PreviewField, ...]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Steps:
    """The grants that approving a plan with its steps gives."""

    grants: tuple[tuple[Scope, str], ...]


Prepared = Edit | Similar | Steps | Fresh | None
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


def objection(
    session: Session,
    policies: Policies,
    proposal: Proposal,
    actor: Actor,
    verb: Verb = Verb.APPROVE,
    at: Address | None = None,
) -> str | None:
    """Why this account's Person may not press that, in words; None when they may.

    ``at`` is where the pressed card stands: some circles are whoever is in a chat.
    """
    person = people.person_of(session, actor)
    return objection_of(session, policies.load(session), proposal, person, actor, verb, at)


def objection_of(
    session: Session,
    policy: Policy,
    proposal: Proposal,
    person: Person,
    actor: Actor,
    verb: Verb,
    at: Address | None,
) -> str | None:
    requester = person if actor == proposal.requester else people.person_of(session, proposal.requester)
    if verb is Verb.CANCEL:
        if policy.may_take_back(person, requester):
            return None
        return f"Only {proposal.requester.label} or an admin can take this one back. It stays open."
    if verb in (Verb.EXPIRE, Verb.REASSIGN):
        return None if Role.ADMIN in policy.roles_of(person) else "Only an admin can do that. It stays open."
    approves = verb in (Verb.APPROVE, Verb.SIMILAR, Verb.APPROVE_STEPS, Verb.RETRY)
    return policy.objection(proposal, person, requester, str(at) if at else None, approves=approves)


def decline(session: Session, pressed: Pressed, p: Proposal) -> Decided:
    """One vote against; as many as the rule asks for end it."""
    by, now = pressed.by, pressed.now
    if pressed.person.id in people.voters(session, p):
        return Decided(Reply(Answer.ALREADY, "Your vote is counted already.", (p,)))
    votes = (*p.votes, pressed.vote(Verb.DECLINE))
    against = 1 + len(people.voters(session, p, Verb.DECLINE))
    if against < p.declines:
        p = moved(proposals.move(session, p, by, now, votes=votes))
        text = f"Your vote counts: {against} of the {p.declines} that decline it."
        return Decided(Reply(Answer.ACCEPTED, text, (p,)), (redraw(p),))
    changes = {"decline_reason": pressed.press.reason, "votes": votes}
    p, jobs = end(session, p, by, now, State.DECLINED, pressed.who, **changes)
    return Decided(Reply(Answer.ACCEPTED, "Declined.", (p,)), jobs)


def revise(session: Session, pressed: Pressed, p: Proposal) -> Decided:
    """A plan goes back for changes: one word is enough, since nothing is lost by it."""
    feedback = (pressed.press.reason or "").strip()
    if not feedback:
        return Decided(Reply(Answer.INVALID, "Say what should change.", (p,), {"reason": "This is needed."}))
    pressed = replace(pressed, press=replace(pressed.press, reason=feedback))
    votes = (*p.votes, pressed.vote(Verb.REVISE))
    changes = {"cause": Cause.REVISE, "decline_reason": feedback, "votes": votes}
    p, jobs = end(session, p, pressed.by, pressed.now, State.DECLINED, pressed.who, **changes)
    return Decided(Reply(Answer.ACCEPTED, f"{p.teammate} hears it and plans anew.", (p,)), jobs)


def grant_and_vote(session: Session, pressed: Pressed, p: Proposal) -> Decided:
    """Approve, and allow what the chosen rung covers; both or neither."""
    similar = pressed.prepared
    if not isinstance(similar, Similar):
        return Decided(Reply(Answer.INVALID, "Choose what else shall be allowed, and for how long.", (p,)))
    if why := grants.hindrance(session, pressed.policies, p):
        return Decided(Reply(Answer.REFUSED, why, (p,)))
    if similar.lasting is Lasting.CONVERSATION and conversations.has_ended(session, p.conversation_id):
        text = "Its conversation has ended, so nothing more can be allowed there. Choose a time, such as 1h."
        return Decided(Reply(Answer.INVALID, text, (p,)))
    voted = edit_and_vote(session, pressed, p)
    if voted.reply.answer is not Answer.ACCEPTED:
        return voted
    giver = (pressed.press.actor, pressed.person)
    grant = grants.give(session, p, *giver, similar.scope, similar.words, similar.lasting, pressed.now)
    until = grant.expires_at.strftime("%Y-%m-%d %H:%M UTC") if grant.expires_at else "this conversation ends"
    text = f"Approved. {grant.label} now allows {grant.words}, until {until}. An admin can revoke it."
    return replace(voted, reply=replace(voted.reply, text=text))


def approve_with_steps(session: Session, pressed: Pressed, p: Proposal) -> Decided:
    """Approve a plan and allow the tools its steps name while its teammate works; both or neither."""
    steps = pressed.prepared
    if p.quorum > 1:
        text = "Several people must approve this, so one person cannot allow its steps: approve the plan."
        return Decided(Reply(Answer.REFUSED, text, (p,)))
    if steering.lacks_lead(session, pressed.policies, p):
        text = (
            "The lead agent must approve this plan, too, and did not yet: approve the plan, "
            "or allow its steps once it has."
        )
        return Decided(Reply(Answer.REFUSED, text, (p,)))
    if not isinstance(steps, Steps):
        return Decided(
            Reply(Answer.INVALID, "The steps cannot be allowed from here. Approve the plan.", (p,))
        )
    voted = edit_and_vote(session, pressed, p)
    approved = next((each for each in voted.reply.proposals if each.state is State.APPROVED), None)
    if voted.reply.answer is not Answer.ACCEPTED or approved is None:
        return voted
    giver = (pressed.press.actor, pressed.person)
    for scope, words in steps.grants:
        grants.give(session, approved, *giver, scope, words, Lasting.CONVERSATION, pressed.now)
    names = ", ".join(scope.tool_name for scope, _ in steps.grants)
    allowed = f"{p.teammate} may use {names} without asking until it ends" if names else "no step needs more"
    text = f"Plan approved: {allowed}. What cannot be undone still asks."
    return replace(voted, reply=replace(voted.reply, text=text))


def edit_and_vote(session: Session, pressed: Pressed, p: Proposal) -> Decided:
    """Change what it would do, if the press came with an edit, and vote for it, unless that was all."""
    press, now = pressed.press, pressed.now
    edit = pressed.prepared if isinstance(pressed.prepared, Edit) else None
    if edit is None and press.verb is Verb.EDIT:
        return Decided(Reply(Answer.INVALID, "There is nothing to edit: no arguments were given.", (p,)))
    if edit is not None and edit.digest != p.digest:
        p = moved(
            proposals.move(
                session,
                p,
                replace(pressed.by, verb=Verb.EDIT),
                now,
                arguments=dict(edit.arguments),
                tool_version=edit.tool_version,
                digest=edit.digest,
                description=edit.description,
                preview=edit.preview,
                **_terms(p, edit.verdict, now),
                round=p.round + 1,
                votes=(),
                edited_by=pressed.who,
                edits=(
                    *p.edits,
                    Edited(p.round + 1, pressed.who, differences(p.arguments, edit.arguments, edit.schema)),
                ),
                changed=False,
            )
        )
    if press.verb is Verb.EDIT:
        text = "Edited. It waits for approval as it is now."
        if p.kind is Kind.QUESTION:
            text = "Filled in, not sent yet. Send the answer from its card."
        return Decided(Reply(Answer.ACCEPTED, text, (p,)), (redraw(p),))
    if edit is not None and (
        refusal := objection(session, pressed.policies, p, press.actor, at=press.address)
    ):
        # the edit brought it under another rule, which this person's vote does not satisfy
        return Decided(Reply(Answer.ACCEPTED, f"Edited, not approved. {refusal}", (p,)), (redraw(p),))
    if missing := _unanswered(session, p):
        text = f"It cannot be sent yet. Fill in first: {', '.join(missing)}."
        return Decided(Reply(Answer.INVALID, text, (p,), missing))
    if pressed.person.id in people.voters(session, p):
        return Decided(Reply(Answer.ALREADY, "Your vote is counted already.", (p,)))
    votes = (*p.votes, pressed.vote(Verb.APPROVE))
    approvals = 1 + len(people.voters(session, p, Verb.APPROVE))
    by = pressed.by
    if approvals < p.quorum:
        p = moved(proposals.move(session, p, by, now, votes=votes))
        text = f"Your vote counts: {approvals} of {p.quorum}."
        return Decided(Reply(Answer.ACCEPTED, text, (p,)), (redraw(p),))
    if p.kind is Kind.PLAN and steering.lacks_lead(session, pressed.policies, p):
        asked = steering.ask_lead(session, p, now)  # its turn first, then the plan, as its own review does
        p = moved(proposals.move(session, p, by, now, votes=votes))
        text = "Your approval counts; the lead agent must approve the plan, too."
        return Decided(Reply(Answer.ACCEPTED, text, (p,)), (redraw(p), *asked))
    p = moved(
        proposals.move(
            session,
            p,
            by,
            now,
            State.APPROVED,
            votes=votes,
            decided_by=f"{pressed.who} and {steering.LEAD.name}" if steering.reviewed(p) else pressed.who,
            decided_from=press.actor.channel,
            decided_at=now,
        )
    )
    text = "Sent." if p.kind is Kind.QUESTION else "Approved."
    return Decided(Reply(Answer.ACCEPTED, text, (p,)), (Job(Work.EXECUTE, p.id), redraw(p)))


def _terms(p: Proposal, verdict: Verdict, now: datetime) -> dict[str, Any]:
    """What an edit makes of a proposal. Who waits outside does not wait longer for it."""
    anew = terms(verdict, now)
    clocks = ("ttl", "expires_at", "warn_at", "remind_at") if p.told_once else ()
    return {name: value for name, value in anew.items() if name not in clocks}


def _unanswered(session: Session, p: Proposal) -> dict[str, str]:
    """What a question must be told before it can be sent, by field; empty for everything else."""
    if p.kind is not Kind.QUESTION:
        return {}
    schema = tool_versions.schema(session, p.tool_name, p.tool_version) or {}
    return {name: "fill this in first" for name in schema.get("required", ()) if name not in p.arguments}
