"""The contract in Telegram: a group, by long polling."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from bot.channels.telegram.channel import TelegramChannel
from bot.channels.telegram.limits import ChatPace
from bot.domain.chat import Clock
from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.value_text import label_of
from bot.domain.verbs import BUTTONS, Verb
from bot.settings import Settings
from bot.testing.contract import Contract
from bot.testing.driver import SeenCard
from bot.testing.places_contract import PlacesContract
from bot.testing.steps import approved_elsewhere, hears, note, proposed, settles
from bot.testing.world import Says, World, eventually
from tests.fakes.telegram_server import TOKEN, FakeTelegram, Posted
from tests.kit import FakeClock, Hold, make_tables
from tests.kit.urls import Urls

pytestmark = pytest.mark.platform

ANA, EVE, BEN, TEAM = 101, 102, 103, -100200
SIGNS = ("🟠", "🟡", "✅", "🔴", "⚪️")  # a card begins with how it stands
LABELS: dict[Verb, tuple[str, ...]] = {
    Verb.FIRST: ("deep red",),
    Verb.SECOND: ("sky blue",),
    Verb.ANSWER: ("Answer in words",),
    Verb.APPROVE: ("Send answer", "Approve", "Approve deletion", "Approve plan"),
    Verb.DECLINE: ("Decline", "Reject"),
    Verb.ASK: ("Ask",),
    Verb.REVISE: ("Ask for changes",),
    Verb.APPROVE_STEPS: ("Approve plan and its steps",),
    Verb.EDIT: ("Edit", "Fill in"),
    Verb.SIMILAR: ("Approve similar",),
    Verb.EXTEND: ("Extend ",),
    Verb.RETRY: ("Retry",),
    Verb.STOP: ("Stop",),
    Verb.UNDO: ("Undo",),
    Verb.UNDO_ALL: ("Undo all",),
    Verb.FOR_REAL: ("Approve and run it for real",),
    Verb.APPROVE_ALL: ("Approve all ",),
    Verb.DECLINE_ALL: ("Decline all ",),
}
SURELY = ("su.", "us.", "fs.", "uz.", "rs.")
"""How the answers begin that do what was asked about once more."""
HOLDS = {
    GrantDuration.CONVERSATION: "As long as this conversation",
    GrantDuration.HOUR: "1 hour",
    GrantDuration.EIGHT_HOURS: "8 hours",
    GrantDuration.DAY: "24 hours",
}


@dataclass(frozen=True)
class Looked:
    """A card's message and the buttons it had when it was looked at, by label."""

    message: Posted
    buttons: Mapping[str, str]


class TelegramDriver:
    ben = f"telegram:{BEN}"
    closed = "telegram:-100999"
    stopped = "⏹ Stopped."

    def __init__(self, telegram: FakeTelegram, world: World) -> None:
        self.telegram = telegram
        self.world = world
        self.topic: int | None = None

    async def say(self, text: str) -> None:
        await self.telegram.say(ANA, f"@nod_test_bot {text}", TEAM, thread=self.topic)

    def cards(self) -> list[SeenCard]:
        return [_seen(m) for m in self.telegram.shown(TEAM) if m.text.startswith(SIGNS)]

    def texts(self) -> list[str]:
        return [m.text for m in self.telegram.shown(TEAM) if not m.text.startswith((*SIGNS, "👥"))]

    def files(self) -> list[str]:
        return [m.document for m in self.telegram.shown(TEAM) if m.document]

    def told(self, *, eve: bool = False) -> list[str]:
        user = EVE if eve else ANA
        return [q.text for q in self.telegram.queries.values() if q.user_id == user and q.text]

    async def press(self, card: SeenCard, verb: Verb, *, eve: bool = False) -> None:
        await self._press(EVE if eve else ANA, card, verb)

    async def ben_presses(self, card: SeenCard, verb: Verb) -> None:
        await self._press(BEN, card, verb)

    async def _press(self, user: int, card: SeenCard, verb: Verb) -> None:
        """Where the card was too long for Approve, it is under what "View all" showed."""
        message = card.handle.message
        below = self.telegram.below(user, message) if "View all" in message.labels else []
        shown = [message, *below]
        if all(_data(_buttons(each), verb) is None for each in shown) and (more := message.more):
            await self.telegram.press_data(user, message, more)
            shown = [message, await eventually(lambda: self.telegram.menu(user, TEAM), "the other buttons")]
        for each in shown:
            if (data := _data(_buttons(each), verb)) is not None:
                await self.telegram.press_data(user, each, data)
                await self._answer(user, each)
                return
        raise LookupError(f"the card does not offer {verb}: {message.labels}")

    async def _answer(self, user: int, message: Posted) -> None:
        """Where a press asked whether what can't be undone should be done: yes."""
        for each in self.telegram.shown(TEAM):
            sure = next((data for data in _buttons(each).values() if data.startswith(SURELY)), None)
            if each is message and sure is not None:
                await self.telegram.press_data(user, each, sure)

    async def press_remembered(self, card: SeenCard, verb: Verb) -> None:
        data = _data(card.handle.buttons, verb)
        assert data is not None
        await self.telegram.press_data(ANA, card.handle.message, data)

    async def read_all(self, card: SeenCard) -> str:
        message = card.handle.message
        if "View all" not in message.labels:
            return str(message.text)
        await self.telegram.press(ANA, message, "View all")

        def all_below() -> list[Posted]:
            below = self.telegram.below(ANA, message)
            return below if any("Approve" in m.labels for m in below) else []

        below = await eventually(all_below, "the whole payload")
        return "\n".join(m.document or m.text for m in below)

    async def write(self, card: SeenCard, verb: Verb, words: str) -> None:
        await self._press(ANA, card, verb)
        asked = BUTTONS[verb].text_question
        assert asked is not None
        question = f"{asked.question[0].lower()}{asked.question[1:]}"

        def asking() -> list[Posted]:
            return self.telegram.shown(TEAM, question)

        prompt = (await eventually(asking, "the question"))[-1]
        await self.telegram.say(ANA, words, TEAM, reply_to=prompt)

    async def fill_in(self, card: SeenCard, name: str, text: str) -> None:
        await self.telegram.press(ANA, card.handle.message, "Fill in")
        picker = await self.telegram.see(TEAM, "Which part")
        await self.telegram.press(ANA, picker, next(b for b in picker.labels if b.startswith(label_of(name))))
        question = await self.telegram.see(TEAM, f"new value for {label_of(name)}")
        await self.telegram.say(ANA, text, TEAM, reply_to=question)
        form = await self.telegram.see(TEAM, "not saved yet")
        await self.telegram.press(ANA, form, "Save")
        await eventually(lambda: "Press Send answer on its card" in form.text, "where it is sent")
        message, before = card.handle.message, card.handle.buttons
        await eventually(lambda: _buttons(message) != before, "the answer as it will be sent")
        await self.telegram.press(ANA, message, "Send answer")

    def boards(self) -> list[str]:
        return [m.text for m in self.telegram.shown(TEAM) if m.text.startswith("👥")]

    async def approve_similar(self, card: SeenCard, rung: GrantScope, lasting: GrantDuration) -> str:
        await self._press(ANA, card, Verb.SIMILAR)
        ladder = self._newest("Approve similar")
        read = ladder.text
        data = [b["callback_data"] for b in ladder.buttons]
        wanted = f".{list(GrantScope).index(rung)}"
        chosen = next((d for d in data if d.startswith("sr.") and d.endswith(wanted)), None)
        if chosen is None:
            raise LookupError(f"the ladder does not offer {rung}: {ladder.labels}")
        await self.telegram.press_data(ANA, ladder, chosen)
        ladder = self._newest("Approve similar")
        await self.telegram.press(ANA, ladder, HOLDS[lasting])
        return read

    def _newest(self, words: str) -> Posted:
        found = self.telegram.shown(TEAM, words)
        if not found or not found[-1].buttons:
            raise LookupError(f"no {words!r} to press")
        return found[-1]

    async def stop(self) -> None:
        await self.command("/stop")

    async def edit(self, text: str) -> None:
        """Ana edits what she wrote last, and is told what to do instead."""

        def told() -> int:
            return sum("edited messages" in each.text for each in self.telegram.shown(TEAM))

        before = told()
        await self.telegram.edit_own(ANA, f"@nod_test_bot {text}", TEAM)
        await eventually(lambda: told() > before, "what to do instead")

    async def command(self, line: str, *, eve: bool = False) -> str:
        user = EVE if eve else ANA
        heard = len(self.telegram.shown(user)), len(self.telegram.shown(TEAM))
        await self.telegram.say(user, line, TEAM)

        def answer() -> Sequence[Posted]:
            return self.telegram.shown(user)[heard[0] :] or self.telegram.shown(TEAM)[heard[1] :]

        found = await eventually(answer, f"an answer to {line}")
        assert not line.startswith("/approvals") or found[0].chat_id == user, "others can read the answer"
        return "\n".join(m.text for m in found)

    def refuse_cards(self) -> None:
        self.telegram.blocked |= {TEAM: "bot was kicked from the supergroup chat", ANA: "bot was blocked"}

    def lose_place(self) -> None:
        if self.topic is None:
            del self.telegram.chats[TEAM]
        else:
            self.telegram.delete_topic(TEAM, self.topic)

    def delete_card(self, card: SeenCard) -> None:
        card.handle.message.deleted = True

    def privately(self, containing: str) -> list[str]:
        return [m.text for m in self.telegram.shown(ANA, containing)]

    def fail_redraws(self, times: int) -> None:
        self.telegram.fail("editMessageText", 500, "Internal Server Error", times)


def _buttons(message: Posted) -> dict[str, str]:
    return {b["text"]: b["callback_data"] for b in message.buttons if "callback_data" in b}


def _data(buttons: Mapping[str, str], verb: Verb) -> str | None:
    for label in LABELS[verb]:
        for text, data in buttons.items():
            if text == label or (label[-1] == " " and text.startswith(label)):
                return data
    return None


def _offered(buttons: Mapping[str, str]) -> Iterable[Verb]:
    return (a for a in Verb if a in LABELS and _data(buttons, a) is not None)


def _seen(message: Posted) -> SeenCard:
    buttons = _buttons(message)
    return SeenCard(message.text, tuple(_offered(buttons)), Looked(message, buttons))


class FakeSeconds:
    """Seconds pass only while the pace waits."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
async def driver(database_of: Urls, clock: FakeClock) -> AsyncIterator[TelegramDriver]:
    async with in_telegram(database_of("nod"), clock) as driver:
        yield driver


@asynccontextmanager
async def in_telegram(url: str, clock: Clock, *, elsewhere: bool = False) -> AsyncIterator[TelegramDriver]:
    telegram = FakeTelegram()
    await telegram.start()
    telegram.person(ANA, "Ana")
    telegram.person(EVE, "Eve")
    telegram.person(BEN, "Ben")
    telegram.group(TEAM)

    def settings() -> Settings:
        values: dict[str, Any] = {
            "NOD_DATABASE_URL": url,
            "NOD_PORT": 0,
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_API_URL": telegram.url,
            "TELEGRAM_ALLOWED_CHATS": str(TEAM),
            "NOD_ADMINS": f"telegram:{ANA}",
            "NOD_APPROVERS": f"telegram:{BEN}",
        }
        return Settings(_env_file=None, **values)

    seconds = FakeSeconds()
    world = World(
        settings,
        lambda app: TelegramChannel(app.settings, app.database, app.clock, ChatPace(seconds, seconds.sleep)),
        clock,
        make_tables,
        elsewhere,
    )
    await world.start()
    yield TelegramDriver(telegram, world)
    await world.stop()
    await telegram.stop()


class TestTelegram(Contract, PlacesContract):
    """Every scenario of the contract, and what only Telegram does."""

    async def test_a_stop_is_told_once_where_the_answer_was_to_stand(self, driver: TelegramDriver) -> None:
        hold = Hold()
        driver.world.script(Says("Too late.", hold=hold), Says("Here I am."))
        await driver.say("think")
        await hold.reached.wait()
        await driver.telegram.say(ANA, "/stop@nod_test_bot", TEAM)
        await hears(driver, driver.stopped)
        await driver.say("and now?")
        await hears(driver, "Here I am.")
        assert [each for each in driver.texts() if "Stopped" in each] == [driver.stopped]
        await driver.telegram.say(ANA, "/stop@nod_test_bot", TEAM)
        await hears(driver, "Nothing was running here.")


class TestTopic(PlacesContract):
    """A topic of a group, where the group stays when the topic is deleted."""

    @pytest.fixture
    async def driver(self, database_of: Urls, clock: FakeClock) -> AsyncIterator[TelegramDriver]:
        async with in_telegram(database_of("nod"), clock) as driver:
            driver.topic = 7
            yield driver

    @pytest.mark.parametrize("end", ["closed", "deleted"])
    async def test_an_answer_for_a_topic_that_ended_stands_in_the_group_where_the_person_can_t_be_reached(
        self, driver: TelegramDriver, end: str
    ) -> None:
        await proposed(driver, note("milk"), "It is noted.")
        driver.telegram.blocked[ANA] = "bot can't initiate conversation with a user"
        if end == "closed":
            driver.telegram.closed_topics.add((TEAM, driver.topic))
        else:
            driver.telegram.delete_topic(TEAM, driver.topic)
        await approved_elsewhere(driver)
        await eventually(lambda: driver.world.notes, "the note")
        await settles(driver)

        (answer,) = driver.telegram.shown(TEAM, "It is noted.")
        why = f"Telegram refused: the topic {'is closed' if end == 'closed' else 'was deleted'}."
        (notice,) = driver.telegram.shown(TEAM, f"I can't answer where you asked. {why}")
        assert answer.thread is notice.thread is None

    async def test_a_card_for_a_closed_topic_stands_in_the_group_where_the_person_can_t_be_reached(
        self, driver: TelegramDriver
    ) -> None:
        driver.telegram.blocked[ANA] = "bot can't initiate conversation with a user"
        driver.telegram.closed_topics.add((TEAM, driver.topic))
        driver.world.script(Says("Shall I?", (note("milk"),)))
        await driver.say("note milk")

        def card() -> list[SeenCard]:
            return [each for each in driver.cards() if Verb.APPROVE in each.verbs]

        (found,) = await eventually(card, "the card in General")
        assert found.handle.message.thread is None
        await driver.press(found, Verb.APPROVE)
        await eventually(lambda: driver.world.notes == ["milk"], "the note")
