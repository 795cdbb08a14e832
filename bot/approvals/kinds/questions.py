"""The procedure of the agent's questions: the people it names answer, not the deciders of the rules."""

from sqlmodel import Session

from bot.approvals import asking
from bot.approvals.kinds.procedure import Procedure
from bot.domain.conversations import Transcript
from bot.domain.proposals import Deciders
from bot.tools.tool import Arguments


def _name_deciders(session: Session, transcript: Transcript, arguments: Arguments, _: Deciders) -> Deciders:
    return asking.choose_answerers(session, transcript, arguments)


ASKING = Procedure(name_deciders=_name_deciders)
