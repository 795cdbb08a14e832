"""A Nod in Slack and in Telegram, with two servers at which its people have accounts: all of it runs here."""

import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

from bot.app.app import App
from bot.app.assembly import build
from bot.channels.telegram.channel import TelegramChannel
from bot.channels.telegram.limits import ChatPace
from bot.domain.chat import Press, Reply
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.settings import Settings
from bot.store import proposals
from bot.testing.world import Says, ScriptedModel, eventually
from tests.contracts.test_telegram import FakeSeconds
from tests.fakes.slack_server import APP_TOKEN, BOT_TOKEN, FakeSlack
from tests.fakes.slack_state import Posted as SlackPost
from tests.fakes.telegram_server import TOKEN, FakeTelegram
from tests.fakes.telegram_state import Posted as TelegramPost
from tests.features.connections.conftest import KEY, Browser, entry, write_config
from tests.features.connections.hub import Hub
from tests.features.connections.tracker import Tracker
from tests.kit import FakeClock

GROUP = -100300  # in Telegram
_LINK = re.compile(r"http://127\.0\.0\.1:\d+/connect/[\w-]+")
_DIGITS = re.compile(r"<strong>(\d{6})</strong>")


@dataclass(frozen=True)
class Someone:
    """A person with an account in each chat; ``user`` is theirs at both servers."""

    name: str
    slack: str
    telegram: int
    user: str


ANA = Someone("Ana", "U7", 991, "octocat")
BEN = Someone("Ben", "U8", 992, "hubot")


@dataclass
class Office:
    """What runs, and what people do there. ``chat`` is the one in which they are now: slack or telegram."""

    url: str
    clock: FakeClock
    folder: Path
    more: dict[str, Any] = field(default_factory=dict)
    servers: dict[str, Any] = field(default_factory=dict)  # entries next to those two
    chat: str = "slack"
    slack: FakeSlack = field(default_factory=FakeSlack)
    telegram: FakeTelegram = field(default_factory=FakeTelegram)
    tracker: Tracker = field(default_factory=Tracker)
    hub: Hub = field(default_factory=Hub)
    model: ScriptedModel = field(default_factory=ScriptedModel)
    _app: App | None = None
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _thread: str | None = None

    @property
    def app(self) -> App:
        assert self._app is not None
        return self._app

    async def open(self) -> None:
        """Start the fakes, the servers and Nod."""
        self.slack.now = self.clock
        for each in (self.slack, self.telegram):
            await each.start()
        for one in (ANA, BEN):
            self.telegram.person(one.telegram, one.name)
        self.telegram.group(GROUP)
        await self.tracker.up()
        await self.hub.up()
        write_config(self.folder, tracker=entry(self.tracker), hub=self.hub.entry, **self.servers)
        await self.start()

    async def start(self) -> None:
        given: dict[str, Any] = {
            "NOD_DATABASE_URL": self.url,
            "NOD_PORT": 0,
            "NOD_MCP_CONFIG": self.folder / "mcp.json",
            "NOD_SECRET_KEY": KEY,
            "NOD_APPROVERS": f"slack:T1/{BEN.slack}, telegram:{BEN.telegram}",
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
            "SLACK_API_URL": self.slack.url,
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_API_URL": self.telegram.url,
            "TELEGRAM_ALLOWED_CHATS": f"{GROUP}, {ANA.telegram}, {BEN.telegram}",
        }
        self._app = build(
            Settings(_env_file=None, **{**given, **self.more}), model=self.model, clock=self.clock
        )
        seconds = FakeSeconds()
        pace = ChatPace(seconds, seconds.sleep)
        polling = self._app.settings.model_copy(update={"public_url": None})
        self._app.channels["telegram"] = TelegramChannel(polling, self._app.database, self._app.clock, pace)
        self._stack = AsyncExitStack()
        await self._stack.enter_async_context(self._app.running(ticking=False))
        await self.slack.until(lambda: self.slack._socket)

    async def restart(self) -> None:
        await self._stack.aclose()
        await self.start()

    async def close(self) -> None:
        try:
            await self._stack.aclose()
        finally:
            for each in (self.tracker, self.hub):
                await each.down()
            for fake in (self.slack, self.telegram):
                await fake.stop()

    # what people do

    async def say(self, who: Someone, text: str, *answers: Says) -> None:
        """Write in the thread, or the group, where both are; the model answers as it is told to."""
        self.model.answers.extend(answers)
        if self.chat == "slack":
            ts = await self.slack.mention(who.slack, text, thread=self._thread)
            self._thread = self._thread or ts
        else:
            await self.telegram.say(who.telegram, f"@nod_test_bot {text}", GROUP)
        if answers:
            await eventually(lambda: answers[0] not in self.model.answers, "the model's answer")
        await self.idle()

    async def whisper(self, who: Someone, text: str, *answers: Says) -> None:
        """Write in private."""
        self.model.answers.extend(answers)
        if self.chat == "slack":
            await self.slack.say(who.slack, text)
        else:
            await self.telegram.say(who.telegram, text)
        await eventually(lambda: not self.model.answers, "the model's last answer")
        await self.idle()

    async def command(self, who: Someone, line: str) -> str:
        """Send a command in private; what is answered."""
        name, _, words = line.partition(" ")
        if self.chat == "slack":
            return await self.slack.slash(who.slack, name, words, channel=self.slack.dm(who.slack))
        before = len(self.telegram.shown(who.telegram))
        await self.telegram.say(who.telegram, line)
        found = await eventually(lambda: self.telegram.shown(who.telegram)[before:], f"an answer to {line}")
        links = [str(entity["url"]) for each in found for entity in each.entities if entity.get("url")]
        return "\n".join([*(each.text for each in found), *links])

    async def find_digits(self, who: Someone, server: str) -> str:
        """Ask for a link in this chat and sign in; the number that the browser shows."""
        said = await self.command(who, f"/nod connections connect {server}")
        link = _LINK.search(said)
        assert link, said
        self.tracker.people.user = self.hub.user = who.user
        async with httpx.AsyncClient(timeout=20) as client:
            page = await Browser(link[0].partition("/connect/")[0], client).sign_in(link[0])
        digits = _DIGITS.search(page.text)
        assert digits, page.text
        return digits[1]

    async def connect(self, who: Someone, server: str) -> str:
        """Connect an account in this chat; what is answered at the end."""
        digits = await self.find_digits(who, server)
        await self.idle()
        return await self.command(who, f"/nod connections confirm {digits}")

    async def write_alone(self, who: Someone, text: str) -> None:
        """Write in private what no model answers."""
        if self.chat == "slack":
            await self.slack.say(who.slack, text)
        else:
            await self.telegram.say(who.telegram, text)
        await self.idle()

    async def see_alone(self, who: Someone, words: str) -> None:
        """Wait until this person reads that in private."""

        def read() -> str:
            if self.chat == "slack":
                there = self.slack.in_channel(self.slack.dm(who.slack))
                return "\n".join(f"{m.markdown} {m.text} {m.blocks}" for m in there)
            return "\n".join(m.text for m in self.telegram.shown(who.telegram))

        await eventually(lambda: words in read(), words)

    async def press(self, who: Someone, label: str, p: Proposal) -> None:
        """Press a button of a proposal's card, wherever this person has it, and wait for what comes of it.

        A platform takes a press before Nod has decided anything: the row changes then, or the person is told.
        """
        await self.idle()
        in_slack = self.chat == "slack"
        find = self._find_in_slack if in_slack else self._find_in_telegram
        card: Any = await eventually(lambda: find(who, label, p), label)
        before = self._trace(p)
        if in_slack:
            await self.slack.click(card, label, who.slack)
        else:
            await self.telegram.press(who.telegram, card, label)
        await eventually(lambda: self._trace(p) != before, f"an answer to {label}")
        await self.idle()

    def _trace(self, p: Proposal) -> tuple[int, int, int]:
        """What a press leaves: in the row, or as words to the person who pressed."""
        row = self.app.database.read_now(proposals.get, p.id)
        assert row is not None
        told = [each for each in self.telegram.queries.values() if each.answered and each.text]
        return row.version, len(self.slack.posted), len(told)

    def _find_in_slack(self, who: Someone, label: str, p: Proposal) -> SlackPost | None:
        there = [m for m in self.slack.posted if p.id in str(m.blocks) and label in m.buttons]
        mine = [m for m in there if m.channel == self.slack.dm(who.slack)]
        return (mine or there or [None])[-1]

    def _find_in_telegram(self, who: Someone, label: str, p: Proposal) -> TelegramPost | None:
        shown = [*self.telegram.shown(GROUP), *self.telegram.shown(who.telegram)]
        there = [m for m in shown if label in m.labels and p.id in str(m.buttons)]
        return (there or [None])[-1]

    async def allow(self, who: Someone, p: Proposal) -> None:
        """Approve it and allow calls like it for a day."""
        similar = {"lasting": GrantDuration.DAY, "reach": GrantAudience.REQUESTER}
        await self.send(who, Verb.SIMILAR, p, rung=GrantScope.TOOL, **similar)

    async def edit(self, who: Someone, p: Proposal, arguments: dict[str, Any]) -> None:
        """Change its arguments and approve that, as a form of the console does."""
        await self.send(who, Verb.APPROVE, p, arguments=arguments)

    async def send(self, who: Someone, verb: Verb, p: Proposal, **more: Any) -> Reply:
        """Send a press with all that a form would ask for."""
        account = f"T1/{who.slack}" if self.chat == "slack" else str(who.telegram)
        press = Press(Actor(self.chat, account, who.name), verb, p.id, p.round, **more)
        reply = await self.app.core.assistant.handle(press)
        await self.idle()
        return reply

    async def idle(self, passing: timedelta | None = None) -> None:
        """Let all work end, and then the sweeps; ``passing`` is the time that passes first."""
        await self.app.dispatcher.wait_until_idle()
        if passing is not None:
            self.clock.forward(passing)
            for sweep in self.app.sweeps:
                await sweep.run(self.clock())
        await self.app.core.reminders.send(self.clock())
        await self.app.core.recovery.recover(self.clock())
        await self.app.dispatcher.wait_until_idle()

    # what is seen

    def proposals(self, *states: State) -> list[Proposal]:
        found = self.app.database.read_now(
            lambda session: proposals.list_in_states(session, states or list(State), 100)
        )
        return sorted(found, key=lambda p: (p.message_id, p.position))

    async def find_open(self, many: int = 1) -> list[Proposal]:
        """Wait until so many proposals are open."""

        def find() -> list[Proposal]:
            found = self.proposals(State.PROPOSED)
            return found if len(found) == many else []

        return list(await eventually(find, f"{many} open proposals"))

    async def expect(self, *calls: tuple[str, str, str]) -> None:
        """Wait until these calls were made, in any order, and no others."""
        await eventually(lambda: len(self.calls()) >= len(calls), f"{calls}")
        await self.idle()
        assert sorted(self.calls()) == sorted(calls)

    def calls(self) -> list[tuple[str, str, str]]:
        """Who did what at which server, without what Nod asks by itself."""
        both = [("tracker", self.tracker.log), ("hub", self.hub.log)]
        return [(who, server, tool) for server, log in both for who, tool, _ in log if tool != "get_me"]

    def forget_calls(self) -> None:
        self.tracker.log.clear()
        self.hub.log.clear()

    def secrets(self) -> Sequence[str]:
        return [*self.tracker.people.seen, *self.hub.seen]
