"""A procedure: the steps from a call of the model to a stored proposal that a kind of proposals has.

Most proposals are of the kind ``call``, which takes the usual steps, in ``bot/approvals/gate.py``. A plan or
a question of the agent is a proposal, too, but its card and its deciders are made in another way. A module
next to this one has the `Procedure` of such a kind, and `find_procedure` finds it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from sqlmodel import Session

from bot.domain.conversations import Transcript
from bot.domain.deciders import Deciders
from bot.domain.jobs import Job
from bot.domain.preview import PreviewField
from bot.domain.proposals import Proposal
from bot.domain.teams import Teammate
from bot.store.rules import Policies
from bot.tools.call import Arguments
from bot.tools.registry import AvailableTools

Complete = Callable[[AvailableTools, Teammate | None, Arguments, tzinfo | None], Awaitable[dict[str, Any]]]
NameDeciders = Callable[[Session, Transcript, Arguments, Deciders], Deciders]
Show = Callable[[AvailableTools, Teammate | None, Arguments], tuple[str, tuple[PreviewField, ...]]]
Open = Callable[[Session, Policies, Proposal, datetime], tuple[Job, ...]]


@dataclass(frozen=True, slots=True)
class Procedure:
    """Steps in place of the usual steps; None where the usual step is taken. Each may raise ToolError."""

    complete: Complete | None = None  # returns the arguments, completed with all that will run
    name_deciders: NameDeciders | None = None  # returns the deciders, given those that the rules name
    show: Show | None = None  # returns the title and the fields of the card
    # is called in the transaction that stores the proposal, right before that; returns the jobs that follow
    open: Open | None = None


USUAL = Procedure()
"""The usual steps alone."""
