"""Who gets in: bearer tokens, the loopback demo, and what other web sites may not do."""

import itertools

import httpx
import pytest

from bot.errors import ModelError
from tests.web.conftest import ANA, TOKENS, Serve, Served
from tests.web.scripted import ScriptedModel, say

OPEN = {"/healthz", "/readyz"}


async def ways_in(nod: Served) -> list[tuple[str, str]]:
    """Every address that is described and asks who calls."""
    paths = (await nod.client.get("/openapi.json")).json()["paths"]
    found = [(m.upper(), path) for path, methods in paths.items() if path not in OPEN for m in methods]
    found.remove(("POST", "/api/session"))  # signing in
    assert len(found) > 10
    return [(m, path.replace("{verb}", "approve").replace("{", "").replace("}", "")) for m, path in found]


MISSING_OR_WRONG = (
    None,
    "Bearer wrong-0123456789ab",
    "",
    "Bearer",
    f"Basic {ANA}",
    ANA,
    f"Bearer {ANA}x",
    f"Bearer {ANA[:-1]}",
)


async def test_a_missing_or_wrong_token_is_401_everywhere(serve: Serve):
    async with serve(NOD_HTTP_TOKENS=TOKENS) as nod:
        everywhere = itertools.product(await ways_in(nod), MISSING_OR_WRONG[:2])
        at_one = itertools.product([("GET", "/api/me")], MISSING_OR_WRONG)
        for (method, path), given in itertools.chain(everywhere, at_one):
            headers = {"Authorization": given} if given is not None else {}
            body = {"message": "hi"} if method == "POST" else None
            answer = await nod.client.request(method, path, headers=headers, json=body)
            assert answer.status_code == 401, (path, given)
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.json() == {
                "ok": False,
                "error": "Send a valid token: Authorization: Bearer <token>.",
            }


async def test_a_valid_token_says_who_calls(serve: Serve):
    async with serve(NOD_HTTP_TOKENS=TOKENS) as nod:
        for scheme in ("Bearer", "bearer"):
            answer = await nod.client.get("/api/me", headers={"Authorization": f"{scheme} {ANA}"})
            assert answer.json()["name"] == "ana"


async def test_a_token_may_hold_any_characters(serve: Serve):
    token = "pässwörter-sind-länger"
    async with serve(NOD_HTTP_TOKENS=(f"ana:{token}",)) as nod:
        answer = await nod.client.get("/api/me", headers={"Authorization": f"Bearer {token}".encode()})
        assert answer.status_code == 200


async def test_without_tokens_this_machine_is_let_in(serve: Serve):
    async with serve() as nod:
        port = nod.app.web.port
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", "localhost"):
            assert (await nod.client.get("/api/me", headers={"Host": host})).json()["name"] == "you"


@pytest.mark.parametrize(
    "host",
    [
        "evil@127.0.0.1",
        "127.0.0.1#.evil",
        "127.0.0.1/x",
        "localhost:x",
        "evil.example",
        "evil.example:8080",
        "127.0.0.1.evil.example",
        "[::",
        "0.0.0.0",  # noqa: S104
        "a b",
        "",
    ],
)
async def test_without_tokens_a_foreign_host_name_is_403(serve: Serve, host):
    async with serve() as nod:
        answer = await nod.client.get("/api/me", headers={"Host": host})
        assert answer.status_code == 403
        assert answer.json()["ok"] is False


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://[::", "file://"]
)
async def test_a_foreign_origin_is_403_with_and_without_tokens(serve: Serve, origin):
    async with serve() as nod:
        answer = await nod.client.post("/api/chat", json={"message": "hi"}, headers={"Origin": origin})
        assert answer.status_code == 403
        assert nod.model.seen == []
    async with serve(NOD_HTTP_TOKENS=TOKENS, token=ANA) as nod:
        assert (await nod.client.get("/api/me", headers={"Origin": origin})).status_code == 403


async def test_what_a_browser_says_comes_from_elsewhere_is_403_without_an_origin_too(serve: Serve):
    async with serve() as nod:
        for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
            answer = await nod.client.get("/api/me", headers={"Sec-Fetch-Site": site})
            assert answer.status_code == status, site


@pytest.mark.parametrize("header", ["Via", "Forwarded", "X-Forwarded-For", "X-Real-IP"])
async def test_without_tokens_what_came_through_a_proxy_is_403(serve: Serve, header):
    async with serve() as nod:
        answer = await nod.client.get("/api/me", headers={header: "127.0.0.1"})
        assert answer.status_code == 403
        assert "NOD_HTTP_TOKENS" in answer.json()["error"]


async def test_with_tls_taken_off_by_a_proxy_the_pages_own_origin_is_welcome(serve: Serve):
    async with serve(NOD_HTTP_TOKENS=TOKENS, token=ANA) as nod:
        for scheme in ("https", "http"):
            headers = {"Origin": f"{scheme}://nod.example", "Host": "nod.example"}
            assert (await nod.client.get("/api/me", headers=headers)).status_code == 200


async def test_the_pages_own_origin_is_welcome(serve: Serve):
    async with serve() as nod:
        assert (await nod.client.get("/api/me", headers={"Origin": nod.url})).status_code == 200


async def test_health_and_pages_need_no_token_and_tell_nothing(serve: Serve):
    async with serve(NOD_HTTP_TOKENS=TOKENS) as nod:
        models = [{"name": nod.app.models[0].name, "fault": ""}]
        told = {"ok": True, "channels": [], "model_fault": "", "models": models, "mcp_servers": []}
        assert (await nod.client.get("/healthz")).json() == told
        assert (await nod.client.get("/readyz")).json() == told
        assert (await nod.client.get("/docs")).status_code == 200


async def test_readiness_says_that_the_model_gives_no_answers_until_it_does(serve: Serve):
    fault = ModelError("The model's server refused the key of team seven.")
    async with serve(model=ScriptedModel([fault], say("Hello"))) as nod:
        for told in ("The language model gives no answers.", ""):
            await nod.chat("Hi")
            answer = await nod.client.get("/readyz")
            assert (answer.status_code, answer.json()["model_fault"]) == (200, told)
            assert [model["fault"] for model in answer.json()["models"]] == [told]


async def test_ready_is_503_when_the_database_cannot_be_reached(serve: Serve):
    async with serve() as nod:
        await nod.app.database.write(
            lambda session: session.connection().exec_driver_sql("ALTER TABLE audit RENAME TO gone") and None
        )
        answer = await nod.client.get("/readyz")
        assert (answer.status_code, answer.json()["ok"]) == (503, False)
        assert (await nod.client.get("/healthz")).status_code == 200
        await nod.app.database.write(
            lambda session: session.connection().exec_driver_sql("ALTER TABLE gone RENAME TO audit") and None
        )
        assert (await nod.client.get("/readyz")).status_code == 200


async def test_ready_is_503_when_the_work_has_ended_in_an_error(serve: Serve):
    async with serve() as nod:
        with pytest.raises(RuntimeError), nod.app.site.mark_serving():
            raise RuntimeError
        assert (await nod.client.get("/readyz")).status_code == 503


async def test_cors_is_not_offered(serve: Serve):
    async with serve() as nod:
        preflight = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
        answer: httpx.Response = await nod.client.options("/api/chat", headers=preflight)
        assert answer.status_code in (403, 405)
        assert "access-control-allow-origin" not in answer.headers
