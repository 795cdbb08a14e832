"""The life of a schedule: it begins with an approved call, has runs, is paused or resumed, and ends.

A schedule runs at its times, or once after the end of the proposal that it follows. A run is a turn of the
agent in the schedule's conversation. It begins with a note in the name of the schedule's person, which tells
the agent what to do; a notice tells people about the run. The note is stored in the transaction that counts
the run, so a run can neither be lost nor come twice. The agent's proposals in a run ask people as always, or
run under a grant that people gave for the schedule. Each public function is a part of one transaction.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from sqlmodel import Session

from bot.approvals import grants, rights
from bot.domain.audit import Act
from bot.domain.call_facts import CallFacts, Place
from bot.domain.chat import Address, chat_of
from bot.domain.conversations import Conversation
from bot.domain.jobs import Job, Work
from bot.domain.people import Actor, Membership, Role
from bot.domain.proposal_states import SETTLED
from bot.domain.risks import Level, Risk
from bot.domain.text import SHORT_ID_CHARS, one_line
from bot.errors import LostRace, NodError, PermanentRefusal
from bot.features.schedules import rows
from bot.features.schedules.schedule import MAX_COUNTED_MISSES, Schedule
from bot.store import conversations, messages, notices, people, proposals, turns
from bot.store.audit.log import Author
from bot.store.rules import Policies

SCHEDULE_TOOL_NAME = "schedule_task"
_CHAT_LIMIT_FACTOR = 5  # in one chat there are at most so many times as many schedules as of one person
_TOO_MANY_TEXT = "{} has {} schedules, which is the most. Delete one first: /nod schedules lists them."

# the text for the agent
_DUE_NOTE = (
    "[Nod] Schedule {label} is due, for {who}: {when}.{late} People approved this task. Do it now, as if it "
    "were just asked, and answer with what came of it: {task}"
)
# the text for people
_DUE_NOTICE = "Scheduled for {who}: {task}.{late}"
_LATE = timedelta(minutes=15)  # a run that begins later than this says so


class ForbiddenForNow(NodError):
    """A rule forbids schedules there at this time. The run comes later."""


class ScheduleAction(StrEnum):
    """A change that people make to a schedule."""

    PAUSE = "pause"
    RESUME = "resume"
    RUN = "run"  # run as soon as possible, in addition to the schedule's times
    DELETE = "delete"

    @property
    def done_text(self) -> str:
        """A sentence for people, with a place for the schedule's label."""
        return _DONE_TEXTS[self]


_DONE_TEXTS = {
    ScheduleAction.PAUSE: "Schedule {0} is paused. `/nod schedules resume {0}` lets it run again.",
    ScheduleAction.RESUME: "Schedule {0} continues with its next run.",
    ScheduleAction.RUN: "Schedule {0} runs now.",
    ScheduleAction.DELETE: "Schedule {0} is deleted.",
}


@dataclass(frozen=True, slots=True)
class ScheduleChange:
    """The result of an action."""

    schedule: Schedule  # as it is now
    changed: bool
    text: str  # the reply for people


def store_schedule(
    session: Session, policies: Policies, schedule: Schedule, limit: int, now: datetime
) -> None:
    """Store an approved schedule. Raises PermanentRefusal if it can't run.

    ``limit``: the most schedules of one person.
    """
    if rows.get(session, schedule.id):
        return  # an earlier run of the same approved call has stored the schedule
    conversation = conversations.get_conversation(session, schedule.conversation_id)
    if conversation is None or conversation.deleted:
        raise PermanentRefusal("Its conversation was deleted.")
    if schedule.follows:
        followed_id = find_followed(session, policies, schedule.follows, conversation.id, schedule.person)
        schedule = replace(schedule, follows=followed_id)
    elif schedule.due_at is None:
        raise PermanentRefusal("It has ended. Ask for another one.")
    person = people.load_person(session, schedule.person)
    counts = rows.count_schedules(session, person.accounts, str(chat_of(conversation.origin)))
    if counts.of_person >= limit:
        raise PermanentRefusal(_TOO_MANY_TEXT.format(schedule.person.label, counts.of_person))
    if counts.of_chat >= _CHAT_LIMIT_FACTOR * limit:
        raise PermanentRefusal(_TOO_MANY_TEXT.format("This chat", counts.of_chat))
    rows.add_schedule(session, schedule, people.make_author(session, Act.SET, schedule.person), now)


def find_followed(
    session: Session, policies: Policies, id_prefix: str, conversation_id: str, person: Actor
) -> str:
    """Return the id of the proposal that a schedule waits for, which begins with ``id_prefix``.

    The proposal is in the conversation, or the person may see it elsewhere. Raises PermanentRefusal if there
    is no such proposal, or if several ids begin that way.
    """
    found = proposals.find_by_prefix(session, id_prefix)
    if len(found) == 1:
        proposal = found[0]
        if proposal.conversation_id == conversation_id:
            return proposal.id
        if rights.may_see_proposal(session, policies, proposal, person):
            return proposal.id
    raise PermanentRefusal(
        f"There is no proposal {id_prefix[:SHORT_ID_CHARS]} that the person who asks may see."
    )


def run_schedule(
    session: Session, policies: Policies, due: Schedule, standing: Membership | None, now: datetime
) -> tuple[Job, ...]:
    """Begin a run of a due schedule, or end the schedule if its person may no longer have it there.

    ``standing``: the person's membership, as the platform reports it; None if they have left. Returns the
    jobs that follow; none if all of Nod is paused, or if another process was faster.

    Raises LostRace if a turn is under way in the conversation, and ForbiddenForNow if a rule forbids
    schedules at this time. In both cases nothing is stored, and the sweep tries this run again.
    """
    conversation = conversations.get_conversation(session, due.conversation_id)
    if conversation is None or policies.load(session).rulebook.paused:
        return ()
    hindrance = _find_hindrance(session, policies, due, conversation, standing, now)
    if hindrance:
        author = Author.of_nod(Act.END_BY_ITSELF, hindrance)
        if not _end_with_grants(session, due, author, now, hindrance):
            return ()
        return _tell_people(session, policies, due, f"has ended. {hindrance}", now)
    is_early = _is_waiting_for_proposal(session, due)  # a person wants it now, before the proposal's end
    next_due_at = due.times.find_next(now) if due.times else None
    if not rows.claim_run(session, due, next_due_at, now, counts=not is_early):
        return ()
    current_id = conversations.find_current_id(session, conversation.address) or conversation.id
    words = {
        "label": due.label,
        "who": one_line(due.person.label),
        "task": due.task,
        "late": _describe_lateness(due, now),
    }
    after = messages.find_last_heard(session, current_id)
    messages.add_notice(session, current_id, _DUE_NOTICE.format(**words), after, now, delivered=False)
    note = _DUE_NOTE.format(when=_describe_occasion(session, due), **words)
    event_id = _make_event_id(due, is_early=is_early)
    messages.add_note(session, current_id, note, now, actor=due.person, event_id=event_id)
    if not turns.request_turn(session, current_id, now):
        raise LostRace
    return (Job(Work.TURN, current_id),)


def apply_action(
    session: Session, policies: Policies, ident: str, action: ScheduleAction, actor: Actor, now: datetime
) -> ScheduleChange | None:
    """Apply a person's action to the schedule whose id begins with ``ident``.

    Return None without such a schedule, or if the person may not change it.
    """
    schedule = rows.get(session, ident)
    if schedule is None or not may_change(session, policies, schedule, actor):
        return None
    match action:
        case ScheduleAction.RUN:
            changed = run_now(session, schedule, actor, now)
        case ScheduleAction.DELETE:
            changed = end_schedule(session, schedule, actor, now)
        case ScheduleAction.PAUSE | ScheduleAction.RESUME:
            changed = set_paused(session, schedule, actor, now, paused=action is ScheduleAction.PAUSE)
    if changed:
        text = action.done_text.format(schedule.label)
        return ScheduleChange(rows.get(session, schedule.id) or schedule, changed, text)
    state = str(schedule.state)
    if schedule.paused_at and not schedule.ended_at:  # a schedule without further times can be paused, too
        state = "paused"
    return ScheduleChange(schedule, changed, f"Schedule {schedule.label} is {state} already.")


def no_schedule_text(ident: str) -> str:
    """Return the refusal for a person who may not change a schedule with this id."""
    return f"You have no schedule {ident[:16]}."


def set_paused(session: Session, schedule: Schedule, by: Actor, now: datetime, *, paused: bool) -> bool:
    """Pause a schedule, or resume it from its next time on. Return False if nothing changes.

    A schedule without a further time keeps its due time: if that has passed during the pause, it runs late.
    """
    if (schedule.paused_at is not None) == paused:
        return False
    if paused or not schedule.times:
        due_at = schedule.due_at
    else:
        due_at = schedule.times.find_next(now) or schedule.due_at
    paused_at = now if paused else None
    author = people.make_author(session, Act.PAUSE if paused else Act.RESUME, by)
    return rows.change_schedule(session, schedule.id, author, now, paused_at=paused_at, due_at=due_at)


def run_now(session: Session, schedule: Schedule, by: Actor, now: datetime) -> bool:
    """Make a schedule due now. Return False if it is paused or has ended."""
    if schedule.paused_at is not None:
        return False
    author = people.make_author(session, Act.RUN, by)
    return rows.change_schedule(session, schedule.id, author, now, due_at=now)


def pause_for_unknown_membership(
    session: Session, policies: Policies, due: Schedule, why: str, now: datetime
) -> tuple[Job, ...]:
    """Pause a schedule whose platform can't tell if its person is still there, and tell people why."""
    if not rows.change_schedule(session, due.id, Author.of_nod(Act.PAUSE, why), now, paused_at=now):
        return ()
    news = f"is paused. {why} /nod schedules resume {due.label} lets it run again"
    return _tell_people(session, policies, due, news, now)


def end_schedule(session: Session, schedule: Schedule, by: Actor, now: datetime) -> bool:
    """End a schedule and the grants for its runs. Return False if it has ended already."""
    return _end_with_grants(session, schedule, people.make_author(session, Act.DROP, by), now)


def end_in_conversations(session: Session, conversation_ids: Sequence[str], now: datetime) -> None:
    """End the schedules of conversations that are deleted. Implements `ForgetConversations`."""
    author = Author.of_nod(Act.END_WITH_CONVERSATION)
    for conversation_id in conversation_ids:
        for schedule in rows.list_in_conversation(session, conversation_id):
            _end_with_grants(session, schedule, author, now, "Its conversation was deleted")


def list_visible(session: Session, policies: Policies, actor: Actor) -> list[Schedule]:
    """Return this person's schedules, and for an admin of all of Nod everyone's."""
    return rows.list_of_people(session, rights.find_visible_accounts(session, policies, actor))


def may_change(session: Session, policies: Policies, schedule: Schedule, actor: Actor) -> bool:
    """Return whether a person may change a schedule: it is theirs, or they are an admin there."""
    person = people.load_person(session, actor)
    if str(schedule.person) in person.accounts:
        return True
    place = conversations.load_place(session, schedule.conversation_id).address
    return Role.ADMIN in policies.load(session).roles_of(person, place)


def _find_hindrance(
    session: Session,
    policies: Policies,
    due: Schedule,
    conversation: Conversation,
    standing: Membership | None,
    now: datetime,
) -> str:
    """Return why a schedule may no longer run in its person's name there; empty if it may.

    ``standing``: the person's membership in the chat; None if they have left. Raises ForbiddenForNow, with
    the rule in words, if it may run there at another time.
    """
    if conversation.deleted:
        return "Its conversation was deleted"
    if standing is None:
        return f"{due.person.label} is no longer there"
    policy = policies.load(session)
    person = people.load_person(session, replace(due.person, standing=standing))
    place = Place(str(conversation.origin), conversation.private)
    call = CallFacts(SCHEDULE_TOOL_NAME, Risk(Level.WRITE, ""), place, person, now)
    talk_objection = policy.find_message_objection(person, place.address)
    lasting_objection = policy.find_lasting_objection(call)  # rules that hold only for a time don't count
    if talk_objection or lasting_objection:
        return f"{due.person.label} may no longer do that there"
    # ``always``: only a rule that forbids the call with any arguments counts
    objection_for_now = policy.find_call_objection(call, always=True)
    if objection_for_now:
        raise ForbiddenForNow(objection_for_now)
    return ""


def _end_with_grants(
    session: Session, schedule: Schedule, author: Author, now: datetime, why: str = ""
) -> bool:
    """End a schedule and the grants for its runs. Return False if it has ended already.

    ``why``: the reason, if no person ends it.
    """
    grants.end_with_schedule(session, schedule.id, author, now)
    ended = {"ended_at": now, "ended_by": author.actor, "why": why}
    return rows.change_schedule(session, schedule.id, author, now, **ended)


def _tell_people(
    session: Session, policies: Policies, due: Schedule, news: str, now: datetime
) -> tuple[Job, ...]:
    """Tell the schedule's conversation, with the task, and the admins of the chat, without the task.

    ``news``: what became of the schedule, without a full stop: ``has ended. Ana is no longer there`` gives
    the text "A schedule for Ana has ended. Ana is no longer there: water the plants".
    """
    text = f"A schedule for {due.person.label} {news}"
    conversation_id = due.conversation_id
    place = conversations.load_place(session, conversation_id).address
    for admin in sorted(policies.load(session).list_holders(Role.ADMIN, place)):
        notices.store_notice(session, Address.parse(admin), f"{text}: {due.label}.", now)
    after = messages.find_last_heard(session, conversation_id)
    messages.add_notice(session, conversation_id, f"{text}: {due.task}", after, now, delivered=False)
    return (Job(Work.DELIVER, conversation_id),)


def _make_event_id(due: Schedule, *, is_early: bool) -> str:
    """Return the id of a run's note, which only one line of a conversation can have.

    An early run gets a random id: the numbered one is kept for the run after the proposal's end.
    """
    return f"{due.id}.{secrets.token_hex(6) if is_early else due.runs + 1}"


def _is_waiting_for_proposal(session: Session, due: Schedule) -> bool:
    """Return whether the proposal that a schedule follows has not ended yet."""
    if not due.follows or due.runs:
        return False
    followed = proposals.get(session, due.follows)
    return followed is not None and followed.state not in SETTLED


def _describe_occasion(session: Session, due: Schedule) -> str:
    """Return why a schedule runs now: its times in words, or the state of the proposal that it follows."""
    followed = proposals.get(session, due.follows) if due.follows else None
    if followed is None:
        return due.times_text
    if followed.state not in SETTLED:
        return f"a person wants it now, while the proposal “{one_line(followed.description)}” is still open"
    return f"the proposal “{one_line(followed.description)}” has ended as {followed.state}"


def _describe_lateness(due: Schedule, now: datetime) -> str:
    """Return sentences about a late run and further missed runs, for people and the model; empty in time."""
    if not due.times or not due.due_at or now - due.due_at < _LATE:
        return ""
    text = f" It was due {due.times.format_moment(due.due_at)}."
    missed = due.times.count_missed(due.due_at, now)
    if missed == 1:
        text += " This run stands for 1 more that was missed since."
    elif missed:
        count = f"more than {MAX_COUNTED_MISSES}" if missed == MAX_COUNTED_MISSES else str(missed)
        text += f" This run stands for {count} more that were missed since."
    return text
