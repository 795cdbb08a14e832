"""The facts on one call by which rules judge it: its tool, risk, place, requester and arguments."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bot.domain import kinds
from bot.domain.connections import Identity
from bot.domain.people import AGENTS, Person
from bot.domain.proposals import ProposalKind
from bot.domain.risks import Risk


@dataclass(frozen=True, slots=True)
class Place:
    """The place where a call was asked for."""

    address: str  # the address of the conversation, as text
    private: bool
    home: str = ""  # for an agent, its person's place, where roles count; empty: they count at ``address``

    @property
    def is_of_agent(self) -> bool:
        return is_agents_place(self.address)


@dataclass(frozen=True, slots=True)
class CallFacts:
    """The facts on one call that rules use."""

    tool_name: str
    risk: Risk  # as the tool says; once the policy has judged the risk, as the rules say
    place: Place
    requester: Person
    at: datetime
    kind: ProposalKind = kinds.CALL
    arguments: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str, Any] = field(default_factory=dict)  # the JSON schema of the tool's arguments
    is_undo: bool = False  # the call undoes an approved one
    # the arguments whose path is a symbolic link or leads through one, each with the path that it leads to
    link_targets: Mapping[str, Any] = field(default_factory=dict)
    identity: Identity = Identity.NOD  # the account under which the call is made

    @property
    def requester_decides_alone(self) -> bool:
        """True if the requester decides alone, as the kind of the proposal says."""
        return self.kind.is_own(self.arguments)


def is_agents_place(place: str) -> bool:
    """Tell if an address or a scope (as text) is for agents' calls."""
    return place.startswith(f"{AGENTS}:")
