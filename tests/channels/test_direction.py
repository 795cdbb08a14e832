"""Cards in every script: each value has a direction of its own in each channel, and stays what it is."""

from typing import Any

import pytest

from bot.channels.discord import card as discord
from bot.channels.slack import card as slack
from bot.channels.telegram import card as telegram
from bot.domain.cards import Card
from bot.domain.preview import PreviewField
from bot.domain.text_direction import FIRST_STRONG_ISOLATE, POP_ISOLATE
from tests.channels.telegram.core import done, make_card
from tests.fakes.discord_rules import check_message
from tests.fakes.slack_rules import check_blocks
from tests.fakes.slack_state import shown_text
from tests.fakes.telegram_rules import check_text

pytestmark = pytest.mark.platform
HEBREW, ARABIC, JAPANESE, GERMAN = "מ-prod ל-test", "من prod إلى test", "本番からテストへ", "Größe ändern"
RIGHT_TO_LEFT = [HEBREW, ARABIC]


def in_slack(card: Card) -> str:
    shown = slack.render(card)
    check_blocks(shown.blocks, "message")
    return "".join(shown_text(shown.blocks))


def in_telegram(card: Card) -> str:
    made = telegram.render_card(card).rich
    check_text(made.text, [each.to_dict() for each in made.entities])
    return made.text


def in_discord(card: Card) -> str:
    message = discord.render(card).message
    check_message(message)
    return str(message["embeds"][0]["description"]).replace("\\", "")


CHANNELS: Any = pytest.mark.parametrize("shown", [in_slack, in_telegram, in_discord])


def make(value: str) -> Card:
    fields = (
        PreviewField("Title", None, value),
        PreviewField("Place", f"{value}!", value),
        PreviewField("Body", None, f"{value}\n- {value}"),
        PreviewField("Count", None, "5"),
    )
    return make_card(title=f"Move “{value}”, 2 files", reason=value, fields=fields, asked_by=value)


def apart(value: str) -> str:
    return f"{FIRST_STRONG_ISOLATE}{value}{POP_ISOLATE}"


@CHANNELS
@pytest.mark.parametrize("value", RIGHT_TO_LEFT)
def test_a_value_from_right_to_left_has_its_own_direction_wherever_it_stands(shown: Any, value: str):
    text = shown(make(value))
    assert f"Move “{apart(value)}”, 2 files" in text
    assert f"Why: {apart(value)}" in text.replace("**", "")
    assert f"{apart(f'{value}!')} → {apart(value)}" in text.replace("~", "")
    assert f"- {apart(value)}" in text
    assert text.count(value) == text.count(apart(value)) + text.count(f"{value}!{POP_ISOLATE}")
    assert apart(value) in shown(done(make(value), result_sentence=f"Moved “{value}”", result=value))


@CHANNELS
@pytest.mark.parametrize("value", [JAPANESE, GERMAN, "from prod to test"])
def test_a_card_without_such_letters_has_no_marks(shown: Any, value: str):
    text = shown(make(value))
    assert value in text
    assert FIRST_STRONG_ISOLATE not in text


@CHANNELS
@pytest.mark.parametrize("mark", ["\u202e", "\u2067", "\u2068", "\u2069", "\u200f", "\u061c"])
def test_an_argument_that_has_marks_of_direction_itself_shows_them(shown: Any, mark: str):
    text = shown(make(f"{mark}ab {HEBREW}{mark}"))
    assert f"{ord(mark):04X}" in text.upper()
    for line in text.split("\n"):
        assert line.count(FIRST_STRONG_ISOLATE) == line.count(POP_ISOLATE)
    assert mark in (FIRST_STRONG_ISOLATE, POP_ISOLATE) or mark not in text


@pytest.mark.parametrize("value", RIGHT_TO_LEFT)
def test_code_in_telegram_holds_the_value_alone(value: str):
    made = telegram.render_card(make(value)).rich
    units = made.text.encode("utf-16-le")
    code = [
        units[2 * each.offset : 2 * (each.offset + each.length)].decode("utf-16-le")
        for each in made.entities
        if each.type in ("code", "pre")
    ]
    assert value in code
    assert not any(FIRST_STRONG_ISOLATE in each or POP_ISOLATE in each for each in code)


@pytest.mark.parametrize("value", [*RIGHT_TO_LEFT, "plain"])
def test_no_button_carries_marks_in_what_it_sends(value: str):
    message = discord.render(make(value)).message
    sent = [each["custom_id"] for row in message["components"] for each in row["components"]]
    assert not any(FIRST_STRONG_ISOLATE in each for each in sent)
