"""What Nod shows in Discord is taken by Discord, whatever a card holds; and a button carries what it says."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.channels.discord import forms
from bot.channels.discord.card import render
from bot.channels.discord.inbound import COMPONENT, Interaction
from bot.channels.discord.places import MAX_CONTENT_UNITS, MAX_CUSTOM_ID_CHARS, DiscordPlace
from bot.channels.discord.presses import DiscordPresses
from bot.channels.discord.text import DiscordTextBuilder, literal, split, width
from bot.channels.markdown import open_fence
from bot.domain.cards import Group
from bot.domain.forms import fields_of
from bot.domain.people import Actor
from bot.domain.preview import PreviewField
from bot.domain.similarity import GrantAudience, GrantScope
from bot.domain.verbs import ButtonMark, Verb, Way
from tests.channels.telegram.core import done, make_card
from tests.fakes.discord_rules import check_message, check_window
from tests.kit.examples import examples

HOSTILE = st.text(alphabet=st.sampled_from("a *_`~|<@#>[]()\\\n😀\u202e:-"), max_size=900)


def labels(message):
    return [each["label"] for row in message["components"] for each in row["components"]]


@examples(60)
@given(HOSTILE, HOSTILE, HOSTILE, st.integers(0, 12))
def test_every_card_is_taken_by_discord(title, value, reason, fields):
    shown = tuple(PreviewField(f"{n}{title}"[:300], value, reason) for n in range(fields))
    card = make_card(
        title=title or "x", reason=reason, fields=shown, notes=(value,) * 6, votes=(reason,) * 6, quorum=2
    )
    for each in (card, done(card, result=value * 3, result_sentence=title, result_url="https://x.example/1")):
        check_message(render(each).message)


def test_a_card_that_shows_everything_is_approved_on_it_and_one_that_does_not_is_viewed_first():
    short = render(make_card())
    assert short.shows_all
    assert labels(short.message)[:2] == ["Approve", "Decline"]
    long = render(make_card(fields=(PreviewField("text", None, "x" * 5000),)))
    assert not long.shows_all
    assert labels(long.message)[0] == "View all"
    assert "Approve" not in labels(long.message)


def test_a_group_has_its_buttons_in_a_row_of_their_own():
    card = make_card(
        verbs=(Verb.APPROVE, Verb.DECLINE, Verb.APPROVE_ALL, Verb.DECLINE_ALL), group=Group(2, 2, 3)
    )
    *_, last = render(card).message["components"]
    assert [each["label"] for each in last["components"]] == ["Approve all 2", "Decline all 2"]
    assert ":3:" in last["components"][0]["custom_id"]


@given(
    st.sampled_from(Way), st.sampled_from(Verb), st.uuids(), st.integers(0, 999_999_999), st.integers(0, 99)
)
def test_a_button_reads_back_as_what_it_was(way, verb, ident, shown, page):
    mark = ButtonMark(way, verb, ident.hex, shown, page)
    assert ButtonMark.parse(mark.pack(MAX_CUSTOM_ID_CHARS)) == mark


@pytest.mark.parametrize(
    "sent", ["", "nod:press:approve:x", "nod:press:own:x:1:0", "nod:press:approve:x:-1:0", "x" * 200]
)
def test_what_no_button_of_ours_carries_is_not_read(sent):
    assert ButtonMark.parse(sent) is None


def test_an_id_that_would_not_read_back_is_refused_when_the_button_is_made():
    with pytest.raises(ValueError, match="does not fit"):
        ButtonMark(Way.PRESS, Verb.APPROVE, "a:b", 1).pack(MAX_CUSTOM_ID_CHARS)


@given(HOSTILE)
def test_literal_text_is_no_markup_and_loses_nothing(text):
    shown = literal(text)
    assert not re.search(r"(?<!\\)(?:\\\\)*[*_`~|<@]", shown)
    assert re.sub(r"\\([^0-9A-Za-z\s])", r"\1", shown).replace("⟨U+202E⟩", "\u202e") == text.replace(
        "\r\n", "\n"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("3. x\n  12. y", "3\\. x\n  12\\. y"),
        ("1.", r"1\."),
        ("1.5 kg", "1.5 kg"),
        ("at 3. x", "at 3. x"),
    ],
)
def test_a_number_at_the_start_of_a_line_begins_no_list(text, shown):
    assert literal(text) == shown
    assert DiscordTextBuilder().write(text, "code") == shown


@given(st.lists(st.sampled_from(["word ", "```py\n", "```\n", "\n\n", "x" * 700, "<@1> "]), max_size=30))
def test_long_text_is_split_into_posts_that_fit_with_every_code_block_closed(parts):
    posts = split("".join(parts))
    assert all(0 < width(post) <= MAX_CONTENT_UNITS for post in posts)
    assert "<@1>" not in "".join(posts)
    assert [post for post in posts[:-1] if open_fence(post)] == []


SCHEMA = {
    "properties": {
        "title": {"type": "string"},
        "count": {"type": "integer"},
        "state": {"enum": ["open", "closed"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "loud": {"type": "boolean"},
        "note": {"type": ["string", "null"]},
    },
    "required": ["title", "count"],
}
GIVEN = {"title": "Old", "count": 2, "state": "open", "tags": ["a", "b"], "loud": True, "note": "n"}


def test_a_form_is_shown_in_pages_of_five_that_discord_takes():
    first, second = forms.split_pages(fields_of(SCHEMA, GIVEN))
    for page, fields in enumerate((first, second)):
        check_window(forms.make_form(make_card(schema=SCHEMA), page, fields))
    assert [field.name for field in second] == ["note"]


class EditedSince:
    """The queries about a card whose arguments an edit has changed since it was shown."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._arguments = arguments

    async def card(self, *_: Any, **__: Any) -> Any:
        return make_card(schema=SCHEMA)

    async def arguments(self, *_: Any) -> dict[str, Any]:
        return self._arguments

    async def may_press(self, *_: Any) -> bool:
        return True


@pytest.mark.parametrize(
    ("edited", "asked_again"),
    [({"note": "x" * 5000}, False), ({"note": "n", "a": 1, "b": 2, "c": 3, "d": 4, "e": 5}, True)],
)
async def test_a_page_that_a_form_no_longer_has_is_not_opened(edited, asked_again):
    lookup: Any = EditedSince(GIVEN | edited)
    mark = ButtonMark(Way.FILL, Verb.EDIT, "p1", 1, page=7)
    pressed = Interaction(
        "1",
        COMPONENT,
        "t",
        Actor("discord", "101"),
        DiscordPlace("10", "20"),
        {"custom_id": mark.pack(MAX_CUSTOM_ID_CHARS)},
        None,
        {},
    )
    inbox: Any = None
    display = await DiscordPresses(inbox, lookup).handle(pressed)
    assert display.text.startswith("Which part?") is asked_again
    assert (display.modal is None) is asked_again


def test_a_form_changes_what_was_changed_and_says_what_does_not_fit():
    (first, second) = forms.split_pages(fields_of(SCHEMA, GIVEN))
    sent = {"0": "New", "1": "3", "2": ["1"], "3": "a\nb", "4": ["1"]}
    assert forms.read_form(first, sent, GIVEN) == (
        GIVEN | {"title": "New", "count": 3, "state": "closed", "loud": False},
        {},
    )
    assert forms.read_form(second, {"0": ""}, GIVEN) == (GIVEN | {"note": None}, {})
    assert forms.read_form(first, sent | {"1": "many"}, GIVEN)[1] == {"count": "Write a whole number."}


@given(HOSTILE)
def test_the_windows_for_words_and_for_similar_calls_are_taken(words):
    card = make_card(title=words)
    check_window(forms.ask_words(card, Verb.DECLINE))
    check_window(
        forms.ask_grant(
            card,
            [(each, words + each) for each in GrantScope],
            [(each, words + each) for each in GrantAudience],
        )
    )


TABLE = "| Name | Sum |\n|---|---:|\n| **Milk** | 1 |\n| [Bread](https://x.example/b) | 20 |\n"


def test_a_table_is_columns_that_people_can_read():
    (shown,) = split(f"So:\n\n{TABLE}\nEnd")
    assert shown == (
        "So:\n\n```\nName                        | Sum\n----------------------------+----\n"
        "Milk                        |   1\nBread (https://x.example/b) |  20\n```\n\nEnd"
    )


def test_a_wide_table_is_told_row_by_row_and_nothing_of_it_is_lost():
    wide = f"| Name | Why |\n|---|---|\n| a*b | {'because ' * 20}|\n| c | |\n"
    shown = "\n".join(split(wide))
    assert "**Name:** a\\*b" in shown
    assert f"**Why:** {'because ' * 19}because" in shown
    assert "|" not in shown


def test_each_message_of_a_table_names_its_columns():
    rows = "".join(f"| milk {number} | {number} |\n" for number in range(200))
    posts = split(f"| Name | Sum |\n|---|---|\n{rows}")
    assert len(posts) > 1
    for post in posts:
        first, names, rule, *_ = post.split("\n")
        assert (first, names.split()) == ("```", ["Name", "|", "Sum"])
        assert set(rule) == {"-", "+"}
    assert sum(post.count("milk") for post in posts) == 200


def test_a_table_in_code_and_the_arguments_of_a_card_stay_as_they_are():
    code = f"```\n{TABLE}```"
    assert split(code) == [code]
    shown = render(make_card(fields=(PreviewField("text", None, TABLE),))).message["embeds"][0]["description"]
    assert TABLE in shown
