"""A team's own tools: the modules and entry points that ``NOD_TOOLS`` names, loaded once at the start.

An entry point of the group ``nod.tools`` is loaded only where ``NOD_TOOLS`` names it (``bot/plugins.py``).
How a tool is written: ``docs/tools.md``.
"""

import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from bot.errors import SettingsError
from bot.plugins import ENTRY, TOOLS, describe_failure, import_named
from bot.plugins import load_entry_point as load_entry
from bot.telemetry.logs import logger
from bot.tools.call import CallContext
from bot.tools.tool import Tool
from bot.tools.toolset import FixedToolset, Toolset, ToolSource

log = logger(__name__)

_SETTING = "NOD_TOOLS"
_MODEL_NAME = re.compile(r"[A-Za-z0-9_\-]{1,64}")  # the names that language models take


@dataclass(frozen=True, slots=True)
class Source:
    """One name in ``NOD_TOOLS``, and the toolsets that were found there. Single tools form one toolset."""

    name: str
    toolsets: tuple[Toolset, ...]


class OwnTools:
    """Implements `Toolset` over all sources. ``reserved_names``: the names of Nod's own tools."""

    name = "own"

    def __init__(self, sources: Sequence[Source], reserved_names: frozenset[str] = frozenset()) -> None:
        self.sources = tuple(sources)
        self.found_names: frozenset[str] = frozenset()
        """The names of the tools that were found last."""
        self._reserved_names = reserved_names

    async def start(self) -> None:
        """Raise SettingsError if a toolset fails, or if a tool's name is taken or not for models."""
        _, faults = await self._load(None)
        if faults:
            raise SettingsError("; ".join(faults))

    async def tools(self, context: CallContext | None = None) -> Sequence[Tool]:
        """Return the tools whose names are free, and can be called by models; log the others."""
        tools, faults = await self._load(context)
        for fault in faults:
            log.error("custom tool skipped", why=fault)
        return tools

    async def _load(self, context: CallContext | None) -> tuple[list[Tool], list[str]]:
        """Return the tools that may be offered, and the faults of the others. Store `found_names`."""
        tools: dict[str, Tool] = {}
        owners: dict[str, str] = {}
        faults = []
        for source in self.sources:
            source_tools, toolset_faults = await _load_from(source, context)
            faults += toolset_faults
            for tool in source_tools:
                owner = "Nod itself" if tool.name in self._reserved_names else owners.get(tool.name)
                fault = _find_name_fault(tool.name, owner)
                if fault:
                    faults.append(f"NOD_TOOLS: {tool.name!r} in {source.name} {fault}")
                else:
                    tools[tool.name] = tool
                    owners[tool.name] = source.name
        self.found_names = frozenset(tools)
        return list(tools.values()), faults


def _find_name_fault(name: str, owner: str | None) -> str:
    """Return the fault of a tool's name; empty if it has none. ``owner``: of another tool with this name."""
    if not _MODEL_NAME.fullmatch(name):
        return "has a name no language model takes; use up to 64 of A-Z, a-z, 0-9, _ and -"
    if owner:
        return f"has the name of a tool of {owner}; rename it"
    return ""


async def _load_from(source: Source, context: CallContext | None) -> tuple[list[Tool], list[str]]:
    """Return the tools of a source, and the faults of toolsets that failed."""
    tools: list[Tool] = []
    faults = []
    for toolset in source.toolsets:
        try:
            tools += map(_complete, await ToolSource(toolset).list_tools(context))
        except Exception as error:  # noqa: BLE001 - their code; one toolset must not stop every turn
            faults.append(f"NOD_TOOLS: a toolset of {source.name} failed ({describe_failure(error)}); fix it")
    return tools, faults


def _complete(tool: Tool) -> Tool:
    """Return a tool whose `Tool.open_world` is set. A tool that does not set it counts as open."""
    if tool.open_world is None:
        return replace(tool, open_world=True)
    return tool


def load_tools(names: Sequence[str], reserved_names: frozenset[str] = frozenset()) -> OwnTools:
    """Import what ``NOD_TOOLS`` names: modules, also of the current folder, and ``entry:NAME``.

    ``reserved_names``: the names of Nod's own tools. Raises SettingsError with the name and the fix if one
    can't be imported or has no tools.
    """
    folder = str(Path.cwd())
    if names and folder not in sys.path:
        sys.path.append(folder)  # last, so that no file in it replaces an installed module
    loaded_ids: set[int] = set()
    return OwnTools([_load_source(name, loaded_ids) for name in dict.fromkeys(names)], reserved_names)


def _load_source(name: str, loaded_ids: set[int]) -> Source:
    """Load one source.

    ``loaded_ids``: the tools and toolsets that earlier sources have. One module may import another's tools.
    """
    if name.startswith(ENTRY):
        value = load_entry(TOOLS, _SETTING, name)
    else:
        value = import_named(_SETTING, name, name)
    tools: list[Tool] = []
    toolsets: list[Toolset] = []
    for item in _list_public(value):
        if id(item) in loaded_ids:
            continue
        loaded_ids.add(id(item))
        if isinstance(item, Tool):
            tools.append(item)
        else:
            toolsets.append(item)
    # a module may have both a toolset and the tools in it as public names
    ids_in_toolsets: set[int] = set()
    for toolset in toolsets:
        if isinstance(toolset, FixedToolset):
            ids_in_toolsets.update(id(tool) for tool in toolset.fixed)
    single_tools = tuple(tool for tool in tools if id(tool) not in ids_in_toolsets)
    if not single_tools and not toolsets:
        where = getattr(value, "__file__", None) or name
        raise SettingsError(f"NOD_TOOLS: {name} has no tools ({where}); write @tool() over an async function")
    return Source(name, (FixedToolset(name, single_tools), *toolsets))


def _list_public(value: Any) -> Iterator[Tool | Toolset]:
    """Yield the tools and toolsets among a module's public names, or the value itself if it is one."""
    items = [value]
    if isinstance(value, ModuleType):
        items = [item for name, item in vars(value).items() if not name.startswith("_")]
    for item in items:
        if isinstance(item, Tool) or _is_toolset(item):
            yield item


def _is_toolset(value: Any) -> bool:
    if isinstance(value, type) or not isinstance(getattr(value, "name", None), str):
        return False
    return inspect.iscoroutinefunction(getattr(value, "tools", None))
