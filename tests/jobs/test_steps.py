"""Steps: who is told while no one decides, each once, over restarts, processes, pauses and clocks."""

import asyncio
from datetime import timedelta

import pytest
from sqlmodel import Session

from bot.domain.chat import Answer
from bot.domain.hooks import Hooks, Notifier
from bot.domain.people import Actor, UserGroup
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.rule_values import Subject, format_value, read_value
from bot.domain.steps import TimedStep
from bot.domain.verbs import Verb
from bot.errors import ChannelError
from bot.store import notices
from bot.store.audit import log, verification
from tests.kit import ADA, BEN, EVE, WALL, MakeNod, Nod, RecordingChannel, call

OPS = "chat:ops/admins"
RED = call("paint", lamp="desk", color="red")
MINUTE = timedelta(minutes=1)


def announce(session: Session, proposal: Proposal, more: int, now: object) -> None:
    """Store what a notifier would send as a text for the wall."""
    notices.store_notice(session, WALL, f"horn: {proposal.description}, {more} more", proposal.updated_at)


HORN = Notifier("horn", announce)
FLAG = Notifier("flag", announce, "There is no flag here. Set NOD_FLAG.")


@pytest.fixture
def nod(make_nod: MakeNod) -> Nod:
    hooks = Hooks(notifiers=(HORN, FLAG))
    return make_nod(admins=[ADA], channels=[RecordingChannel(), RecordingChannel("wall")], hooks=hooks)


async def rule(nod: Nod, words: str) -> str:
    reply = await nod.command(f"/approvals {words}", by=ADA)
    assert reply.answer is Answer.ACCEPTED, reply.text
    return reply.text


def horns(nod: Nod) -> list[str]:
    return [text for _, text in nod.channels["wall"].texts if text.startswith("horn")]


async def history(nod: Nod, proposal: Proposal) -> list[tuple[str, str | None]]:
    rows = await nod.database.read(log.list_rows_of_proposal, proposal.id)
    return [(row.verb, row.reason) for row in rows]


async def test_steps_come_one_after_another_and_each_once(nod: Nod) -> None:
    said = await rule(nod, f"notify {WALL} after 10m, horn after 2m, reminder after 20m for paint")
    assert said == f"Set: rule 1: notify horn after 2m, {WALL} after 10m, reminder after 20m for paint."
    (painted,) = await nod.asked(RED)
    await nod.tick(MINUTE)
    assert horns(nod) == []
    await nod.tick(MINUTE)
    await nod.tick()
    assert horns(nod) == ["horn: Paint lamp desk red, 0 more"]
    assert nod.channels["wall"].cards == {}
    await nod.tick(8 * MINUTE)
    await nod.tick()
    assert [card.proposal_id for card in nod.channels["wall"].cards.values()] == [painted.id]
    assert nod.chat.reminders == []
    await nod.tick(10 * MINUTE)
    await nod.tick(10 * MINUTE)
    assert len(nod.chat.reminders) == 1
    assert horns(nod) == ["horn: Paint lamp desk red, 0 more"]
    expected = [("propose", None), ("notify", "horn"), ("escalate", None), ("notify", "reminder")]
    assert await history(nod, painted) == expected
    assert (await nod.press(Verb.APPROVE, painted, by=EVE, at=WALL)).answer is Answer.ACCEPTED
    await nod.idle()
    assert await nod.database.read(verification.find_faults_in_session) == []


async def test_two_places_may_both_decide(nod: Nod) -> None:
    await rule(nod, f"notify {WALL} after 1m, chat:eve after 2m for paint")
    (painted,) = await nod.asked(RED)
    await nod.tick(MINUTE)
    await nod.tick(MINUTE)
    now = await nod.now(painted)
    assert now.deciders.escalation_chats == (str(WALL), "chat:eve")
    assert "anyone in the chats it was escalated to" in nod.chat.card_of(painted).deciders
    assert (await nod.press(Verb.DECLINE, painted, by=EVE)).answer is Answer.ACCEPTED
    assert (await nod.now(painted)).state is State.DECLINED


async def test_a_group_gets_the_card_in_private_and_decides(nod: Nod) -> None:
    nod.chat.groups[OPS] = UserGroup("the ops", frozenset({str(EVE)}))
    said = await rule(nod, f"notify {OPS} after 5m for paint")
    assert said == "Set: rule 1: notify the ops after 5m for paint."
    (painted,) = await nod.asked(RED)
    assert (await nod.press(Verb.APPROVE, painted, by=EVE)).answer is Answer.REFUSED
    await nod.tick(5 * MINUTE)
    assert (await nod.now(painted)).is_escalated
    assert EVE.key in {place.key for place in nod.chat.places.values()}
    assert (await nod.press(Verb.APPROVE, painted, by=EVE)).answer is Answer.ACCEPTED


async def test_a_group_that_no_one_can_look_up_is_reminded_where_the_card_is(nod: Nod) -> None:
    nod.chat.refusals["look_up"] = ChannelError("down")
    said = await rule(nod, f"notify {OPS} after 5m for paint")
    assert "Nod can't see who is in chat:ops/admins. down" in said
    (painted,) = await nod.asked(RED)
    await nod.tick(5 * MINUTE)
    [(_, text, people)] = nod.chat.reminders
    assert text.startswith("Still waiting for a decision")
    assert Actor.parse(OPS) in people
    assert (await nod.now(painted)).deciders.people == (OPS,)


async def test_quiet_hours_hold_back_notifiers_and_not_escalations(nod: Nod) -> None:
    await rule(nod, f"notify horn after 1h, {WALL} after 2h for paint")
    begin = nod.clock().strftime("%H:%M")
    end = (nod.clock() + timedelta(hours=3)).strftime("%H:%M")
    await rule(nod, f"quiet {begin} {end}")
    await nod.asked(RED)
    await nod.tick(timedelta(hours=2))
    assert horns(nod) == []
    assert len(nod.channels["wall"].cards) == 1
    await nod.tick(timedelta(hours=1))
    await nod.tick()
    assert len(horns(nod)) == 1


async def test_steps_go_by_the_risk_that_the_other_rules_give_a_call(nod: Nod) -> None:
    await rule(nod, "notify horn after 1m where risk is destructive")
    await rule(nod, "remind 1m where risk is write")
    (painted,) = await nod.asked(RED)
    assert (painted.steps, painted.remind_every) == ((), MINUTE)
    (smashed,) = await nod.asked(call("smash", lamp="desk"))
    assert ([step.target for step in smashed.steps], smashed.remind_every) == (["horn"], None)
    await rule(nod, "risk destructive for paint")
    (painted,) = await nod.asked(call("paint", lamp="door", color="red"))
    assert ([step.target for step in painted.steps], painted.remind_every) == (["horn"], None)


async def test_the_short_forms_hold_along_with_steps(nod: Nod) -> None:
    for words in ("notify horn after 1m", f"escalate 5m {WALL}", "remind 3m"):
        await rule(nod, words)
    (painted,) = await nod.asked(RED)
    for _ in range(6):
        await nod.tick(MINUTE)
    assert len(horns(nod)) == 1
    assert len(nod.chat.reminders) == 2
    assert (await nod.now(painted)).deciders.escalated == str(WALL)


async def test_a_batch_is_told_once_with_how_many_more(nod: Nod) -> None:
    await rule(nod, "notify horn after 1m")
    nod.world.lamps = dict.fromkeys(("desk", "door", "hall"), "white")
    await nod.asked(*(call("paint", lamp=lamp, color="red") for lamp in nod.world.lamps))
    await nod.tick(MINUTE)
    await nod.tick(MINUTE)
    assert horns(nod) == ["horn: Paint lamp desk red, 2 more"]


async def test_what_was_due_while_nod_was_down_comes_once_after_a_restart(nod: Nod) -> None:
    await rule(nod, f"notify horn after 2m, {WALL} after 10m")
    await nod.asked(RED)
    await nod.tick(MINUTE)
    await nod.crash()
    nod.clock.forward(timedelta(hours=1))
    await nod.restart()
    await nod.tick()
    await nod.crash()
    await nod.tick()
    assert len(horns(nod)) == 1
    assert len(nod.channels["wall"].cards) == 1


async def test_two_processes_take_each_step_once(nod: Nod) -> None:
    await rule(nod, f"notify horn after 2m, {WALL} after 2m")
    (painted,) = await nod.asked(RED)
    other = nod.beside()
    nod.clock.forward(2 * MINUTE)
    await asyncio.gather(*(each.reminders.remind(nod.clock()) for each in (nod, other, nod, other)))
    await nod.tick()
    await other.close()
    assert len(horns(nod)) == 1
    verbs = [verb for verb, _ in await history(nod, painted)]
    assert sorted(verbs) == ["escalate", "notify", "propose"]


async def test_a_clock_that_jumps_takes_no_step_twice(nod: Nod) -> None:
    await rule(nod, "notify horn after 2m, reminder after 30m")
    await nod.asked(RED)
    await nod.tick(2 * MINUTE)
    nod.clock.forward(-timedelta(hours=5))
    await nod.tick()
    assert len(horns(nod)) == 1
    await nod.tick(timedelta(hours=6))
    await nod.tick(timedelta(hours=1))
    assert len(horns(nod)) == 1
    assert len(nod.chat.reminders) == 1


async def test_a_pause_stops_the_steps_and_their_times(nod: Nod) -> None:
    await rule(nod, "notify horn after 10m, reminder after 20m")
    (painted,) = await nod.asked(RED)
    await nod.tick(MINUTE)
    await rule(nod, "pause")
    await nod.tick(timedelta(hours=1))
    assert horns(nod) == []
    await rule(nod, "resume")
    now = await nod.now(painted)
    begin = painted.created_at + timedelta(hours=1)
    assert [step.due_at for step in now.steps] == [begin + 10 * MINUTE, begin + 20 * MINUTE]
    assert now.notify_at == begin + 10 * MINUTE
    await nod.tick(9 * MINUTE)
    assert len(horns(nod)) == 1


async def test_an_edit_starts_the_steps_again_and_an_end_stops_them(nod: Nod) -> None:
    await rule(nod, "notify horn after 10m")
    (painted,) = await nod.asked(RED)
    await nod.tick(5 * MINUTE)
    blue = {"lamp": "desk", "color": "blue"}
    await nod.press(Verb.EDIT, painted, arguments=blue, round_shown=1)
    await nod.tick(5 * MINUTE)
    assert horns(nod) == []
    await nod.press(Verb.DECLINE, await nod.now(painted))
    await nod.tick(timedelta(hours=1))
    assert horns(nod) == []


async def test_a_notifier_that_is_gone_by_then_is_told_to_the_admins(nod: Nod) -> None:
    await rule(nod, "notify horn after 2m")
    await nod.asked(RED)
    nod.hooks = Hooks()
    await nod.restart()
    await nod.tick(2 * MINUTE)
    await nod.tick()
    [said] = [text for at, text in nod.chat.texts if at.key == ADA.key]
    assert said.startswith("The step `horn` can't be taken for Paint lamp desk red.")
    assert said.endswith("Change the rule: `/approvals rules`.")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("flag after 2m", "There is no flag here. Set NOD_FLAG."),
        (
            "trumpet after 2m",
            "'trumpet' is neither a notifier nor a place. Use reminder, page, push, horn, flag",
        ),
        ("horn", "Write the steps as"),
        ("horn in 2m", "Write the steps as"),
        ("horn after", "Write the steps as"),
        ("horn after 2m,", "Write the steps as"),
        ("horn after 1s", "out of range"),
        ("horn after soon", "'soon'"),
        ("horn after 2m, horn after 3m", "Name each target once."),
        ("@oncall after 2m", "@oncall is not known here."),
        ("slak:T1/C2 after 2m", "There is no channel slak"),
        (", ".join(f"chat:c{n} after {n}m" for n in range(1, 10)), "At most 8 steps."),
    ],
)
async def test_what_is_no_step_is_refused_with_what_to_write(nod: Nod, words: str, why: str) -> None:
    reply = await nod.command(f"/approvals notify {words}", by=ADA)
    assert reply.answer is Answer.INVALID
    assert why in reply.text


async def test_only_admins_set_steps(nod: Nod) -> None:
    reply = await nod.command("/approvals notify horn after 2m", by=BEN)
    assert reply.answer is Answer.REFUSED


async def test_the_rule_with_the_soonest_first_step_counts(nod: Nod) -> None:
    await rule(nod, "notify horn after 5m")
    said = await rule(nod, "notify reminder after 9m for paint")
    assert "Where both apply, this counts: rule 1: notify horn after 5m." in said
    (painted,) = await nod.asked(RED)
    assert [step.target for step in painted.steps] == ["horn"]


def test_a_rule_is_kept_and_read_as_it_was_set() -> None:
    steps = read_value(Subject.NOTIFY, [["push", 120.0], ["slack:T1/S2", 600.0]])
    assert steps == (TimedStep("push", 2 * MINUTE), TimedStep("slack:T1/S2", 10 * MINUTE))
    assert format_value(Subject.NOTIFY, steps) == "push after 2m, slack:T1/S2 after 10m"


async def test_what_only_its_asker_decides_has_no_steps(nod: Nod) -> None:
    await rule(nod, "notify horn after 1m")
    (asked,) = await nod.asked(call("ask_person", question="Which lamp?"))
    assert asked.requester_decides_alone
    await nod.tick(MINUTE)
    assert (asked.steps, horns(nod)) == ((), [])
