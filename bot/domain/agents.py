"""Agents: programs with a token that call the team's tools through Nod, each on behalf of one person.

An agent is not its person: it decides nothing, is never linked to other accounts and has no role. But its
person counts as the requester of its calls. Each call has an address of its own, ``agents:NAME/LABEL/CALL``,
so that rules can be set for the place of one agent. Tokens are stored by ``bot/store/tokens.py``.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from bot.domain.chat import Address
from bot.domain.people import AGENTS, Actor
from bot.domain.text import one_line

AGENT_BEGINNING = "noda_"
"""The beginning of an agent's token, by which it differs from other tokens."""
REUSE_OUTCOME_FOR = timedelta(hours=1)
"""The time for which a call that an agent repeats gets the outcome of the earlier, equal call."""
MAX_DEPTH = 4
"""The longest chain of calls: an agent calls a tool through Nod, and the tool may be an agent, too."""
DEPTH_META = "nod/depth"
"""The key, in the ``_meta`` of an MCP request, of the number of calls in the chain before this one."""
MAX_PATTERNS = 20
_MAX_PATTERN_CHARS = 100


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that may call tools now."""

    name: str
    label: str  # the label of its token
    person: Actor  # the person for whom it calls tools
    tools: tuple[str, ...]  # patterns of the names of tools that it may call
    servers: tuple[str, ...]  # the servers at which it may act as its person
    shown_tools: frozenset[str]  # names of the tools that its person has been shown so far
    last_used_at: datetime | None = None
    until: datetime | None = None  # the end of its token; None: no end

    @property
    def key(self) -> str:
        """The agent as proposals keep it, for example ``claude-code/1a2b3c4d``."""
        return f"{self.name}/{self.label}"

    @property
    def actor(self) -> Actor:
        """The agent as a caller over HTTP. No rule gives it a right."""
        return Actor(AGENTS, self.key, self.name)

    @property
    def description(self) -> str:
        """The agent in words for people, for example ``claude-code, for Ana``."""
        return describe_agent(self.key, self.person)

    def address_of(self, call_id: str) -> Address:
        """Return the address of one call, which lies below the agent's place."""
        return Address(AGENTS, f"{self.key}/{call_id}")

    def matches(self, tool_name: str) -> bool:
        """Return whether the agent may call a tool of this name."""
        return any(fnmatchcase(tool_name, pattern) for pattern in self.tools)


@dataclass(frozen=True, slots=True)
class TokenHolder:
    """The holder of a token: an account of the HTTP interface, or an agent."""

    actor: Actor
    agent: Agent | None = None
    refusal: str = ""  # why the token is refused; empty if it is accepted


def describe_agent(key: str, person: Actor) -> str:
    """Return an agent and its person in words, for example ``claude-code, for Ana``."""
    return one_line(f"{key.partition('/')[0]}, for {person.label}")


def read_patterns(given: str | Collection[str]) -> tuple[str, ...]:
    """Return patterns of tools' names, each once: of a list, or of a text such as ``issues_*, wiki_search``.

    Raises ValueError if there is no pattern, if there are too many, or if one is too long.
    """
    listed = given.split(",") if isinstance(given, str) else given
    patterns = tuple(dict.fromkeys(pattern.strip() for pattern in listed if pattern.strip()))
    if not patterns:
        raise ValueError("Name at least one tool, such as issues_* or wiki_search.")
    if len(patterns) > MAX_PATTERNS or any(len(pattern) > _MAX_PATTERN_CHARS for pattern in patterns):
        raise ValueError(f"At most {MAX_PATTERNS} patterns of {_MAX_PATTERN_CHARS} characters each.")
    return patterns
