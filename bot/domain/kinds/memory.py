"""Memory: a fact for Nod to remember or to forget, about a person, a place or the team.

A fact about a person is that person's own: no one else decides or sees the card.
"""

from collections.abc import Mapping
from typing import Any

from bot.domain.proposals import ProposalKind


def _is_about_person(arguments: Mapping[str, Any]) -> bool:
    return arguments.get("about") == "person"


MEMORY = ProposalKind(
    "memory",
    "Waiting for a decision. Nothing has been changed.",
    is_own=_is_about_person,
    hides_own=True,
    may_be_undone=True,
)
