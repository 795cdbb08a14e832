"""What people and time do to proposals: press, expire, claim, finish, settle. One transaction each."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlmodel import Session

from bot.domain.chat import Answer, Press, Reply, Verb
from bot.domain.jobs import Job, Work
from bot.domain.outcomes import for_model, too_late
from bot.domain.people import Actor, Person
from bot.domain.policy import Policy
from bot.domain.proposals import Cause, Deciders, PreviewField, Proposal, State, Vote
from bot.domain.risk import Risk
from bot.store import conversations, people, proposals
from bot.store.audit import By


@dataclass(frozen=True, slots=True)
class Edit:
    """New arguments, validated, with everything that follows from them."""

    arguments: Mapping[str, Any]
    tool_version: str
    digest: str
    description: str
    preview: tuple[PreviewField, ...]
    risk: Risk
    deciders: Deciders
    quorum: int
    rule: str


@dataclass(frozen=True, slots=True)
class Decided:
    """The answer to the person who pressed, and the work it made."""

    reply: Reply
    jobs: tuple[Job, ...] = ()


class LostRace(Exception):  # noqa: N818 - nothing is wrong: read again and decide anew
    """Another transaction changed the proposal between our read and our write (PostgreSQL only)."""


def objection(
    session: Session, policy: Policy, proposal: Proposal, actor: Actor, verb: Verb = Verb.APPROVE
) -> str | None:
    """Why this account's Person may not press that, in words; None when they may."""
    person = people.person_of(session, actor)
    requester = people.person_of(session, proposal.requester)
    if verb is Verb.CANCEL:
        if policy.may_take_back(person, requester):
            return None
        return f"Only {proposal.requester.label} or an admin can take this one back. It stays open."
    return policy.objection(proposal, person, requester)


def redraw(p: Proposal) -> Job:
    """Its cards, and the one that carries its group's buttons, are behind."""
    return Job(Work.REDRAW, str(p.message_id))


def decide(
    session: Session, press: Press, policy: Policy, now: datetime, edit: Edit | None = None
) -> Decided:
    """Take in one press: authorise, check that it is about what is there now, change, record.

    ``edit`` is the press's arguments, validated before the transaction (a preview may need the network).
    """
    proposal = proposals.get(session, press.proposal_id)
    if proposal is None:
        return Decided(Reply(Answer.UNKNOWN, f"There is no proposal {press.proposal_id}."))
    if press.verb in (Verb.APPROVE_ALL, Verb.DECLINE_ALL):
        return _decide_group(session, press, policy, now, proposals.of_message(session, proposal.message_id))
    return _decide_one(session, press, policy, now, proposal, edit)


def _decide_group(
    session: Session, press: Press, policy: Policy, now: datetime, group: Sequence[Proposal]
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
        _decide_one(session, replace(press, verb=verb, round=None, digest=None), policy, now, p, None)
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
    session: Session, press: Press, policy: Policy, now: datetime, p: Proposal, edit: Edit | None
) -> Decided:
    if refusal := objection(session, policy, p, press.actor, press.verb):
        return Decided(Reply(Answer.REFUSED, refusal, (p,)))
    person = people.person_of(session, press.actor)
    by = By.press(press.verb, press.actor, person, press.reason)
    if p.state is State.PROPOSED and p.expires_at <= now:
        expired = _expire(session, p, now)
        return Decided(Reply(Answer.ALREADY, too_late(expired[0], now), (expired[0],)), expired[1])
    if p.state is not (State.FAILED if press.verb is Verb.RETRY else State.PROPOSED):
        return Decided(Reply(Answer.ALREADY, too_late(p, now), (p,)))
    if (press.round is not None and press.round != p.round) or (press.digest and press.digest != p.digest):
        text = "This changed after the card was shown. Look at it as it is now, then decide."
        return Decided(Reply(Answer.STALE, text, (p,)))
    label = person.name or person.id
    match press.verb:
        case Verb.DECLINE:
            p, jobs = _end(session, p, by, now, State.DECLINED, label, decline_reason=press.reason)
            return Decided(Reply(Answer.ACCEPTED, "Declined.", (p,)), jobs)
        case Verb.CANCEL:
            p, jobs = _end(session, p, by, now, State.CANCELLED, label, cause=Cause.TAKEN_BACK)
            return Decided(Reply(Answer.ACCEPTED, "Taken back.", (p,)), jobs)
        case Verb.RETRY:
            return _retry(session, p, by, now)
        case _:
            return _edit_and_vote(session, press, person, p, policy, now, edit)


def _edit_and_vote(
    session: Session,
    press: Press,
    person: Person,
    p: Proposal,
    policy: Policy,
    now: datetime,
    edit: Edit | None,
) -> Decided:
    label = person.name or person.id
    if edit is None and press.verb is Verb.EDIT:
        return Decided(Reply(Answer.INVALID, "There is nothing to edit: no arguments were given.", (p,)))
    if edit is not None and edit.digest != p.digest:
        p = _moved(
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
                risk=edit.risk,
                deciders=edit.deciders,
                quorum=edit.quorum,
                rule=edit.rule,
                round=p.round + 1,
                votes=(),
                edited_by=label,
                changed=False,
            )
        )
    if press.verb is Verb.EDIT:
        return Decided(
            Reply(Answer.ACCEPTED, "Edited. It waits for approval as it is now.", (p,)), (redraw(p),)
        )
    if edit is not None and (refusal := objection(session, policy, p, press.actor)):
        # the edit brought it under another rule, which this person's vote does not satisfy
        return Decided(Reply(Answer.ACCEPTED, f"Edited, not approved. {refusal}", (p,)), (redraw(p),))
    if any(v.person_id == person.id for v in p.votes):
        return Decided(Reply(Answer.ALREADY, "Your vote is counted already.", (p,)))
    vote = Vote(person.id, press.actor, Verb.APPROVE, press.reason, now)
    votes = (*p.votes, vote)
    by = By.press(Verb.APPROVE, press.actor, person, press.reason)
    if len(votes) < p.quorum:
        p = _moved(proposals.move(session, p, by, now, votes=votes))
        text = f"Your vote counts: {len(votes)} of {p.quorum}."
        return Decided(Reply(Answer.ACCEPTED, text, (p,)), (redraw(p),))
    p = _moved(
        proposals.move(
            session,
            p,
            by,
            now,
            State.APPROVED,
            votes=votes,
            decided_by=label,
            decided_from=press.actor.channel,
            decided_at=now,
        )
    )
    return Decided(Reply(Answer.ACCEPTED, "Approved.", (p,)), (Job(Work.EXECUTE, p.id), redraw(p)))


def _retry(session: Session, p: Proposal, by: By, now: datetime) -> Decided:
    if p.cause is Cause.TOOL_CHANGED:
        return Decided(Reply(Answer.ALREADY, "The tool changed; ask for it anew.", (p,)))
    again = {"cause": None, "error": None, "result": None, "round": p.round + 1}
    p = _moved(proposals.move(session, p, by, now, State.APPROVED, **again))
    return Decided(Reply(Answer.ACCEPTED, "Trying again.", (p,)), (Job(Work.EXECUTE, p.id), redraw(p)))


def _end(
    session: Session, p: Proposal, by: By, now: datetime, state: State, who: str | None, **changes: Any
) -> tuple[Proposal, tuple[Job, ...]]:
    """Bring an open proposal to an end without running it."""
    if who is not None:
        changes |= {"decided_by": who, "decided_from": by.channel, "decided_at": now}
    p = _moved(proposals.move(session, p, by, now, state, **changes))
    return p, (redraw(p), *settle(session, p, now))


def expire_due(session: Session, now: datetime, limit: int) -> list[tuple[Proposal, tuple[Job, ...]]]:
    """Expire what nobody decided in time, at most ``limit`` at once."""
    expired = []
    for p in proposals.due(session, now, limit):
        with contextlib.suppress(LostRace):  # decided a moment ago: then it does not expire
            expired.append(_expire(session, p, now))
    return expired


def _expire(session: Session, p: Proposal, now: datetime) -> tuple[Proposal, tuple[Job, ...]]:
    return _end(session, p, By.nod("expire"), now, State.EXPIRED, None, decided_at=now)


def undeliverable(session: Session, proposal_id: str, why: str, now: datetime) -> tuple[Job, ...]:
    """The card could not be posted anywhere: nobody could ever decide, so it ends."""
    p = proposals.get(session, proposal_id)
    if p is None or p.state is not State.PROPOSED:
        return ()
    by = By.nod("undeliverable", why)
    return _end(session, p, by, now, State.CANCELLED, None, cause=Cause.UNDELIVERABLE, error=why)[1]


def ask_again(
    session: Session, p: Proposal, preview: tuple[PreviewField, ...], expires_at: datetime, now: datetime
) -> tuple[Job, ...]:
    """What the preview showed as old has moved: back to people, with what is there now."""
    moved = proposals.move(
        session,
        p,
        By.nod("changed", "the old values moved"),
        now,
        State.PROPOSED,
        preview=preview,
        round=p.round + 1,
        votes=(),
        changed=True,
        expires_at=expires_at,
        decided_by=None,
        decided_from=None,
        decided_at=None,
    )
    return (redraw(p),) if moved else ()


def claim(session: Session, p: Proposal, lease_until: datetime, now: datetime) -> Proposal | None:
    """``approved → executing`` for exactly one caller; everybody else gets None and does nothing."""
    return proposals.move(session, p, By.nod("execute"), now, State.EXECUTING, lease_until=lease_until)


def finish(
    session: Session, claimed: Proposal, state: State, now: datetime, **changes: Any
) -> tuple[Proposal, tuple[Job, ...]] | None:
    """Store how it ended (``SUCCEEDED`` or ``FAILED`` with its cause); None when the claim was lost."""
    p = proposals.move(session, claimed, By.nod(str(state)), now, state, **changes)
    return None if p is None else (p, (redraw(p), *settle(session, p, now)))


def settle(session: Session, p: Proposal, now: datetime) -> tuple[Job, ...]:
    """When every call of an answer has ended, the conversation goes on.

    If it went on meanwhile, the model has already spoken past these calls, or is speaking in a turn that read
    them as they were: a note tells it how they ended.
    """
    if proposals.has_unsettled(session, p.message_id):
        return ()
    resumed = conversations.want_turn(session, p.conversation_id, now)
    if not resumed or conversations.spoken_since(session, p.conversation_id, p.message_id):
        group = proposals.of_message(session, p.message_id)
        lines = "\n".join(f"- {each.description}: {for_model(each)}" for each in group)
        conversations.add_note(session, p.conversation_id, f"[Nod] What you proposed earlier:\n{lines}", now)
    return (Job(Work.TURN, p.conversation_id),)


def _moved(p: Proposal | None) -> Proposal:
    if p is None:
        raise LostRace
    return p


def abandon(session: Session, p: Proposal, now: datetime, *, rerun: bool) -> tuple[Job, ...]:
    """The process that ran it is gone: nobody knows how it ended.

    ``rerun``: the tool declared itself idempotent, so it runs again with the same key; else people decide.
    """
    error = "The process that ran it stopped before it heard the end."
    by = By.nod("abandoned", error)
    p = _moved(proposals.move(session, p, by, now, State.FAILED, cause=Cause.OUTCOME_UNKNOWN, error=error))
    if not rerun:
        return (redraw(p), *settle(session, p, now))
    by = By.nod("rerun", "the tool is idempotent")
    p = _moved(proposals.move(session, p, by, now, State.APPROVED, cause=None, error=None))
    return (redraw(p), Job(Work.EXECUTE, p.id))
