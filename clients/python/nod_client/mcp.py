"""Any MCP client: each call of a server's tool is put to people first.

::

    approvals = Approvals(AsyncNod(), unasked=("list_*", "read_*"))
    result = await approvals.call_tool(client, "delete_branch", {"name": "old"})

``client`` is whatever has the SDK's ``call_tool(name, arguments)``. (An agent that can take tools of an MCP
server needs none of this to ask: Nod's own server offers ``request_approval`` and ``permission_prompt``.)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Protocol

from mcp.types import CallToolResult

from nod_client.asker import Asker, Use
from nod_client.request import End


class Client(Protocol):
    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> Any: ...


@dataclass(frozen=True)
class Approvals(Asker):
    """``unasked``: patterns over the names of tools that run unasked. A server's hints count for nothing."""

    unasked: tuple[str, ...] = ()

    async def call_tool(
        self, client: Client, name: str, arguments: Mapping[str, Any] | None = None, *, call: str = ""
    ) -> Any:
        """The tool's result after approval, with people's edits; else an error result in words for the model.

        ``call`` tells this call from the run's others, where a ``key`` is used.
        """
        given = dict(arguments or {})
        if any(fnmatchcase(name, pattern) for pattern in self.unasked):
            return await client.call_tool(name, given)
        if self.key is not None and not call:
            raise ValueError("With a key, each call needs a name of its own: call_tool(…, call='step-1').")
        [request] = await self.ask_about([Use(name, given, call)])
        if request.end is not End.APPROVED:
            content = [{"type": "text", "text": request.told}]
            return CallToolResult.model_validate({"content": content, "isError": True})
        return await client.call_tool(name, request.input)
