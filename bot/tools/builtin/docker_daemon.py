"""One Docker daemon, spoken to over its HTTP API (https://docs.docker.com/reference/api/engine/).

Each question is a connection of its own: there are few of them, and the daemon may have been restarted since.
Of its answers `described` and `listed` give the few things that matter to a reader.
"""

import contextlib
import struct
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from bot.errors import ToolError, ToolTimedOut
from bot.tools.intake import TooLarge, bound_response

_MOST_LOG = 200_000  # bytes
_MOST_REFUSAL = 500  # characters that are told of one
_HEADER = struct.Struct(">BxxxL")  # before each part of a log: which stream, and how many bytes
_UNREACHABLE = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol, httpx2.InvalidURL)

_ID = 12  # characters of an id, as Docker shows it


class Daemon:
    """A Docker daemon. Failures are ToolError in words; ToolTimedOut where it may have acted all the same."""

    def __init__(self, url: str, seconds: float) -> None:
        """``url`` is ``unix:///path``, ``tcp://host:port`` or ``https://host:port``.

        ``seconds`` is for each answer.
        """
        self.url = url
        self.seconds = seconds

    async def containers(self, *, stopped: bool) -> list[dict[str, Any]]:
        async with self._send_request("GET", "/containers/json", all=str(stopped).lower()) as answer:
            return list(await _json(answer))

    async def inspect(self, container: str) -> dict[str, Any]:
        """Inspect a container. Raises ToolError for the beginning of an id that is too short.

        A name that a rule knows has no short second spelling that way.
        """
        async with self._send_request("GET", f"/containers/{container}/json") as answer:
            found = dict(await _json(answer))
        name = str(found.get("Name", "")).lstrip("/")
        if container != name and len(container) < _ID:
            raise ToolError(f"{container} is no container's name. Give a name, or an id of {_ID} characters.")
        return found

    async def send_change(self, container: str, verb: str, **query: int) -> None:
        async with self._send_request("POST", f"/containers/{container}/{verb}", **query):
            pass

    async def remove(self, container: str) -> None:
        async with self._send_request("DELETE", f"/containers/{container}"):
            pass

    async def log(self, container: str, lines: int) -> tuple[bytes, bool]:
        """Return the log's end, and whether it is longer; no more of it in memory than is told."""
        config = (await self.inspect(container)).get("Config") or {}
        end, cut = bytearray(), False
        path = f"/containers/{container}/logs"
        async with self._send_request("GET", path, stdout=1, stderr=1, tail=lines) as answer:
            parts = answer.aiter_raw()
            async for part in parts if config.get("Tty") else _remove_frames(parts):
                end += part
                cut = cut or len(end) > _MOST_LOG
                del end[:-_MOST_LOG]
        return bytes(end), cut

    @contextlib.asynccontextmanager
    async def _send_request(
        self, method: str, path: str, **query: str | int
    ) -> AsyncIterator[httpx2.Response]:
        """Send a request to the daemon in its own API version, and yield the response."""
        try:
            async with self._client() as client:
                async with client.stream("GET", "/version") as answer:
                    version = (await _json(answer))["ApiVersion"]
                async with client.stream(method, f"/v{version}{path}", params=query) as answer:
                    if answer.is_error:
                        raise await _refusal(answer)
                    yield answer
        except _UNREACHABLE as error:
            raise self._unreachable(error) from None
        except httpx2.TimeoutException:
            raise ToolTimedOut(f"Docker did not answer within {self.seconds:g} s.") from None
        except (httpx2.NetworkError, httpx2.RemoteProtocolError):
            raise ToolTimedOut("Docker ended the connection before it answered.") from None
        except (TooLarge, ValueError, KeyError, TypeError, RecursionError):
            raise ToolError(f"What answers at {self.url} is not a Docker daemon, or says too much.") from None

    def _client(self) -> httpx2.AsyncClient:
        scheme, _, rest = self.url.partition("://")
        transport = httpx2.AsyncHTTPTransport(uds=rest) if scheme == "unix" else None
        url = {"unix": "http://docker", "tcp": f"http://{rest}"}.get(scheme, self.url)
        headers = {"Accept-Encoding": "identity"}
        return httpx2.AsyncClient(transport=transport, base_url=url, headers=headers, timeout=self.seconds)

    def _unreachable(self, error: BaseException | None) -> ToolError:
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


async def _json(answer: httpx2.Response) -> Any:
    await bound_response(answer)
    await answer.aread()
    return answer.json()


async def _refusal(answer: httpx2.Response) -> ToolError:
    said = (await _json(answer))["message"]
    if answer.status_code == httpx2.codes.NOT_FOUND:
        begins = "Docker says"
    else:
        begins = "Docker refused"
    return ToolError(f"{begins}: {str(said)[:_MOST_REFUSAL]}")


async def _remove_frames(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the output of a container without a terminal, without the headers in between."""
    rest, left = b"", 0
    async for part in parts:
        rest += part
        while rest:
            if left == 0:
                if len(rest) < _HEADER.size:
                    break
                _, left = _HEADER.unpack_from(rest)
                rest = rest[_HEADER.size :]
            yield rest[:left]
            rest, left = rest[left:], max(left - len(rest), 0)


def decode_log(log: bytes) -> str:
    return log.decode(errors="backslashreplace").replace("\0", "\\x00")


def describe_listed(found: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": found["Id"][:_ID],
        "name": (found.get("Names") or [""])[0].lstrip("/"),
        "image": found.get("Image", ""),
        "state": found.get("State", ""),
        "status": found.get("Status", ""),
    }


def describe_inspected(found: dict[str, Any]) -> dict[str, Any]:
    """Return the important part of an inspection. Environment values are left out: most are secrets."""
    state, config, host = found["State"], found.get("Config") or {}, found.get("HostConfig") or {}
    return {
        "id": found["Id"][:_ID],
        "name": found.get("Name", "").lstrip("/"),
        "image": config.get("Image", ""),
        "state": state.get("Status", "unknown"),
        "exit_code": state.get("ExitCode"),
        "health": (state.get("Health") or {}).get("Status"),
        "created_at": found.get("Created", ""),
        "started_at": state.get("StartedAt", ""),
        "command": [*(config.get("Entrypoint") or []), *(config.get("Cmd") or [])],
        "environment": [each.partition("=")[0] for each in config.get("Env") or []],
        "labels": config.get("Labels") or {},
        "restart_policy": (host.get("RestartPolicy") or {}).get("Name", ""),
        "ports": sorted((found.get("NetworkSettings") or {}).get("Ports") or {}),
        "mounts": [
            f"{each.get('Source', '')}:{each.get('Destination', '')}" for each in found.get("Mounts", [])
        ],
        "restarts": found.get("RestartCount", 0),
    }
