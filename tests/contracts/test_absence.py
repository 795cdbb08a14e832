"""Someone away, and who stands in for them, in Slack and in Telegram."""

import pytest

from bot.domain.verbs import Verb
from bot.testing.steps import note, waiting
from bot.testing.world import Says, eventually
from tests.contracts import test_telegram
from tests.contracts.test_discord import DiscordDriver
from tests.contracts.test_slack import SlackDriver
from tests.contracts.test_telegram import TelegramDriver
from tests.fakes.slack_server import BOT_USER
from tests.fakes.telegram_state import BOT

pytestmark = pytest.mark.platform

ANA, EVE = "U7", "U9"


async def test_in_slack_cleo_decides_for_ana_while_she_is_away(slack: SlackDriver) -> None:
    await slack.command("/approvals approvers admin")
    said = await slack.command("/nod away @cleo until monday")
    assert said == (
        "You're away until Monday 9 Mar, 00:00 UTC. Cleo (<@U9>) may decide what you may, "
        "shown as “Cleo for Ana”. `/nod back` ends it."
    )
    slack.world.script(Says("Shall I?", (note("milk"),)))
    await slack.say("note milk")
    await eventually(slack.cards, "a card")
    assert "Can decide: any admin or Cleo for Ana" in slack.cards()[0].words
    await slack.press(slack.cards()[0], Verb.APPROVE, eve=True)
    await eventually(lambda: slack.world.notes == ["milk"], "the note")
    await eventually(lambda: "Approved by Cleo for Ana" in slack.cards()[0].words, "the end on the card")
    await slack.world.app.core.reminders.send(slack.world.clock())
    assert any("you may decide what they may" in m.words for m in slack.slack.in_channel(slack.slack.dm(EVE)))
    assert await slack.command("/nod back") == "Ended: Cleo for Ana."


async def test_in_slack_no_program_no_channel_and_no_one_whose_account_is_off_stands_in(
    slack: SlackDriver,
) -> None:
    slack.slack.users |= {BOT_USER: "Nod", "U8": "Dana"}
    slack.slack.records |= {BOT_USER: {"is_bot": True}, "U8": {"deleted": True}}
    for account in (f"slack:T1/{BOT_USER}", "slack:T1/U8", "slack:T1/C2"):
        said = await slack.command(f"/nod away {account} for 3d")
        assert said.startswith("I don't know ")
        assert " there. Have them write to me first, or name someone else." in said
    assert await slack.command("/nod away") == "No one is away."


async def test_in_telegram_neither_nod_nor_a_group_stands_in(telegram: TelegramDriver) -> None:
    for account in (f"telegram:{BOT['id']}", "telegram:-100200"):
        assert (await telegram.command(f"/nod away {account} for 3d")).startswith("I don't know ")


async def test_in_telegram_who_was_named_decides_in_private_without_being_let_in(
    telegram: TelegramDriver,
) -> None:
    zoe = 777
    telegram.telegram.person(zoe, "Zoe")
    telegram.world.script(Says("Shall I?", (note("milk"),)))
    await telegram.say("note milk")
    await eventually(telegram.cards, "a card")
    [proposal] = waiting(telegram)
    assert "Reassigned" in await telegram.command(f"/approvals reassign {proposal.id} telegram:{zoe}")
    await telegram.telegram.say(zoe, f"/start {proposal.id}")
    card = await telegram.telegram.see(zoe, "Can decide")
    await telegram.telegram.press(zoe, card, "Approve")
    await eventually(lambda: telegram.world.notes == ["milk"], "the note")
    await telegram.telegram.say(zoe, "thanks")
    await telegram.telegram.see(zoe, "We haven't met")


async def test_in_discord_a_guest_whom_nod_never_met_and_nod_itself_do_not_stand_in(
    discord: DiscordDriver,
) -> None:
    guest, nod = "900000000000000001", "900000000000000002"
    for each in (guest, nod):
        discord.discord.person(each, "Gil")
    discord.discord.flags[guest] = 1 << 4
    discord.discord.bots.add(nod)
    said = await discord.command(f"/nod away <@{guest}> for 3d")
    assert "is not part of this team, so they can't decide for you. Name someone else." in said
    for account in (nod, "111/222", "900000000000000003"):
        said = await discord.command(f"/nod away discord:{account} for 3d")
        assert said.startswith("I don't know ")


async def test_in_telegram_eve_decides_for_ana_while_she_is_away(telegram: TelegramDriver) -> None:
    await telegram.command("/approvals approvers admin")
    said = await telegram.command(f"/nod away telegram:{test_telegram.EVE} for 3d")
    assert said.startswith("You're away until Thursday 5 Mar, 09:00 UTC. ")
    telegram.world.script(Says("Shall I?", (note("milk"),)))
    await telegram.say("note milk")
    await eventually(telegram.cards, "a card")
    assert "for Ana" in telegram.cards()[0].words
    await telegram.press(telegram.cards()[0], Verb.APPROVE, eve=True)
    await eventually(lambda: telegram.world.notes == ["milk"], "the note")
    await eventually(lambda: "Approved by Eve for Ana" in telegram.cards()[0].words, "the end on the card")
