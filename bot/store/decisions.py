"""What people do to proposals: every press, authorised, checked and recorded in one transaction.

What time and machines do is in ``bot/store/endings.py``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlmodel import Session

from bot.domain.chat import Address, Answer, Press, Reply, Verb
from bot.domain.jobs import Job, Work
from bot.domain.outcomes import too_late
from bot.domain.people import Actor, Person, Role
from bot.domain.policy import Policy, Verdict, terms
from bot.domain.proposals import Cause, Deciders, Edited, Kind, PreviewField, Proposal, State, Vote, clock
from bot.domain.redaction import differences
from bot.domain.similarity import Lasting, Scope
from bot.store import grants, people, proposals, steering, tool_versions
from bot.store.audit import By
from bot.store.endings import end, expire, moved, redraw
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
    return _objection(session, policies.load(session), proposal, person, actor, verb, at)


def _objection(
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


def decide(
    session: Session, press: Press, policies: Policies, now: datetime, prepared: Prepared = None
) -> Decided:
    """Take in one press: authorise, check that it is about what is there now, change, record."""
    proposal = proposals.get(session, press.proposal_id)
    if proposal is None:
        return Decided(Reply(Answer.UNKNOWN, f"There is no proposal {press.proposal_id}."))
    if press.verb in (Verb.APPROVE_ALL, Verb.DECLINE_ALL):
        return _decide_group(
            session, press, policies, now, proposals.of_message(session, proposal.message_id)
        )
    return _decide_one(session, press, policies, now, proposal, prepared)


def _decide_group(
    session: Session, press: Press, policies: Policies, now: datetime, group: Sequence[Proposal]
) -> Decided:
    if press.round is not None and press.round != sum(p.round for p in group):
        return Decided(
            Reply(Answer.STALE, "One of them changed since; look at the cards again.", tuple(group))
        )
    waiting = [p for p in group if p.state is State.PROPOSED]
    if not waiting:
        return Decided(Reply(Answer.ALREADY, "All of them are decided already.", tuple(group)))
    verb = Verb.APPROVE if press.verb is Verb.APPROVE_ALL else Verb.DECLINE
    each = [
        _decide_one(session, replace(press, verb=verb, round=None, digest=None), policies, now, p, None)
        for p in waiting
    ]
    jobs = tuple(dict.fromkeys(job for d in each for job in d.jobs))
    took = [d for d in each if d.reply.answer is Answer.ACCEPTED]
    refused = [d for d in each if d.reply.answer is not Answer.ACCEPTED]
    if not took:
        return Decided(refused[0].reply, jobs)
    done = "approved" if verb is Verb.APPROVE else "declined"
    text = f"{len(took)} {done}." + (f" {len(refused)} not: {refused[0].reply.text}" if refused else "")
    changed = tuple(p for d in each for p in d.reply.proposals)
    return Decided(Reply(Answer.ACCEPTED, text, changed), jobs)


def _decide_one(
    session: Session, press: Press, policies: Policies, now: datetime, p: Proposal, prepared: Prepared
) -> Decided:
    person = people.person_of(session, press.actor)
    policy = policies.load(session)
    if refusal := _objection(session, policy, p, person, press.actor, press.verb, press.address):
        return Decided(Reply(Answer.REFUSED, refusal, (p,)))
    by = By.press(press.verb, press.actor, person, press.reason)
    if p.state is State.PROPOSED and p.expires_at <= now and not policy.book.paused:
        p, jobs = expire(session, p, now)
        if not isinstance(prepared, Fresh):
            return Decided(Reply(Answer.ALREADY, too_late(p, now), (p,)), jobs)
    if p.state is State.EXPIRED and isinstance(prepared, Fresh) and not p.told_once:
        return _propose_anew(session, p, by, prepared, now)
    if p.state is not (State.FAILED if press.verb is Verb.RETRY else State.PROPOSED):
        return Decided(Reply(Answer.ALREADY, too_late(p, now), (p,)))
    if (press.round is not None and press.round != p.round) or (press.digest and press.digest != p.digest):
        return Decided(Reply(Answer.STALE, _what_changed(p, press.round), (p,)))
    if press.verb in (Verb.REVISE, Verb.APPROVE_STEPS):
        return _answer_plan(session, press, person, p, policies, now, prepared)
    match press.verb:
        case Verb.DECLINE:
            return _decline(session, press, person, p, by, now)
        case Verb.RETRY:
            return _retry(session, p, by, now)
        case Verb.SIMILAR:
            return _grant_and_vote(session, press, person, p, policies, now, prepared)
        case Verb.APPROVE | Verb.EDIT:
            return _edit_and_vote(session, press, person, p, policies, now, prepared)
        case _:
            return _manage(session, press, person, p, policies, now)


def _manage(
    session: Session, press: Press, person: Person, p: Proposal, policies: Policies, now: datetime
) -> Decided:
    """What is no vote: take it back, end or prolong the waiting, say who decides."""
    by = By.press(press.verb, press.actor, person, press.reason)
    match press.verb:
        case Verb.CANCEL:
            label = person.name or person.id
            p, jobs = end(session, p, by, now, State.CANCELLED, label, cause=Cause.TAKEN_BACK)
            return Decided(Reply(Answer.ACCEPTED, "Taken back.", (p,)), jobs)
        case Verb.EXPIRE:
            p, jobs = expire(session, p, now, by)
            return Decided(Reply(Answer.ACCEPTED, "Expired.", (p,)), jobs)
        case Verb.EXTEND:
            p = moved(proposals.move(session, p, by, now, **clock(p.ttl, p.remind_every, now)))
            text = f"It waits until {p.expires_at:%Y-%m-%d %H:%M} UTC now."
            return Decided(Reply(Answer.ACCEPTED, text, (p,)), (redraw(p),))
        case _:
            named = _named(press.reason or "", four_eyes=p.deciders.four_eyes)
            requester = people.person_of(session, p.requester)
            if why := policies.load(session).too_few(named, requester, p.quorum):
                return Decided(Reply(Answer.INVALID, f"Say who shall decide: {why}.", (p,)))
            p = moved(proposals.move(session, p, by, now, deciders=named, votes=()))
            return Decided(Reply(Answer.ACCEPTED, "Reassigned; votes start anew.", (p,)), (redraw(p),))


def _decline(session: Session, press: Press, person: Person, p: Proposal, by: By, now: datetime) -> Decided:
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


def _what_changed(p: Proposal, seen: int | None) -> str:
    """For a press on what was shown in round ``seen``: who changed what since."""
    since = [edit.words for edit in p.edits if seen is not None and edit.round > seen]
    what = f": {'; '.join(since)}" if since else ""
    return f"This changed after the card was shown{what}. Look at it as it is now, then decide."


def _answer_plan(
    session: Session,
    press: Press,
    person: Person,
    p: Proposal,
    policies: Policies,
    now: datetime,
    prepared: Prepared,
) -> Decided:
    """What can be pressed on plans alone."""
    if p.kind is not Kind.PLAN:
        return Decided(Reply(Answer.INVALID, "Only a teammate's plan can be answered so.", (p,)))
    if press.verb is Verb.REVISE:
        return _revise(session, press, person, p, now)
    return _approve_with_steps(session, press, person, p, policies, now, prepared)


def _revise(session: Session, press: Press, person: Person, p: Proposal, now: datetime) -> Decided:
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


def _approve_with_steps(
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
    if not isinstance(steps, Steps):
        return Decided(
            Reply(Answer.INVALID, "The steps cannot be allowed from here. Approve the plan.", (p,))
        )
    voted = _edit_and_vote(session, press, person, p, policies, now, None)
    approved = next((each for each in voted.reply.proposals if each.state is State.APPROVED), None)
    if voted.reply.answer is not Answer.ACCEPTED or approved is None:
        return voted
    for scope, words in steps.grants:
        grants.give(session, approved, press.actor, person, scope, words, Lasting.CONVERSATION, now)
    names = ", ".join(scope.tool_name for scope, _ in steps.grants)
    allowed = f"{p.teammate} may use {names} without asking until it ends" if names else "no step needs more"
    text = f"Plan approved: {allowed}. What cannot be undone still asks."
    return replace(voted, reply=replace(voted.reply, text=text))


def _named(words: str, *, four_eyes: bool) -> Deciders:
    """Who may decide, as an admin named them. Four eyes stay four: no admin names them away."""
    each = words.split()
    return Deciders(
        four_eyes=four_eyes,
        requester="requester" in each,
        roles=tuple(word for word in each if word in set(Role)),
        people=tuple(word for word in each if ":" in word),
    )


def _propose_anew(session: Session, p: Proposal, by: By, fresh: Fresh, now: datetime) -> Decided:
    """A press that came too late asks again, with what is there now, instead of dying."""
    p = moved(
        proposals.move(
            session,
            p,
            replace(by, verb="ask again"),
            now,
            State.PROPOSED,
            **terms(fresh.verdict, now),
            preview=fresh.preview,
            round=p.round + 1,
            votes=(),
            decided_at=None,
        )
    )
    text = "It had expired, so nothing was run. I ask again with what is there now: look, then decide."
    return Decided(Reply(Answer.STALE, text, (p,)), (redraw(p),))


def _grant_and_vote(
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
    voted = _edit_and_vote(session, press, person, p, policies, now, None)
    if voted.reply.answer is not Answer.ACCEPTED:
        return voted
    grant = grants.give(session, p, press.actor, person, similar.scope, similar.words, similar.lasting, now)
    until = grant.expires_at.strftime("%Y-%m-%d %H:%M UTC") if grant.expires_at else "this conversation ends"
    text = f"Approved. {grant.label} now allows {grant.words}, until {until}. An admin can revoke it."
    return replace(voted, reply=replace(voted.reply, text=text))


def _edit_and_vote(
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
        p = moved(proposals.move(session, p, by, now, votes=votes))
        text = "Your approval counts; the lead agent must approve the plan, too."
        return Decided(Reply(Answer.ACCEPTED, text, (p,)), (redraw(p),))
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


def _retry(session: Session, p: Proposal, by: By, now: datetime) -> Decided:
    if p.cause is Cause.TOOL_CHANGED:
        return Decided(Reply(Answer.ALREADY, "The tool changed; ask for it anew.", (p,)))
    p = moved(
        proposals.move(
            session, p, by, now, State.APPROVED, cause=None, error=None, result=None, round=p.round + 1
        )
    )
    return Decided(Reply(Answer.ACCEPTED, "Trying again.", (p,)), (Job(Work.EXECUTE, p.id), redraw(p)))
