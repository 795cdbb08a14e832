"""The exchange with Nod without a socket, sending again included: generators that both clients run.

A generator yields a `Call` and is given the `Reply` or the transport's error, or it yields seconds to pause.
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
FIRST_PATIENCE = 30.0  # seconds for the first contact, where a wrong address is likelier than a restart
MAX_REPLY_BYTES = 16 * 1024 * 1024
_MARGIN = 15.0  # seconds that an answer may take beyond its wait
_CALL_SECONDS = 120.0  # that a tool which only reads may take
_PASSING = frozenset({408, 429, 500, 502, 503, 504})

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
    """One HTTP answer, read to its end."""

    status: int
    headers: httpx.Headers
    body: bytes


class Reading:
    """The body of one answer while it comes in, bounded in size and time.

    ``timeout`` in seconds, for all of it: a server that sends a byte now and then holds no one for longer.
    """

    def __init__(self, timeout: float, clock: Callable[[], float]) -> None:
        self._chunks: list[bytes] = []
        self._left = MAX_REPLY_BYTES
        self._clock = clock
        self._due = clock() + timeout

    def add(self, chunk: bytes) -> None:
        """Keep a chunk. Raises httpx.ReadError where the body is too large, ReadTimeout where it is late."""
        self._left -= len(chunk)
        if self._left < 0:
            raise httpx.ReadError(f"it sent more than {MAX_REPLY_BYTES} bytes")
        if self._clock() > self._due:
            raise httpx.ReadTimeout("its answer took too long")
        self._chunks.append(chunk)

    def finish(self, response: httpx.Response) -> Reply:
        return Reply(response.status_code, response.headers, b"".join(self._chunks))


Answer = Reply | httpx.RequestError | None
StepGrants = Generator[Call | float, Answer, T]


@dataclass(frozen=True)
class Exchange:
    """``patience``: how many seconds Nod may be away, say for an upgrade, before `Unreachable` is raised."""

    url: str
    patience: float
    clock: Callable[[], float] = time.monotonic

    def opened(self, path: str, body: Mapping[str, Any], key: str | None) -> StepGrants[Request]:
        """Ask. Sent again under one key, it is still one request. Raises Unsendable."""
        given = {name: value for name, value in body.items() if value is not None}
        headers = {"Content-Type": "application/json", "Idempotency-Key": _header_key(key or str(uuid4()))}
        call = Call("POST", path, _MARGIN, _encode(given), headers=headers)
        return (yield from self._sent(call, min(self.patience, FIRST_PATIENCE)))

    def looked(self, request_id: str, wait: float = 0) -> StepGrants[Request]:
        """How it stands now, or as soon as it ended within ``wait`` seconds."""
        path = f"/api/approvals/{_plain(request_id)}"
        call = Call("GET", path, wait + _MARGIN, params={"wait": f"{wait:g}"} if wait else {})
        request = yield from self._sent(call, self.patience)
        if request.id != request_id:
            raise Refused(f"Nod at {self.url} answered about another request.", httpx.codes.OK)
        return request

    def ended(self, request: Request, wait: float | None) -> StepGrants[Request]:
        """The request once it ended, or as it is after ``wait`` seconds; None: however long it takes."""
        due = None if wait is None else self.clock() + wait
        while request.end is End.WAITING and (due is None or due > self.clock()):
            began = self.clock()
            part = LONGEST_WAIT if due is None else min(LONGEST_WAIT, due - began)
            request = yield from self.looked(request.id, part)
            if request.end is End.WAITING and self.clock() - began < min(part, 1.0):
                yield min(part, 1.0)  # Nod is stopping, so it did not wait
        return request

    def withdrawn(self, request_id: str) -> StepGrants[Request]:
        """Withdraw it. A decision that came first stays as it is."""
        path = f"/api/proposals/{_plain(request_id)}/cancel"
        try:
            yield from self._body(Call("POST", path, _MARGIN), self.patience)
        except Refused as error:
            if error.status != httpx.codes.CONFLICT:
                raise
        return (yield from self.looked(request_id))

    def asked(
        self, path: str, body: Mapping[str, Any], key: str | None, wait: float | None
    ) -> StepGrants[Request]:
        """Ask and wait. Without a key no one can come back for the answer, so it is withdrawn after that."""
        request = yield from self.ended((yield from self.opened(path, body, key)), wait)
        if request.end is End.APPROVED and request.edited_by is None:
            self._check_contents(request, body)
        if request.end is End.WAITING and key is None:
            request = yield from self.withdrawn(request.id)
        return request

    def called(
        self, tool: str, arguments: Mapping[str, Any], key: str | None, reason: str, wait: float | None
    ) -> StepGrants[ToolCall]:
        """Call a tool, and wait for its end: ``wait`` seconds, or None for however long it takes."""
        path = f"/api/tools/{quote(tool, safe='')}/calls"
        headers = {"Content-Type": "application/json", "Idempotency-Key": _header_key(key or str(uuid4()))}
        body = _encode({"arguments": dict(arguments), "reason": reason})
        call = Call("POST", path, _CALL_SECONDS, body, headers=headers)
        made = yield from self._told(call, min(self.patience, FIRST_PATIENCE))
        return (yield from self.call_ended(made, wait))

    def call_looked(self, call_id: str, wait: float = 0) -> StepGrants[ToolCall]:
        """How a call stands now, or as soon as it ended within ``wait`` seconds."""
        params = {"wait": f"{wait:g}"} if wait else {}
        call = Call("GET", f"/api/calls/{_plain(call_id)}", wait + _MARGIN, params=params)
        return (yield from self._told(call, self.patience))

    def call_ended(self, made: ToolCall, wait: float | None) -> StepGrants[ToolCall]:
        """A call once it ended, or as it is after ``wait`` seconds; None: however long it takes."""
        due = None if wait is None else self.clock() + wait
        while made.is_open and (due is None or due > self.clock()):
            began = self.clock()
            part = LONGEST_WAIT if due is None else min(LONGEST_WAIT, due - began)
            made = yield from self.call_looked(made.id, part)
            if made.is_open and self.clock() - began < min(part, 1.0):
                yield min(part, 1.0)  # Nod is stopping, so it did not wait
        return made

    def call_withdrawn(self, call_id: str) -> StepGrants[ToolCall]:
        """Withdraw a call. A decision that came first stays as it is."""
        return (
            yield from self._told(
                Call("POST", f"/api/calls/{_plain(call_id)}/cancel", _MARGIN), self.patience
            )
        )

    def _told(self, call: Call, patience: float) -> StepGrants[ToolCall]:
        said = yield from self._body(call, patience)
        try:
            return ToolCall.read(said["call"])
        except (KeyError, TypeError, ValueError) as error:
            raise Refused(
                f"Nod at {self.url} answered with a call this client can't read ({error!r}). "
                "Install the client of that Nod's release.",
                httpx.codes.OK,
            ) from None

    def _check_contents(self, request: Request, body: Mapping[str, Any]) -> None:
        """Raise Refused unless an approval that no one edited is of what was asked."""
        for name in ("tool_name", "input"):
            if name in body and request.arguments.get(name) != json.loads(_encode(body[name])):
                raise Refused(f"Nod at {self.url} answered about other contents.", httpx.codes.OK)

    def _sent(self, call: Call, patience: float) -> StepGrants[Request]:
        said = yield from self._body(call, patience)
        try:
            return Request.read(said["proposal"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise Refused(
                f"Nod at {self.url} answered with a request this client can't read ({error!r}). "
                "Install the client of that Nod's release.",
                httpx.codes.OK,
            ) from None

    def _body(self, call: Call, patience: float) -> StepGrants[Json]:
        """The answer's JSON. Raises Refused, or Unreachable when nothing came for ``patience`` seconds."""
        due = self.clock() + patience
        for pause in _pauses():
            answer = yield call
            if isinstance(answer, Reply) and answer.status not in _PASSING:
                return _read(answer, self.url)
            left = due - self.clock()
            if left <= 0:
                raise Unreachable(
                    f"Nod at {self.url} can't be reached: {_why(answer)}. Tried for {patience:g} s. "
                    "Is `nod run` up, and NOD_URL right?"
                )
            yield min(left, max(pause, _asked_to_wait(answer)))
        raise AssertionError("pauses do not end")


def _pauses() -> Iterator[float]:
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
    """Return the key, or its digest where a header can't hold it as it is."""
    if key.isascii() and key.isprintable() and key == key.strip():
        return key
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _read(answer: Reply, url: str) -> Json:
    status = answer.status
    if status == httpx.codes.UNAUTHORIZED:
        raise Refused("Nod does not know this token. NOD_TOKEN must be one of NOD_HTTP_TOKENS.", status)
    try:
        said = json.loads(answer.body)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict) or "ok" not in said:
        raise Refused(f"What answers at {url} is not Nod (HTTP {status}). Check NOD_URL.", status)
    if said["ok"] is not True:
        fields = said.get("fields")
        raise Refused(
            str(said.get("error", f"HTTP {status}")), status, fields if isinstance(fields, dict) else None
        )
    return said


def _why(answer: Answer) -> str:
    if isinstance(answer, Reply):
        return f"HTTP {answer.status} {answer.body[:200].decode(errors='replace')}".strip()
    return f"{type(answer).__name__} {answer}".strip()


def _asked_to_wait(answer: Answer) -> float:
    """Seconds of Retry-After."""
    given = answer.headers.get("retry-after", "") if isinstance(answer, Reply) else ""
    return float(given) if given.isdecimal() else 0.0


def _plain(ident: str) -> str:
    if not ident.isalnum():
        raise ValueError(f"{ident!r} is not the id of a request.")
    return ident
