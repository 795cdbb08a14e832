"""An MCP server with its own sign-in, without a library: it does what real ones do that the standards don't.

``issuer`` is how its description names it, ``registration`` what it answers to a client that registers,
``token`` to a code; ``back`` is what its page sends people back with. ``proofs`` has how clients proved
themselves.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

TOKEN = {"access_token": "tok-1234567890", "token_type": "bearer", "expires_in": "3600"}


class SignInServer:
    def __init__(self) -> None:
        self.proofs: list[str] = []
        self.registered: tuple[int, dict[str, Any]] = (201, {"client_id": "c1"})
        self.token: tuple[int, str, dict[str, Any]] = (200, "application/json", TOKEN)
        self.back: dict[str, str] = {"code": "code-1"}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *given: _Handler(self, *given))
        self._server.daemon_threads = True
        self.base = f"http://127.0.0.1:{self._server.server_port}"
        self.issuer = self.base
        self.asked_for = self.base  # as the server that is protected names it
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, world: SignInServer, *given: Any) -> None:
        self.world = world
        super().__init__(*given)

    def do_GET(self) -> None:
        base, where = self.world.base, urlsplit(self.path)
        if where.path.startswith("/.well-known/oauth-protected-resource"):
            self._say(200, {"resource": f"{base}/mcp", "authorization_servers": [self.world.asked_for]})
        elif where.path.startswith("/.well-known/"):
            described = {
                "issuer": self.world.issuer,
                "authorization_endpoint": f"{base}/page",
                "token_endpoint": f"{base}/token",
                "registration_endpoint": f"{base}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            }
            self._say(200, described)
        elif where.path == "/page":
            asked = dict(parse_qsl(where.query))
            self.send_response(302)
            brought = urlencode(self.world.back | {"state": asked["state"]})
            self.send_header("Location", f"{asked['redirect_uri']}?{brought}")
            self.end_headers()
        else:
            self.send_error(405)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if self.path == "/register":
            status, said = self.world.registered
            self._say(status, json.loads(body) | said if status == 201 else said)
        elif self.path == "/token":
            form = dict(parse_qsl(body.decode()))
            secret = "body" if "client_secret" in form else "none"
            self.world.proofs.append("header" if "Authorization" in self.headers else secret)
            status, kind, said = self.world.token
            packed = urlencode(said) if "form" in kind else json.dumps(said)
            self._send(status, kind, packed.encode())
        elif "tok-1234567890" not in self.headers.get("Authorization", ""):
            self.send_response(401)
            where = f"{self.world.base}/.well-known/oauth-protected-resource"
            self.send_header("WWW-Authenticate", f'Bearer resource_metadata="{where}"')
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self._say(200, {"jsonrpc": "2.0", "id": 0, "result": {}})

    def _say(self, status: int, said: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(said).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass
