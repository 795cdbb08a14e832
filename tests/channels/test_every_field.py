"""Whatever a tool, its arguments and its files hold: all of a change can be read before Approve works."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.channels.discord import card as discord
from bot.channels.slack import card as slack
from bot.channels.slack import screens
from bot.channels.telegram import card as telegram
from bot.cli import shared as terminal
from bot.domain.batches import batch_card
from bot.domain.call_text import format_call
from bot.domain.card_rendering import render_card
from bot.domain.cards import Card
from bot.domain.preview import PreviewField
from bot.domain.text import make_visible
from bot.tools.decorator import tool
from tests.domain.test_cards import make_proposal
from tests.fakes.slack_state import shown_text

pytestmark = pytest.mark.platform
FAMILY, SCRIPT = "👩‍👩‍👧", "क्ष"
NOISE = st.text(
    st.sampled_from("a *_`~|<@#>[]()\\:-\n\t\u202e\u200b\u2060\u00ad\ufeff\u3164é\u0301"), max_size=12
)
LONG = st.sampled_from(["", "", "", "x " * 60, "line\n" * 40, "w" * 900])


class Marks:
    """Words that stand nowhere else, one for each thing that must be readable."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self.made: list[str] = []

    def next(self) -> str:
        self.made.append(f"q{next(self._numbers)}z")
        return self.made[-1]


@st.composite
def told(draw: st.DrawFn, marks: Marks) -> str:
    return (
        draw(NOISE)
        + " "
        + marks.next()
        + " "
        + FAMILY
        + SCRIPT
        + draw(LONG)
        + draw(NOISE)
        + " "
        + marks.next()
    )


@st.composite
def objects(draw: st.DrawFn, marks: Marks, depth: int = 2) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for _ in range(draw(st.integers(1, 4))):
        kinds = [told(marks), st.lists(told(marks), min_size=1, max_size=3)]
        kinds += [objects(marks, depth - 1)] if depth else []
        name = marks.next() + draw(st.sampled_from(["", "_name", " of", ".", "<b>"]))
        made[name] = draw(st.sampled_from(kinds).flatmap(lambda kind: kind))
    return made


@st.composite
def changes(draw: st.DrawFn, marks: Marks) -> tuple[PreviewField, ...]:
    """Fields with what was there and what will be, texts of many lines among them."""
    found = []
    for n in range(draw(st.integers(0, 5))):
        lines = [draw(told(marks)) for _ in range(draw(st.integers(1, 3)))]
        old = draw(st.sampled_from([None, "before", "one\ntwo\nthree"]))
        end = draw(st.sampled_from(["", "\n", " ", "\r\n"]))
        found.append(PreviewField(f"field {n} {marks.next()}", old, "\n".join(lines) + end))
    return tuple(found)


@tool(summary="Keep a note")
async def keep(title: str, more: dict[str, Any]) -> str:
    """Keep a note."""
    return title + str(more)


def places(card: Card) -> Iterator[tuple[str, str, bool]]:
    """Where a card stands, how it reads there, and whether Approve works there without a further look."""
    in_slack = slack.render(card)
    yield "slack", "\n".join(shown_text(in_slack.blocks)), in_slack.shows_all
    in_telegram = telegram.render_card(card)
    yield "telegram", in_telegram.rich.text, not in_telegram.is_cut
    in_discord = discord.render(card)
    yield "discord", in_discord.message["embeds"][0]["description"], in_discord.shows_all


def unseen(text: str) -> str:
    """What people do not see in it, but for what the channels' own guards against markup are."""
    found: list[int] = []
    make_visible(text.replace("\u200b", ""), lambda point: found.append(point) or "")
    return " ".join(f"U+{point:04X}" for point in found)


@given(st.data())
def test_every_field_and_line_can_be_read_before_approve_works(data: st.DataObject) -> None:
    marks = Marks()
    arguments = {"title": data.draw(told(marks)), "more": data.draw(objects(marks))}
    of_arguments = len(marks.made)
    preview = data.draw(changes(marks))
    on_card = marks.made[of_arguments:]  # a tool's own preview says what its arguments come to
    if not preview:
        preview, on_card = asyncio.run(keep.preview_fields(arguments)), marks.made
    proposal = make_proposal(
        tool_name="keep", arguments=arguments, preview=preview, description="Keep a note"
    )
    card = render_card(proposal, keep.form_schema)
    everything = format_call(card)
    missing = [mark for mark in marks.made if mark not in everything.casefold()]
    assert not missing, everything
    assert FAMILY + SCRIPT in everything
    assert unseen(terminal.escape_for_terminal(everything)) == ""
    for place, text, whole in places(card):
        if whole:
            assert [mark for mark in on_card if mark not in text.casefold()] == [], (place, text)
        assert unseen(text) == "", place
    review = screens.make_review(card, screens.ModalSubject("p1", 1), may_approve=True)
    views = [] if review.file else ["".join(shown_text(review.view["blocks"]))]  # the rest is in a file
    if (pages := telegram.render_everything(card)) is not None:
        views.append("".join(each.text for each in pages))
    for view in views:
        assert [mark for mark in marks.made if mark not in view.casefold()] == [], view
        assert unseen(view) == ""
        assert FAMILY + SCRIPT in view


def test_a_note_of_a_row_can_be_read_to_its_end_before_approve_works() -> None:
    proposals = [make_proposal(id=f"p{n}", batch="p1", description=f"Give {n}") for n in (1, 2)]
    cards = [render_card(proposal, {}) for proposal in proposals]
    assert all(whole for _, _, whole in places(batch_card(proposals, cards)))
    note = f"Tried in a closed copy. It can't be applied: {'it is too large, ' * 10}and so on."
    card = batch_card(proposals, [cards[0], replace(cards[1], notes=(note,))])
    assert not any(whole for _, _, whole in places(card))
    assert note in format_call(card)
