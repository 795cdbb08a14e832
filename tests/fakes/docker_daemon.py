"""A Docker daemon on a unix socket; keeps containers as Docker does, and refuses what it refuses.

The parts of the Engine API that containers need: https://docs.docker.com/reference/api/engine/
"""

import asyncio
import itertools
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

_OLDEST, _NEWEST = (1, 44), (1, 52)


@web.middleware
async def _known_version(request: web.Request, handler: Handler) -> web.StreamResponse:
    asked = request.match_info.get("version")
    if asked and not _OLDEST <= tuple(int(part) for part in asked[1:].split(".")) <= _NEWEST:
        message = f"client version {asked[1:]} is not supported"
        return web.json_response({"message": message}, status=400)
    return await handler(request)


@dataclass
class Container:
    id: str
    name: str
    image: str = "nginx:1"
    status: str = "running"
    started: int = 1
    log: list[str] = field(default_factory=list)
    environment: list[str] = field(default_factory=lambda: ["PASSWORD=hunter2"])
    tty: bool = False

    @property
    def runs(self) -> bool:
        return self.status in ("running", "paused", "restarting")

    def told(self) -> dict[str, Any]:
        return {
            "Id": self.id,
            "Name": f"/{self.name}",
            "Created": "2026-03-01T10:00:00Z",
            "RestartCount": 0,
            "State": {
                "Status": self.status,
                "ExitCode": 0,
                "StartedAt": f"2026-03-01T10:00:{self.started:02d}Z",
            },
            "Config": {
                "Image": self.image,
                "Tty": self.tty,
                "Cmd": ["nginx"],
                "Entrypoint": None,
                "Env": self.environment,
                "Labels": {"team": "web"},
            },
            "HostConfig": {"RestartPolicy": {"Name": "always"}, "LogConfig": {"Type": "json-file"}},
            "NetworkSettings": {"Ports": {"80/tcp": None}},
            "Mounts": [{"Source": "/srv", "Destination": "/data"}],
        }


class FakeDocker:
    """Start it with ``await start(path)``; ``url`` is then its address.

    ``mute``: it acts and never answers; ``rude``: it acts and hangs up.
    """

    def __init__(self) -> None:
        self.url = ""
        self.containers: dict[str, Container] = {}
        self.calls: list[str] = []
        self.mute = self.rude = False
        self._numbers = itertools.count(1)
        self._runner: web.AppRunner | None = None

    async def start(self, path: Path) -> None:
        app = web.Application(middlewares=[_known_version])
        app.router.add_get("/version", self._version)
        for prefix in ("", "/{version:v[0-9.]+}"):
            app.router.add_get(f"{prefix}/containers/json", self._list)
            app.router.add_get(f"{prefix}/containers/{{name}}/json", self._inspect)
            app.router.add_get(f"{prefix}/containers/{{name}}/logs", self._logs)
            app.router.add_post(f"{prefix}/containers/{{name}}/{{verb:start|stop|restart}}", self._change)
            app.router.add_delete(f"{prefix}/containers/{{name}}", self._remove)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        await web.UnixSite(self._runner, str(path)).start()
        self.url = f"unix://{path}"

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    def run(self, name: str, **more: Any) -> Container:
        """Make a container, as ``docker run`` does."""
        made = Container(id=f"{next(self._numbers):064x}"[::-1], name=name, **more)
        self.containers[made.id] = made
        return made

    def _found(self, request: web.Request) -> Container:
        wanted = request.match_info["name"]
        for each in self.containers.values():
            if wanted == each.name or each.id.startswith(wanted):
                return each
        raise web.HTTPNotFound(
            text=f'{{"message": "No such container: {wanted}"}}', content_type="application/json"
        )

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"Version": "29.0", "ApiVersion": "1.52", "MinAPIVersion": "1.44"})

    async def _list(self, request: web.Request) -> web.Response:
        every = request.query.get("all") in ("1", "true", "True")
        return web.json_response(
            [
                {
                    "Id": each.id,
                    "Names": [f"/{each.name}"],
                    "Image": each.image,
                    "State": each.status,
                    "Status": "Up 2 hours" if each.runs else "Exited (0)",
                }
                for each in self.containers.values()
                if every or each.runs
            ]
        )

    async def _inspect(self, request: web.Request) -> web.Response:
        return web.json_response(self._found(request).told())

    async def _logs(self, request: web.Request) -> web.Response:
        found = self._found(request)
        said = [f"{line}\n".encode() for line in found.log[-int(request.query["tail"]) :]]
        if request.query.get("stdout") != "1" and request.query.get("stderr") != "1":
            message = "Bad parameters: you must choose at least one stream"
            return web.json_response({"message": message}, status=400)
        if found.tty:
            return web.Response(body=b"".join(said), content_type="application/vnd.docker.raw-stream")
        frames = b"".join(struct.pack(">BxxxL", 1, len(line)) + line for line in said)
        return web.Response(body=frames, content_type="application/vnd.docker.multiplexed-stream")

    async def _change(self, request: web.Request) -> web.Response:
        found, verb = self._found(request), request.match_info["verb"]
        self.calls.append(f"{verb} {found.id[:12]}")
        if (verb == "start" and found.runs) or (verb == "stop" and not found.runs):
            return web.Response(status=304)
        found.status = "exited" if verb == "stop" else "running"
        found.started += verb != "stop"
        if self.mute:
            await asyncio.Event().wait()
        if self.rude and request.transport is not None:
            request.transport.abort()
        return web.Response(status=204)

    async def _remove(self, request: web.Request) -> web.Response:
        found = self._found(request)
        self.calls.append(f"remove {found.id[:12]}")
        if found.runs:
            message = f"cannot remove container {found.name}: container is running"
            return web.json_response({"message": message}, status=409)
        del self.containers[found.id]
        return web.Response(status=204)
