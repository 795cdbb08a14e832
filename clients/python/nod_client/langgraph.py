"""LangGraph: each interrupt of a graph is put to people, and the graph resumes with their decision.

::

    result = await Approvals(AsyncNod()).run(graph, {"version": "1.4"}, config)

In a node, ``interrupt({"version": "1.4"})`` returns ``{"approved": True, "value": …, "told": "Ana approved
it."}``, with the value that people approved, or ``{"approved": False, "end": "declined", "told": "Ana
declined it."}``. LangChain's ``HumanInTheLoopMiddleware`` gets the decisions in its own form.

A graph resumes from a checkpoint: LangGraph runs the interrupted node again, and each ``interrupt`` in it
returns the next of the answers that the checkpoint holds.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

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
    """The approvals of one thread, which is LangGraph's word for a conversation with a graph.

    The graph needs a checkpointer.
    """

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
        interrupt_ids: list[str] = []  # of each use, in the order of ``uses``
        uses: list[Use] = []
        for interrupt in interrupts:
            for position, wanted in enumerate(_list_wanted(interrupt.value)):
                interrupt_ids.append(interrupt.id)
                call = f"{interrupt.id}/{passed}/{position}"
                uses.append(Use(wanted.tool_name, wanted.input, call, wanted.summary))
        requests_by_interrupt: dict[str, list[Request]] = {interrupt.id: [] for interrupt in interrupts}
        for interrupt_id, request in zip(interrupt_ids, await self.ask_about(uses), strict=True):
            requests_by_interrupt[interrupt_id].append(request)
        return {
            interrupt.id: _make_answer(interrupt, requests_by_interrupt[interrupt.id])
            for interrupt in interrupts
        }


async def _count_answered(graph: Any, config: Any) -> int:
    """Return the number of interrupts of the current checkpoint that were answered before."""
    saver = graph.checkpointer
    checkpoint = await saver.aget_tuple(config) if hasattr(saver, "aget_tuple") else None
    if checkpoint is None:
        return 0
    count = 0
    for _, channel, answers in checkpoint.pending_writes or ():
        if channel == _RESUME_CHANNEL and isinstance(answers, list):
            count += len(answers)
    return count


class _WantedUse(NamedTuple):
    """One thing that an interrupt asks for, as the use of a tool."""

    tool_name: str
    input: Json
    summary: str | None = None


def _list_wanted(value: Any) -> list[_WantedUse]:
    """Return the things that one interrupt asks for, by its value.

    The value is that of LangChain's middleware (several tool calls), of a single tool call, or a node's own.
    """
    match value:
        case {"action_requests": actions}:
            return [_WantedUse(action["name"], action["args"]) for action in actions]
        case {"type": "tool_approval", "name": name, "args": given}:
            return [_WantedUse(name, given)]
        case dict():
            return [_WantedUse("interrupt", value, "Continue?")]
    text = str(value)
    summary = text if 0 < len(text) <= _LONGEST_SUMMARY else "Continue?"
    return [_WantedUse("interrupt", {"value": value}, summary)]


def _make_answer(interrupt: Interrupt, requests: Sequence[Request]) -> Any:
    """Return the value to resume an interrupt with. ``requests``: one for each thing that it asks for."""
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
