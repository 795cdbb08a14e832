"""The team's time zone: what people read and say is on its clock, whatever the server's is."""

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from bot.channels.card_text import card_text
from bot.channels.slack.blocks import footer
from bot.channels.telegram.text import TelegramTextBuilder
from bot.domain.chat import Address, Answer
from bot.domain.policy import Policy
from bot.domain.rulebook import Rulebook
from tests.kit import ADA, FakeClock, MakeNod, Nod, RecordingChannel, call

WALL = Address("wall", "wall")


@pytest.fixture
def nod(make_nod: MakeNod, clock: FakeClock) -> Nod:
    """In Auckland, 13 hours ahead: it is Monday, 2 March, 22:00 there and 09:00 in UTC."""
    nod = make_nod(admins=[ADA], policy=Policy(rulebook=Rulebook(zone=ZoneInfo("Pacific/Auckland"))))
    nod.channels["wall"] = RecordingChannel("wall")
    return nod


async def rule(nod: Nod, words: str) -> None:
    assert (await nod.command(f"/approvals {words}", by=ADA)).answer is Answer.ACCEPTED


async def test_a_card_tells_it_where_the_readers_app_does_not(nod: Nod) -> None:
    [p] = await nod.asked(call("paint", lamp="desk", color="red"))
    card = nod.chat.card_of(p)
    assert "expires 3 Mar, 22:00 NZDT" in card_text(card)
    assert "|3 Mar, 22:00 NZDT>" in str(footer(label="Expires", at=card.local_expires_at))
    assert TelegramTextBuilder().moment(card.local_expires_at).text == "3 Mar, 22:00 NZDT"
    await rule(nod, "pause")
    await nod.tick()
    assert "since 2 Mar, 22:00 NZDT" in card_text(nod.chat.card_of(p))


async def test_quiet_hours_are_theirs(nod: Nod) -> None:
    await rule(nod, "remind 2h")
    await rule(nod, "quiet 22:00 07:00")
    await nod.asked(call("paint", lamp="desk", color="red"))

    def reminded() -> int:
        return sum("Still waiting" in text for _, text in nod.chat.texts)

    await nod.tick(timedelta(hours=8))  # 06:00 there
    assert reminded() == 0
    await nod.tick(timedelta(hours=2))
    assert reminded() == 1


async def test_the_digest_comes_at_their_hour_once_on_their_day(nod: Nod) -> None:
    await rule(nod, f"digest 09:00 {WALL}")
    await nod.tick()  # 22:00: that hour is over today
    await nod.tick(timedelta(hours=10))
    assert len(nod.channels["wall"].texts) == 1
    await nod.tick(timedelta(hours=1))  # 09:00 of the next day
    assert len(nod.channels["wall"].texts) == 2
