"""What is sent and when it is sent again, without a socket: generators that both clients run.

A generator yields a `Call` and is given the response or the transport's error, or it yields seconds to pause.
"""

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import uuid4

import httpx

from nod_client.errors import Refused, Unreachable
from nod_client.request import End, Json, Request

LONGEST_WAIT = 60.0  # seconds that one call may wait for people; the API allows no more
FIRST_PATIENCE = 30.0  # seconds for the first contact, where a wrong address is likelier than a restart
_MARGIN = 15.0  # seconds that an answer may take beyond its wait
_PASSING = frozenset({408, 429, 500, 502, 503, 504})

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request; ``timeout`` in seconds."""

    method: str
    path: str
    timeout: float
    body: Json | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


Answer = httpx.Response | httpx.TransportError | None
StepGrants = Generator[Call | float, Answer, T]


@dataclass(frozen=True)
class Exchange:
    """``patience``: how many seconds Nod may be away, say for an upgrade, before `Unreachable` is raised."""

    url: str
    patience: float
    clock: Callable[[], float] = time.monotonic

    def opened(self, path: str, body: Mapping[str, Any], key: str | None) -> StepGrants[Request]:
        """Ask. Sent again under one key, it is still one request."""
        given = {name: value for name, value in body.items() if value is not None}
        headers = {"Idempotency-Key": key or str(uuid4())}
        call = Call("POST", path, _MARGIN, given, headers=headers)
        return (yield from self._sent(call, min(self.patience, FIRST_PATIENCE)))

    def looked(self, request_id: str, wait: float = 0) -> StepGrants[Request]:
        """How it stands now, or as soon as it ended within ``wait`` seconds."""
        path = f"/api/approvals/{_plain(request_id)}"
        call = Call("GET", path, wait + _MARGIN, params={"wait": f"{wait:g}"} if wait else {})
        return (yield from self._sent(call, self.patience))

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
        if request.end is End.WAITING and key is None:
            request = yield from self.withdrawn(request.id)
        return request

    def _sent(self, call: Call, patience: float) -> StepGrants[Request]:
        said = yield from self._body(call, patience)
        try:
            return Request.read(said["proposal"])
        except (KeyError, TypeError, ValueError) as error:
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
            if isinstance(answer, httpx.Response) and answer.status_code not in _PASSING:
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


def _read(answer: httpx.Response, url: str) -> Json:
    status = answer.status_code
    if status == httpx.codes.UNAUTHORIZED:
        raise Refused("Nod does not know this token. NOD_TOKEN must be one of NOD_HTTP_TOKENS.", status)
    try:
        said = answer.json()
    except ValueError:
        said = None
    if not isinstance(said, dict) or "ok" not in said:
        raise Refused(f"What answers at {url} is not Nod (HTTP {status}). Check NOD_URL.", status)
    if not said["ok"]:
        raise Refused(str(said.get("error", f"HTTP {status}")), status, said.get("fields"))
    return said


def _why(answer: Answer) -> str:
    if isinstance(answer, httpx.Response):
        return f"HTTP {answer.status_code} {answer.text[:200]}".strip()
    return f"{type(answer).__name__} {answer}".strip()


def _asked_to_wait(answer: Answer) -> float:
    """Seconds of Retry-After."""
    given = answer.headers.get("retry-after", "") if isinstance(answer, httpx.Response) else ""
    return float(given) if given.isdecimal() else 0.0


def _plain(ident: str) -> str:
    if not ident.isalnum():
        raise ValueError(f"{ident!r} is not the id of a request.")
    return ident
