"""A Nod as shipped, its model server on loopback, and the people who talk with it."""

import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from bot.app.app import App
from bot.app.assembly import build
from bot.domain.attachments import Upload
from bot.domain.chat import Address, Answer, Message, Press
from bot.domain.people import Actor
from bot.domain.verbs import Verb
from bot.settings import Settings
from tests.fakes.openai_server import OpenAIServer, Reply, fail, say
from tests.kit import ANA, ROOM, FakeClock, RecordingChannel, make_tables

Json = dict[str, Any]
Answers = Reply | Callable[[Json], Reply]
"""What the model says, or makes of what it is sent."""

_SUMMING = "You write down what is to be remembered"
_SUMMARY = "Ana asked about plants, and how to care for them. Nothing is open."
_UNASKED = fail(500, "The conversation has no answer here.", headers={"x-should-retry": "false"})


@dataclass
class Talk:
    """One conversation: what people say and press, and what the model answers to it."""

    app: App
    server: OpenAIServer
    chat: RecordingChannel
    clock: FakeClock
    answers: deque[Answers]
    _events: int = field(default=0)

    async def say(
        self,
        text: str,
        *answers: Answers,
        by: Actor = ANA,
        at: Address = ROOM,
        private: bool = True,
        files: tuple[Upload, ...] = (),
    ) -> None:
        """A person writes, the model answers, and all that follows from it ends; then a minute passes."""
        self.answers.extend(answers)
        await self.write(text, by=by, at=at, private=private, files=files)
        await self.settle()

    async def write(
        self,
        text: str,
        *,
        by: Actor = ANA,
        at: Address = ROOM,
        private: bool = True,
        files: tuple[Upload, ...] = (),
    ) -> None:
        self._events += 1
        message = Message(at, by, text, f"event-{self._events}", private=private, files=files)
        reply = await self.app.core.assistant.handle(message)
        assert reply.answer is Answer.ACCEPTED, reply.text

    async def press(
        self,
        verb: Verb,
        *answers: Answers,
        by: Actor = ANA,
        reason: str | None = None,
        arguments: Json | None = None,
        title: str = "",
    ) -> None:
        """Press a button of the newest open card whose title has these words; ``arguments`` as edited."""
        self.answers.extend(answers)
        card = [c for c in self.chat.cards.values() if c.pending and title in c.title][-1]
        press = Press(by, verb, card.proposal_id, reason=reason, arguments=arguments)
        reply = await self.app.core.assistant.handle(press)
        assert reply.answer is Answer.ACCEPTED, reply.text
        await self.settle()

    async def settle(self) -> None:
        await self.app.dispatcher.wait_until_idle()
        self.clock.forward(timedelta(minutes=1))

    async def wait(self, passed: timedelta) -> None:
        """Time passes, with what it brings."""
        self.clock.forward(passed)
        await self.app.core.recovery.expire_due(self.clock())
        await self.app.core.recovery.recover(self.clock())
        await self.app.dispatcher.wait_until_idle()


@contextlib.asynccontextmanager
async def talking(folder: Path, **settings: object) -> AsyncIterator[Talk]:
    """A Nod with the tools it ships and those of the garden, over a database in ``folder``."""
    workspace = folder / "workspace"
    workspace.mkdir()
    make_tables(url := f"sqlite:///{folder / 'nod.db'}")
    answers: deque[Answers] = deque()
    clock, chat = FakeClock(), RecordingChannel()

    def answer(request: Json) -> Reply:
        clock.forward(timedelta(seconds=2))  # what follows is later
        if str((request.get("messages") or request["input"])[0]["content"]).startswith(_SUMMING):
            return say(_SUMMARY)
        found = answers.popleft() if answers else _UNASKED
        return found if isinstance(found, Reply) else found(request)

    async with OpenAIServer(script=answer) as server:
        given = Settings.load(
            _env_file=None,
            NOD_DATABASE_URL=url,
            NOD_PORT=0,
            NOD_WORKSPACE=workspace,
            NOD_TOOLS="tests.conversations.garden",
            NOD_MODEL="test-model",
            NOD_ADMINS=str(ANA),
            OPENAI_BASE_URL=server.url,
            OPENAI_API_KEY=server.key,
            **settings,
        )
        app = build(given, clock=clock)
        app.channels[chat.name] = chat
        async with app.running(ticking=False):
            yield Talk(app, server, chat, clock, answers)
            assert not answers, "the model was asked less often than the conversation has answers"


RECORDED = Path(__file__).parent / "recorded"
PROMPT = RECORDED / "prompt.txt"
_ELSEWHERE = Address("chat", "elsewhere")


async def requests_of(conversation: Callable[[Talk], Awaitable[None]], folder: Path) -> list[Json]:
    """What the model was sent in a conversation, after the usual request: of one that only says Hello."""
    async with talking(folder) as talk:
        await talk.say("Hello", say("Hello."), at=_ELSEWHERE)
        await conversation(talk)
        return talk.server.requests
