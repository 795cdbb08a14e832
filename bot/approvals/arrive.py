"""Storage of incoming messages and requests: each event of a channel becomes one line of its conversation.

A request opens a proposal that no model call led to, together with the notice above it, in one transaction.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlmodel import Session

from bot.approvals import grants
from bot.domain.attachments import Upload, format_size
from bot.domain.bounds import Bounds
from bot.domain.chat import Message, Request
from bot.domain.conversations import Call, LineRole
from bot.domain.jobs import Job, Work
from bot.domain.people import AGENTS, Actor
from bot.domain.proposals import Proposal, State
from bot.domain.record import Act
from bot.domain.similarity import Likeness
from bot.domain.text import storable
from bot.errors import LostRace, Refused, TooMuch
from bot.store import (
    agent_calls,
    conversations,
    messages,
    outputs,
    proposals,
    tokens,
    transitions,
    turns,
    webhooks,
)
from bot.store.audit.log import By
from bot.store.engine import id_of_new
from bot.store.rules import Policies
from bot.store.tables.conversations import MessageRow

TOKEN_ENDED_TEXT = "This token does not work any longer."  # noqa: S105 - words
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
_ENOUGH = "I have read as many files for you today as I may"


@dataclass(frozen=True, slots=True)
class Accepted:
    """The stored message: its conversation, its id, its author's id, and if it wants a turn."""

    conversation_id: str
    message_id: int
    person: str = ""
    wants_turn: bool = False


def accept(
    session: Session, message: Message, now: datetime, bounds: Bounds, owner: str = ""
) -> Accepted | None:
    """Append a person's message and want a turn; None when its event was taken in before.

    ``owner``: as in `turns.want_turn`.
    Raises TooMuch where its person sent more than ``bounds`` lets them, LostRace where it continues nothing.
    """
    found = conversations.arrival(session, message, now - _HOUR, now, bounds.messages)
    conversation_id = found.conversation_id
    begins = conversation_id is None
    if conversation_id is None:
        if messages.of_event(session, message.address.channel, message.event_id):
            return None  # received elsewhere, or before the conversation here was ended: it starts nothing
        if message.continues:
            raise LostRace("This conversation has ended. Write what you need to start a new one.")
        title = message.text or ", ".join(each.name for each in message.files)
        conversation_id = conversations.begin_conversation(session, message, title, now)
    text, name = storable((message.text, message.actor.name))
    handles = [f"out-{secrets.token_hex(8)}" for _ in message.files]
    message_id = id_of_new(
        session,
        MessageRow,
        {
            "conversation_id": conversation_id,
            "role": LineRole.USER,
            "text": text,
            "actor": str(message.actor),
            "name": name,
            "channel": message.address.channel,
            "event_id": message.event_id,
            "files": handles or None,
            "delivered": True,
            "created_at": now,
        },
    )
    if message_id is None:
        if begins:
            conversations.drop_empty(session, conversation_id)  # another process received it as well
        return None
    # only now, so that a second delivery is never too much
    if found.said == bounds.messages:
        raise TooMuch(
            f"You sent {bounds.messages:,} messages within an hour. Please wait, then send it again."
        )
    most = bounds.conversations
    if begins and conversations.count_begun_since(session, message.actor, now - _DAY, now, most + 1) > most:
        raise TooMuch(
            f"You started {most:,} conversations within a day. Please continue one of them, or wait."
        )
    if handles:
        _take_files(session, conversation_id, message, handles, now, bounds)
    new = turns.want_turn(session, conversation_id, now, owner)
    return Accepted(conversation_id, message_id, found.person, new)


def _take_files(
    session: Session,
    conversation_id: str,
    message: Message,
    handles: Sequence[str],
    now: datetime,
    bounds: Bounds,
) -> None:
    """Store a message's files. Earlier ones of others have what its person's own leave of their day.

    Raises TooMuch where this person has sent more files than they may within a day.
    """
    count, size = outputs.count_taken_since(session, message.actor, now - _DAY)
    taken: list[tuple[str, Upload, str]] = []
    for handle, file in sorted(zip(handles, message.files, strict=True), key=lambda each: each[1].earlier):
        fault = bounds.files.too_large(file.bytes)
        count += 1
        size += 0 if fault else file.bytes
        too_much = count > bounds.files.files_a_day or size > bounds.files.a_day
        if too_much and not file.earlier:
            most = f"{bounds.files.files_a_day} files and {format_size(bounds.files.a_day)}"
            raise TooMuch(f"I take at most {most} from you within a day. Please send it again later.")
        taken.append((handle, file, _ENOUGH if too_much and not fault else fault))
    outputs.take_in(session, conversation_id, message.actor, taken, now)


def add_request(session: Session, request: Request, call: Call, now: datetime) -> Accepted | None:
    """Append the notice that a request's card stands under; None when its event was taken in before."""
    conversation_id = request.into or conversations.open_at(session, request.address)
    if conversation_id is None:
        conversation_id = conversations.begin_conversation(session, request, call.summary, now)
    message_id = id_of_new(
        session,
        MessageRow,
        {
            "conversation_id": conversation_id,
            "role": LineRole.NOTICE,
            "text": storable(request.text),
            "after": messages.last_heard(session, conversation_id),
            "name": "",
            "channel": request.address.channel if request.event_id else None,
            "event_id": request.event_id,
            "calls": [[call.id, call.tool_name, call.arguments, call.summary]],
            "delivered": False,
            "created_at": now,
        },
    )
    if message_id is None:
        return None
    return Accepted(conversation_id, message_id)


@dataclass(frozen=True, slots=True)
class Opened:
    """An opened proposal and its jobs; ``again`` where the same event had opened it before."""

    proposal: Proposal
    jobs: tuple[Job, ...] = ()
    again: bool = False


def find_opened_before(session: Session, request: Request, call_digest: str, now: datetime) -> Opened | None:
    """Return the proposal that an earlier request with the same event opened, or None.

    An agent's call without an event is the same as an earlier one of the same digest, as
    `agent_calls.find_again` says.
    """
    if request.event_id is None and request.agent is not None:
        again = agent_calls.find_again(session, request.agent, call_digest, now)
        return Opened(again, again=True) if again else None
    if request.event_id is None:
        return None
    message_id = messages.message_of_event(session, request.address.channel, request.event_id)
    if message_id is not None:
        found = proposals.of_message(session, message_id)
    else:
        found = []
    if found:
        return Opened(found[0], again=True)
    return None


def open_request(
    session: Session,
    policies: Policies,
    request: Request,
    draft: Proposal,
    like: Likeness,
    process: str,
    now: datetime,
) -> Opened:
    """Store a drafted proposal and what people read above it.

    ``process``: the id of the one that waits for the answer, if it is a question. Raises LostRace for two at
    the same time, and Refused where the token of an agent ended since it asked.
    """
    if request.agent is not None:
        agent_calls.lock_calls(session, request.agent)
        if tokens.find_agent(session, Actor(AGENTS, request.agent), now) is None:
            raise Refused(TOKEN_ENDED_TEXT)
    before = find_opened_before(session, request, draft.digest, now)
    if before:
        return before
    call = Call(draft.call_id, draft.tool_name, "{}", draft.description)
    line = add_request(session, request, call, now)
    if line is None:
        raise LostRace
    placed = replace(draft, conversation_id=line.conversation_id, message_id=line.message_id)
    proposal = grants.approve_by_grant(session, policies, placed, like, now)
    through = f" through {request.agent}" if request.agent else ""
    by = By.nod(Act.PROPOSE, f"asked for by {request.actor}{through}")
    (proposal,) = transitions.insert_all(session, [proposal], by)
    if proposal.kind.is_form:
        transitions.own_question(session, proposal.id, process)
    if request.agent is not None and proposal.kind.runs:
        agent_calls.add_call(session, proposal, request.depth, now)
    if request.callback_url is not None:
        webhooks.add_webhook(session, proposal.id, request.callback_url, now)
    jobs = [Job(Work.DELIVER, proposal.conversation_id)]
    if proposal.state is State.APPROVED:
        jobs.append(Job(Work.EXECUTE, proposal.id))
    return Opened(proposal, tuple(jobs))
