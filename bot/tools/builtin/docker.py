"""Containers of one Docker daemon (group ``runtime``): list, inspect, logs; start, restart; stop, remove.

Every change shows the container's id among its old values, so a container that was made again under the same
name is noticed before an approval runs. The SDK blocks; each call is a thread and a client of its own.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import docker  # type: ignore[import-untyped]
import requests
from docker.errors import APIError, DockerException, NotFound  # type: ignore[import-untyped]
from pydantic import Field

from bot.domain.proposals import PreviewField
from bot.errors import ToolError, ToolTimedOut
from bot.tools.builtin.docker_views import listed, log_end, told
from bot.tools.tool import Arguments, FixedToolset, Preview, Tool, tool

_GRACE = 10  # seconds a container has to stop by itself

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$")]
Lines = Annotated[int, Field(ge=1, le=5000)]
Work = Callable[[Any], Any]  # of a client
Change = Callable[[Any, str], Any]  # of a client and a container's id


def docker_tools(url: str = "unix:///var/run/docker.sock", *, seconds: float = 20.0) -> FixedToolset:
    """All container tools over the daemon at ``url``; ``seconds`` for each of its answers."""
    daemon = Daemon(url, seconds)
    return FixedToolset("docker", (*_reads(daemon), *_writes(daemon), *_ends(daemon)))


class Daemon:
    """One Docker daemon."""

    def __init__(self, url: str, seconds: float) -> None:
        self.seconds = seconds
        self._url = url

    async def ask(self, work: Work) -> Any:
        """Run ``work(client)`` in a thread. Raises ToolError in words."""
        return await asyncio.to_thread(self._ask, work)

    def _ask(self, work: Work) -> Any:
        self._knock()
        with self._told(), contextlib.closing(docker.DockerClient(self._url, timeout=self.seconds)) as client:
            return work(client)

    def _knock(self) -> None:
        """Tell a missing socket from one we may not use; the SDK says the same of both, and leaks its own."""
        scheme, _, path = self._url.partition("://")
        if scheme != "unix":
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            door.settimeout(self.seconds)
            try:
                door.connect(path)
            except PermissionError:
                raise ToolError(
                    f"Nod may not use the Docker daemon at {self._url}; let its account join the group of it."
                ) from None
            except OSError as error:
                raise ToolError(
                    f"The Docker daemon at {self._url} cannot be reached ({error.strerror}). Is it running?"
                ) from None

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except NotFound as error:
            raise ToolError(f"Docker says: {error.explanation or 'there is no such container'}.") from None
        except APIError as error:
            raise ToolError(f"Docker refused: {error.explanation or error}") from None
        except requests.exceptions.ReadTimeout:
            raise ToolTimedOut(f"Docker did not answer within {self.seconds:g} s.") from None
        except (DockerException, requests.exceptions.RequestException):
            raise ToolError(f"The Docker daemon at {self._url} cannot be reached. Is it running?") from None


def _reads(daemon: Daemon) -> tuple[Tool, ...]:
    @tool(writes=False, group="runtime", summary="List containers")
    async def docker_list(*, stopped: bool = True) -> dict[str, Any]:
        """List Docker containers with their state.

        Args:
            stopped: whether to list those that do not run as well

        """
        found = await daemon.ask(lambda client: client.api.containers(all=stopped))
        return {"containers": [listed(each) for each in found]}

    @tool(writes=False, group="runtime", summary="Inspect container {container}")
    async def docker_inspect(container: Name) -> dict[str, Any]:
        """Tell everything about one container. Values of its environment are left out.

        Args:
            container: its name or id

        """
        return told(await daemon.ask(lambda client: client.api.inspect_container(container)))

    @tool(writes=False, group="runtime", summary="Read the log of {container}")
    async def docker_logs(container: Name, lines: Lines = 200) -> dict[str, Any]:
        """Read the end of a container's log.

        Args:
            container: its name or id
            lines: how many lines from the end, 200 when not given

        """
        log, cut = await daemon.ask(lambda client: log_end(client, container, lines))
        return {"container": container, "log": log, **({"cut": "the log is longer"} if cut else {})}

    return docker_list, docker_inspect, docker_logs


_CONTAINERS = "containers"  # one change at a time: a name and an id may be one container


def _writes(daemon: Daemon) -> tuple[Tool, ...]:
    def about(wanted: str) -> Preview:
        return _preview(daemon, wanted)

    @tool(
        group="runtime",
        idempotent=True,
        summary="Start container {container}",
        preview=about("running"),
        touches=_CONTAINERS,
        timeout=daemon.seconds + 10,
    )
    async def docker_start(container: Name) -> dict[str, Any]:
        """Start a container that does not run.

        Args:
            container: its name or id

        """
        return await _changed(daemon, container, lambda client, known: client.api.start(known))

    @tool(
        group="runtime",
        summary="Restart container {container}",
        preview=about("restarted"),
        touches=_CONTAINERS,
        timeout=daemon.seconds + _GRACE + 10,
    )
    async def docker_restart(container: Name) -> dict[str, Any]:
        """Stop a container and start it again.

        Args:
            container: its name or id

        """
        return await _changed(
            daemon, container, lambda client, known: client.api.restart(known, timeout=_GRACE)
        )

    return docker_start, docker_restart


def _ends(daemon: Daemon) -> tuple[Tool, ...]:
    @tool(
        destructive=True,
        idempotent=True,
        group="runtime",
        summary="Stop container {container}",
        preview=_preview(daemon, "exited"),
        touches=_CONTAINERS,
        timeout=daemon.seconds + _GRACE + 10,
    )
    async def docker_stop(container: Name) -> dict[str, Any]:
        """Stop a container that runs; it can be started again.

        Args:
            container: its name or id

        """
        return await _changed(daemon, container, lambda client, known: client.api.stop(known, timeout=_GRACE))

    @tool(
        destructive=True,
        group="runtime",
        summary="Remove container {container}",
        preview=_preview(daemon, None),
        touches=_CONTAINERS,
        timeout=daemon.seconds + 10,
    )
    async def docker_remove(container: Name) -> dict[str, Any]:
        """Remove a container that does not run, with all that was written inside it. Its volumes stay.

        Args:
            container: its name or id

        """

        def remove(client: Any) -> dict[str, Any]:
            known = told(client.api.inspect_container(container))["id"]
            client.api.remove_container(known)
            return {"removed": container, "id": known}

        return dict(await daemon.ask(remove))

    return docker_stop, docker_remove


def _preview(daemon: Daemon, wanted: str | None) -> Preview:
    """Old → new state; ``wanted`` is the state to reach, None for no container any longer."""

    async def read(arguments: Arguments) -> Sequence[PreviewField]:
        found = await daemon.ask(lambda client: client.api.inspect_container(arguments["container"]))
        now = told(found)
        name, state = now["name"], now["state"]
        if state == wanted:
            raise ToolError(f"This would change nothing: {name} is {state} already.")
        if wanted is None and state in ("running", "paused", "restarting"):
            raise ToolError(f"{name} is {state}; stop it before it can be removed.")
        if wanted == "exited" and state in ("created", "dead"):
            raise ToolError(f"{name} does not run; it is {state}.")
        kept = None if wanted is None else now["id"]
        return [
            PreviewField("container", f"{name}, id {now['id']}", kept and f"{name}, id {kept}"),
            PreviewField("image", now["image"], kept and now["image"]),
            PreviewField("state", state, wanted),
            PreviewField("started", now["started_at"], kept and ("now" if wanted != "exited" else "")),
        ]

    return read


async def _changed(daemon: Daemon, container: str, work: Change) -> dict[str, Any]:
    def act(client: Any) -> dict[str, Any]:
        before = told(client.api.inspect_container(container))
        work(client, before["id"])
        after = told(client.api.inspect_container(before["id"]))
        return {"container": after["name"], "id": after["id"], "was": before["state"], "is": after["state"]}

    return dict(await daemon.ask(act))
