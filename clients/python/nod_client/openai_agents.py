"""OpenAI Agents SDK: calls of tools with ``needs_approval=True`` are put to people.

::

    result = await Approvals(AsyncNod()).run(agent, "Deploy 1.4")

The SDK runs a call only with the arguments that the model gave. So a call that people approved with other
arguments is rejected, in words that tell the model the new arguments. When the model then calls the tool with
exactly these, the call runs unasked, once.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from agents import Agent, Runner, RunResult, RunState
from agents.items import ToolApprovalItem

from nod_client.asker import Asker, Use
from nod_client.request import End

_EDITED = "{who} approved this with other arguments, so it has not run. Call {tool} with exactly these: {new}"


@dataclass(frozen=True)
class Approvals(Asker):
    """The approvals of one run; ``wait``, ``key`` and ``ttl`` as in `Asker`."""

    _edited: list[tuple[str, Any]] = field(default_factory=list)
    """The calls that people approved with other arguments: the tool's name and the new arguments."""

    async def run(self, agent: Agent[Any], given: Any, **more: Any) -> RunResult:
        """Call ``Runner.run``, again after each decision, until no call waits for approval.

        ``given``: the input of the run, or the state of an earlier run.
        """
        result = await Runner.run(agent, given, **more)
        while result.interruptions:
            state = result.to_state()
            await self.decide(state)
            result = await Runner.run(agent, state, **more)
        return result

    async def decide(self, state: RunState[Any, Any]) -> None:
        """Ask people about the calls that the state waits for, and approve or reject each in the state.

        Store the state before, if the run is to outlive your process.
        """
        asked = list(self._list_undecided(state))
        moment = _digest_state(state)
        uses = [
            Use(item.name or "", _read_input(item), item.call_id or "", moment=f"{moment}/{position}")
            for position, item in enumerate(asked)
        ]
        for item, request in zip(asked, await self.ask_about(uses), strict=True):
            if request.end is not End.APPROVED:
                state.reject(item, rejection_message=request.told)
            elif request.edited_by is None:
                state.approve(item)
            else:
                self._edited.append((item.name or "", request.input))
                given = json.dumps(request.input, ensure_ascii=False)
                words = _EDITED.format(who=request.decided_by, tool=item.name, new=given)
                state.reject(item, rejection_message=words)

    def _list_undecided(self, state: RunState[Any, Any]) -> Iterator[ToolApprovalItem]:
        """Yield the calls to ask about, and approve here the calls that people have approved as edited."""
        for item in state.get_interruptions():
            call = (item.name or "", _read_input(item))
            if call in self._edited:
                self._edited.remove(call)
                state.approve(item)
            else:
                yield item


def _read_input(item: ToolApprovalItem) -> dict[str, Any]:
    """Return the arguments of a call; arguments that are no JSON object become the field ``input``."""
    try:
        given = json.loads(item.arguments or "{}")
    except ValueError:
        given = item.arguments
    return given if isinstance(given, dict) else {"input": given}


def _digest_state(state: RunState[Any, Any]) -> str:
    """Return a key that tells this turn of the run from its other turns; a stored state has the same key."""
    stored = state.to_json()
    parts = [stored["original_input"], stored["current_turn"]]
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
