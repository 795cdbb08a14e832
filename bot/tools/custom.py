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
from bot.plugins import ENTRY, TOOLS, import_named, where_it_failed
from bot.plugins import load_entry_point as load_entry
from bot.telemetry.logs import logger
from bot.tools.tool import CallContext, FixedToolset, Tool, Toolset, ToolSource

log = logger(__name__)

_SETTING = "NOD_TOOLS"
_TAKEN_BY_MODELS = re.compile(r"[A-Za-z0-9_\-]{1,64}")


@dataclass(frozen=True, slots=True)
class Source:
    """The toolsets behind one name in ``NOD_TOOLS``."""

    name: str
    toolsets: tuple[Toolset, ...]


class OwnTools:
    """Implements `Toolset` over all sources. ``taken`` are the names that Nod's own tools have."""

    name = "own"

    def __init__(self, sources: Sequence[Source], taken: frozenset[str] = frozenset()) -> None:
        self.sources = tuple(sources)
        self.known: frozenset[str] = frozenset()
        """The names of the tools that were there when last asked."""
        self._taken = taken

    async def start(self) -> None:
        """Raise SettingsError for tools whose names are taken or that models cannot call."""
        _, faults = await self._look(None)
        if faults:
            raise SettingsError("; ".join(faults))

    async def tools(self, context: CallContext | None = None) -> Sequence[Tool]:
        """Return all tools that fit.

        A tool that changed for the worse since the start is left out, and logged.
        """
        found, faults = await self._look(context)
        for fault in faults:
            log.error("custom tool skipped", why=fault)
        return found

    async def _look(self, context: CallContext | None) -> tuple[list[Tool], list[str]]:
        found: dict[str, Tool] = {}
        owners: dict[str, str] = {}
        faults = []
        for source in self.sources:
            tools, broken = await _tools_of(source, context)
            faults += broken
            for tool in tools:
                owner = "Nod itself" if tool.name in self._taken else owners.get(tool.name)
                if not _TAKEN_BY_MODELS.fullmatch(tool.name):
                    words = "has a name no language model takes; use up to 64 of A-Z, a-z, 0-9, _ and -"
                elif owner:
                    words = f"has the name of a tool of {owner}; rename it"
                else:
                    found[tool.name], owners[tool.name] = tool, source.name
                    continue
                faults.append(f"NOD_TOOLS: {tool.name!r} in {source.name} {words}")
        self.known = frozenset(found)
        return list(found.values()), faults


async def _tools_of(source: Source, context: CallContext | None) -> tuple[list[Tool], list[str]]:
    found: list[Tool] = []
    faults = []
    for toolset in source.toolsets:
        try:
            brought = await ToolSource(toolset).list_tools(context)
            found += [
                each if each.open_world is not None else replace(each, open_world=True) for each in brought
            ]
        except Exception as error:  # noqa: BLE001 - their code; one toolset must not stop every turn
            faults.append(f"NOD_TOOLS: a toolset of {source.name} failed ({where_it_failed(error)}); fix it")
    return found, faults


def load_tools(names: Sequence[str], taken: frozenset[str] = frozenset()) -> OwnTools:
    """Import what ``NOD_TOOLS`` names: modules, also of the current folder, and ``entry:NAME``.

    Raises SettingsError with the name and the fix if one can't be imported or has no tools.
    """
    here = str(Path.cwd())
    if names and here not in sys.path:
        sys.path.append(here)  # last, so that a file lying there takes no installed module's place
    seen: set[int] = set()
    return OwnTools([_source(name, seen) for name in dict.fromkeys(names)], taken)


def _source(name: str, seen: set[int]) -> Source:
    if name.startswith(ENTRY):
        value = load_entry(TOOLS, _SETTING, name)
    else:
        value = import_named(_SETTING, name, name)
    tools, toolsets = [], []
    for each in _public(value):
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, Tool):
            tools.append(each)
        else:
            toolsets.append(each)
    held = {id(tool) for toolset in toolsets if isinstance(toolset, FixedToolset) for tool in toolset.fixed}
    alone = tuple(tool for tool in tools if id(tool) not in held)
    if not alone and not toolsets:
        where = getattr(value, "__file__", None) or name
        raise SettingsError(f"NOD_TOOLS: {name} has no tools ({where}); write @tool() over an async function")
    return Source(name, (FixedToolset(name, alone), *toolsets))


def _public(value: Any) -> Iterator[Tool | Toolset]:
    """Yield the tools and toolsets that a module shows, or the one that stands there itself."""
    values = [value]
    if isinstance(value, ModuleType):
        values = [each for name, each in vars(value).items() if not name.startswith("_")]
    for each in values:
        if isinstance(each, Tool) or _is_toolset(each):
            yield each


def _is_toolset(value: Any) -> bool:
    if isinstance(value, type) or not isinstance(getattr(value, "name", None), str):
        return False
    return inspect.iscoroutinefunction(getattr(value, "tools", None))
