"""The contract in Slack: a channel thread, over a real websocket."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.channels.slack.channel import SlackChannel
from bot.domain.cards import Action
from bot.domain.chat import Address, Message
from bot.domain.people import Actor
from bot.domain.similarity import Lasting, Rung
from bot.settings import Settings
from tests.conftest import FakeClock
from tests.contracts.driver import Seen
from tests.contracts.scenarios import Contract, note
from tests.contracts.world import Says, World, eventually
from tests.fakes.slack_server import APP_TOKEN, BOT_TOKEN, FakeSlack
from tests.fakes.slack_state import Modal, Posted

ANA, BEN, EVE = "U7", "U8", "U9"
REVIEW = "Read all, then approve"


class SlackDriver:
    ben = f"slack:T1/{BEN}"

    def __init__(self, slack: FakeSlack, world: World) -> None:
        self.slack = slack
        self.world = world
        self._thread: str | None = None

    async def say(self, text: str) -> None:
        self._thread = self._thread or None
        ts = await self.slack.mention(ANA, text, thread=self._thread)
        self._thread = self._thread or ts

    def cards(self) -> list[Seen]:
        return [_seen(m) for m in self.slack.cards("C1") if m.only_for is None and not _is_board(m)]

    def boards(self) -> list[str]:
        return [m.words for m in self.slack.cards("C1") if _is_board(m)]

    async def revise(self, card: Seen, words: str) -> None:
        await self._open(card, "Ask for changes", ANA)
        await self.slack.submit(ANA, {"What should change?": words})

    async def fill_in(self, card: Seen, name: str, text: str) -> None:
        await self._open(card, "Fill in", ANA)
        await self.slack.submit(ANA, {name: text})

    def texts(self) -> list[str]:
        return [m.markdown for m in self.slack.in_channel("C1") if m.markdown]

    def files(self) -> list[str]:
        return [m.file for m in self.slack.in_channel("C1") if m.file and m.thread == self._thread]

    def told(self, *, eve: bool = False) -> list[str]:
        user = EVE if eve else ANA
        return [
            m.words for m in self.slack.posted if m.only_for == user or m.channel == self.slack.dm(user)
        ] + [m.words for m in self.slack.modals if m.user == user and m.title == "Not done"]

    async def press(self, card: Seen, action: Action, *, eve: bool = False) -> None:
        await self._press(card, action, EVE if eve else ANA)

    async def ben_presses(self, card: Seen, action: Action) -> None:
        await self._press(card, action, BEN)

    async def _press(self, card: Seen, action: Action, user: str) -> None:
        label = _label(card.handle, action)
        if label != REVIEW:
            await self.slack.click(card.handle, label, user)
            return
        await self._open(card, label, user)
        await self.slack.submit(user)

    async def _open(self, card: Seen, label: str, user: str) -> Modal:
        """Press what opens a window, and wait for it."""
        before = len(self.slack.modals)
        await self.slack.click(card.handle, label, user)

        def opened() -> list[Modal]:
            return [m for m in self.slack.modals[before:] if m.user == user]

        return (await eventually(opened, f"a window after {label!r}"))[0]  # type: ignore[no-any-return]

    async def approve_similar(self, card: Seen, rung: Rung, lasting: Lasting) -> str:
        modal = await self._open(card, _label(card.handle, Action.SIMILAR), ANA)
        chosen = {}
        for label, value in (("What may run without asking", rung), ("How long", lasting)):
            options = modal.block_of(label)["element"]["options"]
            chosen[label] = next((o["text"]["text"] for o in options if o["value"] == value), None)
            if chosen[label] is None:
                raise LookupError(f"{value} is not among {options}")
        read = "\n".join([modal.words, *modal.choices])
        await self.slack.submit(ANA, chosen)
        return read

    async def command(self, line: str, *, eve: bool = False) -> str:
        name, _, words = line.partition(" ")
        return await self.slack.slash(EVE if eve else ANA, name, words)

    async def press_remembered(self, card: Seen, action: Action) -> None:
        remembered: dict[str, dict[str, Any]] = card.handle.remembered
        await self.slack.press(card.handle, remembered[_label_among(remembered, action)], ANA)

    async def read_all(self, card: Seen) -> str:
        modal = await self._open(card, "View all", ANA)
        modal.open = False
        return modal.words

    def refuse_cards(self) -> None:
        self.slack.fail("chat.postMessage", "is_archived", times=50)

    def fail_redraws(self, times: int) -> None:
        self.slack.fail("chat.update", "internal_error", times=times)


def _label_among(labels: Any, action: Action) -> str:
    wanted = {
        Action.APPROVE: ("Approve", "Approve plan", "Send the answer", REVIEW),
        Action.APPROVE_STEPS: ("Approve plan and its steps",),
        Action.DECLINE: ("Decline", "Reject"),
        Action.REVISE: ("Ask for changes",),
        Action.EDIT: ("Edit", "Fill in"),
        Action.RETRY: ("Retry",),
        Action.SIMILAR: ("Approve similar", f"{REVIEW} similar"),
    }.get(action)
    for label in labels:
        if wanted and label in wanted:
            return str(label)
        if not wanted and label.startswith(action.replace("_", " ").capitalize()):
            return str(label)
    raise LookupError(f"the card does not offer {action}: {list(labels)}")


def _is_board(message: Posted) -> bool:
    return bool(message.blocks) and message.blocks[0]["type"] == "plan"


def _label(message: Posted, action: Action) -> str:
    return _label_among(message.buttons, action)


def _seen(message: Posted) -> Seen:
    actions = []
    for action in Action:
        try:
            _label(message, action)
        except LookupError:
            continue
        actions.append(action)
    if message.buttons:
        message.remembered = message.remembered or message.buttons
    return Seen(message.words, tuple(actions), message)


@pytest.fixture
async def driver(tmp_path: Path, clock: FakeClock) -> AsyncIterator[SlackDriver]:
    slack = FakeSlack()
    await slack.start()

    def settings() -> Settings:
        values: dict[str, Any] = {
            "NOD_DATABASE_URL": f"sqlite:///{tmp_path / 'nod.db'}",
            "NOD_PORT": 0,
            "NOD_ADMINS": f"slack:T1/{ANA}",
            "NOD_APPROVERS": f"slack:T1/{BEN}",
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
            "SLACK_API_URL": slack.url,
        }
        return Settings(_env_file=None, **values)

    world = World(settings, lambda app: SlackChannel(app.settings, app.database, app.clock), clock)
    await world.start()
    await slack.until(lambda: slack._socket)
    yield SlackDriver(slack, world)
    await world.stop()
    await slack.stop()


class TestSlack(Contract):
    """Every scenario of the contract."""

    async def test_home_follows_proposals_that_never_were_in_slack(self, driver: SlackDriver) -> None:
        home = {"type": "app_home_opened", "user": ANA, "channel": driver.slack.dm(ANA), "tab": "home"}
        await driver.slack.deliver_event(home)
        driver.world.script(Says("Shall I?", (note("milk"),)))
        web = Actor("http", "ci")
        await driver.world.app.assistant.handle(Message(Address("http", "ci/1"), web, "note milk", "e1"))
        await eventually(lambda: "Note milk" in str(driver.slack.homes.get(ANA)), "the proposal at home")

        await driver.slack.click_home(ANA, "Decline")
        await eventually(lambda: "Declined by Ana" in str(driver.slack.homes[ANA]), "its end at home")
        assert driver.world.notes == []
