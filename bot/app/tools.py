"""The registry of all tools: Nod's own, those of features, a team's own, and those of MCP servers."""

import os
from collections.abc import Sequence

from bot.app.features import FEATURES
from bot.app.mcp_servers import make_servers
from bot.approvals.agent_questions import ask_tools
from bot.approvals.elicitation import Questions
from bot.approvals.tools.decisions import decision_tools
from bot.approvals.tools.outputs import output_tools
from bot.approvals.tools.team import team_tools
from bot.domain.teams import TeamLimits
from bot.errors import SettingsError
from bot.features.feature import FeatureParts
from bot.settings import Settings
from bot.tools.account_tools import ConnectedTools
from bot.tools.builtin.docker import docker_tools
from bot.tools.builtin.fetch import fetch_tools
from bot.tools.builtin.files.tools import file_tools
from bot.tools.custom import OwnTools
from bot.tools.custom import load_tools as load_own
from bot.tools.mcp.interface import Servers
from bot.tools.registry import Registry
from bot.tools.toolset import FixedToolset, Toolset


def registry_of(
    parts: FeatureParts,
    questions: Questions | None = None,
    toolsets: Sequence[Toolset] | None = None,
) -> tuple[Registry, OwnTools, Servers]:
    """Return the registry of all tools, the tools of a team's own that NOD_TOOLS names, and the MCP servers.

    ``toolsets`` take the place of the tools that the settings name, in the registry. MCP servers start when
    their tools are first needed. Without ``questions`` they can ask people nothing.
    """
    settings = parts.settings
    database = parts.database
    policies = parts.policies
    # the tools that Nod brings itself
    nod_toolsets = [] if toolsets is not None else _make_named_tools(parts)
    nod_toolsets += [
        decision_tools(database, policies),
        team_tools(policies, TeamLimits(settings.max_teammates)),
        ask_tools(),
        *_make_feature_tools(parts, named=False),
    ]
    # the tools of a `FixedToolset` are in ``fixed``: they are the same for everyone
    nod_tools = FixedToolset("Nod", tuple(tool for toolset in nod_toolsets for tool in toolset.fixed))
    nod_tool_names = frozenset(tool.name for tool in nod_tools.fixed)
    # of two tools with one name, the first of these keeps it: Nod's, a team's own, that of an MCP server
    own_tools = load_own(settings.tools, nod_tool_names)
    connected_tools = ConnectedTools(own_tools, database)

    def list_reserved_names() -> frozenset[str]:
        return own_tools.found_names | nod_tool_names

    mcp = make_servers(settings, database, parts.clock, list_reserved_names, questions)
    all_toolsets: list[Toolset]
    if toolsets is None:
        all_toolsets = [nod_tools, connected_tools, mcp]
    else:
        all_toolsets = [*toolsets, nod_tools]
    if questions is not None:
        all_toolsets.append(questions)
    return Registry(all_toolsets), own_tools, mcp


def _make_feature_tools(parts: FeatureParts, *, named: bool) -> list[FixedToolset]:
    """Make the tools of features: if ``named``, of those with `has_named_tools`, else of all others."""
    toolsets: list[FixedToolset] = []
    for feature in FEATURES:
        if feature.has_named_tools is named:
            toolsets += feature.make_toolsets(parts)
    return toolsets


def _make_named_tools(parts: FeatureParts) -> list[FixedToolset]:
    """Make the tools that Nod brings itself, as far as the settings name them."""
    feature_tools = _make_feature_tools(parts, named=True)
    return [output_tools(parts.database), *feature_tools, *_make_builtin_tools(parts.settings)]


def _make_builtin_tools(settings: Settings) -> list[FixedToolset]:
    """Make the tools of a workspace, of Docker and of the web, as far as the settings turn them on."""
    toolsets: list[FixedToolset] = []
    if settings.workspace is not None:
        if not settings.workspace.is_dir():
            raise SettingsError(f"NOD_WORKSPACE: there is no folder {settings.workspace}; create it first")
        toolsets.append(file_tools(settings.workspace))
        if settings.shell:
            from bot.tools.builtin.shell.tools import shell_tools

            shell = shell_tools(settings.workspace, environment=os.environ, trials=settings.trials)
            toolsets.append(shell)
    if settings.docker_url is not None:
        toolsets.append(docker_tools(settings.docker_url))
    if settings.fetch:
        toolsets.append(fetch_tools(ports=settings.fetch_ports))
    return toolsets
