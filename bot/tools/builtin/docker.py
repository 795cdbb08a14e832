"""Containers of one Docker daemon (group ``runtime``): list, inspect, logs; start, restart; stop, remove.

Every change shows the container's id among its old values, which are read again before an approved change
runs. So Nod notices if the container was made again under the same name. The client of the daemon is in
``docker_daemon.py``.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from bot.domain.preview import PreviewField
from bot.domain.spellings.terms import Referent
from bot.errors import ToolError
from bot.tools.builtin.docker_daemon import Daemon, decode_log, describe_inspected, describe_listed
from bot.tools.call import Arguments
from bot.tools.decorator import tool
from bot.tools.looks import Current, Preview
from bot.tools.tool import Tool
from bot.tools.toolset import FixedToolset

_STOP_SECONDS = 10  # the time that a container has to stop by itself
_MARGIN_SECONDS = 10  # a change may take that much longer, for the inspections before and after

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$")]
_REFERENTS = {"container": Referent.NAME_OR_ID}  # the kind of name that an argument has, for rules
Lines = Annotated[int, Field(ge=1, le=5000)]


def docker_tools(url: str = "unix:///var/run/docker.sock", *, seconds: float = 20.0) -> FixedToolset:
    """Return all container tools over the daemon at ``url``; ``seconds`` for each of its answers."""
    daemon = Daemon(url, seconds)
    return FixedToolset("docker", (*_make_reading_tools(daemon), *_make_writing_tools(daemon)))


def _make_reading_tools(daemon: Daemon) -> tuple[Tool, ...]:
    @tool(writes=False, group="runtime", summary="List containers")
    async def docker_list(*, stopped: bool = True) -> dict[str, Any]:
        """List Docker containers with their state.

        Args:
            stopped: whether to list those that do not run as well

        """
        containers = await daemon.list_containers(stopped=stopped)
        return {"containers": [describe_listed(container) for container in containers]}

    @tool(writes=False, group="runtime", summary="Inspect container {container}", names=_REFERENTS)
    async def docker_inspect(container: Name) -> dict[str, Any]:
        """Tell everything about one container. Values of its environment are left out.

        Args:
            container: its name or id

        """
        return describe_inspected(await daemon.inspect(container))

    @tool(writes=False, group="runtime", summary="Read the log of {container}", names=_REFERENTS)
    async def docker_logs(container: Name, lines: Lines = 200) -> dict[str, Any]:
        """Read the end of a container's log.

        Args:
            container: its name or id
            lines: how many lines from the end, 200 when not given

        """
        end = await daemon.read_log(container, lines)
        result = {"container": container, "log": decode_log(end.content)}
        if end.is_cut:
            result["cut"] = "the log is longer"
        return result

    return docker_list, docker_inspect, docker_logs


def _make_writing_tools(daemon: Daemon) -> tuple[Tool, ...]:
    def change_tool(
        summary: str,
        wanted: str | None,
        *,
        grace_seconds: int = 0,
        idempotent: bool = False,
        destructive: bool = False,
    ) -> Callable[[Callable[..., Awaitable[Any]]], Tool]:
        """Return a decorator for a tool that brings a container to the state ``wanted``; None removes it.

        ``grace_seconds``: the seconds that Docker gives the container to stop by itself.
        """
        return tool(
            group="runtime",
            summary=summary,
            preview=_make_preview(daemon, wanted),
            current=_make_state_reader(daemon, wanted),
            touches="containers",  # one change at a time: a name and an id may be one container
            timeout=daemon.seconds + grace_seconds + _MARGIN_SECONDS,
            idempotent=idempotent,
            destructive=destructive,
            names=_REFERENTS,
        )

    @change_tool("Start container {container}", "running", idempotent=True)
    async def docker_start(container: Name) -> dict[str, Any]:
        """Start a container that does not run.

        Args:
            container: its name or id

        """
        return await _change_state(daemon, container, "start")

    @change_tool("Restart container {container}", "restarted", grace_seconds=_STOP_SECONDS)
    async def docker_restart(container: Name) -> dict[str, Any]:
        """Stop a container and start it again.

        Args:
            container: its name or id

        """
        return await _change_state(daemon, container, "restart", t=_STOP_SECONDS)

    @change_tool(
        "Stop container {container}", "exited", grace_seconds=_STOP_SECONDS, idempotent=True, destructive=True
    )
    async def docker_stop(container: Name) -> dict[str, Any]:
        """Stop a container that runs; it can be started again.

        Args:
            container: its name or id

        """
        return await _change_state(daemon, container, "stop", t=_STOP_SECONDS)

    @change_tool("Remove container {container}", None, destructive=True)
    async def docker_remove(container: Name) -> dict[str, Any]:
        """Remove a container that does not run, with all that was written inside it. Its volumes stay.

        Args:
            container: its name or id

        """
        container_id = describe_inspected(await daemon.inspect(container))["id"]
        await daemon.remove(container_id)
        return {"removed": container, "id": container_id}

    return docker_start, docker_restart, docker_stop, docker_remove


def _make_preview(daemon: Daemon, wanted: str | None) -> Preview:
    """Return the preview of a change of state. ``wanted``: the state afterwards; None for a removal."""

    async def read_preview(arguments: Arguments) -> Sequence[PreviewField]:
        current = describe_inspected(await daemon.inspect(arguments["container"]))
        name = current["name"]
        state = current["state"]
        if state == wanted:
            raise ToolError(f"This would change nothing: {name} is {state} already.")
        if wanted is None and state in ("running", "paused", "restarting"):
            raise ToolError(f"{name} is {state}; stop it before it can be removed.")
        if wanted == "exited" and state in ("created", "dead"):
            raise ToolError(f"{name} does not run; it is {state}.")
        container = f"{name}, id {current['id']}"
        image = current["image"]
        if wanted is None:
            return [
                PreviewField("container", container, None),
                PreviewField("image", image, None),
                PreviewField("state", state, None),
                PreviewField("started", current["started_at"], None),
            ]
        return [
            PreviewField("container", container, container),
            PreviewField("image", image, image),
            PreviewField("state", state, wanted),
            PreviewField("started", current["started_at"], "" if wanted == "exited" else "now"),
        ]

    return read_preview


def _make_state_reader(daemon: Daemon, wanted: str | None) -> Current:
    """Return a function that reads the state of a container after a change, to check the change.

    For a restart or a removal it returns nothing: a restarted container runs as before, and a removed one has
    no state.
    """

    async def read_state(arguments: Arguments) -> Mapping[str, str | None]:
        if wanted not in ("running", "exited"):
            return {}
        state = describe_inspected(await daemon.inspect(arguments["container"]))["state"]
        return {"state": state}

    return read_state


async def _change_state(daemon: Daemon, container: str, verb: str, **query: int) -> dict[str, Any]:
    before = describe_inspected(await daemon.inspect(container))
    await daemon.send_change(before["id"], verb, **query)
    after = describe_inspected(await daemon.inspect(before["id"]))
    return {"container": after["name"], "id": after["id"], "was": before["state"], "is": after["state"]}
