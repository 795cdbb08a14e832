# ruff: noqa: E501, RUF001 - a maker's own words on a line are read best
"""What servers refuse that no tool is to blame for, how long they ask to wait, and what of it is tried again."""

import re
import time
from contextlib import AsyncExitStack
from email.utils import formatdate
from typing import Any

import pytest

from bot.agent.openai.model import OpenAIModel
from bot.agent.openai.refused_parts import find_tools
from bot.domain.model import (
    AssistantText,
    Finished,
    ReducedRequest,
    SystemText,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserText,
)
from bot.domain.named_models import NamedModel
from bot.errors import ModelCut, ModelError
from tests.fakes.model_dialects import Dialect, plain_error
from tests.fakes.openai_rules import RefusalError
from tests.fakes.openai_server import OpenAIServer, Reply, ask, blame, say, stream

NOTE = ToolSpec("note_add", "Add a note", {"type": "object", "properties": {"text": {"type": "string"}}})
HELLO = (SystemText("You are Nod."), UserText("hello"))


class Talk:
    """A model and its server; ``waits`` are the seconds between its tries."""

    def __init__(self, server: OpenAIServer) -> None:
        self.server = server
        self.waits: list[float] = []
        self.left_out: list[ReducedRequest] = []
        named = NamedModel(name="m", model="m", base_url=server.url, secret=server.key)
        self.model = OpenAIModel(named, pause=self._pause)

    async def _pause(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def say(self, history=HELLO, tools=(NOTE,)) -> tuple[str, Finished]:
        *parts, finished = [part async for part in self.model.stream(history, tools)]
        self.left_out += [part for part in parts if isinstance(part, ReducedRequest) and part.left_out_tools]
        return "".join(part.text for part in parts if isinstance(part, Text)), finished


@pytest.fixture
async def talk():
    async with AsyncExitStack() as running:

        async def start(dialect: Dialect | None = None) -> Talk:
            talk = Talk(await running.enter_async_context(OpenAIServer(dialect=dialect)))
            running.push_async_callback(talk.model.close)
            return talk

        yield start


def failed(words: str, **more: Any) -> Reply:
    """Groq: https://console.groq.com/docs/errors, and reports of its users."""
    error = {"message": words, "type": "invalid_request_error", "code": "tool_use_failed", **more}
    return blame(400, {"error": error})


BAD_CALLS = [
    failed(
        "tool call validation failed: parameters for tool note_add did not match schema: errors: [`/text`: expected string, but got number]"
    ),
    failed("Tool call validation failed: attempted to call tool 'note_add' which was not in request.tools"),
    failed(
        "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
        failed_generation='<function=note_add>{"text": 1}</function>',
    ),
    blame(
        400,
        {"error": {"message": "Failed to parse tool call arguments as JSON", "code": "output_parse_failed"}},
    ),
    blame(
        500,
        {
            "error": {
                "code": 500,
                "message": "Failed to parse input at pos 39: <tool_call>note_add",
                "type": "server_error",
            }
        },
    ),
]


@pytest.mark.parametrize("refusal", BAD_CALLS)
async def test_a_call_that_a_server_refuses_of_its_own_model_is_asked_for_again_and_costs_no_tool(
    talk, refusal
):
    nod = await talk()
    for _ in range(3):  # in three conversations, so that a plainer form would be refused as well
        nod.server.reply(refusal, refusal, ask(("note_add", {"text": "x"})))
        _, finished = await nod.say()
        assert [call.name for call in finished.calls] == ["note_add"]
    assert nod.left_out == []
    assert all(body["tools"] == nod.server.requests[0]["tools"] for body in nod.server.requests)


@pytest.mark.parametrize("refusal", BAD_CALLS[:4])
async def test_a_model_that_can_not_write_calls_is_told_after_three_tries(talk, refusal):
    nod = await talk()
    nod.server.reply(*[refusal] * 9)
    with pytest.raises(ModelError, match="refused the request"):
        await nod.say()
    assert (len(nod.server.requests), nod.left_out) == (3, [])


async def test_a_bad_call_within_a_stream_is_a_cut(talk):
    nod = await talk()
    nod.server.reply(stream({"error": {"message": "Failed to call a function.", "code": "tool_use_failed"}}))
    with pytest.raises(ModelCut, match="Failed to call a function"):
        await nod.say()


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("Unexpected role 'user' after role 'tool'", "user"),
        (
            "After the optional system message, conversation roles must alternate user/assistant; got 'tool'",
            "tool",
        ),
        (
            "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: `find`",
            "find",
        ),
        ("messages.3.content: Input should be a valid string, tools.0 is sound", "find"),
        ("An assistant message with 'tool_calls' must be followed by tool messages: 'find'", "find"),
        ("Internal error while handling the request for 'find'", "find"),
        ("The number of function response parts is not that of the function call parts: 'find'", "find"),
    ],
)
async def test_a_refusal_of_a_message_costs_no_tool_of_that_name(talk, words, name):
    nod = await talk()
    tool = ToolSpec(name, "x", NOTE.parameters)
    nod.server.reply(*[blame(400, {"error": {"message": words}})] * 9)
    with pytest.raises(ModelError):
        await nod.say(tools=(NOTE, tool))
    assert nod.left_out == []
    assert find_tools(words, [name]) == []


def test_a_tool_that_is_called_like_a_field_of_the_refused_one_is_not_one_of_them():
    words = "Invalid schema for function 'note_add': In context=('properties', 'find'), 'type' must be given."
    assert find_tools(words, ["note_add", "find", "type"]) == ["note_add"]


def test_a_refusal_of_a_tool_that_has_a_field_called_role_is_one_of_the_tool():
    words = (
        "Invalid schema for function 'find': In context=('properties', 'role'), array schema missing items."
    )
    assert find_tools(words, ["note_add", "find"]) == ["find"]


@pytest.mark.parametrize(
    "words",
    [
        # https://api-docs.deepseek.com/guides/thinking_mode
        "Missing `reasoning_content` field in the assistant message at message index {}.",
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        # https://platform.kimi.ai/docs/guide/use-kimi-k2-thinking-model; an empty text counts as missing
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index {}",
    ],
)
async def test_what_another_model_said_goes_to_one_that_wants_its_own_thoughts_back(talk, words):
    def look(body: dict[str, Any]) -> None:
        for at, message in enumerate(body["messages"]):
            if message["role"] == "assistant" and not message.get("reasoning_content"):
                raise RefusalError(words.format(at))

    nod = await talk(Dialect("thinking", look, plain_error))
    own = ToolCall("c2", "note_add", "{}", {"model": "m", "answer": {"reasoning_content": "I see"}})
    history = (
        *HELLO,
        AssistantText("", (ToolCall("c1", "note_add", "{}"),)),
        ToolResult("c1", "seen"),
        AssistantText("And more", (own,)),
        ToolResult("c2", "seen"),
        UserText("and now?"),
    )
    nod.server.reply(say("fine"), say("fine"))
    assert (await nod.say(history))[0] == "fine"
    assert (await nod.say(history))[0] == "fine"
    assert len(nod.server.requests) == 3  # it is learnt once
    said = [
        m.get("reasoning_content") for m in nod.server.requests[-1]["messages"] if m["role"] == "assistant"
    ]
    assert said[:2] == [" ", "I see"]


WAITS = [
    ({}, "Rate limit reached on tokens per minute (TPM). Please try again in 5.289s.", 5.289),
    ({}, "Please try again in 250ms.", 0.25),
    ({}, "Please retry after 30 seconds.", 30),
    ({}, "Retry after 0.5 min.", 30),
    ({}, "Please retry in 26.660853464s.", 26.660853464),
    ({"Retry-After": "7"}, "Please try again in 250ms.", 7),
    ({"Retry-After": "soon"}, "Slow down, 30 seconds", 0.5),
]


@pytest.mark.parametrize(("headers", "words", "seconds"), WAITS)
async def test_the_time_that_a_busy_server_names_is_waited_also_where_its_words_alone_have_it(
    talk, headers, words, seconds
):
    nod = await talk()
    nod.server.reply(blame(429, {"error": {"message": words}}, headers=headers), say("ok"))
    await nod.say()
    assert nod.waits == [seconds]


@pytest.mark.parametrize(
    ("words", "seconds"), [("Please try again in 1m26.4s.", 86), ("Try again in 1 minute.", 60)]
)
async def test_a_wait_that_is_too_long_is_told_and_not_begun(talk, words, seconds):
    nod = await talk()
    nod.server.reply(blame(429, {"error": {"message": words}}))
    with pytest.raises(ModelError, match=f"busy for {seconds} seconds"):
        await nod.say()
    assert (len(nod.server.requests), nod.waits) == (1, [])


async def test_the_time_of_googles_own_form_is_waited(talk):
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "26.5s"}]
    error = {"code": 429, "message": "Quota exceeded", "status": "RESOURCE_EXHAUSTED", "details": details}
    nod = await talk()
    nod.server.reply(blame(429, [{"error": error}]), say("ok"))
    await nod.say()
    assert nod.waits == [26.5]


async def test_a_date_is_waited_for(talk):
    nod = await talk()
    when = formatdate(time.time() + 20, usegmt=True)
    past = formatdate(time.time() - 20, usegmt=True)
    nod.server.reply(
        blame(503, {"error": {"message": "down"}}, headers={"Retry-After": when}),
        blame(503, {"error": {"message": "down"}}, headers={"Retry-After": past}),
        say("ok"),
    )
    await nod.say()
    zoneless = when.removesuffix(" GMT")
    nod.server.reply(blame(503, {}, headers={"Retry-After": zoneless}), say("ok"))
    await nod.say()
    assert nod.waits.pop() > 5
    nod.server.reply(blame(503, {}, headers={"Retry-After": "Sat, 99 Nov 99999 00:00:00 GMT"}), say("ok"))
    await nod.say()
    assert nod.waits.pop() == 0.5
    assert re.fullmatch(r"(1[0-9]|20)\.\d+ 0\.0", " ".join(map(str, nod.waits)))


@pytest.mark.parametrize(
    "words", ["您的账户已达到速率限制，请您控制请求频率", "当前访问量过大，请稍后再试", "服务繁忙"]
)
async def test_a_limit_that_is_told_in_chinese_within_a_stream_may_pass(talk, words):
    nod = await talk()
    nod.server.reply(stream({"error": {"code": "1302", "message": words}}))
    with pytest.raises(ModelCut, match=words) as caught:
        await nod.say()
    assert caught.value.is_transient
