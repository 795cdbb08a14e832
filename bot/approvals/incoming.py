"""Storage of incoming messages and requests: each event of a channel becomes one line of its conversation.

A platform may deliver an event twice, or to two processes. The event's id makes sure that it is stored once.
`store_message` stores a message of a person, with its files, and requests a turn of the agent. A request is a
call that no model made: a program or a feature asks for it. `open_request` stores it as a proposal, with a
notice (a line that people read) above the card, in one transaction.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlmodel import Session

from bot.approvals import grants
from bot.domain.attachments import format_size
from bot.domain.audit import Act
from bot.domain.chat import Message, Request
from bot.domain.conversations import Call, LineRole
from bot.domain.jobs import Job, Work
from bot.domain.people import AGENTS, Actor
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.similarity import Likeness
from bot.domain.text import replace_unstorable
from bot.domain.work_limits import Bounds
from bot.errors import CallRefused, LostRace, TooManyCalls
from bot.store import (
    agent_calls,
    conversations,
    messages,
    outputs,
    proposals,
    tokens,
    transitions,
    turns,
    unrecorded_changes,
    webhooks,
)
from bot.store.audit.log import Author
from bot.store.inserts import insert_new
from bot.store.rules import Policies
from bot.store.tables.conversations import MessageRow

TOKEN_ENDED_TEXT = "This token does not work any longer."  # noqa: S105 - a text
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
_DAY_IS_FULL_TEXT = "I have read as many files for you today as I may"


@dataclass(frozen=True, slots=True)
class StoredLine:
    """A stored message or notice."""

    conversation_id: str
    message_id: int
    person: str = ""  # the id of the Person who wrote it; empty for a notice
    wants_turn: bool = False  # a turn of the agent was requested for it


def store_message(
    session: Session, message: Message, now: datetime, bounds: Bounds, owner: str = ""
) -> StoredLine | None:
    """Store a person's message, and request a turn for it. Returns None if its event was stored before.

    The message begins a conversation if none is current at its address. ``owner``: the process for the turn,
    as in `turns.request_turn`. Raises TooManyCalls if the person sent more than ``bounds`` allow, and
    LostRace if the message continues a conversation that has ended in the meantime.
    """
    # the conversation
    arrival = conversations.load_arrival(session, message, now - _HOUR, now, bounds.messages)
    conversation_id = arrival.conversation_id
    begins_conversation = conversation_id is None
    if conversation_id is None:
        if messages.find_conversation_of_event(session, message.address.channel, message.event_id):
            return None  # stored by another process, or here before its conversation was ended
        if message.needs_open_conversation:
            raise LostRace("This conversation has ended. Write what you need to start a new one.")
        title = message.text or ", ".join(file.name for file in message.files)
        conversation_id = conversations.begin_conversation(session, message, title, now)

    # the message, once for each event
    text, name = replace_unstorable((message.text, message.actor.name))
    handles = [f"out-{secrets.token_hex(8)}" for _ in message.files]
    message_id = insert_new(
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
        if begins_conversation:
            conversations.delete_if_empty(session, conversation_id)  # another process received it as well
        return None

    # The limits are checked after the check for a second delivery, which does not count. If one is exceeded,
    # the exception rolls the transaction back, so the message is not stored. ``sent_count`` counts the
    # person's messages of the last hour before this one, up to the limit.
    if arrival.sent_count == bounds.messages:
        raise TooManyCalls(
            f"You sent {bounds.messages:,} messages within an hour. Please wait, then send it again."
        )
    if begins_conversation:
        _check_started_conversations(session, message.actor, now, bounds.conversations)
    if handles:
        _store_files(session, conversation_id, message, handles, now, bounds)
    wants_turn = turns.request_turn(session, conversation_id, now, owner)
    return StoredLine(conversation_id, message_id, arrival.person, wants_turn)


def _check_started_conversations(session: Session, actor: Actor, now: datetime, most: int) -> None:
    """Raise TooManyCalls if a person has started more than ``most`` conversations within a day."""
    if conversations.count_started_since(session, actor, now - _DAY, now, most + 1) > most:
        raise TooManyCalls(
            f"You started {most:,} conversations within a day. Please continue one of them, or wait."
        )


def _store_files(
    session: Session,
    conversation_id: str,
    message: Message,
    handles: Sequence[str],
    now: datetime,
    bounds: Bounds,
) -> None:
    """Store a message's files, each with the reason if it can't be read.

    A message may bring earlier files of its thread. These count for the person as well, after the files of
    the message itself. Earlier files beyond the limits of a day are left unread. Raises TooManyCalls if the
    message's own files exceed these limits. ``handles``: the names under which the files are stored.
    """
    count, size = outputs.count_attached_since(session, message.actor, now - _DAY)
    handles_and_files = list(zip(handles, message.files, strict=True))
    stored: list[outputs.NewAttachment] = []
    for handle, file in sorted(handles_and_files, key=lambda pair: pair[1].earlier):  # own files first
        fault = bounds.files.explain_too_large(file.bytes)
        count += 1
        if not fault:
            size += file.bytes
        exceeds_day = count > bounds.files.files_a_day or size > bounds.files.bytes_a_day
        if exceeds_day and not file.earlier:
            limits = f"{bounds.files.files_a_day} files and {format_size(bounds.files.bytes_a_day)}"
            raise TooManyCalls(f"I take at most {limits} from you within a day. Please send it again later.")
        if exceeds_day and not fault:
            fault = _DAY_IS_FULL_TEXT
        stored.append(outputs.NewAttachment(handle, file, fault))
    outputs.store_attached(session, conversation_id, message.actor, stored, now)


def add_request(session: Session, request: Request, call: Call, now: datetime) -> StoredLine | None:
    """Store the notice above a request's card. Returns None if its event was stored before.

    A request may name its conversation. Otherwise it joins the current one at its address.
    """
    conversation_id = request.conversation_id or conversations.find_current_id(session, request.address)
    if conversation_id is None:
        conversation_id = conversations.begin_conversation(session, request, call.summary, now)
    message_id = insert_new(
        session,
        MessageRow,
        {
            "conversation_id": conversation_id,
            "role": LineRole.NOTICE,
            "text": replace_unstorable(request.text),
            "after": messages.find_last_heard(session, conversation_id),
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
    return StoredLine(conversation_id, message_id)


@dataclass(frozen=True, slots=True)
class OpenedProposal:
    """A proposal that a request opened."""

    proposal: Proposal
    jobs: tuple[Job, ...] = ()
    was_open_before: bool = False  # True if an earlier request with the same event had opened it


def find_opened_before(
    session: Session, request: Request, call_digest: str, now: datetime
) -> OpenedProposal | None:
    """Return the proposal that an earlier request with the same event opened, or None.

    An agent's call without an event is recognised by its digest: see `agent_calls.find_repeated`.
    """
    if request.event_id is None:
        if request.agent is None:
            return None
        earlier_call = agent_calls.find_repeated(session, request.agent, call_digest, now)
        return OpenedProposal(earlier_call, was_open_before=True) if earlier_call else None
    message_id = messages.find_message_of_event(session, request.address.channel, request.event_id)
    if message_id is None:
        return None
    opened = proposals.list_of_message(session, message_id)
    if opened:
        return OpenedProposal(opened[0], was_open_before=True)
    return None


def open_request(
    session: Session,
    policies: Policies,
    request: Request,
    draft: Proposal,
    likeness: Likeness,
    process: str,
    now: datetime,
) -> OpenedProposal:
    """Store a drafted proposal and the notice above it, or return the proposal that is stored already.

    ``likeness``: the call's likeness to others, by which grants may approve it. ``process``: the id of this
    process. It owns the proposal if that is an MCP server's question. Raises LostRace if another process
    stores the same request now, CallRefused if the agent's token has ended since.
    """
    if request.agent is not None:
        agent_calls.lock_calls(session, request.agent)
        if tokens.find_agent(session, Actor(AGENTS, request.agent), now) is None:
            raise CallRefused(TOKEN_ENDED_TEXT)
    earlier = find_opened_before(session, request, draft.digest, now)
    if earlier:
        return earlier
    call = Call(draft.call_id, draft.tool_name, "{}", draft.description)
    line = add_request(session, request, call, now)
    if line is None:
        raise LostRace
    draft_in_conversation = replace(draft, conversation_id=line.conversation_id, message_id=line.message_id)
    proposal = grants.approve_by_grant(session, policies, draft_in_conversation, likeness, now)
    asked_by = f"asked for by {request.actor}"
    if request.agent:
        asked_by += f" through {request.agent}"
    author = Author.of_nod(Act.PROPOSE, asked_by)
    [proposal] = transitions.insert_proposals(session, [proposal], author)
    if proposal.kind.is_form:  # an MCP server's question
        unrecorded_changes.store_waiting_process(session, proposal.id, process)
    if request.agent is not None and proposal.kind.runs:
        agent_calls.add_call(session, proposal, request.depth, now)
    if request.callback_url is not None:
        webhooks.add_webhook(session, proposal.id, request.callback_url, now)
    jobs = [Job(Work.DELIVER, proposal.conversation_id)]
    if proposal.state is State.APPROVED:
        jobs.append(Job(Work.EXECUTE, proposal.id))
    return OpenedProposal(proposal, tuple(jobs))
