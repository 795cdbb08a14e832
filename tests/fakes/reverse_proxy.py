"""A reverse proxy on loopback that hands on what comes, or answers in place of what is behind it."""

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

PIECE_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Answer:
    """What the proxy says in place of the server behind it."""

    status: str
    body: str = ""
    headers: tuple[str, ...] = ("Content-Type: text/html",)

    def as_bytes(self) -> bytes:
        lines = (
            f"HTTP/1.1 {self.status}",
            *self.headers,
            f"Content-Length: {len(self.body)}",
            "Connection: close",
        )
        return "\r\n".join([*lines, "", self.body]).encode()


@dataclass
class ReverseProxy:
    """``answers``: for requests that begin with these words, such as ``POST /api/chat``."""

    behind: int  # its port on loopback
    port: int = 0
    answers: dict[str, Answer] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def handle(self, caller: socket.socket) -> None:
        """One request of a connection, which is closed after it."""
        head, body = _read_request(caller)
        for begins, answer in self.answers.items():
            if head.startswith(begins.encode()):
                caller.sendall(answer.as_bytes())
                return
        with socket.create_connection(("127.0.0.1", self.behind)) as server:
            kept = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
            server.sendall(b"\r\n".join([*kept, b"Connection: close", b"", b""]) + body)
            while piece := server.recv(PIECE_BYTES):
                caller.sendall(piece)


def _read_request(caller: socket.socket) -> tuple[bytes, bytes]:
    """The head without its empty line, and the body."""
    got = b""
    while b"\r\n\r\n" not in got:
        piece = caller.recv(PIECE_BYTES)
        if not piece:
            raise ConnectionError
        got += piece
    head, _, body = got.partition(b"\r\n\r\n")
    lengths = [
        line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
    ]
    while len(body) < int(lengths[0] if lengths else 0):
        body += caller.recv(PIECE_BYTES)
    return head, body


@contextlib.contextmanager
def proxied(behind: int) -> Iterator[ReverseProxy]:
    """Run one in front of a port until the end."""
    proxy = ReverseProxy(behind)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                proxy.handle(self.request)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        proxy.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield proxy
        server.shutdown()
