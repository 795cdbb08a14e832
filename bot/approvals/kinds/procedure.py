"""A procedure: the steps from a call of the model to a stored proposal, where a kind has its own."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from sqlmodel import Session

from bot.domain.conversations import Transcript
from bot.domain.jobs import Job
from bot.domain.proposals import Deciders, PreviewField, Proposal
from bot.domain.teams import Teammate
from bot.store.rules import Policies
from bot.tools.registry import AvailableTools
from bot.tools.tool import Arguments

Complete = Callable[[AvailableTools, Teammate | None, Arguments, tzinfo | None], Awaitable[dict[str, Any]]]
NameDeciders = Callable[[Session, Transcript, Arguments, Deciders], Deciders]
Show = Callable[[AvailableTools, Teammate | None, Arguments], tuple[str, tuple[PreviewField, ...]]]
Open = Callable[[Session, Policies, Proposal, datetime], tuple[Job, ...]]


@dataclass(frozen=True, slots=True)
class Procedure:
    """Steps in place of the usual ones; None where the usual one is taken. Each may raise ToolError.

    ``complete`` returns the arguments with all that will run. ``name_deciders`` returns who decides, given
    whom the rules name. ``show`` returns the title and the fields of its card. ``open`` is called in the
    transaction that stores the proposal, before it is stored, and returns the work this makes.
    """

    complete: Complete | None = None
    name_deciders: NameDeciders | None = None
    show: Show | None = None
    open: Open | None = None


USUAL = Procedure()
