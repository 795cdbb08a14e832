"""A list in an admin command is taken or refused with the same words in Telegram and in Discord."""

import re

import pytest

from tests.contracts import test_discord, test_telegram
from tests.contracts.test_discord import in_discord
from tests.contracts.test_telegram import in_telegram
from tests.kit import FakeClock
from tests.kit.urls import Urls

pytestmark = pytest.mark.platform
LINES = (
    "policy always for note,print_lines",
    "policy forbid for probe_a, probe_b",
    "approvers {ben},{ana} for note",
    "approvers {ben};{ana} for note",
    "quorum 2 for note by {ben},{ana}",
    "roles add {ben},{ana} approver",
    "route {ben},{ana}",
    "escalate 4h {ben},{ana}",
    "remind 1h,2h",
)


async def test_a_list_in_a_command_is_answered_the_same_in_both(database_of: Urls, clock: FakeClock) -> None:
    said = []
    for opened, ben, ana in (
        (in_telegram, f"telegram:{test_telegram.BEN}", f"telegram:{test_telegram.ANA}"),
        (in_discord, f"discord:{test_discord.BEN}", f"discord:{test_discord.ANA}"),
    ):
        async with opened(database_of(opened.__name__), clock) as driver:
            answers = [await driver.command(f"/approvals {each.format(ben=ben, ana=ana)}") for each in LINES]
        names = (
            (ben, "BEN"),
            (ana, "ANA"),
            (f"<@{test_discord.BEN}>", "BEN"),
            (f"<@{test_discord.ANA}>", "ANA"),
        )
        for account, name in names:
            answers = [answer.replace(account, name) for answer in answers]
        said.append([re.sub("`", "", answer) for answer in answers])
    assert said[0] == said[1]
    assert [answer.startswith("Set: rule") for answer in said[0]] == ["approvers" in each for each in LINES]
