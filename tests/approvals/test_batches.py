"""Several calls of one tool in one answer: one card with a table, and each row a proposal of its own."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from bot.channels.card_text import card_text
from bot.domain.cards import Card
from bot.domain.chat import Answer
from bot.domain.model import ToolCall
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.domain.work_limits import CALLS_PER_ANSWER
from bot.store.audit import log
from tests.approvals.test_decisions import TEAM
from tests.kit import ADA, ANA, EVE, Hold, MakeNod, Nod, call


def lamps(nod: Nod, how_many: int) -> list[ToolCall]:
    """So many calls that each paint a lamp of its own."""
    nod.world.lamps = {f"lamp {n}": "white" for n in range(1, how_many + 1)}
    return [call("paint", lamp=name, color="red") for name in nod.world.lamps]


async def asked(nod: Nod, how_many: int, **more: object) -> list[Proposal]:
    return await nod.asked(*lamps(nod, how_many), **more)  # type: ignore[arg-type]


def the_card(nod: Nod) -> Card:
    [card] = nod.chat.cards.values()
    return card


async def states(nod: Nod, found: Sequence[Proposal]) -> list[State]:
    return [(await nod.now(p)).state for p in found]


async def test_three_calls_of_one_tool_are_one_card_with_a_row_for_each(make_nod: MakeNod) -> None:
    nod = make_nod()
    found = await asked(nod, 3)
    card = the_card(nod)
    assert {p.batch for p in found} == {found[0].id}
    assert card.title == "Paint lamp lamp: 3 changes"
    assert card.batch is not None
    assert [row.about for row in card.batch.rows] == ["1 red", "2 red", "3 red"]
    assert card.verbs == (Verb.APPROVE_ALL, Verb.DECLINE_ALL)
    assert card.button(Verb.APPROVE_ALL).label == "Approve all 3"


async def test_two_calls_and_a_third_of_another_tool_are_cards_of_their_own(make_nod: MakeNod) -> None:
    nod = make_nod()
    found = await nod.asked(*lamps(nod, 2), call("pay", amount=3))
    assert [p.batch for p in found] == [None, None, None]
    assert len(nod.chat.cards) == 3


async def test_what_is_the_same_for_all_rows_is_said_once(make_nod: MakeNod) -> None:
    nod = make_nod()
    await nod.asked(*(call("enroll", name=name, code="s3cret") for name in ("Ann", "Bob", "Cid")))
    card = the_card(nod)
    assert card.batch is not None
    assert [f.field for f in card.fields] == ["Code"]
    assert [[f.new_value for f in row.fields] for row in card.batch.rows] == [["Ann"], ["Bob"], ["Cid"]]
    assert "s3cret" not in card_text(card)


async def test_rows_are_decided_by_one_press_and_each_is_recorded_as_its_own(make_nod: MakeNod) -> None:
    nod = make_nod()
    found = await asked(nod, 5)
    reply = await nod.choose(found[0], approve=found[:3], decline=found[3:4], reason="not this one")
    await nod.idle()
    assert (reply.answer, reply.text) == (Answer.ACCEPTED, "3 approved, 1 declined.")
    done = State.SUCCEEDED
    assert await states(nod, found) == [done, done, done, State.DECLINED, State.PROPOSED]
    for p in found[:4]:
        [vote] = (await nod.now(p)).votes
        assert vote.person_id == str(ANA)
        assert [e.verb for e in await nod.database.read(log.list_rows_of_proposal, p.id)][1] == vote.verb
    assert the_card(nod).outcome == "1 waiting, 3 done, 1 declined. Approved by Ana."


async def test_a_row_that_changed_since_is_left_open_and_named(make_nod: MakeNod) -> None:
    nod = make_nod()
    found = await asked(nod, 3)
    edited = {"lamp": "lamp 2", "color": "blue"}
    await nod.press(Verb.EDIT, found[1], arguments=edited)
    reply = await nod.choose(found[0], approve=found)
    await nod.idle()
    assert reply.text.startswith(
        "2 approved. “Paint lamp lamp 2 blue” not: This changed after the card was shown"
    )
    assert (await nod.now(found[1])).state is State.PROPOSED
    assert nod.world.lamps["lamp 2"] == "white"


async def test_a_press_on_the_card_as_it_was_before_an_edit_decides_nothing(make_nod: MakeNod) -> None:
    nod = make_nod()
    found = await asked(nod, 3)
    shown = the_card(nod).round
    await nod.press(Verb.EDIT, found[1], arguments={"lamp": "lamp 2", "color": "blue"})
    for reply in (
        await nod.press(Verb.APPROVE_ALL, found[0], round_shown=shown),
        await nod.choose(found[0], approve=found[:1], round_shown=shown),
    ):
        assert reply.answer is Answer.STALE
    assert set(await states(nod, found)) == {State.PROPOSED}


async def test_what_cannot_be_undone_never_rides_along(make_nod: MakeNod) -> None:
    nod = make_nod()
    nod.world.lamps = {f"lamp {n}": "white" for n in range(3)}
    found = await nod.asked(*(call("smash", lamp=name) for name in nod.world.lamps))
    card = the_card(nod)
    assert Verb.APPROVE_ALL not in card.verbs
    for reply in (await nod.press(Verb.APPROVE_ALL, found[0]), await nod.choose(found[0], approve=found)):
        assert reply.answer is Answer.INVALID
        assert "can't be undone" in reply.text
    await nod.press(Verb.APPROVE, found[1])
    await nod.idle()
    assert await states(nod, found) == [State.PROPOSED, State.SUCCEEDED, State.PROPOSED]
    assert the_card(nod).outcome == "2 waiting, 1 done. Approved by Ana."


async def test_a_stranger_decides_no_row(make_nod: MakeNod) -> None:
    nod = make_nod()
    found = await asked(nod, 3)
    reply = await nod.choose(found[0], approve=found[:2], decline=found[2:], by=EVE)
    assert reply.answer is Answer.REFUSED
    assert set(await states(nod, found)) == {State.PROPOSED}


async def test_lists_that_do_not_fit_the_batch_are_refused_in_words(make_nod: MakeNod) -> None:
    nod = make_nod()
    found = await asked(nod, 3)
    [other] = await nod.asked(call("pay", amount=1))
    assert (await nod.choose(found[0])).text == "Say which rows to approve or decline."
    twice = await nod.choose(found[0], approve=found[:1], decline=found[:1])
    assert twice.text == f"{found[0].id} is there twice. Approve it or decline it."
    strange = await nod.choose(found[0], approve=[other])
    assert strange.text == f"There is no {other.id} in this batch."
    assert (await nod.choose(other, approve=[other])).answer is Answer.UNKNOWN
    assert set(await states(nod, [*found, other])) == {State.PROPOSED}


async def test_each_row_keeps_its_own_quorum(make_nod: MakeNod) -> None:
    nod = make_nod(policy=TEAM)
    await nod.command("/approvals quorum 2 for paint", by=ADA)
    found = await asked(nod, 3)
    reply = await nod.press(Verb.APPROVE_ALL, found[0])
    assert reply.text == "3 counted as a vote."
    assert set(await states(nod, found)) == {State.PROPOSED}


@pytest.mark.slow
async def test_a_hundred_calls_are_taken_and_the_next_is_refused_with_what_to_do(make_nod: MakeNod) -> None:
    nod = make_nod()
    found = await asked(nod, CALLS_PER_ANSWER + 1)
    assert len(found) == CALLS_PER_ANSWER == 100
    assert len(nod.chat.cards) == 1
    await nod.press(Verb.DECLINE_ALL, found[0])
    await nod.idle()
    assert "one answer may make 100. Make the others in your next answers." in "\n".join(nod.model.results)


@pytest.mark.slow
async def test_a_batch_that_runs_is_drawn_a_bounded_number_of_times(make_nod: MakeNod) -> None:
    nod = make_nod()
    found = await asked(nod, 100)
    await nod.press(Verb.APPROVE_ALL, found[0])
    await nod.idle()
    assert the_card(nod).outcome == "100 done. Approved by Ana."
    assert len(nod.chat.drawn) <= 14


async def test_what_has_not_begun_can_be_stopped(make_nod: MakeNod) -> None:
    nod = make_nod()
    nod.world.before["paint"] = hold = Hold()
    found = await asked(nod, 30)
    await nod.press(Verb.APPROVE_ALL, found[0])
    await hold.reached.wait()
    reply = await nod.press(Verb.STOP_ALL, found[0])
    hold.go.set()
    await nod.idle()
    ended = await states(nod, found)
    assert reply.text.partition(" stopped.")[0] == str(ended.count(State.CANCELLED))
    assert set(reply.text.split(" not: ")[1:]) <= {"It has already started."}
    assert 0 < ended.count(State.SUCCEEDED) < 30
    assert ended.count(State.SUCCEEDED) == len(nod.world.runs)
    assert {(await nod.now(p)).cause for p in found} == {None, Cause.TAKEN_BACK}


async def test_a_row_that_fails_does_not_stop_the_others(make_nod: MakeNod) -> None:
    nod = make_nod()
    found = await asked(nod, 3)
    del nod.world.lamps["lamp 2"]
    await nod.press(Verb.APPROVE_ALL, found[0])
    await nod.idle()
    assert await states(nod, found) == [State.SUCCEEDED, State.FAILED, State.SUCCEEDED]
    card = the_card(nod)
    assert card.outcome == "2 done, 1 failed. Approved by Ana."
    assert "🔴 2 red: There is no lamp lamp 2." in card_text(card)


async def test_where_a_rule_says_so_a_row_that_fails_stops_what_has_not_begun(make_nod: MakeNod) -> None:
    nod = make_nod(policy=TEAM)
    assert "Set" in (await nod.command("/approvals batch stop for paint", by=ADA)).text
    found = await asked(nod, 20)
    del nod.world.lamps["lamp 1"]
    await nod.press(Verb.APPROVE_ALL, found[0])
    await nod.idle()
    ended = await states(nod, found)
    assert ended[0] is State.FAILED
    assert ended.count(State.CANCELLED) >= 10
    last = await nod.now(found[-1])
    assert (last.decided_by, last.decline_reason) == ("Nod", "a row of its batch failed")
    assert len(nod.world.runs) == ended.count(State.SUCCEEDED)


async def test_a_pause_and_its_end_are_shown_also_once_the_first_row_has_ended(make_nod: MakeNod) -> None:
    nod = make_nod(admins=[ADA])
    first, *_ = await asked(nod, 3)
    await nod.press(Verb.DECLINE, first)
    await nod.idle()
    await nod.command("/approvals pause", by=ADA)
    await nod.idle()
    assert "Nothing runs until" in card_text(the_card(nod))
    await nod.command("/approvals resume", by=ADA)
    await nod.idle()
    assert "Nothing runs until" not in card_text(the_card(nod))


async def test_one_line_reminds_of_all_rows(make_nod: MakeNod) -> None:
    nod = make_nod(policy=TEAM)
    await nod.command("/approvals remind 4h", by=ADA)
    await asked(nod, 3)
    await nod.tick(timedelta(hours=5))
    [(_, words, _)] = nod.chat.reminders
    assert "and 2 more of its batch" in words


async def test_a_batch_survives_a_crash_between_its_rows(make_nod: MakeNod) -> None:
    nod = make_nod()
    found = await asked(nod, 25)
    await nod.press(Verb.APPROVE_ALL, found[0])
    await nod.crash()
    await nod.idle()
    assert set(await states(nod, found)) <= {State.SUCCEEDED, State.FAILED}
    assert len(nod.world.runs) == len({run.key for run in nod.world.runs})
    assert len(nod.chat.cards) == 1


async def test_lists_and_overviews_have_one_line_for_a_batch(make_nod: MakeNod) -> None:
    nod = make_nod(policy=TEAM)
    await nod.command("/approvals digest 08:00 chat:desk", by=ADA)
    found = await asked(nod, 3)
    [lone] = await nod.asked(call("pay", amount=1))
    for line in ("/approvals list", "/nod status"):
        text = (await nod.command(line)).text
        assert "Paint lamp lamp 1 red, and 2 more of its batch (asked by Ana" in text
        assert "lamp 2" not in text
        assert f"`{lone.id[:8]}`" in text
    await nod.tick(timedelta(hours=23))
    digests = [text for _, text in nod.chat.texts if "waiting for a decision**" in text]
    assert [text.count("more of its batch") for text in digests] == [1]
    seen = await nod.lookup.overview(ANA)
    [card] = [each for each in seen.waiting if each.batch]
    assert (len(seen.waiting), len(seen.asked), card.proposal_id) == (2, 2, found[0].id)
    assert card.round == sum(p.round for p in found)
