"""The turn that led to a proposal, for those who may decide it.

The order, what the agent read for it and what it said, up to the call itself: no line before or after that,
also of a private conversation. It never changes, so reading someone else's is recorded once for each reader.
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

_LINES, _LOOKED_AT = 60, 200
_TEXT, _RESULT, _ALL = 4_000, 1_000, 150_000  # characters: of a line, of what a call gave, of all together
_IN_A_CHAT, _BEGIN = 8_000, 3_000  # of which so many are the beginning
NOT_YOURS = "Only people who may decide it may read what led to it."
_SPEAKERS = {LineRole.ASSISTANT: "The agent", LineRole.NOTE: "Nod to the agent"}


class _Turn(NamedTuple):
    """Lines in reading order, what is hidden in them, and the other person who reads them, if one does."""

    proposal: Proposal
    lines: Sequence[Line]
    secrets: tuple[str, ...]
    reader: Person | None


async def context(
    groups: Groups, registry: Registry, proposal_id: str, actor: Actor, address: Address | None = None
) -> list[Line] | None:
    """Return the lines in reading order, without secrets, and record the reading.

    None for a person who may not read them; empty where none is kept.
    """
    available = await registry.available()
    turn = await groups.read(_read, groups.policies, available, proposal_id, actor, address)
    if turn is None:
        return None
    if turn.reader is not None and turn.lines:
        reading = (turn.proposal, actor, turn.reader)
        await groups.database.write(admin_changes.record_reading, *reading, groups.clock())
    return await asyncio.to_thread(_select_lines, turn)


def _read(
    session: Session,
    policies: Policies,
    available: AvailableTools,
    proposal_id: str,
    actor: Actor,
    at: Address | None,
) -> _Turn | None:
    p = proposals.get(session, proposal_id)
    if p is None:
        return None
    policy, person = policies.load_for(session, actor)
    own = person == people.person_of(session, p.requester)
    if not own and rights.judge_press(session, policy, p, person, actor, at=at)[0] is not None:
        return None
    lines = _lines(session, p)
    hidden = {each for line in lines for call in line.calls for each in available.secrets_of(call)}
    hidden.update(secrets_in(p.arguments, available.schema_of(session, p)))
    return _Turn(p, lines, tuple(sorted(hidden, key=len, reverse=True)), None if own else person)


def _lines(session: Session, p: Proposal) -> list[Line]:
    """Return the lines of the turn in reading order, beginning with the person's order.

    An order from before the turn is included. Empty where the turn is deleted or no model's call led to it.
    """
    newest = messages.until(session, p.conversation_id, p.message_id, _LOOKED_AT)
    if not newest or newest[0].id != p.message_id or newest[0].role is not LineRole.ASSISTANT:
        return []  # deleted since, or no model's call
    afters, turns, found = {newest[0].after}, {_turn(newest[0])}, []
    for line in newest:
        if line.role is LineRole.ASSISTANT:
            if line.after not in afters and _turn(line) not in turns:
                break
            afters.add(line.after)
            turns.add(_turn(line))
        elif line.role not in HEARD or line.id > newest[0].after:
            continue  # not for the agent, or not yet told to it
        found.append(line)
    ordered = sorted(found[:_LINES], key=lambda line: (line.after, line.role not in HEARD, line.id))
    if any(line.role is LineRole.USER for line in ordered):
        return ordered
    order = next((line for line in newest if line.role is LineRole.USER), None)
    if order is None and (teammate := teams.get(session, p.conversation_id)):
        order = messages.get_line(session, teammate.asked)
    if order:
        return [order, *ordered]
    return ordered


def _turn(answer: Line) -> str:
    """Return the id of the answer's turn, or one made of the line's number for old rows."""
    return (answer.event_id or f"line {answer.id}").partition(".")[0]


def _select_lines(turn: _Turn) -> list[Line]:
    """Return the lines with what was read and nothing of what is hidden.

    The oldest go where it is too much.
    """
    shown: list[Line] = []
    left = _ALL
    for line in reversed(turn.lines):
        read = [replace(c, arguments="", summary=redact_text(c.summary, turn.secrets)) for c in line.calls]
        results = {
            ident: replace(given, text=shorten(redact_text(given.text, turn.secrets), _RESULT))
            for ident, given in line.results.items()
        }
        text = shorten(redact_text(line.text, turn.secrets), _TEXT)
        left -= len(text) + sum(len(given.text) for given in results.values())
        if left >= 0 or line is turn.lines[0]:
            shown.append(replace(line, text=text, calls=read, results=results))
    return shown[::-1]


def format_lines(lines: Sequence[Line]) -> str:
    """Render the lines as plain text for a chat: who said what, and what was read."""
    said = []
    for line in lines:
        who = _SPEAKERS.get(line.role) or (line.actor.label if line.actor else "A person")
        said += [f"{who}: {line.text.strip()}"] if line.text.strip() else []
        said += [
            f"Read: {call.summary or call.tool_name}\n{indent(given.text.strip(), '    ')}"
            for call in line.calls
            if (given := line.results.get(call.id))
        ]
    text = "\n\n".join(said) or "What led to it is no longer kept."
    if len(text) <= _IN_A_CHAT:
        return text
    return f"{text[:_BEGIN]}\n…\n{text[_BEGIN - _IN_A_CHAT :]}"
