"""A small Internet on loopback, for what fetches pages."""

from collections.abc import Awaitable, Callable

import httpcore2
from aiohttp import web

from bot.tools.builtin.fetch import fetch_tools
from bot.tools.toolset import FixedToolset
from tests.tools.calls import Hands

PUBLIC = "93.184.215.14"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Net(httpcore2.AsyncNetworkBackend):
    """A small Internet: names with addresses, and every public address is one server on loopback.

    ``connected`` is where connections really went; a connection to anything else than what the guard let
    through would stand there too.
    """

    def __init__(self) -> None:
        self.names: dict[str, list[list[str]]] = {}
        self.asked: list[str] = []
        self.connected: list[tuple[str, int]] = []
        self.port = 0
        self.pages: dict[str, Handler] = {}
        self.seen: list[web.Request] = []
        self._real = httpcore2.AnyIOBackend()
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request)
        handler = self.pages.get(f"{request.host}{request.path_qs}")
        return await handler(request) if handler else web.Response(status=404, text="nothing here")

    def page(self, url: str, **more) -> None:
        async def answer(_: web.Request) -> web.Response:
            return web.Response(**more)

        self.pages[url] = answer

    def leads(self, url: str, to: str, status: int = 302) -> None:
        self.page(url, status=status, headers={"Location": to})

    async def resolve(self, host: str, _: int) -> list[str]:
        self.asked.append(host)
        answers = self.names.get(host)
        if not answers:
            raise OSError("no such name")
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def connect_tcp(self, host, port, *_, **__):
        self.connected.append((host, port))
        return await self._real.connect_tcp("127.0.0.1", self.port)

    @property
    def toolset(self) -> FixedToolset:
        return fetch_tools(
            resolve=self.resolve, connector=self, seconds=10, max_bytes=10_000, ports=(80, 443, 8080)
        )

    @property
    def hands(self) -> Hands:
        return Hands(self.toolset)

    async def get(self, url: str):
        return await self.hands.run("http_fetch", url=url)
