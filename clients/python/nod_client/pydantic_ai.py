"""pydantic-ai: tools with ``requires_approval=True`` are put to people.

Inline, the run waits for them::

    agent = Agent(model, capabilities=[HandleDeferredToolCalls(handler=Approvals(AsyncNod()))])

or, where a run ends with ``DeferredToolRequests``, between two runs::

    asking = Approvals(AsyncNod(), key="order-7")
    results = await asking.results(result.output, result.all_messages())
    await agent.run(message_history=result.all_messages(), deferred_tool_results=results)
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext, ToolApproved, ToolDenied
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ToolCallPart

from nod_client.asker import Asker, Use
from nod_client.request import End, Request

_NO_HISTORY = "With a key, say where in the run this is: results(result.output, result.all_messages())."


class Approvals(Asker):
    """Implements the handler of ``HandleDeferredToolCalls``. Calls that are no approvals are left alone."""

    async def __call__(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        # a run that is started again has new timestamps of its own, but the same messages before it
        before = [message for message in ctx.messages if message.run_id != ctx.run_id]
        return await self._decide(requests, f"{_digest_messages(before)}/{ctx.run_step}")

    async def results(
        self, requests: DeferredToolRequests, history: Sequence[ModelMessage] = ()
    ) -> DeferredToolResults:
        """Return the approvals, with people's edits, and the denials, in words for the model.

        ``history``: the run's ``all_messages()``. Raises ValueError where there is a ``key`` and no history:
        a call that has the id and the arguments of an earlier one could not be told from it.
        """
        if self.key is not None and not history:
            raise ValueError(_NO_HISTORY)
        return await self._decide(requests, _digest_messages(history))

    async def _decide(self, requests: DeferredToolRequests, moment: str) -> DeferredToolResults:
        """Ask people about the calls. ``moment``: the place in the run's history, as in `Use`."""
        parts = requests.approvals
        uses = [_use(part, f"{moment}/{position}") for position, part in enumerate(parts)]
        approvals: dict[str, ToolApproved | ToolDenied] = {}
        for part, request in zip(parts, await self.ask_about(uses), strict=True):
            approvals[part.tool_call_id] = _answer(request)
        return requests.build_results(approvals=approvals)


def _use(part: ToolCallPart, moment: str) -> Use:
    return Use(part.tool_name, part.args_as_dict(), part.tool_call_id, moment=moment)


def _answer(request: Request) -> ToolApproved | ToolDenied:
    if request.end is not End.APPROVED:
        return ToolDenied(request.told)
    if request.edited_by is None:
        return ToolApproved()
    return ToolApproved(override_args=request.input)


def _digest_messages(messages: Sequence[ModelMessage]) -> str:
    return sha256(ModelMessagesTypeAdapter.dump_json(list(messages))).hexdigest()
