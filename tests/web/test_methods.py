"""HEAD and OPTIONS: what load balancers and monitors ask by, at every address."""

import asyncio

import pytest

from tests.web.conftest import ANA, TOKENS, Serve


async def test_every_get_answers_head_with_the_same_headers_and_no_body(serve: Serve):
    async with serve(NOD_HTTP_TOKENS=TOKENS) as nod:
        document = (await nod.client.get("/openapi.json")).json()["paths"]
        described = [
            path.replace("{", "").replace("}", "") for path, found in document.items() if "get" in found
        ]
        headers = {"Authorization": f"Bearer {ANA}"}
        for path in (
            "/",
            "/docs",
            "/sw.js",
            "/openapi.json",
            "/static/index.html",
            "/healthz",
            "/readyz",
            *described,
        ):
            head = await asyncio.wait_for(nod.client.head(path, headers=headers), 20)
            assert head.content == b""
            async with nod.client.stream("GET", path, headers=headers) as got:
                assert head.status_code == got.status_code, path
                assert head.headers["content-type"] == got.headers["content-type"]


async def test_head_asks_who_calls_as_get_does(serve: Serve):
    async with serve(NOD_HTTP_TOKENS=TOKENS) as nod:
        assert (await nod.client.head("/api/me")).status_code == 401


async def test_head_uses_up_no_way_back_from_a_sign_in(serve: Serve):
    async with serve() as nod:
        for path in ("/oauth/callback", "/api/session/back"):
            answer = await nod.client.head(path, params={"state": "s", "code": "c"})
            assert (answer.status_code, answer.headers.get("set-cookie")) == (200, None)


async def test_options_names_the_methods_of_an_address(serve: Serve):
    async with serve() as nod:
        answer = await nod.client.options("/healthz")
        assert (answer.status_code, answer.headers["allow"]) == (204, "GET, HEAD, OPTIONS")
        assert (await nod.client.options("/api/chat")).headers["allow"] == "POST, OPTIONS"
        assert (await nod.client.options("/nothing")).status_code == 404
        assert (await nod.client.head("/nothing")).status_code == 404
        assert (await nod.client.head("/api/chat")).status_code == 405


async def read_answer(port: int, *lines: str) -> tuple[int, bytes]:
    """Return the status and the body of what the server says to these lines, sent as they stand."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write("".join(f"{line}\r\n" for line in (*lines, "Connection: close", "")).encode())
    answer = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


@pytest.mark.parametrize("address", ["http://127.0.0.1", "HTTP://localhost:8080", "https://[::1]"])
async def test_a_request_line_with_a_full_address_asks_for_its_path(serve: Serve, address: str):
    async with serve() as nod:
        port = nod.app.web.port
        for method, path in (
            ("GET", "/healthz"),
            ("GET", "/api/proposals?state=proposed"),
            ("GET", "/%64ocs"),
        ):
            full = await read_answer(port, f"{method} {address}{path} HTTP/1.1", "Host: localhost")
            assert full == await read_answer(port, f"{method} {path} HTTP/1.1", "Host: localhost")
            assert full[0] == 200
        front = await read_answer(port, f"GET {address} HTTP/1.1", "Host: localhost")
        assert front == await read_answer(port, "GET / HTTP/1.1", "Host: localhost")
        missing = await read_answer(port, f"GET {address}/nothing HTTP/1.1", "Host: localhost")
        assert missing[0] == 404
        head = await read_answer(port, f"HEAD {address}/readyz HTTP/1.1", "Host: localhost")
        assert head == (200, b"")


@pytest.mark.parametrize("target", ["*", "http://localhost"])
async def test_options_of_the_server_itself_names_every_method(serve: Serve, target: str):
    async with serve() as nod:
        line = f"OPTIONS {target} HTTP/1.1"
        assert await read_answer(nod.app.web.port, line, "Host: localhost") == (204, b"")
        for method in ("GET", "HEAD", "POST"):
            answer = await read_answer(nod.app.web.port, f"{method} * HTTP/1.1", "Host: localhost")
            assert answer[0] in (400, 404, 405)


async def test_the_host_of_a_full_address_counts_and_not_that_of_the_header(serve: Serve):
    async with serve() as nod:
        port = nod.app.web.port
        foreign = await read_answer(port, "GET http://nod.example/api/me HTTP/1.1", "Host: localhost")
        assert foreign == await read_answer(port, "GET /api/me HTTP/1.1", "Host: nod.example")
        assert foreign[0] == 403
        own = await read_answer(port, "GET http://localhost/api/me HTTP/1.1", "Host: nod.example")
        assert own[0] == 200


async def test_an_address_within_a_path_stays_a_path(serve: Serve):
    async with serve() as nod:
        for target in ("/http://localhost/healthz", "ftp://localhost/healthz", "http:/healthz"):
            answer = await read_answer(nod.app.web.port, f"GET {target} HTTP/1.1", "Host: localhost")
            assert answer[0] in (400, 404)
