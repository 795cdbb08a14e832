"""The OpenAPI document is what the interface does: every answer of a day's use fits what is written there."""

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any

import httpx
from fastapi import APIRouter
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

import bot
from bot.domain.files import File
from bot.tools.call import ToolOutput
from bot.tools.decorator import tool
from bot.web import api
from bot.web import mcp_logins as logins
from bot.web.ag_ui import routes
from bot.web.sign_in import sessions
from tests.web.conftest import ANA, CHIEF, TOKENS, Json, Serve, Served
from tests.web.scripted import ScriptedModel, ask, say


class Checked:
    """Answers held to the document as they come; ``called``: operations seen, ``faults``: what differed."""

    def __init__(self, document: Json) -> None:
        self.document = document
        self.called: set[str] = set()
        self.faults: list[str] = []
        self._paths = [
            (re.compile(re.sub(r"\\\{[^}]+\\\}", "[^/]+", re.escape(path)) + "$"), operations)
            for path, operations in document["paths"].items()
        ]

    def _operation(self, method: str, path: str) -> Json:
        fitting = [operations for pattern, operations in self._paths if pattern.match(path)]
        found: Json = next(each[method.lower()] for each in fitting if method.lower() in each)
        return found

    def check(self, value: Any, schema: Json, where: str) -> None:
        whole = {**schema, "components": self.document["components"]}
        self.faults += [
            f"{where}: {'/'.join(map(str, e.absolute_path))}: {e.message[:200]}"
            for e in Draft202012Validator(whole).iter_errors(value)
        ]

    async def __call__(self, response: httpx.Response) -> None:
        await response.aread()
        request = response.request
        operation = self._operation(request.method, request.url.path)
        where = f"{operation['operationId']} {response.status_code}"
        self.called.add(operation["operationId"])
        described = operation["responses"].get(str(response.status_code))
        if described is None:
            self.faults.append(f"{where}: not described")
            return
        kind = response.headers["content-type"].partition(";")[0]
        if kind not in described["content"]:
            self.faults.append(f"{where}: {kind} is not described")
            return
        schema = described["content"][kind].get("schema", {})
        if kind == "text/event-stream":
            assert schema == {}  # clients made from the document would read all of it as that
            schema = described["content"][kind]["x-itemSchema"]["properties"]["data"]["contentSchema"]
            for line in response.text.splitlines():
                if line.startswith("data: "):
                    self.check(json.loads(line[6:]), schema, where)
        elif kind == "application/json":
            assert schema, where
            self.check(response.json(), schema, where)


@tool(summary="Keep “{text}”")
async def keep(text: str) -> ToolOutput:
    """Keep a text."""
    return ToolOutput(f"kept {text}", files=(File("kept.txt", text),))


@tool(writes=False)
async def read() -> ToolOutput:
    """Read what is kept."""
    return ToolOutput("milk", files=(File("list.txt", "milk"),))


LISTS = (
    "rules",
    "files",
    "people",
    "schedules",
    "settings",
    "features",
    "doctor",
    "grants",
    "audit",
    "audit/verify",
    "tools",
    "usage",
    "insights",
    "insights/export",
    "insights/people",
    "memory",
    "connections",
    "mutes",
    "push",
    "mcp",
)


async def test_every_answer_of_every_operation_is_as_the_document_says(serve: Serve):
    model = ScriptedModel(
        _keep("milk"), say("Kept."), _keep("a", "b", "c"), say("No."), ask(("read", {})), say("Read.")
    )
    settings = {"NOD_HTTP_TOKENS": TOKENS, "NOD_ADMINS": ("http:chief",)}
    async with serve(model=model, tools=(keep, read), token=ANA, patience=240, **settings) as nod:
        document = (await nod.client.get("/openapi.json")).json()
        checked = Checked(document)
        chief = nod.caller(CHIEF)
        for client in (chief, nod.client):
            client.event_hooks = {"response": [checked]}
        stream = await nod.client.post("/api/chat", json={"message": "keep milk"})
        events = [json.loads(line[6:]) for line in stream.text.splitlines() if line.startswith("data: ")]
        conversation = events[0]["conversation_id"]
        (proposal,) = (e["proposal"] for e in events if e["type"] == "proposal_opened")
        mine, at = f"/api/conversations/{conversation}", f"/api/proposals/{proposal['id']}"
        get = nod.client.get
        for about in ("ladder", "questions", "context"):
            await get(f"{at}/{about}")
        assert (await nod.client.post(f"{at}/reassign", json={"reason": "http:ben"})).status_code == 403
        assert (await nod.client.post(f"{at}/approve", json={"digest": "0"})).status_code == 409
        assert (await nod.client.post(f"{at}/approve", params={"wait": 20})).status_code == 200
        await _batch(nod)
        file = f"{at}/files/{(await get(f'{at}/files')).json()['files'][0]['id']}"
        for path in (
            at,
            f"{at}/result",
            f"{at}/questions",
            file,
            "/api/proposals",
            "/api/me",
            "/healthz",
            "/readyz",
        ):
            assert (await get(path)).status_code == 200, path
        await nod.client.post("/api/chat", json={"message": "read", "conversation_id": conversation})
        (listed,) = [f for f in (await get(f"{mine}/files")).json()["files"] if f["name"] == "list.txt"]
        await get(f"{mine}/files/{listed['id']}")
        for path in ("messages", "proposals", "team", "export", "files"):
            assert (await get(f"{mine}/{path}")).status_code == 200, path
        await get("/api/conversations", params={"limit": 1})
        run = {"threadId": conversation, "runId": "r1", "messages": [], "state": {}}
        assert (await nod.client.post("/agui", json=run)).status_code == 200
        unknown = [{"interruptId": "x", "status": "resolved"}]
        assert (await nod.client.post("/agui", json=run | {"resume": unknown})).status_code == 422
        await nod.client.post(f"{mine}/stop")
        await nod.client.patch(mine, json={"title": "Milk"})
        await nod.client.delete(mine)
        asked = (await nod.client.post("/api/approvals", json={"summary": "Ship it"})).json()["proposal"]
        await get(f"/api/approvals/{asked['id']}")
        await nod.client.post("/api/permissions", json={"tool_name": "rm", "input": {}})
        for method, path, body in (
            ("POST", "commands", {"name": "nod", "text": "status"}),
            ("POST", "rules/try", {"rule": "never"}),
            ("PUT", "rules/paused", {"paused": True}),
            ("POST", "insights/opened", {"proposal": asked["id"], "part": "all"}),
        ):
            await chief.request(method, f"/api/{path}", json=body)
        rule = await chief.post("/api/rules", json={"subject": "policy", "mode": "always"})
        await chief.delete(f"/api/rules/{rule.json()['id']}")
        assert (await chief.delete("/api/grants/G-1")).status_code == 404
        for path in LISTS:
            assert (await chief.get(f"/api/{path}", timeout=150)).status_code == 200, path
        for form in ("jsonl", "csv"):
            assert (await chief.get("/api/audit/export", params={"format": form})).status_code == 200
        assert (await nod.client.delete("/api/session")).status_code == 200
        for method, path, body in (
            ("POST", "/api/chat", {"message": ""}),
            ("GET", "/api/proposals/none", None),
            ("GET", f"{at}/files/none", None),
            ("DELETE", "/api/people/links?account=http:ben", None),
            ("DELETE", "/api/people/absences?account=http:ben", None),
            ("POST", "/api/schedules/1a2b3c4d", {"do": "run"}),
            ("DELETE", "/api/schedules/1a2b3c4d", None),
            ("PATCH", "/api/memory/1", {"fact": "x"}),
            ("DELETE", "/api/memory/1", None),
            ("POST", "/api/connections/none/link", None),
            ("POST", "/api/connections/confirm", {"digits": "123456"}),
            ("DELETE", "/api/connections", None),
            ("DELETE", "/api/connections/none", None),
            ("POST", "/api/push/devices", {"endpoint": "x", "keys": {}, "name": "x"}),
            ("PATCH", "/api/push/devices/none", {"detailed": True}),
            ("POST", "/api/push/devices/none/test", None),
            ("DELETE", "/api/push/devices/none", None),
            ("PUT", "/api/push/quiet", {"begins": "22:00", "ends": "07:00", "zone": "Mars/Phobos"}),
            ("DELETE", "/api/push/quiet", None),
            ("DELETE", "/api/mutes/1", None),
            ("POST", "/api/insights/opened", {"proposal": "none", "part": "none"}),
            ("GET", "/api/audit", None),
            ("POST", "/api/rules", {"subject": "none"}),
            ("POST", "/api/session", {"code": "x" * 30}),
        ):
            assert (await nod.client.request(method, path, json=body)).is_error
        for method, path in (("GET", "logins/none"), ("POST", "none/login"), ("DELETE", "none/login")):
            assert (await chief.request(method, f"/api/mcp/{path}")).is_error
        await chief.aclose()
        assert checked.faults == []
        named = {o["operationId"] for operations in document["paths"].values() for o in operations.values()}
        # streams that never end are read in test_events.py
        of_agents = {each for each in named if each.startswith("agents_")}  # called in tests/features/agents
        assert named - checked.called - of_agents == {
            "proposals_changes",
            "conversations_conversation_events",
        }


def _keep(*texts: str) -> Any:
    """An answer that keeps each of these."""
    return ask(*(("keep", {"text": text}) for text in texts))


async def _batch(nod: Served) -> None:
    """Ask for three notes, look at them as a batch and decline them, once nothing else is under way."""
    await nod.idle()
    await nod.client.post("/api/chat", json={"message": "keep three"})
    rows = (await nod.client.get("/api/proposals", params={"state": "proposed"})).json()["proposals"]
    batch, every = rows[0]["batch"]["id"], [{"id": p["id"], "seen": p["seen"]} for p in rows]
    assert (await nod.client.get(f"/api/batches/{batch}")).status_code == 200
    declined = await nod.client.post(f"/api/batches/{batch}/decide", json={"decline": every})
    assert declined.status_code == 200
    await nod.idle()


async def test_the_document_names_every_operation_once_with_a_tag_and_the_packages_version(serve: Serve):
    async with serve() as nod:
        document = (await nod.client.get("/openapi.json")).json()
        assert document["info"]["version"] == bot.__version__
        operations = [o for each in document["paths"].values() for o in each.values()]
        names = [o["operationId"] for o in operations]
        assert len(names) == len(set(names))
        assert all(re.fullmatch(r"[a-z]+_[a-z_]+", name) for name in names), names
        tags = {tag["name"] for tag in document["tags"]}
        assert all(set(o["tags"]) <= tags and len(o["tags"]) == 1 for o in operations)
        made_up = [
            o["operationId"] for o in operations if not o["operationId"].startswith(f"{o['tags'][0]}_")
        ]
        assert made_up == []
        assert "HTTPValidationError" not in document["components"]["schemas"]


async def test_a_fault_always_says_so_and_why(serve: Serve):
    async with serve() as nod:
        document = (await nod.client.get("/openapi.json")).json()
        assert set(document["components"]["schemas"]["Problem"]["required"]) == {"ok", "error"}
        checked = Checked(document)
        nod.client.event_hooks = {"response": [checked]}
        headers = {"Content-Type": "application/json"}
        assert (await nod.client.post("/api/chat", content=b"{", headers=headers)).status_code == 400
        nod.app.site.is_up = False
        assert (await nod.client.get("/readyz")).status_code == 503
        assert checked.faults == []


async def test_a_proposal_is_called_one_on_the_wire(serve: Serve):
    async with serve() as nod:
        document = (await nod.client.get("/openapi.json")).text
        assert "/api/proposals" in document
        assert "/chat/actions" not in document
        assert "action_" not in document
        assert (await nod.client.get("/api/chat/actions")).status_code == 404


async def test_the_document_is_made_once_and_outside_the_event_loop(serve: Serve):
    threads: list[threading.Thread] = []

    def called(_: APIRoute) -> str:
        threads.append(threading.current_thread())
        return "status_late"

    async with serve() as nod:
        late = APIRouter(generate_unique_id_function=called)
        late.add_api_route("/late", lambda: None)
        nod.app.web.app.include_router(late)
        before = len(threads)
        first, second = await asyncio.gather(*(nod.client.get("/openapi.json") for _ in range(2)))
        assert first.json() == second.json()
    assert len(threads) == before + 1
    assert threads[-1] is not threading.current_thread()


def _called(needs: Dependant) -> Iterator[Any]:
    yield needs.call
    for each in needs.dependencies:
        yield from _called(each)


def _awaited(call: Any) -> bool:
    known = iscoroutinefunction(call) or isasyncgenfunction(call)
    return known or iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004


def test_no_route_needs_one_of_the_few_threads_in_which_frameworks_call_plain_functions():
    parts = (api, routes, logins.back_router, sessions.visit_router, *api.PARTS)
    routers = [part if isinstance(part, APIRouter) else part.router for part in parts]
    found = [each for router in routers for each in router.routes if isinstance(each, APIRoute)]
    called = {call for each in found for call in _called(each.dependant)}
    assert len(called) > 30
    assert [each for each in called if not _awaited(each)] == []


async def test_the_document_has_only_words_of_the_version_that_it_names(serve: Serve):
    """A media type has these fields in OpenAPI 3.1 (4.8.14.1), and extensions."""
    async with serve() as nod:
        document = (await nod.client.get("/openapi.json")).json()
    assert document["openapi"].startswith("3.1.")
    methods = [method for path in document["paths"].values() for method in path.values()]
    answers = [answer for method in methods for answer in method["responses"].values()]
    kinds = [kind for answer in answers for kind in answer.get("content", {}).values()]
    words = {word for kind in kinds for word in kind if not word.startswith("x-")}
    assert words <= {"schema", "example", "examples", "encoding"}


async def test_a_validator_of_openapi_finds_nothing(serve: Serve):
    async with serve() as nod:
        document = (await nod.client.get("/openapi.json")).json()
    assert document["openapi"].startswith("3.1.")
    faults = OpenAPIV31SpecValidator(document).iter_errors()
    assert [f"{fault.json_path}: {fault.message}" for fault in faults] == []
