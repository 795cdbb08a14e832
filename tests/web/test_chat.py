"""``POST /api/chat``: what is streamed, in which order, and when."""

import asyncio
import json
import logging
import socket
import struct

import pytest

from bot.agent.demo.model import DemoModel
from bot.domain.model import Finished, StopReason, Text, Thought, ToolCall
from bot.errors import ModelCut, ModelError
from bot.web.streams import Pace
from tests.web.conftest import ANA, BEN, TOKENS, Serve
from tests.web.scripted import ScriptedModel, ask, say


def kinds(events: list[dict]) -> list[str]:
    return [event["type"] for event in events]


def states(events: list[dict]) -> set[str]:
    return {event["proposal"]["state"] for event in events if "proposal" in event}


async def test_an_answer_is_accepted_then_streamed_then_done(serve: Serve):
    async with serve(model=ScriptedModel(say("Hello ", "there"))) as nod:
        accepted, first, second, done = await nod.chat("Hi")
        assert accepted["type"] == "accepted"
        assert accepted["message_id"] == 1
        assert first == {"type": "delta", "content": "Hello ", "text": "Hello "}
        assert second == {"type": "delta", "content": "there", "text": "there"}
        ident = accepted["conversation_id"]
        assert done == {"type": "done", "ending": "done", "conversation_id": ident, "message_id": 2}


async def test_the_first_words_arrive_before_the_next_are_thought_of(serve: Serve):
    go_on = asyncio.Event()
    async with (
        serve(
            model=ScriptedModel([Text("Let me "), go_on, Text("see."), Finished(StopReason.FINISHED)])
        ) as nod,
        nod.chatting("Hi") as stream,
    ):
        assert (await stream.until("delta"))["text"] == "Let me "
        go_on.set()
        assert (await stream.until("delta"))["text"] == "see."
        assert kinds(await stream.rest()) == ["done"]


async def test_thousands_of_words_at_the_same_time_are_all_heard(serve: Serve):
    async with serve(model=ScriptedModel(say(*["a"] * 3000))) as nod:
        events = await nod.chat("go")
        assert "".join(event.get("content", "") for event in events) == "a" * 3000
        assert events[-1]["type"] == "done"


async def test_a_read_is_told_when_it_starts_and_when_it_ends(serve: Serve):
    async with serve(model=ScriptedModel(ask(("read", {"password": "hunter2"})), say("Nothing yet."))) as nod:
        events = await nod.chat("What notes are there?")
        assert kinds(events) == ["accepted", "tool_call_start", "tool_call_result", "delta", "done"]
        _, start, result, *_ = events
        assert start["tool_name"] == result["tool_name"] == "read"
        assert start["call_id"] == result["call_id"]
        assert start["summary"] == "Read the notes"
        assert start["arguments"]["password"] != "hunter2"
        assert result["ok"] is True
        assert result["result"] == "[]"


async def test_what_a_read_repeats_of_a_hidden_argument_is_hidden_in_the_history_too(serve: Serve):
    model = ScriptedModel(ask(("read", {"password": "hunter2xyz"})), say("Read."))
    async with serve(model=model) as nod:
        nod.notes.kept.append("opened with hunter2xyz")
        events = await nod.chat("Read them")
        path = f"/api/conversations/{events[0]['conversation_id']}"
        for each in ("messages", "export"):
            told = (await nod.client.get(f"{path}/{each}")).text
            assert "opened with" in told
            assert "hunter2" not in told


async def test_what_a_read_brings_up_is_shown_without_its_secrets(serve: Serve):
    async with serve(model=ScriptedModel(ask(("read", {})), say("Read."))) as nod:
        nod.notes.kept.append("the key is sk-abcdefghijklmnopqrstuvwx")
        events = await nod.chat("Read them")
        told = await nod.client.get(f"/api/conversations/{events[0]['conversation_id']}/messages")
        assert "tool_call_result" in kinds(events)
        assert "sk-abcdef" not in str(events) + told.text


async def test_a_write_becomes_a_proposal_in_the_stream_and_the_turn_waits(serve: Serve):
    async with serve(model=ScriptedModel(ask(("keep", {"text": "milk"}), text="I will note it."))) as nod:
        events = await nod.chat("Note: milk")
        assert kinds(events) == ["accepted", "delta", "proposal_opened", "done"]
        assert events[2]["proposal"]["state"] == "proposed"
        assert events[2]["proposal"]["tool_arguments"]["text"] == "milk"
        assert events[3]["ending"] == "waiting"
        assert nod.notes.kept == []


@pytest.mark.parametrize("name", ["keep", "read", "unknown"])
async def test_half_a_character_in_arguments_does_not_break_the_stream(serve: Serve, name: str):
    broken = ToolCall("c1", name, '{"text": "a\\ud800b\\u0000"}')
    async with serve(model=ScriptedModel([Finished(StopReason.FINISHED, (broken,))], say("I see."))) as nod:
        events = await nod.chat("go")
        assert kinds(events) == ["accepted", "tool_call_start", "tool_call_result", "delta", "done"]
        assert events[1]["arguments"] == {"text": "a?b"}


async def test_a_model_that_fails_is_an_error_in_words_and_the_conversation_continues(serve: Serve):
    model = ScriptedModel([ModelError("The model's server is away.")], say("Back again."))
    async with serve(model=model) as nod:
        accepted, error = await nod.chat("Hi")
        assert error == {
            "type": "error",
            "error": "The model's server is away.",
            "conversation_id": accepted["conversation_id"],
        }
        events = await nod.chat("And now?", conversation_id=accepted["conversation_id"])
        assert kinds(events) == ["accepted", "delta", "done"]


async def test_an_answer_that_was_cut_off_says_that_it_begins_again(serve: Serve):
    async with serve(model=ScriptedModel([Text("Hel"), ModelCut()], say("Hello"))) as nod:
        events = await nod.chat("Hi")
        assert kinds(events) == ["accepted", "delta", "restart", "delta", "done"]


async def test_thoughts_are_streamed_by_the_sentence_without_secrets_and_never_kept(serve: Serve):
    thought = ("The key is sk-abcdefgh", "ijklmnopqrstuvwx. Then ", "I say", " hello.")
    model = ScriptedModel([*map(Thought, thought), *say("Hello")], say("Again"))
    async with serve(model=model) as nod:
        events = await nod.chat("Hi")
        assert kinds(events) == ["accepted", "thought", "thought", "delta", "done"]
        told = [event["text"] for event in events if event["type"] == "thought"]
        assert told[0].startswith("The key is ")
        assert told[1] == "Then I say hello."
        assert "sk-abc" not in "".join(told)
        ident = events[0]["conversation_id"]
        kept = (await nod.client.get(f"/api/conversations/{ident}/messages")).text
        await nod.chat("And now?", conversation_id=ident)
        assert "I say hello" not in kept + str(model.seen[-1])


async def test_the_offline_model_streams_word_by_word(serve: Serve):
    async with serve(model=DemoModel(pace=0)) as nod:
        events = await nod.chat("hello")
        assert kinds(events).count("delta") > 5
        assert events[-1]["ending"] == "done"


async def test_the_same_idempotency_key_is_taken_in_once_and_names_its_conversation(serve: Serve):
    async with serve() as nod:
        sent = {"json": {"message": "Once"}, "headers": {"Idempotency-Key": "k1"}}
        async with nod.stream("POST", "/api/chat", **sent) as stream:
            accepted = (await stream.rest())[0]
        again = await nod.client.post("/api/chat", **sent)
        assert again.status_code == 409
        assert again.json()["conversation_id"] == accepted["conversation_id"]
        listed = (await nod.client.get("/api/conversations")).json()["conversations"]
        assert [c["id"] for c in listed] == [accepted["conversation_id"]]
        assert len(nod.model.seen) == 1


async def test_two_owners_may_use_the_same_idempotency_key(serve: Serve):
    async with serve(NOD_HTTP_TOKENS=TOKENS, token=ANA) as nod, nod.caller(BEN) as ben:
        for client in (nod.client, ben):
            sent = {"json": {"message": "Once"}, "headers": {"Idempotency-Key": "k1"}}
            async with nod.stream("POST", "/api/chat", client, **sent) as stream:
                assert kinds(await stream.rest())[-1] == "done"


async def test_a_client_that_leaves_in_the_middle_does_not_hurt_the_turn(serve: Serve):
    go_on = asyncio.Event()
    async with serve(
        model=ScriptedModel([Text("One "), go_on, Text("two"), Finished(StopReason.FINISHED)])
    ) as nod:
        async with nod.chatting("Count") as stream:
            conversation_id = (await stream.next())["conversation_id"]
            await stream.until("delta")
        go_on.set()
        await nod.idle()
        told = await nod.client.get(f"/api/conversations/{conversation_id}/messages")
        assert [m["text"] for m in told.json()["messages"]] == ["Count", "One two"]


async def test_a_stream_that_ended_leaves_no_listener_behind(serve: Serve):
    async with serve() as nod:
        await nod.chat("Hi")
        await nod.client.post("/api/chat", json={"message": "  "})
        for _ in range(2):
            await nod.client.post("/api/chat", json={"message": "x"}, headers={"Idempotency-Key": "same"})
        assert not nod.app.channels["http"].broadcaster._listeners  # type: ignore[attr-defined]


async def test_a_message_to_another_owners_conversation_is_404(serve: Serve):
    async with serve(NOD_HTTP_TOKENS=TOKENS, token=ANA) as nod, nod.caller(BEN) as ben:
        conversation_id = (await nod.chat("Mine"))[0]["conversation_id"]
        body = {"message": "Yours?", "conversation_id": conversation_id}
        refused = await ben.post("/api/chat", json=body)
        unknown = await ben.post("/api/chat", json=body | {"conversation_id": "no-such"})
        assert refused.status_code == unknown.status_code == 404
        assert refused.json() == unknown.json()
        for path in ("messages", "proposals", "events"):
            answer = await ben.get(f"/api/conversations/{conversation_id}/{path}")
            assert answer.status_code == 404
        stop = await ben.post(f"/api/conversations/{conversation_id}/stop")
        assert stop.status_code == 404
        assert (await ben.get("/api/conversations")).json()["conversations"] == []


@pytest.mark.parametrize(
    ("message", "status"),
    [("", 422), ("   \n ", 422), ("x" * 32_001, 413), (" " * 40_000, 422), ("x" * 300_000, 413)],
)
async def test_a_message_that_is_empty_or_too_long_is_refused_in_words(serve: Serve, message, status):
    async with serve() as nod:
        answer = await nod.client.post("/api/chat", json={"message": message})
        assert answer.status_code == status
        assert answer.json()["ok"] is False
        assert answer.json()["error"]
        assert nod.model.seen == []


async def test_a_message_that_joins_a_running_turn_is_answered_and_both_streams_end(serve: Serve):
    go_on = asyncio.Event()
    model = ScriptedModel([Text("First. "), go_on, Finished(StopReason.FINISHED)], say("Second."))
    async with serve(model=model) as nod, nod.chatting("One") as one:
        conversation_id = (await one.next())["conversation_id"]
        await one.until("delta")
        async with nod.chatting("Two", conversation_id=conversation_id) as two:
            await two.until("accepted")
            go_on.set()
            assert (await two.rest())[-1]["type"] == "done"
        assert (await one.rest())[-1]["type"] == "done"
        told = await nod.client.get(f"/api/conversations/{conversation_id}/messages")
        assert [m["text"] for m in told.json()["messages"]] == ["One", "First. ", "Two", "Second."]


async def test_a_message_that_joins_a_failing_turn_is_answered_by_the_next(serve: Serve):
    go_on = asyncio.Event()
    model = ScriptedModel([Text("Hm. "), go_on, ModelError("Away.")], say("Second."))
    async with serve(model=model) as nod, nod.chatting("One") as one:
        conversation_id = (await one.next())["conversation_id"]
        await one.until("delta")
        async with nod.chatting("Two", conversation_id=conversation_id) as two:
            await two.until("accepted")
            go_on.set()
            assert kinds(await two.rest()) == ["error", "delta", "done"]


async def test_stop_ends_the_stream_and_keeps_what_was_asked(serve: Serve):
    async with (
        serve(model=ScriptedModel([Text("On and "), asyncio.Event()])) as nod,
        nod.chatting("Go") as stream,
    ):
        conversation_id = (await stream.next())["conversation_id"]
        await stream.until("delta")
        stopped = await nod.client.post(f"/api/conversations/{conversation_id}/stop")
        assert stopped.json() == {"ok": True, "text": "Stopped."}
        assert (await stream.rest())[-1]["ending"] == "stopped"
        assert (await nod.chat("Again", conversation_id=conversation_id))[-1]["type"] == "done"


async def test_a_message_that_joined_a_stopped_turn_has_its_stream_ended(serve: Serve):
    model = ScriptedModel([Text("On and "), asyncio.Event()])
    async with serve(model=model) as nod, nod.chatting("Go") as one:
        conversation_id = (await one.next())["conversation_id"]
        await one.until("delta")
        async with nod.chatting("And this", conversation_id=conversation_id) as two:
            await two.until("accepted")
            await nod.client.post(f"/api/conversations/{conversation_id}/stop")
            assert (await two.rest())[-1]["ending"] == "stopped"


async def test_a_silent_stream_is_kept_open_by_comments(serve: Serve):
    go_on = asyncio.Event()
    model = ScriptedModel([go_on, Text("Sorry for the wait."), Finished(StopReason.FINISHED)])
    async with serve(model=model, pace=Pace(keep_alive_seconds=0.1)) as nod, nod.chatting("Hi") as stream:
        await stream.until("accepted")
        assert await stream.raw() == [": still there"]
        go_on.set()
        assert kinds(await stream.rest()) == ["delta", "done"]


async def test_a_stream_whose_turn_ended_unheard_ends_too(serve: Serve):
    model = ScriptedModel([asyncio.Event()])
    async with serve(model=model, pace=Pace(keep_alive_seconds=0.05)) as nod, nod.chatting("Hi") as stream:
        accepted = await stream.next()
        await model.asked.wait()
        ended = "UPDATE turn SET state = 'done'"
        await nod.app.database.write(lambda session: session.connection().exec_driver_sql(ended) and None)
        assert await stream.rest() == [
            {
                "type": "done",
                "conversation_id": accepted["conversation_id"],
                "message_id": None,
                "ending": "done",
            }
        ]


async def test_anyone_who_listens_to_a_conversation_is_told_its_turns_and_its_proposals(serve: Serve):
    async with serve(model=ScriptedModel(say("Hello"), ask(("keep", {"text": "milk"})))) as nod:
        conversation_id = (await nod.chat("Hi"))[0]["conversation_id"]
        async with nod.stream("GET", f"/api/conversations/{conversation_id}/events") as stream:
            assert await stream.raw() == [": listening"]
            (proposal,) = [
                e["proposal"]
                for e in await nod.chat("Note milk", conversation_id=conversation_id)
                if e["type"] == "proposal_opened"
            ]
            assert (await stream.until("proposal_opened"))["proposal"]["id"] == proposal["id"]
            assert (await stream.until("done"))["ending"] == "waiting"
            await nod.press(proposal, "approve")
            told = []
            while not (states(told) >= {"succeeded"} and "done" in kinds(told)):
                told.append(await stream.next())
            assert {"type": "delta", "content": "Understood.", "text": "Understood."} in told


async def test_open_streams_end_immediately_when_the_server_stops(serve: Serve):
    model = ScriptedModel([Text("On and "), asyncio.Event()])
    async with serve(model=model) as nod:
        stack = [nod.chatting("Go"), nod.stream("GET", "/api/events")]
        one, feed = [await each.__aenter__() for each in stack]
        conversation_id = (await one.next())["conversation_id"]
        hearing = nod.stream("GET", f"/api/conversations/{conversation_id}/events")
        heard = await hearing.__aenter__()
        await heard.raw()
        await feed.raw()
        await one.until("delta")
        started = asyncio.get_running_loop().time()
        await nod.app.web.stop()
        assert asyncio.get_running_loop().time() - started < 1.5
        assert [await one.rest(), await feed.rest()] == [[], []]
        assert [event["type"] for event in await heard.rest()] in ([], ["delta"])  # it may have come first
        for each in (*stack, hearing):
            await each.__aexit__(None, None, None)


async def test_a_stream_whose_reader_left_is_not_written_to(serve: Serve, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "asyncio")
    go_on = asyncio.Event()
    many = [Text(f"word {number} ") for number in range(300)]
    async with serve(model=ScriptedModel([Text("So: "), go_on, *many, Finished(StopReason.FINISHED)])) as nod:
        reader, writer = await asyncio.open_connection("127.0.0.1", nod.app.web.port)
        body = json.dumps({"message": "Hi"}).encode()
        head = f"POST /api/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
        writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        await reader.readuntil(b"So: ")
        at_once = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        writer.transport.abort()
        go_on.set()
        await nod.idle()
    assert [each.getMessage() for each in caplog.records if "socket.send()" in each.getMessage()] == []
