"""What is answered to what should not have been sent, and the headers every answer carries."""

import asyncio
import re
from collections.abc import AsyncIterator
from urllib.parse import urljoin

import pytest

from bot.tools.decorator import tool
from bot.tools.toolset import Toolset, ToolSource
from tests.web.conftest import Serve
from tests.web.scripted import ScriptedModel, ask


async def chunks(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b"x" * 65_536


@pytest.mark.parametrize("count", [5, 40])
async def test_a_body_that_is_too_large_is_413_also_without_a_length(serve: Serve, count):
    async with serve() as nod:
        headers = {"Content-Type": "application/json"}
        whole = await nod.client.post("/api/chat", content=b"x" * 65_536 * count, headers=headers)
        chunked = await nod.client.post("/api/chat", content=chunks(count), headers=headers)
        for answer in (whole, chunked):
            assert answer.status_code == 413
            assert answer.json()["error"] == "The body is larger than 256 KiB. Send less in one request."
        assert (await nod.client.get("/api/me")).status_code == 200


@pytest.mark.parametrize("body", [b"{", b"", b"{'message': 1}", b'{"message": "\xff\xfe"}', b"[" * 100_000])
async def test_a_body_that_is_not_json_is_refused_in_words(serve: Serve, body):
    async with serve() as nod:
        answer = await nod.client.post(
            "/api/chat", content=body, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == (400 if body else 422)
        assert answer.json()["ok"] is False


async def test_unknown_and_missing_fields_are_422_by_name(serve: Serve):
    async with serve() as nod:
        answer = await nod.client.post("/api/chat", json={"mesage": "hi"})
        assert answer.status_code == 422
        assert set(answer.json()["fields"]) == {"message", "mesage"}
        answer = await nod.client.post("/api/proposals/x/approve", json={"approve": True, "round": "one"})
        assert set(answer.json()["fields"]) == {"approve", "round"}
        answer = await nod.client.post("/api/proposals/x/decline", json={"reason": "x" * 1001})
        assert set(answer.json()["fields"]) == {"reason"}
        for body in ([], "hi", 1, None):
            assert (await nod.client.post("/api/chat", json=body)).status_code == 422


@pytest.mark.parametrize(
    ("method", "path", "body", "said"),
    [
        ("POST", "/api/chat", {"message": "", "x": 1}, "This is empty. Write something."),
        ("POST", "/api/chat", {"x": 1}, "x: There is no such field."),
        ("POST", "/api/chat", {"message": 5}, "message: This must be text."),
        ("POST", "/api/chat", [], "This must be an object."),
        ("POST", "/api/rules", {"kind": "x"}, "Say which kind it is in subject"),
        ("POST", "/api/proposals/x/approve?wait=abc", {}, "wait: This must be a number."),
        ("POST", "/api/proposals/x/approve?wait=1000", {}, "wait: At most"),
        ("GET", "/api/proposals?state=odd", None, "This must be proposed,"),
    ],
)
async def test_what_does_not_fit_is_told_in_plain_words(serve: Serve, method, path, body, said):
    async with serve() as nod:
        answer = await nod.client.request(method, path, json=body)
        assert answer.status_code == 422
        assert said in answer.json()["error"]


async def test_a_form_is_not_taken_for_json(serve: Serve):
    async with serve() as nod:
        answer = await nod.client.post("/api/chat", data={"message": "hi"})
        assert answer.status_code == 422
        plain = await nod.client.post(
            "/api/chat", content='{"message": "hi"}', headers={"Content-Type": "text/plain"}
        )
        assert plain.status_code == 422
        assert nod.model.seen == []


async def test_what_no_column_can_hold_is_not_a_500(serve: Serve):
    async with serve() as nod:
        for text in (r"\ud800", r"a\u0000b"):
            answer = await nod.client.post(
                "/api/chat", content=f'{{"message": "{text}"}}', headers={"Content-Type": "application/json"}
            )
            assert answer.status_code in (200, 422), answer.text
        for path in ("%00", "%ff", "..%2f..", "a%0ab"):
            assert (await nod.client.get(f"/api/conversations/{path}/messages")).status_code == 404
            assert (await nod.client.get(f"/api/proposals/{path}")).status_code in (404, 405)


@pytest.mark.parametrize(
    "path", ["/nothing", "/api/nothing", "/static/nothing.js", "/static/vendor/nothing", "/api/chat/"]
)
async def test_an_address_that_is_not_there_is_404_as_json(serve: Serve, path):
    async with serve() as nod:
        answer = await nod.client.get(path)
        assert answer.status_code == 404
        assert answer.json() == {"ok": False, "error": "There is nothing at this address."}


async def test_who_opens_an_address_that_is_not_there_in_a_browser_gets_a_page(serve: Serve):
    browser = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    async with serve() as nod:
        for path in ("/inbox", "/nothing", "/a/b"):
            answer = await nod.client.get(path, headers=browser)
            assert answer.status_code == 404
            assert answer.headers["content-type"].startswith("text/html")
            assert "There is no such page." in answer.text
            assert 'href="/"' in answer.text
        assert (await nod.client.get("/api/nothing", headers=browser)).json()["ok"] is False
        assert (await nod.client.post("/nothing", headers=browser)).json()["ok"] is False


async def test_a_method_that_is_not_taken_is_405_as_json_and_names_the_right_one(serve: Serve):
    async with serve() as nod:
        answer = await nod.client.get("/api/chat")
        assert answer.status_code == 405
        assert answer.json()["ok"] is False
        assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/api/conversations/some", {"PATCH", "DELETE"}),
        ("PATCH", "/api/session", {"GET", "POST", "DELETE"}),
        ("POST", "/api/mcp/logins/some", {"GET"}),
        ("GET", "/agui", {"POST"}),
    ],
)
async def test_a_method_that_is_not_taken_names_all_that_are(serve: Serve, method, path, allowed):
    async with serve() as nod:
        answer = await nod.client.request(method, path)
        assert answer.status_code == 405
        assert set(answer.headers["allow"].split(", ")) == allowed


class Broken:
    """A toolset whose source is away; for the server this is what no one foresaw."""

    name = "broken"

    async def tools(self) -> list[object]:
        raise RuntimeError("secret inside")


async def test_what_breaks_is_a_500_without_a_trace_and_the_log_names_the_request(serve: Serve, caplog):
    async with serve(model=ScriptedModel(ask(("keep", {"text": "x"})))) as nod:
        broken: Toolset = Broken()  # type: ignore[assignment]
        (proposal,) = await nod.proposed()
        nod.app.registry._sources = (ToolSource(broken),)
        answer = await nod.client.get(f"/api/proposals/{proposal['id']}")
        assert answer.status_code == 500
        assert set(answer.json()) == {"ok", "error"}
        assert "secret inside" not in answer.text
        assert "Traceback" not in answer.text
        assert answer.headers["x-content-type-options"] == "nosniff"
    (logged,) = [record.msg for record in caplog.records if "request failed" in str(record.msg)]
    assert answer.headers["x-request-id"] in str(logged)


async def test_every_answer_carries_safe_headers(serve: Serve):
    async with serve() as nod:
        for path in (
            "/",
            "/docs",
            "/openapi.json",
            "/api/me",
            "/nothing",
            "/healthz",
            "/static/vendor/swagger-ui/swagger-ui.css",
        ):
            headers = (await nod.client.get(path)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"
            assert headers["referrer-policy"] == "no-referrer"
            policy = dict(
                part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";")
            )
            assert policy["default-src"] == "'none'"
            assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
            assert policy["connect-src"] == "'self'"
            assert "server" not in headers
            if path != "/docs":
                assert policy["script-src"] == policy["style-src"] == "'self'"


async def test_the_api_page_asks_no_outside_host_and_all_it_names_is_there(serve: Serve):
    async with serve() as nod:
        page = (await nod.client.get("/docs")).text
        named = set(re.findall(r"""(?:src|href)=["']([^"']+)|url: '([^']+)'""", page))
        addresses = {a or b for a, b in named}
        assert len(addresses) >= 4
        for address in addresses:
            assert not re.match(r"\w+:|//", address), address
            assert (await nod.client.get(urljoin("/docs", address))).status_code == 200, address


async def test_the_console_page_asks_no_outside_host_and_all_it_names_is_there(serve: Serve):
    async with serve() as nod:
        answer = await nod.client.get("/")
        assert answer.headers["content-type"].startswith("text/html")
        addresses = set(re.findall(r"""(?:src|href)=["']([^"'#]+)""", answer.text))
        assert addresses
        for address in addresses:
            if not address.startswith("data:"):
                assert not re.match(r"\w+:|//", address), address
                assert (await nod.client.get(urljoin("/", address))).status_code == 200, address


@pytest.mark.parametrize("prefix", ["/static", "/static/vendor"])
@pytest.mark.parametrize(
    "way",
    [
        "/../api.py",
        "/..%2fapi.py",
        "/%2e%2e/api.py",
        "//etc/passwd",
        "/..%5capi.py",
        "/%2e%2e%2f%2e%2e%2fapp.py",
        "/..",
    ],
)
async def test_nothing_outside_the_static_folder_is_served(serve: Serve, prefix, way):
    async with serve() as nod:
        reader, writer = await asyncio.open_connection("127.0.0.1", nod.app.web.port)
        writer.write(f"GET {prefix}{way} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()  # httpx would take the dots out
        writer.close()
        await writer.wait_closed()
        assert answer.startswith((b"HTTP/1.1 404", b"HTTP/1.1 405"))
        assert b"import" not in answer


async def test_the_description_shows_how_to_send_a_token(serve: Serve):
    async with serve() as nod:
        described = (await nod.client.get("/openapi.json")).json()
        (scheme,) = described["components"]["securitySchemes"].values()
        assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
        assert described["paths"]["/api/chat"]["post"]["security"]
        assert "security" not in described["paths"]["/healthz"]["get"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/approvals", '{"summary": "a\\ud800b"}'),
        ("/api/approvals", '{"summary": "a", "fields": {"\\ud800": "b"}}'),
        ("/api/permissions", '{"tool_name": "\\udfff", "input": {}}'),
        ("/api/permissions", '{"tool_name": "a", "input": {"x": ["\\ud800"]}}'),
        ("/api/chat", '{"message": "a", "conversation_id": "\\ud800"}'),
        ("/api/chat", '{"message": "\\ud800"}'),
        ("/api/commands", '{"name": "nod", "text": "\\ud800"}'),
    ],
)
async def test_half_a_surrogate_pair_is_422_in_words(serve: Serve, path, body):
    async with serve() as nod:
        headers = {"Content-Type": "application/json"}
        answer = await nod.client.post(path, content=body, headers=headers)
        assert answer.status_code == 422, answer.text
        assert "valid Unicode" in answer.json()["error"]


async def test_a_nul_in_an_address_is_404(serve: Serve):
    async with serve() as nod:
        for path in ("/api/proposals/%00", "/api/conversations/a%00/messages", "/static/%00"):
            assert (await nod.client.get(path)).status_code == 404


async def test_the_log_repeats_nothing_that_the_arguments_hide(serve: Serve, caplog):
    @tool()
    async def sign_in(password: str) -> str:
        """Fail, and say too much."""
        raise RuntimeError(f"refused {password}")

    model = ScriptedModel(ask(("sign_in", {"password": "correct-horse"})))
    async with serve(model=model, tools=(sign_in,)) as nod:
        (proposal,) = await nod.proposed()
        await nod.press(proposal, "approve")
        await nod.idle()
        assert (await nod.proposal(proposal["id"]))["state"] == "failed"
    said = str([record.msg for record in caplog.records])
    assert "RuntimeError: refused" in said
    assert "correct-horse" not in said
