"""Cards: whatever they hold, Telegram accepts them; what they leave out is one button away."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.channels.telegram.callback import Callback, Does
from bot.channels.telegram.card import keyboard, rendered, whole
from bot.domain.cards import Action, Group, Tone
from bot.domain.proposals import Kind, PreviewField, State
from tests.fakes.telegram_rules import check_markup, check_text
from tests.telegram_channel.core import done, make_card


def labels(markup):
    return [b.text for row in markup.inline_keyboard for b in row] if markup else []


def accepted(rich, markup):
    assert rich.text.split("\n")[0].strip()
    check_text(rich.text, [e.to_dict() for e in rich.entities])
    check_markup(markup.to_dict() if markup else None)


def test_a_pending_card_says_what_why_who_and_until_when():
    view = rendered(make_card(votes=("Ben: approve",), quorum=2, notes=("Edited by Ben before approval.",)))
    for words in (
        "Close issue #7",
        "Risk: write, it changes something",
        "Agent's reason: You asked me to",
        "state: open → closed",
        "May decide: Ana or any admin",
        "Expires: 2026-03-03 09:00 UTC",
        "Votes:\n• Ben: approve",
        "Edited by Ben",
    ):
        assert words in view.rich.text
    assert not view.cut


def test_a_resolved_card_keeps_the_change_and_has_no_decision_left():
    view = rendered(done(make_card()))
    for words in (
        "open → closed",
        "Done. Approved by Ana",
        "Decided: 2026-03-02 09:05 UTC",
        "Result:\nclosed",
    ):
        assert words in view.rich.text
    assert labels(view.keyboard) == ["Open"]


def test_a_failed_card_offers_retry():
    card = done(make_card(), state=State.FAILED, tone=Tone.BAD, actions=(Action.RETRY,), result_url=None)
    assert labels(rendered(card).keyboard) == ["Retry"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (None, "x", "f: x"),
        ("x", None, "f: x → (nothing)"),
        ("", "x", "f: (empty) → x"),
        ("a", "b\nc", "f\nold:\na\n→ new:\nb\nc"),
        (None, "b\nc", "f:\nb\nc"),
        ("a\nb", None, "f\nold:\na\nb\n→ new:\n(nothing)"),
        (None, " ", "f: ' '"),
    ],
)
def test_old_and_new_are_told_apart(old, new, words):
    assert words in rendered(make_card(fields=(PreviewField("f", old, new),))).rich.text


def test_many_lines_are_cut_too():
    view = rendered(make_card(fields=(PreviewField("f", None, "a\n" * 30),)))
    assert view.cut
    assert view.rich.text.count("a\n") < 25
    assert labels(view.keyboard)[0] == "View all"


def test_an_action_of_tomorrow_is_not_offered_and_harms_nothing():
    view = rendered(make_card(actions=("snooze", Action.APPROVE)))
    assert labels(view.keyboard) == ["Approve"]


def test_a_card_without_a_preview_shows_its_arguments():
    assert "number: 7" in rendered(make_card(fields=(), arguments={"number": 7})).rich.text


def test_what_is_cut_cannot_be_approved_before_it_was_viewed():
    card = make_card(
        fields=(PreviewField("f", None, "x" * 5000),),
        actions=(*make_card().actions, Action.APPROVE_ALL, Action.DECLINE_ALL),
        group=Group(3, 3, 5),
    )
    view = rendered(card)
    assert view.cut
    assert "cut here" in view.rich.text
    assert labels(view.keyboard)[0] == "View all"
    assert not {"Approve", "Approve all (3)"} & set(labels(view.keyboard))
    assert {"Approve", "Approve all (3)"} <= set(labels(keyboard(card, cut=True, viewed=True)))


def test_the_buttons_of_a_group_carry_the_sum_of_its_rounds():
    card = make_card(actions=(Action.APPROVE, Action.APPROVE_ALL), group=Group(3, 2, 7))
    markup = rendered(card).keyboard
    assert markup is not None
    data = [Callback.parse(str(b.callback_data)) for row in markup.inline_keyboard for b in row]
    assert [(d.does, d.round) for d in data if d] == [(Does.APPROVE, 1), (Does.APPROVE_ALL, 7)]


def test_hostile_text_is_only_text():
    view = rendered(make_card(title="**x** <b>y</b> [z](tg://a) \u202e", reason="`r`"))
    assert "**x** <b>y</b> [z](tg" in view.rich.text
    assert "\u202e" not in view.rich.text
    assert {e.type for e in view.rich.entities} <= {"bold", "italic", "code", "pre"}


def long(words):
    """Only the word for it is drawn, so that a failure can still be read."""
    return words and words.replace("LONG", "long " * 900)


_WORDS = st.text(max_size=60) | st.text(alphabet="ab😀\n\u202e` ", max_size=60) | st.just("LONG")
_FIELDS = st.lists(st.builds(PreviewField, _WORDS, st.none() | _WORDS, st.none() | _WORDS), max_size=60)
_ROUND = st.integers(min_value=1, max_value=999)


@given(
    fields=_FIELDS,
    title=_WORDS,
    reason=_WORDS,
    notes=st.lists(_WORDS, max_size=12),
    votes=st.lists(_WORDS, max_size=12),
    result=_WORDS,
    url=st.none() | _WORDS | st.sampled_from(["https://example.com/7", "http://localhost/1", "https://[x"]),
    deciders=_WORDS,
    state=st.sampled_from(State),
    actions=st.lists(st.sampled_from(Action), unique=True),
    round_=_ROUND,
)
@settings(max_examples=60, deadline=None)
def test_any_card_is_accepted_and_whole(
    fields, title, reason, notes, votes, result, url, deciders, state, actions, round_
):
    card = make_card(
        fields=tuple(PreviewField(long(f.field), long(f.old_value), long(f.new_value)) for f in fields),
        title=long(title),
        reason=long(reason),
        notes=tuple(map(long, notes)),
        votes=tuple(map(long, votes)),
        result=long(result),
        result_url=url,
        deciders=long(deciders),
        state=state,
        decided_at=None if state is State.PROPOSED else datetime(2026, 3, 2, tzinfo=UTC),
        actions=tuple(actions),
        round=round_,
        group=Group(2, 2, round_ + 1),
    )
    view = rendered(card)
    accepted(view.rich, view.keyboard)
    assert view.cut == ("View all" in labels(view.keyboard))
    pieces = whole(card)
    for piece in pieces or []:
        accepted(piece, keyboard(card, cut=view.cut, viewed=True))


def test_a_servers_question_reads_as_a_question_and_is_filled_in():
    card = make_card(
        kind=Kind.QUESTION,
        title="lamps asks: Which color for desk?",
        tool_name="question:lamps:1a2b3c4d",
        risk_reason="lamps asks it while it works for you",
        reason="",
        fields=(PreviewField("color", None, None),),
        deciders="Ana",
        actions=(Action.EDIT, Action.APPROVE, Action.DECLINE),
    )
    view = rendered(card)
    accepted(view.rich, view.keyboard)
    assert "lamps asks: Which color for desk?" in view.rich.text
    assert "Question: lamps asks it while it works for you" in view.rich.text
    assert "Asked of: Ana" in view.rich.text
    assert "Risk" not in view.rich.text
    assert labels(view.keyboard)[:3] == ["Send the answer", "Decline", "Fill in"]


def test_an_address_a_server_wants_opened_is_shown_with_the_button_that_says_so():
    card = make_card(
        kind=Kind.QUESTION,
        schema={"type": "object", "properties": {}},
        fields=(PreviewField("open this address", None, "https://bank.example/login"),),
        actions=(Action.APPROVE, Action.DECLINE),
    )
    view = rendered(card)
    assert "https://bank.example/login" in view.rich.text
    assert labels(view.keyboard)[:2] == ["I have been there", "Decline"]
