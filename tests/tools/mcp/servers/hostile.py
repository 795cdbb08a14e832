"""An MCP server that lists what it is told to: run as ``python hostile.py FILE [PORT]``.

The file has a JSON list of tools on each line, one line for each page of the listing. With a port it serves
there over streamable HTTP, else it talks over its standard input and output. It speaks the older protocol
without a library, so it can send what no library would. Each call is answered with "done"; ``flood`` with a
text of as many characters as it is asked for, ``half`` with that text, an emoji and half of one.
"""

import http.server
import json
import sys
from pathlib import Path
from typing import Any


def answer(method: str, pages: list[str], asked: dict[str, Any]) -> str | None:
    params = asked.get("params", {})
    if method == "initialize":
        version = params["protocolVersion"]
        info = {"name": "hostile", "version": "1"}
        return json.dumps({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
    if method == "tools/list":
        page = int(params.get("cursor", 0))
        after = f', "nextCursor": "{page + 1}"' if page + 1 < len(pages) else ""
        return f'{{"tools": {pages[page]}{after}}}'
    if method == "tools/call":
        flood = params["arguments"].get("flood", 0)
        half = params["arguments"].get("half", "")
        said = f"{half}😀\ud83d" if half else "x" * flood or "done"
        return json.dumps({"content": [{"type": "text", "text": said}], "isError": False})
    return None


def reply(pages: list[str], line: str) -> str | None:
    asked = json.loads(line)
    if "id" not in asked:
        return None
    said = answer(asked["method"], pages, asked)
    rest = f'"result": {said}' if said else '"error": {"code": -32601, "message": "Method not found"}'
    return f'{{"jsonrpc": "2.0", "id": {json.dumps(asked["id"])}, {rest}}}'


class Handler(http.server.BaseHTTPRequestHandler):
    pages: list[str]
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        said = reply(self.pages, self.rfile.read(int(self.headers["Content-Length"])).decode())
        body = (said or "").encode()
        self.send_response(200 if said else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_error(405)

    def log_message(self, *_: Any) -> None:
        pass


def main() -> None:
    pages = Path(sys.argv[1]).read_text().splitlines()
    if len(sys.argv) > 2:
        Handler.pages = pages
        http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
    for line in sys.stdin:
        if said := reply(pages, line):
            print(said, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
