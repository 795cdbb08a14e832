"""Too much from one caller is refused in words, and no one else waits for it."""

import asyncio
import contextlib
import itertools
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.kit import sql
from tests.web.conftest import ANA, BEN, CHIEF, TOKENS, Json, Serve, Served
from tests.web.scripted import ScriptedModel, ask

ADMIN = {"NOD_HTTP_TOKENS": TOKENS, "NOD_ADMINS": ("http:chief",), "token": CHIEF}
MORE_THAN_ANY = 2_001
"""Of lists and objects whose schema names no bound: one over all values of a body holds there."""
WITH_HISTORY = "/agui"
"""Where the body may have 25 times as many."""
UNCOMPRESSED = {"Accept-Encoding": "identity"}


def _resolved(schema: Json, document: Json) -> Json:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _example(schema: Json, document: Json) -> Any:
    """The least that fits."""
    schema = _resolved(schema, document)
    if "const" in schema or "enum" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    for each in ("anyOf", "oneOf"):
        if each in schema:
            return _example(schema[each][0], document)
    match schema.get("type"):
        case "string":
            return "a" * max(1, schema.get("minLength", 1))
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "array":
            return [_example(schema.get("items", {}), document)] * schema.get("minItems", 0)
        case "object" | None if "properties" in schema:
            wanted = schema.get("required", ())
            return {name: _example(schema["properties"][name], document) for name in wanted}
    return {} if schema.get("type") == "object" else "a"


def _overfull(
    schema: Json, document: Json, unbounded: int, seen: tuple[str, ...] = ()
) -> Iterator[tuple[str, Any]]:
    """For each list and free object inside, where it is and a value in which it has too many entries."""
    schema = _resolved(schema, document)
    name = schema.get("title", "")
    if name and seen.count(name) > 1:
        return
    for each in ("anyOf", "oneOf"):
        for option in schema.get(each, ()):
            yield from _overfull(option, document, unbounded, seen)
    if schema.get("type") == "array":
        items = schema.get("items", {})
        most = schema.get("maxItems", unbounded)
        yield "[]", [_example(items, document)] * (most + 1)
        for where, value in _overfull(items, document, unbounded, (*seen, name)):
            yield f"[]{where}", [value]
    if schema.get("type") == "object" and schema.get("additionalProperties", "properties" not in schema):
        values = schema.get("additionalProperties", {})
        most = schema.get("maxProperties", unbounded)
        one = _example(values if isinstance(values, dict) else {}, document)
        yield "{}", {str(number): one for number in range(most + 1)}
    for inner, given in schema.get("properties", {}).items():
        for where, value in _overfull(given, document, unbounded, (*seen, name)):
            yield f".{inner}{where}", {**_example(schema, document), inner: value}


async def _refused(nod: Served, document: Json) -> tuple[int, list[str]]:
    sent, wrong = 0, []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            unbounded = MORE_THAN_ANY * (25 if path == WITH_HISTORY else 1)
            for where, value in _overfull(body["schema"], document, unbounded) if body else ():
                if path == WITH_HISTORY and where.startswith(".messages"):  # read from the newest back
                    continue
                sent += 1
                address = path.replace("{verb}", "approve").replace("{", "").replace("}", "")
                answer = await nod.client.request(method, address, json=value)
                told = answer.json()
                words = told["error"]
                many = "At most" in words or "larger than" in words
                if not (400 <= answer.status_code < 500 and many):
                    wrong.append(f"{method} {path} {where}: {answer.status_code} {words[:80]}")
    return sent, wrong


async def test_every_list_and_object_of_every_body_has_a_bound_that_is_told_in_words(serve: Serve):
    async with serve(**ADMIN, patience=300) as nod, nod.caller(CHIEF) as chief:
        chief.timeout = httpx.Timeout(120)
        nod.client = chief
        document = (await chief.get("/openapi.json")).json()
        sent, wrong = await _refused(nod, document)
        assert wrong == []
        assert sent > 15


@pytest.mark.parametrize("what", ["deep", "wide", "long"])
async def test_what_an_agent_wants_to_give_its_tool_is_bounded(serve: Serve, what: str):
    deep: Any = 1
    for _ in range(900):
        deep = {"a": deep}
    given = {"deep": deep, "wide": {f"k{n}": n for n in range(101)}, "long": {"a": list(range(12_000))}}
    async with serve(**ADMIN) as nod:
        answer = await nod.client.post("/api/permissions", json={"tool_name": "x", "input": given[what]})
        assert (answer.status_code, "At most" in answer.text) == (422, True), answer.text


async def test_a_resume_of_thousands_is_refused_before_any_of_it_is_looked_up(serve: Serve):
    async with serve() as nod:
        entries = [{"interruptId": f"{n:x}-1", "status": "cancelled"} for n in range(8000)]
        body = {"threadId": "t", "runId": "r", "messages": [], "resume": entries}
        answer = await nod.client.post("/agui", json=body)
        assert (answer.status_code, answer.json()["error"]) == (422, "resume: At most 100 entries.")


async def test_a_parameter_repeated_thousands_of_times_is_refused_in_words(serve: Serve):
    async with serve() as nod:
        answer = await nod.client.get(f"/api/proposals?{'state=failed&' * 4900}")
        assert answer.status_code == 422
        assert "At most 50 parameters" in answer.json()["error"]


async def test_a_page_ends_early_where_its_values_are_long_and_the_next_continues(serve: Serve):
    async with serve(**ADMIN) as nod, nod.caller(ANA) as ana:
        for number in range(4):
            given = {"tool_name": "write", "input": {"number": number, "content": "x" * 200_000}}
            assert (await ana.post("/api/permissions", json=given)).status_code == 201
        found, before, pages = [], None, 0
        while pages == 0 or before:
            page = (
                await nod.client.get("/api/proposals", params={"before": before} if before else {})
            ).json()
            found += [each["id"] for each in page["proposals"]]
            before, pages = page["next"], pages + 1
            assert len(page["proposals"]) <= 2
        assert (len(found), len(set(found))) == (4, 4)
        assert pages > 1


async def test_as_many_streams_as_one_member_may_open_leave_all_others_served(serve: Serve):
    async with serve(**ADMIN, patience=240) as nod, contextlib.AsyncExitStack() as open_streams:
        limits = httpx.Limits(max_connections=None)
        headers = {"Authorization": f"Bearer {ANA}"}
        ana = httpx.AsyncClient(base_url=nod.url, headers=headers, limits=limits, timeout=60)
        await open_streams.enter_async_context(ana)
        statuses = []
        for _ in range(60):
            answer = await ana.send(ana.build_request("GET", "/api/events"), stream=True)
            statuses.append(answer.status_code)
            if answer.status_code == 200:
                open_streams.push_async_callback(answer.aclose)
            else:
                assert "You have 50 open" in (await answer.aread()).decode()
                assert answer.headers["retry-after"]
        assert (statuses.count(200), statuses.count(429)) == (50, 10)
        async with nod.caller(BEN) as ben, nod.stream("GET", "/api/events", ben):
            assert (await ben.get("/api/me")).status_code == 200
            assert (await nod.client.get("/healthz")).status_code == 200
    async with serve(**ADMIN) as nod, nod.caller(ANA) as ana, nod.stream("GET", "/api/events", ana):
        pass


async def test_a_stream_that_was_closed_or_never_begun_gives_its_place_back(serve: Serve):
    async with serve(**ADMIN) as nod:
        for _ in range(60):
            async with nod.stream("GET", "/api/events"):
                pass
            missing = await nod.client.get("/api/conversations/none/events")
            assert missing.status_code == 404
        await nod.chat("hello")


async def test_of_requests_that_hold_their_body_back_the_oldest_end_and_others_are_answered(serve: Serve):
    async with serve(**ADMIN) as nod, contextlib.AsyncExitStack() as held:
        port = int(nod.url.rpartition(":")[2])
        who = f"Host: 127.0.0.1\r\nAuthorization: Bearer {CHIEF}".encode()
        head = b"POST /api/chat HTTP/1.1\r\n" + who + b"\r\nContent-Length: 90\r\n\r\n"
        readers = []
        for _ in range(150):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            held.callback(writer.close)
            writer.write(head)
            readers.append(reader)
        first = [(await reader.readline()).decode() for reader in readers[:50]]
        assert all(" 408 " in line for line in first)
        assert (await nod.client.get("/healthz")).status_code == 200
        assert (await nod.chat("hello"))[-1]["type"] == "done"


async def test_a_body_that_trickles_is_no_younger_for_each_of_its_parts(serve: Serve):
    async with serve(**ADMIN) as nod, contextlib.AsyncExitStack() as held:
        port = int(nod.url.rpartition(":")[2])
        who = f"Host: 127.0.0.1\r\nAuthorization: Bearer {CHIEF}".encode()
        head = b"POST /api/chat HTTP/1.1\r\n" + who + b"\r\nContent-Length: 90\r\n\r\n"
        connections = []

        async def begin(many: int) -> None:
            for _ in range(many):
                connection = await asyncio.open_connection("127.0.0.1", port)
                held.callback(connection[1].close)
                connection[1].write(head)
                connections.append(connection)
            await asyncio.sleep(0.5)

        await begin(60)
        for _, writer in connections[:10]:
            writer.write(b" ")
        await asyncio.sleep(0.5)
        await begin(50)
        async with asyncio.timeout(10):
            for reader, _ in connections[:10]:
                assert b" 408 " in await reader.readline()


async def test_who_missed_more_than_is_replayed_is_told_to_read_the_list_again(serve: Serve):
    async with serve(model=ScriptedModel(ask(("keep", {"text": "milk"}))), **ADMIN) as nod:
        (proposal,) = await nod.proposed()
        for _ in range(205):
            assert (await nod.press(proposal, "extend")).status_code == 200
        async with nod.stream("GET", "/api/events", headers={"Last-Event-ID": "0"}) as feed:
            assert (await feed.next())["type"] == "reload"
            newest = feed.last_id
            await nod.press(proposal, "extend")
            assert (await feed.next())["type"] == "proposal_update"
        async with nod.stream("GET", "/api/events", headers={"Last-Event-ID": str(newest)}) as feed:
            assert (await feed.next())["type"] == "proposal_update"


async def test_what_is_private_is_kept_by_no_cache(serve: Serve):
    async with serve(**ADMIN) as nod:
        for path in ("/api/me", "/api/proposals", "/api/audit/export", "/api/nothing"):
            answer = await nod.client.get(path)
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["vary"] == "Authorization, Cookie"
        assert (await nod.client.get("/")).headers["cache-control"] == "no-cache"


async def test_a_time_at_the_end_of_the_calendar_is_refused_in_words(serve: Serve):
    async with serve(**ADMIN) as nod:
        for path in ("/api/usage", "/api/audit", "/api/audit/export"):
            answer = await nod.client.get(path, params={"since": "0001-01-01T00:00:00+14:00"})
            assert (answer.status_code, "too far away" in answer.json()["error"]) == (422, True)


async def test_each_cell_of_an_exported_table_is_quoted(serve: Serve):
    async with serve(**ADMIN, model=ScriptedModel(ask(("keep", {"text": "x;=cmd|calc"})))) as nod:
        await nod.proposed()
        exported = (await nod.client.get("/api/audit/export?format=csv")).text
        lines = exported.removeprefix("\ufeff").splitlines()
        assert all(line.startswith('"') and line.endswith('"') for line in lines)


async def test_an_export_of_a_long_conversation_holds_no_one_up_and_two_at_a_time_are_enough(serve: Serve):
    async with serve(NOD_HTTP_TOKENS=TOKENS, token=ANA, patience=120) as nod:
        (began, *_) = await nod.chat("hello")
        url = nod.app.database.engine.url.render_as_string(hide_password=False)
        copied = "conversation_id, role, text, actor, name, calls, results, created_at, delivered"
        sql(
            url,
            f"INSERT INTO message ({copied}) "
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) "
            f"SELECT {copied} FROM message, n WHERE role = 'assistant'",
        )
        calls, results = [["c", "read", "{}", "Read the notes"]], {"c": ["note " * 600, True]}
        many = {"calls": json.dumps(calls), "results": json.dumps(results)}
        sql(url, "UPDATE message SET calls = :calls, results = :results WHERE role = 'assistant'", **many)
        path = f"/api/conversations/{began['conversation_id']}/export"
        # seconds of the processor, for a busy machine holds the loop, too
        began_at, passes = time.process_time(), [time.thread_time()]
        answering = asyncio.create_task(nod.client.get(path))
        while not answering.done():
            await asyncio.sleep(0.001)
            passes.append(time.thread_time())
        answer = await answering
        assert len(answer.json()["messages"]) == 10_002
        longest = max(after - before for before, after in itertools.pairwise(passes))
        took = time.process_time() - began_at
        print(f"the export took {took:.2f} s, and held the loop for {longest:.2f} s at most")  # noqa: T201 - with -s
        assert longest < took / 10
        # a socket may keep all of it where its room grows, and then both exports would be over
        small = httpx.AsyncHTTPTransport(socket_options=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)])
        headers = httpx.Headers(nod.client.headers)
        headers.update(UNCOMPRESSED)
        async with contextlib.AsyncExitStack() as stack:
            slow = httpx.AsyncClient(base_url=nod.url, headers=headers, transport=small, timeout=60)
            await stack.enter_async_context(slow)
            for _ in range(2):
                await stack.enter_async_context(slow.stream("GET", path))
            refused = await nod.client.get(path)
            assert refused.status_code == 429
            assert "the most" in refused.json()["error"]
        async with nod.client.stream("GET", path) as again:
            assert again.status_code == 200
