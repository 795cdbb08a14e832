"""Plans and the team's board in Telegram: within its limits for any content, in full before Approve."""

from hypothesis import given
from hypothesis import strategies as st

from bot.channels.telegram.card import make_keyboard, render_card
from bot.channels.telegram.screens import ask_words
from bot.channels.telegram.text import CARD_RENDERER
from bot.domain import kinds
from bot.domain.plans import Plan, list_plan_fields
from bot.domain.teams import TeammateState, TeamStatus
from bot.domain.verbs import BUTTONS, Verb
from tests.channels.slack.test_team import _teammates, mate
from tests.channels.telegram.core import make_card
from tests.channels.telegram.test_card import accepted, labels
from tests.fakes.telegram_rules import check_markup, check_text
from tests.kit.examples import examples

ACTIONS = (Verb.APPROVE, Verb.DECLINE, Verb.REVISE, Verb.APPROVE_STEPS, Verb.EXTEND)


def plan_card(steps=2, length=40):
    arguments = {
        "summary": "All lamps red",
        "steps": [{"description": f"{n} " + "x" * length, "tools": ["paint"]} for n in range(steps)],
    }
    return make_card(
        kind=kinds.PLAN, arguments=arguments, fields=list_plan_fields(Plan.of(arguments)), verbs=ACTIONS
    )  # fmt: skip


def test_a_short_plan_offers_all_four_answers():
    view = render_card(plan_card(), shows_more=True)
    accepted(view.rich, view.keyboard)
    shown = labels(view.keyboard)
    for label in ("Approve plan", "Reject", "Reject with a reason", "Ask for changes"):
        assert label in shown
    assert "Approve plan and its steps" in shown
    assert "2. 1 xxx" in view.rich.text


def test_a_plan_too_long_for_a_message_is_viewed_whole_before_it_or_its_steps_are_approved():
    card = plan_card(20, 900)
    view = render_card(card)
    accepted(view.rich, view.keyboard)
    assert not {"Approve plan", "Approve plan and its steps"} & set(labels(view.keyboard))
    below = labels(make_keyboard(card, is_cut=True, is_viewed=True))
    assert {"Approve plan", "Approve plan and its steps"} <= set(below)


@examples(60)
@given(st.lists(_teammates, max_size=30))
def test_a_board_fits_one_message_whatever_teammates_say(team):
    rich = CARD_RENDERER.team(TeamStatus("l", tuple(team)), "/team")
    check_text(rich.text, [e.to_dict() for e in rich.entities])


def test_a_board_says_how_each_stands():
    team = (
        mate("surveyor", TeammateState.DONE, outcome="5 are open.\nmore"),
        mate("painter", activity="Look"),
    )
    text = CARD_RENDERER.team(TeamStatus("l", team), "/team").text
    assert text.splitlines() == [
        "👥 Team: 2 teammates, 1 at work",
        "✅ surveyor: done",
        "    5 are open.",
        "⏳ painter: working",
        "    Look",
    ]


def test_what_should_change_is_asked_by_a_reply():
    from telegram import User

    screen = ask_words(User(1, "Ana", is_bot=False), BUTTONS[Verb.REVISE], "painter's plan")
    assert screen.asks_for_reply
    check_markup(screen.markup.to_dict())
