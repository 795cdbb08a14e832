"""Traces as a collector gets them: read by OTLP's own parser."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from bot.domain.times import now
from bot.errors import ModelError
from bot.settings import Settings
from bot.telemetry import tracing
from bot.telemetry.otel import Otel
from tests.web.conftest import Serve, Served
from tests.web.scripted import ask, say

pytestmark = pytest.mark.platform

SECRET = "hunter2-hunter2"


class Collector:
    """Takes what is sent to ``/v1/traces``, as long as it may."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: dict[str, str] = {}
        here = self

        class Door(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                here.requests.append(ExportTraceServiceRequest.FromString(body))
                here.headers = {name.lower(): value for name, value in self.headers.items()}
                self.send_response(200 if self.path == "/v1/traces" else 404)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def spans(self) -> list[Span]:
        found = [
            s for each in self.requests for r in each.resource_spans for c in r.scope_spans for s in c.spans
        ]
        return sorted(found, key=lambda span: span.start_time_unix_nano)

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def told(span: Span) -> dict[str, Any]:
    found = {}
    for each in span.attributes:
        kind = each.value.WhichOneof("value")
        value = getattr(each.value, kind)
        found[each.key] = [v.string_value for v in value.values] if kind == "array_value" else value
    return found


async def a_story(nod: Served) -> str:
    """A read, a change that is approved, the closing words; returns the proposal's id."""
    nod.model.answer(
        ask(("read", {"password": SECRET}), text="Let me see."),
        ask(("keep", {"text": "milk", "password": SECRET})),
        say("Kept the milk."),
    )
    [proposal] = await nod.proposed("keep the milk")
    pressed = await nod.client.post(f"/api/proposals/{proposal['id']}/approve?wait=20", json={})
    assert pressed.json()["proposal"]["state"] == "succeeded"
    await nod.idle()
    return proposal["id"]


def test_work_that_runs_while_the_tracing_ends_is_not_hurt(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
):
    end = tracing.begin_tracing(collector.url, {}, "nod")
    begin_child = Otel.begin_child

    def begin_and_end(otel: Otel, *given: Any) -> Any:
        span = begin_child(otel, *given)
        end()  # as another thread may do at this moment
        return span

    monkeypatch.setattr(Otel, "begin_child", begin_and_end)
    with tracing.trace_read("read", "call-1") as traced:
        assert traced.span is not None


async def test_a_story_is_told_by_the_names_of_the_conventions(serve: Serve, collector: Collector):
    given = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_HEADERS": ("authorization=Bearer%20abc",),
    }
    async with serve(**given) as nod:
        ident = await a_story(nod)
    assert collector.headers["authorization"] == "Bearer abc"
    first, second = collector.named("invoke_agent nod")
    [conversation] = {told(turn)["gen_ai.conversation.id"] for turn in (first, second)}
    assert conversation
    assert told(first)["gen_ai.operation.name"] == "invoke_agent"
    assert [told(turn)["nod.turn.end"] for turn in (first, second)] == ["waiting", "done"]

    calls = collector.named("chat scripted model")
    assert [call.parent_span_id for call in calls] == [first.span_id, first.span_id, second.span_id]
    assert {call.kind for call in calls} == {Span.SPAN_KIND_CLIENT}
    assert told(calls[0]) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "nod",
        "gen_ai.request.model": "scripted model",
        "gen_ai.request.stream": True,
        "gen_ai.response.finish_reasons": ["tool_calls"],
        "gen_ai.usage.input_tokens": 0,
        "gen_ai.usage.output_tokens": 0,
    }
    [read] = collector.named("execute_tool read")
    assert read.parent_span_id == first.span_id
    assert told(read)["gen_ai.tool.call.id"].startswith("call-")

    [proposed], [decided], [ran] = map(collector.named, ("propose keep", "decide keep", "execute_tool keep"))
    assert {told(span)["nod.proposal.id"] for span in (proposed, decided, ran)} == {ident}
    assert {span.trace_id for span in (proposed, decided, ran)} == {proposed.trace_id}
    assert proposed.trace_id != first.trace_id
    assert [span.parent_span_id for span in (proposed, decided, ran)] == [
        b"",
        proposed.span_id,
        proposed.span_id,
    ]
    assert [link.span_id for link in proposed.links] == [first.span_id]
    assert [link.span_id for link in second.links] == [proposed.span_id]
    assert told(decided)["nod.approval.state"] == "approved"
    assert told(decided)["nod.approval.wait_seconds"] >= 0
    assert all(span.status.code == Status.STATUS_CODE_UNSET for span in collector.spans)
    assert not any(word in str(collector.requests) for word in (SECRET, "milk", "ana", "http:local"))


async def test_what_fails_is_told_by_its_kind_and_not_by_its_words(serve: Serve, collector: Collector):
    async with serve(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as nod:
        nod.notes.failing = True
        nod.model.answer(ask(("keep", {"text": "milk"})), [ModelError("the milk server is down")])
        [proposal] = await nod.proposed("keep the milk")
        pressed = await nod.client.post(f"/api/proposals/{proposal['id']}/approve?wait=20", json={})
        assert pressed.json()["proposal"]["state"] == "failed"
        await nod.idle()
    [ran] = collector.named("execute_tool keep")
    broken = collector.named("chat scripted model")[1]
    assert [told(span)["error.type"] for span in (ran, broken)] == ["ToolError", "ModelError"]
    assert collector.named("invoke_agent nod")[1].status.code == Status.STATUS_CODE_ERROR
    assert "server is down" not in str(collector.requests)
    assert "notebook" not in str(collector.requests)


async def test_a_process_that_runs_what_another_was_told_adds_to_the_same_trace(
    serve: Serve,
    collector: Collector,
):
    async with serve(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as nod:
        nod.model.answer(ask(("keep", {"text": "milk"})))
        [proposal] = await nod.proposed()
    async with serve(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as nod:
        await nod.press(proposal, "decline", reason="no milk")
        await nod.idle()
    [proposed], [decided] = collector.named("propose keep"), collector.named("decide keep")
    assert (decided.trace_id, decided.parent_span_id) == (proposed.trace_id, proposed.span_id)
    assert told(decided)["nod.approval.state"] == "declined"


async def test_an_expiry_is_told_in_the_trace_of_its_proposal(serve: Serve, collector: Collector):
    async with serve(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as nod:
        nod.model.answer(ask(("keep", {"text": "milk"})))
        await nod.proposed()
        nod.clock.forward(timedelta(days=30))
        assert await nod.app.core.recovery.expire_due(nod.clock()) == 1
        await nod.idle()
    [proposed], [decided] = collector.named("propose keep"), collector.named("decide keep")
    assert (decided.trace_id, decided.parent_span_id) == (proposed.trace_id, proposed.span_id)
    assert told(decided)["nod.approval.state"] == "expired"
    assert told(decided)["nod.approval.wait_seconds"] == timedelta(days=30).total_seconds()


async def test_a_press_from_the_command_line_is_told_in_the_trace_of_its_proposal(
    serve: Serve, collector: Collector, tmp_path: Path
):
    named = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()  # noqa: ASYNC221, S607
    account = f"cli:{named}"
    async with serve(NOD_ADMINS=(account,)) as nod:
        nod.clock.forward(now() - nod.clock())
        nod.model.answer(ask(("keep", {"text": "milk"})))
        [proposal] = await nod.proposed()
        url = nod.app.settings.database_url
    given = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "NOD_DATABASE_URL": url}
    done = subprocess.run(  # noqa: ASYNC221, S603 - our own
        [sys.executable, "-m", "bot.cli.main", "decline", proposal["id"], "no milk"],
        cwd=tmp_path, env={**os.environ, **given, "NOD_ADMINS": account},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stderr, done.returncode) == ("", 0)
    [decided] = collector.named("decide keep")
    assert told(decided)["nod.approval.state"] == "declined"
    assert told(decided)["nod.proposal.id"] == proposal["id"]


async def test_a_collector_that_is_gone_stops_nothing(serve: Serve):
    async with serve(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9") as nod:
        await a_story(nod)


async def test_an_answer_that_is_stopped_ends_its_span(serve: Serve, collector: Collector):
    async with serve(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as nod:
        nod.model.answer([asyncio.Event()])
        async with nod.chatting("go on") as stream:
            conversation = (await stream.next())["conversation_id"]
            await nod.model.asked.wait()
            await nod.client.post(f"/api/conversations/{conversation}/stop")
            await stream.rest()
        await nod.idle()
    [call] = collector.named("chat scripted model")
    assert told(call)["error.type"] == "stopped"
    [turn] = collector.named("invoke_agent nod")
    assert told(turn)["nod.turn.end"] == "stopped"


def test_without_an_endpoint_the_library_is_not_loaded():
    code = "import sys, bot.app.assembly; sys.exit('opentelemetry.sdk' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603
    with tracing.trace_read("a tool", "call") as noted:
        assert noted.span is None


def test_headers_are_pairs_and_written_as_in_addresses():
    given = Settings.load(OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer%20abc, x-team = nod")
    assert given.otlp_header_pairs == {"authorization": "Bearer abc", "x-team": "nod"}
    assert "Bearer" not in repr(given)
