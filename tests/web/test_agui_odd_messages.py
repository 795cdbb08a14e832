"""AG-UI threads in which a message can't be taken in: its run says why, and the thread continues.

Front ends send all messages of a thread again with each run.
"""

import base64
import json
from typing import Any
from uuid import uuid4

import httpx
import pytest
from ag_ui_validate.pytest_plugin import assert_valid_agui

from tests.tiers import thin
from tests.web.conftest import Json, Serve, Served
from tests.web.scripted import ScriptedModel, ask, say
from tests.web.test_agui import MILK, Page, events_of, interrupts, kinds, resolved, text_of

UNREADABLE = "I can't read this message. "


def written(ident: Any, content: Any) -> Json:
    return {"id": ident, "role": "user", "content": content}


def _picture(**source: str) -> list[Json]:
    return [{"type": "image", "source": {"mimeType": "image/png", **source}}]


def _nested(levels: int) -> Any:
    inside: Any = "x"
    for _ in range(levels):
        inside = [inside]
    return inside


ODD: dict[str, tuple[Any, str]] = {
    "a picture by address": (
        written("m1", _picture(type="url", value="https://a.test/a.png")),
        "I take files",
    ),
    "base64 that is none": (written("m1", _picture(type="data", value="%%")), "I take files"),
    "nothing": (written("m1", ""), "I can only read text."),
    "no parts": (written("m1", []), "I can only read text."),
    "too long": (written("m1", "x" * 200_000), "That is 200,000 characters"),
    "too many files": (written("m1", _picture(type="data", value="YQ==") * 50), "That is 50 files"),
    "a role that is unknown": ({**written("m1", "x"), "role": "wizard"}, UNREADABLE),
    "no role": ({"id": "m1", "content": "x"}, UNREADABLE),
    "a role that is a list": ({**written("m1", "x"), "role": ["user"]}, UNREADABLE),
    "no id": ({"role": "user", "content": "x"}, UNREADABLE),
    "an id that is a number": (written(5, "x"), UNREADABLE),
    "an id that is empty": (written("", "x"), UNREADABLE),
    "an id that is too long": (written("i" * 5000, "x"), UNREADABLE),
    "an id with NUL": (written("a\0b", "x"), UNREADABLE),
    "null": (None, UNREADABLE),
    "a text": ("hello", UNREADABLE),
    "content that is null": (written("m1", None), f"{UNREADABLE}content: "),
    "content that is a number": (written("m1", 7), f"{UNREADABLE}content: "),
    "a part that is unknown": (written("m1", [{"type": "hologram"}]), f"{UNREADABLE}content: "),
    "a part without a type": (written("m1", [{"text": "x"}]), f"{UNREADABLE}content: "),
    "half a character": (written("m1", "\ud83d"), f"{UNREADABLE}Text must be valid Unicode"),
    "an id with half a character": (written("\ud83d", "x"), f"{UNREADABLE}Text must be valid Unicode"),
    "deep": ({**written("m1", "x"), "metadata": {"a": _nested(60)}}, f"{UNREADABLE}At most 32 levels"),
    "wide": ({**written("m1", "x"), "metadata": {"a": [1] * 300_000}}, f"{UNREADABLE}At most 200,000 values"),
}


async def posted(nod: Served, messages: list[Any], **more: Any) -> httpx.Response:
    """The answer to a run of JSON that no client library would write."""
    body = {"threadId": "t1", "runId": uuid4().hex, "messages": messages, **more}
    headers = {"Content-Type": "application/json"}
    return await nod.client.post("/agui", content=json.dumps(body), headers=headers)


async def ran_with(nod: Served, messages: list[Any], **more: Any) -> list[Json]:
    answer = await posted(nod, messages, **more)
    assert answer.status_code == 200, answer.text
    events = events_of(answer)
    assert_valid_agui(events)
    return events


async def lines(nod: Served) -> list[Json]:
    """What Nod keeps of the only conversation, if there is one."""
    found = (await nod.client.get("/api/conversations")).json()["conversations"]
    if not found:
        return []
    kept: list[Json] = (await nod.client.get(f"/api/conversations/{found[0]['id']}/messages")).json()[
        "messages"
    ]
    return kept


@pytest.mark.parametrize("name", ODD)
async def test_an_odd_message_is_answered_in_words_and_the_thread_continues_with_it(serve: Serve, name: str):
    odd, words = ODD[name]
    async with serve(model=ScriptedModel(say("Good morning."), ask(MILK), say("Kept."))) as nod:
        events = await ran_with(nod, [odd])
        assert text_of(events).startswith(words)
        assert events[-1]["outcome"] == {"type": "success"}
        assert await lines(nod) == []
        (start,) = [each for each in events if each["type"] == "TEXT_MESSAGE_START"]
        assert start["messageId"].endswith(":refused")
        refusal = {"id": start["messageId"], "role": "assistant", "content": text_of(events)}

        history = [odd, refusal, written("m2", "hello")]
        assert text_of(await ran_with(nod, history)) == "Good morning."
        assert [each["text"] for each in await lines(nod)] == ["hello", "Good morning."]
        history += [{"id": "a", "role": "assistant", "content": "Good morning."}, written("m3", "keep milk")]
        (interrupt,) = interrupts(await ran_with(nod, history))
        answered = await ran_with(nod, history, resume=[resolved(interrupt, approved=True)])
        assert (text_of(answered), nod.notes.kept) == ("Kept.", ["milk"])


@pytest.mark.parametrize("name", thin(ODD))
async def test_an_odd_message_is_passed_over_where_a_front_end_kept_no_answer_to_it(serve: Serve, name: str):
    odd, words = ODD[name]
    async with serve(model=ScriptedModel(say("Good morning."), ask(MILK), say("Kept."))) as nod:
        assert text_of(await ran_with(nod, [odd])).startswith(words)
        assert text_of(await ran_with(nod, [odd, written("m2", "hello")])) == "Good morning."
        (interrupt,) = interrupts(await ran_with(nod, [odd, written("m3", "keep milk")]))
        answered = await ran_with(nod, [odd], resume=[resolved(interrupt, approved=True)])
        assert (text_of(answered), nod.notes.kept) == ("Kept.", ["milk"])


@pytest.mark.parametrize(
    "odd",
    [
        {"id": "a1", "role": "assistant", "toolCalls": [{"id": "x"}]},
        {"id": "a1", "role": "assistant", "toolCalls": [{"id": "x", "function": {"name": "keep"}}]},
        {"id": "a1", "role": "assistant", "content": {"text": "x"}},
        {"id": 1, "role": "assistant", "content": "x"},
        {"id": "a1", "role": "assistant", "content": "\ud83d"},
        {"id": "t1", "role": "tool", "content": None},
        {"id": "s1", "role": "activity", "content": "x"},
        {"id": "d1", "role": "system", "content": None},
        {"id": "r1", "role": "reasoning", "content": _nested(60)},
    ],
)
async def test_what_others_said_oddly_costs_nothing_wherever_it_stands(serve: Serve, odd: Json):
    async with serve(model=ScriptedModel(say("Good morning."))) as nod:
        assert text_of(await ran_with(nod, [odd])) == ""
        events = await ran_with(nod, [odd, written("m1", "hello")])
        assert (text_of(events), events[-1]["outcome"]) == ("Good morning.", {"type": "success"})


async def test_a_message_before_one_of_the_system_or_a_thought_is_read(serve: Serve):
    async with serve(model=ScriptedModel(say("Good morning."))) as nod:
        aside = [
            {"id": "s", "role": "system", "content": "Be kind."},
            {"id": "d", "role": "developer", "content": "Be brief."},
            {"id": "r", "role": "reasoning", "content": "Hm."},
            {"id": "a", "role": "activity", "activityType": "plan", "content": {"steps": []}},
        ]
        assert text_of(await ran_with(nod, [*aside, written("m1", "hello"), *aside])) == "Good morning."


@pytest.mark.parametrize(
    "more",
    [
        {"tools": [{"name": f"t{n}", "description": "x", "parameters": {}} for n in range(500)]},
        {"tools": [{"odd": 1}], "context": [None], "forwardedProps": _nested(200)},
        {"context": [{"description": "x", "value": "y"}] * 500},
        {"state": {"deep": _nested(200), "half": "\ud83d", "wide": [1] * 100_000}},
    ],
)
async def test_what_is_not_read_of_a_run_may_be_anything(serve: Serve, more: Json):
    async with serve(model=ScriptedModel(say("Good morning."))) as nod:
        assert text_of(await ran_with(nod, [written("m1", "hello")], **more)) == "Good morning."


async def test_a_thread_of_thousands_of_messages_and_megabytes_continues(serve: Serve):
    async with serve(model=ScriptedModel(say("Good morning."), say("Still here."))) as nod:
        many = [{"id": f"a{n}", "role": "assistant", "content": "x" * 600} for n in range(9_000)]
        assert text_of(await ran_with(nod, [*many, written("m1", "hello")])) == "Good morning."
        many = [written(f"a{n}", "x") for n in range(60_000)]
        assert text_of(await ran_with(nod, [*many, written("m1", "hello")])) == ""
        spoken = {"id": "a", "role": "assistant", "content": "x"}
        assert text_of(await ran_with(nod, [*many, spoken, written("m2", "hello?")])) == "Still here."


SMALL = {"NOD_MAX_FILE_MB": 0}
"""Then a run may have 4 MiB."""


async def test_a_thread_that_grew_too_large_is_told_and_shown_as_it_is_kept_and_continues(serve: Serve):
    async with serve(model=ScriptedModel(say("Good morning."), say("Go ahead.")), **SMALL) as nod:
        page = Page(nod)
        await page.run("hello")
        page.messages += [{"id": f"x{n}", "role": "assistant", "content": "x" * 1_000_000} for n in range(5)]
        await page.run("what now?")
        assert page.read[:2] == ["hello", "Good morning."]
        assert page.read[2].startswith(
            "I did not read your last message: this thread was larger than 4.2 MB."
        )
        assert len(page.read) == 3
        await page.run("what now?")
        assert page.read[3:] == ["what now?", "Go ahead."]


@pytest.mark.parametrize(
    "ids",
    [
        "",
        '"threadId": "t", ',
        '"threadId": "t", "thread_id": "t", ',
        '"runId": "r", "run_id": "r", ',
        '"runId": "r", "parentRunId": "r0", ',
    ],
)
async def test_what_no_parser_takes_is_refused_without_the_ids_of_thread_and_run(serve: Serve, ids: str):
    async with serve() as nod:
        headers = {"Content-Type": "application/json"}
        refused = await nod.client.post(
            "/agui", content=f'{{{ids}"messages": {"9" * 5000}}}', headers=headers
        )
        assert (refused.status_code, refused.json()["ok"]) == (413, False)
        assert refused.json()["error"].startswith("I did not read your last message")


@pytest.mark.parametrize(
    "content", ["[" * 200_000 + "]" * 200_000, "[" + "0," * 2_100_000 + "0]", "9" * 5000]
)
async def test_what_no_parser_takes_is_told_in_the_run_and_the_front_end_has_less_then(
    serve: Serve, content: str
):
    async with serve() as nod:
        headers = {"Content-Type": "application/json"}
        odd = f'[{{"id": "m1", "role": "user", "content": {content}}}]'
        body = f'{{"threadId": "t", "runId": "r", "messages": {odd}}}'
        events = events_of(await nod.client.post("/agui", content=body, headers=headers))
        assert kinds(events)[:4] == [
            *("RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "MESSAGES_SNAPSHOT"),
        ]
        assert text_of(events).startswith("I did not read your last message")


async def test_a_front_end_with_half_of_what_a_run_may_have_is_given_less(serve: Serve):
    async with serve(model=ScriptedModel(say("Good morning."), say("Go ahead.")), **SMALL) as nod:
        page = Page(nod)
        old = [{"id": f"x{n}", "role": "assistant", "content": "x" * 1_000_000} for n in range(3)]
        page.messages = list(old)
        await page.run("hello")
        assert page.read == ["hello", "Good morning."]
        small = Page(nod)
        small.messages = [*old[:1], *page.messages]
        await small.run("what now?")
        assert small.read == [old[0]["content"], "hello", "Good morning.", "what now?", "Go ahead."]


async def test_files_of_a_message_stay_where_the_history_is_sent_again(serve: Serve):
    async with serve(model=ScriptedModel(say("A table."), say("Yes."))) as nod:
        data = base64.b64encode(b"name,sum").decode()
        picture = [{"type": "text", "text": "What is it?"}, *_picture(type="data", value=data)]
        page = Page(nod)
        page.messages.append(written("m1", picture))
        await page.run()
        page.messages = page.messages[:1]  # its answer was lost
        await page.run()
        assert page.read == [picture, "A table."]
        page.messages[0]["content"] = "What is it?"
        await page.run("sure?")
        assert page.read == ["What is it?", "A table.", "sure?", "Yes."]


@pytest.mark.parametrize(
    ("source", "words"),
    [({"data": "bmFtZSxzdW0="}, "A table."), ({"url": "https://a.test/a.csv"}, "I take files as data")],
)
async def test_a_file_in_the_form_of_before_version_one_of_the_protocol_is_read(
    serve: Serve, source: Json, words: str
):
    part = {"type": "binary", "mimeType": "text/csv", "filename": "sums.csv", **source}
    async with serve(model=ScriptedModel(say("A table."))) as nod:
        events = await ran_with(nod, [written("m1", [{"type": "text", "text": "What is it?"}, part])])
        assert text_of(events).startswith(words)
        if "data" in source:
            (found,) = (await nod.client.get("/api/files")).json()["files"]
            assert found["name"] == "sums.csv"


async def test_a_large_file_of_a_message_fits_in_a_run(serve: Serve):
    async with serve(model=ScriptedModel(say("A table."), say("Yes."))) as nod:
        data = base64.b64encode(b"name,sum\n" * 500_000).decode()
        messages = [written("m1", _picture(type="data", value=data))]
        assert text_of(await ran_with(nod, messages)) == "A table."
        assert text_of(await ran_with(nod, [*messages, written("m2", "sure?")])) == "Yes."
