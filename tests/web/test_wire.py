"""What clients of the HTTP interface rely on: ends to wait for, edits seen, rules, housekeeping."""

import pytest

from tests.web.conftest import ANA, BEN, CHIEF, TOKENS, Serve
from tests.web.scripted import ScriptedModel, ask, say

MILK = ("keep", {"text": "milk"})


async def test_approve_with_wait_answers_with_the_end(serve: Serve):
    async with serve(model=ScriptedModel(ask(MILK))) as nod:
        (proposal,) = await nod.proposed()
        answer = await nod.client.post(f"/api/proposals/{proposal['id']}/approve", params={"wait": 30})
        shown = answer.json()["proposal"]
        assert (answer.status_code, shown["state"], shown["result"]) == (200, "succeeded", '{"kept": 1}')


async def test_what_was_edited_is_approved_only_by_who_says_which_content(serve: Serve):
    async with serve(model=ScriptedModel(ask(MILK))) as nod:
        (proposal,) = await nod.proposed()
        edited = await nod.press(proposal, "edit", round=proposal["round"], arguments={"text": "tea"})
        now = edited.json()["proposal"]
        blind = await nod.press(proposal, "approve")
        assert blind.status_code == 409
        assert "Send what you saw of it: seen or round." in blind.json()["error"]
        assert (await nod.press(proposal, "approve", digest=proposal["digest"])).status_code == 409
        assert (await nod.press(proposal, "approve", digest=now["digest"])).status_code == 200
        await nod.idle()
        assert nod.notes.kept == ["tea"]


async def test_a_refused_call_is_told_and_done_names_the_message(serve: Serve):
    model = ScriptedModel(
        ask(("keep", {"text": 7, "approval_reason": "tea"}), text="Let me keep it."), say("I could not.")
    )
    async with serve(model=model) as nod:
        events = await nod.chat("go on")
        started = [e for e in events if e["type"] == "tool_call_start"]
        (ended,) = [e for e in events if e["type"] == "tool_call_result"]
        assert [e["call_id"] for e in started] == [ended["call_id"]]
        assert ended["ok"] is False
        assert started[0]["arguments"] == {"text": 7}
        assert "text" in ended["result"]
        said = "".join(e["content"] for e in events if e["type"] == "delta")
        assert said == "Let me keep it.\n\nI could not."
        done = events[-1]
        path = f"/api/conversations/{done['conversation_id']}/messages"
        assert (await nod.client.get(path)).json()["messages"][-1]["id"] == done["message_id"]


async def test_a_title_that_is_cut_says_so(serve: Serve):
    async with serve(NOD_HTTP_TOKENS=TOKENS, token=ANA) as nod:
        (began, *_) = await nod.chat("word " * 40)
        (shown,) = (await nod.client.get("/api/conversations")).json()["conversations"]
        assert shown["id"] == began["conversation_id"]
        assert shown["title"] == f"{('word ' * 16).strip()}…"


async def test_conversations_come_in_pages_and_can_be_renamed_exported_and_deleted(serve: Serve):
    async with serve(NOD_HTTP_TOKENS=TOKENS, token=ANA) as nod:
        begun = [(await nod.chat(f"hello {n}"))[0]["conversation_id"] for n in range(5)]
        found: list[str] = []
        before: dict[str, str] = {}
        while True:
            page = (await nod.client.get("/api/conversations", params={"limit": 2} | before)).json()
            found += [c["id"] for c in page["conversations"]]
            if page["next"] is None:
                break
            before = {"before": page["next"]}
        assert sorted(found) == sorted(begun)
        path = f"/api/conversations/{begun[0]}"
        assert (await nod.client.patch(path, json={"title": "Milk"})).status_code == 200
        exported = await nod.client.get(f"{path}/export")
        assert exported.headers["content-disposition"].startswith("attachment")
        assert exported.json()["title"] == "Milk"
        assert [m["text"] for m in exported.json()["messages"]] == ["hello 0", "Understood."]
        async with nod.caller(BEN) as ben:
            for method in ("DELETE", "PATCH"):
                body = {"title": "Mine"} if method == "PATCH" else None
                assert (await ben.request(method, path, json=body)).status_code == 404
            assert (await ben.get(f"{path}/export")).status_code == 404
        assert (await nod.client.delete(path)).status_code == 200
        for gone in (path + "/messages", path + "/export"):
            assert (await nod.client.get(gone)).status_code == 404
        listed = (await nod.client.get("/api/conversations")).json()["conversations"]
        assert begun[0] not in [c["id"] for c in listed]
        assert (
            await nod.client.post("/api/chat", json={"message": "x", "conversation_id": begun[0]})
        ).is_error


async def test_a_conversation_with_an_open_proposal_is_not_deleted(serve: Serve):
    async with serve(model=ScriptedModel(ask(MILK))) as nod:
        (proposal,) = await nod.proposed()
        path = f"/api/conversations/{proposal['conversation_id']}"
        refused = await nod.client.delete(path)
        assert (refused.status_code, refused.json()["error"]) == (
            409,
            "One of its proposals is open. Decide or withdraw what is open first.",
        )
        await nod.press(proposal, "decline")
        await nod.idle()
        assert (await nod.client.delete(path)).status_code == 200
        assert (await nod.proposal(proposal["id"]))["state"] == "declined"


RULES = [
    {"subject": "policy", "mode": "always", "tools": "delete_*", "place": "slack:T1/C2"},
    {"subject": "risk", "level": "destructive", "tools": "keep"},
    {"subject": "approvers", "who": ["approver", "http:ben"]},
    {"subject": "quorum", "needed": 2, "of": 3},
    {"subject": "plans", "approver": "both"},
    {"subject": "ttl", "seconds": 3600},
    {"subject": "remind", "seconds": 1800},
    {"subject": "escalate", "seconds": 900, "to": "slack:T1/C9"},
    {"subject": "quiet", "start": "22:00", "end": "07:00"},
    {"subject": "route", "to": "telegram:-100"},
    {"subject": "digest", "at": "09:00", "to": "telegram:-100"},
    {"subject": "role", "account": "http:ben", "role": "approver"},
    {"subject": "grants", "allow": "destructive"},
]


async def test_rules_are_set_and_dropped_with_typed_bodies_by_admins(serve: Serve):
    async with serve(NOD_HTTP_TOKENS=TOKENS, NOD_ADMINS=("http:chief",), token=CHIEF) as nod:
        for body in RULES:
            answer = await nod.client.post("/api/rules", json=body)
            assert answer.status_code == 201, (body, answer.text)
            listed = {r["id"]: r["words"] for r in (await nod.client.get("/api/rules")).json()["rules"]}
            assert listed[answer.json()["id"]].startswith(body["subject"])
            assert (await nod.client.delete(f"/api/rules/{answer.json()['id']}")).status_code == 200
        assert (await nod.client.get("/api/rules")).json()["rules"] == []
        assert (await nod.client.delete("/api/rules/99")).status_code == 404
        assert (await nod.client.put("/api/rules/paused", json={"paused": True})).status_code == 200
        assert (await nod.client.get("/api/rules")).json()["paused"] is True
        assert (await nod.client.put("/api/rules/paused", json={"paused": False})).status_code == 200
        async with nod.caller(ANA) as ana:
            assert (await ana.post("/api/rules", json=RULES[0])).status_code == 403
            assert (await ana.delete("/api/rules/1")).status_code == 403
            assert (await ana.put("/api/rules/paused", json={"paused": True})).status_code == 403


@pytest.mark.parametrize(
    "body",
    [
        {"subject": "policy", "mode": "sometimes"},
        {"subject": "nothing"},
        {"subject": "policy", "mode": "always", "tools": "a for b"},
        {"subject": "ttl", "seconds": 1},
        {"subject": "route", "to": "nowhere"},
        {"mode": "always"},
    ],
)
async def test_a_rule_that_makes_no_sense_is_422_and_sets_nothing(serve: Serve, body):
    async with serve(NOD_HTTP_TOKENS=TOKENS, NOD_ADMINS=("http:chief",), token=CHIEF) as nod:
        assert (await nod.client.post("/api/rules", json=body)).status_code == 422
        assert (await nod.client.get("/api/rules")).json()["rules"] == []
