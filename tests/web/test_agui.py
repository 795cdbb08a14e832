"""AG-UI at ``/agui``: texts, calls and state; open proposals as interrupts, and ``resume`` as presses."""

import asyncio
import base64
import json
from datetime import datetime
from typing import Any
from uuid import uuid4

import httpx
import pytest
from ag_ui_validate.pytest_plugin import assert_valid_agui
from sqlmodel import Session

from bot.domain.model import Finished, StopReason, Text, Thought, UserText
from bot.domain.people import Actor
from bot.errors import ModelCut
from bot.store import turns
from bot.web.channel import HttpChannel, make_address_key
from bot.web.streams import Pace
from tests.web.conftest import ANA, BEN, CHIEF, TOKENS, Json, Serve, Served
from tests.web.scripted import ScriptedModel, ask, say

MILK = ("keep", {"text": "milk"})
ADMIN = {"NOD_HTTP_TOKENS": TOKENS, "NOD_ADMINS": ("http:chief",)}


async def sent(
    nod: Served,
    text: str | None = None,
    *resume: Json,
    thread: str = "t1",
    client: httpx.AsyncClient | None = None,
    **more: Any,
) -> httpx.Response:
    said = [{"id": uuid4().hex, "role": "user", "content": text}] if text is not None else []
    body = {
        "threadId": thread,
        "runId": uuid4().hex,
        "messages": said,
        **({"resume": resume} if resume else {}),
    }
    return await (client or nod.client).post("/agui", json=body | more)


async def ran(nod: Served, *given: Any, **more: Any) -> list[Json]:
    """The events of a run, which must be as the protocol has them."""
    answer = await sent(nod, *given, **more)
    assert answer.status_code == 200, answer.text
    events = events_of(answer)
    assert_valid_agui(events)
    return events


def events_of(answer: httpx.Response) -> list[Json]:
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]


def kinds(events: list[Json]) -> list[str]:
    return [event["type"] for event in events]


def text_of(events: list[Json]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")


def interrupts(events: list[Json]) -> list[Json]:
    assert events[-1]["type"] == "RUN_FINISHED", events[-1]
    found: list[Json] = events[-1]["outcome"].get("interrupts", [])
    return found


def resolved(interrupt: Json, **payload: Any) -> Json:
    return {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}


async def test_a_run_streams_text_and_calls_and_ends_in_success(serve: Serve):
    model = ScriptedModel(ask(("read", {}), text="Let me look."), say("There is ", "nothing."))
    async with serve(model=model) as nod:
        events = await ran(nod, "what is there?")
        assert kinds(events) == [
            *("RUN_STARTED", "STATE_SNAPSHOT"),
            *("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"),
            *("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"),
            *("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"),
            "RUN_FINISHED",
        ]
        assert text_of(events) == "Let me look.There is nothing."
        assert (events[0]["protocolVersion"], events[-1]["outcome"]) == ("1.0", {"type": "success"})


async def test_an_open_proposal_ends_the_run_with_an_interrupt_that_carries_the_card(serve: Serve):
    async with serve(model=ScriptedModel(ask(MILK, text="I keep it."))) as nod:
        events = await ran(nod, "keep milk")
        (interrupt,) = interrupts(events)
        card = interrupt["metadata"]["nod"]
        assert (interrupt["reason"], interrupt["toolCallId"]) == ("tool_call", card["id"])
        assert card["preview"] == [
            {"field": "Text", "old_value": None, "new_value": "milk", "in_title": True, "diff": None},
            {
                "field": "Times",
                "old_value": None,
                "new_value": "1 (default)",
                "in_title": False,
                "diff": None,
            },
        ]
        assert interrupt["responseSchema"]["properties"]["editedArgs"]["properties"].keys() >= {
            "text",
            "times",
        }
        (call,) = [e for e in events if e["type"] == "TOOL_CALL_START"]
        assert (call["toolCallId"], call["toolCallName"]) == (card["id"], "keep")
        assert nod.notes.kept == []


async def test_resume_approves_and_the_answer_continues(serve: Serve):
    async with serve(model=ScriptedModel(ask(MILK), say("Kept."))) as nod:
        (interrupt,) = interrupts(await ran(nod, "keep milk"))
        events = await ran(nod, None, resolved(interrupt, approved=True))
        assert nod.notes.kept == ["milk"]
        (result,) = [e for e in events if e["type"] == "TOOL_CALL_RESULT"]
        assert (result["toolCallId"], result["content"]) == (interrupt["toolCallId"], '{"kept": 1}')
        assert kinds(events).index("TOOL_CALL_RESULT") < kinds(events).index("TEXT_MESSAGE_START")
        assert (text_of(events), events[-1]["outcome"]) == ("Kept.", {"type": "success"})


async def test_resume_declines_with_a_reason(serve: Serve):
    async with serve(model=ScriptedModel(ask(MILK), say("As you say."))) as nod:
        (interrupt,) = interrupts(await ran(nod, "keep milk"))
        events = await ran(nod, None, resolved(interrupt, approved=False, reason="too much milk"))
        assert text_of(events) == "As you say."
        shown = await nod.proposal(interrupt["toolCallId"])
        assert (shown["state"], shown["decline_reason"], nod.notes.kept) == ("declined", "too much milk", [])


async def test_resume_edits_and_approves_what_was_edited(serve: Serve):
    async with serve(model=ScriptedModel(ask(MILK), say("Kept."))) as nod:
        (interrupt,) = interrupts(await ran(nod, "keep milk"))
        await ran(nod, None, resolved(interrupt, approved=True, editedArgs={"text": "tea"}))
        assert nod.notes.kept == ["tea"]


async def test_an_edit_alone_asks_again_under_another_id_and_the_old_one_approves_nothing(serve: Serve):
    async with serve(model=ScriptedModel(ask(MILK), say("Kept."))) as nod:
        (old,) = interrupts(await ran(nod, "keep milk"))
        (new,) = interrupts(await ran(nod, None, resolved(old, editedArgs={"text": "tea"})))
        assert new["id"] != old["id"]
        (again,) = interrupts(await ran(nod, None, resolved(old, approved=True)))
        assert (again["id"], nod.notes.kept) == (new["id"], [])
        assert again["message"] != new["message"]
        await ran(nod, None, resolved(new, approved=True))
        assert nod.notes.kept == ["tea"]


async def test_wrong_arguments_and_no_answer_leave_it_open_and_cancelled_withdraws_it(serve: Serve):
    async with serve(model=ScriptedModel(ask(MILK), say("All right."))) as nod:
        (interrupt,) = interrupts(await ran(nod, "keep milk"))
        events = await ran(nod, None, resolved(interrupt, approved=True, editedArgs={"text": 7}))
        (answer,) = [e["value"] for e in events if e["type"] == "CUSTOM"]
        assert (answer["answer"], answer["interruptId"]) == ("invalid", interrupt["id"])
        assert "text" in interrupts(events)[0]["message"]
        assert interrupts(await ran(nod, None, resolved(interrupt))) == [interrupt]
        events = await ran(nod, None, {"interruptId": interrupt["id"], "status": "cancelled"})
        assert events[-1]["outcome"] == {"type": "success"}
        assert (await nod.proposal(interrupt["toolCallId"]))["state"] == "cancelled"


async def test_who_may_not_decide_is_refused_there_too_and_strangers_find_nothing(serve: Serve):
    async with serve(model=ScriptedModel(ask(MILK)), token=ANA, **ADMIN) as nod, nod.caller(CHIEF) as chief:
        await chief.post("/api/rules", json={"subject": "approvers", "who": ["admin"]})
        (interrupt,) = interrupts(await ran(nod, "keep milk"))
        assert interrupt["metadata"]["nod"]["may_decide"] is False
        events = await ran(nod, None, resolved(interrupt, approved=True))
        assert [e["value"]["answer"] for e in events if e["type"] == "CUSTOM"] == ["refused"]
        async with nod.caller(BEN) as ben:
            stranger = await sent(nod, None, resolved(interrupt, approved=True), client=ben)
            assert (stranger.status_code, nod.notes.kept) == (404, [])
        decided = await nod.press(await nod.proposal(interrupt["toolCallId"]), "approve", chief)
        assert decided.status_code == 200


async def test_one_of_two_interrupts_may_be_answered_and_the_other_stays(serve: Serve):
    model = ScriptedModel(ask(MILK, ("keep", {"text": "tea"})), say("Both kept."))
    async with serve(model=model) as nod:
        first, second = interrupts(await ran(nod, "keep both"))
        events = await ran(nod, None, resolved(first, approved=True))
        assert [each["id"] for each in interrupts(events)] == [second["id"]]
        assert text_of(await ran(nod, None, resolved(second, approved=True))) == "Both kept."
        assert nod.notes.kept == ["milk", "tea"]


async def test_two_answers_to_one_interrupt_that_differ_decide_nothing(serve: Serve):
    async with serve(model=ScriptedModel(ask(MILK), say("Kept."))) as nod:
        (interrupt,) = interrupts(await ran(nod, "keep milk"))
        yes, no = (resolved(interrupt, approved=each) for each in (True, False))
        refused = await sent(nod, None, yes, no)
        assert (refused.status_code, nod.notes.kept) == (422, [])
        assert "has two answers that differ. Send one." in refused.json()["error"]
        await ran(nod, None, yes, yes)
        assert nod.notes.kept == ["milk"]


async def test_a_question_of_the_agents_is_an_interrupt_that_is_answered_in_words(serve: Serve):
    question = ("ask_person", {"question": "Which milk?", "choices": ["oat", "whole"]})
    async with serve(model=ScriptedModel(ask(question), say("Oat it is."))) as nod:
        (interrupt,) = interrupts(await ran(nod, "buy milk"))
        assert (interrupt["reason"], interrupt["message"]) == ("input_required", "Which milk?")
        assert interrupt["responseSchema"]["properties"]["answer"]["examples"] == ["oat", "whole"]
        (again,) = interrupts(await ran(nod, None, resolved(interrupt, answer="")))
        assert again["message"] == "Write your answer. Which milk?"
        events = await ran(nod, None, resolved(again, answer="oat"))
        (result,) = [e for e in events if e["type"] == "TOOL_CALL_RESULT"]
        assert (result["toolCallId"], result["content"]) == (interrupt["toolCallId"], "oat")
        assert (text_of(events), events[-1]["outcome"]) == ("Oat it is.", {"type": "success"})
        shown = await nod.proposal(interrupt["toolCallId"])
        assert (shown["state"], shown["outcome"]) == ("succeeded", "Answered by you.")


async def test_a_plan_is_sent_back_with_what_should_change_though_a_reason_came_too(serve: Serve):
    steps = [{"description": "Write it down", "tools": ["keep"], "estimated_tokens": 300}]
    plan = ("plan_submit", {"summary": "Milk is kept", "steps": steps, "risks": "None"})
    async with serve(model=ScriptedModel(ask(plan), say("All right."))) as nod:
        (interrupt,) = interrupts(await ran(nod, "keep milk, plan first"))
        await ran(nod, None, resolved(interrupt, revise="only milk", reason="not yet"))
        shown = await nod.proposal(interrupt["toolCallId"])
        assert (shown["state"], shown["decline_reason"]) == ("declined", "only milk")


async def test_the_rows_of_a_batch_are_interrupts_that_name_it_and_are_answered_together(serve: Serve):
    rows = [("keep", {"text": text}) for text in ("milk", "tea", "bread")]
    async with serve(model=ScriptedModel(ask(*rows), say("All kept but tea."))) as nod:
        found = interrupts(await ran(nod, "keep three"))
        batch = {each["metadata"]["nod"]["batch"]["id"] for each in found}
        assert batch == {found[0]["toolCallId"]}
        told = [each["metadata"]["nod"]["batch"] for each in found]
        assert [(each["size"], each["position"]) for each in told] == [(3, 1), (3, 2), (3, 3)]
        milk, tea, bread = found
        each = (resolved(milk, approved=True), resolved(tea, approved=False), resolved(bread, approved=True))
        events = await ran(nod, None, *each)
        assert (text_of(events), events[-1]["outcome"]) == ("All kept but tea.", {"type": "success"})
        assert nod.notes.kept == ["milk", "bread"]


async def test_a_run_that_was_lost_is_read_again_by_sending_the_same_messages(serve: Serve):
    async with serve(model=ScriptedModel(ask(MILK), say("Kept."))) as nod:
        message = {"id": "m1", "role": "user", "content": [{"type": "text", "text": "keep milk"}]}
        first = interrupts(await ran(nod, messages=[message]))
        assert interrupts(await ran(nod, messages=[message])) == first
        assert len(nod.model.seen) == 1
    async with serve(model=nod.model) as restarted:
        assert interrupts(await ran(restarted, messages=[message])) == first
        assert text_of(await ran(restarted, None, resolved(first[0], approved=True))) == "Kept."


async def test_a_thread_is_the_callers_own_conversation_and_may_be_one_of_the_console(serve: Serve):
    async with serve(token=ANA, **ADMIN) as nod, nod.caller(BEN) as ben:
        await ran(nod, "mine", thread="shared name")
        await ran(nod, "mine", thread="shared name", client=ben)
        (begun, *_) = await nod.chat("hello")
        events = await ran(nod, "more", thread=begun["conversation_id"])
        assert events[1]["snapshot"]["conversation_id"] == begun["conversation_id"]
        for client in (nod.client, ben):
            titles = [c["title"] for c in (await client.get("/api/conversations")).json()["conversations"]]
            assert titles.count("mine") == 1


async def test_what_a_model_thinks_is_reasoning_apart_from_its_text(serve: Serve):
    first = [Thought("There may be notes. "), *ask(("read", {}), text="Let me look.")]
    second = [Thought("None. So "), Thought("I say so."), *say("There is nothing.")]
    async with serve(model=ScriptedModel(first, second)) as nod:
        events = await ran(nod, "what is there?")
        reasoning = ("REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT")
        ended = ("REASONING_MESSAGE_END", "REASONING_END")
        text = ("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END")
        assert kinds(events) == [
            *("RUN_STARTED", "STATE_SNAPSHOT", *reasoning, *ended, *text),
            *("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"),
            *(*reasoning, "REASONING_MESSAGE_CONTENT", *ended, *text, "RUN_FINISHED"),
        ]
        assert text_of(events) == "Let me look.There is nothing."
        thought = [e["delta"] for e in events if e["type"] == "REASONING_MESSAGE_CONTENT"]
        assert thought == ["There may be notes. ", "None. ", "So I say so."]


async def test_an_answer_that_was_cut_off_is_withdrawn_before_it_is_said_again(serve: Serve):
    model = ScriptedModel([*say("Half an")[:1], ModelCut()], say("All of it."))
    async with serve(model=model) as nod:
        events = await ran(nod, "go on")
        snapshots = [e for e in events if e["type"] == "MESSAGES_SNAPSHOT"]
        assert [m["role"] for m in snapshots[0]["messages"]] == ["user"]
        after = events[events.index(snapshots[0]) :]
        assert text_of(after) == "All of it."
        assert [m["content"] for m in snapshots[-1]["messages"]] == ["go on", "All of it."]


async def test_a_message_brings_files_as_data(serve: Serve):
    source = {"type": "data", "value": base64.b64encode(b"name,sum").decode(), "mimeType": "image/png"}
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "document", "source": source, "metadata": {"filename": "a.csv"}},
        {"type": "image", "source": source},
    ]
    async with serve() as nod:
        await ran(nod, parts)  # type: ignore[arg-type]
        heard = [entry.text for entry in nod.model.seen[-1] if isinstance(entry, UserText)][-1]
        assert heard.startswith("What is it?\n\n")
        assert "“a.csv”, text" in heard
        assert "“image-2”, text" in heard
        assert heard.count("| name,sum") == 2


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"messages": [], "resume": [{"interruptId": "x", "status": "resolved"}]}, 422),
        ({"messages": [], "resume": [{"interruptId": "abc-1", "status": "resolved"}]}, 404),
        (
            {
                "messages": [],
                "resume": [{"interruptId": "abc-1", "status": "resolved", "payload": {"approved": "yes"}}],
            },
            422,
        ),
        ({"messages": "hello"}, 422),
        ({"messages": [], "runId": "\ud83d"}, 422),
    ],
)
async def test_a_run_that_makes_no_sense_is_refused_before_it_begins(serve: Serve, body: Json, status: int):
    async with serve() as nod:
        content = json.dumps({"threadId": "t", "runId": "r"} | body)
        answer = await nod.client.post("/agui", content=content, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["ok"]) == (status, False), answer.text
        assert (await nod.client.get("/api/conversations")).json()["conversations"] == []


async def test_a_turn_that_fails_is_an_error_of_the_run(serve: Serve):
    async with serve(model=ScriptedModel([RuntimeError("the model is away")])) as nod:
        events = await ran(nod, "go on")
        assert (events[-1]["type"], events[-1]["code"]) == ("RUN_ERROR", "turn_failed")


async def test_a_turn_that_failed_in_its_rows_is_an_error_before_its_last_event_comes(serve: Serve):
    silent = asyncio.Event()
    async with serve(model=ScriptedModel([silent]), pace=Pace(keep_alive_seconds=0.1)) as nod:
        running = asyncio.create_task(ran(nod, "go on"))
        await nod.model.asked.wait()
        (conversation,) = (await nod.client.get("/api/conversations")).json()["conversations"]

        def fail(session: Session) -> None:
            turn = turns.load_turn(session, conversation["id"])
            assert turn is not None
            turns.end_turn(session, turn, "failed", nod.app.clock(), error="It broke elsewhere.")

        await nod.app.database.write(fail)
        channel = nod.app.channels["http"]
        assert isinstance(channel, HttpChannel)
        channel.broadcaster.publish(make_address_key(Actor("http", "ana"), conversation["id"]), None, {})
        events = await running
        assert events[-1]["type"] == "RUN_ERROR"
        assert (events[-1]["code"], events[-1]["message"]) == ("turn_failed", "It broke elsewhere.")


async def test_a_long_history_fits_and_is_not_read_again(serve: Serve):
    async with serve() as nod:
        history = [{"id": f"a{n}", "role": "assistant", "content": "x" * 10_000} for n in range(60)]
        messages = [*history, {"id": "u", "role": "user", "content": "hello"}]
        assert text_of(await ran(nod, messages=messages)) == "Understood."
        assert "xxx" not in str(nod.model.seen)
        assert "I read at most 32,000 in one message" in text_of(await ran(nod, "x" * (1024 * 1024)))


class Page:
    """What a front end has after each run, as the public clients keep it and send it with the next."""

    def __init__(self, nod: Served, thread: str = "t1") -> None:
        self.nod = nod
        self.thread = thread
        self.messages: list[Json] = []
        self.open: list[Json] = []

    async def run(self, said: str | None = None, *resume: Json, run_id: str = "") -> None:
        if said is not None:
            self.messages.append({"id": uuid4().hex, "role": "user", "content": said})
        more = {"runId": run_id} if run_id else {}
        answer = await sent(self.nod, None, *resume, thread=self.thread, messages=self.messages, **more)
        assert answer.status_code == 200, answer.text
        events = events_of(answer)
        # the validator knows nothing of what the page sent: a result of a call of an earlier run is right
        had = {each["id"] for each in self.messages}
        assert_valid_agui([each for each in events if each.get("toolCallId") not in had])
        for event in events:
            self._take(event)
        self.open = interrupts(events)

    def _take(self, event: Json) -> None:
        match event["type"]:
            case "MESSAGES_SNAPSHOT":
                now = {each["id"]: each for each in event["messages"]}
                kept = [now.pop(each["id"]) for each in self.messages if each["id"] in now]
                self.messages = [*kept, *now.values()]
            case "TEXT_MESSAGE_START":
                assert event["messageId"] not in [each["id"] for each in self.messages]
                self.messages.append({"id": event["messageId"], "role": "assistant", "content": ""})
            case "TEXT_MESSAGE_CONTENT":
                (said,) = [each for each in self.messages if each["id"] == event["messageId"]]
                said["content"] += event["delta"]
            case "TOOL_CALL_START":
                call = {"id": event["toolCallId"], "type": "function"}
                call["function"] = {"name": event["toolCallName"], "arguments": ""}
                assert call["id"] not in [each["id"] for each in self.messages]
                self.messages.append({"id": call["id"], "role": "assistant", "toolCalls": [call]})
            case "TOOL_CALL_RESULT":
                ids = {"id": event["messageId"], "toolCallId": event["toolCallId"]}
                assert ids["id"] not in [each["id"] for each in self.messages]
                self.messages.append({**ids, "role": "tool", "content": event["content"]})

    @property
    def read(self) -> list[str]:
        """What people read, in order; a call by its tool's name."""
        return [m.get("content") or m["toolCalls"][0]["function"]["name"] for m in self.messages]


async def test_texts_and_calls_keep_apart_where_a_client_answers_under_the_interrupted_runs_id(serve: Serve):
    model = ScriptedModel(
        ask(("read", {}), text="One."), ask(MILK, text="Two."), ask(("read", {}), text="Three."), say("Four.")
    )
    async with serve(model=model) as nod:
        page = Page(nod)
        await page.run("keep milk", run_id="r1")
        await page.run(None, resolved(page.open[0], approved=True), run_id="r1")
        assert page.read == [
            *("keep milk", "One.", "read", "[]", "Two.", "keep", '{"kept": 1}'),
            *("Three.", "read", '["milk"]', "Four."),
        ]


async def test_what_was_said_outside_a_run_is_there_at_the_next_in_order_and_once(serve: Serve):
    model = ScriptedModel(ask(MILK, text="I keep it."), say("It is kept."), say("You're welcome."))
    async with serve(model=model) as nod:
        page = Page(nod)
        await page.run("keep milk")
        await nod.press(await nod.proposal(page.open[0]["toolCallId"]), "approve")
        await nod.idle()
        said = ["keep milk", "I keep it.", "keep", '{"kept": 1}', "It is kept."]
        fresh = Page(nod)
        await fresh.run()  # as a page does that was just loaded
        assert (fresh.read, fresh.open) == (said, [])
        await page.run("thank you", resolved(page.open[0]))
        assert page.read == [*said, "thank you", "You're welcome."]
        await fresh.run("and again")
        assert fresh.read == [*page.read, "and again", "Understood."]
        assert [each["id"] for each in fresh.messages[:7]] == [each["id"] for each in page.messages]
        await page.run()
        assert page.read == fresh.read
        asked = [entry for entry in nod.model.seen[-1] if "thank you" in str(entry)]
        assert len(asked) == 1


async def test_a_page_that_was_just_loaded_shows_the_history_with_open_cards_and_an_empty_thread_is_empty(
    serve: Serve,
):
    async with serve(
        model=ScriptedModel(ask(("read", {"password": "hunter2"}), text="See."), ask(MILK))
    ) as nod:
        page, fresh, other = Page(nod), Page(nod), Page(nod, "another")
        await page.run("keep milk")
        await fresh.run()
        assert (fresh.read, fresh.open) == (page.read, page.open)
        assert [each["id"] for each in fresh.messages] == [each["id"] for each in page.messages]
        assert "hunter2" not in str(fresh.messages)
        await other.run()
        assert (other.messages, other.open) == ([], [])
        assert len((await nod.client.get("/api/conversations")).json()["conversations"]) == 1


async def test_a_thread_continues_after_a_card_has_expired_whatever_its_page_then_answers(serve: Serve):
    for answer in (
        {"payload": {"approved": False}},
        {"status": "cancelled"},
        {"payload": {"approved": True}},
    ):
        async with serve(model=ScriptedModel(ask(MILK))) as nod:
            page = Page(nod, str(answer))
            await page.run("keep milk")
            (interrupt,) = page.open
            assert "expiresAt" not in interrupt  # clients refuse to answer, and all else, from then on
            nod.clock.now = datetime.fromisoformat(interrupt["metadata"]["nod"]["expires_at"])
            given = {"interruptId": interrupt["id"], "status": "resolved", **answer}
            await page.run(None, given)
            assert nod.notes.kept == []
            if page.open:  # asked again, with what it says now
                assert page.open[0]["id"] != interrupt["id"]
                assert "expired" in page.open[0]["message"]
            else:
                assert "xpired" in str(page.read[-2:])
            await page.run("go on", *(resolved(each) for each in page.open))
            assert page.read[-1] == "Understood."


async def test_a_press_after_that_of_another_person_says_what_really_happened(serve: Serve):
    async with serve(model=ScriptedModel(ask(MILK), say("Done."))) as nod:
        page = Page(nod)
        await page.run("keep milk")
        await nod.press(await nod.proposal(page.open[0]["toolCallId"]), "approve")
        await nod.idle()
        await page.run(None, resolved(page.open[0], approved=False))
        assert nod.notes.kept == ["milk"]
        assert [text for text in page.read if "approved" in text.lower()], page.read
        assert page.read.count("Done.") == 1


async def test_ten_answers_to_one_interrupt_at_the_same_time_run_once(serve: Serve):
    async with serve(model=ScriptedModel(ask(MILK), say("Kept."))) as nod:
        page = Page(nod)
        await page.run("keep milk")
        answer = resolved(page.open[0], approved=True)
        answers = await asyncio.gather(
            *(sent(nod, None, answer, thread="t1", messages=page.messages) for _ in range(10))
        )
        await nod.idle()
        assert nod.notes.kept == ["milk"]
        told = [text_of(events_of(each)) for each in answers]
        assert sum(text.startswith("Already approved by you") for text in told) == 9
        await page.run()
        assert page.read[-1] == "Kept."


async def test_ten_runs_of_one_thread_at_the_same_time_are_each_taken_in_once(serve: Serve):
    async with serve(model=ScriptedModel()) as nod:
        written = [[{"id": f"m{n}", "role": "user", "content": f"hello {n}"}] for n in range(10)]
        runs = await asyncio.gather(*(sent(nod, None, thread="t1", messages=each) for each in written))
        for run in runs:
            assert_valid_agui(events_of(run))
            assert events_of(run)[-1]["outcome"] == {"type": "success"}
        page = Page(nod)
        await page.run()
        assert sorted(each for each in page.read if each != "Understood.") == [
            f"hello {n}" for n in range(10)
        ]


async def test_a_run_that_its_front_end_aborts_is_complete_when_it_comes_back(serve: Serve):
    held = asyncio.Event()
    half = [Text("One. "), held, Text("Two."), Finished(StopReason.FINISHED)]
    async with serve(model=ScriptedModel(ask(MILK), half)) as nod:
        page = Page(nod)
        await page.run("keep milk")
        body = {"threadId": "t1", "runId": "r2", "messages": page.messages}
        body["resume"] = [resolved(page.open[0], approved=True)]
        async with nod.client.stream("POST", "/agui", json=body) as response:
            async for line in response.aiter_lines():
                if "One. " in line:
                    break
        held.set()
        await nod.idle()
        assert nod.notes.kept == ["milk"]
        await page.run()
        assert page.read[-1] == "One. Two."
        assert nod.notes.kept == ["milk"]
