"""Questions about open proposals: the awaited answers, the given answers, and the number for each person.

They are states in rooms of their own (``bot/store/state.py``). A given answer is kept for a day.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta

from sqlalchemy import String, bindparam
from sqlmodel import Session, col, select

from bot.domain.conversations import AskedQuestion, LineRole
from bot.store.state import StateRow, forget_states, keep_state, list_keys_since, list_states, load_state
from bot.store.tables.conversations import MessageRow
from bot.store.tables.row import table_of
from bot.store.turns import is_turn_wanted

_ASKED, _ANSWERED, _ASKERS = "ask", "answered", "askers"
_HOUR = timedelta(hours=1)
_A_DAY = timedelta(days=1)
_NO_ANSWER = "No answer came."
_ROWS = table_of(StateRow)
_OF_HOME = _ROWS.c.key.startswith(bindparam("conversation_id", type_=String) + "/")
ASKED = select(_ROWS.c.key).where(_ROWS.c.channel == _ASKED, _OF_HOME)
"""The keys of the questions of a conversation that have not been told their answer."""


def count_question(session: Session, person_id: str, most: int, now: datetime) -> bool:
    """Count a further question of a person; return False, uncounted, if it is too many within the hour."""
    kept = load_state(session, _ASKERS, person_id) or {"at": []}
    lately = [at for at in kept["at"] if datetime.fromisoformat(at) > now - _HOUR]
    if len(lately) >= most:
        return False
    keep_state(session, _ASKERS, person_id, {"at": [*lately, now.isoformat()]}, now)
    return True


def store_question(session: Session, question: AskedQuestion, now: datetime) -> None:
    """Store that an answer is awaited."""
    keep_state(session, _ASKED, f"{question.home}/{question.note}", asdict(question), now)


def list_answered(session: Session, home: str) -> list[AskedQuestion]:
    """Return the questions of a conversation that have an answer now, each with the answer.

    The list is empty while a turn is wanted.
    """
    waiting = _load_questions(session, _ASKED, f"{home}/")
    if not waiting or is_turn_wanted(session, home):
        return []
    return [replace(each, answer=_answer(session, each)) for each in waiting]


def settle_question(session: Session, question: AskedQuestion, now: datetime) -> None:
    """Delete the record of an awaited answer, which has been told."""
    keep_state(session, _ASKED, f"{question.home}/{question.note}", None, now)
    key = f"{question.proposal_id}/{question.note}"
    keep_state(session, _ANSWERED, key, asdict(question), now)


def of_proposal(session: Session, proposal_id: str) -> list[AskedQuestion]:
    """Return the questions about a proposal within a day, with their answers so far."""
    found = _load_questions(session, _ANSWERED, f"{proposal_id}/")
    for each in _load_questions(session, _ASKED, ""):
        if each.proposal_id == proposal_id:
            over = not is_turn_wanted(session, each.home)
            found.append(replace(each, answer=_answer(session, each)) if over else each)
    return sorted(found, key=lambda each: each.note)


def list_unanswered(session: Session) -> Mapping[str, str]:
    """Return the proposals of unanswered questions, by the question's key."""
    waiting = list_states(session, _ASKED)
    return {
        key: each["proposal_id"] for key, each in waiting.items() if is_turn_wanted(session, each["home"])
    }


def untold(session: Session, before: datetime, now: datetime) -> Sequence[str]:
    """Return the conversations with an answer that has been awaited elsewhere since before a moment."""
    keys = list_keys_since(session, _ASKED, before, now)
    return list(dict.fromkeys(key.rpartition("/")[0] for key in keys))


def purge(session: Session, now: datetime) -> None:
    """Delete answers of more than a day ago, and counts of more than an hour ago."""
    for room, most in ((_ANSWERED, _A_DAY), (_ASKERS, _HOUR)):
        forget_states(session, room, now - most)


def _load_questions(session: Session, room: str, prefix: str) -> list[AskedQuestion]:
    return [AskedQuestion(**each) for each in list_states(session, room, prefix).values()]


def _answer(session: Session, question: AskedQuestion) -> str:
    """Return the agent's answer, or Nod's notice in its place."""
    lines = session.exec(
        select(MessageRow)
        .where(
            MessageRow.conversation_id == question.home,
            col(MessageRow.id) > question.note,
            col(MessageRow.after) >= question.note,
            col(MessageRow.role).in_((LineRole.ASSISTANT, LineRole.NOTICE)),
            MessageRow.text != "",
        )
        .order_by(col(MessageRow.id))
    ).all()
    said = [line for line in lines if line.role == LineRole.ASSISTANT] or lines
    return "\n\n".join(line.text for line in said if line.after == said[0].after) or _NO_ANSWER
