"""Agents: a person agrees to a token by which a program calls tools on that person's behalf.

Only that person sees the card and decides. Until then the token opens nothing.
"""

from collections.abc import Mapping
from typing import Any

from bot.domain.proposals import AskerFacts, ProposalKind


def _is_own(_: Mapping[str, Any]) -> bool:
    return True


def _introduce(asker: AskerFacts) -> str:
    return f"Asked of {asker.name} alone"


AGENT = ProposalKind(
    "agent",
    "Waiting for you. Until then the token opens nothing.",
    introduce=_introduce,
    no_edit_text="A token's tools can't be changed. Decline it, and have another one made.",
    is_own=_is_own,
    hides_own=True,
    has_no_current_values=True,
    is_counted=False,
)
