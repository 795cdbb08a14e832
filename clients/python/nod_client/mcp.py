"""Any MCP client: before it calls a tool of a server, people approve the call.

::

    approvals = Approvals(AsyncNod(), unasked=("list_*", "read_*"))
    result = await approvals.call_tool(client, "delete_branch", {"name": "old"})

``client`` is a session of the MCP SDK, or any other object with ``call_tool(name, arguments)``. An agent that
can use an MCP server's tools needs no Python to ask: Nod's own server offers the tools ``request_approval``
and ``permission_prompt``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Protocol

from mcp.types import CallToolResult

from nod_client.asker import Asker, Use
from nod_client.request import End


class Client(Protocol):
    """A session at an MCP server."""

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> Any: ...


@dataclass(frozen=True)
class Approvals(Asker):
    """The approvals of one run of an agent over MCP clients."""

    unasked: tuple[str, ...] = ()
    """Patterns of names of tools that run unasked, such as "list_*". A server's hints count for nothing."""

    async def call_tool(
        self, client: Client, name: str, arguments: Mapping[str, Any] | None = None, *, call: str = ""
    ) -> Any:
        """Ask people about a call, and call the tool once they approve, with their edits.

        Return the tool's result. Without approval it is a result with ``isError``, in words for the model.
        ``call`` tells this call from other calls of the run. Raises ValueError if there is a ``key`` and no
        ``call``.
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
