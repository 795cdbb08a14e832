"""A conversation over HTTP with model servers that answer in ways of their own."""

import json
from itertools import pairwise
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.fakes.openai_server import (
    OpenAIServer,
    Reply,
    ask,
    blame,
    chunk,
    fail,
    say,
    stream,
    unstreamed,
    words,
)
from tests.web.conftest import Meet, Served, of_role, told

pytestmark = pytest.mark.platform

Json = dict[str, Any]
HALF = '{"choices": [{"index": 0, "delta": {"content": "Half of it"}, "finish_reason": null}]}'


def shown(events: list[Json]) -> str:
    """Return what stands there at the end: what was begun over is gone."""
    text = ""
    for event in events:
        text = "" if event["type"] == "restart" else text + (event.get("text") or event.get("error") or "")
    return text


async def proposals(nod: Served) -> list[Json]:
    found: list[Json] = (await nod.client.get("/api/proposals")).json()["proposals"]
    return found


LONG = [
    blame(400, {"message": "Input is too long for requested model."}),
    blame(400, {"error": "This model's maximum prompt length is 8000 but the request contains 9000 tokens"}),
    blame(400, {"error": {"message": "Your request exceeded model token limit: 8000 (requested: 9000)"}}),
    blame(400, {"code": "InvalidParameter", "message": "Range of input length should be [1, 8000]"}),
    blame(413, None),
    words(
        "<html><head><title>413 Request Entity Too Large</title></head></html>", status=413, kind="text/html"
    ),
    blame(400, {"error": {"message": "Provider returned error", "metadata": {"raw": "prompt too long"}}}),
    blame(500, {"error": {"message": "the request exceeds the available context size"}}),
    blame(400, {"detail": "something that no one has heard of"}),
    blame(422, {"detail": [{"loc": ["body"], "msg": "Value error"}]}),
    words("", status=400),
    stream({"choices": [], "error": {"code": 400, "message": "prompt is too long: 9000 tokens"}}),
    stream({"choices": [], "error": {"code": 400, "message": "no one knows"}}),
    stream(chunk(finish="model_context_window_exceeded")),
]


@pytest.mark.parametrize("refusal", LONG, ids=range(len(LONG)))
async def test_a_long_conversation_continues_whatever_a_server_calls_too_long(
    meet: Meet, refusal: Reply
) -> None:
    def script(body: Json) -> Reply:
        return refusal if len(json.dumps(body["messages"])) > 40_000 else say("Here I am.")

    async with meet(OpenAIServer(script=script)) as (nod, server):
        accepted, *_ = await nod.chat("x" * 20_000)
        at = accepted["conversation_id"]
        for number in range(3):
            assert "Here I am." in told(await nod.chat("y" * 20_000, conversation_id=at)), number
        before = len(server.requests)
        await nod.chat("and now?", conversation_id=at)
        assert len(server.requests) == before + 1  # it is learned


async def test_a_refusal_without_a_known_reason_costs_one_more_request_and_no_more(meet: Meet) -> None:
    async with meet(OpenAIServer(script=lambda _: blame(400, {"error": "the moon is full"}))) as (
        nod,
        server,
    ):
        accepted, *_ = await nod.chat("hello")
        assert len(server.requests) == 1
        for count in (2, 2):
            before = len(server.requests)
            said = told(await nod.chat("y" * 20_000, conversation_id=accepted["conversation_id"]))
            assert "HTTP 400): the moon is full" in said
            assert len(server.requests) - before <= count


ENDS = ["error", "insufficient_system_resource", "network_error", "abort", "MALFORMED_FUNCTION_CALL", "new"]


@pytest.mark.parametrize("end", ENDS)
async def test_half_an_answer_is_asked_for_again_and_its_calls_are_not_used(meet: Meet, end: str) -> None:
    half = ask(("keep", {"text": "half", "approval_reason": "asked"}), text="Half", finish=end)
    async with meet() as (nod, server):
        server.reply(half, say("All of it."))
        assert shown(await nod.chat("go")) == "All of it."
        assert await proposals(nod) == []
        server.reply(half, half, half)
        assert f"with the reason “{end.lower()}”" in shown(await nod.chat("go"))
        assert await proposals(nod) == []


async def test_an_error_inside_the_choice_is_a_cut_with_its_reason(meet: Meet) -> None:
    error = {"code": 502, "message": "Provider disconnected"}
    broken = stream(
        chunk({"content": "Half"}),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "error", "error": error}]},
    )
    async with meet() as (nod, server):
        server.reply(broken, say("All of it."))
        assert shown(await nod.chat("go")) == "All of it."
        server.reply(broken, broken, broken)
        assert "It says: “Provider disconnected”" in shown(await nod.chat("go"))


@pytest.mark.parametrize("end", ["length", "max_tokens", "MAX_TOKENS", "model_length"])
async def test_an_answer_that_ran_into_its_length_is_continued(meet: Meet, end: str) -> None:
    async with meet() as (nod, server):
        server.reply(say("Half", finish=end), say("and the rest."))
        assert shown(await nod.chat("go")).endswith("and the rest.")


NO_CREDIT = "You have no credit left"
UNLABELLED = {
    "plain text": words(NO_CREDIT),
    "JSON as text": words(json.dumps({"error": {"message": NO_CREDIT}})),
    "JSON in lines": words(json.dumps({"error": {"message": NO_CREDIT}}, indent=2), kind="text/event-stream"),
    "ndjson": words(f"{HALF}\n{json.dumps({'error': NO_CREDIT})}\n", kind="application/x-ndjson"),
    "no label": words(json.dumps({"detail": NO_CREDIT}), kind=""),
    "a bare line": stream(json.dumps({"error": {"message": NO_CREDIT}}).encode() + b"\n"),
    "bare words": stream(NO_CREDIT.encode() + b"\n"),
    "an event of errors": stream(b"event: error\ndata: " + NO_CREDIT.encode() + b"\n\n"),
    "an event of errors in JSON": stream(f'event: error\ndata: {{"message": "{NO_CREDIT}"}}\n\n'.encode()),
    "words as data": stream(b"data: " + NO_CREDIT.encode() + b"\n\n"),
    "its own code": words(json.dumps({"code": 402, "msg": NO_CREDIT, "data": None})),
    "MiniMax": words(
        json.dumps({"choices": None, "base_resp": {"status_code": 1008, "status_msg": NO_CREDIT}})
    ),
    "a list": words(json.dumps([{"error": {"code": 402, "message": NO_CREDIT}}])),
}


@pytest.mark.parametrize("name", UNLABELLED)
async def test_an_error_with_status_200_is_told_immediately_and_not_tried_for_a_day(
    meet: Meet, name: str
) -> None:
    async with meet() as (nod, server):
        server.reply(UNLABELLED[name])
        with capture_logs() as logs:
            said = shown(await nod.chat("go"))
        assert NO_CREDIT in said
        assert "by myself" not in said
        assert len(server.requests) == 1
        assert NO_CREDIT in str(logs)


REASONS = {
    "LM Studio": (blame(400, {"error": "Model is unloaded."}), "HTTP 400): Model is unloaded."),
    "FastAPI": (blame(422, {"detail": [{"loc": ["body", "x"], "msg": "No."}]}), "HTTP 422): body.x: No."),
    "plain": (words("blocked by the proxy", status=400), "HTTP 400): blocked by the proxy"),
    "OpenRouter": (
        blame(400, {"error": {"message": "Provider returned error", "metadata": {"raw": "no such grammar"}}}),
        "Provider returned error: no such grammar",
    ),
    "tools": (blame(404, {"error": {"message": "No endpoints found that support tool use"}}), "tool use”"),
    "region": (
        blame(403, {"error": {"message": "Country, region, or territory not supported"}}),
        "HTTP 403): Country, region, or territory not supported",
    ),
    "data policy": (
        blame(404, {"error": {"message": "No endpoints found matching your data policy"}}),
        "HTTP 404): No endpoints found matching your data policy",
    ),
    "address": (blame(404, {"detail": "Not Found"}), "nothing at this address. Check OPENAI_BASE_URL"),
    "model": (
        blame(404, {"error": "model 'x' not found, try pulling it first"}),
        "does not know the model gpt-test. Please check NOD_MODELS.",
    ),
    "busy": (
        blame(429, {"error": {"message": "Provider returned error", "metadata": {"raw": "shared pool"}}}),
        "is busy. It says: “Provider returned error: shared pool”",
    ),
    "trouble": (words("no healthy upstream", status=503), "(HTTP 503). It says: “no healthy upstream”"),
    "quota": (blame(402, {"error": {"message": "Insufficient credits. Add more"}}), "Insufficient credits."),
}


@pytest.mark.parametrize("name", REASONS)
async def test_the_servers_own_reason_is_told_and_a_remedy_only_where_it_fits(meet: Meet, name: str) -> None:
    reply, expected = REASONS[name]
    async with meet() as (nod, server):
        server.reply(*[reply] * 3)
        said = shown(await nod.chat("go"))
        assert expected in said
        assert ("does not know the model" in said) is (name == "model")
        assert "may not use the model" not in said


async def test_a_model_without_tools_is_told_with_the_setting_that_helps(meet: Meet) -> None:
    async with meet(named={"setting_to_correct": "NOD_MODEL"}) as (nod, server):
        server.reply(blame(400, {"error": "gemma3:latest does not support tools"}))
        assert "NOD_MODEL_TOOLS=text" in shown(await nod.chat("go"))


@pytest.mark.parametrize("status", [400, 500])
async def test_a_model_without_a_system_role_is_told_its_rules_in_the_first_message(
    meet: Meet, status: int
) -> None:
    def script(body: Json) -> Reply:
        roles = [message["role"] for message in body["messages"]]
        refuses = "system" in roles or any(a == b == "user" for a, b in pairwise(roles))
        return fail(status, "System role not supported") if refuses else say("Hello.")

    async with meet(OpenAIServer(script=script)) as (nod, server):
        accepted, *rest = await nod.chat("hello")
        assert shown(rest) == "Hello."
        first = of_role(server.requests[-1], "user")[0]
        assert first.endswith("hello")
        assert len(first) > 1000
        await nod.chat("and?", conversation_id=accepted["conversation_id"])
        assert len(server.requests) == 3  # it is learned


KEEP = {"text": "x", "approval_reason": "asked"}
RAW = json.dumps(KEEP)
CALLS = {
    "an empty object before": ask(("keep", "{}" + RAW)),
    "encoded twice": ask(("keep", json.dumps(RAW))),
    "a brace behind": ask(("keep", RAW + "}")),
    "an end token behind": ask(("keep", RAW + "<|im_end|>")),
    "fenced": ask(("keep", f"```json\n{RAW}\n```")),
    "a namespace and a number": ask(("functions.keep:0", RAW)),
    "Gemini's namespace": ask(("default_api.keep", RAW)),
    "the older field": stream(
        chunk({"function_call": {"name": "keep", "arguments": ""}}),
        chunk({"function_call": {"arguments": RAW}}),
        chunk(finish="function_call"),
    ),
    "the older field, no stream": unstreamed(
        {"content": None, "function_call": {"name": "keep", "arguments": RAW}}, "function_call"
    ),
    "an object of calls": stream(
        chunk({"tool_calls": {"id": "c1", "function": {"name": "keep", "arguments": RAW}}}),
        chunk(finish="tool_calls"),
    ),
    "objects by number": stream(
        chunk({"tool_calls": {"0": {"id": "c1", "function": {"name": "keep", "arguments": RAW}}}}),
        chunk(finish="tool_calls"),
    ),
    "a byte-order mark": stream(b"\xef\xbb\xbf", *ask(("keep", RAW)).chunks),
    "carriage returns": stream(
        *(
            b"data: " + json.dumps(part).encode() + b"\r\r"
            for part in ask(("keep", RAW)).chunks
            if isinstance(part, dict)
        )
    ),
    "parts of content": stream(
        chunk({"content": [{"type": "tool_use", "id": "t1", "name": "keep", "input": KEEP}]}),
        chunk(finish="tool_use"),
    ),
    "GLM, as text": say(
        "<tool_call>keep\n<arg_key>text</arg_key>\n<arg_value>x</arg_value>\n"
        "<arg_key>approval_reason</arg_key>\n<arg_value>asked</arg_value>\n</tool_call>"
    ),
    "Kimi, as text": say(
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.keep:0<|tool_call_argument_begin|>"
        f"{RAW}<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "an envelope": words(
        json.dumps({"success": True, "data": json.loads(unstreamed(
            {"tool_calls": [{"id": "c", "function": {"name": "keep", "arguments": RAW}}]}, "tool_calls"
        ).whole or b"")}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_in_a_servers_own_dialect_becomes_a_card_and_runs_as_shown(
    meet: Meet, name: str
) -> None:
    async with meet() as (nod, server):
        server.reply(CALLS[name], say("Kept."))
        await nod.chat("keep x")
        [proposal] = await proposals(nod)
        assert nod.notes.kept == []
        assert (await nod.press(proposal, "approve")).status_code == 200
        await nod.idle()
        assert nod.notes.kept == ["x"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ('{"text": "x", "text": "y"}', "twice with different values"),
        ('{"text": "x"}{"text": "y"}', "several JSON objects"),
        ('{"text": "x",}', "not JSON"),
    ],
)
async def test_arguments_in_doubt_are_told_to_the_model_and_nothing_is_proposed(
    meet: Meet, given: str, why: str
) -> None:
    async with meet() as (nod, server):
        server.reply(ask(("keep", given)), say("Sorry."))
        await nod.chat("keep x")
        assert await proposals(nod) == []
        assert why in of_role(server.requests[-1], "tool")[-1]


@pytest.mark.parametrize(
    "text",
    [
        "Okay, the user wants a number.\n</think>\n\nIt is 42.",
        "<thought>Okay, the user</thought>It is 42.",
        "<thinking>\nOkay, the user\n</thinking>\n\nIt is 42.",
        (
            "<|channel|>analysis<|message|>Okay, the user<|end|>"
            "<|start|>assistant<|channel|>final<|message|>It is 42."
        ),
    ],
)
async def test_what_a_model_thought_does_not_stand_there_as_its_answer(meet: Meet, text: str) -> None:
    async with meet() as (nod, server):
        server.reply(say(text))
        accepted, *events = await nod.chat("go")
        assert shown([event for event in events if event["type"] != "thought"]) == "It is 42."
        path = f"/api/conversations/{accepted['conversation_id']}/messages"
        assert (await nod.client.get(path)).json()["messages"][-1]["text"] == "It is 42."
