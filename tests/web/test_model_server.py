"""A conversation over HTTP with a model's server that answers, refuses and breaks off as real ones do."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bot.domain.preview import PreviewField
from bot.store import outputs
from bot.tools.call import ToolOutput
from bot.tools.decorator import tool
from tests.fakes.openai_server import OpenAIServer, Reply, ask, chunk, fail, fragment, say, stream
from tests.kit.sql import sql
from tests.web.conftest import Meet, Serve, of_role, told

pytestmark = pytest.mark.platform

Json = dict[str, Any]
BROKEN = "half \ud83d of a character, and \x00"


async def test_no_character_that_a_tool_returns_ends_a_conversation(meet: Meet) -> None:
    async def old_and_new(arguments: Json) -> list[PreviewField]:
        return [PreviewField("text", BROKEN, BROKEN)]

    @tool(writes=False)
    async def odd() -> Json:
        """Return what no database holds."""
        return {"text": BROKEN}

    @tool(writes=False)
    async def odder() -> str:
        """Fail with what no database holds."""
        raise ValueError(BROKEN)

    @tool(preview=old_and_new)
    async def change() -> ToolOutput:
        """Change something odd."""
        return ToolOutput(BROKEN, told=BROKEN)

    async with meet(tools=(odd, odder, change)) as (nod, server):
        server.reply(ask(("odd", {}), ("odder", {}), (BROKEN, {})), ask(("change", {})), say("Done."))
        accepted, *_, done = await nod.chat("go on")
        assert done["type"] == "done"
        at = accepted["conversation_id"]
        [p] = (await nod.client.get("/api/proposals")).json()["proposals"]
        assert (await nod.press(p, "approve")).status_code == 200
        await nod.idle()
        assert (await nod.client.get(f"/api/conversations/{at}/messages")).status_code == 200
        server.reply(say("Still here."))
        assert "Still here." in told(await nod.chat("and now?", conversation_id=at))
        assert "\x00" not in json.dumps(server.requests[-1], ensure_ascii=False)


async def test_a_row_with_half_a_character_is_read(meet: Meet) -> None:
    async with meet() as (nod, server):
        server.reply(ask(("read", {})), say("Read."))
        accepted, *_ = await nod.chat("read")
        at = accepted["conversation_id"]
        url = nod.app.database.engine.url.render_as_string(hide_password=False)
        [row] = sql(url, "SELECT id, results FROM message WHERE results IS NOT NULL AND calls IS NOT NULL")
        results = row["results"] if isinstance(row["results"], str) else json.dumps(row["results"])
        broken = results.replace("[]", "\\ud83d", 1)
        assert broken != results
        sql(url, "UPDATE message SET results = :broken WHERE id = :id", broken=broken, id=row["id"])
        assert (await nod.client.get(f"/api/conversations/{at}/messages")).status_code == 200
        server.reply(say("Still here."))
        assert "Still here." in told(await nod.chat("and now?", conversation_id=at))


WINDOW = 8_000  # tokens, four characters each


def small(answers: Callable[[Json], Reply]) -> OpenAIServer:
    """A server that refuses requests beyond its window, as OpenAI does."""

    def script(body: Json) -> Reply:
        if tokens(body) > WINDOW:
            words = f"This model's maximum context length is {WINDOW} tokens."
            return fail(400, words, code="context_length_exceeded")
        return answers(body)

    return OpenAIServer(script=script)


def tokens(body: Json) -> int:
    return len(json.dumps([body["messages"], body.get("tools")], ensure_ascii=False)) // 4


def common(one: Json, other: Json) -> float:
    """Which part of a request's history begins like that of the one before."""
    before, now = (json.dumps(each["messages"]) for each in (one, other))
    same = next((at for at, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), len(before))
    return same / len(before)


def working(body: Json) -> Reply:
    """Read for each message; each tenth asks for a change."""
    last = body["messages"][-1]
    if last["role"] == "user" and last["content"].endswith("0"):
        return ask(("keep", {"text": last["content"], "approval_reason": "asked"}))
    if last["role"] == "user" and not last["content"].startswith("[Nod]"):
        return ask(("look_up", {"about": last["content"]}), text="Let me look.")
    return say("Noted: " + "and so on " * 8)


@pytest.mark.slow
async def test_two_hundred_turns_over_a_small_model_keep_the_first_order_and_the_providers_cache(
    meet: Meet,
) -> None:
    @tool(writes=False)
    async def look_up(about: str) -> str:
        """Look something up."""
        return f"{about}: " + "a fact. " * 300

    @tool(summary="Keep {text}")
    async def keep(text: str) -> str:
        """Keep a text."""
        return f"kept {text}"

    order = "Prepare the move to Leeds. Never book anything on a Friday."
    async with meet(small(working), tools=(look_up, keep), patience=300) as (nod, server):
        accepted, *_ = await nod.chat(order)
        at = accepted["conversation_id"]
        for number in range(1, 200):
            events = await nod.chat(f"Step {number}", conversation_id=at)
            assert "error" not in [event["type"] for event in events], (number, events)
            for event in events:
                if event["type"] == "proposal_opened" and number % 20:
                    assert (await nod.press(event["proposal"], "approve")).status_code == 200
                    await nod.idle()
        taken = [body for body in server.requests if tokens(body) <= WINDOW]
        assert len(server.requests) - len(taken) <= 3  # the bound is learned
        asked = [body for body in taken if not body["messages"][0]["content"].startswith("You write down")]
        assert 1 <= len(taken) - len(asked) <= 40  # summaries
        taken = asked
        for body in taken:
            assert of_role(body, "user")[0].startswith(order)
        open_then = [each for each in of_role(taken[-1], "user") if "Keep Step 20: AWAITING" in each]
        assert open_then
        shares = [common(one, other) for one, other in pairwise(taken)]
        alike = sum(share > 0.99 for share in shares) / len(shares)
        print(  # noqa: T201 - the figure
            f"{len(taken)} requests of at most {max(map(tokens, taken)):,} tokens; "
            f"{sum(shares) / len(shares):.0%} of each begins like the one before, {alike:.0%} in full"
        )
        assert sum(shares) / len(shares) > 0.8


async def test_where_the_stream_just_ends_less_of_the_history_is_asked_and_that_is_learned(
    meet: Meet,
) -> None:
    def script(body: Json) -> Reply:
        return stream(done=False) if tokens(body) > WINDOW else say("Here I am.")

    async with meet(OpenAIServer(script=script)) as (nod, server):
        accepted, *_ = await nod.chat("x" * 20_000)
        at = accepted["conversation_id"]
        for number in range(3):
            assert "Here I am." in told(await nod.chat("y" * 20_000, conversation_id=at)), number
        assert tokens(server.requests[-1]) <= WINDOW
        before = len(server.requests)
        await nod.chat("and now?", conversation_id=at)
        assert len(server.requests) == before + 1


async def test_a_person_is_told_which_setting_helps_where_nothing_is_short_enough(meet: Meet) -> None:
    def script(body: Json) -> Reply:
        return fail(400, "no", code="context_length_exceeded")

    async with meet(OpenAIServer(script=script)) as (nod, _):
        assert "NOD_HISTORY_TOKENS" in told(await nod.chat("hello"))


async def test_what_was_left_out_can_be_read_again_by_its_handle(meet: Meet) -> None:
    @tool(writes=False)
    async def look_up(about: str) -> str:
        """Look something up."""
        return f"{about}: " + "a fact. " * 1500

    async with meet(tools=(look_up,), NOD_HISTORY_TOKENS=8000) as (nod, server):
        at = None
        for number in range(6):
            server.reply(ask(("look_up", {"about": f"thing {number}"})), say("I see."))
            accepted, *_ = await nod.chat(f"Step {number}", **({"conversation_id": at} if at else {}))
            at = accepted["conversation_id"]
        first = next(text for text in of_role(server.requests[-1], "tool") if "thing 0" in text)
        handle = first.partition("handle='")[2].partition("'")[0]
        assert len(first) < 400
        found = await nod.app.database.read(outputs.load_text_part, at, handle, 9, 100)
        assert found is not None
        assert found.text.startswith("a fact. a fact.")
        assert await nod.app.database.read(outputs.load_text_part, "another", handle, 9, 100) is None


SIGNED = {"google": {"thought_signature": "c2lnbmVk"}}
THOUGHT = "The list needs milk."


def jealous(body: Json) -> Reply:
    """A model that thinks and signs its calls, and takes no history where either is missing."""
    for message in body["messages"]:
        for made in message.get("tool_calls") or ():
            if made.get("extra_content") != SIGNED or message.get("reasoning_content") != THOUGHT:
                return fail(400, "Function call is missing a thought_signature.")
    if body["messages"][-1]["role"] != "user":
        return say("Done.")
    made = fragment(index=0, call_id="c1", name="keep", arguments=json.dumps({"text": "milk"}))
    return stream(
        chunk({"reasoning_content": THOUGHT}),
        chunk({"tool_calls": [{**made, "extra_content": SIGNED}]}),
        chunk(finish="tool_calls"),
    )


async def test_what_a_model_wants_back_comes_back_after_an_approval_and_a_restart(meet: Meet) -> None:
    async with meet(OpenAIServer(script=jealous)) as (nod, server):
        accepted, *_ = await nod.chat("note milk")
        at = accepted["conversation_id"]
        [p] = (await nod.client.get("/api/proposals")).json()["proposals"]
    async with meet(OpenAIServer(script=jealous)) as (nod, server):
        assert (await nod.press(p, "approve")).status_code == 200
        await nod.idle()
        messages = (await nod.client.get(f"/api/conversations/{at}/messages")).json()["messages"]
        assert messages[-1]["text"] == "Done."
        assert len(server.requests) == 1


async def test_the_model_of_a_person_is_set_as_a_rule_over_http_and_answers_them(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with OpenAIServer() as server:
        monkeypatch.setenv("ITS_KEY", server.key)
        names = ("first", "private")
        tables = [f'[{each}]\nbase_url = "{server.url}"\nkey = "ITS_KEY"\n' for each in names]
        (tmp_path / "models.toml").write_text("".join(tables))
        async with serve(NOD_MODELS=tmp_path / "models.toml", NOD_ADMINS=("http:local",)) as nod:
            ready = (await nod.client.get("/readyz")).json()
            assert ready["models"] == [{"name": each, "fault": ""} for each in names]
            server.reply(say("One."), say("Two."))
            await nod.chat("hello")
            rule = {"subject": "model", "model": "private", "place": "http:local"}
            made = await nod.client.post("/api/rules", json=rule)
            assert (made.status_code, made.json()["text"]) == (201, "Set: rule 1: model private for you.")
            await nod.chat("hello again")
            assert [each["model"] for each in server.requests] == ["first", "private"]
            wrong = await nod.client.post("/api/rules", json={**rule, "model": "gpt-9"})
            assert wrong.status_code == 422
            assert "'gpt-9' is not a model here" in wrong.json()["error"]
