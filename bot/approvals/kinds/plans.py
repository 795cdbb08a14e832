"""Plans: the calls of their steps are checked, the lead agent may decide, and a new one replaces the last."""

from dataclasses import replace

from sqlmodel import Session

from bot.approvals.kinds.procedure import Procedure
from bot.approvals.team.plans import open_plan
from bot.approvals.tool_visibility import plan_shown, with_exact_calls
from bot.domain.conversations import Transcript
from bot.domain.proposals import Deciders
from bot.tools.tool import Arguments


def _name_deciders(_: Session, transcript: Transcript, __: Arguments, deciders: Deciders) -> Deciders:
    """Return the deciders; the lead agent may not decide its own plan."""
    if transcript.teammate is None:
        return replace(deciders, lead=None)
    return deciders


PLANNING = Procedure(complete=with_exact_calls, name_deciders=_name_deciders, show=plan_shown, open=open_plan)
