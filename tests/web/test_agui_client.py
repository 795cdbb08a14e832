"""``/agui`` as the public TypeScript client sees it, which holds every event and message to the protocol."""

import asyncio
import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.kit import FakeClock
from tests.web.conftest import Json, Serve, Served
from tests.web.scripted import ScriptedModel, ask, say

ROOT = Path(__file__).parents[2]
NODE = Path(os.environ.get("NOD_TEST_NODE", ROOT))
"""Where ``npm install @ag-ui/client`` was run."""


@pytest.fixture(autouse=True)
def _as_on_the_wall(clock: FakeClock) -> None:
    """The client looks at the machine's clock to see whether an interrupt has expired."""
    clock.now = datetime.now(UTC)


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which("node") and (NODE / "node_modules/@ag-ui/client").is_dir()),
        reason="needs node, and npm install @ag-ui/client",
    ),
]
MILK = ("keep", {"text": "milk"})


async def front_end(nod: Served, *answers: Json) -> dict[str, Any]:
    return await printed(nod, "agui_client.cjs", "keep milk", json.dumps(answers))


async def printed(nod: Served, script: str, *arguments: str, given: str = "") -> dict[str, Any]:
    path = Path(__file__).with_name(script)
    running = await asyncio.create_subprocess_exec(
        *("node", str(path), f"{nod.url}/agui", *arguments),
        env={"PATH": os.environ["PATH"], "NOD_TEST_NODE": str(NODE)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await running.communicate(given.encode())
    assert running.returncode == 0, errors.decode()
    found: dict[str, Any] = json.loads(out)
    return found


def resolved(**payload: Any) -> Json:
    return {"status": "resolved", "payload": payload}


@pytest.mark.parametrize(
    ("answers", "kept", "result"),
    [
        ([resolved(approved=True)], ["milk"], '{"kept": 1}'),
        ([resolved(approved=True, editedArgs={"text": "tea"})], ["tea"], '{"kept": 1}'),
        ([resolved(editedArgs={"text": "tea"}), resolved(approved=True)], ["tea"], '{"kept": 1}'),
        ([resolved(approved=False, reason="no room")], [], "Declined by you: no room."),
        ([{"status": "cancelled"}], [], "Withdrawn by you."),
    ],
)
async def test_the_public_client_shows_the_call_answers_it_and_gets_its_result(
    serve: Serve, answers: list[Json], kept: list[str], result: str
):
    model = ScriptedModel(ask(("read", {}), text="Let me look."), ask(MILK, text="I keep it."), say("Done."))
    async with serve(model=model, patience=120) as nod:
        seen = await front_end(nod, *answers)
        assert nod.notes.kept == kept
        assert seen["pendingInterrupts"] == []
        assert seen["asked"][0]["metadata"]["nod"]["tool_name"] == "keep"
        said = [m["content"] for m in seen["messages"] if m["role"] == "assistant" and m.get("content")]
        assert said == ["Let me look.", "I keep it.", "Done."]
        proposal = seen["asked"][0]["toolCallId"]
        results = {m["toolCallId"]: m["content"] for m in seen["messages"] if m["role"] == "tool"}
        assert results[proposal] == result
        calls = [call["id"] for m in seen["messages"] for call in m.get("toolCalls", [])]
        assert len(calls) == len(set(calls)) == len(results)
        assert seen["state"]["proposals"] == []


async def test_an_interrupt_that_is_left_open_is_still_pending_in_the_public_client(serve: Serve):
    async with serve(model=ScriptedModel(ask(MILK)), patience=120) as nod:
        seen = await front_end(nod, resolved())
        (pending,) = seen["pendingInterrupts"]
        assert (pending, [p["id"] for p in seen["state"]["proposals"]]) == (
            seen["asked"][0],
            [pending["toolCallId"]],
        )


async def test_a_thread_of_the_public_client_continues_after_each_message_that_was_refused(serve: Serve):
    at_an_address = {"type": "url", "value": "https://a.test/a.png", "mimeType": "image/png"}
    broken = {"type": "data", "value": "%%", "mimeType": "image/png"}
    refused = [
        "",
        [],
        "x" * 40_000,
        *([{"type": "image", "source": each}] for each in (at_an_address, broken)),
    ]
    model = ScriptedModel(say("Good morning."), ask(MILK), say("Kept."), say("Bye."))
    async with serve(model=model, patience=120) as nod:
        contents = [*refused, "hello", *refused, "keep milk", refused[0], "x" * 3_000_000, "bye"]
        seen = await printed(nod, "agui_thread.cjs", given=json.dumps(contents))
        said = [(m["role"], m.get("content")) for m in seen["messages"] if m["role"] != "tool"]
        told = [text for role, text in said if role == "assistant" and text]
        answers = [text for text in told if not text.startswith(("I can only", "I take", "That is"))]
        assert answers == ["Good morning.", "Kept.", "Bye."]
        assert len(told) - len(answers) == 2 * len(refused) + 1
        assert [text for role, text in said if role == "user"] == contents
        assert nod.notes.kept == ["milk"]
