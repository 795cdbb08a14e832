"""What people do to proposals: every press, authorised, checked and recorded in one transaction.

What time and machines do is in ``bot/approvals/lifecycle.py``.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlmodel import Session

from bot.approvals import questions, rights
from bot.approvals.kinds import change, plan, question
from bot.approvals.lifecycle import end, expire, moved, redraw
from bot.approvals.team import teammates
from bot.approvals.votes import Decided, FreshPreview, Prepared, Pressed
from bot.domain.chat import Answer, Press, Reply
from bot.domain.jobs import Job, Work
from bot.domain.outcomes import too_late
from bot.domain.people import Role
from bot.domain.policy import terms
from bot.domain.proposals import Cause, Deciders, Kind, Proposal, State, clock
from bot.domain.record import Act
from bot.domain.redaction import secrets_in, veiled
from bot.domain.risk import Level
from bot.domain.times import when
from bot.domain.verbs import Verb
from bot.store import people, proposals, transitions
from bot.store.audit.log import By
from bot.store.locks import conversation_lock
from bot.store.rules import Policies


def decide(
    session: Session, press: Press, policies: Policies, now: datetime, prepared: Prepared = None
) -> Decided:
    """Take in one press: authorise, check that it is about what is there now, change, record."""
    conversation_lock.with_proposal(session, press.proposal_id)
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
            Reply(Answer.STALE, "One of these has changed. Please look at the cards again.", tuple(group))
        )
    waiting = [p for p in group if p.state is State.PROPOSED]
    if not waiting:
        return Decided(Reply(Answer.ALREADY, "All of these are already decided.", tuple(group)))
    verb = Verb.APPROVE if press.verb is Verb.APPROVE_ALL else Verb.DECLINE
    alone = [p for p in waiting if verb is Verb.APPROVE and p.risk.level is Level.DESTRUCTIVE]
    waiting = [p for p in waiting if p not in alone]
    each_one = "it" if len(alone) == 1 else "each"
    left = f"{len(alone)} can't be undone, so approve {each_one} on its own card."
    if not waiting:
        return Decided(Reply(Answer.INVALID, left, tuple(alone)))
    each = [
        _decide_one(
            session, replace(press, verb=verb, round=None, digest=None, seen=None), policies, now, p, None
        )
        for p in waiting
    ]
    jobs = tuple(dict.fromkeys(job for d in each for job in d.jobs))
    took = [d for d in each if d.reply.answer is Answer.ACCEPTED]
    refused = [d for d in each if d.reply.answer is not Answer.ACCEPTED]
    if not took:
        return Decided(refused[0].reply, jobs)
    done = "approved" if verb is Verb.APPROVE else "declined"
    text = f"{len(took)} {done}." + (f" {len(refused)} not: {refused[0].reply.text}" if refused else "")
    text = f"{text} {left}" if alone else text
    changed = (*(p for d in each for p in d.reply.proposals), *alone)
    return Decided(Reply(Answer.ACCEPTED, text, changed), jobs)


def _decide_one(
    session: Session, press: Press, policies: Policies, now: datetime, p: Proposal, prepared: Prepared
) -> Decided:
    policy, person = policies.load_for(session, press.actor)
    if refusal := rights.objection_of(session, policy, p, person, press.actor, press.verb, press.address):
        return Decided(Reply(Answer.REFUSED, refusal, (p,)))
    if press.reason:
        schema = proposals.schema(session, p.tool_name, p.tool_version)
        press = replace(press, reason=veiled(press.reason, secrets_in(p.arguments, schema)))
    pressed = Pressed(press, person, policies, now, prepared, policy.book.paused)
    if p.state is State.PROPOSED and p.expires_at <= now and not policy.book.paused:
        p, jobs = expire(session, p, now)
        if not isinstance(prepared, FreshPreview):
            return Decided(Reply(Answer.ALREADY, too_late(p, now), (p,)), jobs)
    if p.state is State.EXPIRED and isinstance(prepared, FreshPreview) and not p.told_once:
        return _propose_anew(session, p, pressed.by, prepared, now)
    if p.state is not _FROM.get(press.verb, State.PROPOSED):
        late = "It isn't running." if press.verb is Verb.STOP else too_late(p, now)
        return Decided(Reply(Answer.ALREADY, late, (p,)))
    if _is_about_another(press, p):
        return Decided(Reply(Answer.STALE, _what_changed(p, press.round), (p,)))
    if press.by_api and p.edited_by and press.verb in _AS_EDITED and _names_nothing(press):
        return Decided(Reply(Answer.STALE, _SAY_WHICH, (p,)))
    if press.verb in _MANAGING:
        return _manage(session, pressed, p)
    match p.kind:
        case Kind.CALL | Kind.REQUEST:
            return change.decide(session, pressed, p)
        case Kind.PLAN:
            return plan.decide(session, pressed, p)
        case Kind.QUESTION:
            return question.decide(session, pressed, p)


def _is_about_another(press: Press, p: Proposal) -> bool:
    """Whether it names what is no longer there. A digest alone approves only what was shown once with it."""
    if press.round is None and press.seen is None and press.digest is not None and p.shown_again:
        return press.digest != p.digest or press.verb in _APPROVING
    named = ((press.round, p.round), (press.digest, p.digest), (press.seen, p.seen))
    return any(shown is not None and shown != there for shown, there in named)


def _names_nothing(press: Press) -> bool:
    return press.round is None and press.digest is None and press.seen is None


_APPROVING = (Verb.APPROVE, Verb.SIMILAR, Verb.APPROVE_STEPS)
_AS_EDITED = (Verb.APPROVE, Verb.SIMILAR, Verb.EDIT)
_SAY_WHICH = "It was edited after it was proposed. Send what you saw of it: seen or round."
_FROM = {Verb.RETRY: State.FAILED, Verb.STOP: State.EXECUTING}
"""The state in which a verb means something; of all others that a proposal is open."""

_MANAGING = (Verb.ASK, Verb.CANCEL, Verb.STOP, Verb.RETRY, Verb.EXTEND, Verb.EXPIRE, Verb.REASSIGN)
"""What is done alike with every kind of proposal."""


def _manage(session: Session, pressed: Pressed, p: Proposal) -> Decided:
    """What isn't a vote: ask about it, withdraw it, end or restart the wait, retry, name who decides."""
    press, by, now = pressed.press, pressed.by, pressed.now
    match press.verb:
        case Verb.ASK:
            return questions.ask(session, pressed, p)
        case Verb.STOP:
            return _stop(session, p, by, pressed.who, now)
        case Verb.RETRY:
            return _retry(session, p, by, now)
        case Verb.CANCEL:
            given = {"cause": Cause.TAKEN_BACK, "decline_reason": press.reason}
            p, jobs = end(session, p, by, now, State.CANCELLED, pressed.who, **given)
            return Decided(Reply(Answer.ACCEPTED, "Withdrawn.", (p,)), jobs)
        case Verb.EXPIRE:
            p, jobs = end(session, p, by, now, State.EXPIRED, pressed.who)
            return Decided(Reply(Answer.ACCEPTED, "Expired.", (p,)), jobs)
        case Verb.EXTEND:
            p = moved(transitions.move(session, p, by, now, **clock(p.ttl, p.remind_every, now)))
            text = f"It now expires {when(p.expires_at, now)}."
            return Decided(Reply(Answer.ACCEPTED, text, (p,)), (redraw(session, p),))
        case _:
            named = _named(press.reason or "", p.deciders)
            requester = people.person_of(session, p.requester)
            if why := pressed.policies.load(session).too_few(named, requester, p.quorum):
                return Decided(Reply(Answer.INVALID, f"Say who should decide: {why}.", (p,)))
            p = moved(transitions.move(session, p, by, now, deciders=named, votes=()))
            return Decided(
                Reply(Answer.ACCEPTED, "Reassigned. Earlier votes were reset.", (p,)), (redraw(session, p),)
            )


def _what_changed(p: Proposal, seen: int | None) -> str:
    """For a press on what was shown in round ``seen``: who changed what since."""
    since = [edit.words for edit in p.edits if seen is not None and edit.round > seen]
    what = f": {'; '.join(since)}" if since else ""
    return f"This changed after the card was shown{what}. Look at the new card, then decide."


def _named(words: str, before: Deciders) -> Deciders:
    """Who may decide, as named by an admin. Four eyes stays: no admin can name it away."""
    each = words.split()
    return Deciders(
        four_eyes=before.four_eyes,
        place=before.place,
        requester="requester" in each,
        roles=tuple(word for word in each if word in set(Role)),
        people=tuple(word for word in each if ":" in word),
    )


def _propose_anew(session: Session, p: Proposal, by: By, fresh: FreshPreview, now: datetime) -> Decided:
    """A press on an expired proposal asks again, with current values."""
    p = moved(
        transitions.move(
            session,
            p,
            replace(by, verb=Act.ASK_AGAIN),
            now,
            State.PROPOSED,
            **terms(fresh.verdict, now),
            preview=fresh.preview,
            round=p.round + 1,
            votes=(),
            decided_at=None,
        )
    )
    text = "It had expired, so nothing ran. Here it is again with current values."
    return Decided(Reply(Answer.STALE, text, (p,)), (redraw(session, p), *teammates.back_at_work(session, p)))


def _stop(session: Session, p: Proposal, by: By, who: str, now: datetime) -> Decided:
    """Want its run ended: the process that runs it reads that, and tells what became of it."""
    if p.kind is not Kind.CALL:
        return Decided(Reply(Answer.INVALID, "This can't be stopped.", (p,)))
    if p.cause is Cause.STOPPED:
        return Decided(Reply(Answer.ALREADY, "It is being stopped already.", (p,)))
    error = f"{who} stopped it. What it did until then is unknown."
    p = moved(transitions.move(session, p, by, now, cause=Cause.STOPPED, error=error))
    return Decided(Reply(Answer.ACCEPTED, "Stopping it.", (p,)), (redraw(session, p),))


def _retry(session: Session, p: Proposal, by: By, now: datetime) -> Decided:
    if p.cause is Cause.TOOL_CHANGED:
        return Decided(Reply(Answer.STALE, "The tool has changed since. Please request it again.", (p,)))
    if p.cause is Cause.REFUSED:
        return Decided(Reply(Answer.STALE, f"Trying again can't help. {p.error}", (p,)))
    p = moved(
        transitions.move(
            session,
            p,
            by,
            now,
            State.APPROVED,
            cause=None,
            error=None,
            result=None,
            told=None,
            ended_badly=None,
            round=p.round + 1,
        )
    )
    jobs = (Job(Work.EXECUTE, p.id), redraw(session, p), *teammates.back_at_work(session, p))
    return Decided(Reply(Answer.ACCEPTED, "Trying again.", (p,)), jobs)
