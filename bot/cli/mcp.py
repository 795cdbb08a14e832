"""``nod mcp``: an MCP server on stdin and stdout, by which another agent asks people through the running nod.

``nod mcp login`` and ``nod mcp logout`` are about other MCP servers, whose tools Nod uses: they ask the
running nod over HTTP to sign in there.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import httpx2
import typer

from bot.cli.command import command, with_shared_options
from bot.cli.shared import escape_for_terminal, load_settings, log_at
from bot.errors import NodError
from bot.features.mcp.server import make_mcp_server
from bot.settings import Settings

Server = Annotated[
    str, typer.Argument(metavar="NAME", help="The server's name in the file of NOD_MCP_CONFIG.")
]

app = typer.Typer()
_TIMEOUT_SECONDS = 60.0  # for one request; the running Nod itself may wait up to 20 s before it answers


@app.callback(invoke_without_command=True)
@with_shared_options
def serve(
    context: typer.Context,
    *,
    patience: Annotated[int, typer.Option(min=1, help="Seconds a permission prompt waits.")] = 600,
) -> None:
    """Let another agent ask people over MCP; sign in at MCP servers.

    Alone it is an MCP server on stdin and stdout, in front of the running nod.
    """
    if context.invoked_subcommand is not None:
        return
    settings = load_settings()
    log_at("error")

    def connect(_request_headers: Mapping[str, str] | None) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(base_url=settings.own_url, headers=_make_headers(settings))

    asyncio.run(
        make_mcp_server(
            connect, prompt_wait_seconds=patience, call_wait_seconds=settings.agent_wait
        ).run_stdio_async()
    )


@command(app)
def login(name: Server) -> None:
    """Sign in at an MCP server: prints the page to open, and waits until you were there."""
    with _connect_to_nod() as nod:
        sign_in = _read_answer(nod.post(f"/api/mcp/{name}/login"))
        print(f"Open this page to sign in at {escape_for_terminal(name)}. It works for 10 min.")
        print(escape_for_terminal(sign_in["url"]), flush=True)
        text = None
        while text is None:  # a long poll: the running nod answers late, with None if nothing has happened
            text = _read_answer(nod.get(f"/api/mcp/logins/{sign_in['id']}"))["text"]
        print(escape_for_terminal(text))


@command(app)
def logout(name: Server) -> None:
    """Forget the sign-in at an MCP server."""
    with _connect_to_nod() as nod:
        print(escape_for_terminal(_read_answer(nod.delete(f"/api/mcp/{name}/login"))["text"]))


@contextlib.contextmanager
def _connect_to_nod() -> Iterator[httpx2.Client]:
    """Yield an HTTP client of the running nod. Raises NodError if it can't be reached."""
    settings = load_settings()
    log_at("error")
    url = settings.own_url
    with httpx2.Client(base_url=url, headers=_make_headers(settings), timeout=_TIMEOUT_SECONDS) as client:
        try:
            yield client
        except httpx2.TransportError:
            raise NodError(f"no nod can be reached at {url}. Start it: nod run, or set NOD_URL") from None


def _make_headers(settings: Settings) -> dict[str, str]:
    token = settings.token.get_secret_value() if settings.token else None
    if token:
        return {"Authorization": f"Bearer {token}"}
    return {}


def _read_answer(response: httpx2.Response) -> dict[str, Any]:
    """Return the JSON of a response of the running nod. Raises NodError with the words of an error."""
    try:
        document: dict[str, Any] = response.json()
    except ValueError:
        raise NodError(f"the running nod answered with HTTP {response.status_code}") from None
    if response.status_code == httpx2.codes.UNAUTHORIZED:
        raise NodError("this Nod needs a token: set NOD_TOKEN to one of its tokens (nod token new NAME)")
    if response.is_error:
        raise NodError(str(document.get("error", f"HTTP {response.status_code}")))
    return document
