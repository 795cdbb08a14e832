"""Agents: programs with a token that call the team's tools through Nod, each for one person.

An agent is not its person: it decides nothing, is never linked and has no role. Its calls are made
in a place of its own (``agents:NAME/LABEL``), and its person counts as who asked.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from bot.domain.chat import Address
from bot.domain.people import AGENTS, Actor
from bot.domain.text import one_line

AGENT_BEGINNING = "noda_"
"""The beginning of an agent's token. The hash is over all of it, so another beginning makes another token."""
REPEATED_FOR = timedelta(hours=1)
"""The time for which an agent that repeats a call is given the outcome of the earlier call."""
MAX_DEPTH = 4
"""The most calls that may lead to one another: an agent that Nod called calls Nod again."""
DEPTH_META = "nod/depth"
"""The key of ``_meta`` over MCP with the number of calls that led to this one."""
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
    known: frozenset[str]  # names of tools that its person was shown
    last_used_at: datetime | None = None
    until: datetime | None = None

    @property
    def key(self) -> str:
        """The agent as proposals keep it, for example ``claude-code/1a2b3c4d``."""
        return f"{self.name}/{self.label}"

    @property
    def actor(self) -> Actor:
        """The agent as a caller over HTTP. No rule gives it a right."""
        return Actor(AGENTS, self.key, self.name)

    @property
    def words(self) -> str:
        """For example ``claude-code, for Ana``."""
        return describe_agent(self.key, self.person)

    def address_of(self, call_id: str) -> Address:
        """Return the address of one call: a part of the agent's place."""
        return Address(AGENTS, f"{self.key}/{call_id}")

    def matches(self, tool_name: str) -> bool:
        """Return whether its patterns name a tool."""
        return any(fnmatchcase(tool_name, pattern) for pattern in self.tools)


@dataclass(frozen=True, slots=True)
class TokenHolder:
    """The holder of a token: an account of the HTTP interface, or an agent."""

    actor: Actor
    agent: Agent | None = None
    refusal: str = ""  # why the token opens nothing; empty if it does


def describe_agent(key: str, person: Actor) -> str:
    """Return an agent and its person in words, for example ``claude-code, for Ana``."""
    return one_line(f"{key.partition('/')[0]}, for {person.label}")


def read_patterns(given: str | Collection[str]) -> tuple[str, ...]:
    """Return the patterns of tools' names in a text with commas, each once. Raises ValueError."""
    listed = given.split(",") if isinstance(given, str) else given
    found = tuple(dict.fromkeys(each.strip() for each in listed if each.strip()))
    if not found:
        raise ValueError("Name at least one tool, such as issues_* or wiki_search.")
    if len(found) > MAX_PATTERNS or any(len(each) > _MAX_PATTERN_CHARS for each in found):
        raise ValueError(f"At most {MAX_PATTERNS} patterns of {_MAX_PATTERN_CHARS} characters each.")
    return found
