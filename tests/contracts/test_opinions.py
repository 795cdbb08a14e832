"""A second opinion in each chat: its own line, late, escaped, in the person's language, and nothing else."""

import json
import re
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from sqlmodel import Session

from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.rule_values import Opinion, OpinionEffect, Subject
from bot.domain.rules import EVERYWHERE, Rule
from bot.domain.verbs import Verb
from bot.store import proposals, rules
from bot.testing.driver import SeenCard
from bot.testing.steps import cards, note
from bot.testing.world import Says, ScriptedModel, World, eventually
from tests.contracts.test_discord import DiscordDriver, in_discord
from tests.contracts.test_slack import SlackDriver, in_slack
from tests.contracts.test_telegram import TelegramDriver, in_telegram
from tests.kit import FakeClock
from tests.kit.urls import Urls

pytestmark = pytest.mark.platform

Chat = SlackDriver | TelegramDriver | DiscordDriver
NAME = "Second opinion (local)"
LINK = "https://evil.test/x"
NOTED = f"<{LINK}|Ben> **all** [{LINK}]({LINK}) @channel <!here> &amp; `code`"
SAID = f"écrit {NOTED} ; personne ne l'a demandé"


@pytest.fixture(params=[in_slack, in_telegram, in_discord], ids=["slack", "telegram", "discord"])
async def driver(request: pytest.FixtureRequest, database_of: Urls, clock: FakeClock) -> AsyncIterator[Chat]:
    async with request.param(database_of("nod"), clock) as driver:
        yield driver


async def ask(
    driver: Chat, raising: OpinionEffect = OpinionEffect.NEVER, asked: str = "unclear"
) -> tuple[Proposal, str]:
    """Ana has something noted, and another model says its words of it. Gives the card as it was before."""
    world, other = driver.world, ScriptedModel()
    other.name = "local"
    other.answers.append(Says(json.dumps({"does": SAID, "asked": asked, "concerns": []})))
    world.app.core.loop.models.by_name["local"] = other
    rule = Rule(0, Subject.OPINION, EVERYWHERE, "note", Opinion("local", raising))
    await world.app.database.write(rules.set_rule, rule, Actor("http", "chief"), world.clock())
    world.script(Says("Puis-je ?", (note(NOTED),)))
    await driver.say("note ce que je dis")
    (card,) = await cards(driver)
    assert NAME not in card.words
    return find_proposal(world), card.words


def find_proposal(world: World) -> Proposal:
    def find(session: Session) -> Proposal:
        (proposal,) = proposals.list_in_states(session, [State.PROPOSED])
        return proposal

    return world.app.database.read_now(find)


async def see_line(driver: Chat) -> SeenCard:
    await driver.world.let_pass(timedelta(seconds=1))
    await eventually(lambda: NAME in driver.cards()[0].words, "the line")
    await driver.world.let_pass(timedelta(seconds=1))
    return driver.cards()[0]


def count_edits(driver: Chat, card: SeenCard) -> int:
    """How often the message of the card was changed."""
    if isinstance(driver, SlackDriver):
        return int(card.handle.edits)
    if isinstance(driver, TelegramDriver):
        return int(card.handle.message.edits)
    path = f"channels/{card.handle.message.channel}/messages/{card.handle.message.id}"
    return sum(each == "PATCH" and path in to for each, to in driver.discord.requests)


def is_plain(driver: Chat, card: SeenCard) -> bool:
    """Tell if the platform shows the line as it is written: no link, no mention and no style in it."""
    handle = card.handle
    if isinstance(driver, SlackDriver):
        elements = [each for block in handle.blocks for each in block.get("elements", ())]
        [line] = [each for each in elements if NAME in str(each.get("text"))]
        return bool(line["type"] == "plain_text")
    if isinstance(driver, TelegramDriver):
        text, units = handle.message.text, len(SAID.encode("utf-16-le")) // 2
        before = len(text[: text.rindex(SAID)].encode("utf-16-le")) // 2
        there = [each for each in handle.message.entities if each["offset"] + each["length"] > before]
        return there == [{"type": "code", "offset": before, "length": units}]
    shown = handle.message.body["embeds"][0]["description"].splitlines()[-1]
    return re.search(r"(?<!\\)[`*_~|<>@\[\]]", shown.replace("**", "", 2)) is None and "https\\://" in shown


async def test_its_words_stand_on_the_card_escaped_and_change_nothing_that_is_pressed(driver: Chat) -> None:
    before, _ = await ask(driver)
    card = await see_line(driver)
    after = find_proposal(driver.world)
    line = next(each for each in card.words.splitlines() if NAME in each)
    assert line.replace(f"**{NAME}:**", f"{NAME}:").removeprefix("💬 ") == f"{NAME}: {SAID}"
    assert is_plain(driver, card)
    assert count_edits(driver, card) == 1
    assert (after.seen, after.round, after.digest) == (before.seen, before.round, before.digest)
    await driver.press(card, Verb.APPROVE)
    await eventually(lambda: driver.world.notes == [NOTED], "the note")
    await eventually(lambda: NAME in driver.cards()[0].words and "Done" in driver.cards()[0].words, "its end")


async def test_a_no_raises_where_the_rule_says_so_and_the_card_says_it_in_its_line(driver: Chat) -> None:
    await ask(driver, OpinionEffect.NO, "no")
    card = await see_line(driver)
    assert find_proposal(driver.world).quorum == 2
    assert "one more approval is needed" in card.words
