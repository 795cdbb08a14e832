"""LangGraph: what a graph interrupts for is put to people.

::

    result = await Approvals(AsyncNod()).run(graph, {"version": "1.4"}, config)

``interrupt({"version": "1.4"})`` returns ``{"approved": True, "value": …, "told": "Ana approved it."}``, with
what people approved, or ``{"approved": False, "end": "declined", "told": "Ana declined it."}``. What
LangChain's ``HumanInTheLoopMiddleware`` interrupts for is answered in its own way.
"""

import json
from collections.abc import Sequence
from typing import Any

from langgraph.types import Command, Interrupt

from nod_client.asker import Asker, Use
from nod_client.errors import EditDoesNotFit
from nod_client.request import End, Request

Json = dict[str, Any]
_LONGEST_SUMMARY = 300  # characters; the API allows no more
_NO_COUNT = "With a key, say how many of this checkpoint were answered before: answers(interrupts, passed=0)."
_NO_EDITS = "{who} approved this with other arguments, which {tool} does not accept, so it has not run."


class Approvals(Asker):
    """One for each thread. The graph needs a checkpointer; interrupts are told apart by the checkpoint."""

    async def run(self, graph: Any, given: Any, config: Any, **more: Any) -> Any:
        """``graph.ainvoke``, again after each decision, to the end; ``given`` None continues the thread."""
        result = await graph.ainvoke(given, config, **more)
        while interrupts := (await graph.aget_state(config)).interrupts:
            answers = await self.answers(interrupts, await _passed(graph, config))
            result = await graph.ainvoke(Command(resume=answers), config, **more)
        return result

    async def answers(self, interrupts: Sequence[Interrupt], passed: int | None = None) -> Json:
        """Return the values to resume with, by interrupt.

        ``passed``: the number of interrupts of this checkpoint that were answered before.

        A node's second interrupt has the id of its first, so the count is what tells them apart. Raises
        ValueError where there is a ``key`` and no count.
        """
        if self.key is not None and passed is None:
            raise ValueError(_NO_COUNT)
        asked = [
            (interrupt, Use(name, given, f"{interrupt.id}/{passed}/{at}", summary))
            for interrupt in interrupts
            for at, (name, given, summary) in enumerate(_wanted(interrupt.value))
        ]
        requests = await self.ask_about([use for _, use in asked])
        decided: dict[str, list[Request]] = {interrupt.id: [] for interrupt in interrupts}
        for (interrupt, _), request in zip(asked, requests, strict=True):
            decided[interrupt.id].append(request)
        return {each.id: _answer(each, decided[each.id]) for each in interrupts}


async def _passed(graph: Any, config: Any) -> int:
    saver = graph.checkpointer
    found = await saver.aget_tuple(config) if hasattr(saver, "aget_tuple") else None
    writes = found.pending_writes or () if found else ()
    return sum(len(each) for _, channel, each in writes if channel == "__resume__" and isinstance(each, list))


def _wanted(value: Any) -> list[tuple[str, Json, str | None]]:
    """Tool, input and summary of each thing that one interrupt asks for."""
    match value:
        case {"action_requests": actions}:
            return [(action["name"], action["args"], None) for action in actions]
        case {"type": "tool_approval", "name": name, "args": given}:
            return [(name, given, None)]
        case dict():
            return [("interrupt", value, "Continue?")]
    text = str(value)
    summary = text if 0 < len(text) <= _LONGEST_SUMMARY else "Continue?"
    return [("interrupt", {"value": value}, summary)]


def _answer(interrupt: Interrupt, requests: Sequence[Request]) -> Any:
    match interrupt.value:
        case {"action_requests": _, "review_configs": reviews}:
            edits = {each["action_name"] for each in reviews if "edit" in each["allowed_decisions"]}
            tools = [action["name"] for action in interrupt.value["action_requests"]]
            asked = zip(tools, requests, strict=True)
            return {"decisions": [_decision(tool, each, edits=tool in edits) for tool, each in asked]}
        case {"type": "tool_approval", "name": tool}:
            accepted = json.dumps(interrupt.response_schema)  # a JSON schema of the answer
            return _decision(tool, requests[0], edits='"edit"' in accepted)
    [request] = requests
    if request.end is not End.APPROVED:
        return {"approved": False, "end": str(request.end), "told": request.told}
    value = request.input
    if not isinstance(interrupt.value, dict):
        if value.keys() != {"value"}:
            raise EditDoesNotFit(f"{request.edited_by} removed the value that the graph continues with.")
        value = value["value"]
    return {"approved": True, "value": value, "told": request.told}


def _decision(tool: str, request: Request, *, edits: bool) -> Json:
    """One decision of LangChain's middleware."""
    if request.end is not End.APPROVED:
        return {"type": "reject", "message": request.told}
    if request.edited_by is None:
        return {"type": "approve"}
    if not edits:
        return {"type": "reject", "message": _NO_EDITS.format(who=request.decided_by, tool=tool)}
    return {"type": "edit", "edited_action": {"name": tool, "args": request.input}}
