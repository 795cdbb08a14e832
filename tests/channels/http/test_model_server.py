"""A conversation over HTTP with a model's server that answers, refuses and breaks off as real ones do."""

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from bot.agent.openai.model import OpenAIModel
from bot.domain.proposals import PreviewField
from bot.tools.tool import ToolOutput, tool
from tests.channels.http.conftest import Serve, Served
from tests.fakes.openai_server import OpenAIServer, ask, say
from tests.kit.sql import sql

pytestmark = pytest.mark.platform

Json = dict[str, Any]
Meet = Callable[..., AbstractAsyncContextManager[tuple[Served, OpenAIServer]]]
BROKEN = "half \ud83d of a character, and \x00"


@pytest.fixture
def meet(serve: Serve) -> Meet:
    """Start a Nod whose model is behind a server: ``async with meet() as (nod, server)``."""

    @contextlib.asynccontextmanager
    async def start(
        server: OpenAIServer | None = None, **given: Any
    ) -> AsyncIterator[tuple[Served, OpenAIServer]]:
        async with server or OpenAIServer() as running:
            settings = {"strict": False, "stream_options": True, "parallel_tool_calls": True}
            model = OpenAIModel(
                model="gpt-test", api_key=running.key, base_url=running.url, max_retries=0, **settings
            )
            async with serve(model=model, **given) as nod:
                yield nod, running
            await model.close()

    return start


def told(events: list[Json]) -> str:
    """What people read of a turn."""
    return "".join(event.get("text") or event.get("error") or "" for event in events)


def of_role(request: Json, role: str) -> list[str]:
    return [str(message["content"]) for message in request["messages"] if message["role"] == role]


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
