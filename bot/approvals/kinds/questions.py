"""The procedure of the agent's questions to people: the people whom it names answer them.

By the rules, other people may decide proposals; for a question these rules do not count. The tool that asks,
and the answer, are in ``bot/approvals/agent_questions.py``.
"""

from sqlmodel import Session

from bot.approvals import agent_questions
from bot.approvals.kinds.procedure import Procedure
from bot.domain.conversations import Transcript
from bot.domain.deciders import Deciders
from bot.tools.call import Arguments


def _name_deciders(session: Session, transcript: Transcript, arguments: Arguments, _: Deciders) -> Deciders:
    return agent_questions.choose_answerers(session, transcript, arguments)


ASKING = Procedure(name_deciders=_name_deciders)
