"""Slack and Telegram as real servers on loopback that keep state; people press what stands there."""

import asyncio
import contextlib
import itertools
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import aiohttp

from tests.fakes.slack_server import BOT_TOKEN, SECRET, FakeSlack
from tests.fakes.slack_state import Posted as SlackPosted
from tests.fakes.telegram_server import TOKEN, FakeTelegram
from tests.fakes.telegram_server import Posted as TelegramPosted

PAUSE = 0.1  # seconds between tries
_PEOPLE = 200  # in Telegram, one after the other: each chat takes so much a minute
_FIRST = 5000
_CHANNEL = "C1"
_ANA, _BEN = "U7", "U8"


@dataclass(frozen=True, slots=True)
class Shown:
    """A card as a chat shows it: whose it is, whether it can be approved, and what people read."""

    where: str
    ident: str
    open: bool
    words: str


class Chat(Protocol):
    """What a story does in a chat."""

    async def say(self, words: str) -> None: ...

    async def press(self, ident: str, label: str) -> bool:
        """Two people where there are two press it; false where no card offers it (yet, or any longer)."""

    def shown(self) -> Iterator[Shown]: ...


class Slack(FakeSlack):
    """Delivers to any of the processes, and again where none took it."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__()
        self.port: Callable[[random.Random], int]
        self._dice = dice

    def _ts(self) -> str:
        """By the clock that Nod has here, which looks for what was posted since a moment."""
        return f"{time.time():.0f}.{next(self._count):06d}"

    async def by_http(
        self, kind: str, body: dict[str, Any], *, retry: int = 0, secret: str | None = None
    ) -> Any:
        while True:
            self.events_url = f"http://127.0.0.1:{self.port(self._dice)}/slack/events"
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                answer = await super().by_http(kind, body, retry=retry, secret=secret)
                if answer.status == 200:
                    return answer
            retry += 1
            await asyncio.sleep(PAUSE)


class InSlack:
    def __init__(self, slack: Slack) -> None:
        self._slack = slack

    async def say(self, words: str) -> None:
        await self._slack.mention(_ANA, words, channel=_CHANNEL)

    async def press(self, ident: str, label: str) -> bool:
        for message in self._slack.in_channel(_CHANNEL):
            if label in message.buttons and _proposal_in_slack(message) == ident:
                action = message.buttons[label]
                await asyncio.gather(*(self._slack.press(message, action, user) for user in (_ANA, _BEN)))
                return True
        return False

    def shown(self) -> Iterator[Shown]:
        for message in self._slack.in_channel(_CHANNEL):
            if ident := _proposal_in_slack(message):
                yield Shown(f"slack {message.ts}", ident, "Approve" in message.buttons, message.words)


def _proposal_in_slack(message: SlackPosted) -> str:
    """Whose card it is; empty for other messages."""
    values = (str(each.get("value") or "") for each in message.buttons.values())
    return next((value.rpartition(":")[0] for value in values if ":" in value), "")


class InTelegram:
    def __init__(self, telegram: FakeTelegram) -> None:
        self.telegram = telegram
        self._next = itertools.cycle(range(_FIRST, _FIRST + _PEOPLE))

    async def say(self, words: str) -> None:
        await self.telegram.say(next(self._next), words)

    async def press(self, ident: str, label: str) -> bool:
        for message in self.telegram.messages:
            if message.deleted or _proposal_in_telegram(message) != ident:
                continue
            for each in message.buttons:
                if each["text"] == label:
                    await self.telegram.begin_press(message.chat_id, message, each["callback_data"])
                    return True
        return False

    def shown(self) -> Iterator[Shown]:
        for message in self.telegram.messages:
            if not message.deleted and (ident := _proposal_in_telegram(message)):
                where = f"telegram {message.chat_id}/{message.message_id}"
                yield Shown(where, ident, "Approve" in message.labels, message.text)


def _proposal_in_telegram(message: TelegramPosted) -> str:
    data = (str(each.get("callback_data") or "").split(".") for each in message.buttons)
    return next((parts[1] for parts in data if len(parts) > 2), "")


class Chats:
    """Both, as the settings of a Nod name them."""

    def __init__(self, dice: random.Random) -> None:
        self.slack = Slack(dice)
        self.telegram = FakeTelegram()
        self.all: Mapping[str, Chat] = {
            "slack": InSlack(self.slack),
            "telegram": InTelegram(self.telegram),
        }

    async def __aenter__(self) -> Self:
        await self.slack.start()
        await self.telegram.start()
        for number in range(_FIRST, _FIRST + _PEOPLE):
            self.telegram.person(number)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.slack.stop()
        await self.telegram.stop()

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_SIGNING_SECRET": SECRET,
            "SLACK_API_URL": self.slack.url,
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_API_URL": self.telegram.url,
            "TELEGRAM_ALLOWED_USERS": ",".join(map(str, range(_FIRST, _FIRST + _PEOPLE))),
        }

    def shown(self) -> list[Shown]:
        return [each for chat in self.all.values() for each in chat.shown()]

    def unanswered(self) -> int:
        """Presses in Telegram that were not answered."""
        return sum(not query.answered for query in self.telegram.queries.values())
