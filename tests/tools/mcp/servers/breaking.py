"""An MCP server whose line breaks in the middle of each call. Who comes back gets the rest of it.

It speaks the older protocol over streamable HTTP, without a library. ``done`` has what was done,
``resumed`` the event each client came back with; with ``forgets`` it knows of no earlier events.
"""

import json
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PAINT = {"name": "paint", "inputSchema": {"type": "object", "properties": {"lamp": {"type": "string"}}}}
RESET = struct.pack("ii", 1, 0)  # close without a good-bye


class Breaking:
    def __init__(self, *, forgets: bool = False) -> None:
        self.done: list[str] = []
        self.resumed: list[str] = []
        self.answers: dict[str, dict[str, Any]] = {}  # what still has to be told, by the event before it
        self.forgets = forgets
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *given: _Handler(self, *given))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/mcp"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, world: Breaking, *given: Any) -> None:
        self.world = world
        super().__init__(*given)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        match asked.get("method"):
            case "initialize":
                info = {"name": "breaking", "version": "1"}
                self._json(asked, protocolVersion="2025-11-25", capabilities={"tools": {}}, serverInfo=info)
            case "tools/list":
                self._json(asked, tools=[PAINT])
            case "tools/call":
                self._begin_and_break(asked)
            case method if "id" in asked:
                self._send({"error": {"code": -32601, "message": f"no {method}"}, "id": asked["id"]})
            case _:
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()

    def do_GET(self) -> None:
        last = self.headers.get("Last-Event-ID")
        if last is None:
            self.send_error(405)
            return
        self.world.resumed.append(last)
        if self.world.forgets:
            self.send_error(404)
            return
        self._stream()
        self._event(f"{last}-end", self.world.answers[last])

    def do_DELETE(self) -> None:
        self.send_error(405)

    def _begin_and_break(self, asked: dict[str, Any]) -> None:
        lamp = asked["params"]["arguments"]["lamp"]
        self.world.done.append(f"paint {lamp}")
        event = f"e{len(self.world.done)}"
        result = {"content": [{"type": "text", "text": f"{lamp} is red"}]}
        self.world.answers[event] = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
        self._stream()
        self.wfile.write(f"id: {event}\nretry: 1\ndata: \n\n".encode())
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()

    def _event(self, ident: str, data: dict[str, Any]) -> None:
        self.wfile.write(f"id: {ident}\ndata: {json.dumps(data)}\n\n".encode())

    def _json(self, asked: dict[str, Any], **result: Any) -> None:
        self._send({"id": asked["id"], "result": result})

    def _send(self, said: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **said}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass
