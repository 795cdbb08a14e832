"""Programs with a token in the load: they call, withdraw and ask again through any process.

Each call has a text of its own, so what was made twice, lost, told wrongly or told to another is seen.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

import httpx

from tests.torture.nods import PATIENCE, PAUSE, TOKENS, Nods

Press = Callable[..., Awaitable[None]]

_WAIT_SECONDS = 3
_OPEN = ("waiting", "running")
_TIMES = {"approve": 0.6, "decline": 0.2, "cancel": 0.2}
_STATES: Mapping[str, str] = {
    "succeeded": "succeeded",
    "declined": "declined",
    "expired": "expired",
    "cancelled": "cancelled",
    "withdrawn": "cancelled",
    "undeliverable": "cancelled",
    "failed": "failed",
    "outcome_unknown": "failed",
}
"""The state of a proposal behind each end that an agent can be told."""


class Token(NamedTuple):
    """A token, the name of its holder, and its label, where it is an agent's."""

    name: str
    secret: str
    label: str = ""


class Agents:
    """One agent for each story that asks; a second one, of someone else, looks at what is not its own."""

    def __init__(self, nods: Nods, press: Press) -> None:
        self._nods, self._press = nods, press
        self._client = httpx.AsyncClient(timeout=30)

    async def close(self) -> None:
        await self._client.aclose()

    async def live(self, name: str, dice: random.Random) -> str:
        """A call arrives twice, is decided or withdrawn, and its end is told to its agent alone."""
        mine, other = await self._make(name, "ana", dice), await self._make(f"{name} other", "ben", dice)
        text = f"agent {name}"
        path, body = "/api/tools/mark/calls", {"arguments": {"text": text}, "reason": "Because."}
        key = {"Idempotency-Key": text} if dice.random() < 0.5 else {}
        made = await asyncio.gather(*(self._insist(dice, mine, "POST", path, body, key) for _ in range(2)))
        found = {answer["call"]["id"] for _, answer in made if "call" in answer}
        if len(found) != 1:
            raise AssertionError(f"{name} was made {len(found)} times: {made}")
        [call_id] = found
        [ident] = await self._nods.column("SELECT proposal_id FROM agent_call WHERE id = :id", id=call_id)
        verb = dice.choices(list(_TIMES), list(_TIMES.values()))[0]
        await asyncio.gather(*self._decide(verb, mine, call_id, ident, dice))
        told = await self._wait_for_end(dice, mine, call_id, name)
        await self._check(ident, call_id, text, told)
        await self._check_others(dice, other, call_id, ident, text)
        return f"{told['end']} as an agent's"

    async def end(self, name: str, dice: random.Random) -> str:
        """Calls are made in the moment in which their token is ended; none of them is left open."""
        mine = await self._make(name, "ana", dice)
        path, ends = "/api/tools/mark/calls", f"/api/agents/{mine.label}"
        calls = [
            self._insist(dice, mine, "POST", path, {"arguments": {"text": f"ended {name} {number}"}})
            for number in range(3)
        ]
        await asyncio.gather(*calls, self._insist(dice, Token("ana", TOKENS["ana"]), "DELETE", ends))
        query = "SELECT id FROM proposal WHERE agent = :agent AND state = 'proposed'"
        if left := await self._nods.column(query, agent=f"{mine.name}/{mine.label}"):
            raise AssertionError(f"the token of {name} has ended, and {left} wait")
        status, _ = await self._insist(dice, mine, "GET", "/api/tools")
        if status != HTTPStatus.UNAUTHORIZED:
            raise AssertionError(f"the token of {name} has ended, and opens with {status}")
        return "ended with its calls"

    def _decide(
        self, verb: str, mine: Token, call_id: str, ident: str, dice: random.Random
    ) -> list[Awaitable[object]]:
        """Two people press the same, or the agent withdraws it while one approves."""
        if verb == "cancel":
            withdrawal = self._insist(dice, mine, "POST", f"/api/calls/{call_id}/cancel", {})
            return [self._press("ben", "approve", ident, dice), withdrawal]
        return [self._press(who, verb, ident, dice) for who in ("ben", "cleo")]

    async def _wait_for_end(
        self, dice: random.Random, mine: Token, call_id: str, name: str
    ) -> dict[str, Any]:
        path, end = f"/api/calls/{call_id}?wait={_WAIT_SECONDS}", time.monotonic() + PATIENCE
        while time.monotonic() < end:
            status, answer = await self._insist(dice, mine, "GET", path)
            if status != HTTPStatus.OK:
                raise AssertionError(f"{name} was lost to its agent: {status} {answer}")
            call: dict[str, Any] = answer["call"]
            if call["end"] not in _OPEN:
                return call
        raise AssertionError(f"{name} did not end in {PATIENCE:.0f} s")

    async def _check(self, ident: str, call_id: str, text: str, told: Mapping[str, Any]) -> None:
        """Raise AssertionError where an agent was told what is not so, or its call is there twice."""
        [state] = await self._nods.column("SELECT state FROM proposal WHERE id = :ident", ident=ident)
        if _STATES[told["end"]] != state:
            raise AssertionError(f"{ident} is {state}, and its agent was told {told['end']}")
        if told["end"] == "succeeded" and f"Marked {text}." not in told["text"]:
            raise AssertionError(f"{ident} succeeded, and its agent was told: {told['text']}")
        query = "SELECT id FROM proposal WHERE CAST(arguments AS text) LIKE :named"
        same = await self._nods.column(query, named=f'%"{text}"%')
        if same != [ident]:
            raise AssertionError(f"the call {call_id} led to {same}")
        row = "SELECT CAST(result AS text) FROM proposal WHERE id = :ident"
        if [each for each in await self._nods.column(row, ident=ident) if "Marked" in each]:
            raise AssertionError(f"{ident} shows what is for its agent alone")

    async def _check_others(
        self, dice: random.Random, other: Token, call_id: str, ident: str, text: str
    ) -> None:
        """Raise AssertionError where another agent, or who decides, is told what a call said."""
        for path in (f"/api/calls/{call_id}", f"/api/calls/{call_id}?wait=1"):
            status, answer = await self._insist(dice, other, "GET", path)
            if status != HTTPStatus.NOT_FOUND:
                raise AssertionError(f"another agent was told of {call_id}: {status} {answer}")
        decides = Token("cleo", TOKENS["cleo"])
        status, answer = await self._insist(dice, decides, "GET", f"/api/proposals/{ident}")
        if status == HTTPStatus.OK and f"Marked {text}" in str(answer):
            raise AssertionError(f"who decides was told what {ident} said")

    async def _make(self, name: str, who: str, dice: random.Random) -> Token:
        label = "agent-" + "".join(each if each.isalnum() else "-" for each in name)
        body = {"name": label, "tools": ["mark"], "lasts": "1d"}
        status, made = await self._insist(dice, Token(who, TOKENS[who]), "POST", "/api/agents", body)
        if status != HTTPStatus.CREATED:
            raise AssertionError(f"no token for {label}: {status} {made}")
        return Token(label, made["token"], made["label"])

    async def _insist(
        self,
        dice: random.Random,
        token: Token,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        more: Mapping[str, str] | None = None,
    ) -> tuple[int, dict[str, Any]]:
        """Ask one process after the other until one answers; returns the status and what it said.

        A call that came with another one at the same time is made again, as its answer says.
        """
        headers = {"Authorization": f"Bearer {token.secret}", **(more or {})}
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(httpx.HTTPError):
                url = f"http://127.0.0.1:{self._nods.port(dice)}{path}"
                answer = await self._client.request(method, url, json=body, headers=headers)
                again = answer.status_code in (HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS)
                if not (answer.is_server_error or again):
                    return answer.status_code, answer.json()
            await asyncio.sleep(PAUSE)
        raise AssertionError(f"{path} was not answered in {PATIENCE:.0f} s")
