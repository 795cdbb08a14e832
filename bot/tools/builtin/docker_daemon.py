"""Client of one Docker daemon, over its HTTP API (https://docs.docker.com/reference/api/engine/).

Each request opens its own connection: there are few, and the daemon may have been restarted since.
`describe_listed` and `describe_inspected` give the few fields of its answers that matter to a reader.
"""

import contextlib
import struct
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import httpx2

from bot.errors import ToolError, ToolTimedOut
from bot.tools.response_bounds import TooLarge, bound_response

_MAX_LOG_BYTES = 200_000
_MAX_REFUSAL_CHARS = 500  # the daemon's own words
_FRAME_HEADER = struct.Struct(">BxxxL")  # before each part of a log: its stream, and its number of bytes
_UNREACHABLE_ERRORS = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.UnsupportedProtocol,
    httpx2.InvalidURL,
)
_ID_CHARS = 12  # the beginning of an id, as Docker shows it


class LogEnd(NamedTuple):
    """The end of a container's log."""

    content: bytes
    is_cut: bool  # the log is longer


class Daemon:
    """A Docker daemon. Methods raise ToolError, and ToolTimedOut if it may have acted nevertheless."""

    def __init__(self, url: str, seconds: float) -> None:
        """``url``: ``unix:///path``, ``tcp://host:port`` or ``https://host:port``.

        ``seconds``: the time limit of each answer.
        """
        self.url = url
        self.seconds = seconds

    async def list_containers(self, *, stopped: bool) -> list[dict[str, Any]]:
        """Return the containers that run; with ``stopped`` all others as well."""
        async with self._send_request("GET", "/containers/json", all=str(stopped).lower()) as answer:
            return list(await _read_json(answer))

    async def inspect(self, container: str) -> dict[str, Any]:
        """Return the daemon's description of a container, by its name or id.

        Raises ToolError for less than `_ID_CHARS` characters of an id. Docker itself takes any beginning of
        an id, but a rule about a container could not list so many spellings.
        """
        async with self._send_request("GET", f"/containers/{container}/json") as answer:
            inspected = dict(await _read_json(answer))
        name = str(inspected.get("Name", "")).lstrip("/")
        if container != name and len(container) < _ID_CHARS:
            raise ToolError(
                f"{container} is no container's name. Give a name, or an id of {_ID_CHARS} characters."
            )
        return inspected

    async def send_change(self, container: str, verb: str, **query: int) -> None:
        """Change a container's state. ``verb``: the API's word for the change, such as ``restart``."""
        async with self._send_request("POST", f"/containers/{container}/{verb}", **query):
            pass

    async def remove(self, container: str) -> None:
        async with self._send_request("DELETE", f"/containers/{container}"):
            pass

    async def read_log(self, container: str, lines: int) -> LogEnd:
        """Return the last lines of a log, as far as they fit `_MAX_LOG_BYTES`."""
        config = (await self.inspect(container)).get("Config") or {}
        end = bytearray()
        is_cut = False
        path = f"/containers/{container}/logs"
        async with self._send_request("GET", path, stdout=1, stderr=1, tail=lines) as answer:
            output: AsyncIterator[bytes] = answer.aiter_raw()
            if not config.get("Tty"):
                output = _remove_frames(output)
            async for part in output:
                end += part
                is_cut = is_cut or len(end) > _MAX_LOG_BYTES
                del end[:-_MAX_LOG_BYTES]
        return LogEnd(bytes(end), is_cut)

    @contextlib.asynccontextmanager
    async def _send_request(
        self, method: str, path: str, **query: str | int
    ) -> AsyncIterator[httpx2.Response]:
        """Send a request to the daemon in its own API version, and yield the response."""
        try:
            async with self._make_client() as client:
                async with client.stream("GET", "/version") as answer:
                    version = (await _read_json(answer))["ApiVersion"]
                async with client.stream(method, f"/v{version}{path}", params=query) as answer:
                    if answer.is_error:
                        raise await _make_refusal(answer)
                    yield answer
        except _UNREACHABLE_ERRORS as error:
            raise self._make_unreachable_error(error) from None
        except httpx2.TimeoutException:
            raise ToolTimedOut(f"Docker did not answer within {self.seconds:g} s.") from None
        except (httpx2.NetworkError, httpx2.RemoteProtocolError):
            raise ToolTimedOut("Docker ended the connection before it answered.") from None
        except (TooLarge, ValueError, KeyError, TypeError, RecursionError):
            raise ToolError(f"What answers at {self.url} is not a Docker daemon, or says too much.") from None

    def _make_client(self) -> httpx2.AsyncClient:
        scheme, _, location = self.url.partition("://")  # the path of a socket, or a host and a port
        transport = None
        if scheme == "unix":
            transport = httpx2.AsyncHTTPTransport(uds=location)
            url = "http://docker"  # any host: the socket decides
        elif scheme == "tcp":
            url = f"http://{location}"
        else:
            url = self.url
        headers = {"Accept-Encoding": "identity"}
        return httpx2.AsyncClient(transport=transport, base_url=url, headers=headers, timeout=self.seconds)

    def _make_unreachable_error(self, error: BaseException | None) -> ToolError:
        """Return the error for an unreachable daemon, with the system's own reason, if any."""
        why = ""
        while error is not None:
            if isinstance(error, PermissionError):
                return ToolError(
                    f"Nod may not use the Docker daemon at {self.url}; let its account join the group of it."
                )
            if isinstance(error, OSError) and error.strerror:
                why = f" ({error.strerror})"
            error = error.__cause__ or error.__context__
        return ToolError(f"The Docker daemon at {self.url} cannot be reached{why}. Is it running?")


async def _read_json(answer: httpx2.Response) -> Any:
    await bound_response(answer)
    await answer.aread()
    return answer.json()


async def _make_refusal(answer: httpx2.Response) -> ToolError:
    message = str((await _read_json(answer))["message"])[:_MAX_REFUSAL_CHARS]
    if answer.status_code == httpx2.codes.NOT_FOUND:
        return ToolError(f"Docker says: {message}")
    return ToolError(f"Docker refused: {message}")


async def _remove_frames(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the output of a container without a terminal, without the headers of its frames."""
    buffer = b""
    bytes_left = 0  # the rest of the current frame
    async for part in parts:
        buffer += part
        while buffer:
            if bytes_left == 0:
                if len(buffer) < _FRAME_HEADER.size:
                    break
                _, bytes_left = _FRAME_HEADER.unpack_from(buffer)
                buffer = buffer[_FRAME_HEADER.size :]
            content = buffer[:bytes_left]
            yield content
            buffer = buffer[len(content) :]
            bytes_left -= len(content)


def decode_log(log: bytes) -> str:
    return log.decode(errors="backslashreplace").replace("\0", "\\x00")


def describe_listed(listed: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": listed["Id"][:_ID_CHARS],
        "name": (listed.get("Names") or [""])[0].lstrip("/"),
        "image": listed.get("Image", ""),
        "state": listed.get("State", ""),
        "status": listed.get("Status", ""),
    }


def describe_inspected(inspected: dict[str, Any]) -> dict[str, Any]:
    """Return the important part of an inspection. Environment values are left out: most are secrets."""
    state = inspected["State"]
    config = inspected.get("Config") or {}
    host = inspected.get("HostConfig") or {}
    return {
        "id": inspected["Id"][:_ID_CHARS],
        "name": inspected.get("Name", "").lstrip("/"),
        "image": config.get("Image", ""),
        "state": state.get("Status", "unknown"),
        "exit_code": state.get("ExitCode"),
        "health": (state.get("Health") or {}).get("Status"),
        "created_at": inspected.get("Created", ""),
        "started_at": state.get("StartedAt", ""),
        "command": [*(config.get("Entrypoint") or []), *(config.get("Cmd") or [])],
        "environment": [variable.partition("=")[0] for variable in config.get("Env") or []],
        "labels": config.get("Labels") or {},
        "restart_policy": (host.get("RestartPolicy") or {}).get("Name", ""),
        "ports": sorted((inspected.get("NetworkSettings") or {}).get("Ports") or {}),
        "mounts": [
            f"{mount.get('Source', '')}:{mount.get('Destination', '')}"
            for mount in inspected.get("Mounts", [])
        ],
        "restarts": inspected.get("RestartCount", 0),
    }
