"""pydantic-ai: tools with ``requires_approval=True`` are put to people.

Inline, the run waits for them::

    agent = Agent(model, capabilities=[HandleDeferredToolCalls(handler=Approvals(AsyncNod()))])

or, where a run ends with ``DeferredToolRequests``, between two runs::

    results = await Approvals(AsyncNod(), key="order-7").results(result.output)
    await agent.run(message_history=result.all_messages(), deferred_tool_results=results)
"""

from typing import Any

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext, ToolApproved, ToolDenied

from nod_client.asker import Asker, Use
from nod_client.request import End


class Approvals(Asker):
    """Implements the handler of ``HandleDeferredToolCalls``. Calls that are no approvals are left alone."""

    async def __call__(self, _: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        return await self.results(requests)

    async def results(self, requests: DeferredToolRequests) -> DeferredToolResults:
        """Approved, with people's edits, or denied, in words for the model."""
        parts = requests.approvals
        uses = [Use(part.tool_name, part.args_as_dict(), part.tool_call_id) for part in parts]
        approvals: dict[str, ToolApproved | ToolDenied] = {}
        for part, request in zip(parts, await self.ask_about(uses), strict=True):
            if request.end is not End.APPROVED:
                approvals[part.tool_call_id] = ToolDenied(request.told)
            elif request.edited_by is not None:
                approvals[part.tool_call_id] = ToolApproved(override_args=request.input)
            else:
                approvals[part.tool_call_id] = ToolApproved()
        return requests.build_results(approvals=approvals)
