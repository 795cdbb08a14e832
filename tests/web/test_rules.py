"""Approving similar calls, extending, and admin commands over HTTP."""

from tests.web.conftest import ANA, BEN, CHIEF, TOKENS, Serve
from tests.web.scripted import ScriptedModel, ask, say

SETTINGS = {"NOD_HTTP_TOKENS": TOKENS, "NOD_ADMINS": ("http:chief",)}


def keeping(*texts: str) -> ScriptedModel:
    """A model that wants to keep each text in turn."""
    return ScriptedModel(
        *(answer for text in texts for answer in (ask(("keep", {"text": text})), say("So it is.")))
    )


async def test_the_ladder_is_told_and_a_chosen_rung_lets_the_next_like_call_run(serve: Serve):
    async with serve(model=keeping("milk", "bread"), token=ANA, **SETTINGS) as nod:
        (first,) = await nod.proposed()
        assert "similar" in first["verbs"]
        offered = (await nod.client.get(f"/api/proposals/{first['id']}/ladder")).json()
        assert [step["rung"] for step in offered["ladder"]] == ["exact", "tool"]
        assert [step["reach"] for step in offered["reaches"]] == ["here", "requester"]
        assert offered["lasting"] == ["conversation", "1h", "8h", "24h"]

        answer = await nod.press(first, "similar", rung="tool", reach="requester", lasting="8h", round=1)
        assert answer.status_code == 200
        assert "G-1 now allows keep with any arguments" in answer.json()["text"]
        await nod.idle()
        (second,) = await nod.proposed()
        await nod.idle()
        shown = await nod.proposal(second["id"])
        assert (shown["state"], shown["decided_by"]) == ("succeeded", "ana's grant G-1")
        assert nod.notes.kept == ["milk", "bread"]


async def test_similar_without_a_rung_is_422_and_changes_nothing(serve: Serve):
    async with serve(model=keeping("milk"), token=ANA, **SETTINGS) as nod:
        (first,) = await nod.proposed()
        answer = await nod.press(first, "similar")
        assert answer.status_code == 422
        assert (await nod.proposal(first["id"]))["state"] == "proposed"


async def test_anothers_ladder_is_404(serve: Serve):
    async with serve(model=keeping("milk"), token=ANA, **SETTINGS) as nod:
        (first,) = await nod.proposed()
        async with nod.caller(BEN) as ben:
            assert (await ben.get(f"/api/proposals/{first['id']}/ladder")).status_code == 404


async def test_extend_moves_the_expiry(serve: Serve):
    from datetime import timedelta

    async with serve(model=keeping("milk"), token=ANA, **SETTINGS) as nod:
        (first,) = await nod.proposed()
        nod.clock.forward(timedelta(hours=20))
        answer = await nod.press(first, "extend")
        assert answer.status_code == 200
        assert answer.json()["proposal"]["expires_at"] > first["expires_at"]


async def test_an_admin_sets_rules_over_http_and_others_are_refused(serve: Serve):
    async with serve(model=keeping("milk"), token=ANA, **SETTINGS) as nod, nod.caller(CHIEF) as chief:
        refused = await nod.client.post("/api/commands", json={"name": "approvals", "text": "pause"})
        assert refused.status_code == 403
        done = await chief.post("/api/commands", json={"name": "approvals", "text": "quorum 2"})
        assert done.json()["text"] == "Set: rule 1: quorum 2."
        wrong = await chief.post("/api/commands", json={"name": "approvals", "text": "quorm 2"})
        assert wrong.status_code == 422
        assert "Did you mean" in wrong.json()["error"]
        everyone = await nod.client.post("/api/commands", json={"name": "nod", "text": "status"})
        assert everyone.json()["text"] == "Nothing is waiting."


async def test_a_rule_with_limits_is_set_over_http_and_seen_with_its_end_by_whom_it_concerns(serve: Serve):
    async with serve(model=keeping("milk"), token=ANA, **SETTINGS) as nod, nod.caller(CHIEF) as chief:
        limits = {
            "by": "http:ana",
            "until": "tomorrow 18:00",
            "between": ["18:00", "08:00"],
            "on": "weekdays",
        }
        body = {"subject": "policy", "mode": "forbid", "tools": "keep", "where": "text matches m*", **limits}
        made = await chief.post("/api/rules", json=body)
        assert made.status_code == 201, made.text
        (seen,) = (await nod.client.get("/api/rules")).json()["rules"]
        end = seen["words"].removeprefix("policy forbid for keep by http:ana until ").split(" between ")[0]
        assert seen["words"].endswith("between 18:00 and 08:00 on weekdays where text matches m*")
        assert seen["until"].replace("T", " ").startswith(end)
        assert seen["trouble"] is None
        async with nod.caller(BEN) as ben:
            assert (await ben.get("/api/rules")).json()["rules"] == []
        wrong = await chief.post("/api/rules", json={**body, "where": "words = milk"})
        assert (wrong.status_code, "keep: it has no words" in wrong.json()["error"]) == (422, True)
        plans = {"subject": "plans", "approver": "human", "where": "a = b"}
        none = await chief.post("/api/rules", json=plans)
        assert none.status_code == 422


async def test_where_anyone_in_the_conversation_decides_its_owner_may_edit_allow_and_approve(
    serve: Serve,
):
    async with serve(model=keeping("milk"), token=ANA, **SETTINGS) as nod, nod.caller(CHIEF) as chief:
        await chief.post("/api/commands", json={"name": "approvals", "text": "approvers member"})
        (first,) = await nod.proposed()
        assert first["may_decide"]
        offered = (await nod.client.get(f"/api/proposals/{first['id']}/ladder")).json()
        assert [step["rung"] for step in offered["ladder"]] == ["exact", "tool"]
        answer = await nod.press(first, "edit", arguments={"text": "bread"}, round=first["round"])
        assert answer.status_code == 200
        late = await nod.press(first, "edit", arguments={"text": "tea"}, round=first["round"])
        assert late.status_code == 409
        assert "ana changed text: milk → bread" in late.json()["error"]
        async with nod.caller(BEN) as ben:
            assert (await ben.post(f"/api/proposals/{first['id']}/approve")).status_code == 404
        now = answer.json()["proposal"]
        assert (await nod.press(now, "approve", round=now["round"])).status_code == 200


async def test_members_see_the_rules_where_they_are_and_no_other_and_their_own_roles_and_grants(serve: Serve):
    async with serve(model=keeping("milk"), token=ANA, **SETTINGS) as nod:
        (first,) = await nod.proposed()
        assert (await nod.press(first, "similar", rung="tool", lasting="8h")).status_code == 200
        async with nod.caller(CHIEF) as chief, nod.caller(BEN) as ben:
            for words in (
                "policy always for delete_*",
                "ttl 4h in slack:T1/C2",
                "ttl 5h in http:ana",
                "quorum 2 for delete_* in http:*",
                f"remind 2h in http:ana/{first['conversation_id']}",
                "route slack:T1/C9 for delete_*",
                "roles add http:ben approver",
            ):
                said = await chief.post("/api/commands", json={"name": "approvals", "text": words})
                assert said.status_code == 200, said.text
            every = (await chief.get("/api/rules")).json()
            seen = {
                name: (await client.get("/api/rules")).json()
                for name, client in (("ana", nod.client), ("ben", ben))
            }
            assert (every["everything"], len(every["rules"]), len(every["grants"])) == (True, 7, 1)
            numbers = {name: [each["id"] for each in found["rules"]] for name, found in seen.items()}
            assert numbers == {"ana": [1, 3, 4, 5], "ben": [1, 4, 7]}
            assert seen["ana"]["roles"] == {"admin": [], "approver": []}
            assert seen["ben"]["roles"] == {"admin": [], "approver": ["http:ben"]}
            assert [len(found["grants"]) for found in seen.values()] == [1, 0]
            assert not any(found["everything"] for found in seen.values())
            dropped = await ben.delete("/api/rules/1")
            assert dropped.status_code == 403
