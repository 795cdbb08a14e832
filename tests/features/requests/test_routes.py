"""A script asks people over HTTP: it opens a request, waits for its end, and its server is told."""

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from bot.domain.redaction import HIDDEN
from bot.jobs.webhooks import PAUSES, Webhooks
from bot.web.streams import Pace
from tests.web.conftest import ANA, BEN, CHIEF, DEE, TOKENS, Json, Serve, Served

SECRET = "whsec_" + base64.b64encode(b"a key of thirty-two random bytes").decode()
ASKED = {
    "summary": "Deploy 1.4 to production",
    "details": "All tests passed.",
    "fields": {"version": "1.4", "n": 3},
}
SETTINGS = {
    "NOD_HTTP_TOKENS": TOKENS,
    "NOD_ADMINS": ("http:chief",),
    "NOD_APPROVERS": ("http:ben",),
    "token": ANA,
}


async def ask(nod: Served, status: int = 201, headers: dict[str, str] | None = None, **body: object) -> Json:
    answer = await nod.client.post("/api/approvals", json=ASKED | body, headers=headers)
    assert answer.status_code == status, answer.text
    shown: Json = answer.json()
    return shown.get("proposal", shown)


async def press(nod: Served, proposal: Json, verb: str, token: str = BEN, **body: object) -> int:
    async with nod.caller(token) as person:
        answer = await nod.press(proposal, verb, person, **body)
    await nod.idle()
    return answer.status_code


async def look(nod: Served, proposal: Json, token: str = ANA, wait: float = 0) -> Json:
    async with nod.caller(token) as person:
        answer = await person.get(f"/api/approvals/{proposal['id']}", params={"wait": wait})
    shown: Json = answer.json()
    return shown.get("proposal", {"status": answer.status_code} | shown)


async def test_a_request_shows_what_was_asked_and_approving_it_tells_who_asked(serve: Serve):
    async with serve(**SETTINGS) as nod:
        proposal = await ask(nod)
        assert (proposal["kind"], proposal["end"], proposal["description"]) == (
            "request", "waiting", "Deploy 1.4 to production",
        )  # fmt: skip
        assert [(f["field"], f["new_value"]) for f in proposal["preview"]] == [
            ("Version", "1.4"), ("N", "3"), ("Details", "All tests passed."),
        ]  # fmt: skip
        assert "similar" not in proposal["verbs"]
        assert await press(nod, proposal, "approve") == 200
        done = await look(nod, proposal)
        assert (done["end"], done["state"], done["decided_by"]) == ("approved", "succeeded", "ben")
        assert done["outcome"] == "Approved by ben."
        assert nod.model.seen == []


async def test_it_stands_in_the_inbox_of_those_who_may_decide_and_of_no_one_else(serve: Serve):
    async with serve(**SETTINGS) as nod:
        proposal = await ask(nod)
        for token, seen in ((BEN, True), (CHIEF, True), (ANA, True), (DEE, False)):
            async with nod.caller(token) as person:
                inbox = (await person.get("/api/proposals")).json()["proposals"]
            assert (proposal["id"] in [p["id"] for p in inbox]) is seen
            assert ("id" in await look(nod, proposal, token)) is seen
        assert (await look(nod, proposal, DEE))["status"] == 404
        assert "arguments" not in await look(nod, proposal, BEN)


async def test_the_ends_stay_different(serve: Serve):
    async with serve(**SETTINGS) as nod:
        proposals = [await ask(nod) for _ in range(3)]
        await press(nod, proposals[0], "decline", reason="Not on a Friday")
        await press(nod, proposals[1], "cancel", ANA)
        nod.clock.forward(timedelta(hours=25))
        await nod.app.core.recovery.expire_due(nod.clock())
        ends = [await look(nod, p) for p in proposals]
        assert [e["end"] for e in ends] == ["declined", "cancelled", "expired"]
        assert ends[0]["decline_reason"] == "Not on a Friday"


async def test_what_has_expired_never_opens_again_since_the_script_was_told(serve: Serve):
    async with serve(**SETTINGS) as nod:
        proposal = await ask(nod, ttl_seconds=60)
        nod.clock.forward(timedelta(minutes=2))
        await nod.app.core.recovery.expire_due(nod.clock())
        await press(nod, proposal, "approve")
        assert (await look(nod, proposal))["end"] == "expired"


async def test_a_wait_ends_with_the_decision_and_not_before(serve: Serve):
    async with serve(**SETTINGS, pace=Pace(poll_seconds=30)) as nod:
        proposal = await ask(nod)
        waiting = asyncio.create_task(look(nod, proposal, wait=60))
        notifier = nod.app.channels["http"].notifier  # type: ignore[attr-defined]
        await notifier.wait(notifier.generation, 0.05)
        assert not waiting.done()
        await press(nod, proposal, "approve")
        assert (await waiting)["end"] == "approved"


async def test_a_wait_is_bounded_and_says_how_it_stands(serve: Serve):
    async with serve(**SETTINGS) as nod:
        proposal = await ask(nod)
        assert (await look(nod, proposal, wait=0.01))["end"] == "waiting"
        assert (await look(nod, proposal, wait=61))["status"] == 422


async def test_who_stops_the_server_does_not_wait_for_those_who_wait(serve: Serve):
    async with serve(**SETTINGS) as nod:
        proposal = await ask(nod)
        waiting = asyncio.create_task(look(nod, proposal, wait=60))
        notifier = nod.app.channels["http"].notifier  # type: ignore[attr-defined]
        await notifier.wait(notifier.generation, 0.05)
        nod.app.channels["http"].end_streams()  # type: ignore[attr-defined]
        assert (await waiting)["end"] == "waiting"


async def test_the_token_that_asked_never_decides_even_as_an_admin(serve: Serve):
    async with serve(**SETTINGS | {"NOD_ADMINS": ("http:ana", "http:chief")}) as nod:
        proposal = await ask(nod)
        assert await press(nod, proposal, "approve", ANA) == 403
        assert (await look(nod, proposal))["end"] == "waiting"


async def test_where_no_one_else_may_decide_it_is_refused_with_the_reason(serve: Serve):
    async with serve(**SETTINGS | {"NOD_ADMINS": ("http:ana",), "NOD_APPROVERS": ()}) as nod:
        assert "no one may decide this here" in (await ask(nod, 403))["error"]


async def test_the_demos_one_person_may_decide_their_own(serve: Serve):
    async with serve(NOD_ADMINS=("http:local",)) as nod:
        proposal = await ask(nod)
        assert proposal["may_decide"] is True
        await nod.press(proposal, "approve")
        await nod.idle()
        assert (await look(nod, proposal, token=""))["end"] == "approved"


async def test_the_same_key_is_the_same_request_and_never_anothers(serve: Serve):
    async with serve(**SETTINGS) as nod:
        key = {"Idempotency-Key": "deploy-1.4"}
        first = await ask(nod, headers=key)
        assert (await ask(nod, 200, key))["id"] == first["id"]
        assert "idempotency key" in (await ask(nod, 409, key, summary="Something else"))["error"]
        async with nod.caller(DEE) as other:
            theirs = await other.post("/api/approvals", json=ASKED, headers=key)
        assert theirs.status_code == 201
        assert theirs.json()["proposal"]["id"] != first["id"]


@pytest.mark.parametrize(
    "body",
    [
        {"summary": ""},
        {"summary": " \n"},
        {"summary": "x" * 301},
        {"details": "x" * 20_001},
        {"ttl_seconds": 0},
        {"fields": {"a": ["b"]}},
        {"fields": {"": "b"}},
        {"unknown": 1},
    ],
)
async def test_what_does_not_fit_is_refused_and_named(serve: Serve, body):
    async with serve(**SETTINGS) as nod:
        refused = await ask(nod, 422, **body)
        assert refused["error"]
        assert (await nod.client.get("/api/proposals")).json()["proposals"] == []


async def test_who_asked_gets_what_a_person_made_of_it_and_others_no_secret(serve: Serve):
    async with serve(**SETTINGS) as nod:
        proposal = await ask(nod, fields={"password": "hunter2"})
        assert proposal["preview"][0]["new_value"] == HIDDEN
        assert proposal["arguments"]["fields"] == {"password": "hunter2"}
        edited = proposal["tool_arguments"] | {"summary": "Deploy 1.4 to staging"}
        assert await press(nod, proposal, "approve", arguments=edited) == 200
        done = await look(nod, proposal)
        assert (done["end"], done["edited_by"]) == ("approved", "ben")
        assert done["arguments"]["summary"] == "Deploy 1.4 to staging"
        assert done["arguments"]["fields"] == {"password": "hunter2"}
        assert "hunter2" not in json.dumps(await look(nod, proposal, BEN))


async def test_an_agents_tool_use_is_shown_whole_and_let_through_as_people_left_it(serve: Serve):
    async with serve(**SETTINGS) as nod:
        given = {"command": "rm -rf build", "timeout": 5}
        body = {"tool_name": "Bash", "input": given, "tool_use_id": "t1"}
        answer = await nod.client.post("/api/permissions", json=body)
        assert answer.status_code == 201, answer.text
        proposal = answer.json()["proposal"]
        assert [(f["field"], f["new_value"]) for f in proposal["preview"]] == [
            ("Command", "rm -rf build"), ("Timeout", "5"),
        ]  # fmt: skip
        edited = proposal["tool_arguments"] | {"input": {"command": "rm -r build"}}
        await press(nod, proposal, "approve", arguments=edited)
        done = await look(nod, proposal)
        assert (done["end"], done["arguments"]["input"]) == ("approved", {"command": "rm -r build"})


async def test_an_agents_own_words_head_the_card_and_its_tools_name_stands_below(serve: Serve):
    async with serve(**SETTINGS) as nod:
        body = {"tool_name": "deploy", "input": {"version": "1.4"}, "summary": "Deploy 1.4 to production"}
        proposal = (await nod.client.post("/api/permissions", json=body)).json()["proposal"]
        assert proposal["description"] == "Deploy 1.4 to production"
        assert [(f["field"], f["new_value"]) for f in proposal["preview"]] == [
            ("Tool", "deploy"), ("Version", "1.4"),
        ]  # fmt: skip
        too_long = await nod.client.post("/api/permissions", json=body | {"summary": "x" * 301})
        assert (too_long.status_code, "summary" in too_long.json()["fields"]) == (422, True)


async def test_no_model_can_call_the_tools_that_requests_are_made_of(serve: Serve):
    async with serve(**SETTINGS) as nod:
        available = await nod.app.registry.load_tools()
        assert {"request_approval", "permit_tool_use"} <= set(available.tools)
        assert not {"request_approval", "permit_tool_use"} & set(available.model_tools.tools)


# --- call-backs


class Receiver:
    """A server of the script's own: remembers what it is told, answers as the test says."""

    def __init__(self) -> None:
        self.told: list[tuple[dict[str, str], bytes]] = []
        self.status = 204
        self.location = ""
        self.endless = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?from=nod"

    @contextlib.asynccontextmanager
    async def up(self) -> AsyncIterator["Receiver"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers["content-length"]))
        self.told.append((headers | {"request": head[0]}, body))
        if self.endless:
            writer.write(f"HTTP/1.1 {self.status} X\r\nconnection: close\r\n\r\n".encode())
            with contextlib.suppress(ConnectionError):
                while True:
                    writer.write(b"x" * 65536)
                    await writer.drain()
            return
        writer.write(
            f"HTTP/1.1 {self.status} X\r\nlocation: {self.location}\r\ncontent-length: 0\r\n\r\n".encode()
        )
        await writer.drain()
        writer.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver().up() as receiver:
        yield receiver


SIGNING = SETTINGS | {"NOD_WEBHOOK_SECRET": SECRET, "NOD_WEBHOOK_HOSTS": ("127.0.0.1",)}


async def sweep(nod: Served, passed: timedelta = timedelta()) -> None:
    nod.clock.forward(passed)
    await nod.app.webhooks.send_due(nod.clock())


async def test_the_end_is_told_once_signed_and_after_it_is_true(serve: Serve, receiver):
    async with serve(**SIGNING) as nod:
        proposal = await ask(nod, callback_url=receiver.url)
        await sweep(nod)
        assert receiver.told == []
        await press(nod, proposal, "decline", reason="No")
        await sweep(nod)
        await sweep(nod, timedelta(days=30))
        [(headers, body)] = receiver.told
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        mac = hmac.new(b"a key of thirty-two random bytes", signed, hashlib.sha256).digest()
        assert headers["webhook-signature"] == f"v1,{base64.b64encode(mac).decode()}"
        assert headers["request"] == "POST /hook?from=nod HTTP/1.1"
        told = json.loads(body)
        assert told["type"] == "approval.ended"
        data = told["data"]
        assert (data["id"], data["end"]) == (proposal["id"], "declined")
        assert (data["reason"], data["decided_by"]) == ("No", "ben")
        callback = (await look(nod, proposal))["callback"]
        assert (callback["attempts"], callback["given_up"], callback["error"]) == (1, False, None)
        assert callback["told_at"]


async def test_what_a_request_hides_is_hidden_from_the_receiver_too(serve: Serve, receiver):
    async with serve(**SIGNING) as nod:
        fields = {"password": "hunter2xyz"}
        proposal = await ask(nod, summary="Set it to hunter2xyz", fields=fields, callback_url=receiver.url)
        await press(nod, proposal, "decline", reason="not hunter2xyz")
        await sweep(nod)
        ((_, body),) = receiver.told
        assert "hunter2xyz" not in body.decode()
        assert json.loads(body)["data"]["summary"].count("••••••") == 1


async def test_an_answer_that_never_ends_is_taken_for_its_status_and_not_read(serve: Serve, receiver):
    receiver.endless, receiver.status = True, 200
    async with serve(**SIGNING) as nod:
        proposal = await ask(nod, callback_url=receiver.url)
        await press(nod, proposal, "approve")
        await sweep(nod)
        assert (await look(nod, proposal))["callback"]["error"] is None
        assert (await look(nod, proposal))["callback"]["told_at"]


async def test_what_does_not_arrive_is_told_again_later_and_survives_a_restart(serve: Serve, receiver):
    receiver.status = 503
    async with serve(**SIGNING) as nod:
        proposal = await ask(nod, callback_url=receiver.url)
        await press(nod, proposal, "approve")
        await sweep(nod)
        await sweep(nod)  # too early
        assert (await look(nod, proposal))["callback"]["error"] == "HTTP 503"
    receiver.status = 200
    async with serve(**SIGNING) as nod:
        await sweep(nod, PAUSES[0])
        assert [headers["webhook-id"] for headers, _ in receiver.told] == [
            receiver.told[0][0]["webhook-id"]
        ] * 2
        assert (await look(nod, proposal))["callback"]["error"] is None


@pytest.mark.parametrize(("status", "attempts"), [(500, len(PAUSES)), (302, len(PAUSES)), (410, 1)])
async def test_who_never_takes_it_is_given_up_and_the_request_says_so(
    serve: Serve, receiver, status, attempts
):
    receiver.status = status
    receiver.location = "http://169.254.169.254/"
    async with serve(**SIGNING) as nod:
        proposal = await ask(nod, callback_url=receiver.url)
        await press(nod, proposal, "approve")
        for pause in PAUSES:
            await sweep(nod)
            nod.clock.forward(pause)
        await sweep(nod, timedelta(days=30))
        assert len(receiver.told) == attempts
        callback = (await look(nod, proposal))["callback"]
        assert (callback["given_up"], callback["error"]) == (True, f"HTTP {status}")


async def test_a_host_that_was_public_or_allowed_once_is_checked_again_before_each_call(
    serve: Serve, receiver
):
    async with serve(**SIGNING) as nod:
        proposal = await ask(nod, callback_url=receiver.url)
        await press(nod, proposal, "approve")
        await Webhooks(nod.app.database, SECRET).send_due(nod.clock())
        assert receiver.told == []
        assert "not on the open Internet" in (await look(nod, proposal))["callback"]["error"]


async def test_two_processes_tell_it_once(serve: Serve, receiver):
    async with serve(**SIGNING) as nod:
        proposal = await ask(nod, callback_url=receiver.url)
        await press(nod, proposal, "approve")
        await asyncio.gather(*(nod.app.webhooks.send_due(nod.clock()) for _ in range(5)))
        assert len(receiver.told) == 1


async def test_without_a_secret_a_webhook_is_refused_with_the_fix(serve: Serve, receiver):
    async with serve(**SETTINGS) as nod:
        assert "set NOD_WEBHOOK_SECRET" in (await ask(nod, 422, callback_url=receiver.url))["error"]


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.2/", "http://localhost:1/", "http://169.254.169.254/latest", "ftp://x.org/", "nonsense",
     "http://127.0.0.1@10.0.0.1/", "http://[::1]/", "http://2130706433/"],
)  # fmt: skip
async def test_no_webhook_goes_into_the_internal_network_unless_its_host_was_named(serve: Serve, url):
    async with serve(**SIGNING) as nod:
        assert "NOD_WEBHOOK_HOSTS" in (await ask(nod, 422, callback_url=url))["error"]
