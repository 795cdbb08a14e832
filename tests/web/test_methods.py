"""HEAD and OPTIONS: what load balancers and monitors ask by, at every address."""

import asyncio

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
