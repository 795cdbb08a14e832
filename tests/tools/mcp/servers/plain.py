"""An MCP server at an address, without a library: it speaks the older protocol, with sessions.

What the world does to it is a switch here: sessions it forgets, how it refuses one, answers out of form,
lists that do not end, bodies that are packed. ``done`` has what was done, ``asked`` each method that came.
"""

import gzip
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NOTE = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS = (
    {"name": "add_note", "inputSchema": NOTE},
    {"name": "read_note", "inputSchema": NOTE, "annotations": {"readOnlyHint": True}},
)
NOT_FOUND = (404, "application/json", {"id": None, "error": {"code": -32001, "message": "Session not found"}})

Refusal = tuple[int, str, Any]
"""The status, the kind of content and the body: an object becomes a JSON-RPC message, text stays text."""


class Plain:
    """``forget`` ends all sessions; ``refusal`` is how it tells of one that it does not know.

    ``answer`` gives the JSON-RPC parts for a call, ``page`` the result of a list by its cursor. ``instead``
    is an HTTP answer to a call that was carried out, ``packed`` compresses whatever it answers.
    """

    def __init__(self) -> None:
        self.done: list[str] = []
        self.asked: list[str] = []
        self.sessions: set[str] = set()
        self.opened = 0
        self.refusal: Refusal = NOT_FOUND
        self.refuses_all = False  # also the session it has just opened
        self.instead: Refusal | None = None
        self.tools: list[dict[str, Any]] = list(TOOLS)
        self.answer: Callable[[str, dict[str, Any]], dict[str, Any]] = _done
        self.page: Callable[[str | None], dict[str, Any]] = lambda _: {"tools": self.tools}
        self.packed = ""
        self.port = 0
        self.up()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def up(self) -> None:
        """Listen, at the same port as before."""
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), lambda *given: _Handler(self, *given))
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def down(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def forget(self) -> None:
        self.sessions.clear()


def _done(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    text = f"{name} {arguments.get('text', '')}".strip()
    return {"result": {"content": [{"type": "text", "text": text}]}}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def __init__(self, world: Plain, *given: Any) -> None:
        self.world = world
        super().__init__(*given)

    def do_POST(self) -> None:
        world = self.world
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, ident = asked.get("method", ""), asked.get("id")
        world.asked.append(method)
        if method == "initialize":
            world.opened += 1
            session = f"s{world.opened}"
            if not world.refuses_all:
                world.sessions.add(session)
            info = {"name": "plain", "version": "1"}
            told = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            self._say(ident, {"result": told}, session=session)
        elif (session := self.headers.get("Mcp-Session-Id")) is None:
            self._say(None, {"error": {"code": -32000, "message": "Bad Request: no session"}}, status=400)
        elif session not in world.sessions:
            self._refuse(world.refusal, ident)
        elif ident is None:
            self._send(202, "text/plain", b"")
        elif method == "tools/list":
            self._say(ident, {"result": world.page((asked.get("params") or {}).get("cursor"))})
        elif method == "tools/call":
            name, arguments = asked["params"]["name"], asked["params"].get("arguments") or {}
            if name.startswith("add"):
                world.done.append(str(arguments.get("text")))
            if world.instead is not None:
                self._refuse(world.instead, ident)
            else:
                self._say(ident, world.answer(name, arguments))
        elif method == "ping":
            self._say(ident, {"result": {}})
        else:
            self._say(ident, {"error": {"code": -32601, "message": f"no {method}"}})

    def do_GET(self) -> None:
        self.send_error(405)

    def do_DELETE(self) -> None:
        self.world.sessions.discard(self.headers.get("Mcp-Session-Id", ""))
        self._send(200, "text/plain", b"")

    def _refuse(self, refusal: Refusal, ident: Any) -> None:
        status, kind, body = refusal
        if isinstance(body, dict):
            self._say(ident if body.get("id") == "yours" else body.get("id"), body, status=status)
        else:
            self._send(status, kind, str(body).encode())

    def _say(self, ident: Any, said: dict[str, Any], *, status: int = 200, session: str = "") -> None:
        body = json.dumps({"jsonrpc": "2.0"} | said | {"id": ident}).encode()
        headers = {"Mcp-Session-Id": session} if session else {}
        if self.world.packed:
            headers["Content-Encoding"] = self.world.packed
            body = gzip.compress(body)
        self._send(status, "application/json", body, headers)

    def _send(self, status: int, kind: str, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass
