"""Toolsets: the sources from which Nod takes its tools."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.tools.call import CallContext
from bot.tools.signature import find_parameter
from bot.tools.tool import Tool


class Toolset(Protocol):
    """A source of tools. It is asked again for each turn, so its tools may come, go and change.

    ``tools`` may take a parameter annotated ``CallContext | None``, by which it learns for whom and where.
    """

    @property
    def name(self) -> str:
        """The name by which logs and messages call the source."""

    async def tools(self) -> Sequence[Tool]:
        """Return the tools that it has now."""


class ToolSource:
    """A toolset that gets a context with each request, if it takes contexts."""

    def __init__(self, toolset: Toolset) -> None:
        self.toolset = toolset
        self._parameter = find_parameter(toolset.tools, CallContext)

    async def list_tools(self, context: CallContext | None) -> Sequence[Tool]:
        if self._parameter:
            return await self.toolset.tools(**{self._parameter: context})
        return await self.toolset.tools()


@dataclass(frozen=True, slots=True)
class FixedToolset:
    """Implements `Toolset` with tools that never change."""

    name: str
    fixed: tuple[Tool, ...]

    async def tools(self) -> Sequence[Tool]:
        return self.fixed
