"""Admins see what is on, part by part, with who set each; the doctor checks each part."""

from datetime import timedelta

import pytest

from bot.app.features import FEATURES, make_parts
from bot.approvals.lookup.active import MOST_LINES
from bot.core import policies_of
from bot.domain.agents import AGENT_BEGINNING
from bot.domain.doctor_findings import Finding, Health
from bot.domain.people import Actor
from bot.domain.rule_values import Attention, Mode, Opinion, Quorum, Subject
from bot.domain.rules import EVERYWHERE, Rule
from bot.store import rules, tokens
from bot.store.tokens import AgentTerms
from tests.web.conftest import ANA, CHIEF, TOKENS, Json, Serve, Served

SETTINGS = {"NOD_HTTP_TOKENS": TOKENS, "NOD_ADMINS": ("http:chief",)}
BOSS = Actor("http", "chief", "Chief")
SECRET = "sk-abcdefghijklmnopqrstuvwxyz123456"


async def set_rule(nod: Served, subject: Subject, value: object, pattern: str = EVERYWHERE) -> None:
    rule = Rule(0, subject, EVERYWHERE, pattern, value)  # type: ignore[arg-type]
    await nod.app.database.write(rules.set_rule, rule, BOSS, nod.clock())


async def make_agent(nod: Served, name: str) -> str:
    terms = AgentTerms(Actor("http", "ana", "Ana"), ["keep", f"{SECRET}*"], [], ["keep"], None)
    return await nod.app.database.write(tokens.issue_token, name, BOSS, nod.clock(), terms)


async def list_parts(nod: Served) -> dict[str, Json]:
    answer = await nod.client.get("/api/features")
    assert answer.status_code == 200, answer.text
    return {each["name"]: each for each in answer.json()["parts"]}


async def examine(nod: Served) -> dict[str, Finding]:
    """What the doctor finds in each feature, by the name of the finding."""
    parts = make_parts(nod.app.settings, nod.app.database, policies_of(nod.app.settings), nod.clock)
    found = [finding for each in FEATURES for finding in await each.examine(parts)]
    return {each.name: each for each in found}


async def test_admins_see_what_is_on_with_who_set_it_and_when_and_no_secret(serve: Serve) -> None:
    async with serve(token=CHIEF, **SETTINGS) as nod, nod.caller(ANA) as ana:
        assert set(await list_parts(nod)) == {"Insights"}
        await set_rule(nod, Subject.OPINION, Opinion("local"), "keep")
        await set_rule(nod, Subject.QUORUM, Quorum(2), "keep")
        await set_rule(nod, Subject.QUORUM, Quorum(3), "read")
        token = await make_agent(nod, "claude-code")
        assert token.startswith(AGENT_BEGINNING)
        parts = await list_parts(nod)
        at = nod.clock().isoformat()
        assert parts["Second opinions"]["lines"] == [
            {"words": "opinion local for keep", "set_by": "http:chief", "set_at": at, "rule": 1}
        ]
        assert parts["Other rules"]["lines"] == [
            {"words": "quorum: 2 rules, the newest", "set_by": "http:chief", "set_at": at, "rule": None}
        ]
        [agent] = parts["Agents"]["lines"]
        assert agent["words"].startswith("claude-code for http:ana: keep, ")
        assert agent["words"].endswith("not allowed by that person yet")
        assert parts["Insights"]["lines"][0] | {"words": ""} == {
            "words": "",
            "set_by": "NOD_INSIGHTS",
            "set_at": None,
            "rule": None,
        }
        said = (await nod.client.get("/api/features")).text
        assert (SECRET in said, token in said) == (False, False)
        typed = await nod.client.post("/api/commands", json={"name": "approvals", "text": "features"})
        assert "- rule 1: opinion local for keep (set by chief, " in typed.json()["text"]
        assert (await ana.get("/api/features")).status_code == 403
        refused = await ana.post("/api/commands", json={"name": "approvals", "text": "features"})
        assert "is for admins" in refused.text


async def test_limits_of_attention_and_mutes_are_listed_with_who_set_them(serve: Serve) -> None:
    async with serve(token=CHIEF, **SETTINGS) as nod, nod.caller(ANA) as ana:
        await set_rule(nod, Subject.ATTENTION, Attention(12))
        muted = await ana.post("/api/commands", json={"name": "nod", "text": "mutes keep for 8h"})
        assert muted.json()["ok"], muted.text
        parts = await list_parts(nod)
        at = nod.clock().isoformat()
        assert parts["Attention"]["lines"] == [
            {"words": "attention 12 an hour", "set_by": "http:chief", "set_at": at, "rule": 1}
        ]
        assert parts["Mutes"]["lines"] == [
            {"words": "keep until 2 Mar, 17:00 UTC", "set_by": "ana", "set_at": at, "rule": None}
        ]
        assert "Other rules" not in parts
        health = await examine(nod)
        assert health["attention"].fix == "rules: 1, cards held back now: 0"
        assert health["mutes"].fix == "keep; accounts that are not told: 1"
        nod.clock.forward(timedelta(hours=9))
        assert "Mutes" not in await list_parts(nod)


async def test_what_is_turned_off_is_not_listed(serve: Serve) -> None:
    async with serve(token=CHIEF, NOD_INSIGHTS="false", **SETTINGS) as nod:
        assert await list_parts(nod) == {}
        typed = await nod.client.post("/api/commands", json={"name": "approvals", "text": "features"})
        assert typed.json()["text"].startswith("Nothing is on")


async def test_a_part_with_too_many_lines_says_how_many_are_left_out(serve: Serve) -> None:
    async with serve(token=CHIEF, **SETTINGS) as nod:
        for number in range(MOST_LINES + 3):
            await make_agent(nod, f"agent-{number}")
        part = (await list_parts(nod))["Agents"]
        assert (len(part["lines"]), part["left_out"]) == (MOST_LINES, 3)


async def test_the_doctor_checks_what_is_on(serve: Serve) -> None:
    async with serve(token=CHIEF, **SETTINGS) as nod:
        await set_rule(nod, Subject.OPINION, Opinion("gone"), "keep")
        await make_agent(nod, "claude-code")
        assert {each.name: each.health for each in (await examine(nod)).values()} == {
            "rule 1": Health.FAIL,
            "agents": Health.OK,
        }


@pytest.mark.parametrize("mode", [Mode.ALWAYS, Mode.FORBID])
async def test_a_rule_that_a_feature_lists_is_not_listed_again(serve: Serve, mode: Mode) -> None:
    async with serve(token=CHIEF, **SETTINGS) as nod:
        await set_rule(nod, Subject.OPINION, Opinion("local"))
        await set_rule(nod, Subject.POLICY, mode)
        listed = [line["words"] for part in (await list_parts(nod)).values() for line in part["lines"]]
        assert sum("opinion" in each for each in listed) == 1
        assert "policy: 1 rule" in listed
