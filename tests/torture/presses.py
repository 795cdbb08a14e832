"""``python -m tests.torture.presses``: ten people press 300 buttons of twenty cards in one Telegram group.

Telegram's limits hold (20 a minute in a group, 30 a second over all; edits counted with sends), and a query
dies after 15 s. Seconds are of a clock that runs `SPEED` times as fast as the machine's.
"""

import asyncio
import contextlib
import os
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.channels.telegram.buttons import ButtonAction, ButtonData
from bot.channels.telegram.channel import TelegramChannel
from bot.channels.telegram.limits import ChatPace
from bot.domain.chat import Address, Incoming, Press, Reply
from bot.domain.verbs import Verb
from bot.errors import ChannelError
from bot.settings import Settings
from bot.store.database import Database
from tests.channels.telegram.core import PROPOSAL, FakeCore, done, make_card
from tests.fakes.telegram_server import TOKEN, FakeTelegram
from tests.kit import FakeClock
from tests.kit.tables import make_tables

SPEED = 2.0
GROUP = -100200
_HERE = Address("telegram", str(GROUP))
_PEOPLE = range(501, 511)
_EACH = 30
_CARDS = 20
_VERBS = (Verb.APPROVE, Verb.DECLINE, Verb.EDIT, Verb.EXTEND)
_PRESSED = (
    ButtonAction.APPROVE,
    ButtonAction.DECLINE,
    ButtonAction.APPROVE,
    ButtonAction.EDIT,
    ButtonAction.DECLINE_WITH_REASON,
    ButtonAction.MORE,
)


def _now() -> float:
    return time.monotonic() * SPEED


class _Pace:
    """The pace's own clock: until it is ``over`` that of the presses, then one that passes for who waits."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self._skipped = 0.0

    def now(self) -> float:
        return _now() + self._skipped

    async def sleep(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.over.wait(), seconds / SPEED)
            self._skipped += seconds


@dataclass
class Pressed:
    """What was seen; in seconds."""

    decisions: list[float] = field(default_factory=list)  # from the press until its row is asked for
    toasts: list[float] = field(default_factory=list)  # until the button is answered
    late: int = 0  # toasts after the query was dead
    over: int = 0  # requests above the limits
    forms: int = 0  # that went out

    def __str__(self) -> str:
        return (
            f"{len(self.toasts)} presses, {len(self.decisions)} of them decisions\n"
            f"slowest decision {max(self.decisions):6.2f} s\n"
            f"slowest toast    {max(self.toasts):6.2f} s ({self.late} after the query was dead)\n"
            f"over the limit   {self.over:6d}\n"
            f"forms shown      {self.forms:6d}\n"
        )


class _Core(FakeCore):
    """Decides, and has the card redrawn as its end does."""

    def __init__(self, database: Database, clock: FakeClock) -> None:
        super().__init__(database, clock)
        self.decided: dict[tuple[str, str], float] = {}  # by person and card, when
        self.redraws: set[asyncio.Task[None]] = set()
        self.refs: dict[str, str] = {}
        self.channel: TelegramChannel | None = None

    async def inbox(self, incoming: Incoming) -> Reply:
        if isinstance(incoming, Press) and incoming.verb in (Verb.APPROVE, Verb.DECLINE):
            self.decided.setdefault((incoming.actor.key, incoming.proposal_id), _now())
            task = asyncio.create_task(self._redraw(incoming.proposal_id))
            self.redraws.add(task)
            task.add_done_callback(self.redraws.discard)
        return await super().inbox(incoming)

    async def _redraw(self, proposal_id: str) -> None:
        card = self.cards[proposal_id]
        for view in (card, done(card)):
            try:
                if self.channel is not None:
                    await self.channel.redraw_card(_HERE, self.refs[proposal_id], view)
            except ChannelError:
                pass  # the chat's pace: delivery draws it later


async def run(folder: Path, seed: int = 1) -> Pressed:
    """Press, and say what was seen."""
    os.environ.setdefault("PTB_TIMEDELTA", "1")
    url = f"sqlite:///{folder}/nod.db"
    make_tables(url)
    clock = FakeClock()
    database = Database(url)
    core = _Core(database, clock)
    telegram = FakeTelegram()
    telegram.now = _now
    await telegram.start()
    telegram.group(GROUP)
    for person in _PEOPLE:
        telegram.person(person, f"P{person}")
    values: dict[str, Any] = {
        "TELEGRAM_BOT_TOKEN": TOKEN,
        "TELEGRAM_API_URL": telegram.url,
        "TELEGRAM_ALLOWED_CHATS": str(GROUP),
    }
    pace = _Pace()
    channel = TelegramChannel(
        Settings(_env_file=None, **values), database, clock, ChatPace(pace.now, pace.sleep)
    )
    core.channel = channel
    seen = Pressed()
    try:
        await channel.start(core.inbox, core)
        core.propose(make_card(verbs=_VERBS), _HERE)
        for number in range(_CARDS):
            ident = PROPOSAL[:-2] + f"{number:02d}"
            core.cards[ident] = make_card(verbs=_VERBS, proposal_id=ident, title=f"Open gate {number}")
            core.refs[ident] = await channel.post_card(_HERE, core.cards[ident])
        numbers = random.Random(seed)
        await asyncio.gather(*(_person(telegram, core, each, numbers, seen) for each in _PEOPLE))
        seen.over = telegram.over
        seen.forms = sum("Edit:" in each.text or "Reply with" in each.text for each in telegram.shown(GROUP))
    finally:
        telegram.now = None
        pace.over.set()
        await channel.stop()
        await telegram.stop()
    return seen


async def _person(
    telegram: FakeTelegram, core: _Core, person: int, numbers: random.Random, seen: Pressed
) -> None:
    cards = telegram.shown(GROUP, "Open gate")[:_CARDS]
    for _ in range(_EACH):
        at = numbers.randrange(_CARDS)
        ident = PROPOSAL[:-2] + f"{at:02d}"
        does = numbers.choice(_PRESSED)
        data = ButtonData(does, ident, 1).pack()
        begun = _now()
        core.decided.pop((str(person), ident), None)
        query = await telegram.begin_press(person, cards[at], data)
        await telegram.until(lambda query=query: query.answered)
        seen.toasts.append(_now() - begun)
        seen.late += query.too_old
        if does in (ButtonAction.APPROVE, ButtonAction.DECLINE):
            seen.decisions.append(core.decided[str(person), ident] - begun)
        await asyncio.sleep(numbers.uniform(1, 4) / SPEED)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(str(asyncio.run(run(Path(folder)))))


if __name__ == "__main__":
    main()
