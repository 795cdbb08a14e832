"""A server on loopback that transcribes recordings as OpenAI's does: real HTTP, scripted answers, refusals.

In a test::

    async with HearingServer() as server:
        server.will_hear("create an issue")
        ... AsyncOpenAI(base_url=server.url, api_key=server.key)

``server.heard`` holds each request that it took: the model, the file's name, its kind, its bytes.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from aiohttp import web

_ENDINGS = frozenset({"flac", "mp3", "mp4", "mpeg", "mpga", "m4a", "ogg", "wav", "webm"})
"""Of the names of files that OpenAI takes; it goes by the name."""
_MOST_BYTES = 25_000_000


class Heard(NamedTuple):
    """One request."""

    model: str
    name: str
    kind: str
    data: bytes


@dataclass(frozen=True)
class Answer:
    """One answer: ``body`` as it is sent; ``hang`` keeps it open without an end."""

    body: bytes | dict[str, Any]
    status: int = 200
    hang: bool = False


@dataclass
class HearingServer:
    """Serves ``/v1/audio/transcriptions`` and ``/v1/models``."""

    key: str = "sk-hearing"
    model: str = "whisper-1"
    heard: list[Heard] = field(default_factory=list)
    answers: deque[Answer] = field(default_factory=deque)
    _runner: web.AppRunner | None = None
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def will_hear(self, text: str, **more: Any) -> None:
        """The next recording is this text; ``more`` stands next to it, as ``usage`` does."""
        self.answers.append(Answer({"text": text, **more}))

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=_MOST_BYTES)
        app.router.add_post("/v1/audio/transcriptions", self._transcribe)
        app.router.add_get("/v1/models", self._list)
        self._runner = web.AppRunner(app, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._over.set()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _list(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": self.model, "object": "model"}]})

    async def _transcribe(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {self.key}":
            return _refuse(401, "Incorrect API key provided")
        form = await request.post()
        file, model = form.get("file"), form.get("model")
        if not isinstance(file, web.FileField) or not isinstance(model, str):
            return _refuse(400, "you must provide a file and a model parameter")
        if model != self.model:
            return _refuse(404, f"The model '{model}' does not exist")
        if file.filename.rpartition(".")[2] not in _ENDINGS:
            return _refuse(400, "Unrecognized file format.")
        with file.file as opened:
            self.heard.append(Heard(model, file.filename, file.content_type, opened.read()))
        answer = self.answers.popleft() if self.answers else Answer({"text": ""})
        if isinstance(answer.body, dict):
            return web.json_response(answer.body, status=answer.status)
        response = web.StreamResponse(status=answer.status, headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(answer.body)
        if answer.hang:
            await self._over.wait()
        return response


def _refuse(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message, "type": "invalid_request_error"}}, status=status)
