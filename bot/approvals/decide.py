"""People's presses on proposals: each is authorised, checked and recorded in one transaction.

Votes are counted in ``bot/approvals/votes.py``. Expiry, claims and ends of runs are in
``bot/approvals/lifecycle.py``.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlmodel import Session

from bot.approvals import asking, ownership, questions, rights, undo, votes
from bot.approvals.lifecycle import expire, redraw
from bot.approvals.pressing import Contents, Decided, Prepared, PressContext, accept, refuse
from bot.approvals.team import teammates
from bot.domain.chat import Answer, Choice, Press, Reply
from bot.domain.jobs import Job, Work
from bot.domain.outcomes import too_late
from bot.domain.people import Actor, Role
from bot.domain.policy import Policy, terms
from bot.domain.proposals import Cause, Deciders, Level, Proposal, State, clock
from bot.domain.record import Act
from bot.domain.redaction import secrets_in, veil
from bot.domain.times import format_relative
from bot.domain.verbs import CHOICES, Verb
from bot.errors import UnknownCard
from bot.store import people, posted_cards, proposals
from bot.store.connections import is_owner
from bot.store.hooks import hooks_of
from bot.store.locks import conversation_lock
from bot.store.rules import Policies

_FROM = {
    Verb.RETRY: State.FAILED,
    Verb.STOP: State.EXECUTING,
    Verb.UNDO: State.SUCCEEDED,
    Verb.STOP_ALL: State.APPROVED,
}
"""The state in which a verb means something; of all others that a proposal is open."""
_OF_PLANS = "That only works on a teammate's plan."
_OTHER_KIND: Mapping[Verb, str] = {
    Verb.REVISE: _OF_PLANS,
    Verb.APPROVE_STEPS: _OF_PLANS,
    Verb.NEVER: "That only works on what Nod suggests.",
    Verb.STOP: "This can't be stopped.",
    **dict.fromkeys((Verb.ANSWER, *CHOICES), "That only works on a question of the agent."),
}
"""The answer to a press on a kind of proposal that does not take its verb."""
_ROW_BY_ROW = {
    Verb.APPROVE_ALL: (Verb.APPROVE, State.PROPOSED),
    Verb.DECLINE_ALL: (Verb.DECLINE, State.PROPOSED),
    Verb.STOP_ALL: (Verb.STOP_ALL, State.APPROVED),
    Verb.UNDO_ALL: (Verb.UNDO, State.SUCCEEDED),
}
"""What a verb for several does to each, and to those in which state."""
TOGETHER = frozenset(_ROW_BY_ROW)
_TOLD = {Verb.APPROVE: "approved", Verb.DECLINE: "declined", Verb.UNDO: "being undone"}
_ASKS = {Verb.UNDO: "asked about on a card"}
_LATE = {Verb.STOP_ALL: "None of these is waiting to run.", Verb.UNDO_ALL: "None of these can be undone now."}
_REASONS = 5  # that an answer says; a batch has few
APPROVING = (Verb.APPROVE, Verb.SIMILAR, Verb.APPROVE_STEPS, Verb.FOR_REAL)
_YES_OR_NO = frozenset({*APPROVING, Verb.DECLINE, Verb.NEVER, Verb.REVISE})
_RUNNING = (*APPROVING, Verb.RETRY)
_AS_EDITED = (Verb.APPROVE, Verb.SIMILAR, Verb.EDIT, Verb.FOR_REAL)
_SAY_WHICH = "It was edited after it was proposed. Send what you saw of it: seen or round."
_NOT_NOW = {Verb.STOP: "It isn't running.", Verb.STOP_ALL: "It has already started."}


def decide(
    session: Session,
    press: Press,
    policies: Policies,
    now: datetime,
    prepared: Prepared = Prepared(),  # noqa: B008 - frozen
) -> Decided:
    """Process one press: authorise it, check that it is for the current state, apply and record it.

    Raises UnknownCard where it was made on a message that is not known as a card of the proposal.
    """
    conversation_lock.with_proposal(session, press.proposal_id)
    found = policies.find_for(session, press.proposal_id, press.actor)
    if found is None:
        return Decided(Reply(Answer.UNKNOWN, f"There is no proposal {press.proposal_id}."))
    p, policy, person = found
    _check_card(session, press, p)
    refusal, absent = rights.judge_press(session, policy, p, person, press.actor, press.verb, press.address)
    if refusal:
        return refuse(Answer.REFUSED, p, refusal)
    if press.reason:
        schema = proposals.schema(session, p.tool_name, p.tool_version)
        press = replace(press, reason=veil(press.reason, secrets_in(p.arguments, schema)))
    context = PressContext(
        press, person, policies, now, policy.book.paused, prepared, policy.absences, absent
    )
    decided = _apply(session, context, policy, p)
    if decided.reply.answer is Answer.ACCEPTED and press.verb in _YES_OR_NO:
        for note_decision in hooks_of(session).note_decision:
            note_decision(session, p, press, now)
    return decided


def _check_card(session: Session, press: Press | Choice, p: Proposal) -> None:
    if press.address is None or press.ref is None:
        return
    if not posted_cards.is_card_of(session, p, press.address.channel, press.ref):
        raise UnknownCard


@dataclass(frozen=True, slots=True)
class Rows:
    """A press on several proposals, split into one press for each.

    ``alone`` can't be undone, so each of these is approved by itself.
    """

    presses: tuple[Press, ...]
    alone: tuple[Proposal, ...] = ()


def rows_of(session: Session, press: Press | Choice) -> Rows | Reply:
    """Split a press on several proposals into one for each, or return the refusal.

    Raises UnknownCard as `decide` does.
    """
    found = proposals.get(session, press.proposal_id)
    if found is None or (isinstance(press, Choice) and found.batch != press.batch):
        what = "batch" if isinstance(press, Choice) else "proposal"
        return Reply(Answer.UNKNOWN, f"There is no {what} {press.proposal_id}.")
    _check_card(session, press, found)
    group = proposals.group_of(session, found)
    if press.round is not None and press.round != sum(p.round for p in group):
        return Reply(Answer.STALE, "One of these has changed. Please look at the cards again.", tuple(group))
    if isinstance(press, Choice):
        wanted = _list_presses(press, group)
    else:
        wanted = _each_of(press, group)
    if isinstance(wanted, Reply):
        return wanted
    alone = [p for p, each in wanted if each.verb is Verb.APPROVE and p.risk.level is Level.DESTRUCTIVE]
    presses = tuple(each for p, each in wanted if p not in alone)
    if presses:
        return Rows(presses, tuple(alone))
    return Reply(Answer.INVALID, _apart(alone), tuple(alone))


def _each_of(press: Press, group: Sequence[Proposal]) -> list[tuple[Proposal, Press]] | Reply:
    """Return a press for each proposal of the group that is in the state to take it, or a refusal."""
    verb, state = _ROW_BY_ROW[press.verb]
    meant = [p for p in group if p.state is state and (verb is not Verb.UNDO or p.undo_until is not None)]
    if not meant:
        late = _LATE.get(press.verb, "All of these are already decided.")
        return Reply(Answer.ALREADY, late, tuple(group))
    alike = replace(press, verb=verb, digest=None, seen=None, ref=None)  # which is one of them
    return [
        (p, replace(alike, proposal_id=p.id, round=None if press.round is None else p.round)) for p in meant
    ]


def _list_presses(choice: Choice, group: Sequence[Proposal]) -> list[tuple[Proposal, Press]] | Reply:
    """Return a press for each chosen row, or a refusal."""
    by_id = {p.id: p for p in group}
    rows = [(Verb.APPROVE, row) for row in choice.approve] + [(Verb.DECLINE, row) for row in choice.decline]
    if not rows:
        return Reply(Answer.INVALID, "Say which rows to approve or decline.")
    other = next((row.id for _, row in rows if row.id not in by_id), None)
    if other:
        return Reply(Answer.INVALID, f"There is no {other} in this batch.")
    twice = next((each for each, many in Counter(row.id for _, row in rows).items() if many > 1), None)
    if twice:
        return Reply(Answer.INVALID, f"{twice} is there twice. Approve it or decline it.")
    actor, why, at, api = choice.actor, choice.reason, choice.address, choice.by_api
    return [
        (
            by_id[row.id],
            Press(actor, verb, row.id, row.round, why, address=at, seen=row.seen, by_api=api),
        )
        for verb, row in rows
    ]


def _apart(alone: Sequence[Proposal]) -> str:
    each_one = "it" if len(alone) == 1 else "each"
    return f"{len(alone)} can't be undone, so approve {each_one} on its own card."


def decide_rows(
    session: Session, presses: Sequence[Press], policies: Policies, now: datetime
) -> list[Decided]:
    """Process presses in their order, each like `decide`."""
    return [decide(session, press, policies, now) for press in presses]


def inverse_of(decided: Decided) -> Proposal | None:
    """Return the proposal that a press on Undo opened, or None."""
    return next((p for p in decided.reply.proposals if p.undoes), None)


def count_outcomes(rows: Rows, each: Sequence[Decided]) -> Decided:
    """Summarise a press on several proposals: how many it applied to, and why not to the others."""
    jobs = tuple(dict.fromkeys(job for d in each for job in d.jobs))
    took: Counter[str] = Counter()
    why: dict[str, list[tuple[Proposal, ...]]] = {}
    for press, decided in zip(rows.presses, each, strict=True):
        reply = decided.reply
        if reply.answer is not Answer.ACCEPTED:
            why.setdefault(reply.text, []).append(reply.proposals)
        else:
            asks = reply.proposals[-1].state is State.PROPOSED
            if asks:
                told = _ASKS.get(press.verb, "counted as a vote")
            else:
                told = _TOLD.get(press.verb, "stopped")
            took[told] += 1
    if took:
        said = [f"{', '.join(f'{many} {done}' for done, many in took.items())}."]
    else:
        said = []
    for words, left in list(why.items())[:_REASONS]:
        if len(left) == 1 and left[0]:
            who = f"“{left[0][0].description}”"
        else:
            who = str(len(left))
        said.append(f"{who} not: {words}" if took or len(why) > 1 else words)
    if rows.alone:
        said.append(_apart(rows.alone))
    answer = Answer.ACCEPTED if took else each[0].reply.answer
    changed = (*(p for d in each for p in d.reply.proposals), *rows.alone)
    return Decided(Reply(answer, " ".join(said), changed), jobs)


def _apply(session: Session, context: PressContext, policy: Policy, p: Proposal) -> Decided:
    """Apply an authorised press, if it is for the state that the proposal is in."""
    press, person, now, prepared = context.press, context.person, context.now, context.prepared
    jobs: tuple[Job, ...] = ()
    if p.state is State.PROPOSED and p.expires_at <= now and not policy.book.paused:
        p, jobs = expire(session, p, now)
    if p.state is State.EXPIRED and prepared.current is not None and not p.kind.is_final:
        return _ask_again(session, context, p, prepared.current)
    takes_back = press.verb is Verb.CANCEL and p.state is State.APPROVED and is_owner(p, person)
    if p.state is not _FROM.get(press.verb, State.PROPOSED) and not takes_back:
        late = _NOT_NOW.get(press.verb) or too_late(p, now)
        return Decided(Reply(Answer.ALREADY, late, (p,)), jobs)
    if _is_about_another(press, p):
        return refuse(Answer.STALE, p, _what_changed(p, press.round))
    if press.by_api and p.edited_by and press.verb in _AS_EDITED and _names_nothing(press):
        return refuse(Answer.STALE, p, _SAY_WHICH)
    if p.undoes and (press.verb in (Verb.EDIT, Verb.SIMILAR) or press.arguments is not None):
        return refuse(Answer.INVALID, p, "What undoes a change can't be edited or allowed in advance.")
    if press.verb in _RUNNING and policy.book.forbids:
        call = replace(rights.call_of(session, p), at=now)
        why = policy.forbidding(call)
        if why:
            return refuse(Answer.REFUSED, p, f"This is now forbidden: {why}. Nothing runs.")
    if press.verb in _OTHER_KIND and press.verb not in p.kind.takes:
        return refuse(Answer.INVALID, p, _OTHER_KIND[press.verb])
    return _STEPS[press.verb](session, context, p)


def _is_about_another(press: Press, p: Proposal) -> bool:
    """Tell if the press is for a state of the proposal that is gone.

    A press with nothing but a digest approves only a proposal that was never shown again.
    """
    if press.round is None and press.seen is None and press.digest is not None and p.shown_again:
        return press.digest != p.digest or press.verb in APPROVING
    if press.round not in (None, p.round) or press.digest not in (None, p.digest):
        return True
    return press.seen is not None and press.seen != p.seen


def _names_nothing(press: Press) -> bool:
    return press.round is None and press.digest is None and press.seen is None


def _what_changed(p: Proposal, seen: int | None) -> str:
    """Return the refusal of a press on round ``seen``, with the edits made since."""
    since = [edit.words for edit in p.edits if seen is not None and edit.round > seen]
    what = f": {'; '.join(since)}" if since else ""
    return f"This changed after the card was shown{what}. Look at the new card, then decide."


def _ask_again(session: Session, context: PressContext, p: Proposal, current: Contents) -> Decided:
    """Open an expired proposal again with current values, instead of applying the press."""
    why, jobs = undo.again(session, context, p)
    if why:
        return refuse(Answer.ALREADY, p, why)
    p = context.move(
        session,
        p,
        State.PROPOSED,
        Act.ASK_AGAIN,
        **terms(current.verdict, context.now),
        preview=current.preview,
        trial=current.trial,
        for_real=None,
        round=p.round + 1,
        votes=(),
        decided_at=None,
    )
    text = "It had expired, so nothing ran. Here it is again with current values."
    work = (redraw(session, p), *jobs, *teammates.resume_work(session, p))
    return Decided(Reply(Answer.STALE, text, (p,)), work)


def _stop(session: Session, context: PressContext, p: Proposal) -> Decided:
    """Request that the run ends. The process that runs it reads the request and stores the outcome."""
    if p.cause is Cause.STOPPED:
        return refuse(Answer.ALREADY, p, "It is being stopped already.")
    error = f"{context.who} stopped it. What it did until then is unknown."
    p = context.move(session, p, cause=Cause.STOPPED, error=error)
    return accept(session, p, "Stopping it.")


def _retry(session: Session, context: PressContext, p: Proposal) -> Decided:
    if p.cause is Cause.TOOL_CHANGED:
        return refuse(Answer.STALE, p, "The tool has changed since. Please request it again.")
    if p.cause is Cause.REFUSED:
        return refuse(Answer.STALE, p, f"Trying again can't help. {p.error}")
    why, jobs = undo.again(session, context, p)
    if why:
        return refuse(Answer.ALREADY, p, why)
    if p.connection and p.connection.is_personal and not is_owner(p, context.person):
        return _ask_owner_again(session, context, p, jobs)
    unended = dict.fromkeys(("cause", "error", "result", "told", "ended_badly"))
    p = context.move(session, p, State.APPROVED, **unended, round=p.round + 1)
    again = teammates.resume_work(session, p)
    return accept(session, p, "Trying again.", Job(Work.EXECUTE, p.id), *jobs, *again)


def _ask_owner_again(session: Session, context: PressContext, p: Proposal, jobs: tuple[Job, ...]) -> Decided:
    """Ask again for what failed and runs as someone else than who retries it; their press is a vote."""
    unended = dict.fromkeys(("cause", "error", "result", "told", "ended_badly"))
    undecided = dict.fromkeys(("decided_by", "decided_from", "decided_at"))
    p = context.move(
        session,
        p,
        State.PROPOSED,
        **unended,
        **undecided,
        **clock(p.ttl, p.remind_every, context.now),
        round=p.round + 1,
        votes=(context.vote(Verb.APPROVE),),
    )
    again = teammates.resume_work(session, p)
    owner = ownership.name_owner(p)
    return accept(session, p, f"It runs as {owner}, so {owner} is asked again.", *jobs, *again)


def _withdraw(session: Session, context: PressContext, p: Proposal) -> Decided:
    changes = {"cause": Cause.TAKEN_BACK, "decline_reason": context.press.reason}
    p, jobs = context.end(session, p, State.CANCELLED, **changes)
    return Decided(Reply(Answer.ACCEPTED, "Withdrawn.", (p,)), jobs)


def _expire(session: Session, context: PressContext, p: Proposal) -> Decided:
    p, jobs = context.end(session, p, State.EXPIRED)
    return Decided(Reply(Answer.ACCEPTED, "Expired.", (p,)), jobs)


def _extend(session: Session, context: PressContext, p: Proposal) -> Decided:
    now = context.now
    p = context.move(session, p, **clock(p.ttl, p.remind_every, now))
    return accept(session, p, f"It now expires {format_relative(p.expires_at, now)}.")


def _take_for_person(session: Session, context: PressContext, p: Proposal) -> Decided:
    """Have features take a press that is for the person alone; nothing of the proposal changes."""
    for take_press in hooks_of(session).take_press:
        text = take_press(session, p, context.press, context.person, context.now)
        if text:
            return Decided(Reply(Answer.ACCEPTED, text, (p,)))
    return refuse(Answer.INVALID, p, "That can't be done here.")


def _reassign(session: Session, context: PressContext, p: Proposal) -> Decided:
    """Change who may decide. Four eyes stays: no admin can assign it away."""
    said = re.split(r"[,;\s]+", context.press.reason or "")
    words = [word for word in said if word and word != "and"]
    unknown = [word for word in words if word not in ("requester", *Role) and not _is_account(word)]
    if unknown:
        told = (
            f"{unknown[0][:40]!r} is neither an account nor a role. "
            "Write requester, admin, approver or http:NAME."
        )
        return refuse(Answer.INVALID, p, told)
    deciders = Deciders(
        four_eyes=p.deciders.four_eyes,
        place=p.deciders.place,
        requester="requester" in words,
        roles=tuple(word for word in words if word in set(Role)),
        people=tuple(word for word in words if ":" in word),
    )
    requester = people.person_of(session, p.requester)
    why = context.policies.load(session).too_few(deciders, requester, p.quorum)
    if why:
        return refuse(Answer.INVALID, p, f"Say who should decide: {why}.")
    p = context.move(session, p, deciders=deciders, votes=(), for_real=None)
    return accept(session, p, "Reassigned. Earlier votes were reset.")


def _is_account(word: str) -> bool:
    try:
        return str(Actor.parse(word)) == word
    except ValueError:
        return False


_STEPS: Mapping[Verb, Callable[[Session, PressContext, Proposal], Decided]] = {
    Verb.APPROVE: votes.approve,
    Verb.DECLINE: votes.decline,
    Verb.EDIT: votes.edit_proposal,
    Verb.NEVER: votes.never,
    Verb.SIMILAR: votes.approve_similar,
    Verb.APPROVE_STEPS: votes.approve_steps,
    Verb.REVISE: votes.revise,
    Verb.ASK: questions.ask_agent,
    Verb.STOP: _stop,
    Verb.RETRY: _retry,
    Verb.CANCEL: _withdraw,
    Verb.STOP_ALL: _withdraw,
    Verb.EXPIRE: _expire,
    Verb.EXTEND: _extend,
    Verb.REASSIGN: _reassign,
    Verb.MUTE: _take_for_person,
    Verb.FOR_REAL: votes.approve,
    Verb.UNDO: undo.undo_proposal,
    **dict.fromkeys((Verb.ANSWER, *CHOICES), asking.take_answer),
}
"""What a press on one proposal does."""
