"""The effect of a tool that only changes Nod's own rows, where the model's answer is stored."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from bot.domain.conversations import Conversation
from bot.domain.jobs import Job
from bot.domain.people import Actor
from bot.tools.call import Arguments


@dataclass(frozen=True, slots=True)
class EffectContext:
    """The context of an effect: of a tool that only changes Nod's own rows (`Effect`)."""

    conversation: Conversation
    asker: Actor
    call: str
    """The id of the call, which stays the same if its turn runs a second time."""
    tools: frozenset[str]
    """The names of the available tools, without those for teammates (``delegate`` and the like)."""
    now: datetime


@dataclass(frozen=True, slots=True)
class EffectResult:
    """The result of an effect: a text for the model, and jobs to start."""

    text: str
    jobs: tuple[Job, ...] = ()


Effect = Callable[[Session, EffectContext, Arguments], EffectResult]
"""Changes Nod's own rows and nothing else. Raises ToolError before it changes any row."""
