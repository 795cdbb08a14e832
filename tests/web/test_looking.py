"""What can be looked up over HTTP: grants, the audit log, tools, usage, who one is, lists with filters."""

import asyncio
import csv
import io
import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from unittest.mock import ANY
from xml.etree import ElementTree as ET

import pytest

from bot.domain.model import Finished, StopReason, Text
from tests.web.conftest import ANA, BEN, CHIEF, TOKENS, Serve
from tests.web.scripted import ScriptedModel, ask, say

MILK = ("keep", {"text": "milk"})
TEA = ("keep", {"text": "tea", "password": "hunter2hunter2"})
ADMIN = {"NOD_HTTP_TOKENS": TOKENS, "NOD_ADMINS": ("http:chief",)}


async def test_a_grant_is_listed_for_its_giver_and_for_admins_and_an_admin_revokes_it(serve: Serve):
    model = ScriptedModel(ask(MILK), say("Kept."))
    async with (
        serve(model=model, token=ANA, **ADMIN) as nod,
        nod.caller(CHIEF) as chief,
        nod.caller(BEN) as ben,
    ):
        (proposal,) = await nod.proposed()
        given = await nod.press(proposal, "similar", rung="tool", lasting="conversation")
        assert given.status_code == 200, given.text
        (grant,) = (await nod.client.get("/api/grants")).json()["grants"]
        assert (grant["label"], grant["tool_name"], grant["proposal_id"]) == ("G-1", "keep", proposal["id"])
        assert (await chief.get("/api/grants")).json()["grants"] == [grant]
        assert (await ben.get("/api/grants")).json()["grants"] == []
        assert (await nod.client.delete("/api/grants/G-1")).status_code == 403
        assert (await chief.delete("/api/grants/G-1")).status_code == 200
        assert (await chief.delete("/api/grants/G-1")).status_code == 404
        assert (await nod.client.get("/api/grants")).json()["grants"] == []


async def test_proposals_are_found_by_who_asked_under_any_of_their_accounts(serve: Serve):
    model = ScriptedModel(ask(MILK), ask(TEA))
    async with serve(model=model, token=ANA, **ADMIN) as nod, nod.caller(CHIEF) as chief:
        (mine,) = await nod.proposed()
        (hers,) = await nod.proposed(client=chief)
        assert mine["requester_account"] == "http:ana"

        async def by(account: str) -> list[str]:
            found = await chief.get("/api/proposals", params={"requester": account})
            return [p["id"] for p in found.json()["proposals"]]

        assert await by("http:ana") == [mine["id"]]
        assert await by("http:chief") == [hers["id"]]
        for account in ("http:ben", "ana", "", "http:a\0"):
            assert await by(account) == []
        said = await nod.client.post("/api/commands", json={"name": "nod", "text": "console"})
        code = said.json()["text"].partition("\n")[0].rpartition("/")[2]
        async with nod.caller(Origin=nod.url) as page:
            assert (await page.post("/api/session", json={"code": code})).status_code == 200
            console = (await page.get("/api/me")).json()["account"]
        assert await by(console) == [mine["id"]]


async def test_admins_page_through_the_audit_log_filter_verify_and_export_it(serve: Serve):
    model = ScriptedModel(ask(MILK), say("Kept."), ask(TEA), say("Kept."))
    async with serve(model=model, token=ANA, **ADMIN) as nod, nod.caller(CHIEF) as chief:
        for _ in range(2):
            (proposal,) = await nod.proposed()
            await nod.press(proposal, "approve")
            await nod.idle()
        await chief.post("/api/rules", json={"subject": "policy", "mode": "always"})
        found, before = [], {}
        while True:
            page = (await chief.get("/api/audit", params={"limit": 3} | before)).json()
            assert len(page["rows"]) <= 3
            found += page["rows"]
            if page["next"] is None:
                break
            before = {"before": page["next"]}
        numbers = [row["id"] for row in found]
        assert numbers == list(range(max(numbers), 0, -1))
        assert (found[0]["thing"], found[0]["after"]["value"]) == ("rule", "always")
        exported = (await chief.get("/api/audit/export")).text.splitlines()
        assert [json.loads(line) for line in exported] == found[::-1]
        assert "hunter2hunter2" not in "".join(exported)

        async def narrowed(**filters: object) -> list[str]:
            rows = (await chief.get("/api/audit", params=filters)).json()["rows"]
            return [row["verb"] for row in rows]

        assert await narrowed(proposal=proposal["id"]) == ["succeeded", "execute", "approve", "propose"]
        assert await narrowed(who="http:chief") == ["set"]
        assert await narrowed(tool="read") == ["set"]
        assert await narrowed(since=(nod.clock() + timedelta(hours=1)).isoformat()) == []
        assert (await chief.get("/api/audit", params={"who": "nobody"})).json()["fields"] == {
            "who": "Write an account, such as slack:T1/U7 or http:ci."
        }
        told = (await chief.get("/api/audit/verify")).json()
        assert (told["intact"], told["faults"]) == (True, [])
        lines = await chief.get("/api/audit/verify", headers={"Accept": "application/x-ndjson"})
        *far, answer = map(json.loads, lines.text.splitlines())
        assert answer == told
        assert all(each["done"] <= each["total"] for each in far)
        assert (await chief.get("/api/audit/export")).headers["nod-last-row"] == str(max(numbers))
        await nod.app.database.write(
            lambda session: session.connection().exec_driver_sql("UPDATE rule SET value = '7'") and None
        )
        told = (await chief.get("/api/audit/verify", params={"anchor": told["anchor"]})).json()
        assert (told["intact"], len(told["faults"])) == (False, 1)


@pytest.mark.parametrize("path", ["audit", "audit/verify", "audit/export", "settings"])
async def test_the_record_and_the_settings_are_for_admins(serve: Serve, path):
    async with serve(token=ANA, **ADMIN) as nod:
        answer = await nod.client.get(f"/api/{path}")
        assert (answer.status_code, answer.json()["error"]) == (403, "This is for admins.")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/api/tools?sort=name", "sort: This takes no parameters."),
        ("/api/usage?days=7", "days: There is no such parameter. There is by, since."),
        (
            "/api/conversations?limit=2&sate=open",
            "sate: There is no such parameter. There is limit, q, before.",
        ),
    ],
)
async def test_a_parameter_that_there_is_not_is_refused_and_not_passed_over(serve: Serve, path, said):
    async with serve(token=CHIEF, **ADMIN) as nod:
        answer = await nod.client.get(path)
        assert (answer.status_code, answer.json()["error"]) == (422, said)


async def test_usage_is_ones_own_and_for_admins_everyones(serve: Serve):
    async with serve(token=ANA, **ADMIN) as nod, nod.caller(CHIEF) as chief, nod.caller(BEN) as ben:
        (begun, *_) = await nod.chat("hello")
        await nod.chat("hello", ben)
        mine = (await nod.client.get("/api/usage", params={"by": "conversation"})).json()
        assert [(part["key"], part["name"]) for part in mine["parts"]] == [
            (begun["conversation_id"], "hello")
        ]
        every = (await chief.get("/api/usage")).json()
        assert (every["everyone"], every["total"]["turns"], every["total"]["model_calls"]) == (True, 2, 2)
        assert [part["key"] for part in every["parts"]] == [nod.clock().date().isoformat()]
        by = (await chief.get("/api/usage", params={"by": "account"})).json()["parts"]
        assert sorted(part["key"] for part in by) == ["http:ana", "http:ben"]
        later = (nod.clock() + timedelta(days=1)).isoformat()
        assert (await chief.get("/api/usage", params={"since": later})).json()["parts"] == []


async def test_cost_is_told_by_person_place_model_and_request(serve: Serve, tmp_path: Path):
    (tmp_path / "prices.txt").write_text("currency EUR\n")
    used = Finished(StopReason.FINISHED, prompt_tokens=40, completion_tokens=2)
    model = ScriptedModel([Text("Hello."), used], [Text("And again."), used], [Text("Hello, Ben."), used])
    cost = (40 * 5 + 2 * 100) / 1_000_000
    prices = {"NOD_PRICES": tmp_path / "prices.txt", "NOD_MODEL_PRICE": (5, 100)}
    async with (
        serve(token=ANA, model=model, **prices, **ADMIN) as nod,
        nod.caller(CHIEF) as chief,
        nod.caller(BEN) as ben,
    ):
        await nod.chat("hello")
        await nod.chat("hello again")
        await nod.chat("hello", ben)

        async def told(by: str) -> dict[str, tuple[str, int, float]]:
            found = (await chief.get("/api/usage", params={"by": by})).json()
            assert (found["currency"], found["total"]["cost"]) == ("EUR", pytest.approx(3 * cost))
            assert found["plots"]["cost"].startswith("<svg")
            return {each["key"]: (each["name"], each["turns"], each["cost"]) for each in found["parts"]}

        assert await told("model") == {"scripted model": ("", 3, pytest.approx(3 * cost))}
        assert await told("place") == {"http": (ANY, 3, pytest.approx(3 * cost))}
        by_person = await told("person")
        assert by_person["http:ana"][1:] == (2, pytest.approx(2 * cost))
        assert by_person["http:ben"][1:] == (1, pytest.approx(cost))
        assert [each[1] for each in (await told("order")).values()] == [1, 1, 1]


async def test_insights_are_ones_own_and_for_admins_everyones_with_plots_and_as_csv(serve: Serve):
    model = ScriptedModel(ask(MILK), say("Kept."), ask(TEA), say("Kept."))
    async with (
        serve(model=model, token=ANA, **ADMIN) as nod,
        nod.caller(CHIEF) as chief,
        nod.caller(BEN) as ben,
    ):
        for verb in ("approve", "decline"):
            (proposal,) = await nod.proposed()
            nod.clock.forward(timedelta(minutes=4))
            await nod.press(proposal, verb)
            await nod.idle()
        mine = (await nod.client.get("/api/insights", params={"by": "person"})).json()
        [part] = mine["parts"]
        assert (mine["everyone"], part["key"]) == (False, "http:ana")
        counted = {name: many for name, many in part["tally"].items() if many}
        took = {"median_seconds": 240.0, "slowest_seconds": 240.0}
        assert counted == {"asked": 2, "approved": 1, "declined": 1, **took}
        assert (await ben.get("/api/insights")).json()["total"]["asked"] == 0
        every = (await chief.get("/api/insights")).json()
        assert (every["everyone"], every["total"]) == (True, part["tally"])
        assert [each["name"] for each in every["deciders"]] == ["ana"]
        for plot in every["plots"].values():
            [title, described] = ET.fromstring(plot)[:2]  # noqa: S314 - our own
            assert title.text
            assert described.tag.endswith("desc")
            assert not re.search(r"<script|\bon\w+=|href", plot)
        rows = list(
            csv.DictReader(io.StringIO((await chief.get("/api/insights/export")).content.decode("utf-8-sig")))
        )
        assert {row["part"] for row in rows} == {"tool", "place", "person", "decider", "connection", "hour"}
        assert [row["asked"] for row in rows if row["part"] == "tool"] == ["2"]
        assert sum(int(row["asked"]) for row in rows if row["part"] == "hour") == 2


async def test_insights_can_be_turned_off(serve: Serve):
    async with serve(token=CHIEF, **ADMIN, NOD_INSIGHTS=False) as nod:
        for path in ("insights", "insights/export"):
            answer = await nod.client.get(f"/api/{path}")
            assert (answer.status_code, "NOD_INSIGHTS" in answer.json()["error"]) == (404, True)


async def test_an_admin_tries_a_rule_over_http_and_is_told_what_it_would_have_cost(serve: Serve):
    model = ScriptedModel(ask(MILK), say("Kept."))
    async with serve(model=model, token=ANA, **ADMIN) as nod, nod.caller(CHIEF) as chief:
        (proposal,) = await nod.proposed()
        await nod.press(proposal, "decline", reason="we have enough")
        await nod.idle()
        tried = (await chief.post("/api/rules/try", json={"rule": "policy never for keep", "days": 7})).json()
        assert tried["effects"] == {"spared": 1, "asked": 0, "refused": 0, "otherwise": 0}
        assert (tried["looked"], tried["priced"], tried["next"]) == (1, 1, None)
        [priced] = tried["price"]
        assert [priced[name] for name in ("id", "price", "by", "reason")] == [
            *(proposal["id"], "declined", "ana", "we have enough")
        ]
        assert (await chief.get("/api/rules")).json()["rules"] == []
        wrong = await chief.post("/api/rules/try", json={"rule": "policy nver"})
        assert (wrong.status_code, wrong.json()["error"].startswith("Use one of")) == (422, True)
        assert (await nod.client.post("/api/rules/try", json={"rule": "never"})).status_code == 403


async def test_tools_are_listed_with_what_they_do_and_me_with_accounts_and_roles(serve: Serve):
    async with serve(token=CHIEF, **ADMIN) as nod:
        tools = {tool["name"]: tool for tool in (await nod.client.get("/api/tools")).json()["tools"]}
        assert (tools["keep"]["risk"], tools["read"]["risk"]) == ("write", "read")
        assert "text" in tools["keep"]["parameters"]["properties"]
        assert (tools["keep"]["untold"], tools["keep"]["refused_by"]) == ([], [])
        me = (await nod.client.get("/api/me")).json()
        assert (me["account"], me["accounts"], me["roles"]) == ("http:chief", ["http:chief"], ["admin"])


async def test_a_tool_that_a_models_server_refuses_is_listed_with_its_reason_until_it_changes(serve: Serve):
    async with serve(token=CHIEF, **ADMIN) as nod:
        models, (keep, *others) = (
            nod.app.site.models,
            [tool.spec for tool in await nod.app.registry.load_tools() if tool.name in ("keep", "read")],
        )
        models.note_refused(models.default, {keep.name: "array schema missing items"}, [keep, *others])
        tools = {tool["name"]: tool for tool in (await nod.client.get("/api/tools")).json()["tools"]}
        assert tools[keep.name]["refused_by"] == [f"{models.default.name} (array schema missing items)"]
        assert all(tools[other.name]["refused_by"] == [] for other in others)
        assert models.describe_refusals(replace(keep, description="Another one.")) == ()


async def test_the_list_of_proposals_is_filtered_by_what_one_asked_for_or_may_decide(serve: Serve):
    model = ScriptedModel(ask(MILK), ask(TEA))
    async with serve(model=model, token=ANA, **ADMIN) as nod, nod.caller(CHIEF) as chief:
        (asked,) = await nod.proposed()
        (own,) = await nod.proposed(client=chief)

        async def listed(**filters: object) -> set[str]:
            page = (await chief.get("/api/proposals", params=filters)).json()
            return {each["id"] for each in page["proposals"]}

        both = {asked["id"], own["id"]}
        assert await listed() == await listed(tool="keep") == await listed(mine="decide") == both
        assert await listed(mine="asked") == {own["id"]}
        assert (
            await listed(tool="read")
            == await listed(risk="destructive")
            == await listed(kind="plan")
            == set()
        )
        await nod.press(own, "decline", chief)
        assert await listed(mine="decide") == await listed(state="proposed") == {asked["id"]}
        assert await listed(state=["proposed", "declined"]) == both


async def test_one_proposal_is_waited_for_until_it_was_decided_and_has_run(serve: Serve):
    async with serve(model=ScriptedModel(ask(MILK), say("Kept."))) as nod:
        (proposal,) = await nod.proposed()
        path = f"/api/proposals/{proposal['id']}"
        waiting = asyncio.create_task(nod.client.get(path, params={"wait": 25}))
        async with nod.caller() as other:
            await nod.press(proposal, "approve", other)
        assert (await waiting).json()["proposal"]["state"] == "succeeded"
