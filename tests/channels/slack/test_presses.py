"""Presses and modals reach the inbox with who, what and which round; every refusal is told to one person."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bot.domain.cards import Card
from bot.domain.chat import Address, Answer, Message, Press, Reply
from bot.domain.people import Actor
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import State
from bot.domain.risks import Level, Risk
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import Verb
from tests.channels.slack.conftest import Running, make_proposal
from tests.fakes.slack_state import Posted

Factory = Callable[..., Card]
THREAD = Address("slack", "T1/C1/1700.1")


@pytest.fixture
async def posted(running: Running, card_factory: Factory) -> Posted:
    """A pending card in a thread of #general."""
    return await _post(running, card_factory())


async def _post(running: Running, card: Card, address: Address = THREAD) -> Posted:
    running.core.cards[card.proposal_id] = card
    ref = await running.channel.post_card(address, card)
    return next(m for m in running.slack.posted if _ref(m) == ref)


async def _post_group(running: Running, card_factory: Factory, **bodies: str) -> Posted:
    """Three changes of one answer; ``bodies`` by proposal id make some of them long."""
    for ident in ("p2", "p3"):
        preview = (PreviewField("body", "", bodies.get(ident, "short")),)
        running.core.cards[ident] = card_factory(id=ident, preview=preview)
    return await _post(running, card_factory(group=3))


def _ref(posted: Posted) -> str:
    return f"T1/{posted.channel}/{posted.ts}"


def _press(running: Running) -> Press:
    assert isinstance(running.core.last, Press)
    return running.core.last


async def _told(running: Running, user: str) -> Posted:
    found = await running.slack.until(
        lambda: [m for m in running.slack.posted if m.only_for == user or m.channel == running.slack.dm(user)]
    )
    return found[-1]


@pytest.mark.parametrize(("label", "verb"), [("Approve", Verb.APPROVE), ("Decline", Verb.DECLINE)])
async def test_a_button_becomes_a_press_by_that_person_in_that_round(
    running: Running, posted: Posted, label: str, verb: Verb
) -> None:
    assert (await running.slack.click(posted, label, "U8")).status == 200

    await running.slack.until(lambda: running.core.got)
    assert _press(running) == Press(Actor("slack", "T1/U8"), verb, "p1", 1, address=THREAD, ref=_ref(posted))
    assert _press(running).actor.name == "Ben"


async def test_the_groups_buttons_press_for_the_group(running: Running, card_factory: Factory) -> None:
    posted = await _post_group(running, card_factory)
    await running.slack.click(posted, "Approve all 3")

    await running.slack.until(lambda: running.core.got)
    assert (_press(running).verb, _press(running).round) == (Verb.APPROVE_ALL, 3)


async def test_a_group_with_a_cut_card_is_approved_after_reading_all_of_all(
    running: Running, card_factory: Factory
) -> None:
    body = "_*[<&😀" * 900
    posted = await _post_group(running, card_factory, p2=body)
    await running.slack.click(posted, "Approve all 3")

    modal = await running.slack.until(lambda: running.slack.modals and running.slack.modals[0])
    assert running.core.got == []
    assert body in modal.words.replace("\n", "")
    for head in ("1 of 3", "2 of 3", "3 of 3"):
        assert head in modal.words
    await running.slack.submit("U7")
    assert _press(running) == Press(
        Actor("slack", "T1/U7"), Verb.APPROVE_ALL, "p1", 3, address=THREAD, ref=_ref(posted)
    )


async def test_a_forged_approve_all_on_a_card_without_that_button_is_refused(
    running: Running, posted: Posted
) -> None:
    action = posted.buttons["Approve"] | {"action_id": "nod:approve_all"}
    await running.slack.press(posted, action)

    assert "not affected" in (await _told(running, "U7")).words
    assert running.core.got == []


async def test_in_a_circle_of_anyone_there_the_place_of_the_card_counts(
    running: Running, card_factory: Factory
) -> None:
    running.core.circles = {str(THREAD)}
    long = card_factory(preview=(PreviewField("body", "", "x" * 9000),))
    posted = await _post(running, long)
    await running.slack.click(posted, "View all, then approve", "U8")
    await running.slack.until(lambda: running.slack.modals)
    await running.slack.submit("U8")

    assert _press(running).address == THREAD


async def test_approve_similar_offers_the_ladder_and_hands_the_choice_on(
    running: Running, posted: Posted
) -> None:
    await running.slack.click(posted, "Approve similar")
    modal = await running.slack.until(lambda: running.slack.modals and running.slack.modals[0])
    allowed = modal.block_of("What may run without asking")["element"]
    assert [o["text"]["text"] for o in allowed["options"]] == [
        "1. update_issue with exactly these arguments",
        "2. update_issue with any arguments",
    ]
    assert allowed["initial_option"]["value"] == "exact"
    running.core.reply = Reply(Answer.ACCEPTED, "Approved. G-1 now allows update_issue with any arguments.")
    await running.slack.submit(
        "U7",
        {
            "What may run without asking": "2. update_issue with any arguments",
            "Whose requests, and where": "Ana everywhere",
            "How long": "8 hours",
        },
    )

    assert _press(running) == Press(
        Actor("slack", "T1/U7"),
        Verb.SIMILAR,
        "p1",
        1,
        address=THREAD,
        ref=_ref(posted),
        rung=GrantScope.TOOL,
        lasting=GrantDuration.EIGHT_HOURS,
        reach=GrantAudience.REQUESTER,
    )
    assert "G-1 now allows" in modal.words


async def test_approve_similar_on_a_cut_card_shows_everything_first(
    running: Running, card_factory: Factory
) -> None:
    body = "_*[<&😀" * 900
    posted = await _post(running, card_factory(preview=(PreviewField("body", "", body),)))
    assert "Approve similar" not in posted.buttons
    await running.slack.click(posted, "View all, then approve similar")

    modal = await running.slack.until(lambda: running.slack.modals and running.slack.modals[0])
    assert body in modal.words.replace("\n", "")


@pytest.mark.parametrize(
    ("user", "changes", "why"),
    [
        ("U8", {}, "You may not decide"),
        ("U7", {}, "can't be allowed in advance"),
        ("U7", {"risk": Risk(Level.DESTRUCTIVE, "gone for good")}, "can't be undone asks each time"),
        ("U7", {"state": State.DECLINED}, "no longer open"),
    ],
)
async def test_where_nothing_can_be_allowed_one_person_is_told_why(
    running: Running, posted: Posted, card_factory: Factory, user: str, changes: dict[str, Any], why: str
) -> None:
    running.core.rungs = ()
    running.core.cards["p1"] = card_factory(**changes)
    await running.slack.click(posted, "Approve similar", user)

    told = await _told(running, user)
    assert told.only_for == user
    assert why in told.words
    assert running.slack.modals == []


async def test_extend_is_a_press_whose_answer_is_told(running: Running, posted: Posted) -> None:
    still_open = (make_proposal(),)
    running.core.reply = Reply(Answer.ACCEPTED, "It waits until tomorrow now.", still_open)
    await running.slack.click(posted, "Extend 24 h")

    assert "until tomorrow" in (await _told(running, "U7")).words
    assert _press(running).verb is Verb.EXTEND


async def test_retry_after_a_failure_is_a_press_too(running: Running, card_factory: Factory) -> None:
    posted = await _post(running, card_factory(state=State.FAILED, decided_by="Ana"))
    await running.slack.click(posted, "Retry")

    await running.slack.until(lambda: running.core.got)
    assert _press(running).verb is Verb.RETRY


@pytest.mark.parametrize("answer", [Answer.REFUSED, Answer.ALREADY, Answer.STALE, Answer.UNKNOWN])
async def test_an_answer_that_is_no_yes_is_told_to_the_presser_alone(
    running: Running, posted: Posted, answer: Answer
) -> None:
    running.core.reply = Reply(answer, "Already approved by Ana, 2 min ago.")
    await running.slack.click(posted, "Approve", "U8")

    told = await _told(running, "U8")
    assert told.only_for == "U8"
    assert told.thread == "1700.1"
    assert "Already approved by Ana" in told.words


async def test_without_ephemeral_messages_the_answer_comes_as_a_direct_message(
    running: Running, posted: Posted
) -> None:
    running.core.reply = Reply(Answer.REFUSED, "You may not decide this.")
    running.slack.fail("chat.postEphemeral", "user_not_in_channel")
    await running.slack.click(posted, "Approve", "U8")

    assert (await _told(running, "U8")).channel == "D8"


@pytest.mark.parametrize(
    "forged",
    [
        {"value": "p666:1"},
        {"value": "nonsense"},
        {"value": ""},
        {"action_id": "nod:destroy", "value": "p1:1"},
        {"action_id": "nod:more", "type": "overflow", "selected_option": {"value": "view"}},
    ],
)
async def test_a_value_that_was_never_posted_is_refused_privately(
    running: Running, posted: Posted, forged: dict[str, str]
) -> None:
    done = await running.slack.press(posted, posted.buttons["Approve"] | forged, "U8")

    assert done.status == 200
    assert "not affected" in (await _told(running, "U8")).words
    assert running.core.got == []


async def test_a_press_on_another_conversations_proposal_is_refused(running: Running, posted: Posted) -> None:
    running.core.visible_at = {"slack:T1/C9/1.1"}
    await running.slack.click(posted, "Approve", "U8")

    assert "not affected" in (await _told(running, "U8")).words
    assert running.core.got == []


async def test_another_workspace_cannot_press(running: Running, posted: Posted) -> None:
    await running.slack.press(posted, posted.buttons["Approve"], "U8", team="T2")

    assert running.core.got == []


async def test_a_press_that_breaks_inside_is_acknowledged_and_explained(
    running: Running, posted: Posted
) -> None:
    running.core.broken = 1
    done = await running.slack.click(posted, "Approve", "U8")

    assert done.status == 200
    assert "went wrong" in (await _told(running, "U8")).words


async def test_decline_with_reason_asks_and_hands_the_reason_on(running: Running, posted: Posted) -> None:
    await running.slack.click(posted, "Decline with a reason")
    await running.slack.until(lambda: running.slack.modals)
    await running.slack.submit("U7", {"Why not?": "wrong roof"})

    assert _press(running).verb is Verb.DECLINE
    assert _press(running).reason == "wrong roof"
    assert not running.slack.modals[0].open


async def test_edit_shows_the_arguments_and_approves_what_was_written(
    running: Running, posted: Posted
) -> None:
    await running.slack.click(posted, "Edit")
    modal = await running.slack.until(lambda: running.slack.modals and running.slack.modals[0])
    assert "Change issue 7" in modal.words
    await running.slack.submit("U7", {"Title": "Better roof"})

    press = _press(running)
    assert press.verb is Verb.APPROVE
    assert press.arguments == {"title": "Better roof", "priority": "low"}


async def test_edit_can_ask_again_instead(running: Running, posted: Posted) -> None:
    await running.slack.click(posted, "Edit")
    await running.slack.until(lambda: running.slack.modals)
    await running.slack.submit("U7", {"Title": "Better roof", "Then": "Ask again, without approving"})

    assert _press(running).verb is Verb.EDIT


async def test_faults_are_shown_at_their_fields_and_the_modal_stays(running: Running, posted: Posted) -> None:
    await running.slack.click(posted, "Edit")
    modal = await running.slack.until(lambda: running.slack.modals and running.slack.modals[0])
    await running.slack.submit("U7", {"Count": "many"})
    assert modal.error_at("Count") == "Write a whole number."
    assert running.core.got == []

    running.core.reply = Reply(Answer.INVALID, "no", fields={"title": "too plain", "labels.0": "unknown"})
    await running.slack.submit("U7", {"Count": ""})
    assert modal.error_at("Title") == "too plain"
    assert modal.error_at("Labels") == "unknown"
    assert modal.open


async def test_what_was_decided_in_the_meantime_is_said_in_the_modal(
    running: Running, posted: Posted
) -> None:
    await running.slack.click(posted, "Decline with a reason")
    modal = await running.slack.until(lambda: running.slack.modals and running.slack.modals[0])
    running.core.reply = Reply(Answer.ALREADY, "Already approved by Ben.")
    await running.slack.submit("U7", {"Why not?": "no"})

    assert modal.open
    assert "Already approved by Ben." in modal.words


async def test_an_edit_of_content_that_changed_in_the_meantime_is_told_what_changed_and_sends_no_arguments(
    running: Running, posted: Posted, card_factory: Factory
) -> None:
    await running.slack.click(posted, "Edit")
    modal = await running.slack.until(lambda: running.slack.modals and running.slack.modals[0])
    running.core.cards["p1"] = card_factory(round=2)
    running.core.reply = Reply(Answer.STALE, "Ben changed title: a → b")
    await running.slack.submit("U7", {"Title": "x"})

    ((press,),) = [running.core.got]
    assert (press.round, press.arguments) == (1, None)
    assert "Ben changed title: a → b" in modal.words


async def test_one_who_may_not_decide_gets_no_form(running: Running, posted: Posted) -> None:
    await running.slack.click(posted, "Edit", "U8")

    assert "may not decide" in (await _told(running, "U8")).words
    assert running.slack.modals == []


async def test_a_long_change_is_approved_from_view_all_only(running: Running, card_factory: Factory) -> None:
    body = "_*[<&😀" * 900
    posted = await _post(running, card_factory(preview=(PreviewField("body", "", body),)))
    assert "Approve" not in posted.buttons

    await running.slack.click(posted, "View all, then approve")
    modal = await running.slack.until(lambda: running.slack.modals and running.slack.modals[0])
    assert body in modal.words.replace("\n", "")
    assert running.core.got == []
    await running.slack.submit("U7")
    assert _press(running).verb is Verb.APPROVE
    assert [str(actor) for _, actor in running.core.opened] == ["slack:T1/U7"]


async def test_a_forged_approve_on_a_cut_card_opens_view_all_instead(
    running: Running, card_factory: Factory
) -> None:
    posted = await _post(running, card_factory(preview=(PreviewField("body", "", "x" * 9000),)))
    action = posted.buttons["View all, then approve"] | {"action_id": "nod:approve"}
    await running.slack.press(posted, action)

    await running.slack.until(lambda: running.slack.modals)
    assert running.core.got == []


async def test_what_no_window_can_hold_comes_as_a_file(running: Running, card_factory: Factory) -> None:
    body = "é" * 300_000
    posted = await _post(running, card_factory(preview=(PreviewField("body", "", body),)))
    await running.slack.click(posted, "View all, then approve")

    (file,) = await running.slack.until(lambda: [m for m in running.slack.posted if m.file])
    assert body in file.file
    assert (file.channel, file.thread) == ("C1", "1700.1")


async def test_home_shows_what_waits_and_follows_every_change(
    running: Running, posted: Posted, card_factory: Factory
) -> None:
    await running.slack.deliver_event(
        {"type": "app_home_opened", "user": "U7", "channel": "D7", "tab": "home"}
    )
    await running.slack.until(lambda: "U7" in running.slack.homes)

    await running.slack.click_home("U7", "Read, then approve")
    await running.slack.until(lambda: running.slack.modals)
    await running.slack.submit("U7")
    assert _press(running).verb is Verb.APPROVE

    done = card_factory(state=State.SUCCEEDED, decided_by="Ana")
    running.core.cards["p1"] = done
    await running.channel.changed()
    await running.slack.until(lambda: "Approved by Ana" in str(running.slack.homes["U7"]))


async def test_a_refusal_at_home_comes_as_a_direct_message(running: Running, posted: Posted) -> None:
    await running.slack.deliver_event(
        {"type": "app_home_opened", "user": "U7", "channel": "D7", "tab": "home"}
    )
    await running.slack.until(lambda: "U7" in running.slack.homes)
    running.core.reply = Reply(Answer.ALREADY, "Already done.")
    await running.slack.click_home("U7", "Decline")

    assert "Already done." in (await _told(running, "U7")).words


async def test_a_link_or_a_button_of_someone_else_is_acknowledged(running: Running, posted: Posted) -> None:
    action: dict[str, Any] = {"type": "button", "action_id": "other", "block_id": "b", "value": "x"}
    assert (await running.slack.press(posted, action)).status == 200
    assert running.core.got == []


async def test_a_person_whose_name_slack_hides_still_decides(running: Running, card_factory: Factory) -> None:
    posted = await _post(running, replace(card_factory(), proposal_id="p2"))
    running.slack.fail("users.info", "internal_error", times=2)
    await running.slack.click(posted, "Approve")

    await running.slack.until(lambda: running.core.got)
    assert _press(running).actor.label == "ana"


async def test_a_card_that_people_replied_to_still_stands_in_its_channel(
    running: Running, card_factory: Factory
) -> None:
    posted = await _post(running, card_factory(), Address("slack", "T1/C1"))
    await running.slack.say("U8", "what is this?", channel="C1", thread=posted.ts)
    await running.slack.click(posted, "Approve")

    await running.slack.until(lambda: running.core.got)
    assert _press(running).address == Address("slack", "T1/C1")


async def test_a_window_remembers_the_card_it_was_opened_from(running: Running, posted: Posted) -> None:
    await running.slack.click(posted, "Decline with a reason")
    await running.slack.until(lambda: running.slack.modals)
    await running.slack.submit("U7", {"Why not?": "not today"})

    assert _press(running).ref == _ref(posted)


@pytest.mark.parametrize("code", ["expired_trigger_id", "exchanged_trigger_id", "trigger_expired"])
async def test_a_window_that_came_too_late_is_told_in_words_to_act_on(
    running: Running, posted: Posted, code: str
) -> None:
    running.slack.fail("views.open", code)
    await running.slack.click(posted, "View all")

    assert (await _told(running, "U7")).words.strip() == "That took too long. Press again."


async def test_a_code_slack_never_documented_is_not_shown_to_people(running: Running, posted: Posted) -> None:
    running.slack.fail("views.open", "odd_new_code")
    await running.slack.click(posted, "View all")

    words = (await _told(running, "U7")).words
    assert "odd_new_code" not in words
    assert "Nothing was decided" in words


async def test_a_cut_card_that_has_ended_still_shows_everything(
    running: Running, card_factory: Factory
) -> None:
    body = "x" * 9000
    card = card_factory(preview=(PreviewField("body", "", body),), state=State.DECLINED)
    posted = await _post(running, card)
    assert "✂️" not in posted.words
    await running.slack.click(posted, "Details")

    modal = await running.slack.until(lambda: running.slack.modals and running.slack.modals[0])
    assert body in modal.words.replace("\n", "")
    assert "submit" not in modal.view


async def test_the_edit_windows_button_says_that_it_approves(running: Running, posted: Posted) -> None:
    await running.slack.click(posted, "Edit")

    modal = await running.slack.until(lambda: running.slack.modals and running.slack.modals[0])
    assert modal.view["submit"]["text"] == "Approve as edited"


async def test_a_window_that_slack_limits_is_not_waited_for_until_its_press_is_dead(
    running: Running, card_factory: Factory
) -> None:
    posted = await _post(running, card_factory())
    running.slack.fail("views.open", "ratelimited", status=429, retry_after=5)
    await running.slack.click(posted, "View all")

    found = await running.slack.until(lambda: [m for m in running.slack.posted if m.only_for == "U7"])
    assert "Press again" in found[0].words
    assert len(running.slack.called("views.open")) == 1


async def test_a_window_that_slack_leaves_without_an_answer_holds_up_no_other_press_and_no_message(
    running: Running, posted: Posted
) -> None:
    """They arrive while Slack still owes the answer, before the person at the window is told."""
    answer = asyncio.Event()
    running.slack.fail("views.open", until=answer)
    await running.slack.click(posted, "View all")
    await running.slack.until(lambda: running.slack.called("views.open"))
    await running.slack.click(posted, "Approve")
    await running.slack.say("U7", "And another thing")

    await running.slack.until(lambda: len(running.core.got) == 2)
    told = [m for m in running.slack.posted if m.only_for]
    answer.set()
    assert told == []
    assert {type(each) for each in running.core.got} == {Press, Message}
