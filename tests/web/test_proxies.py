"""Reverse proxies: only named ones are believed, and Nod may be below a path."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope, Send

from bot import web
from bot.errors import SettingsError
from bot.settings import Settings
from bot.web.server import make_bounded_server
from bot.web.sign_in.proxies import Forwarded, is_proxied
from tests.web.conftest import ANA, CHIEF, TOKENS, Serve

STATIC = Path(web.__path__[0]) / "static"
HOME = {"NOD_HTTP_TOKENS": TOKENS}
SPOOFED = {
    "X-Forwarded-For": "203.0.113.9",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "nod.example",
    "Host": "inside:8080",
}


async def arrived(named: str, peer: str | None, headers: Mapping[str, str]) -> HTTPConnection:
    """What the application sees of a request that ``peer`` sent."""
    seen: list[Scope] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)

    async def silent(*_: object) -> None:
        raise AssertionError

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "scheme": "http",
        "query_string": b"",
        "client": None if peer is None else (peer, 4711),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()],
    }
    networks = Settings.load(NOD_HTTP_TRUSTED_PROXIES=named).trusted_proxies
    await Forwarded(application, networks)(scope, silent, silent)
    return HTTPConnection(seen[0])


@pytest.mark.parametrize(
    ("named", "peer"),
    [("", "127.0.0.1"), ("127.0.0.1", "10.0.0.1"), ("10.0.0.0/8", "gateway"), ("::1", None)],
)
async def test_no_one_but_a_named_proxy_is_believed(named: str, peer: str | None):
    request = await arrived(named, peer, SPOOFED)
    assert (request.client.host if request.client else None) == peer
    assert str(request.url) == "http://inside:8080/"
    assert not is_proxied(request)


@pytest.mark.parametrize(
    ("named", "peer"),
    [("127.0.0.1", "127.0.0.1"), ("10.0.0.0/8", "::ffff:10.1.2.3"), ("127.0.0.1, fd00::/8", "fd00::7")],
)
async def test_a_named_proxy_says_who_called_and_where(named: str, peer: str):
    request = await arrived(named, peer, SPOOFED)
    assert request.client
    assert request.client.host == "203.0.113.9"
    assert str(request.url) == "https://nod.example/"
    assert is_proxied(request)


@pytest.mark.parametrize(
    ("chain", "caller"),
    [
        ("6.6.6.6, 203.0.113.9", "203.0.113.9"),  # the first is what the caller claims of itself
        ("6.6.6.6, 203.0.113.9, 10.0.0.2", "203.0.113.9"),
        ("10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("6.6.6.6:1, 203.0.113.9:567, 10.0.0.2:80", "203.0.113.9"),
        ("[2001:db8::1]:567", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("unknown", "unknown"),
        (" , ", "10.0.0.1"),
    ],
)
async def test_the_caller_is_the_last_address_that_is_not_a_named_proxy(chain: str, caller: str):
    request = await arrived("10.0.0.0/8", "10.0.0.1", {"X-Forwarded-For": chain})
    assert request.client
    assert request.client.host == caller


async def test_a_scheme_that_there_is_not_and_a_host_that_was_added_to_do_not_count():
    request = await arrived(
        "10.0.0.1",
        "10.0.0.1",
        {"X-Forwarded-Proto": "gopher", "X-Forwarded-Host": "evil.example, nod.example", "Host": "inside"},
    )
    assert str(request.url) == "http://nod.example/"


async def test_what_is_no_address_is_refused_at_the_start():
    for wrong in ("localhost", "10.0.0.1/8", "*"):
        with pytest.raises(SettingsError, match=r"NOD_HTTP_TRUSTED_PROXIES.*'" + wrong.replace("*", r"\*")):
            Settings.load(NOD_HTTP_TRUSTED_PROXIES=wrong)


@pytest.mark.platform
async def test_over_tls_that_a_named_proxy_took_off_the_page_without_tls_is_foreign(serve: Serve):
    headers = {"X-Forwarded-Proto": "https", "Host": "nod.example", "Origin": "http://nod.example"}
    async with serve(**HOME, token=ANA) as nod:
        assert (await nod.client.get("/api/me", headers=headers)).status_code == 200
    async with serve(**HOME, token=ANA, NOD_HTTP_TRUSTED_PROXIES=("127.0.0.1",)) as nod:
        assert (await nod.client.get("/api/me", headers=headers)).status_code == 403
        headers["Origin"] = "https://nod.example"
        assert (await nod.client.get("/api/me", headers=headers)).status_code == 200


@pytest.mark.platform
async def test_what_a_named_proxy_brings_is_never_this_machine(serve: Serve):
    async with serve(NOD_HTTP_TRUSTED_PROXIES=("127.0.0.1",)) as nod:
        assert (await nod.client.get("/api/me")).status_code == 403


@pytest.mark.platform
async def test_below_a_path_the_cookie_and_the_document_keep_to_it(serve: Serve):
    public = "https://intranet.example/nod/"
    async with serve(**HOME, NOD_ADMINS=("http:chief",), NOD_PUBLIC_URL=public, token=CHIEF) as nod:
        said = await nod.client.post("/api/commands", json={"name": "nod", "text": "console"})
        code = said.json()["text"].partition("\n")[0].removeprefix(f"{public}#/sign-in/")
        browser = nod.caller(Origin="https://intranet.example", Host="intranet.example")
        entered = await browser.post("/api/session", json={"code": code})
        await browser.aclose()
        cookie = entered.headers["set-cookie"]
        assert "Path=/nod;" in cookie
        assert "Secure" in cookie
        assert (await nod.client.get("/openapi.json")).json()["servers"] == [{"url": "/nod"}]


@pytest.mark.parametrize("page", ["index.html", "docs.html", "offline.html"])
def test_the_pages_name_what_they_need_without_saying_where_nod_is(page: str):
    text = (STATIC / page).read_text()
    assert 'src="static/' in text
    assert '="/' not in text


@pytest.mark.parametrize("path", ["/", "/docs", "/sw.js", "/openapi.json", "/healthz", "/readyz"])
async def test_what_others_add_to_the_address_of_a_page_or_a_probe_is_let_be(serve: Serve, path: str):
    async with serve() as nod:
        for added in ("?utm_source=mail", "?__cf_chl_tk=x&fbclid=1", "?probe=1&probe=2"):
            assert (await nod.client.get(f"{path}{added}")).status_code == 200


def test_a_connection_is_kept_for_longer_than_load_balancers_keep_theirs():
    server = make_bounded_server(Starlette(), 10)
    assert server.config.timeout_keep_alive > 60  # else one sends a request into a connection that ends
