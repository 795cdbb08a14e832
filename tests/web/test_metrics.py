"""``/metrics``: who may read it, and that its figures are what happened."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from bot import __version__
from bot.app.assembly import build
from bot.domain.model import Entry, Finished, Part, StopReason, Text, ToolSpec
from bot.errors import ModelError
from bot.settings import Settings
from bot.web.metrics_page import make_metrics_route, make_metrics_server
from tests.kit.urls import Urls
from tests.web.conftest import TOKENS, Serve, Served
from tests.web.scripted import ScriptedModel, ask

pytestmark = pytest.mark.platform

TOKEN = "prometheus-0123456789"
WATCHED = {"NOD_METRICS_TOKEN": TOKEN}
Figures = dict[tuple[str, ...], float]


async def scrape(nod: Served) -> httpx.Response:
    return await nod.client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})


async def figures(nod: Served) -> Figures:
    """Each figure by its name and its labels' values."""
    answer = await scrape(nod)
    assert answer.status_code == httpx.codes.OK
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = (s for family in text_string_to_metric_families(answer.text) for s in family.samples)
    return {(sample.name, *sample.labels.values()): sample.value for sample in samples}


async def test_without_its_setting_there_is_no_such_page(serve: Serve):
    async with serve() as nod:
        assert (await scrape(nod)).status_code == httpx.codes.NOT_FOUND


@pytest.mark.parametrize("given", [None, "Bearer", "Bearer wrong", TOKEN, f"Bearer {TOKEN}x", "Bearer \xe9"])
async def test_it_answers_to_its_token_and_to_nothing_else(serve: Serve, given: str | None):
    async with serve(**WATCHED) as nod:
        headers = {} if given is None else {"Authorization": given.encode("latin-1")}
        refused = await nod.client.get("/metrics", headers=headers)
        assert refused.status_code == httpx.codes.UNAUTHORIZED
        assert refused.headers["www-authenticate"] == "Bearer"
        assert "nod_" not in refused.text


async def test_a_worker_serves_its_figures_to_their_token_and_nothing_else():
    async def counted() -> bytes:
        return b"nod_info 1\n"

    figures = make_metrics_server(make_metrics_route(TOKEN, counted), "127.0.0.1", 0)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(figures.stop)
        await figures.start()
        client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{figures.port}")
        await stack.enter_async_context(client)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert (await client.get("/metrics", headers=headers)).text == "nod_info 1\n"
        refused = await client.get("/metrics")
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert "NOD_METRICS_TOKEN" in refused.json()["error"]
        assert (await client.get("/", headers=headers)).status_code == httpx.codes.NOT_FOUND


def test_a_worker_has_that_port_where_the_settings_name_one(database_of: Urls):
    given = {"NOD_DATABASE_URL": database_of("nod"), "NOD_METRICS_TOKEN": TOKEN}
    for port, there in ((None, False), (9464, True)):
        app = build(Settings(_env_file=None, **given, NOD_METRICS_PORT=port), receives=False)
        assert (app.metrics_web is not None) is there
        app.database.close()


@pytest.mark.parametrize(("key", "sealed"), [((), 0), (("a key of the log",), 1)])
async def test_the_record_is_in_the_figures(
    serve: Serve, database_of: Urls, key: tuple[str, ...], sealed: int
):
    model = ScriptedModel(ask(("keep", {"text": "a"})))
    url = database_of("new")
    async with serve(model=model, NOD_DATABASE_URL=url, NOD_AUDIT_KEY=key, **WATCHED) as nod:
        before = (await figures(nod))["nod_audit_rows",]
        await nod.proposed()
        seen = await figures(nod)
        assert (seen["nod_audit_rows",] - before, seen["nod_audit_sealed",]) == (1, sealed)


async def test_its_token_opens_nothing_else_and_no_other_token_opens_it(serve: Serve):
    async with serve(NOD_HTTP_TOKENS=TOKENS, **WATCHED) as nod:
        for path in ("/api/me", "/api/proposals"):
            answer = await nod.client.get(path, headers={"Authorization": f"Bearer {TOKEN}"})
            assert answer.status_code == httpx.codes.UNAUTHORIZED
        theirs = TOKENS[0].partition(":")[2]
        answer = await nod.client.get("/metrics", headers={"Authorization": f"Bearer {theirs}"})
        assert answer.status_code == httpx.codes.UNAUTHORIZED


async def test_what_happened_is_in_the_figures(serve: Serve):
    done = Finished(StopReason.FINISHED, prompt_tokens=40, completion_tokens=2)
    model = ScriptedModel(ask(("keep", {"text": "a"}), ("keep", {"text": "b"})), [Text("Both."), done])
    async with serve(model=model, NOD_MODEL_PRICE=(5, 100), **WATCHED) as nod:
        first, second = await nod.proposed("keep two")
        seen = await figures(nod)
        assert seen["nod_info", __version__] == 1
        assert seen["nod_proposals", "proposed"] == seen["nod_proposal_moves_total", "proposed"] == 2
        assert ("nod_decision_seconds_count",) not in seen or seen["nod_decision_seconds_count",] == 0
        nod.clock.forward(timedelta(seconds=90))
        await nod.press(first, "approve")
        await nod.press(second, "decline")
        await nod.client.get(f"/api/proposals/{first['id']}", params={"wait": 30})
        await nod.idle()
        seen = await figures(nod)
        assert {each[1]: value for each, value in seen.items() if each[0] == "nod_proposal_moves_total"} == {
            "proposed": 2, "approved": 1, "declined": 1, "executing": 1, "succeeded": 1,
        }  # fmt: skip
        assert (seen["nod_proposals", "proposed"], seen["nod_proposals", "succeeded"]) == (0, 1)
        assert (seen["nod_decision_seconds_count",], seen["nod_decision_seconds_sum",]) == (2, 180)
        assert seen["nod_decision_seconds_bucket", "60.0"] == 0
        name = model.name
        assert seen["nod_model_seconds_count", "finished", name] == 2
        tokens = [seen["nod_model_tokens_total", kind, name] for kind in ("prompt", "completion")]
        assert tokens == [40, 2]
        assert seen["nod_model_cost_total", name] == pytest.approx((40 * 5 + 2 * 100) / 1_000_000)
        assert seen["nod_turn_seconds_count", "waiting"] == 1
        waiting = {each[1]: value for each, value in seen.items() if each[0] == "nod_work_waiting"}
        assert waiting == {"turn": 0, "execute": 0, "redraw": 0, "deliver": 0, "webhook": 0}
        again = await figures(nod)
        assert {
            name
            for name in seen
            if seen[name] != again[name] and name[0].startswith("nod_") and name[0] != "nod_problems_total"
        } == set()


async def test_after_a_restart_it_counts_from_there(serve: Serve):
    async with serve(**WATCHED) as nod:
        nod.model.answer(ask(("keep", {"text": "a"})))
        await nod.proposed()
    async with serve(**WATCHED) as nod:
        seen = await figures(nod)
        assert seen["nod_proposals", "proposed"] == 1
        assert ("nod_proposal_moves_total", "proposed") not in seen
        assert ("nod_turn_seconds_count", "waiting") not in seen


class Broken:
    """A model whose server is down."""

    name = "broken"

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        if transcript:
            raise ModelError
        yield Text("")

    async def close(self) -> None:
        pass


async def test_a_model_that_fails_is_counted_and_so_is_what_was_logged(serve: Serve):
    async with serve(model=Broken(), **WATCHED) as nod:
        await nod.chat("hello")
        seen = await figures(nod)
        assert seen["nod_model_seconds_count", "failed", Broken.name] == 1
        assert seen["nod_turn_seconds_count", "failed"] == 1


async def test_more_people_and_conversations_make_no_more_series(serve: Serve):
    async with serve(**WATCHED) as nod:
        nod.model.answer(ask(("keep", {"text": "a"})))
        await nod.proposed("first")
        before = await series(nod)
        for number in range(5):
            nod.model.answer(ask(("keep", {"text": f"note {number}"})))
            await nod.proposed(f"conversation {number}")
        assert await series(nod) == before


async def series(nod: Served) -> set[tuple[str, ...]]:
    """All but what a busy machine may log."""
    return {name for name in await figures(nod) if name[0] != "nod_problems_total"}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, of Debian's prometheus package")
async def test_prometheus_own_tool_finds_no_fault(serve: Serve):
    async with serve(**WATCHED) as nod:
        nod.model.answer(ask(("keep", {"text": "a"})))
        await nod.proposed()
        text = (await scrape(nod)).content
    asked = await asyncio.create_subprocess_exec(
        "promtool", "check", "metrics",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await asked.communicate(text)
    assert (asked.returncode, said) == (0, b"")
