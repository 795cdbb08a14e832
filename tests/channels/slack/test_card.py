"""A card says everything, obeys every limit for any content, and lets nothing hostile through."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.channels.base import Overview
from bot.channels.slack import screens
from bot.channels.slack.buttons import parse_value
from bot.channels.slack.card import render, render_briefly
from bot.channels.slack.change_blocks import render_field
from bot.channels.slack.home import render_home as home_view
from bot.channels.slack.screens import ModalSubject
from bot.domain import kinds
from bot.domain.card_rendering import render_card
from bot.domain.cards import Card
from bot.domain.deciders import Deciders
from bot.domain.people import Actor
from bot.domain.plans import Plan
from bot.domain.plans import list_plan_fields as plan_fields
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Vote
from bot.domain.risks import Level, Risk
from bot.domain.similarity import GrantAudience, GrantScope
from bot.domain.verbs import Verb
from tests.channels.slack.conftest import NOW, SCHEMA, make_proposal
from tests.fakes.slack_rules import check_blocks, check_view
from tests.fakes.slack_state import buttons_in, shown_text
from tests.kit.examples import examples

Factory = Callable[..., Card]

_hostile = st.one_of(
    st.text(max_size=200),
    st.text(st.characters(), max_size=60),
    st.sampled_from(["", " ", "\n", "\ud800", "\u202eabc", "<!channel>"]),
    st.sampled_from(["&", "😀", "_*[<&", "\n", " "]).map(lambda text: text * 4000),
    st.builds(lambda s, n: s * n, st.text(max_size=5), st.integers(0, 3000)),
)
_fields = st.builds(PreviewField, _hostile, st.none() | _hostile, st.none() | _hostile)
_votes = st.builds(
    Vote,
    st.just("x"),
    st.builds(Actor, st.just("s"), st.just("k"), _hostile),
    _hostile,
    _hostile,
    st.just(NOW),
)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | _hostile,
    lambda c: st.lists(c, max_size=3) | st.dictionaries(_hostile, c, max_size=3),
)

_cards = st.builds(
    lambda group, **p: replace(
        render_card(make_proposal(**p), SCHEMA, [make_proposal(id=str(n)) for n in range(group)]),
        expires_at=NOW,
    ),
    group=st.sampled_from([0, 3]),
    kind=st.sampled_from(
        [k for k in (*kinds.KINDS, kinds.QUESTION) if k is not kinds.PLAN]
    ),  # whose arguments have one shape
    description=_hostile,
    tool_name=_hostile,
    reason=_hostile,
    risk=st.builds(Risk, st.sampled_from(Level), _hostile),
    preview=st.lists(_fields, max_size=30).map(tuple),
    arguments=st.dictionaries(_hostile, _json, max_size=6),
    state=st.sampled_from(State),
    cause=st.none() | st.sampled_from(Cause),
    votes=st.lists(_votes, max_size=12).map(tuple),
    quorum=st.integers(1, 5),
    decided_by=st.none() | _hostile,
    decided_from=st.none() | _hostile,
    decided_at=st.sampled_from([None, NOW]),
    decline_reason=st.none() | _hostile,
    edited_by=st.none() | _hostile,
    values_changed=st.booleans(),
    result=st.none() | _hostile,
    error=st.none() | _hostile,
    result_url=st.none() | _hostile | st.just("https://example.org/" + "a" * 4000),
)

REACHES = [
    (GrantAudience.HERE, "*Ana* in the conversation where it was asked"),
    (GrantAudience.EVERYONE, "x" * 200),
]


@pytest.mark.slow
@examples(20)
@given(card=_cards)
def test_no_content_makes_a_card_a_modal_or_a_home_that_slack_refuses(card: Card) -> None:
    for rendered in (render(card), render_briefly(card)):
        check_blocks(rendered.blocks)
        assert 0 < len(rendered.text) < 4000
        assert "<!" not in rendered.text
        assert "<@" not in rendered.text
    subject = ModalSubject(card.proposal_id, card.round, "T1/C1/1700000000.000001")
    ladder = [
        (GrantScope.EXACT, card.title),
        (GrantScope.KEY, card.reason),
        (GrantScope.TOOL, card.tool_name),
    ]
    if allowed := screens.list_fitting_scopes(ladder):
        check_view(screens.make_grant_form(card, subject, allowed, REACHES, shows_change=True).view)
    check_view(screens.make_group_review([card] * 3, subject, "Approve all 3").view)
    check_view(screens.make_review(card, subject, may_approve=True).view)
    check_view(screens.make_words_form(card, Verb.DECLINE, subject))
    check_view(screens.make_edit_form(card, card.arguments, subject, "T1"))
    check_view(home_view(Overview((card,) * 30, (card,) * 30, (card,) * 30)))


def test_a_difference_of_many_lines_from_right_to_left_fits_its_block(card_factory: Factory) -> None:
    old = "\n".join("שלום" for _ in range(400))
    field = PreviewField("body", old, old.replace("שלום", "להתראות"))
    check_blocks(render(card_factory(preview=(field,))).blocks)


def _words(card: Card) -> str:
    return "\n".join(shown_text(render(card).blocks))


def test_a_pending_card_says_what_changes_why_who_decides_and_until_when(card_factory: Factory) -> None:
    words = _words(card_factory(quorum=2))

    for part in (
        "Change issue 7",
        "Title: Old roof → New roof",
        "Priority: low",
        "Why: Ana asked for it",
        "Changes an issue.",
        "Asked by Ana",
        "Can decide: Ana or any admin",
        "0 of 2 approvals so far",
        "<!date^1772528400^",
    ):
        assert part in words


def test_people_of_the_workspace_who_may_decide_are_mentioned_and_others_named(card_factory: Factory) -> None:
    people = ("slack:T1/U8", "slack:T2/U9", "telegram:991")
    card = card_factory(deciders=Deciders(requester=True, people=people))
    [footer] = [block for block in render(card, "T1").blocks if block["type"] == "context"]
    marked = {"type": "mrkdwn", "text": "Can decide: Ana, <@U8>, slack:T2/U9 or telegram:991"}
    assert footer["elements"][1] == marked
    assert "<@" not in json.dumps(render(card, "T3").blocks)
    ended = card_factory(state=State.EXPIRED, deciders=Deciders(requester=True, people=people))
    assert "<@" not in json.dumps(render(ended, "T1").blocks)


def test_a_persons_name_never_becomes_a_mention(card_factory: Factory) -> None:
    hostile = Actor("slack", "T1/U7", "<!channel> <@U9>")
    deciders = Deciders(requester=True, people=("slack:T1/U8",))
    card = replace(
        card_factory(requester=hostile, deciders=deciders), origin="slack:T1/C2", asked_in="<!here>"
    )
    [footer] = [block for block in render(card, "T1").blocks if block["type"] == "context"]
    asked, who, _ = (element["text"] for element in footer["elements"])
    assert asked == "Asked by &lt;!channel&gt; &lt;@U9&gt; in <#C2>"
    assert who == "Can decide: &lt;!channel&gt; &lt;@U9&gt; or <@U8>"


def test_one_who_may_not_approve_is_offered_to_ask_again_with_other_values(card_factory: Factory) -> None:
    card = card_factory()
    subject = ModalSubject("p1", 1, "T1/C1")
    view = screens.make_edit_form(card, card.arguments, subject, "T1", may_approve=False)
    check_view(view)
    assert "Approve as edited" not in json.dumps(view)
    assert view["submit"]["text"] == "Ask again"


def test_a_copy_elsewhere_leads_to_where_it_was_asked(card_factory: Factory) -> None:
    card = replace(card_factory(), origin="slack:T1/C2/17.1", asked_in="#ops")
    assert "Asked by Ana in <#C2>" in "\n".join(shown_text(render(card, "T1").blocks))
    assert "Asked by Ana in #ops" in "\n".join(shown_text(render(card, "T2").blocks))


def test_a_pending_card_offers_approve_decline_edit_and_more(card_factory: Factory) -> None:
    buttons = buttons_in(render(card_factory()).blocks)

    assert list(buttons) == [
        "Approve",
        "Decline",
        "Edit",
        "Decline with a reason",
        "Ask",
        "Approve similar",
        "Extend 24 h",
        "View all",
    ]
    assert buttons["Approve"]["action_id"] == "nod:approve"
    assert buttons["Approve"]["value"] == "p1:1"


def test_a_verb_that_asks_for_words_is_offered_and_asked_without_being_known_here(
    card_factory: Factory,
) -> None:
    card = card_factory()

    assert "reassign:p1:1" in str(render(replace(card, verbs=(*card.verbs, Verb.REASSIGN))).blocks)
    view = screens.make_words_form(card, Verb.REASSIGN, ModalSubject("p1", 1))
    check_view(view)
    assert "Who should decide?" in str(view)
    assert screens.find_words_verb(view["callback_id"]) is Verb.REASSIGN


def test_a_verb_that_needs_nothing_is_in_the_menu_without_being_known_here(card_factory: Factory) -> None:
    card = card_factory()

    shown = str(render(replace(card, verbs=(*card.verbs, Verb.EXPIRE))).blocks)

    assert "End the wait" in shown
    assert "expire:p1:1" in shown


def test_tally_four_eyes_and_edits_are_noted_on_the_full_and_on_the_brief_card(card_factory: Factory) -> None:
    deciders = Deciders(requester=True, roles=("admin",), four_eyes=True)
    card = card_factory(quorum=2, deciders=deciders, edited_by="Ben")

    for rendered in (render(card), render_briefly(card)):
        words = "\n".join(shown_text(rendered.blocks))
        assert "0 of 2 approvals so far." in words
        assert "but not Ana" in words
        assert "Edited by Ben before approval." in words


def test_what_ran_by_a_grant_or_unasked_says_so(card_factory: Factory) -> None:
    granted = card_factory(state=State.SUCCEEDED, decided_by="Ana's grant G-7", grant_id=7, decided_at=NOW)
    assert "Done. Approved by Ana's grant G-7" in _words(granted)
    assert list(buttons_in(render(granted).blocks)) == ["Details"]

    unasked = card_factory(
        state=State.SUCCEEDED, decided_by="policy (destructive)", rule_text="policy destructive"
    )
    assert "No one was asked: policy destructive." in _words(unasked)


def test_a_change_of_one_word_takes_four_blocks_and_its_end_two(card_factory: Factory) -> None:
    deciders = Deciders(requester=True, roles=("admin",))
    about = {
        "description": "Change priority of issue #4 “Invoices are sent twice”",
        "preview": (PreviewField("priority", "urgent", "low"),),
        "reason": "Requested: “Change priority of #4 to low”",
        "risk": Risk(Level.WRITE, ""),
        "deciders": deciders,
    }
    card = card_factory(**about)
    assert [block["type"] for block in render(card).blocks] == ["header", "rich_text", "context", "actions"]
    assert "Requested" not in _words(card)
    vote = Vote("x", Actor("slack", "T1/U7", "Ana"), "approve", None, NOW)
    ended = card_factory(**about, state=State.SUCCEEDED, decided_by="Ana", decided_at=NOW, votes=(vote,))
    assert [block["type"] for block in render(ended).blocks] == ["rich_text", "section"]


def test_a_field_that_the_title_quotes_is_not_shown_again(card_factory: Factory) -> None:
    preview = (
        PreviewField("title", None, "Printer is on fire", titled=True),
        PreviewField("priority", None, "normal"),
    )
    card = card_factory(description="Create issue “Printer is on fire”", preview=preview)
    assert "Title" not in _words(card)
    assert "Priority: normal" in _words(card)
    assert render(card).shows_all


def test_of_a_long_text_the_changed_lines_are_shown_and_no_others(card_factory: Factory) -> None:
    old = [f"line {n}" for n in range(1, 41)]
    new = [*old[:19], "line 20, changed", *old[20:]]
    rendered = render(card_factory(preview=(PreviewField("body", "\n".join(old), "\n".join(new)),)))
    words = "\n".join(shown_text(rendered.blocks))
    assert rendered.shows_all
    assert "- line 20\n+ line 20, changed" in words
    assert "line 10" not in words


@pytest.mark.parametrize("values", [("low", "high"), ("low\nnow", "low\nsoon")], ids=["words", "lines"])
def test_a_name_that_is_cut_is_one_click_away(card_factory: Factory, values: tuple[str, str]) -> None:
    assert render(card_factory(preview=(PreviewField("priority", *values),))).shows_all
    assert not render(card_factory(preview=(PreviewField("priority of it all " * 5, *values),))).shows_all


def test_a_value_that_takes_many_units_has_lines_of_its_own() -> None:
    assert len(render_field(PreviewField("mood", None, "x" * 100), 1000).lines) == 1
    assert len(render_field(PreviewField("mood", None, "😀" * 100), 1000).lines) == 2


def test_a_plan_is_a_numbered_list_with_its_tools(card_factory: Factory) -> None:
    steps = [
        {"description": "Look", "tools": []},
        {"description": "Give #4 to Sam", "tools": ["update_issue"]},
    ]
    arguments = {"summary": "Share the work", "steps": steps, "risks": "They may be away."}
    card = card_factory(kind=kinds.PLAN, arguments=arguments, preview=plan_fields(Plan.of(arguments)))
    check_blocks(render(card).blocks)
    [listed] = [
        e for block in render(card).blocks for e in block.get("elements", ()) if e["type"] == "rich_text_list"
    ]
    assert [len(item["elements"]) for item in listed["elements"]] == [1, 3]
    assert listed["elements"][1]["elements"][2] == {
        "type": "text",
        "text": "update_issue",
        "style": {"code": True},
    }
    assert "Risks: They may be away." in _words(card)


def test_the_first_card_of_a_group_offers_the_whole_group_above_it(card_factory: Factory) -> None:
    blocks = render(card_factory(group=3)).blocks
    buttons = buttons_in(blocks)

    assert [block["type"] for block in blocks[:3]] == ["context", "actions", "header"]
    assert buttons["Approve all 3"]["value"] == "p1:3"
    assert "Decline all 3" in buttons


def test_what_does_not_fit_is_counted_and_approves_only_through_view_all(card_factory: Factory) -> None:
    card = card_factory(preview=(PreviewField("body", None, "x" * 5000),))
    rendered = render(card)

    assert not rendered.shows_all
    assert "more characters]" in _words(card)
    assert "View all shows everything" in _words(card)
    buttons = buttons_in(rendered.blocks)
    assert "Approve" not in buttons
    assert buttons["View all, then approve"]["action_id"] == "nod:review"
    assert "View all" not in buttons


@pytest.mark.parametrize(
    ("state", "changes", "said", "buttons"),
    [
        (State.SUCCEEDED, {"decided_by": "Ana", "result": "Done: #7"}, "Done. Approved by Ana", []),
        (State.DECLINED, {"decided_by": "Ben", "decline_reason": "no"}, "Declined by Ben: no", []),
        (State.EXPIRED, {}, "Expired: no one decided in time", []),
        (State.CANCELLED, {"decided_by": "Ana", "cause": Cause.TAKEN_BACK}, "Withdrawn by Ana", []),
        (State.CANCELLED, {"cause": Cause.UNDELIVERABLE}, "Could not be delivered", []),
        (State.FAILED, {"decided_by": "Ana", "error": "HTTP 500"}, "Failed after Ana", ["Retry"]),
        (State.FAILED, {"decided_by": "Ana", "cause": Cause.OUTCOME_UNKNOWN}, "Outcome unknown", ["Retry"]),
        (State.EXECUTING, {"decided_by": "Ana"}, "Running…", ["Stop"]),
    ],
)
def test_each_end_says_so_and_leaves_its_details_and_retry(
    card_factory: Factory, state: State, changes: dict[str, Any], said: str, buttons: list[str]
) -> None:
    card = card_factory(state=state, decided_at=NOW, **changes)

    assert said in _words(card)
    assert "<!date^" in _words(card)
    assert list(buttons_in(render(card).blocks)) == ["Details", *buttons]


def test_a_result_link_is_shown_only_when_it_is_a_web_address(card_factory: Factory) -> None:
    def urls(url: str) -> list[str]:
        blocks = render(card_factory(state=State.SUCCEEDED, result_url=url)).blocks
        return [
            leaf["url"]
            for block in blocks
            for part in block.get("elements", [])
            for leaf in part.get("elements", [])
            if isinstance(leaf, dict) and leaf.get("type") == "link"
        ]

    assert urls("https://example.org/7") == ["https://example.org/7"]
    assert urls("javascript:alert(1)") == []
    assert urls("https://example.org/a|<!channel>") == []


def test_marks_that_turn_the_reading_direction_are_spelled_out(card_factory: Factory) -> None:
    card = card_factory(preview=(PreviewField("path", None, "safe\u202etxt.exe"),))

    assert "safe⟨U+202E⟩txt.exe" in _words(card)


def test_hostile_text_stands_only_where_slack_parses_nothing(card_factory: Factory) -> None:
    evil = "<!channel> *bold* <@U7>"
    card = card_factory(description=evil, reason=evil, preview=(PreviewField(evil, evil, evil),))

    def mrkdwn(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value["text"]] if value.get("type") in ("mrkdwn", "markdown") else []
            return own + [t for v in value.values() for t in mrkdwn(v)]
        return [t for v in value for t in mrkdwn(v)] if isinstance(value, list) else []

    assert all("channel" not in text and "bold" not in text for text in mrkdwn(render(card).blocks))


def test_a_button_value_that_is_not_ours_is_refused() -> None:
    assert parse_value("a:b:3") == ("a:b", 3)
    for value in ("", "p1", "p1:", ":1", "p1:x", "p1:-1"):
        with pytest.raises(ValueError, match="not one of ours"):
            parse_value(value)


def test_view_all_holds_every_character_and_approves_only_for_one_who_may(card_factory: Factory) -> None:
    body = "".join(f"line {n}\n" for n in range(2000))
    card = card_factory(preview=(PreviewField("body", None, body),))
    subject = ModalSubject("p1", 1)

    review = screens.make_review(card, subject, may_approve=True)
    assert not review.file
    assert body.replace("\n", "\n  ").split()[-1] in "".join(shown_text(review.view["blocks"]))
    assert "".join(shown_text(review.view["blocks"])).count("line ") >= 2000
    assert "submit" in review.view
    assert "submit" not in screens.make_review(card, subject, may_approve=False).view
    done = card_factory(state=State.SUCCEEDED)
    assert "submit" not in screens.make_review(done, subject, may_approve=True).view


def test_what_even_a_modal_cannot_hold_says_that_a_file_follows(card_factory: Factory) -> None:
    card = card_factory(preview=(PreviewField("body", None, "é" * 300_000),))

    review = screens.make_review(card, ModalSubject("p1", 1), may_approve=True)
    assert review.file
    assert "in the file" in "".join(shown_text(review.view["blocks"]))


def test_a_permission_too_long_for_a_radio_button_is_written_out_above(card_factory: Factory) -> None:
    long = "update_issue with path = " + "deep/" * 60
    ladder = screens.list_fitting_scopes(
        [(GrantScope.EXACT, "short"), (GrantScope.KEY, long), (GrantScope.TOOL, "x" * 5000)]
    )
    assert [rung for rung, _ in ladder] == [GrantScope.EXACT, GrantScope.KEY]

    view = screens.make_grant_form(
        card_factory(), ModalSubject("p1", 1), ladder, REACHES, shows_change=False
    ).view
    check_view(view)
    assert f"2. {long.strip()}" in "\n".join(shown_text(view["blocks"]))


def test_a_suggestion_offers_not_now_once(card_factory: Factory) -> None:
    card = card_factory(kind=kinds.SUGGESTION)
    [*_, actions] = render(card).blocks
    *buttons, menu = actions["elements"]
    assert [each["text"]["text"] for each in buttons] == ["Set this rule", "Not now"]
    assert [each["text"]["text"] for each in menu["options"]] == ["Never suggest this", "View all"]


def test_home_offers_reading_before_approving(card_factory: Factory) -> None:
    card = card_factory(reason="<!channel>")
    view = home_view(Overview((card,), (), ()))
    check_view(view)

    buttons = buttons_in(view["blocks"])
    assert "Approve" not in buttons
    assert buttons["Read, then approve"]["action_id"] == "nod:review"
    assert "Withdraw" not in buttons


def test_what_a_person_asked_for_and_may_decide_stands_at_home_once(card_factory: Factory) -> None:
    both, asked = card_factory(), card_factory(id="p2", description="Change issue 8")
    view = home_view(Overview((both,), (both, asked), ()))
    check_view(view)

    assert json.dumps(view).count("Change issue 7") == 1
    entries = [buttons_in([block]) for block in view["blocks"] if block["type"] == "actions"]
    assert entries[0]["Withdraw"]["selected_option"]["value"] == "cancel:p1:1"
    assert entries[1]["Withdraw"]["action_id"] == "nod:cancel"


QUESTION = {
    "kind": kinds.FORM,
    "tool_name": "question:lamps:1a2b3c4d",
    "call_id": "",  # no call of the model led to it
    "description": "lamps asks: Which color for desk?",
    "risk": Risk(Level.WRITE, "lamps asks it while it works for you"),
    "deciders": Deciders(requester=True),
    "arguments": {},
}


def test_a_servers_question_reads_as_a_question_and_is_filled_in(card_factory: Factory) -> None:
    schema = {"type": "object", "properties": {"color": {"enum": ["red", "blue"]}}, "required": ["color"]}
    card = card_factory(schema=schema, preview=(PreviewField("color", None, None),), **QUESTION)
    words = _words(card)
    assert "lamps asks: Which color for desk?" in words
    assert "lamps asks it while it works for you" in words
    buttons = buttons_in(render(card).blocks)
    assert buttons["Send answer"]["action_id"] == "nod:approve"
    assert buttons["Fill in"]["action_id"] == "nod:edit"
    assert {"Decline"} <= buttons.keys()
    assert not {"Approve", "Edit"} & buttons.keys()
    form = screens.make_edit_form(card, {}, ModalSubject("p1", 1), "T1")
    check_view(form)
    assert form["title"]["text"] == "Fill in"
    assert all(words in json.dumps(form["blocks"]) for words in ("Send it", "Keep it and send later"))
    home = buttons_in(home_view(Overview((card,), (), ()))["blocks"])
    assert "Read, then answer" in home


def test_an_address_a_server_wants_opened_is_shown_with_the_button_that_says_so(
    card_factory: Factory,
) -> None:
    url = PreviewField("open this address", None, "https://bank.example/login")
    card = card_factory(schema={"type": "object", "properties": {}}, preview=(url,), **QUESTION)
    assert "https://bank.example/login" in _words(card)
    assert {"Done, continue", "Decline"} <= buttons_in(render(card).blocks).keys()
    assert "Fill in" not in buttons_in(render(card).blocks)


def test_an_answered_question_and_an_approved_request_claim_nothing_of_what_others_do(
    card_factory: Factory,
) -> None:
    ended = {"state": State.SUCCEEDED, "decided_by": "Ana", "decided_from": "slack"}
    assert "Answered by Ana." in _words(card_factory(**QUESTION | ended))
    assert "Approved by Ana." in _words(card_factory(kind=kinds.REQUEST, **ended))
    assert "Done" not in _words(card_factory(kind=kinds.REQUEST, **ended))
