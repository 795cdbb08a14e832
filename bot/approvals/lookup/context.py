"""The turn that led to a proposal, for people who may decide it, also in a private conversation of others.

A turn is the agent's work on a conversation, from a person's order (their message) to its last answer. The
readers see the order, the results that the agent read for it, and the agent's words, up to the call itself.
They see no line before or after that. These lines never change, so each reader is recorded once.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from textwrap import indent
from typing import NamedTuple

from sqlmodel import Session

from bot.approvals import rights
from bot.approvals.groups import Groups
from bot.domain.chat import Address
from bot.domain.conversations import HEARD, Line, LineRole
from bot.domain.people import Actor, Person
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text, secrets_in
from bot.domain.text import shorten
from bot.store import messages, people, proposals, teams
from bot.store.audit import admin_changes
from bot.store.rules import Policies
from bot.tools.registry import AvailableTools, Registry

_MAX_LINES = 60
_MAX_SEARCHED_LINES = 200
_MAX_LINE_CHARS = 4_000
_MAX_RESULT_CHARS = 1_000
_MAX_CHARS = 150_000  # the limit of all lines together
_MAX_CHAT_CHARS = 8_000  # the most characters for a chat; a longer text keeps its beginning and its end
_CHAT_BEGINNING_CHARS = 3_000
NOT_YOURS = "Only people who may decide it may read what led to it."
_SPEAKERS = {LineRole.ASSISTANT: "The agent", LineRole.NOTE: "Nod to the agent"}


class _Turn(NamedTuple):
    """A turn that led to a proposal, for one reader."""

    proposal: Proposal
    lines: Sequence[Line]  # in reading order
    secrets: tuple[str, ...]  # the secrets to hide in the lines
    reader: Person | None  # the person to record as a reader; None for the proposal's requester


async def context(
    groups: Groups, registry: Registry, proposal_id: str, actor: Actor, address: Address | None = None
) -> list[Line] | None:
    """Return the lines that led to a proposal in reading order, without secrets, and record the reader.

    None for a person who may not read them; empty where they are no longer stored.
    """
    available = await registry.available()
    turn = await groups.read(_read_turn, groups.policies, available, proposal_id, actor, address)
    if turn is None:
        return None
    if turn.reader is not None and turn.lines:
        await groups.database.write(
            admin_changes.record_reading, turn.proposal, actor, turn.reader, groups.clock()
        )
    return await asyncio.to_thread(_select_lines, turn)


def _read_turn(
    session: Session,
    policies: Policies,
    available: AvailableTools,
    proposal_id: str,
    actor: Actor,
    at: Address | None,
) -> _Turn | None:
    """Return the turn; None if the proposal does not exist, or this person may not decide it."""
    p = proposals.get(session, proposal_id)
    if p is None:
        return None
    policy, person = policies.load_for(session, actor)
    is_own = person == people.person_of(session, p.requester)
    if not is_own:
        objection, _ = rights.judge_press(session, policy, p, person, actor, at=at)
        if objection is not None:
            return None
    lines = _list_lines(session, p)
    secrets = set(secrets_in(p.arguments, available.schema_of(session, p)))
    for line in lines:
        for call in line.calls:
            secrets.update(available.secrets_of(call))
    longest_first = sorted(secrets, key=len, reverse=True)  # one may contain another
    return _Turn(p, lines, tuple(longest_first), None if is_own else person)


def _list_lines(session: Session, p: Proposal) -> list[Line]:
    """Return the lines of the turn in reading order, beginning with the person's order.

    An order from before the turn is included. Empty where the turn is deleted or no model's call led to it.
    """
    newest_first = messages.list_until(session, p.conversation_id, p.message_id, _MAX_SEARCHED_LINES)
    if not newest_first or newest_first[0].id != p.message_id:
        return []  # deleted
    last = newest_first[0]
    if last.role is not LineRole.ASSISTANT:
        return []  # no model's call

    # an answer belongs to the turn if it has the turn's id, or answers the same line (``after``) as another
    # answer of the turn
    answered_ids, turn_ids = {last.after}, {_turn_id_of(last)}
    of_turn = []
    for line in newest_first:
        if line.role is LineRole.ASSISTANT:
            if line.after not in answered_ids and _turn_id_of(line) not in turn_ids:
                break
            answered_ids.add(line.after)
            turn_ids.add(_turn_id_of(line))
        elif line.role not in HEARD or line.id > last.after:
            continue  # the line is not for the agent, or the agent has not read it yet
        of_turn.append(line)
    ordered = sorted(of_turn[:_MAX_LINES], key=lambda line: (line.after, line.role not in HEARD, line.id))
    if any(line.role is LineRole.USER for line in ordered):
        return ordered
    order = _find_order(session, p, newest_first)
    if order:
        return [order, *ordered]
    return ordered


def _find_order(session: Session, p: Proposal, newest_first: Sequence[Line]) -> Line | None:
    """Return the last message of a person; for a teammate's proposal, the message that led to its task."""
    for line in newest_first:
        if line.role is LineRole.USER:
            return line
    teammate = teams.get(session, p.conversation_id)
    if teammate is None:
        return None
    return messages.get_line(session, teammate.asked)


def _turn_id_of(answer: Line) -> str:
    """Return the id of an answer's turn, with which the event id begins; for old rows a unique id."""
    return (answer.event_id or f"line {answer.id}").partition(".")[0]


def _select_lines(turn: _Turn) -> list[Line]:
    """Return the lines with the results of reads, without secrets and arguments.

    If they are too long, the oldest lines are left out, except the first: the person's order.
    """
    selected: list[Line] = []
    chars_left = _MAX_CHARS
    for line in reversed(turn.lines):
        calls = [
            replace(call, arguments="", summary=redact_text(call.summary, turn.secrets))
            for call in line.calls
        ]
        results = {}
        for call_id, result in line.results.items():
            short = shorten(redact_text(result.text, turn.secrets), _MAX_RESULT_CHARS)
            results[call_id] = replace(result, text=short)
            chars_left -= len(short)
        text = shorten(redact_text(line.text, turn.secrets), _MAX_LINE_CHARS)
        chars_left -= len(text)
        if chars_left >= 0 or line is turn.lines[0]:
            selected.append(replace(line, text=text, calls=calls, results=results))
    selected.reverse()
    return selected


def format_lines(lines: Sequence[Line]) -> str:
    """Render the lines as plain text for a chat: messages with authors, and results of reads."""
    paragraphs = []
    for line in lines:
        person = line.actor.label if line.actor else "A person"
        speaker = _SPEAKERS.get(line.role, person)
        if line.text.strip():
            paragraphs.append(f"{speaker}: {line.text.strip()}")
        for call in line.calls:
            result = line.results.get(call.id)
            if result:
                what = call.summary or call.tool_name
                paragraphs.append(f"Read: {what}\n{indent(result.text.strip(), '    ')}")
    text = "\n\n".join(paragraphs) or "What led to it is no longer kept."
    if len(text) <= _MAX_CHAT_CHARS:
        return text
    end_chars = _MAX_CHAT_CHARS - _CHAT_BEGINNING_CHARS
    return f"{text[:_CHAT_BEGINNING_CHARS]}\n…\n{text[-end_chars:]}"
