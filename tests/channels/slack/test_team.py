"""Plans and the team's board: within Slack's limits for any content, in full before Approve."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.channels.slack.card import render
from bot.channels.slack.screens import ModalSubject, make_plan_review, make_words_form
from bot.channels.slack.team_blocks import brief_team, render_team
from bot.domain import kinds
from bot.domain.card_rendering import render_card
from bot.domain.cards import Card
from bot.domain.chat import Address
from bot.domain.plans import Plan, list_plan_fields
from bot.domain.teams import Teammate, TeammateState, TeamStatus
from bot.domain.verbs import Verb
from tests.channels.slack.conftest import NOW, Running, make_proposal
from tests.fakes.slack_rules import check_blocks, check_view
from tests.fakes.slack_state import buttons_in, shown_text
from tests.kit.examples import examples

THREAD = Address("slack", "T1/C1/1700.1")
_text = st.one_of(
    st.text(max_size=80), st.sampled_from(["<!channel>", "&" * 3000, "😀" * 900, " ", "\ud800"])
)
_teammates = st.builds(
    Teammate,
    id=st.uuids().map(str),
    lead_id=st.just("l"),
    name=_text,
    role=_text,
    task=_text,
    tools=st.none(),
    needs_plan=st.booleans(),
    rounds=st.integers(0, 5),
    stored_state=st.sampled_from(TeammateState),
    outcome=_text,
    created_at=st.just(NOW),
    ended_at=st.none(),
    activity=_text,
)


@pytest.fixture
def transport() -> str:
    return "http"


def mate(name: str = "painter", standing: TeammateState = TeammateState.WORKING, **more: str) -> Teammate:
    given = {"outcome": "", "activity": "", **more}
    return Teammate(
        name, "l", name, name, "task", None, needs_plan=False, rounds=0, stored_state=standing,
        created_at=NOW, ended_at=None, **given,
    )  # fmt: skip


def plan_card(steps: int = 2, length: int = 40) -> Card:
    arguments = {
        "summary": "All lamps red",
        "steps": [{"description": f"{n} " + "x" * length, "tools": ["paint", "look"]} for n in range(steps)],
    }
    return render_card(
        make_proposal(
            kind=kinds.PLAN,
            tool_name="plan_submit",
            arguments=arguments,
            preview=list_plan_fields(Plan.of(arguments)),
            description="Plan: All lamps red",
            teammate="painter",
        ),
        {},
    )


def test_a_short_plan_offers_all_four_answers_on_its_card():
    shown = render(plan_card())
    check_blocks(shown.blocks)
    assert shown.shows_all
    assert {"Approve plan", "Reject", "Ask for changes", "Approve plan and its steps"} <= set(
        buttons_in(shown.blocks)
    )
    assert "Reject with a reason" in buttons_in(shown.blocks)


def test_a_plan_too_long_for_a_card_is_read_whole_before_it_or_its_steps_are_approved():
    card = plan_card(20, 1900)
    shown = render(card)
    check_blocks(shown.blocks)
    labels = set(buttons_in(shown.blocks))
    assert {"View all, then approve plan", "View all, then approve plan and its steps"} <= labels
    assert not {"Approve plan", "Approve plan and its steps"} & labels
    review = make_plan_review(card, ModalSubject(card.proposal_id, 1), "what it allows", may_approve=True)
    check_view(review.view)
    assert "x" * 1900 in "".join(shown_text(review.view["blocks"])).replace("\n", "")


def test_asking_for_changes_is_a_window_that_slack_takes():
    check_view(make_words_form(plan_card(), Verb.REVISE, ModalSubject("p", 1)))


@examples(60)
@given(st.lists(_teammates, max_size=30))
def test_a_board_keeps_to_slacks_limits_whatever_teammates_say(team: list[Teammate]):
    board = TeamStatus("l", tuple(team))
    check_blocks(render_team(board).blocks)
    check_blocks(brief_team(board).blocks)


async def test_a_board_is_one_message_that_is_edited(running: Running) -> None:
    ref = await running.channel.show_team(THREAD, "", TeamStatus("l", (mate(activity="Look at lamp desk"),)))
    (posted,) = running.slack.cards("C1")
    assert posted.thread == "1700.1"
    assert "painter: working" in posted.words
    assert "Look at lamp desk" in posted.words
    done = TeamStatus("l", (mate(standing=TeammateState.DONE, outcome="All red."),))
    await running.channel.show_team(THREAD, ref, done)
    (posted,) = running.slack.cards("C1")
    assert posted.blocks[0]["tasks"][0]["status"] == "complete"
    assert "All red." in posted.words


async def test_a_slack_that_refuses_task_cards_gets_the_board_as_text(running: Running) -> None:
    running.slack.fail("chat.postMessage", "invalid_blocks")
    await running.channel.show_team(THREAD, "", TeamStatus("l", (mate(),)))
    (posted,) = running.slack.cards("C1")
    assert {block["type"] for block in posted.blocks} == {"rich_text"}
    assert "painter: working" in posted.words
