"""The exchanges with Nod, without a socket: what is sent, what is sent again, and what replies mean.

An exchange asks people, waits for the end, or withdraws. Each is a generator (`Steps`) that the two clients
of ``client.py`` run. It yields a `Call` (an HTTP request), and the client sends back the `Reply` or the
transport's error. Or it yields a number of seconds to pause, and the client sends back None. It returns the
result.
"""

import json
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

import httpx

from nod_client.errors import Refused, Unreachable, Unsendable
from nod_client.request import End, Json, Request
from nod_client.tool_call import ToolCall

LONGEST_WAIT = 60.0  # seconds that one call may wait for people; the API allows no more
FIRST_PATIENCE = 30.0  # seconds for the first contact, when a wrong address is likelier than a restart
MAX_REPLY_BYTES = 16 * 1024 * 1024
_MARGIN = 15.0  # seconds that an answer may take beyond its wait
_CALL_SECONDS = 120.0  # the time that a tool which only reads may take
_TEMPORARY_STATUSES = frozenset({408, 429, 500, 502, 503, 504})  # the same call may succeed later

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request; ``timeout`` in seconds."""

    method: str
    path: str
    timeout: float
    content: bytes | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP response, read to its end."""

    status: int
    headers: httpx.Headers
    body: bytes


class Reading:
    """The body of a response while it arrives, limited in size and time.

    ``timeout``: seconds for all of it, so that a server which sends a byte now and then is given up on.
    """

    def __init__(self, timeout: float, clock: Callable[[], float]) -> None:
        self._chunks: list[bytes] = []
        self._bytes_left = MAX_REPLY_BYTES
        self._clock = clock
        self._deadline = clock() + timeout

    def add(self, chunk: bytes) -> None:
        """Add a chunk. Raises httpx.ReadError if the body is too large, ReadTimeout if it is late."""
        self._bytes_left -= len(chunk)
        if self._bytes_left < 0:
            raise httpx.ReadError(f"it sent more than {MAX_REPLY_BYTES} bytes")
        if self._clock() > self._deadline:
            raise httpx.ReadTimeout("its answer took too long")
        self._chunks.append(chunk)

    def finish(self, response: httpx.Response) -> Reply:
        return Reply(response.status_code, response.headers, b"".join(self._chunks))


Answer = Reply | httpx.RequestError | None
"""The client's answer to a step: a reply or an error for a `Call`, None after a pause."""
Steps = Generator[Call | float, Answer, T]


@dataclass(frozen=True)
class Exchange:
    """The exchanges with one Nod."""

    url: str
    patience: float
    """Seconds that Nod may be away, such as for an upgrade, before `Unreachable` is raised."""
    clock: Callable[[], float] = time.monotonic

    def open_request(self, path: str, body: Mapping[str, Any], key: str | None) -> Steps[Request]:
        """Ask, and return the open request; the same key means the same request. Raises Unsendable."""
        fields = {name: value for name, value in body.items() if value is not None}
        headers = {"Content-Type": "application/json", "Idempotency-Key": _header_key(key or str(uuid4()))}
        call = Call("POST", path, _MARGIN, _encode(fields), headers=headers)
        return (yield from self._send_for_request(call, min(self.patience, FIRST_PATIENCE)))

    def look_up(self, request_id: str, wait: float = 0) -> Steps[Request]:
        """Return a request as it is now, or as soon as it ends within ``wait`` seconds."""
        path = f"/api/approvals/{_require_id(request_id)}"
        call = Call("GET", path, wait + _MARGIN, params={"wait": f"{wait:g}"} if wait else {})
        request = yield from self._send_for_request(call, self.patience)
        if request.id != request_id:
            raise Refused(f"Nod at {self.url} answered about another request.", httpx.codes.OK)
        return request

    def await_end(self, request: Request, wait: float | None) -> Steps[Request]:
        """Return the request once it ended, or as it is after ``wait`` seconds; None: without a limit."""
        deadline = None if wait is None else self.clock() + wait
        while request.end is End.WAITING and (deadline is None or deadline > self.clock()):
            began_at = self.clock()
            seconds = LONGEST_WAIT if deadline is None else min(LONGEST_WAIT, deadline - began_at)
            request = yield from self.look_up(request.id, seconds)
            if request.end is End.WAITING and self.clock() - began_at < min(seconds, 1.0):
                yield min(seconds, 1.0)  # Nod is stopping, so it did not wait
        return request

    def withdraw(self, request_id: str) -> Steps[Request]:
        """Withdraw a request, and return it. A decision that came first stays as it is."""
        path = f"/api/proposals/{_require_id(request_id)}/cancel"
        try:
            yield from self._send(Call("POST", path, _MARGIN), self.patience)
        except Refused as error:
            if error.status != httpx.codes.CONFLICT:
                raise
        return (yield from self.look_up(request_id))

    def ask(self, path: str, body: Mapping[str, Any], key: str | None, wait: float | None) -> Steps[Request]:
        """Ask, and wait for the end.

        A request without a key is withdrawn after the wait, because no one can come back for its answer.
        """
        opened = yield from self.open_request(path, body, key)
        request = yield from self.await_end(opened, wait)
        if request.end is End.APPROVED and request.edited_by is None:
            self._check_contents(request, body)
        if request.end is End.WAITING and key is None:
            request = yield from self.withdraw(request.id)
        return request

    def call_tool(
        self, tool: str, arguments: Mapping[str, Any], key: str | None, reason: str, wait: float | None
    ) -> Steps[ToolCall]:
        """Call a tool, and wait ``wait`` seconds for its end; None: wait without a limit."""
        path = f"/api/tools/{quote(tool, safe='')}/calls"
        headers = {"Content-Type": "application/json", "Idempotency-Key": _header_key(key or str(uuid4()))}
        body = _encode({"arguments": dict(arguments), "reason": reason})
        call = Call("POST", path, _CALL_SECONDS, body, headers=headers)
        tool_call = yield from self._send_for_call(call, min(self.patience, FIRST_PATIENCE))
        return (yield from self.await_call_end(tool_call, wait))

    def look_up_call(self, call_id: str, wait: float = 0) -> Steps[ToolCall]:
        """Return a call as it is now, or as soon as it ends within ``wait`` seconds."""
        params = {"wait": f"{wait:g}"} if wait else {}
        call = Call("GET", f"/api/calls/{_require_id(call_id)}", wait + _MARGIN, params=params)
        return (yield from self._send_for_call(call, self.patience))

    def await_call_end(self, tool_call: ToolCall, wait: float | None) -> Steps[ToolCall]:
        """Return a call once it ended, or as it is after ``wait`` seconds; None: without a limit."""
        deadline = None if wait is None else self.clock() + wait
        while tool_call.is_open and (deadline is None or deadline > self.clock()):
            began_at = self.clock()
            seconds = LONGEST_WAIT if deadline is None else min(LONGEST_WAIT, deadline - began_at)
            tool_call = yield from self.look_up_call(tool_call.id, seconds)
            if tool_call.is_open and self.clock() - began_at < min(seconds, 1.0):
                yield min(seconds, 1.0)  # Nod is stopping, so it did not wait
        return tool_call

    def withdraw_call(self, call_id: str) -> Steps[ToolCall]:
        """Withdraw a call, and return it. A decision that came first stays as it is."""
        call = Call("POST", f"/api/calls/{_require_id(call_id)}/cancel", _MARGIN)
        return (yield from self._send_for_call(call, self.patience))

    def _send_for_call(self, call: Call, patience: float) -> Steps[ToolCall]:
        body = yield from self._send(call, patience)
        try:
            return ToolCall.read(body["call"])
        except (KeyError, TypeError, ValueError) as error:
            raise Refused(
                f"Nod at {self.url} answered with a call this client can't read ({error!r}). "
                "Install the client of that Nod's release.",
                httpx.codes.OK,
            ) from None

    def _check_contents(self, request: Request, body: Mapping[str, Any]) -> None:
        """Raise Refused if a request that no one edited has other contents than were sent."""
        for name in ("tool_name", "input"):
            if name in body and request.arguments.get(name) != json.loads(_encode(body[name])):
                raise Refused(f"Nod at {self.url} answered about other contents.", httpx.codes.OK)

    def _send_for_request(self, call: Call, patience: float) -> Steps[Request]:
        body = yield from self._send(call, patience)
        try:
            return Request.read(body["proposal"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise Refused(
                f"Nod at {self.url} answered with a request this client can't read ({error!r}). "
                "Install the client of that Nod's release.",
                httpx.codes.OK,
            ) from None

    def _send(self, call: Call, patience: float) -> Steps[Json]:
        """Send a call until it is answered, and return the answer's JSON.

        Raises Refused, or Unreachable if there was no answer for ``patience`` seconds.
        """
        deadline = self.clock() + patience
        for pause in _list_pauses():
            answer = yield call
            if isinstance(answer, Reply) and answer.status not in _TEMPORARY_STATUSES:
                return _read_body(answer, self.url)
            seconds_left = deadline - self.clock()
            if seconds_left <= 0:
                raise Unreachable(
                    f"Nod at {self.url} can't be reached: {_explain(answer)}. Tried for {patience:g} s. "
                    "Is `nod run` up, and NOD_URL right?"
                )
            yield min(seconds_left, max(pause, _read_retry_after(answer)))
        raise AssertionError("pauses do not end")


def _list_pauses() -> Iterator[float]:
    """Yield growing pauses between attempts, without end."""
    pause = 0.5
    while True:
        yield pause
        pause = min(pause * 2, 10.0)


def _encode(body: Any) -> bytes:
    """Return the body as JSON. Raises Unsendable for what JSON can't hold, half a surrogate pair included."""
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Unsendable(f"This can't be asked, since JSON can't hold it: {_describe(error)}.") from None


def _describe(error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return "it has half a character (a lone surrogate)"
    return str(error)[:200]


def _header_key(key: str) -> str:
    """Return the key, or its digest if a header can't hold it."""
    if key.isascii() and key.isprintable() and key == key.strip():
        return key
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _read_body(answer: Reply, url: str) -> Json:
    """Return the JSON of a reply. Raises Refused for an error, or if the reply is not from Nod."""
    status = answer.status
    if status == httpx.codes.UNAUTHORIZED:
        raise Refused("Nod does not know this token. NOD_TOKEN must be one of NOD_HTTP_TOKENS.", status)
    try:
        body = json.loads(answer.body)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or "ok" not in body:
        raise Refused(f"What answers at {url} is not Nod (HTTP {status}). Check NOD_URL.", status)
    if body["ok"] is not True:
        words = str(body.get("error", f"HTTP {status}"))
        fields = body.get("fields")
        raise Refused(words, status, fields if isinstance(fields, dict) else None)
    return body


def _explain(answer: Answer) -> str:
    if isinstance(answer, Reply):
        return f"HTTP {answer.status} {answer.body[:200].decode(errors='replace')}".strip()
    return f"{type(answer).__name__} {answer}".strip()


def _read_retry_after(answer: Answer) -> float:
    """Return the seconds that ``Retry-After`` asks to wait; 0 without it."""
    if not isinstance(answer, Reply):
        return 0.0
    seconds = answer.headers.get("retry-after", "")
    return float(seconds) if seconds.isdecimal() else 0.0


def _require_id(ident: str) -> str:
    """Return an id, which becomes a part of a path. Raises ValueError for anything else."""
    if not ident.isalnum():
        raise ValueError(f"{ident!r} is not the id of a request.")
    return ident
