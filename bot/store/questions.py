"""People's questions to the agent about open proposals (*Ask* on a card): the awaited and the given answers.

A question is a note to the agent in a conversation, its *home*, so the agent answers it in a turn there. If
it was asked in another place, the answer is posted there as well. Three rooms of ``bot/store/state.py``
(stores of values by key) hold

- the questions whose answer is awaited, until their askers were told it,
- for a day, the questions with an answer,
- and the times at which each person asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta

from sqlalchemy import String, bindparam
from sqlmodel import Session, col, select

from bot.domain.conversations import AskedQuestion, LineRole
from bot.store.state import StateRow, forget_states, list_states, list_unchanged_keys, load_state, store_state
from bot.store.tables.conversations import MessageRow
from bot.store.tables.row import table_of
from bot.store.turns import is_turn_wanted

# the rooms; their keys are HOME/NOTE, PROPOSAL/NOTE and PERSON, where NOTE is the id of the note
_ASKED_ROOM = "ask"
_ANSWERED_ROOM = "answered"
_ASKERS_ROOM = "askers"
_HOUR = timedelta(hours=1)
_A_DAY = timedelta(days=1)
_NO_ANSWER = "No answer came."
_STATE = table_of(StateRow)
SELECT_ASKED_KEYS = select(_STATE.c.key).where(
    _STATE.c.channel == _ASKED_ROOM,  # the column ``channel`` has the name of the room
    _STATE.c.key.startswith(bindparam("conversation_id", type_=String) + "/"),
)
"""The keys of a conversation's questions whose askers have not been told the answer."""


def count_question(session: Session, person_id: str, most: int, now: datetime) -> bool:
    """Count a further question of a person.

    False, without counting it, if they asked ``most`` questions in the last hour.
    """
    stored = load_state(session, _ASKERS_ROOM, person_id) or {"at": []}
    lately = [at for at in stored["at"] if datetime.fromisoformat(at) > now - _HOUR]
    if len(lately) >= most:
        return False
    store_state(session, _ASKERS_ROOM, person_id, {"at": [*lately, now.isoformat()]}, now)
    return True


def store_question(session: Session, question: AskedQuestion, now: datetime) -> None:
    """Store a question whose answer is awaited."""
    store_state(session, _ASKED_ROOM, _make_key(question), asdict(question), now)


def _make_key(question: AskedQuestion) -> str:
    """Return the key of a question while its answer is awaited."""
    return f"{question.home}/{question.note}"


def list_answered(session: Session, home: str) -> list[AskedQuestion]:
    """Return the questions of a conversation whose answers are to be told now, each with its answer.

    The list is empty while a turn is wanted there, since that turn may answer them.
    """
    waiting = _load_questions(session, _ASKED_ROOM, f"{home}/")
    if not waiting or is_turn_wanted(session, home):
        return []
    return [_with_answer(session, question) for question in waiting]


def mark_answer_told(session: Session, question: AskedQuestion, now: datetime) -> None:
    """Store that the asker of a question was told the answer: it is kept for a day."""
    store_state(session, _ASKED_ROOM, _make_key(question), None, now)  # None deletes it
    key = f"{question.proposal_id}/{question.note}"
    store_state(session, _ANSWERED_ROOM, key, asdict(question), now)


def list_of_proposal(session: Session, proposal_id: str) -> list[AskedQuestion]:
    """Return the questions about a proposal that are open or were answered within a day, oldest first.

    Each has its answer, or an empty one while it is awaited.
    """
    questions = _load_questions(session, _ANSWERED_ROOM, f"{proposal_id}/")
    for question in _load_questions(session, _ASKED_ROOM, ""):
        if question.proposal_id != proposal_id:
            continue
        if is_turn_wanted(session, question.home):
            questions.append(question)  # that turn may still answer it
        else:
            questions.append(_with_answer(session, question))
    return sorted(questions, key=lambda question: question.note)


def list_unanswered(session: Session) -> Mapping[str, str]:
    """Return the ids of the proposals of unanswered questions, by the key of the question."""
    waiting = list_states(session, _ASKED_ROOM)
    return {
        key: question["proposal_id"]
        for key, question in waiting.items()
        if is_turn_wanted(session, question["home"])
    }


def list_homes_with_untold(session: Session, before: datetime, now: datetime) -> Sequence[str]:
    """Return the homes of the questions from before ``before`` whose askers were told no answer yet."""
    keys = list_unchanged_keys(session, _ASKED_ROOM, before, now)
    return list(dict.fromkeys(key.rpartition("/")[0] for key in keys))


def purge(session: Session, now: datetime) -> None:
    """Delete answers of more than a day ago, and counts of more than an hour ago."""
    for room, age in ((_ANSWERED_ROOM, _A_DAY), (_ASKERS_ROOM, _HOUR)):
        forget_states(session, room, now - age)


def _load_questions(session: Session, room: str, prefix: str) -> list[AskedQuestion]:
    return [AskedQuestion(**stored) for stored in list_states(session, room, prefix).values()]


def _with_answer(session: Session, question: AskedQuestion) -> AskedQuestion:
    return replace(question, answer=_make_answer(session, question))


def _make_answer(session: Session, question: AskedQuestion) -> str:
    """Return the answer to a question: the agent's text, else Nod's notices, else that no answer came.

    The agent may answer the question together with a later message: each line names in ``after`` the last
    heard line that it answers. For example the question is line 5, and the lines 8 and 9 are both after
    line 7. Then the answer is the text of both. A line after line 10 answers something else.
    """
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
    replies = [line for line in lines if line.role == LineRole.ASSISTANT] or lines
    if not replies:
        return _NO_ANSWER
    answered_id = replies[0].after
    return "\n\n".join(line.text for line in replies if line.after == answered_id)
