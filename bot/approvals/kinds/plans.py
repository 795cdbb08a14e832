"""The procedure of plans, which an agent submits before a longer job.

A plan lists steps, and perhaps the calls of a step. Before it becomes a proposal, these calls are checked by
their tools. Its card shows the steps. The lead agent may decide the plan of a teammate, but not its own plan.
A new plan replaces the agent's last one.
"""

from dataclasses import replace

from sqlmodel import Session

from bot.approvals.kinds.procedure import Procedure
from bot.approvals.team.plan_contents import complete_calls, describe_plan
from bot.approvals.team.plans import open_plan
from bot.domain.conversations import Transcript
from bot.domain.deciders import Deciders
from bot.tools.call import Arguments


def _name_deciders(_: Session, transcript: Transcript, __: Arguments, deciders: Deciders) -> Deciders:
    """Return the deciders; the lead agent may not decide its own plan."""
    if transcript.teammate is None:
        return replace(deciders, lead=None)
    return deciders


PLANNING = Procedure(
    complete=complete_calls, name_deciders=_name_deciders, show=describe_plan, open=open_plan
)
