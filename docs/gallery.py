# ruff: noqa: INP001 - a script, not a package
"""Cards in every state, each of a proposal that a real Nod made, ran and ended. ``pictures.py`` draws them.

``python docs/gallery.py`` prints the blocks' texts for Slack and the text for Telegram, to be read.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bot.agent.demo.model import DemoModel
from bot.agent.demo.team import REQUEST
from bot.app.app import App
from bot.app.assembly import build
from bot.channels.slack.card import render
from bot.channels.telegram.card import render_card
from bot.domain import kinds
from bot.domain.cards import Card
from bot.domain.chat import Address, Command, Message, Press
from bot.domain.conversations import AskedQuestion
from bot.domain.model import Entry, Finished, Part, StopReason, Text, ToolCall, ToolSpec
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.features.issues.samples import store_samples
from bot.settings import Settings
from bot.store import proposals, questions
from bot.telemetry import logs

ANA = Actor("slack", "T1/U7", "Ana")
BEN = Actor("slack", "T1/U8", "Ben")
_THREAD = Address("slack", "T1/C1/1.1")
_OPEN = [State.PROPOSED]
_SCRIPTS = {
    "tests.sh": "echo 'FAILED test_totals: 12.00 is not 11.99'; echo '41 passed, 1 failed'; exit 1\n",
    "migrate.sh": "echo 'Copied 1,000 of 8,000 rows'; echo 'Copied 1,204 of 8,000 rows'; sleep 60\n",
}


@dataclass
class Clock:
    now: datetime = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


class Runs:
    """A model that runs one command when it is written to, and the offline model otherwise."""

    name = "a model for pictures"

    def __init__(self) -> None:
        self._offline = DemoModel(0)
        self.argv: Sequence[str] = ()

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        if self.argv:
            call = ToolCall("run", "shell_run", json.dumps({"argv": list(self.argv)}))
            self.argv = ()
            yield Text("I'll run that once it is approved.")
            yield Finished(StopReason.FINISHED, (call,))
            return
        async for part in self._offline.stream(transcript, tools):
            yield part

    async def close(self) -> None:
        await self._offline.close()


class Studio:
    """A Nod whose people ask and decide, and the card of each proposal as it then stands."""

    def __init__(self, app: App, clock: Clock, model: Runs) -> None:
        self._app = app
        self._clock = clock
        self._model = model
        self._said = 0

    async def ask(self, words: str, *argv: str) -> list[Proposal]:
        """What is proposed, oldest first."""
        self._model.argv = argv
        self._said += 1
        before = {p.id for p in await self.opened()}
        message = Message(_THREAD, ANA, words, str(self._said), private=False)
        await self._app.core.assistant.handle(message)
        await self._app.dispatcher.wait_until_idle()
        return [p for p in await self.opened() if p.id not in before]

    async def press(self, proposal: Proposal, verb: Verb, by: Actor = BEN, **more: Any) -> None:
        """The press, minutes later, and all that follows from it."""
        await self.begin(proposal, verb, by, **more)
        await self._app.dispatcher.wait_until_idle()

    async def begin(self, proposal: Proposal, verb: Verb, by: Actor = BEN, **more: Any) -> None:
        self._clock.now += timedelta(minutes=4)
        await self._app.core.assistant.handle(Press(by, verb, proposal.id, **more))

    async def command(self, words: str) -> None:
        await self._app.core.assistant.handle(Command(BEN, "approvals", words, _THREAD))

    async def printed(self, proposal: Proposal) -> Card:
        """The card once its command has printed something."""
        while not (card := await self.card(proposal)).result:
            self._clock.now += timedelta(seconds=1)
            await asyncio.sleep(0.05)
        return card

    async def questions(self, proposal: Proposal) -> Sequence[AskedQuestion]:
        return await self._app.database.read(questions.list_of_proposal, proposal.id)

    async def expire(self) -> None:
        self._clock.now += timedelta(hours=25)
        await self._app.core.recovery.expire_due(self._clock.now)
        await self._app.dispatcher.wait_until_idle()

    async def card(self, proposal: Proposal) -> Card:
        return (await self._app.core.cards.load_card(proposal.id)).card

    async def opened(self) -> Sequence[Proposal]:
        found = await self._app.database.read(proposals.list_in_states, _OPEN)
        return sorted(found, key=lambda p: p.created_at)


@asynccontextmanager
async def studio() -> AsyncIterator[Studio]:
    with TemporaryDirectory() as folder:
        workspace = Path(folder) / "project"
        workspace.mkdir()
        for name, lines in _SCRIPTS.items():
            (workspace / name).write_text(lines)
        settings = Settings.load(
            NOD_DATABASE_URL=f"sqlite:///{folder}/nod.db",
            NOD_HOST="127.0.0.1",
            NOD_PORT=0,
            NOD_ADMINS=(str(BEN),),
            NOD_LOG_LEVEL="error",
            NOD_WORKSPACE=workspace,
            NOD_SHELL=True,
        )
        logs.configure(settings.log_level)
        clock, model = Clock(), Runs()
        app = build(settings, clock=clock, model=model)
        async with app.running(ticking=False):
            await app.database.write(store_samples, clock())
            yield Studio(app, clock, model)


async def states() -> tuple[dict[str, Card], AskedQuestion]:
    """One card in each state, by what it shows; and a question about the first, with its answer."""
    made: dict[str, Card] = {}
    async with studio() as nod:
        [asked] = await nod.ask("set #6 to urgent and give it to Ben")
        made["waiting"] = await nod.card(asked)
        await nod.press(asked, Verb.ASK, reason="What exactly would change?")
        [question] = await nod.questions(asked)
        await nod.command("pause")
        made["paused"] = await nod.card(asked)
        await nod.command("resume")
        await nod.press(asked, Verb.APPROVE)
        made["done"] = await nod.card(asked)
        await nod.press(asked, Verb.UNDO)
        made["undone"] = await nod.card(asked)
        [other] = await nod.ask("give #2 low priority")
        await nod.press(other, Verb.EDIT, arguments={**other.arguments, "priority": "normal"})
        made["edited"] = await nod.card(other)
        [word] = await nod.ask("rename #3 to 'Dark mode for the settings'")
        made["one word"] = await nod.card(word)
        await nod.press(word, Verb.DECLINE, reason="the old title is clearer")
        made["declined"] = await nod.card(word)
        [delete] = await nod.ask("delete #5")
        made["destructive"] = await nod.card(delete)
        [first] = await nod.ask("assign #4 to Ana")
        [second] = await nod.ask("assign #4 to Sam")
        await nod.press(first, Verb.APPROVE)
        await nod.press(second, Verb.APPROVE)
        made["changed"] = await nod.card(second)
        [close] = await nod.ask("close #5")
        await nod.press(delete, Verb.APPROVE)
        await nod.press(close, Verb.APPROVE)
        made["failed"] = await nod.card(close)
        [run] = await nod.ask("run the tests", "sh", "tests.sh")
        made["command"] = await nod.card(run)
        await nod.press(run, Verb.APPROVE)
        made["ended badly"] = await nod.card(run)
        [long] = await nod.ask("run the migration", "sh", "migrate.sh")
        await nod.begin(long, Verb.APPROVE)
        made["running"] = await nod.printed(long)
        await nod.press(long, Verb.STOP)
        made["stopped"] = await nod.card(long)
        group = await nod.ask("assign #3 to Ana and close #6 and give #1 low priority")
        made["group"] = max([await nod.card(p) for p in group], key=lambda card: bool(card.group))
        await nod.expire()
        made["expired"] = await nod.card(group[0])
        team = await nod.ask(REQUEST)
        [plan] = [p for p in team if p.kind is kinds.PLAN]
        made["plan"] = await nod.card(plan)
    return made, question


def texts(name: str, card: Card) -> str:
    """What Slack and Telegram show, to be read."""
    shown, view = render(card, "T1"), render_card(card)
    rows = view.keyboard.inline_keyboard if view.keyboard else ()
    lines = [f"===== {name}", f"Slack, {len(shown.blocks)} blocks; notification: {shown.text}"]
    lines += (f"   {json.dumps(block, ensure_ascii=False)}" for block in shown.blocks)
    lines += [f"Telegram, {len(view.rich.text.splitlines())} lines", view.rich.text]
    lines += ("   " + " ".join(f"[{each.text}]" for each in row) for row in rows)
    return "\n".join(lines)


if __name__ == "__main__":
    made, _ = asyncio.run(states())
    sys.stdout.write("\n\n".join(texts(*each) for each in made.items()) + "\n")
