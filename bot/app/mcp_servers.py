"""The MCP servers that the settings configure."""

import os
from collections.abc import Callable

from dotenv import dotenv_values

from bot.approvals.elicitation import PATIENCE, Questions
from bot.domain.chat import Clock
from bot.settings import Settings
from bot.store.database import Database
from bot.tools.mcp.config import ServerConfig, load_servers
from bot.tools.mcp.interface import Servers

_QUESTION_GRACE_SECONDS = 15.0
"""The time that a call of an MCP server has left when its question to people has run out."""


def load_configs(settings: Settings) -> tuple[ServerConfig, ...]:
    """Return the configured MCP servers; none where no file is named. Raises SettingsError."""
    if settings.mcp_config is None:
        return ()
    return load_servers(settings.mcp_config, read_environment())


def read_environment() -> dict[str, str]:
    """Return the variables of the process, and those that only the file ``.env`` has."""
    from_file = {key: value for key, value in dotenv_values(".env").items() if value is not None}
    return {**from_file, **os.environ}


def make_servers(
    settings: Settings,
    database: Database,
    clock: Clock,
    list_reserved_names: Callable[[], frozenset[str]],
    questions: Questions | None,
) -> Servers:
    """Return the toolset of the configured MCP servers; an empty one where no file is named.

    ``list_reserved_names`` returns the names that no tool of a server may have.
    """
    if settings.mcp_config is None:
        return Servers()
    from bot.tools.mcp.toolset import McpToolset  # the SDK takes a fifth of a start

    configs = load_configs(settings)
    if questions is None:
        return McpToolset(configs, clock=clock, database=database, list_reserved_names=list_reserved_names)
    answer_seconds = PATIENCE.total_seconds() + _QUESTION_GRACE_SECONDS
    return McpToolset(
        configs,
        clock=clock,
        database=database,
        list_reserved_names=list_reserved_names,
        ask=questions.ask,
        answer_seconds=answer_seconds,
    )
