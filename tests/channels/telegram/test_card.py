"""Cards: whatever they hold, Telegram accepts them; what they leave out is one button away."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from telegram import MessageEntity

from bot.channels.telegram.buttons import ButtonAction, ButtonData
from bot.channels.telegram.card import make_keyboard, render_card, render_everything
from bot.domain import kinds
from bot.domain.cards import Group
from bot.domain.deciders import DeciderNames
from bot.domain.people import Actor
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import State, Tone
from bot.domain.verbs import Verb
from tests.channels.telegram.core import done, make_card
from tests.fakes.telegram_rules import check_markup, check_text
from tests.kit.examples import examples


def labels(markup):
    buttons = [b for row in markup.inline_keyboard for b in row] if markup else []
    return [b.text for b in buttons if "disabled" not in b.api_kwargs]


def accepted(rich, markup):
    assert rich.text.split("\n")[0].strip()
    check_text(rich.text, [e.to_dict() for e in rich.entities])
    check_markup(markup.to_dict() if markup else None)


def test_a_pending_card_says_what_why_who_and_until_when():
    view = render_card(
        make_card(votes=("Ben: approve",), quorum=2, notes=("Edited by Ben before approval.",))
    )
    for words in (
        "Close issue #7",
        "Why: You asked me to",
        "state: open → closed",
        "Asked by Ana · expires 3 Mar, 09:00 UTC",
        "Can decide: Ana or any admin",
        "• Ben: approve",
        "Edited by Ben",
    ):
        assert words in view.rich.text
    assert not view.is_cut


def test_a_resolved_card_folds_to_what_who_when_and_the_result():
    view = render_card(done(make_card()))
    assert view.rich.text == "✅ Close issue #7\n\nDone. Approved by Ana · 2 Mar, 09:05 UTC\nclosed"
    told = render_card(
        done(make_card(), result_sentence="Closed issue #7", result="", outcome="Approved by Ana.")
    )
    assert told.rich.text == "✅ Closed issue #7\n\nApproved by Ana · 2 Mar, 09:05 UTC"
    assert labels(view.keyboard) == ["Open", "Details"]


def test_people_in_telegram_who_may_decide_are_mentioned_and_others_named():
    ben, cleo = Actor("telegram", "992", "Ben"), Actor("slack", "T1/U9", "Cleo")
    view = render_card(make_card(decider_names=DeciderNames((ben, cleo, "any admin"))))
    assert "Can decide: Ben, Cleo or any admin" in view.rich.text
    assert [e.user.id for e in view.rich.entities if e.type == "text_mention"] == [992]
    assert not [
        e for e in render_card(done(make_card(decider_names=DeciderNames((ben,))))).rich.entities if e.user
    ]


def test_a_copy_elsewhere_names_where_it_was_asked():
    assert (
        "Asked by Ana in #ops in Slack · expires"
        in render_card(make_card(asked_in="#ops in Slack")).rich.text
    )


def times(view):
    found = [e for e in view.rich.entities if e.type == "date_time"]
    return [(e.unix_time, e.date_time_format) for e in found]


def test_a_change_of_one_word_takes_five_lines():
    card = make_card(
        title="Change priority of issue #4 “Invoices are sent twice”",
        reason="Requested: “Change priority of #4 to low”",
        fields=(PreviewField("Priority", "urgent", "low"),),
        asker_decides=True,
    )
    view = render_card(card)
    assert len(view.rich.text.split("\n")) <= 5
    assert "Requested" not in view.rich.text
    assert (
        len(render_card(done(card, result_sentence="Changed issue #4", result="")).rich.text.split("\n")) <= 3
    )


def test_rare_buttons_wait_behind_more():
    card = make_card(verbs=(Verb.APPROVE, Verb.DECLINE, Verb.EDIT, Verb.EXTEND, Verb.SIMILAR))
    assert labels(render_card(card).keyboard) == ["Approve", "Decline", "Edit", "⋯ More"]
    more = labels(render_card(card, shows_more=True).keyboard)
    assert more[3:] == ["Approve similar", "Extend", "Decline with a reason", "Copy ID"]


def test_of_a_long_text_the_changed_lines_are_shown_and_no_others():
    old = [f"line {n}" for n in range(1, 41)]
    new = [*old[:19], "line 20, changed", *old[20:]]
    view = render_card(make_card(fields=(PreviewField("Body", "\n".join(old), "\n".join(new)),)))
    assert not view.is_cut
    for words in (
        "… 17 lines stay the same",
        "  line 19",
        "- line 20\n+ line 20, changed",
        "  line 22\n… 18",
    ):
        assert words in view.rich.text
    assert "line 10" not in view.rich.text


def test_times_are_shown_by_the_readers_own_app():
    card = make_card()
    assert times(render_card(card)) == [(card.expires_at, "r")]
    assert times(render_card(done(card))) == [(done(card).decided_at, "dt")]
    expired = done(card, state=State.EXPIRED, outcome="Expired.", decided_at=None)
    assert times(render_card(expired)) == [(card.expires_at, "dt")]
    assert "Decided" not in render_card(expired).rich.text


def test_the_first_line_is_what_would_run():
    assert render_card(make_card()).rich.text.startswith("🟡 Close issue #7\n")
    assert render_card(done(make_card())).rich.text.startswith("✅ Close issue #7\n")


def test_a_long_reason_does_not_take_approve_away():
    view = render_card(make_card(reason="because " * 100, decider_names=DeciderNames(("Ana " * 100,))))
    assert not view.is_cut
    assert "cut here" not in view.rich.text
    assert labels(view.keyboard)[0] == "Approve"
    assert labels(view.keyboard)[-1] == "View all"


def test_a_card_that_shows_everything_offers_no_view_of_all():
    assert "View all" not in labels(render_card(make_card(reason="because " * 30)).keyboard)


def test_a_title_that_was_cut_holds_approve_back():
    assert labels(render_card(make_card(title="x" * 500)).keyboard)[0] == "View all"


def test_a_failed_card_offers_retry():
    card = done(make_card(), state=State.FAILED, tone=Tone.BAD, verbs=(Verb.RETRY,), result_url=None)
    assert labels(render_card(card).keyboard) == ["Retry", "Details"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (None, "x", "f: x"),
        ("x", None, "f: x → (removed)"),
        ("", "x", "f: (empty) → x"),
        ("a", "b\nc", "f:\n- a\n+ b\n+ c"),
        ("a" * 70, "b", f"f now:\n{'a' * 70}\nf will be:\nb"),
        (None, "b\nc", "f:\nb\nc"),
        ("a\nb", None, "f (removed):\na\nb"),
        (None, " ", "f: ' '"),
    ],
)
def test_old_and_new_are_told_apart(old, new, words):
    assert words in render_card(make_card(fields=(PreviewField("f", old, new),))).rich.text


def test_what_is_long_is_folded_and_cut_only_where_a_message_is_full():
    view = render_card(make_card(fields=(PreviewField("f", None, "word " * 480),)))
    assert not view.is_cut
    assert MessageEntity.EXPANDABLE_BLOCKQUOTE in [e.type for e in view.rich.entities]
    assert not render_card(make_card(fields=(PreviewField("f", None, "a\n" * 30),))).is_cut
    view = render_card(make_card(fields=(PreviewField("f", None, "word " * 900),)))
    assert view.is_cut
    assert labels(view.keyboard)[0] == "View all"


def test_a_verb_that_asks_for_words_is_a_button_without_being_known_here():
    view = render_card(make_card(verbs=(Verb.REASSIGN, Verb.APPROVE)), shows_more=True)
    assert labels(view.keyboard) == ["Approve", "Reassign", "Copy ID"]


def test_a_verb_that_needs_nothing_is_a_button_without_being_known_here():
    view = render_card(make_card(verbs=(Verb.EXPIRE, Verb.APPROVE)), shows_more=True)
    assert labels(view.keyboard) == ["Approve", "End the wait", "Copy ID"]


def test_a_card_without_a_preview_shows_its_arguments():
    assert "Number: 7" in render_card(make_card(fields=(), arguments={"number": 7})).rich.text


def test_what_is_cut_cannot_be_approved_before_it_was_viewed():
    card = make_card(
        fields=(PreviewField("f", None, "x" * 5000),),
        verbs=(*make_card().verbs, Verb.APPROVE_ALL, Verb.DECLINE_ALL),
        group=Group(3, 3, 5),
    )
    view = render_card(card)
    assert view.is_cut
    assert "cut here" in view.rich.text
    assert labels(view.keyboard)[0] == "View all"
    assert not {"Approve", "Approve all 3"} & set(labels(view.keyboard))
    assert {"Approve", "Approve all 3"} <= set(labels(make_keyboard(card, is_cut=True, is_viewed=True)))


def test_the_buttons_of_a_group_carry_the_sum_of_its_rounds():
    card = make_card(verbs=(Verb.APPROVE, Verb.APPROVE_ALL), group=Group(3, 2, 7))
    markup = render_card(card).keyboard
    assert markup is not None
    data = [ButtonData.parse(str(b.callback_data)) for row in markup.inline_keyboard for b in row]
    assert [(d.action, d.round) for d in data if d] == [
        (ButtonAction.APPROVE, 1),
        (ButtonAction.APPROVE_ALL, 7),
    ]


def test_hostile_text_is_only_text():
    view = render_card(make_card(title="**x** <b>y</b> [z](tg://a) \u202e", reason="`r`"))
    assert "**x** <b>y</b> [z](tg" in view.rich.text
    assert "\u202e" not in view.rich.text
    assert {e.type for e in view.rich.entities} <= {"bold", "italic", "code", "pre", "date_time"}


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
    verbs=st.lists(st.sampled_from(Verb), unique=True),
    round_=_ROUND,
)
@examples(60)
def test_any_card_is_accepted_and_whole(
    fields, title, reason, notes, votes, result, url, deciders, state, verbs, round_
):
    card = make_card(
        fields=tuple(PreviewField(long(f.field), long(f.old_value), long(f.new_value)) for f in fields),
        title=long(title),
        reason=long(reason),
        notes=tuple(map(long, notes)),
        votes=tuple(map(long, votes)),
        result=long(result),
        result_url=url,
        decider_names=DeciderNames((long(deciders),)),
        state=state,
        decided_at=None if state is State.PROPOSED else datetime(2026, 3, 2, tzinfo=UTC),
        verbs=tuple(verbs),
        round=round_,
        group=Group(2, 2, round_ + 1),
    )
    view = render_card(card)
    state_open = state is State.PROPOSED
    accepted(view.rich, view.keyboard)
    assert not view.is_cut or {"View all", "Details"} & set(labels(view.keyboard))
    assert (
        not view.is_cut or not state_open or not {"Approve", "Approve similar"} & set(labels(view.keyboard))
    )
    pieces = render_everything(card)
    for piece in pieces or []:
        accepted(piece, make_keyboard(card, is_cut=view.is_cut, is_viewed=True))


def test_a_servers_question_reads_as_a_question_and_is_filled_in():
    card = make_card(
        kind=kinds.FORM,
        title="lamps asks: Which color for desk?",
        tool_name="question:lamps:1a2b3c4d",
        risk_reason="lamps asks it while it works for you",
        reason="",
        fields=(PreviewField("color", None, None),),
        decider_names=DeciderNames(("Ana",)),
        verbs=(Verb.EDIT, Verb.APPROVE, Verb.DECLINE),
    )
    view = render_card(card)
    accepted(view.rich, view.keyboard)
    assert "lamps asks: Which color for desk?" in view.rich.text
    assert "lamps asks it while it works for you" in view.rich.text
    assert "Asked of Ana" in view.rich.text
    assert "Risk" not in view.rich.text
    assert labels(view.keyboard)[:3] == ["Send answer", "Decline", "Fill in"]


def test_an_address_a_server_wants_opened_is_shown_with_the_button_that_says_so():
    card = make_card(
        kind=kinds.FORM,
        schema={"type": "object", "properties": {}},
        fields=(PreviewField("open this address", None, "https://bank.example/login"),),
        verbs=(Verb.APPROVE, Verb.DECLINE),
    )
    view = render_card(card)
    assert "https://bank.example/login" in view.rich.text
    assert labels(view.keyboard)[:2] == ["Done, continue", "Decline"]
