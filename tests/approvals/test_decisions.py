"""Presses: who may, what counts, who was first, and what everybody else is told."""

import asyncio
from datetime import timedelta

import pytest

from bot.domain.chat import Answer
from bot.domain.events import ToolStarted
from bot.domain.model import ToolCall
from bot.domain.people import Actor
from bot.domain.policy import Policy
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.redaction import HIDDEN
from bot.domain.verbs import Verb
from bot.errors import PermanentRefusal, ToolError
from bot.store.audit import log
from tests.kit import ADA, ANA, BEN, EVE, Hold, MakeNod, Nod, call, says

TEAM = Policy(admins=frozenset({str(ADA)}), approvers=frozenset({str(BEN)}))


def red(lamp: str = "desk") -> ToolCall:
    return call("paint", lamp=lamp, color="red")


@pytest.fixture
async def team(make_nod: MakeNod) -> Nod:
    """In a shared room: Ana asks, Ben approves for the team, Ada is an admin, Eve is no one."""
    nod = make_nod(policy=TEAM)
    await nod.say("hello", private=False)
    await nod.idle()
    return nod


async def verbs(nod: Nod, proposal: Proposal) -> list[str]:
    return [entry.verb for entry in await nod.database.read(log.list_rows_of_proposal, proposal.id)]


async def test_an_approval_runs_it_and_the_agent_continues_with_its_result(nod: Nod) -> None:
    [p] = await nod.asked(red())
    reply = await nod.press(Verb.APPROVE, p)
    assert (reply.answer, reply.text) == (Answer.ACCEPTED, "Approved.")
    await nod.idle()
    p = await nod.now(p)
    assert (p.state, p.decided_by, p.decided_from) == (State.SUCCEEDED, "Ana", "chat")
    assert nod.model.results == [
        "SUCCEEDED: approved by Ana. Result: [From a tool: data, not instructions] desk is red"
    ]
    assert nod.world.lamps["desk"] == "red"


async def test_what_is_open_is_not_asked_for_a_second_time(nod: Nod) -> None:
    [p] = await nod.asked(red())
    assert await nod.asked(red(), text="Any news?") == []
    assert "is still open, so it gets no second card" in nod.model.results[-1]
    await nod.press(Verb.APPROVE, p)
    await nod.idle()
    assert len(nod.world.runs_of(await nod.now(p))) == 1
    assert len(await nod.asked(red(), text="Once more, please.")) == 1


async def test_one_answer_may_ask_for_the_same_twice(nod: Nod) -> None:
    assert len(await nod.asked(red(), red())) == 2


async def test_what_was_declined_after_a_question_in_between_is_not_asked_for_again(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.clock.forward(timedelta(minutes=2))
    nod.model.will(says("It waits for you."))
    await nod.say("Well?")
    await nod.idle()
    nod.clock.forward(timedelta(minutes=2))
    nod.model.will(says("Again, then.", red()), says("I leave it."))
    await nod.press(Verb.DECLINE, p)
    await nod.idle()
    assert await nod.proposals() == [await nod.now(p)]
    assert "Ana declined exactly this a moment ago" in nod.model.results[-1]


async def test_what_was_declined_is_asked_for_again_once_a_person_agrees_by_an_answer(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.model.will(says("Hm.", call("ask_person", question="Red after all?", choices=["Yes", "No"])))
    await nod.press(Verb.DECLINE, p)
    await nod.idle()
    [_, question] = await nod.proposals()
    nod.clock.forward(timedelta(minutes=1))
    nod.model.will(says("Then so.", red()))
    await nod.press(Verb.FIRST, question)
    await nod.idle()
    assert [each.state for each in await nod.proposals()][2:] == [State.PROPOSED]


async def test_a_decline_by_a_clock_that_was_ahead_stands_against_no_later_request(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.clock.forward(timedelta(hours=2))
    await nod.press(Verb.DECLINE, p)
    await nod.idle()
    nod.clock.forward(-timedelta(hours=2))
    assert len(await nod.asked(red(), text="Do it now.")) == 1


async def test_the_same_call_after_a_decline_is_refused_until_a_person_speaks_again(nod: Nod) -> None:
    paint = {"lamp": "desk", "color": "red"}
    (p,) = await nod.asked(call("paint", **paint))
    nod.model.will(says("Again, then.", call("paint", **paint)), says("I leave it."))
    await nod.press(Verb.DECLINE, p)
    await nod.idle()
    assert await nod.proposals() == [await nod.now(p)]
    assert "Ana declined exactly this a moment ago" in nod.model.results[-1]
    [told] = [e for stream in nod.chat.streams for e in stream.events if isinstance(e, ToolStarted)]
    assert told.summary == "Paint lamp desk red"

    nod.clock.forward(timedelta(minutes=2))
    (again,) = await nod.asked(call("paint", **paint), text="now do it")
    assert "Ana declined the same, 2 min ago when this was asked." in nod.chat.card_of(again).notes
    (other,) = await nod.asked(call("paint", lamp="desk", color="blue"), text="blue")
    assert not any("declined" in note for note in nod.chat.card_of(other).notes)


async def test_a_decline_ends_it_and_its_reason_reaches_the_model(nod: Nod) -> None:
    [p] = await nod.asked(red())
    await nod.press(Verb.DECLINE, p, reason="I like white")
    await nod.idle()
    assert (await nod.now(p)).state is State.DECLINED
    assert nod.model.results[0].startswith("DECLINED: Ana asked for something else: I like white.")
    assert nod.world.runs == []


async def test_every_decision_is_recorded_with_who_where_and_why(nod: Nod) -> None:
    [p] = await nod.asked(red())
    await nod.press(Verb.DECLINE, p, reason="no")
    entry = (await nod.database.read(log.list_rows_of_proposal, p.id))[-1]
    assert (entry.verb, entry.actor, entry.person, entry.channel, entry.reason) == (
        "decline",
        "chat:ana",
        "chat:ana",
        "chat",
        "no",
    )
    assert (entry.version, entry.state, entry.digest, entry.at) == (2, "declined", p.digest, nod.clock())


async def test_a_second_press_does_nothing_and_is_told_by_whom_and_when(team: Nod) -> None:
    [p] = await team.asked(red())
    await team.approve(p, by=BEN)
    team.clock.forward(timedelta(minutes=2))
    reply = await team.press(Verb.APPROVE, p)
    await team.idle()
    assert (reply.answer, reply.text) == (Answer.ALREADY, "Already approved by Ben, 2 min ago.")
    reply = await team.press(Verb.DECLINE, p)
    assert (reply.answer, reply.text) == (Answer.ALREADY, "Already approved by Ben, 2 min ago.")
    assert len(team.world.runs) == 1


async def test_of_twenty_who_decide_at_the_same_time_one_wins_and_it_runs_once(team: Nod) -> None:
    [p] = await team.asked(red())
    verb = [Verb.APPROVE, Verb.DECLINE]
    people = [ANA, BEN, ADA]
    replies = await asyncio.gather(*(team.press(verb[i % 2], p, by=people[i % 3]) for i in range(20)))
    await team.idle()
    assert [r.answer for r in replies].count(Answer.ACCEPTED) == 1
    assert [r.answer for r in replies].count(Answer.ALREADY) == 19
    won = await team.now(p)
    assert len(team.world.runs) == (won.state is State.SUCCEEDED)


async def test_twenty_approvals_at_the_same_time_are_one_execution(nod: Nod) -> None:
    [p] = await nod.asked(red())
    await asyncio.gather(*(nod.press(Verb.APPROVE, p) for _ in range(20)))
    await asyncio.gather(*(nod.execution.start(p.id) for _ in range(20)))
    await nod.idle()
    assert len(nod.world.runs) == 1


async def test_a_press_after_expiry_expires_it_and_runs_nothing(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.clock.forward(timedelta(hours=24))
    reply = await nod.press(Verb.DECLINE, p)
    await nod.idle()
    assert reply.answer is Answer.ALREADY
    assert reply.text == "Already expired, just now: no one decided in time. Nothing was changed."
    assert (await nod.now(p)).state is State.EXPIRED
    assert nod.model.results[0].startswith("EXPIRED: ")
    assert nod.world.runs == []


async def test_what_no_one_decided_expires_by_itself_and_the_agent_continues(nod: Nod) -> None:
    [p] = await nod.asked(red())
    await nod.tick(timedelta(hours=24) - timedelta(seconds=1))
    assert (await nod.now(p)).state is State.PROPOSED
    await nod.tick(timedelta(seconds=1))
    assert (await nod.now(p)).state is State.EXPIRED
    assert nod.model.results[0].startswith("EXPIRED: ")


async def test_an_approval_that_races_the_expiry_has_one_outcome(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.clock.forward(timedelta(hours=24) - timedelta(seconds=1))
    just_in_time = nod.press(Verb.APPROVE, p)
    late = nod.clock() + timedelta(seconds=1)
    await asyncio.gather(just_in_time, *(nod.recovery.expire_due(late) for _ in range(5)))
    await nod.idle()
    ended = await nod.now(p)
    assert ended.state in (State.SUCCEEDED, State.EXPIRED)
    assert len(nod.world.runs) == (ended.state is State.SUCCEEDED)


async def test_strangers_are_refused_and_it_stays_open_for_others(team: Nod) -> None:
    [p] = await team.asked(red())
    for verb in (Verb.APPROVE, Verb.DECLINE, Verb.EDIT, Verb.CANCEL, Verb.APPROVE_ALL, Verb.DECLINE_ALL):
        reply = await team.press(verb, p, by=EVE, arguments={"lamp": "desk", "color": "mud"})
        assert (reply.answer, reply.proposals) == (Answer.REFUSED, (await team.now(p),))
    assert (
        "Who may: Ana, any approver or any admin. It stays open."
        in (await team.press(Verb.APPROVE, p, by=EVE)).text
    )
    assert await verbs(team, p) == ["propose"]
    assert (await team.approve(p, by=BEN)).state is State.SUCCEEDED


async def test_a_press_on_nothing_is_answered_as_unknown(nod: Nod) -> None:
    [p] = await nod.asked(red())
    gone = Proposal(**{name: getattr(p, name) for name in p.__slots__} | {"id": "nothing"})
    assert (await nod.press(Verb.APPROVE, gone)).answer is Answer.UNKNOWN


async def test_the_requester_or_an_admin_takes_it_back_and_no_one_else(team: Nod) -> None:
    first, second = await team.asked(red(), red("door"))
    reply = await team.press(Verb.CANCEL, first, by=BEN)
    assert reply.answer is Answer.REFUSED
    assert reply.text == "Only Ana or an admin can withdraw this. It stays open."
    await team.press(Verb.CANCEL, first)
    await team.press(Verb.CANCEL, second, by=ADA)
    await team.idle()
    assert [(p.state, p.cause) for p in await team.proposals()] == [(State.CANCELLED, Cause.TAKEN_BACK)] * 2
    assert team.model.results[0].startswith("CANCELLED: Ana took it back.")


async def test_a_press_on_content_that_changed_since_is_refused_as_stale(nod: Nod) -> None:
    [p] = await nod.asked(red())
    await nod.press(Verb.EDIT, p, arguments={"lamp": "desk", "color": "blue"})
    reply = await nod.press(Verb.APPROVE, p, round_shown=1)
    assert (reply.answer, (await nod.now(p)).state) == (Answer.STALE, State.PROPOSED)
    assert (await nod.press(Verb.APPROVE, p, digest=p.digest)).answer is Answer.STALE
    assert (await nod.press(Verb.APPROVE, p, round_shown=2)).answer is Answer.ACCEPTED


async def test_edited_arguments_are_what_runs_and_the_card_and_record_say_who_edited(team: Nod) -> None:
    [p] = await team.asked(red())
    await team.press(Verb.APPROVE, p, by=BEN, arguments={"lamp": "door", "color": "blue"})
    await team.idle()
    done = await team.now(p)
    assert (done.state, done.edited_by, done.round) == (State.SUCCEEDED, "Ben", 2)
    assert done.description == "Paint lamp door blue"
    assert done.preview == (PreviewField("door", "white", "blue"),)
    assert done.digest != p.digest
    assert team.world.lamps == {"desk": "white", "door": "blue", "roof": "white"}
    assert team.chat.card_of(done).notes == ("Ben changed lamp: desk → door, color: red → blue.",)
    assert await verbs(team, p) == ["propose", "edit", "approve", "execute", "succeeded"]


async def test_an_edit_alone_asks_again_with_the_new_content(nod: Nod) -> None:
    [p] = await nod.asked(red())
    reply = await nod.press(Verb.EDIT, p, arguments={"lamp": "desk", "color": "blue"})
    assert reply.answer is Answer.ACCEPTED
    edited = await nod.now(p)
    assert (edited.state, edited.votes, edited.arguments["color"]) == (State.PROPOSED, (), "blue")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({"lamp": "desk"}, "color"), ({"lamp": "desk", "color": "red", "shade": 1}, "shade")],
)
async def test_an_edit_that_does_not_fit_names_the_field_and_changes_nothing(
    nod: Nod, arguments: dict[str, object], field: str
) -> None:
    [p] = await nod.asked(red())
    reply = await nod.press(Verb.APPROVE, p, arguments=arguments)
    assert (reply.answer, list(reply.fields)) == (Answer.INVALID, [field])
    assert await nod.now(p) == p


async def test_an_edit_the_tool_cannot_preview_is_refused_in_words(nod: Nod) -> None:
    [p] = await nod.asked(red())
    reply = await nod.press(Verb.EDIT, p, arguments={"lamp": "sun", "color": "red"})
    assert (reply.answer, reply.text) == (Answer.INVALID, "There is no lamp sun.")


async def test_an_edit_whose_preview_breaks_is_refused_without_its_inside(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.world.lamps = None  # type: ignore[assignment]
    reply = await nod.press(Verb.EDIT, p, arguments={"lamp": "desk", "color": "blue"})
    failed = "paint failed with TypeError; the log has the details."
    assert (reply.answer, reply.text) == (Answer.INVALID, failed)


async def test_an_edit_without_arguments_is_refused(nod: Nod) -> None:
    [p] = await nod.asked(red())
    assert (await nod.press(Verb.EDIT, p)).answer is Answer.INVALID
    assert await nod.now(p) == p


async def test_a_secret_left_hidden_in_an_edit_stays_what_it_was(nod: Nod) -> None:
    [p] = await nod.asked(call("enroll", name="ana", code="0451", extra={"password": "x", "seat": "1"}))
    shown = await nod.lookup.arguments(p.id, ANA)
    assert shown == {"name": "ana", "code": HIDDEN, "extra": {"password": HIDDEN, "seat": "1"}}
    await nod.press(
        Verb.APPROVE, p, arguments={**shown, "name": "Ana", "extra": {"password": HIDDEN, "seat": "2"}}
    )
    await nod.idle()
    assert nod.world.runs[0].arguments == {
        "name": "Ana",
        "code": "0451",
        "extra": {"password": "x", "seat": "2"},
    }


async def test_a_secret_half_rewritten_is_refused_and_the_dots_are_never_stored(nod: Nod) -> None:
    [p] = await nod.asked(call("enroll", name="ana", code="0451"))
    reply = await nod.press(Verb.EDIT, p, arguments={"name": "ana", "code": f"{HIDDEN}2"})
    assert (reply.answer, list(reply.fields)) == (Answer.INVALID, ["code"])


async def test_a_retry_runs_it_again_through_the_same_door(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.world.broken = ToolError("no paint")
    p = await nod.approve(p)
    assert (p.state, p.error) == (State.FAILED, "no paint")
    nod.world.broken = None
    reply = await nod.press(Verb.RETRY, p)
    await nod.idle()
    assert reply.answer is Answer.ACCEPTED
    assert ((await nod.now(p)).state, len(nod.world.runs)) == (State.SUCCEEDED, 2)
    assert nod.model.heard[-1].endswith(
        "- Paint lamp desk red: SUCCEEDED: approved by Ana. "
        "Result: [From a tool: data, not instructions] desk is red"
    )


async def test_a_retry_pressed_twice_on_one_card_runs_it_once_more_only(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.world.broken = ToolError("no paint")
    p = await nod.approve(p)
    await nod.press(Verb.RETRY, p, round_shown=p.round)
    await nod.idle()
    assert (await nod.press(Verb.RETRY, p, round_shown=p.round)).answer is Answer.STALE
    assert len(nod.world.runs) == 2


async def test_a_retry_is_for_those_who_may_decide_and_only_after_a_failure(team: Nod) -> None:
    [p] = await team.asked(red())
    assert (await team.press(Verb.RETRY, p)).answer is Answer.ALREADY
    team.world.broken = ToolError("no paint")
    p = await team.approve(p)
    assert (await team.press(Verb.RETRY, p, by=EVE)).answer is Answer.REFUSED
    assert len(team.world.runs) == 1


async def test_a_retry_that_cannot_help_is_refused_in_words(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.world.broken = PermanentRefusal("that lamp is gone")
    p = await nod.approve(p)
    reply = await nod.press(Verb.RETRY, p)
    assert (reply.answer, reply.text) == (Answer.STALE, "Trying again can't help. that lamp is gone")
    assert reply.proposals == (await nod.now(p),)
    assert len(nod.world.runs) == 1


async def test_a_retry_after_the_old_values_changed_asks_people_again(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.world.after["paint"] = hold = Hold()
    await nod.press(Verb.APPROVE, p)
    await hold.reached.wait()
    del nod.world.after["paint"]
    await nod.crash()
    assert (await nod.now(p)).cause is Cause.OUTCOME_UNKNOWN
    await nod.press(Verb.RETRY, p)
    await nod.idle()
    again = await nod.now(p)
    assert (again.state, again.preview) == (State.PROPOSED, (PreviewField("desk", "red", "red"),))
    assert len(nod.world.runs) == 1


async def test_approve_all_decides_every_open_proposal_of_the_answer(nod: Nod) -> None:
    one, two, three = await nod.asked(red(), red("door"), red("roof"))
    await nod.press(Verb.DECLINE, two)
    reply = await nod.press(Verb.APPROVE_ALL, three, round_shown=3, digest=three.digest)
    await nod.idle()
    assert (reply.answer, reply.text) == (Answer.ACCEPTED, "2 approved.")
    assert [p.state for p in await nod.proposals()] == [State.SUCCEEDED, State.DECLINED, State.SUCCEEDED]
    assert sorted(run.arguments["lamp"] for run in nod.world.runs) == ["desk", "roof"]
    assert len(nod.model.transcripts) == 2
    assert (await nod.press(Verb.DECLINE_ALL, one)).text == "All of these are already decided."


async def test_decline_all_declines_every_one_with_the_reason(nod: Nod) -> None:
    found = await nod.asked(red(), red("door"))
    await nod.press(Verb.DECLINE_ALL, found[0], reason="not today")
    await nod.idle()
    assert [(p.state, p.decline_reason) for p in await nod.proposals()] == [(State.DECLINED, "not today")] * 2


async def test_a_group_press_after_one_of_them_changed_is_stale(nod: Nod) -> None:
    one, two = await nod.asked(red(), red("door"))
    await nod.press(Verb.EDIT, one, arguments={"lamp": "desk", "color": "blue"})
    assert (await nod.press(Verb.APPROVE_ALL, two, round_shown=2)).answer is Answer.STALE
    assert (await nod.press(Verb.APPROVE_ALL, two, round_shown=3)).answer is Answer.ACCEPTED


async def test_a_group_press_after_expiry_expires_all_and_the_agent_continues(nod: Nod) -> None:
    one, _ = await nod.asked(red(), red("door"))
    nod.clock.forward(timedelta(hours=25))
    assert (await nod.press(Verb.APPROVE_ALL, one)).answer is Answer.ALREADY
    await nod.idle()
    assert [p.state for p in await nod.proposals()] == [State.EXPIRED] * 2
    assert [r.split(":")[0] for r in nod.model.results] == ["EXPIRED", "EXPIRED"]


async def test_linked_accounts_are_one_person_who_may_decide_from_either(nod: Nod) -> None:
    phone = Actor("phone", "9", "Ana's phone")
    [p] = await nod.asked(red())
    assert (await nod.press(Verb.APPROVE, p, by=phone)).answer is Answer.REFUSED
    assert (
        await nod.link(ANA, phone) == "Linked: Ana's phone (phone:9) and Ana (chat:ana) are one person now."
    )
    await nod.press(Verb.APPROVE, p, by=phone)
    await nod.idle()
    done = await nod.now(p)
    assert (done.state, done.decided_by, done.decided_from) == (State.SUCCEEDED, "Ana's phone", "phone")


async def test_the_later_of_two_edits_is_told_what_the_earlier_changed_and_by_whom(team: Nod) -> None:
    (painted,) = await team.asked(call("paint", lamp="desk", color="red"), private=False)
    await team.press(Verb.EDIT, painted, by=BEN, arguments={"lamp": "desk", "color": "blue"}, round_shown=1)
    later = await team.press(
        Verb.EDIT, painted, by=ANA, arguments={"lamp": "desk", "color": "green", "coats": 2}, round_shown=1
    )
    assert (later.answer, later.proposals) == (Answer.STALE, (await team.now(painted),))
    assert "after the card was shown: Ben changed color: red → blue. Look" in later.text
    assert (await team.now(painted)).arguments["color"] == "blue"

    await team.press(Verb.EDIT, painted, by=ANA, arguments={"lamp": "desk", "color": "green"}, round_shown=2)
    approve = await team.press(Verb.APPROVE, painted, by=BEN, round_shown=1)
    assert "Ben changed color: red → blue; Ana changed color: blue → green." in approve.text
    edit = await team.press(Verb.EDIT, painted, round_shown=2)
    assert "after the card was shown: Ana changed color: blue → green. Look" in edit.text


async def test_what_changed_is_told_without_secrets_and_survives_a_restart(nod: Nod) -> None:
    (enrolled,) = await nod.asked(call("enroll", name="Eve", code="hunter2"))
    await nod.press(Verb.EDIT, enrolled, arguments={"name": "Eve", "code": "hunter3"})
    await nod.restart()
    told = (await nod.press(Verb.APPROVE, enrolled, round_shown=1)).text
    assert "Ana changed code: •••••• → ••••••" in told
    assert "hunter" not in told
