"""Several processes need PostgreSQL, and say so."""

import socketserver
import struct
import threading

import pytest

from tests.cli.conftest import Shell

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("words", ["worker", "run --no-work"])
def test_on_sqlite_one_process_does_everything(shell: Shell, words: str) -> None:
    done = shell.nod(*words.split(), NOD_ADMINS="cli:operator", NOD_MODEL="m", OPENAI_API_KEY="k")
    assert done.exit_code == 1
    assert done.stderr == (
        f"nod: NOD_DATABASE_URL: nod {words} needs PostgreSQL. On SQLite one nod run does everything.\n"
    )


class Pooler(socketserver.BaseRequestHandler):
    """Refuses what a connection begins with as PgBouncer does."""

    def handle(self) -> None:
        self.request.recv(8)  # whether there is TLS
        self.request.sendall(b"N")
        self.request.recv(4096)
        words = b"SFATAL\0C08P01\0Munsupported startup parameter: options\0\0"
        self.request.sendall(b"E" + struct.pack("!i", len(words) + 4) + words)


def test_a_pooler_that_refuses_how_nod_connects_is_named(shell: Shell) -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Pooler) as pooler:
        threading.Thread(target=pooler.serve_forever, daemon=True).start()
        url = f"postgresql+psycopg://nod@127.0.0.1:{pooler.server_address[1]}/nod"
        for words in (["run"], ["pending"]):
            done = shell.nod(*words, NOD_DATABASE_URL=url, NOD_PORT="0")
            assert done.exit_code == 1
            assert "a pooler such as PgBouncer answers there. Name the PostgreSQL server" in done.stderr
        pooler.shutdown()
