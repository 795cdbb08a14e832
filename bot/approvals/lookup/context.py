"""The turn that led to a proposal, for people who may decide it, also in a private conversation of others.

A line is one entry of a conversation: a message of a person, an answer of the agent, or a note by which Nod
tells the agent something. A turn is a piece of the agent's work: a person's *order* (the message that began
it) and the answers up to the last one. The readers see the lines of the turn from the order to the answer
that made the proposed call, and the results that the agent read in between. They see no line before or after
these. The lines never change, so each reader is recorded only once.
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
from bot.domain.conversations import ANSWERABLE_ROLES, Line, LineRole
from bot.domain.people import Actor, Person
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text, secrets_in
from bot.domain.text import shorten
from bot.store import messages, people, proposals, teams
from bot.store.audit import admin_changes
from bot.store.rules import Policies
from bot.tools.registry import AvailableTools, Registry

_MAX_LINES = 60  # of the turn; an order from before the turn is one more
_MAX_SEARCHED_LINES = 200  # among which the turn is looked for
_MAX_LINE_CHARS = 4_000  # a longer line is cut
_MAX_RESULT_CHARS = 1_000  # the same for one result
_MAX_CHARS = 150_000  # of all lines together
_MAX_CHAT_CHARS = 8_000  # a longer text for a chat keeps its beginning and its end
_CHAT_BEGINNING_CHARS = 3_000
CONTEXT_NOT_YOURS_TEXT = "Only people who may decide it may read what led to it."
_SPEAKERS = {LineRole.ASSISTANT: "The agent", LineRole.NOTE: "Nod to the agent"}


class _Turn(NamedTuple):
    """A turn that led to a proposal, for one reader."""

    proposal: Proposal
    lines: Sequence[Line]  # in reading order
    secrets: tuple[str, ...]  # the secrets to hide in the lines
    reader: Person | None  # the person to record as a reader; None for the proposal's requester


async def read_context(
    groups: Groups, registry: Registry, proposal_id: str, actor: Actor, address: Address | None = None
) -> list[Line] | None:
    """Return the lines that led to a proposal in reading order, without secrets, and record the reader.

    None for a person who may not read them; empty if they are no longer stored. ``address``: where the
    person reads them, since a rule may let everyone in a chat decide.
    """
    available = await registry.load_tools()
    turn = await groups.read_with_members(_read_turn, groups.policies, available, proposal_id, actor, address)
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
    address: Address | None,
) -> _Turn | None:
    """Return the turn that led to a proposal, if this person asked for the proposal or may decide it.

    None for anyone else, and for an unknown proposal. ``address``: as in `read_context`.
    """
    proposal = proposals.get(session, proposal_id)
    if proposal is None:
        return None
    policy, person = policies.load_with_person(session, actor)
    is_own = person == people.load_person(session, proposal.requester)
    if not is_own:
        objection, _ = rights.judge_press(session, policy, proposal, person, actor, address=address)
        if objection is not None:
            return None
    lines = _list_lines(session, proposal)
    secrets = set(secrets_in(proposal.arguments, available.schema_of(session, proposal)))
    for line in lines:
        for call in line.calls:
            secrets.update(available.secrets_of(call))
    longest_first = sorted(secrets, key=len, reverse=True)  # one secret may contain another
    return _Turn(proposal, lines, tuple(longest_first), None if is_own else person)


def _list_lines(session: Session, proposal: Proposal) -> list[Line]:
    """Return the lines of the turn in reading order, beginning with the person's order.

    The order is included even if it is from before the turn, as when a decision has begun the turn. Empty if
    the turn is deleted, or if no model's call led to the proposal.
    """
    newest_first = messages.list_until(
        session, proposal.conversation_id, proposal.message_id, _MAX_SEARCHED_LINES
    )
    if not newest_first or newest_first[0].id != proposal.message_id:
        return []  # deleted
    if newest_first[0].role is not LineRole.ASSISTANT:
        return []  # no model's call
    of_turn = _take_turn(newest_first)
    ordered = sorted(of_turn[:_MAX_LINES], key=_rank_in_reading_order)
    if any(line.role is LineRole.USER for line in ordered):
        return ordered
    order = _find_order(session, proposal, newest_first)
    if order:
        return [order, *ordered]
    return ordered


def _take_turn(newest_first: Sequence[Line]) -> list[Line]:
    """Return the lines of one turn, newest first. ``newest_first`` begins with the turn's last answer."""
    last = newest_first[0]
    # For an answer, ``after`` is the id of the last line that the agent had read before it. (For a line that
    # the agent reads, it is the line's own id.) An answer belongs to the turn if it has the turn's id, or the
    # same ``after`` as another answer of the turn.
    answered_ids = {last.after}
    turn_ids = {_turn_id_of(last)}
    of_turn = []
    for line in newest_first:
        if line.role is LineRole.ASSISTANT:
            if line.after not in answered_ids and _turn_id_of(line) not in turn_ids:
                break  # the answer, and all lines before it, belong to earlier turns
            answered_ids.add(line.after)
            turn_ids.add(_turn_id_of(line))
        elif line.role not in ANSWERABLE_ROLES or line.id > last.after:
            continue  # the line is not for the agent, or the agent had not read it at its last answer
        of_turn.append(line)
    return of_turn


def _rank_in_reading_order(line: Line) -> tuple[int, bool, int]:
    """Return a key that sorts each answer behind the line that it answers."""
    is_answer = line.role not in ANSWERABLE_ROLES  # all lines here are read by the agent, or are its answers
    return (line.after, is_answer, line.id)


def _find_order(session: Session, proposal: Proposal, newest_first: Sequence[Line]) -> Line | None:
    """Return the last message of a person that the agent had read at its answer: it led to the turn.

    ``newest_first`` begins with that answer. The conversation of a teammate, an agent that another agent
    started, has no messages of people. For it, return the message that led to the teammate's task.
    """
    last = newest_first[0]
    for line in newest_first:
        if line.role is LineRole.USER and line.id <= last.after:
            return line
    teammate = teams.get(session, proposal.conversation_id)
    if teammate is None:
        return None
    return messages.get_line(session, teammate.asking_line_id)


def _turn_id_of(answer: Line) -> str:
    """Return the id of an answer's turn, with which the event id of the answer begins.

    Rows of old releases have no event id; each of these gets an id of its own.
    """
    return (answer.event_id or f"line {answer.id}").partition(".")[0]


def _select_lines(turn: _Turn) -> list[Line]:
    """Return the turn's lines, shortened and without secrets; their calls are without arguments.

    If all are too long, the oldest lines are left out, except the first: the person's order.
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
        is_order = line is turn.lines[0]
        if chars_left >= 0 or is_order:
            selected.append(replace(line, text=text, calls=calls, results=results))
    selected.reverse()
    return selected


def format_lines(lines: Sequence[Line]) -> str:
    """Return the lines as plain text for a chat: the messages with their authors, and the results of reads.

    The middle of a text that is too long is left out.
    """
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
