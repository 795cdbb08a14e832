"""The tools that an agent may be given: by the tools' own nature, by its token, and by people's connections.

An agent is a program that calls Nod's tools with a token of a person. The token names tools by patterns such
as ``github_*``, and the servers at which tools may act in the person's name.
"""

from collections.abc import Collection
from fnmatch import fnmatchcase

from bot.domain.agents import Agent
from bot.domain.people import Actor
from bot.tools.call import CallContext
from bot.tools.registry import AvailableTools, Registry
from bot.tools.tool import Tool

_GROUPS_OF_NOD = frozenset(
    {
        "agents", "connections", "decisions", "memory", "outputs", "questions", "requests", "rules",
        "schedules", "team",
    }
)  # fmt: skip
"""The groups of tools that are about Nod itself, which no agent gets."""


async def load_available(registry: Registry, person: Actor) -> AvailableTools:
    """Return the tools that a person has outside of any conversation."""
    return await registry.load_tools(CallContext("", str(person), connected_as=str(person)))


async def list_matching(registry: Registry, person: Actor, patterns: Collection[str]) -> list[Tool]:
    """Return the tools that a person's agent gets by these patterns of names, such as ``github_*``."""
    available = await load_available(registry, person)
    return [
        tool
        for tool in list_callable(available)
        if any(fnmatchcase(tool.name, pattern) for pattern in patterns)
    ]


def list_callable(available: AvailableTools) -> list[Tool]:
    """Return the tools among these that any agent may be given; its token and the rules then decide."""
    return [tool for tool in available.model_tools if _is_callable(tool)]


def _is_callable(tool: Tool) -> bool:
    if tool.effect is not None or tool.run is None:
        return False  # an effect changes only the conversation of the call, and an agent has none
    # not for agents: what asks people each time, what only undoes a change, and the tools about Nod itself
    return not (tool.kind.always_asks or tool.only_for_undo or tool.group in _GROUPS_OF_NOD)


def may_use_connection(agent: Agent, tool: Tool) -> bool:
    """Tell if an agent may call a tool, by the connection that the tool uses.

    True for a tool without a connection. Another tool must act in the name of the agent's person, at a server
    for which the person has consented.
    """
    connection = tool.connection
    if connection is None:
        return True
    return connection.is_personal and connection.server in agent.servers


def find_servers(tools: Collection[Tool]) -> list[str]:
    """Return the servers at which these tools act as a person."""
    connections = [tool.connection for tool in tools]
    return sorted({connection.server for connection in connections if connection and connection.is_personal})
