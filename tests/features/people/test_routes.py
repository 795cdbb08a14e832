"""Who is who over HTTP: everybody sees their own accounts, admins everyone's, and separates them."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from bot.domain.chat import Address, Command
from bot.domain.people import Actor
from tests.web.conftest import ANA, BEN, CHIEF, TOKENS, Json, Serve, Served

pytestmark = pytest.mark.platform

CHAT = Actor("slack", "T1/U7", "Ana Berg")
AT = Address("slack", "T1/D1")


@pytest.fixture
async def nod(serve: Serve) -> AsyncIterator[Served]:
    who = {"NOD_ADMINS": ("http:chief",), "NOD_APPROVERS": ("telegram:991",)}
    async with serve(NOD_HTTP_TOKENS=TOKENS, token=ANA, **who) as served:
        yield served


async def link(nod: Served) -> None:
    """Make one person of Ana's accounts in Slack and over HTTP."""

    async def say(actor: Actor, words: str) -> str:
        return (await nod.app.core.assistant.handle(Command(actor, "nod", words, AT))).text

    http = Actor("http", "ana", "ana")
    code = (await say(http, "link")).split("`")[1]
    await say(CHAT, f"link {code} yes")
    assert "are one person now" in await say(http, f"link yes {CHAT}")


async def people(nod: Served, token: str = ANA) -> Json:
    async with nod.caller(token) as client:
        found: Json = (await client.get("/api/people")).json()
        return found


async def test_everybody_sees_their_own_accounts_and_no_one_elses(nod: Served):
    await link(nod)
    found = await people(nod)
    [me] = found["people"]
    assert (found["everyone"], me["you"]) == (False, True)
    assert [(a["account"], a["name"]) for a in me["accounts"]] == [
        ("http:ana", "ana"),
        ("slack:T1/U7", "Ana Berg"),
    ]
    assert all(a["linked_at"] == nod.clock().isoformat() for a in me["accounts"])
    [other] = (await people(nod, BEN))["people"]
    assert [(a["account"], a["linked_at"]) for a in other["accounts"]] == [("http:ben", None)]


async def test_an_admin_sees_all_who_are_linked_or_have_a_role_and_since_when(nod: Served):
    await link(nod)
    async with nod.caller(CHIEF) as chief:
        given = await chief.post(
            "/api/commands", json={"name": "approvals", "text": "roles add slack:T1/U7 approver"}
        )
        assert given.status_code == 200
    found = await people(nod, CHIEF)
    assert found["everyone"]
    assert [[a["account"] for a in each["accounts"]] for each in found["people"]] == [
        ["http:chief"],
        ["http:ana", "slack:T1/U7"],
        ["telegram:991"],
    ]
    roles = {a["account"]: a["roles"] for each in found["people"] for a in each["accounts"]}
    assert roles == {
        "http:chief": [{"role": "admin", "since": None}],
        "http:ana": [],
        "slack:T1/U7": [{"role": "approver", "since": nod.clock().isoformat()}],
        "telegram:991": [{"role": "approver", "since": None}],
    }


async def test_people_separate_their_own_accounts_and_admins_everyones(nod: Served):
    for token in (ANA, CHIEF):
        await link(nod)
        async with nod.caller(token) as client:
            done = await client.delete("/api/people/links", params={"account": "slack:T1/U7"})
        assert done.json() == {
            "ok": True,
            "text": "Unlinked: slack:T1/U7 is a separate person again.",
            "account": "slack:T1/U7",
            "grants_ended": 0,
        }
        assert [len(each["accounts"]) for each in (await people(nod))["people"]] == [1]
    async with nod.caller(CHIEF) as chief:
        rows = (await chief.get("/api/audit")).json()["rows"]
    parted = [row for row in rows if row["verb"] == "unlink"]
    assert [row["actor"] for row in parted] == ["http:chief", "http:chief", "http:ana", "http:ana"]


async def test_an_account_that_is_someone_elses_or_alone_is_not_found(nod: Served):
    await link(nod)
    for token, account in (
        (BEN, "slack:T1/U7"),
        (BEN, "http:ben"),
        (CHIEF, "slack:T1/U9"),
        (CHIEF, "x"),
        (CHIEF, "x:\0"),
    ):
        async with nod.caller(token) as client:
            refused = await client.delete("/api/people/links", params={"account": account})
        assert refused.status_code == 404
    assert [len(each["accounts"]) for each in (await people(nod))["people"]] == [2]


async def test_who_is_away_is_told_to_them_and_to_admins_and_ended_by_either(nod: Served):
    async def away(client: Any) -> Json:
        body = {"name": "nod", "text": "away http:ben for 3d"}
        assert (await client.post("/api/commands", json=body)).status_code == 200
        [me] = (await people(nod))["people"]
        return me["away"]

    async with nod.caller(ANA) as ana, nod.caller(BEN) as ben, nod.caller(CHIEF) as chief:
        until = (nod.clock() + timedelta(days=3)).isoformat()
        assert await away(ana) == {
            "account": "http:ana",
            "until": until,
            "stand_in": "http:ben",
            "name": "http:ben",
        }
        at = "/api/people/absences?account=http:ana"
        assert (await ben.delete(at)).status_code == 404
        ended = (await chief.delete(at)).json()
        assert ended["text"] == "Ended: http:ben for ana."
        assert [(each["account"], each["name"]) for each in ended["ended"]] == [("http:ana", "http:ben")]
        assert (await ana.delete(at)).status_code == 404
        await away(ana)
        assert (await ana.delete(at)).status_code == 200
        assert (await people(nod))["people"][0]["away"] is None
