"""Deciding over HTTP: every verb, every refusal, and what a proposal looks like as JSON."""

import asyncio
from datetime import timedelta

import pytest

from bot.approvals import lifecycle
from bot.domain.annotations import Annotation
from bot.domain.files import File
from bot.tools.call import ToolOutput
from bot.tools.decorator import tool
from tests.web.conftest import ANA, BEN, CHIEF, DEE, TOKENS, Serve
from tests.web.scripted import ScriptedModel, ask

FIELDS = {
    "id", "conversation_id", "message_id", "tool_name", "tool_arguments", "description", "preview", "state",
    "idempotency_key", "result", "result_url", "error", "created_at", "updated_at", "expires_at",
    "decided_by", "decided_from", "digest", "version",
}  # fmt: skip

MILK = ("keep", {"text": "milk", "approval_reason": "You asked for it."})


def asking(*calls: tuple[str, dict]) -> ScriptedModel:
    return ScriptedModel(ask(*(calls or (MILK,))))


async def test_approve_runs_it_once_exactly_as_shown_and_the_conversation_continues(serve: Serve):
    async with serve(model=asking()) as nod:
        (proposal,) = await nod.proposed("Note: milk")
        answer = await nod.press(proposal, "approve")
        assert answer.status_code == 200
        assert answer.json()["ok"] is True
        await nod.idle()
        assert nod.notes.kept == ["milk"]
        done = await nod.proposal(proposal["id"])
        assert (done["state"], done["decided_by"], done["decided_from"]) == ("succeeded", "you", "http")
        assert done["result"] == '{"kept": 1}'
        told = await nod.client.get(f"/api/conversations/{proposal['conversation_id']}/messages")
        assert told.json()["messages"][-1]["text"] == "Understood."


async def test_a_second_approve_returns_it_as_it_is_and_executes_nothing(serve: Serve):
    async with serve(model=asking()) as nod:
        (proposal,) = await nod.proposed()
        await nod.press(proposal, "approve")
        await nod.idle()
        again = await nod.press(proposal, "approve")
        await nod.idle()
        assert again.status_code == 200
        assert again.json()["answer"] == "already"
        assert again.json()["proposal"] == await nod.proposal(proposal["id"])
        assert nod.notes.kept == ["milk"]


@pytest.mark.slow
async def test_a_hundred_approves_at_the_same_time_execute_once(serve: Serve):
    async with serve(model=asking()) as nod:
        (proposal,) = await nod.proposed()
        answers = await asyncio.gather(*(nod.press(proposal, "approve") for _ in range(100)))
        await nod.idle()
        assert {a.status_code for a in answers} == {200}
        assert sorted(a.json()["answer"] for a in answers) == ["accepted", *["already"] * 99]
        assert nod.notes.kept == ["milk"]


async def test_decline_keeps_the_reason_and_tells_the_model(serve: Serve):
    async with serve(model=asking()) as nod:
        (proposal,) = await nod.proposed()
        answer = await nod.press(proposal, "decline", reason="We have some")
        await nod.idle()
        shown = answer.json()["proposal"]
        assert (shown["state"], shown["decline_reason"]) == ("declined", "We have some")
        assert nod.notes.kept == []
        assert "We have some" in str(nod.model.seen[-1])


async def test_approve_with_arguments_runs_the_edited_ones(serve: Serve):
    async with serve(model=asking()) as nod:
        (proposal,) = await nod.proposed()
        answer = await nod.press(proposal, "approve", arguments={"text": "oat milk", "times": 2})
        await nod.idle()
        assert answer.json()["proposal"]["edited_by"] == "you"
        assert answer.json()["proposal"]["digest"] != proposal["digest"]
        assert nod.notes.kept == ["oat milk", "oat milk"]


@pytest.mark.parametrize("verb", ["approve", "edit"])
async def test_arguments_that_do_not_fit_are_422_by_field_and_it_stays_open(serve: Serve, verb):
    async with serve(model=asking()) as nod:
        (proposal,) = await nod.proposed()
        answer = await nod.press(proposal, verb, arguments={"text": "x", "times": "often", "more": 1})
        assert answer.status_code == 422
        assert set(answer.json()["fields"]) == {"times", "more"}
        assert answer.json()["proposal"] == proposal | {"updated_at": proposal["updated_at"]}
        assert nod.notes.kept == []


async def test_arguments_json_cannot_hold_are_422_not_500(serve: Serve):
    async with serve(model=asking()) as nod:
        (proposal,) = await nod.proposed()
        for bad in ('{"text": NaN}', '{"text": "x", "times": Infinity}', '{"text": "\\ud800"}'):
            answer = await nod.client.post(
                f"/api/proposals/{proposal['id']}/approve",
                content=f'{{"arguments": {bad}}}',
                headers={"Content-Type": "application/json"},
            )
            assert answer.status_code == 422, bad
        assert (await nod.proposal(proposal["id"]))["state"] == "proposed"


async def test_edit_shows_it_again_without_a_vote(serve: Serve):
    async with serve(model=asking()) as nod:
        (proposal,) = await nod.proposed()
        answer = await nod.press(proposal, "edit", arguments={"text": "tea"})
        shown = answer.json()["proposal"]
        assert (shown["state"], shown["round"], shown["votes"]) == ("proposed", 2, [])
        assert shown["tool_arguments"]["text"] == "tea"
        assert nod.notes.kept == []


async def test_a_press_on_what_changed_since_is_409_and_shows_what_is_there_now(serve: Serve):
    async with serve(model=asking()) as nod:
        (proposal,) = await nod.proposed()
        await nod.press(proposal, "edit", arguments={"text": "tea"})
        for seen in ({"round": proposal["round"]}, {"digest": proposal["digest"]}):
            answer = await nod.press(proposal, "approve", **seen)
            assert answer.status_code == 409
            assert answer.json()["proposal"]["tool_arguments"]["text"] == "tea"
        for nothing in ({"digest": ""}, {"seen": ""}):
            assert (await nod.press(proposal, "approve", **nothing)).status_code == 409
        now = await nod.proposal(proposal["id"])
        answer = await nod.press(proposal, "approve", round=now["round"], digest=now["digest"])
        await nod.idle()
        assert answer.status_code == 200
        assert nod.notes.kept == ["tea"]


async def test_retry_runs_a_failed_one_again(serve: Serve):
    async with serve(model=asking()) as nod:
        nod.notes.failing = True
        (proposal,) = await nod.proposed()
        await nod.press(proposal, "approve")
        await nod.idle()
        failed = await nod.proposal(proposal["id"])
        assert (failed["state"], failed["cause"], failed["error"]) == (
            "failed", "error", "the notebook is closed",
        )  # fmt: skip
        assert failed["verbs"] == ["retry"]
        nod.notes.failing = False
        await nod.press(proposal, "retry")
        await nod.idle()
        assert (await nod.proposal(proposal["id"]))["state"] == "succeeded"
        assert nod.notes.kept == ["milk"]


async def test_cancel_takes_it_back(serve: Serve):
    async with serve(model=asking()) as nod:
        (proposal,) = await nod.proposed()
        answer = await nod.press(proposal, "cancel")
        assert (answer.json()["proposal"]["state"], answer.json()["proposal"]["cause"]) == (
            "cancelled", "taken_back",
        )  # fmt: skip


@pytest.mark.parametrize(("verb", "state"), [("approve_all", "succeeded"), ("decline_all", "declined")])
async def test_all_of_one_answer_are_decided_with_one_press(serve: Serve, verb, state):
    async with serve(model=asking(("keep", {"text": "a"}), ("keep", {"text": "b"}))) as nod:
        first, last = await nod.proposed()
        assert last["group"] is None
        assert first["group"] == {"size": 2, "open": 2, "round": 2}
        assert verb in first["verbs"]
        answer = await nod.press(first, verb, round=first["group"]["round"])
        assert answer.status_code == 200
        await nod.idle()
        assert [(await nod.proposal(p["id"]))["state"] for p in (first, last)] == [state, state]
        assert sorted(nod.notes.kept) == (["a", "b"] if verb == "approve_all" else [])


async def test_all_of_one_answer_is_409_when_one_of_them_changed(serve: Serve):
    async with serve(model=asking(("keep", {"text": "a"}), ("keep", {"text": "b"}))) as nod:
        first, _ = await nod.proposed()
        await nod.press(first, "edit", arguments={"text": "changed"})
        answer = await nod.press(first, "approve_all", round=first["group"]["round"])
        assert answer.status_code == 409
        assert nod.notes.kept == []


async def test_a_press_that_comes_after_the_time_is_up_runs_nothing(serve: Serve):
    async with serve(model=asking()) as nod:
        (proposal,) = await nod.proposed()
        nod.clock.forward(timedelta(hours=25))
        answer = await nod.press(proposal, "approve")
        await nod.idle()
        assert answer.status_code == 409
        assert "Here it is again" in answer.json()["error"]
        assert answer.json()["proposal"]["state"] == "proposed"
        assert nod.notes.kept == []


@pytest.mark.parametrize(
    "verb", ["approve", "decline", "edit", "cancel", "retry", "approve_all", "decline_all"]
)
async def test_an_unknown_proposal_is_404_for_every_verb(serve: Serve, verb):
    async with serve() as nod:
        answer = await nod.press({"id": "0" * 16}, verb)
        assert (answer.status_code, answer.json()["ok"]) == (404, False)


async def test_an_unknown_verb_is_404(serve: Serve):
    async with serve(model=asking()) as nod:
        (proposal,) = await nod.proposed()
        answer = await nod.press(proposal, "adopt")
        assert (answer.status_code, answer.json()["ok"]) == (404, False)


async def test_the_proposal_of_another_owner_cannot_be_told_from_none(serve: Serve):
    async with serve(model=asking(), NOD_HTTP_TOKENS=TOKENS, token=ANA) as nod, nod.caller(BEN) as ben:
        (proposal,) = await nod.proposed()
        for verb in ("approve", "decline", "cancel", "edit"):
            answer = await nod.press(proposal, verb, ben)
            unknown = await nod.press({"id": "0" * 16}, verb, ben)
            assert answer.status_code == 404
            assert answer.json() == unknown.json()
        assert (await ben.get(f"/api/proposals/{proposal['id']}")).status_code == 404
        assert (await ben.get("/api/proposals")).json()["proposals"] == []
        assert (await nod.proposal(proposal["id"]))["state"] == "proposed"


async def test_an_admin_sees_and_decides_what_another_owner_was_asked(serve: Serve):
    admins = {"NOD_HTTP_TOKENS": TOKENS, "NOD_ADMINS": ("http:chief",), "token": ANA}
    async with serve(model=asking(), **admins) as nod, nod.caller(CHIEF) as chief:
        (proposal,) = await nod.proposed()
        (listed,) = (await chief.get("/api/proposals", params={"state": "proposed"})).json()["proposals"]
        assert (listed["id"], listed["may_decide"]) == (proposal["id"], True)
        answer = await nod.press(proposal, "approve", chief)
        await nod.idle()
        assert answer.json()["proposal"]["decided_by"] == "chief"
        assert nod.notes.kept == ["milk"]


async def test_an_approver_is_refused_what_was_said_in_private_and_it_stays_open(serve: Serve):
    given = {"NOD_HTTP_TOKENS": TOKENS, "NOD_APPROVERS": ("http:dee",), "token": ANA}
    async with serve(model=asking(), **given) as nod, nod.caller(DEE) as dee:
        (proposal,) = await nod.proposed()
        answer = await nod.press(proposal, "approve", dee)
        assert answer.status_code in (403, 404)
        assert answer.json()["ok"] is False
        assert (await nod.proposal(proposal["id"]))["state"] == "proposed"
        assert (await nod.press(proposal, "approve")).status_code == 200


async def test_the_list_is_filtered_by_state(serve: Serve):
    async with serve(model=asking(("keep", {"text": "a"}), ("keep", {"text": "b"}))) as nod:
        first, last = await nod.proposed()
        await nod.press(first, "decline")

        async def listed(**query: str) -> list[str]:
            answer = await nod.client.get("/api/proposals", params=query)
            return [p["id"] for p in answer.json()["proposals"]]

        assert await listed(state="proposed") == [last["id"]]
        assert await listed(state="declined") == [first["id"]]
        assert await listed(state="expired") == []
        assert set(await listed()) == {first["id"], last["id"]}
        wrong = await nod.client.get("/api/proposals", params={"state": "perhaps"})
        assert wrong.status_code == 422
        assert list(wrong.json()["fields"]) == ["state.0"]


async def test_lists_hold_conversations_messages_and_proposals(serve: Serve):
    async with serve(model=asking()) as nod:
        (proposal,) = await nod.proposed("Note:  milk")
        ident = proposal["conversation_id"]
        (conversation,) = (await nod.client.get("/api/conversations")).json()["conversations"]
        assert conversation["id"] == ident
        assert conversation["title"] == "Note: milk"
        renamed = await nod.client.patch(f"/api/conversations/{ident}", json={"title": "\u200b "})
        assert renamed.json()["fields"] == {"title": "This is empty. Write something."}
        assert conversation["open_proposals"] == 1
        shown = (await nod.client.get(f"/api/conversations/{ident}/proposals")).json()["proposals"]
        assert shown == [proposal]
        said = (await nod.client.get(f"/api/conversations/{ident}/messages")).json()["messages"]
        assert [(m["role"], m["proposals"]) for m in said] == [("user", []), ("assistant", [proposal["id"]])]


async def test_a_proposal_has_every_field_that_is_promised_and_the_document_describes_each(serve: Serve):
    async with serve(model=asking()) as nod:
        (proposal,) = await nod.proposed()
        assert set(proposal) >= FIELDS
        document = (await nod.client.get("/openapi.json")).json()
        described = document["components"]["schemas"]["ProposalView"]["properties"]
        assert [field for field in proposal if not described[field].get("description")] == []
        assert proposal["description"] == "Keep the note “milk”"
        assert proposal["reason"] == "You asked for it."
        assert {
            "field": "Text",
            "old_value": None,
            "new_value": "milk",
            "in_title": True,
            "diff": None,
        } in proposal["preview"]
        assert proposal["idempotency_key"] == f"nod-{proposal['id']}"
        assert proposal["expires_at"] == "2026-03-03T09:00:00+00:00"
        assert len(proposal["digest"]) == 64


async def test_secrets_are_shown_nowhere_and_still_reach_the_tool(serve: Serve):
    given: list[str | None] = []

    @tool(summary="Log in as {user} with {password}")
    async def log_in(user: str, password: str) -> str:
        given.append(password)
        return "in, with key sk-abcdefghijklmnopqrstuvwx"

    async with serve(
        model=asking(("log_in", {"user": "ana", "password": "hunter2"})), tools=(log_in,)
    ) as nod:
        events = await nod.chat("Log me in")
        proposal = next(e["proposal"] for e in events if e["type"] == "proposal_opened")
        answer = await nod.press(proposal, "approve", arguments=proposal["tool_arguments"])
        await nod.idle()
        done = await nod.proposal(proposal["id"])
        path = f"/api/conversations/{proposal['conversation_id']}"
        everything = [str(events), answer.text, str(done)]
        everything += [(await nod.client.get(f"{path}/{part}")).text for part in ("messages", "proposals")]
        assert done["state"] == "succeeded"
        assert given == ["hunter2"]
        assert [text for text in everything if "hunter2" in text or "sk-abc" in text] == []


async def test_a_press_without_a_body_is_a_plain_press(serve: Serve):
    async with serve(model=asking()) as nod:
        (proposal,) = await nod.proposed()
        answer = await nod.client.post(f"/api/proposals/{proposal['id']}/decline")
        assert answer.json()["proposal"]["state"] == "declined"


async def test_the_whole_result_and_the_tools_files_are_downloads_for_those_who_may_see_the_proposal(
    serve: Serve,
):
    @tool()
    async def export(size: int) -> ToolOutput:
        return ToolOutput("<script>" + "x" * size, files=(File('a".html', "a;b"),))

    model = asking(("export", {"size": 5000, "approval_reason": "you asked"}))
    async with serve(model=model, tools=(export,)) as nod:
        (proposal,) = await nod.proposed()
        base = f"/api/proposals/{proposal['id']}"
        assert (await nod.client.get(f"{base}/result")).status_code == 404
        await nod.press(proposal, "approve")
        await nod.idle()
        got = await nod.client.get(f"{base}/result")
        assert got.text == "<script>" + "x" * 5000
        assert got.headers["content-type"] == "text/plain; charset=utf-8"
        assert got.headers["content-disposition"] == f'attachment; filename="export-{proposal["id"]}.txt"'
        assert got.headers["x-content-type-options"] == "nosniff"
        files = (await nod.client.get(f"{base}/files")).json()["files"]
        assert [f["name"] for f in files] == ["a_.html", f"export-{proposal['id']}.txt"]
        one = await nod.client.get(f"{base}/files/{files[0]['id']}")
        assert (one.text, one.headers["content-type"]) == ("a;b", "text/plain; charset=utf-8")
        assert (await nod.client.get(f"{base}/files/out-0")).status_code == 404


async def test_a_result_is_no_one_elses(serve: Serve):
    async with (
        serve(model=asking(), NOD_HTTP_TOKENS=TOKENS) as nod,
        nod.caller(ANA) as ana,
        nod.caller(DEE) as dee,
    ):
        (proposal,) = await nod.proposed(client=ana)
        await nod.press(proposal, "approve", client=ana)
        await nod.idle()
        for path in ("result", "files", "files/out-1"):
            address = f"/api/proposals/{proposal['id']}/{path}"
            assert (await dee.get(address)).status_code == 404
        assert (await ana.get(f"/api/proposals/{proposal['id']}/result")).text == '{"kept": 1}'


async def test_what_was_cut_of_a_read_is_a_download_of_its_conversation_alone(serve: Serve):
    @tool(writes=False)
    async def scan() -> ToolOutput:
        return ToolOutput("scanned", files=(File("scan.csv", "a;b"),))

    settings = {"NOD_HTTP_TOKENS": TOKENS}
    async with (
        serve(model=asking(("scan", {})), tools=(scan,), **settings) as nod,
        nod.caller(ANA) as ana,
        nod.caller(CHIEF) as chief,
    ):
        events = await nod.chat("scan", ana)
        base = f"/api/conversations/{events[0]['conversation_id']}/files"
        [file] = (await ana.get(base)).json()["files"]
        assert file["name"] == "scan.csv"
        assert (await ana.get(f"{base}/{file['id']}")).text == "a;b"
        assert (await ana.get(f"{base}/out-0")).status_code == 404
        [listed] = (await ana.get("/api/files")).json()["files"]
        assert (listed["id"], listed["name"], listed["size"]) == (file["id"], "scan.csv", 3)
        assert (listed["title"], listed["made_at"]) == ("scan", nod.clock().isoformat())
        assert (await chief.get("/api/files")).json()["files"] == []
        assert {(await chief.get(address)).status_code for address in (base, f"{base}/{file['id']}")} == {404}


async def test_a_line_that_a_feature_adds_later_reaches_readers_streams_and_exports(serve: Serve):
    async with serve(model=asking(), NOD_HTTP_TOKENS=TOKENS, NOD_ADMINS=("http:chief",), token=ANA) as nod:
        (proposal,) = await nod.proposed()
        assert proposal["annotations"] == []
        line = Annotation("Second opinion", "keeps <b>milk</b>; https://evil.example/approve")
        added = lifecycle.annotate, proposal["id"], proposal["round"], line, nod.app.clock()
        assert await nod.app.database.write(*added)
        after = await nod.proposal(proposal["id"])
        assert after["annotations"] == [{"name": line.name, "text": line.text, "late": True}]
        assert (after["seen"], after["round"]) == (proposal["seen"], proposal["round"])
        assert after["version"] > proposal["version"]  # so a stream tells of it
        async with nod.caller(CHIEF) as chief:
            exported = (await chief.get("/api/audit/export")).text
        assert line.line in exported
        assert (await nod.press(proposal, "approve")).status_code == 200
