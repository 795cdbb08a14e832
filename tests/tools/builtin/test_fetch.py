"""Fetching: real servers on loopback behind an injected resolver and connector, and what is never fetched."""

import asyncio
import ipaddress
import random
from collections.abc import AsyncIterator
from contextlib import suppress

import httpcore2
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.errors import BadArguments, ToolError
from bot.tools.builtin.fetch import fetch_tools
from bot.tools.call import CallContext
from bot.tools.documents import Documents
from bot.tools.reading.pages import read_page
from bot.tools.reading.report import Report
from bot.tools.target import is_public, resolve_by_system
from tests.fakes.open_internet import PUBLIC, Net
from tests.kit.examples import examples
from tests.tools.builtin.corpora import lines
from tests.tools.calls import Hands, patience


@pytest.fixture
async def net() -> AsyncIterator[Net]:
    made = Net()
    made.names["example.com"] = [[PUBLIC]]
    await made.start()
    yield made
    await made.stop()


# -- what is fetched


async def test_a_page_is_told_as_text(net):
    net.page(
        "example.com/a?b=c",
        content_type="text/html",
        text="<html><head><title> A  page </title><style>p{}</style><body><h1>Hello</h1>"
        "<script>evil()</script>"
        "<p>One &amp; <b>two</b>\n three<ul><li>x<li>y</ul><img alt='cat'></html>",
    )
    assert await net.get("http://example.com/a?b=c#part") == {
        "url": "http://example.com/a?b=c",
        "status": 200,
        "type": "text/html",
        "title": "A page",
        "note": "Left out: 1 picture.",
        "text": "# Hello\n\nOne & two\nthree\n\n- x\n- y\n[picture: cat]",
    }
    assert net.connected == [(PUBLIC, 80)]


async def test_json_and_plain_text_are_told_as_they_are(net):
    net.page("example.com/j", content_type="application/json", text='{"a": "<b>"}')
    net.page("example.com/p", content_type="text/plain", charset="latin-1", body="café".encode("latin-1"))
    assert (await net.get("http://example.com/j"))["text"] == '{"a": "<b>"}'
    assert (await net.get("http://example.com/p"))["text"] == "café"


async def test_the_host_header_and_the_port_are_those_of_the_url(net):
    net.page("example.com:8080/", text="hi")
    await net.get("http://EXAMPLE.com:8080")
    assert net.seen[0].headers["Host"] == "example.com:8080"
    assert net.connected == [(PUBLIC, 8080)]


async def test_no_cookie_no_password_and_no_proxy_is_used(net, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    net.page("example.com/", text="hi")
    await net.get("http://example.com/")
    assert set(net.seen[0].headers) == {"Host", "User-Agent", "Accept", "Accept-Encoding"}


async def test_redirects_on_one_host_are_followed_and_the_last_url_is_told(net):
    net.leads("example.com/", "/next")
    net.leads("example.com/next", "//example.com/end", status=308)
    net.page("example.com/end", text="there")
    assert (await net.get("http://example.com/"))["url"] == "http://example.com/end"
    assert net.connected == [(PUBLIC, 80)] * 3


async def test_a_redirect_to_another_host_is_a_call_of_its_own(net):
    net.names["other.example"] = [["8.8.8.8"]]
    net.leads("example.com/", "//other.example/end?a=b")
    with pytest.raises(ToolError, match=r"If you need it, fetch http://other\.example/end\?a=b itself"):
        await net.get("http://example.com/")
    assert net.connected == [(PUBLIC, 80)]


async def test_the_links_of_a_page_are_told_as_they_can_be_fetched(net):
    net.page(
        "example.com/docs/",
        content_type="text/html",
        text="<a href='next?a=1&amp;b=2#here'>Next</a><a href=/top>Top</a><a href='//other.example/x'>O</a>"
        "<a href='mailto:ana@example.com'>Mail</a><a href='next?a=1&amp;b=2'>Again</a><a href='http://['>B</a>"
        + "".join(f"<a href='/{n}'>{n}</a>" for n in range(100)),
    )
    links = (await net.get("http://example.com/docs/"))["links"]
    assert links[:3] == [
        "http://example.com/docs/next?a=1&b=2",
        "http://example.com/top",
        "http://other.example/x",
    ]
    assert len(links) < 60


async def test_the_second_address_is_taken_where_the_first_cannot_be_reached(net):
    net.names["example.com"] = [["2606:4700::1", PUBLIC]]
    net.page("example.com/", text="hi")
    real = net.connect_tcp

    async def only_v4(host, *more, **named):
        if ":" in host:
            raise httpcore2.ConnectError("no route")
        return await real(host, *more, **named)

    net.connect_tcp = only_v4
    assert (await net.get("http://example.com/"))["text"] == "hi"


# -- what is not


async def test_no_written_escape_is_ever_connected_to(net):
    net.names.update({"localhost": [["127.0.0.1"]], "example.com": [["127.0.0.1"]]})
    told = []
    for url in lines("urls"):
        with suppress(ToolError):
            told.append((url, await net.get(url)))
    assert told == []
    assert net.connected == []


async def test_a_redirect_to_a_written_escape_is_not_followed(net):
    net.names["second.example"] = [["10.0.0.1"]]
    for url in (each for each in lines("urls") if each.isascii() and "/" in each):
        net.leads("example.com/", url.replace("example.com", "second.example"))
        with suppress(ToolError):  # a few of them are relative places on the same server
            await net.get("http://example.com/")
        assert {host for host, _ in net.connected} == {PUBLIC}, url


@pytest.mark.parametrize(
    "bad", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "::ffff:10.0.0.1", "fe80::1%eth0"]
)
async def test_one_private_address_among_public_ones_refuses_the_name(net, bad):
    for addresses in ([bad], [PUBLIC, bad], [bad, PUBLIC], [PUBLIC, "8.8.8.8", bad]):
        net.names["example.com"] = [addresses]
        with pytest.raises(ToolError, match="not on the open Internet"):
            await net.get("http://example.com/")
    assert net.connected == []


async def test_a_name_that_answers_differently_a_moment_later_is_asked_only_once(net):
    net.names["example.com"] = [[PUBLIC], ["127.0.0.1"]]
    net.page("example.com/", text="hi")
    await net.get("http://example.com/")
    assert (net.asked, net.connected) == (["example.com"], [(PUBLIC, 80)])


async def test_a_name_that_turns_private_before_its_redirect_is_refused_there(net):
    net.names["example.com"] = [[PUBLIC], ["127.0.0.1"]]
    net.leads("example.com/", "/again")
    with pytest.raises(ToolError, match="not on the open Internet"):
        await net.get("http://example.com/")
    assert net.connected == [(PUBLIC, 80)]


async def test_the_real_resolver_finds_loopback_and_it_is_refused():
    assert "127.0.0.1" in await resolve_by_system("127.0.0.1", 80)
    with pytest.raises(ToolError, match="internal network"):
        await Hands(fetch_tools()).run("http_fetch", url="http://localhost/")


@pytest.mark.parametrize("port", [22, 25, 3306, 6379, 65535])
async def test_a_port_that_is_not_one_of_the_web_is_never_connected_to(net, port):
    net.leads("example.com/away", f"http://example.com:{port}/")
    for url in (f"http://example.com:{port}/", f"https://8.8.8.8:{port}/", "http://example.com/away"):
        with pytest.raises(ToolError, match=f"Port {port} is not allowed"):
            await net.get(url)
    assert {each for _, each in net.connected} <= {80}


async def test_more_than_five_redirects_end(net):
    for n in range(9):
        net.leads(f"example.com/{n}", f"/{n + 1}")
    with pytest.raises(ToolError, match="more than 5 times"):
        await net.get("http://example.com/0")
    assert len(net.connected) == 6


async def test_a_page_that_is_too_long_is_refused_while_it_is_read(net):
    async def endless(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await answer.prepare(request)
        with suppress(ConnectionError):
            while True:
                await answer.write(b"x" * 4096)
        return answer

    net.pages["example.com/"] = endless
    with pytest.raises(ToolError, match="more than 10000 bytes"):
        await net.get("http://example.com/")


@pytest.mark.parametrize(
    "kind", ["image/png", "application/octet-stream", "application/pdf", "video/mp4", ""]
)
async def test_what_is_no_text_is_refused(net, kind):
    net.page("example.com/", body=b"x", headers={"Content-Type": kind})
    with pytest.raises(ToolError, match="only text, HTML and JSON"):
        await net.get("http://example.com/")


async def test_packed_bytes_are_refused(net):
    net.page("example.com/", body=b"x", headers={"Content-Type": "text/plain", "Content-Encoding": "gzip"})
    with pytest.raises(ToolError, match="packed"):
        await net.get("http://example.com/")


async def test_a_server_that_never_answers_is_given_up(net):
    async def silent(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    net.pages["example.com/"] = silent
    hands = Hands(fetch_tools(resolve=net.resolve, connector=net, seconds=0.2))
    with pytest.raises(ToolError, match=r"within 0\.2 s"):
        await hands.run("http_fetch", url="http://example.com/")


async def test_a_server_that_is_not_there_or_talks_nonsense_is_told(net):
    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"what?\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(nonsense, "127.0.0.1", 0)
    net.port = server.sockets[0].getsockname()[1]
    with pytest.raises(ToolError, match="could not be reached"):
        await net.get("http://example.com/")
    server.close()
    await server.wait_closed()
    with pytest.raises(ToolError, match="could not be reached"):
        await net.get("http://example.com/")
    with pytest.raises(ToolError, match="has no address"):
        await net.get("http://nobody.example/")


async def test_a_name_in_tls_is_that_of_the_url_and_not_the_address(net):
    names: list[str | None] = []

    class Tls(httpcore2.AsyncNetworkStream):
        async def start_tls(self, ssl_context, server_hostname=None, timeout=None):  # noqa: ASYNC109 - its signature
            names.append(server_hostname)
            raise httpcore2.ConnectError("far enough")

        async def aclose(self):
            pass

    async def connect(*_, **__):
        return Tls()

    net.connect_tcp = connect
    with pytest.raises(ToolError, match="could not be reached"):
        await net.get("https://example.com/")
    assert names == ["example.com"]


async def test_from_https_nothing_leads_back_to_http(net):
    said = b"HTTP/1.1 302 Found\r\nLocation: http://example.com/\r\nContent-Length: 0\r\n\r\n"
    hands = Hands(fetch_tools(resolve=net.resolve, connector=httpcore2.AsyncMockBackend([said])))
    with pytest.raises(ToolError, match="from https back to http"):
        await hands.run("http_fetch", url="https://example.com/")


async def test_a_url_with_nul_is_refused(net):
    with pytest.raises(BadArguments):
        await net.get("http://example.com/\0")


# -- invented ones


NOT_PUBLIC = [
    ipaddress.ip_network(each)
    for each in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
        "192.168.0.0/16",
        "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",
        "240.0.0.0/4",
        "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8", "2001::/23", "2001:db8::/32", "2002::/16",
        "100::/64",
    )
]  # fmt: skip


@st.composite
def own_addresses(draw):
    network = draw(st.sampled_from(NOT_PUBLIC))
    return network[draw(st.integers(0, network.num_addresses - 1))]


def spellings(number: int) -> list[str]:
    """An IPv4 address in the ways that one program or another would understand."""
    a, b, c, d = number.to_bytes(4)
    return [
        f"{a}.{b}.{c}.{d}", str(number), hex(number), f"0{number:o}", f"{a}.{number & 0xFFFFFF}",
        f"{a}.{b}.{number & 0xFFFF}", f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}", f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
        f"0{a:o}.{b}.{c}.{d}", f"{a:03}.{b:03}.{c:03}.{d:03}", f"{a}.{b}.{c}.{d}.",
        f"[::ffff:{a}.{b}.{c}.{d}]",
        f"[::{a}.{b}.{c}.{d}]", f"[64:ff9b::{a}.{b}.{c}.{d}]",
        f"[2002:{number >> 16:x}:{number & 0xFFFF:x}::]",
        f"[::ffff:0:{a}.{b}.{c}.{d}]", f"[64:ff9b:1::{a}.{b}.{c}.{d}]", str(2**32 + number),
    ]  # fmt: skip


@given(own_addresses())
def test_no_address_of_an_internal_network_is_public(address):
    assert not is_public(address)


@given(st.integers(0, 2**32 - 1))
def test_an_ipv4_address_in_an_ipv6_one_is_never_better_than_itself(number):
    inner = ipaddress.IPv4Address(number)
    inside = [
        0xFFFF << 32 | number, number, 0x2002 << 112 | number << 80, 0x64FF9B << 96 | number,
        0x20010000 << 96 | (~number & 0xFFFFFFFF), 0x2606470000000000 << 64 | 0x5EFE << 32 | number,
    ]  # fmt: skip
    for each in inside:
        assert is_public(inner) or not is_public(ipaddress.IPv6Address(each))


@pytest.mark.slow
@settings(deadline=None)
@given(own_addresses(), st.randoms(use_true_random=False))
def test_no_spelling_of_an_own_address_is_connected_to(address, chance: random.Random):
    written = spellings(int(address)) if address.version == 4 else [f"[{address}]", f"[{address.exploded}]"]
    port = chance.choice(["", ":80", ":8080"])
    net = Net()
    for host in written:
        with pytest.raises(ToolError):
            asyncio.run(net.get(f"http://{host}{port}/"))
    assert net.connected == []


PARTS = st.sampled_from([
    "http", "https", "file", ":", "//", "/", "\\", "@", "#", "?", "127.0.0.1", "localhost", "example.com",
    "[::1]", "[",
    "]", "%00", "%2f", "%40", ".", "0x7f", "1", "\t", " ", "\n", "\u3002", "\uff0f", "\u2100", ":80",
    "user", ";", "\u00ad",
])  # fmt: skip


@examples(300)
@given(st.lists(PARTS, max_size=9).map("".join), st.sampled_from(["", "http://", "https://"]))
def test_no_invented_url_is_connected_to_anything_but_its_checked_address(text, scheme):
    net = Net()
    net.names.update({"example.com": [[PUBLIC]], "localhost": [["127.0.0.1"]]})

    async def go(*_, **__):
        raise httpcore2.ConnectError("far enough")

    async def connect(host, port, *_, **__):
        net.connected.append((host, port))
        return await go()

    net.connect_tcp = connect
    with suppress(ToolError, BadArguments):
        asyncio.run(net.get(scheme + text))
    assert all(is_public(ipaddress.ip_address(host)) for host, _ in net.connected)
    assert "localhost" not in net.asked


@given(st.text(max_size=200))
def test_any_text_can_be_read_as_a_page(text):
    assert "\0" not in read_page(text, Report()).text


async def test_what_a_page_hides_is_left_out_and_said(net):
    net.page(
        "example.com/",
        content_type="text/html",
        text="<style>.x{display:none}</style><p>Seen</p><div class=x>secret <a href='/trap'>go</a></div>",
    )
    found = await net.get("http://example.com/")
    assert found["text"] == "Seen"
    assert found["note"] == "Left out: 1 piece of hidden text."
    assert "links" not in found


async def test_the_person_is_told_what_a_page_hides_too(net):
    told: list[str] = []

    async def tell(words: str) -> None:
        told.append(words)

    net.page("example.com/", content_type="text/html", text="Seen<p hidden>secret</p>")
    context = CallContext("c", "http:ana", progress=tell)
    await net.hands.tools["http_fetch"].run({"url": "http://example.com/"}, context)
    assert told == ["Left out: 1 piece of hidden text."]


HALF = 300_000
HOSTILE_PAGES = {
    "tags never closed": "<a " * HALF,
    "silent tags and other ends": "<svg>" * HALF + "</p>" * HALF,
    "ends of silent tags": "<svg><object>" * HALF + "</svg>" * HALF,
    "marked sections": "<![<![" * HALF,
    "comments never closed": "<!--<b>" * HALF,
    "quotes never closed": '<a b="' * HALF,
    "scripts never closed": "<script></script" * HALF,
    "references": "&#9999" * HALF + "&#" + "9" * 5000,
    "spaces": "\n \n" * HALF + "<a" + " " * HALF,
}


@pytest.mark.slow
@pytest.mark.parametrize("page", HOSTILE_PAGES.values(), ids=HOSTILE_PAGES.keys())
async def test_no_page_takes_longer_the_more_often_a_part_comes_before(page):
    with patience(60):
        await Documents().read_page(page)


@pytest.mark.parametrize("charset", ["punycode", "idna", "unicode_escape"])
async def test_a_character_set_that_no_page_has_is_read_as_utf_8(net, charset):
    kind = f"text/plain; charset={charset}"
    net.page("example.com/", body="ä-b\\x41".encode(), headers={"Content-Type": kind})
    assert (await net.get("http://example.com/"))["text"] == "ä-b\\x41"


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<table><tr><td>a</td><td>b</td></tr><tr><th>c</th>d</table>", "a\tb\nc d"),
        ("<p>a</p>b<div>c</div>d", "a\nb\nc\nd"),
        ("<style><p>a</p></style>b<svg><p>c</p><td>d</td></svg>e", "be"),
        ("<head><meta>a<body>b<img alt='c'>", "ab[picture: c]"),
    ],
    ids=["cells", "blocks", "silent", "a head that is never closed"],
)
def test_what_stands_apart_on_a_page_stands_apart_in_its_text(page, text):
    assert read_page(page, Report()).text == text
