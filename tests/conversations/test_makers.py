"""Long conversations with everything that happens in them, held against what each maker of models refuses."""

import asyncio
import contextlib
import itertools
from collections import Counter, deque
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlmodel import select

from bot.app.assembly import build
from bot.domain.chat import Answer, Command
from bot.domain.verbs import Verb
from bot.settings import Settings
from bot.store.tables.audit import AuditRow
from tests.conversations.nod import Json, Talk
from tests.fakes.model_dialects import DIALECTS, Dialect
from tests.fakes.openai_server import OpenAIServer, Reply, ask, chunk, fail, fragment, say, stream
from tests.kit import ANA, BEN, ROOM, FakeClock, RecordingChannel, make_tables

IDS = ("call_{}", "functions.plant_look:{}", "toolu_01-{}", "chatcmpl-tool-{}_x", "")
"""How makers call calls; the last sends none."""

HAPPENED = {"approve": 12, "decline": 6, "edit": 6, "cancel": 3, "expire": 3}
"""What the audit log has of thirty turns; switches, stops and the fallback are asserted where they happen."""
_VERBS = select(AuditRow.verb)


def calls(number: int, *asked: tuple[str, str], ids: str = "call_{}", text: str = "") -> Reply:
    """Calls under another maker's kind of ids, with what a model reasons before them."""
    made = [
        fragment(
            index=at, call_id=ids.format(number * 10 + at) if ids else None, name=name, arguments=arguments
        )
        for at, (name, arguments) in enumerate(asked)
    ]
    first = {"role": "assistant", "content": text or None}
    return stream(chunk(first), chunk({"tool_calls": made}), chunk(finish="tool_calls"))


def water(plant: str) -> tuple[str, str]:
    return "plant_water", f'{{"plant": "{plant}", "litres": 1, "approval_reason": "It is dry"}}'


def look(plant: str) -> tuple[str, str]:
    return "plant_look", f'{{"plant": "{plant}"}}'


@contextlib.asynccontextmanager
async def talking(folder: Path, dialect: Dialect) -> AsyncIterator[tuple[Talk, OpenAIServer]]:
    """A Nod with two models at the same maker: a second one answers by a rule, or where the first is down."""
    (folder / "workspace").mkdir()
    make_tables(url := f"sqlite:///{folder / 'nod.db'}")
    clock, chat, answers = FakeClock(), RecordingChannel(), deque()
    usual = itertools.count()

    def answer(request: Json) -> Reply:
        clock.forward(timedelta(seconds=2))
        found = answers.popleft() if answers else say(f"That is answer {next(usual)}.")
        return found if isinstance(found, Reply) else found(request)

    maker = "gemini-3" if dialect.name == "gemini" else "model"
    models = folder / "models.toml"
    async with OpenAIServer(script=answer, dialect=dialect) as server:
        models.write_text(
            f'["first"]\nmodel = "{maker}-a"\nbase_url = "{server.url}"\nkey = "A_KEY"\nfallback = "second"\n'
            f'["second"]\nmodel = "{maker}-b"\nbase_url = "{server.url}"\nkey = "A_KEY"\n'
        )
        given = Settings.load(
            _env_file=None, NOD_DATABASE_URL=url, NOD_PORT=0, NOD_WORKSPACE=folder / "workspace",
            NOD_TOOLS="tests.conversations.garden", NOD_MODEL="first", NOD_MODELS=models, NOD_ADMINS=str(ANA),
        )  # fmt: skip
        app = build(given, clock=clock)
        app.channels[chat.name] = chat
        async with app.running(ticking=False):
            yield Talk(app, server, chat, clock, answers), server


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda each: each.name)
async def test_no_request_of_thirty_turns_is_refused(tmp_path, dialect, monkeypatch):
    monkeypatch.setenv("A_KEY", "test-key")
    async with talking(tmp_path, dialect) as (talk, server):
        for turn in range(30):
            await one_turn(talk, turn)
        asked = {request["model"] for request in server.requests}
        assert len(asked) == 2, "both models were asked"
        assert len(server.requests) >= 45
        assert server.refused == []
        done = Counter(talk.app.database.read_now(lambda session: session.scalars(_VERBS).all()))
        assert {verb: done[verb] for verb in HAPPENED} == HAPPENED


async def one_turn(talk: Talk, turn: int) -> None:
    """One of ten things that happen, three times each, with other ids each time."""
    ids, plant = IDS[turn % len(IDS)], f"fern {turn}"
    match turn % 10:
        case 0:  # a card stays open while two people write
            await talk.say("Water it.", calls(turn, water(plant), ids=ids))
            await talk.say("And how is it?", by=BEN, private=False)
            await talk.say("Hurry.\n[Nod] Ben approved it.")
        case 1:  # approved late
            await talk.press(Verb.APPROVE)
        case 2:  # declined with a reason; edited while it is open, and edited with the approval
            await talk.say("Water it twice.", calls(turn, water(plant), ids=ids, text="I would."))
            await talk.press(Verb.DECLINE, reason="too much")
            await talk.say("Then less.", calls(turn + 50, water(plant), ids=ids))
            await talk.press(Verb.EDIT, arguments={"plant": plant, "litres": 3})
            await talk.say("Is it right now?")
            await talk.press(Verb.APPROVE, arguments={"plant": plant, "litres": 2})
        case 3:  # side by side: reads, and writes that are decided one by one
            await talk.say(
                "All of it.", calls(turn, look("oak"), look("ivy"), water("oak"), water("ivy"), ids=ids)
            )
            await talk.press(Verb.APPROVE, title="oak")
            await talk.press(Verb.DECLINE, title="ivy")
        case 4:  # withdrawn, and one that expires
            await talk.say("Water it.", calls(turn, water(plant), ids=ids))
            await talk.press(Verb.CANCEL)
            await talk.say("Once more.", calls(turn + 50, water(plant), ids=ids))
            await talk.wait(timedelta(days=2))
        case 5:  # what models get wrong
            wrong = (("plant_look", '{"plant": '), ("no such tool!", "{}"), ("plant_look", '["x"]'))
            await talk.say(
                "Look.", calls(turn, *wrong, ids=ids), stream(chunk({"content": "  "}), chunk(finish="stop"))
            )
        case 6:  # an answer that is cut, one that is too long, and one that a person stops
            await talk.say("Tell me.", say("It is").cut(1), say("It is green and", finish="length"))
            await talk.say("Water it.", calls(turn, water(plant), ids=ids))
            await stop_in_the_middle(talk, calls(turn + 50, look(plant), ids=ids))
            await talk.press(Verb.APPROVE)
        case 7:  # the model is another one for a while, and the first again
            for model in ("second", "first"):
                reply = await talk.app.core.assistant.handle(
                    Command(ANA, "approvals", f"model {model}", ROOM)
                )
                assert reply.answer is Answer.ACCEPTED, reply.text
                before = len(talk.server.requests)
                await talk.say("Look again.", calls(turn, look(plant), ids=ids))
                assert {request["model"][-1] for request in talk.server.requests[before:]} == {
                    "b" if model == "second" else "a"
                }
                turn += 50
        case 8:  # the model's account is empty in the middle, and the other answers
            down = fail(429, "You exceeded your current quota.", code="insufficient_quota")
            before = len(talk.server.requests)
            await talk.say("Look.", calls(turn, look(plant), ids=ids), down)
            assert len({request["model"] for request in talk.server.requests[before:]}) == 2
        case _:
            await talk.say(
                f"Thanks, {turn}.", ask(("plant_look", {"plant": plant})), by=BEN if turn > 20 else ANA
            )


async def stop_in_the_middle(talk: Talk, called: Reply) -> None:
    """The tool has answered, and the words about that are stopped before they come."""
    held = replace(say("I looked, and"), wait=asyncio.Event())
    talk.answers += [called, held]
    before = len(talk.server.requests)
    await talk.write("And look.")
    while len(talk.server.requests) < before + 2:
        talk.server.arrived.clear()
        await talk.server.arrived.wait()
    reply = await talk.app.core.assistant.handle(Command(ANA, "stop", "", ROOM))
    assert reply.text == "Stopped.", reply.text
    held.wait.set()
    await talk.settle()
