"""The contract in Slack: a channel thread, over a real websocket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import pytest

from bot.channels.slack.channel import SlackChannel
from bot.domain.chat import Address, Clock, Message
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.value_text import label_of
from bot.domain.verbs import BUTTONS, Verb
from bot.settings import Settings
from bot.store import proposals
from bot.testing.contract import Contract
from bot.testing.driver import SeenCard
from bot.testing.places_contract import PlacesContract
from bot.testing.steps import hears, note
from bot.testing.world import Says, World, eventually
from tests.fakes.slack_server import APP_TOKEN, BOT_TOKEN, BOT_USER, FakeSlack
from tests.fakes.slack_state import Modal, Posted
from tests.kit import FakeClock, make_tables
from tests.kit.urls import Urls

pytestmark = pytest.mark.platform

ANA, BEN, EVE = "U7", "U8", "U9"
REVIEW = "View all, then approve"
FOR_REAL = "Approve and run it for real"


class SlackDriver:
    ben = f"slack:T1/{BEN}"
    closed = "slack:T1/C9"
    stopped = "Stopped."

    def __init__(self, slack: FakeSlack, world: World) -> None:
        self.slack = slack
        self.world = world
        self._thread: str | None = None

    async def say(self, text: str) -> None:
        self._thread = self._thread or None
        ts = await self.slack.mention(ANA, text, thread=self._thread)
        self._thread = self._thread or ts

    def cards(self) -> list[SeenCard]:
        return [_seen(m) for m in self.slack.cards("C1") if m.only_for is None and not _is_board(m)]

    def boards(self) -> list[str]:
        return [m.words for m in self.slack.cards("C1") if _is_board(m)]

    async def write(self, card: SeenCard, verb: Verb, words: str) -> None:
        await self._open(card, _label(card.handle, verb), ANA)
        asked = BUTTONS[verb].text_question
        assert asked is not None
        await self.slack.submit(ANA, {asked.question: words})

    async def fill_in(self, card: SeenCard, name: str, text: str) -> None:
        await self._open(card, "Fill in", ANA)
        await self.slack.submit(ANA, {label_of(name): text})

    def texts(self) -> list[str]:
        return [m.markdown for m in self.slack.in_channel("C1") if m.markdown]

    def files(self) -> list[str]:
        return [m.file for m in self.slack.in_channel("C1") if m.file and m.thread == self._thread]

    def told(self, *, eve: bool = False) -> list[str]:
        user = EVE if eve else ANA
        return [
            m.words for m in self.slack.posted if m.only_for == user or m.channel == self.slack.dm(user)
        ] + [m.words for m in self.slack.modals if m.user == user and m.title == "Not done"]

    async def press(self, card: SeenCard, verb: Verb, *, eve: bool = False) -> None:
        await self._press(card, verb, EVE if eve else ANA)

    async def ben_presses(self, card: SeenCard, verb: Verb) -> None:
        await self._press(card, verb, BEN)

    async def _press(self, card: SeenCard, verb: Verb, user: str) -> None:
        label = _label(card.handle, verb)
        if label not in (REVIEW, FOR_REAL) or (label == FOR_REAL and user == EVE):  # who may not is told
            await self.slack.click(card.handle, label, user)
            return
        await self._open(card, label, user)
        await self.slack.submit(user)

    async def _open(self, card: SeenCard, label: str, user: str) -> Modal:
        """Press what opens a window, and wait for it."""
        before = len(self.slack.modals)
        await self.slack.click(card.handle, label, user)

        def opened() -> list[Modal]:
            return [m for m in self.slack.modals[before:] if m.user == user]

        return (await eventually(opened, f"a window after {label!r}"))[0]  # type: ignore[no-any-return]

    async def approve_similar(self, card: SeenCard, rung: GrantScope, lasting: GrantDuration) -> str:
        modal = await self._open(card, _label(card.handle, Verb.SIMILAR), ANA)
        chosen = {}
        for label, value in (("What may run without asking", rung), ("How long", lasting)):
            options = modal.block_of(label)["element"]["options"]
            chosen[label] = next((o["text"]["text"] for o in options if o["value"] == value), None)
            if chosen[label] is None:
                raise LookupError(f"{value} is not among {options}")
        read = "\n".join([modal.words, *modal.choices])
        await self.slack.submit(ANA, chosen)
        return read

    async def stop(self) -> None:
        """Press Stop, which Slack shows while an answer is written."""
        where = {"channel": "C1", "thread_ts": self._thread, "user": ANA}
        await self.slack.deliver_event({"type": "agent_session_stopped"} | where)

    async def edit(self, text: str) -> None:
        """Ana edits what began the thread."""
        before = {"type": "message", "user": ANA, "text": "", "ts": self._thread, "thread_ts": self._thread}
        after = before | {"text": f"<@{BOT_USER}> {text}", "edited": {"user": ANA, "ts": "1800000000.000100"}}
        where = {"channel": "C1", "channel_type": "channel", "ts": "1800000000.000200", "hidden": True}
        both = {"subtype": "message_changed", "message": after, "previous_message": before}
        done = await self.slack.deliver_event({"type": "message"} | where | both)
        assert done.status == HTTPStatus.OK

    async def command(self, line: str, *, eve: bool = False) -> str:
        name, _, words = line.partition(" ")
        return await self.slack.slash(EVE if eve else ANA, name, words)

    async def press_remembered(self, card: SeenCard, verb: Verb) -> None:
        remembered: dict[str, dict[str, Any]] = card.handle.remembered
        await self.slack.press(card.handle, remembered[_label_among(remembered, verb)], ANA)

    async def read_all(self, card: SeenCard) -> str:
        modal = await self._open(card, REVIEW if REVIEW in card.handle.buttons else "View all", ANA)
        modal.open = False
        return modal.words

    def refuse_cards(self) -> None:
        self.slack.fail("chat.postMessage", "is_archived", times=50)

    def lose_place(self) -> None:
        del self.slack.channels["C1"]

    def delete_card(self, card: SeenCard) -> None:
        card.handle.deleted = True

    def privately(self, containing: str) -> list[str]:
        return [m.words for m in self.slack.in_channel(self.slack.dm(ANA)) if containing in m.words]

    def fail_redraws(self, times: int) -> None:
        self.slack.fail("chat.update", "internal_error", times=times)


def _label_among(labels: Any, verb: Verb) -> str:
    wanted = {
        Verb.APPROVE: ("Approve", "Approve deletion", "Approve plan", "Send answer", REVIEW),
        Verb.APPROVE_STEPS: ("Approve plan and its steps",),
        Verb.DECLINE: ("Decline", "Reject"),
        Verb.FIRST: ("deep red",),
        Verb.SECOND: ("sky blue",),
        Verb.ANSWER: ("Answer in words",),
        Verb.ASK: ("Ask",),
        Verb.REVISE: ("Ask for changes",),
        Verb.EDIT: ("Edit", "Fill in"),
        Verb.RETRY: ("Retry",),
        Verb.UNDO: ("Undo",),
        Verb.FOR_REAL: (FOR_REAL,),
        Verb.SIMILAR: ("Approve similar", f"{REVIEW} similar"),
    }.get(verb)
    for label in labels:
        if wanted and label in wanted:
            return str(label)
        if not wanted and label.startswith(verb.replace("_", " ").capitalize()):
            return str(label)
    raise LookupError(f"the card does not offer {verb}: {list(labels)}")


def _is_board(message: Posted) -> bool:
    return bool(message.blocks) and message.blocks[0]["type"] == "plan"


def _label(message: Posted, verb: Verb) -> str:
    return _label_among(message.buttons, verb)


def _seen(message: Posted) -> SeenCard:
    verbs = []
    for verb in Verb:
        try:
            _label(message, verb)
        except LookupError:
            continue
        verbs.append(verb)
    if message.buttons:
        message.remembered = message.remembered or message.buttons
    return SeenCard(message.words, tuple(verbs), message)


@pytest.fixture
async def driver(database_of: Urls, clock: FakeClock) -> AsyncIterator[SlackDriver]:
    async with in_slack(database_of("nod"), clock) as driver:
        yield driver


@asynccontextmanager
async def in_slack(
    url: str, clock: Clock, *, elsewhere: bool = False, slack: FakeSlack | None = None, **changes: str
) -> AsyncIterator[SlackDriver]:
    slack = slack or FakeSlack()
    slack.now = clock
    await slack.start()

    def settings() -> Settings:
        values: dict[str, Any] = {
            "NOD_DATABASE_URL": url,
            "NOD_PORT": 0,
            "NOD_ADMINS": f"slack:T1/{ANA}",
            "NOD_APPROVERS": f"slack:T1/{BEN}",
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
            "SLACK_API_URL": slack.url,
        }
        return Settings(_env_file=None, **values | changes)

    world = World(
        settings,
        lambda app: SlackChannel(app.settings, app.database, app.clock),
        clock,
        make_tables,
        elsewhere,
    )
    await world.start()
    await slack.until(lambda: slack._socket)
    yield SlackDriver(slack, world)
    await world.stop()
    await slack.stop()


class TestSlack(Contract, PlacesContract):
    """Every scenario of the contract."""

    async def test_home_follows_proposals_that_never_were_in_slack(self, driver: SlackDriver) -> None:
        home = {"type": "app_home_opened", "user": ANA, "channel": driver.slack.dm(ANA), "tab": "home"}
        await driver.slack.deliver_event(home)
        driver.world.script(Says("Shall I?", (note("milk"),)))
        web = Actor("http", "ci")
        await driver.world.app.core.assistant.handle(Message(Address("http", "ci/1"), web, "note milk", "e1"))
        await eventually(lambda: "Note milk" in str(driver.slack.homes.get(ANA)), "the proposal at home")

        await driver.slack.click_home(ANA, "Decline")
        await eventually(lambda: "Declined by Ana" in str(driver.slack.homes[ANA]), "its end at home")
        assert driver.world.notes == []

    async def test_a_card_whose_post_was_not_answered_is_there_once_and_works(
        self, driver: SlackDriver
    ) -> None:
        driver.world.script(Says("Shall I?", (note("milk"),)))
        driver.slack.fail("chat.postMessage", cut_off=True, acts=True)
        await driver.say("note milk")
        await eventually(driver.cards, "the card")
        await driver.world.let_pass(timedelta(seconds=1))
        await driver.press(driver.cards()[0], Verb.APPROVE)
        await eventually(lambda: "Done" in driver.cards()[0].words, "its end")
        assert len(driver.cards()) == 1
        assert driver.world.notes == ["milk"]

    async def test_of_two_cards_of_one_proposal_the_forgotten_one_tells_the_end_too(
        self, driver: SlackDriver
    ) -> None:
        driver.world.script(Says("Shall I?", (note("milk"),)))
        driver.slack.fail("chat.postMessage", cut_off=True, acts=True)
        driver.slack.fail("conversations.replies", "missing_scope")
        await driver.say("note milk")
        await eventually(driver.cards, "the card")
        await driver.world.let_pass(timedelta(seconds=1))
        await eventually(lambda: len(driver.cards()) == 2, "the second card")
        await driver.press(driver.cards()[0], Verb.APPROVE)
        await eventually(lambda: all("Done" in card.words for card in driver.cards()), "the end on both")
        assert driver.world.notes == ["milk"]

    async def test_rules_take_people_and_channels_as_slack_names_them_and_here(
        self, driver: SlackDriver
    ) -> None:
        for words in (
            "approvers @Ben",
            "route #ops",
            "route here",
            "escalate 4h #ops",
            "escalate 4h here",
            "digest 09:00 here",
            "roles add @Cleo approver",
        ):
            answer = await driver.command(f"/approvals {words}")
            assert "is not" not in answer, answer
        assert "#ops" in await driver.command("/approvals rules")

    async def test_a_stop_does_not_wait_for_a_question_that_no_one_answers(self, driver: SlackDriver) -> None:
        """The call is told that no answer comes, and ends before the process does."""
        driver.world.script(Says("Shall I?", (("paint_as_asked", {}),)))
        await driver.say("paint it")
        await eventually(driver.cards, "the card")
        await driver.press(driver.cards()[0], Verb.APPROVE)
        await eventually(lambda: len(driver.cards()) == 2, "the question")
        await driver.world.restart()

        painted = driver.world.app.database.read_now(proposals.list_in_states, [State.SUCCEEDED])
        assert [each.tool_name for each in painted] == ["paint_as_asked"]
        assert "cancel" in str(painted[0].result)

    async def test_a_thread_is_followed_until_people_want_nod_only_when_it_is_mentioned(
        self, driver: SlackDriver
    ) -> None:
        driver.world.script(Says("Hello."), Says("I heard that."), Says("I heard this, too."))
        await driver.say("good morning")
        await hears(driver, "Hello.")
        await driver.world.app.dispatcher.wait_until_idle()
        first = next(m for m in driver.slack.in_channel("C1") if "Hello." in m.markdown)
        await driver.slack.click(first, "Only when mentioned", BEN)
        await eventually(lambda: "only when I'm mentioned" in str(driver.slack.posted[-1].words), "a word")
        await driver.slack.say(BEN, "lunch?", channel="C1", thread=first.thread)
        await driver.say("and now?")
        await hears(driver, "I heard that.")
        await driver.world.app.dispatcher.wait_until_idle()
        assert "> Ben: lunch?" in driver.world.model.was_told()
        second = next(m for m in driver.slack.in_channel("C1") if "I heard that." in m.markdown)
        assert not second.buttons
        await driver.slack.click(first, "Only when mentioned", BEN)
        await driver.slack.say(BEN, "what do you think?", channel="C1", thread=first.thread)
        await hears(driver, "I heard this, too.")

    async def test_words_that_need_a_thread_are_not_offered_and_say_why(self, driver: SlackDriver) -> None:
        offered = await driver.command("/nod help")
        assert "/nod status" in offered
        assert "/nod new" not in offered
        assert "/nod stop" not in offered
        assert "Write outside a thread" in await driver.command("/nod new")
