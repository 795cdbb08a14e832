"""Reads under a person's account: they run for what that person asked, and ask them first everywhere else.

What is read in a chat is read by all who are there. What others wrote, decided or changed may have led to
the read, also where they mean no harm; a schedule and a teammate read by themselves. In each of these the
owner is asked first, by a proposal of kind ``reading`` in their private chat, and the answer is found in the
rows of the conversation.

The answer to a call that writes is a read, too. Its card says who sees that, so the owner's press on the card
allows it; where no press or grant of theirs did, the answer goes to them alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from sqlmodel import Session

from bot.approvals import ownership
from bot.domain import kinds
from bot.domain.agents import describe_agent
from bot.domain.annotations import Annotation
from bot.domain.connections import CONSENT
from bot.domain.conversations import HEARD, Line, LineRole, Transcript
from bot.domain.kinds.readings import is_private_only
from bot.domain.proposals import Cause, Proposal, State, Vote
from bot.domain.verbs import Verb
from bot.errors import Refused
from bot.store import conversations, proposals
from bot.store.tables.rules import GrantRow
from bot.tools.tool import Tool

_SEEN_BY_AGENT = "What it answers goes to {agent}, and to no one else."
_ONLY_PRIVATE = "{owner} lets Nod read as them only in a private chat with Nod. Nothing was read. Say so."
_NOT_NOW = "{owner} does not want Nod to read as them now. Nothing was read. Do not ask again."
_SHARED = "Others read this conversation, so they learn what it finds."
_LED = "Words of others led to this read."
_BY_ITSELF = "A schedule of yours reads this by itself. Your answer counts for its next runs."
_BY_TEAMMATE = "A teammate reads this for you. Your answer counts for its task."
_SEEN = "Anyone who sees this card also sees what {server} answers."


def find_missing_consent(tool: Tool, transcript: Transcript, accounts: frozenset[str]) -> str:
    """Return why a read under a person's account asks them first, in words; empty where it may run now.

    ``accounts`` are that person's. Raises Refused where they said no.
    """
    connection = tool.connection
    if connection is None or not connection.is_personal:
        return ""
    answers = [p for p in _list_answers(transcript) if p.connection and p.connection.key == connection.key]
    owner = connection.owner_label
    private = transcript.conversation.private
    if not private and any(map(is_private_only, answers)):
        raise Refused(_ONLY_PRIVATE.format(owner=owner))
    since = 0 if transcript.teammate else transcript.order
    if any(p.state is State.DECLINED and p.message_id > since for p in answers):
        raise Refused(_NOT_NOW.format(owner=owner))
    allowed = [p for p in answers if _is_allowed(p)]
    mine = [p for p in allowed if p.tool_name == tool.name]
    if transcript.schedule is not None:
        known = any(p.schedule == transcript.schedule for p in mine)
        return "" if known else _BY_ITSELF
    if transcript.teammate is not None:
        return "" if mine else _BY_TEAMMATE
    led = max(_list_others(transcript, accounts), default=None)
    if led is not None and not any(p.created_at >= led for p in allowed):
        return _LED
    if not private and not allowed:
        return _SHARED
    return ""


def as_asked(tool: Tool, p: Proposal) -> Tool:
    """Return the tool of a proposal: of a reading, one of that kind, as long as it still only reads."""
    reads = p.kind is kinds.READING and tool.kind is kinds.CALL and not tool.classify(p.arguments).writes
    return replace(tool, kind=kinds.READING) if reads else tool


def warn_of_answer(session: Session, proposal: Proposal) -> Sequence[Annotation]:  # noqa: ARG001 - a hook
    """Return the line on the card of a write in a person's name that says who sees what it answers."""
    connection = proposal.connection
    if connection is None or not connection.is_personal or proposal.kind is kinds.READING:
        return ()
    if proposal.agent:
        return (
            Annotation("", _SEEN_BY_AGENT.format(agent=describe_agent(proposal.agent, proposal.requester))),
        )
    return (Annotation("", _SEEN.format(server=connection.server)),)


def hides_answer(session: Session, p: Proposal) -> bool:
    """Tell if what a call answers is for its owner alone: they did not allow that others see it.

    They allow it by their own press on a card that says so, by a grant that they gave with such a press for
    this place, or by their answer to a read in this conversation. *Only in private* there outranks all three.
    """
    if p.connection is None or not p.connection.is_personal or p.kind is kinds.READING:
        return False
    here = conversations.place_of(session, p.conversation_id)
    asked = proposals.list_of_kind(session, p.conversation_id, kinds.READING)
    answers = [each for each in asked if each.connection and each.connection.key == p.connection.key]
    if not here.private and any(map(is_private_only, answers)):
        return True
    if _was_warned(session, p) or any(map(_is_allowed, answers)):
        return False
    grant = session.get(GrantRow, p.grant_id) if p.grant_id is not None else None
    given = proposals.get(session, grant.proposal_id) if grant is not None else None
    if given is None or not _was_warned(session, given):
        return True
    there = conversations.place_of(session, given.conversation_id)
    return not here.private and there.address != here.address


def _was_warned(session: Session, p: Proposal) -> bool:
    """Tell if its owner said yes to a card that says who sees the answer."""
    if p.connection is None or ownership.lacks_owner(session, p):
        return False
    warning = _SEEN.format(server=p.connection.server)
    return any(line.text == warning for line in p.frozen_annotations)


def _list_answers(transcript: Transcript) -> list[Proposal]:
    return [p for p in transcript.proposals.values() if p.kind is kinds.READING]


def _is_allowed(p: Proposal) -> bool:
    if p.state not in (State.APPROVED, State.EXECUTING, State.SUCCEEDED, State.FAILED):
        return False
    return any(vote.verb in (Verb.APPROVE, CONSENT) for vote in p.votes)


def _list_others(transcript: Transcript, accounts: frozenset[str]) -> Iterator[datetime]:
    """Yield the moments at which words that are not the owner's came into what this turn continues."""
    own = next((line for line in reversed(transcript.lines) if _is_line_of(line, accounts)), None)
    heard = [line for line in transcript.lines if line.role in HEARD and (own is None or line.id > own.id)]
    yield from (line.created_at for line in heard if str(line.actor) not in accounts)
    since = own.created_at if own is not None else transcript.conversation.created_at
    for p in transcript.proposals.values():
        yield from (vote.at for vote in p.votes if vote.at >= since and _has_words(vote, accounts))
        if p.updated_at >= since and p.edits and not _is_agreed(p, accounts):
            yield p.updated_at
        if p.cause is Cause.TAKEN_BACK and p.decline_reason and p.updated_at >= since:
            yield p.updated_at


def _is_line_of(line: Line, accounts: frozenset[str]) -> bool:
    return line.role is LineRole.USER and str(line.actor) in accounts


def _has_words(vote: Vote, accounts: frozenset[str]) -> bool:
    """Tell if someone else's vote tells the model something in their words."""
    return str(vote.actor) not in accounts and bool(vote.reason)


def _is_agreed(p: Proposal, accounts: frozenset[str]) -> bool:
    """Tell if the owner said yes to what an edit made of it."""
    return any(str(v.actor) in accounts and v.verb in (Verb.APPROVE, CONSENT) for v in p.votes)
