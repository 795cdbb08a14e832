"""LangGraph: each interrupt of a graph is put to people, and the graph resumes with their decision.

::

    result = await Approvals(AsyncNod()).run(graph, {"version": "1.4"}, config)

In a node, ``interrupt({"version": "1.4"})`` returns ``{"approved": True, "value": …, "told": "Ana approved
it."}``, with the value that people approved, or ``{"approved": False, "end": "declined", "told": "Ana
declined it."}``. LangChain's ``HumanInTheLoopMiddleware`` gets the decisions in its own form.
"""

import json
from collections.abc import Sequence
from itertools import chain, islice
from typing import Any

from langgraph.types import Command, Interrupt

from nod_client.asker import Asker, Use
from nod_client.errors import EditDoesNotFit
from nod_client.request import End, Request

Json = dict[str, Any]
_LONGEST_SUMMARY = 300  # characters; the API allows no more
_RESUME_CHANNEL = "__resume__"  # where LangGraph stores the answers of a checkpoint
_NO_COUNT = "With a key, say how many of this checkpoint were answered before: answers(interrupts, passed=0)."
_NO_EDITS = "{who} approved this with other arguments, which {tool} does not accept, so it has not run."


class Approvals(Asker):
    """The approvals of one thread, as LangGraph calls a resumable run. The graph needs a checkpointer."""

    async def run(self, graph: Any, given: Any, config: Any, **more: Any) -> Any:
        """Call ``graph.ainvoke``, again after each decision, until the graph has ended.

        ``given``: the graph's input; None continues the thread.
        """
        result = await graph.ainvoke(given, config, **more)
        while interrupts := (await graph.aget_state(config)).interrupts:
            answers = await self.answers(interrupts, await _count_answered(graph, config))
            result = await graph.ainvoke(Command(resume=answers), config, **more)
        return result

    async def answers(self, interrupts: Sequence[Interrupt], passed: int | None = None) -> Json:
        """Put the interrupts to people, and return the values to resume with, by the interrupt's id.

        ``passed``: the number of interrupts of this checkpoint that were answered before. A node's second
        interrupt has the id of its first, and only the number tells them apart. Raises ValueError if there is
        a ``key`` and no number.
        """
        if self.key is not None and passed is None:
            raise ValueError(_NO_COUNT)
        uses_by_interrupt = [_list_uses(each, f"{each.id}/{passed}") for each in interrupts]
        requests = iter(await self.ask_about([*chain.from_iterable(uses_by_interrupt)]))
        answers = {}
        for interrupt, uses in zip(interrupts, uses_by_interrupt, strict=True):
            answers[interrupt.id] = _make_answer(interrupt, [*islice(requests, len(uses))])
        return answers


async def _count_answered(graph: Any, config: Any) -> int:
    """Return the number of interrupts of the current checkpoint that were answered before."""
    saver = graph.checkpointer
    checkpoint = await saver.aget_tuple(config) if hasattr(saver, "aget_tuple") else None
    if checkpoint is None:
        return 0
    writes = checkpoint.pending_writes or ()
    answers = [value for _, channel, value in writes if channel == _RESUME_CHANNEL]
    return sum(len(value) for value in answers if isinstance(value, list))


def _list_uses(interrupt: Interrupt, call: str) -> list[Use]:
    """Return what an interrupt asks for: calls of LangChain's middleware, one call, or a node's value."""
    match interrupt.value:
        case {"action_requests": actions}:
            numbered = enumerate(actions)
            return [Use(action["name"], action["args"], f"{call}/{number}") for number, action in numbered]
        case {"type": "tool_approval", "name": name, "args": given}:
            return [Use(name, given, f"{call}/0")]
        case dict() as value:
            return [Use("interrupt", value, f"{call}/0", "Continue?")]
    text = str(interrupt.value)
    summary = text if 0 < len(text) <= _LONGEST_SUMMARY else "Continue?"
    return [Use("interrupt", {"value": interrupt.value}, f"{call}/0", summary)]


def _make_answer(interrupt: Interrupt, requests: Sequence[Request]) -> Any:
    """Return the value to resume an interrupt with. ``requests``: one for each of its uses."""
    match interrupt.value:
        case {"action_requests": actions, "review_configs": reviews}:
            editable = {review["action_name"] for review in reviews if "edit" in review["allowed_decisions"]}
            decisions = []
            for action, request in zip(actions, requests, strict=True):
                tool = action["name"]
                decisions.append(_make_decision(tool, request, is_editable=tool in editable))
            return {"decisions": decisions}
        case {"type": "tool_approval", "name": tool}:
            schema_text = json.dumps(interrupt.response_schema)  # the JSON schema of the answer
            return _make_decision(tool, requests[0], is_editable='"edit"' in schema_text)
    [request] = requests
    if request.end is not End.APPROVED:
        return {"approved": False, "end": str(request.end), "told": request.told}
    value = request.input
    if not isinstance(interrupt.value, dict):
        if value.keys() != {"value"}:
            raise EditDoesNotFit(f"{request.edited_by} removed the value that the graph continues with.")
        value = value["value"]
    return {"approved": True, "value": value, "told": request.told}


def _make_decision(tool: str, request: Request, *, is_editable: bool) -> Json:
    """Return a decision in the form of LangChain's middleware; an edit that it does not take is a refusal."""
    if request.end is not End.APPROVED:
        return {"type": "reject", "message": request.told}
    if request.edited_by is None:
        return {"type": "approve"}
    if not is_editable:
        return {"type": "reject", "message": _NO_EDITS.format(who=request.decided_by, tool=tool)}
    return {"type": "edit", "edited_action": {"name": tool, "args": request.input}}
