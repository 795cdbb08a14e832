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


def decline(session: Session, press: Press, person: Person, p: Proposal, by: By, now: datetime) -> Decided:
    """One vote against; as many as the rule asks for end it."""
    if person.id in people.voters(session, p):
        return Decided(Reply(Answer.ALREADY, "Your vote is counted already.", (p,)))
    votes = (*p.votes, Vote(person.id, press.actor, Verb.DECLINE, press.reason, now))
    against = 1 + len(people.voters(session, p, Verb.DECLINE))
    if against < p.declines:
        p = moved(proposals.move(session, p, by, now, votes=votes))
        text = f"Your vote counts: {against} of the {p.declines} that decline it."
        return Decided(Reply(Answer.ACCEPTED, text, (p,)), (redraw(p),))
    label = person.name or person.id
    p, jobs = end(session, p, by, now, State.DECLINED, label, decline_reason=press.reason, votes=votes)
    return Decided(Reply(Answer.ACCEPTED, "Declined.", (p,)), jobs)


def revise(session: Session, press: Press, person: Person, p: Proposal, now: datetime) -> Decided:
    """A plan goes back for changes: one word is enough, since nothing is lost by it."""
    feedback = (press.reason or "").strip()
    if not feedback:
        return Decided(Reply(Answer.INVALID, "Say what should change.", (p,), {"reason": "This is needed."}))
    by = By.press(press.verb, press.actor, person, feedback)
    votes = (*p.votes, Vote(person.id, press.actor, Verb.REVISE, feedback, now))
    label = person.name or person.id
    changes = {"cause": Cause.REVISE, "decline_reason": feedback, "votes": votes}
    p, jobs = end(session, p, by, now, State.DECLINED, label, **changes)
    return Decided(Reply(Answer.ACCEPTED, f"{p.teammate} hears it and plans anew.", (p,)), jobs)


def grant_and_vote(
    session: Session,
    press: Press,
    person: Person,
    p: Proposal,
    policies: Policies,
    now: datetime,
    similar: Prepared,
) -> Decided:
    """Approve, and allow what the chosen rung covers; both or neither."""
    if not isinstance(similar, Similar):
        return Decided(Reply(Answer.INVALID, "Choose what else shall be allowed, and for how long.", (p,)))
    if why := grants.hindrance(session, policies, p):
        return Decided(Reply(Answer.REFUSED, why, (p,)))
    if similar.lasting is Lasting.CONVERSATION and conversations.has_ended(session, p.conversation_id):
        text = "Its conversation has ended, so nothing more can be allowed there. Choose a time, such as 1h."
        return Decided(Reply(Answer.INVALID, text, (p,)))
    voted = edit_and_vote(session, press, person, p, policies, now, None)
    if voted.reply.answer is not Answer.ACCEPTED:
        return voted
    grant = grants.give(session, p, press.actor, person, similar.scope, similar.words, similar.lasting, now)
    until = grant.expires_at.strftime("%Y-%m-%d %H:%M UTC") if grant.expires_at else "this conversation ends"
    text = f"Approved. {grant.label} now allows {grant.words}, until {until}. An admin can revoke it."
    return replace(voted, reply=replace(voted.reply, text=text))


def approve_with_steps(
    session: Session,
    press: Press,
    person: Person,
    p: Proposal,
    policies: Policies,
    now: datetime,
    steps: Prepared,
) -> Decided:
    """Approve a plan and allow the tools its steps name while its teammate works; both or neither."""
    if p.quorum > 1:
        text = "Several people must approve this, so one person cannot allow its steps: approve the plan."
        return Decided(Reply(Answer.REFUSED, text, (p,)))
    if steering.lacks_lead(session, policies, p):
        text = (
            "The lead agent must approve this plan, too, and did not yet: approve the plan, "
            "or allow its steps once it has."
        )
        return Decided(Reply(Answer.REFUSED, text, (p,)))
    if not isinstance(steps, Steps):
        return Decided(
            Reply(Answer.INVALID, "The steps cannot be allowed from here. Approve the plan.", (p,))
        )
    voted = edit_and_vote(session, press, person, p, policies, now, None)
    approved = next((each for each in voted.reply.proposals if each.state is State.APPROVED), None)
    if voted.reply.answer is not Answer.ACCEPTED or approved is None:
        return voted
    for scope, words in steps.grants:
        grants.give(session, approved, press.actor, person, scope, words, Lasting.CONVERSATION, now)
    names = ", ".join(scope.tool_name for scope, _ in steps.grants)
    allowed = f"{p.teammate} may use {names} without asking until it ends" if names else "no step needs more"
    text = f"Plan approved: {allowed}. What cannot be undone still asks."
    return replace(voted, reply=replace(voted.reply, text=text))


def edit_and_vote(
    session: Session,
    press: Press,
    person: Person,
    p: Proposal,
    policies: Policies,
    now: datetime,
    prepared: Prepared,
) -> Decided:
    label = person.name or person.id
    edit = prepared if isinstance(prepared, Edit) else None
    if edit is None and press.verb is Verb.EDIT:
        return Decided(Reply(Answer.INVALID, "There is nothing to edit: no arguments were given.", (p,)))
    if edit is not None and edit.digest != p.digest:
        p = moved(
            proposals.move(
                session,
                p,
                By.press(Verb.EDIT, press.actor, person, press.reason),
                now,
                arguments=dict(edit.arguments),
                tool_version=edit.tool_version,
                digest=edit.digest,
                description=edit.description,
                preview=edit.preview,
                **_terms(p, edit.verdict, now),
                round=p.round + 1,
                votes=(),
                edited_by=label,
                edits=(
                    *p.edits,
                    Edited(p.round + 1, label, differences(p.arguments, edit.arguments, edit.schema)),
                ),
                changed=False,
            )
        )
    if press.verb is Verb.EDIT:
        text = "Edited. It waits for approval as it is now."
        if p.kind is Kind.QUESTION:
            text = "Filled in, not sent yet. Send the answer from its card."
        return Decided(Reply(Answer.ACCEPTED, text, (p,)), (redraw(p),))
    if edit is not None and (refusal := objection(session, policies, p, press.actor, at=press.address)):
        # the edit brought it under another rule, which this person's vote does not satisfy
        return Decided(Reply(Answer.ACCEPTED, f"Edited, not approved. {refusal}", (p,)), (redraw(p),))
    if missing := _unanswered(session, p):
        text = f"It cannot be sent yet. Fill in first: {', '.join(missing)}."
        return Decided(Reply(Answer.INVALID, text, (p,), missing))
    if person.id in people.voters(session, p):
        return Decided(Reply(Answer.ALREADY, "Your vote is counted already.", (p,)))
    votes = (*p.votes, Vote(person.id, press.actor, Verb.APPROVE, press.reason, now))
    approvals = 1 + len(people.voters(session, p, Verb.APPROVE))
    by = By.press(press.verb, press.actor, person, press.reason)
    if approvals < p.quorum:
        p = moved(proposals.move(session, p, by, now, votes=votes))
        text = f"Your vote counts: {approvals} of {p.quorum}."
        return Decided(Reply(Answer.ACCEPTED, text, (p,)), (redraw(p),))
    if p.kind is Kind.PLAN and steering.lacks_lead(session, policies, p):
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
            decided_by=f"{label} and {steering.LEAD.name}" if steering.reviewed(p) else label,
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
