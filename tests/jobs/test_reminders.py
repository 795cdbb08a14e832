"""What time does: warnings, reminders, quiet hours, escalation, late presses, the digest, the seal."""

from datetime import timedelta

import pytest
from sqlalchemy import delete, update
from sqlmodel import col, select

from bot.domain.audit import AuditFilter
from bot.domain.chat import Answer
from bot.domain.proposal_states import State
from bot.domain.verbs import Verb
from bot.store import posted_cards
from bot.store.audit import export_formats, log, search, verification
from bot.store.tables.audit import AuditRow
from bot.store.tables.proposals import ProposalRow
from tests.kit import ADA, ANA, EVE, ROOM, WALL, MakeNod, Nod, RecordingChannel, call

pytestmark = pytest.mark.slow


@pytest.fixture
def nod(make_nod: MakeNod) -> Nod:
    return make_nod(admins=[ADA], channels=[RecordingChannel(), RecordingChannel("wall")])


async def rule(nod: Nod, words: str) -> None:
    reply = await nod.command(f"/approvals {words}", by=ADA)
    assert reply.answer is Answer.ACCEPTED, reply.text


def told(nod: Nod, words: str) -> int:
    return sum(words in text for _, text in nod.chat.texts)


async def test_deciders_are_warned_once_when_a_fifth_of_the_time_is_left(nod: Nod) -> None:
    await nod.asked(call("paint", lamp="desk", color="red"))
    await nod.tick(timedelta(hours=19))
    assert told(nod, "Expires in") == 0
    await nod.tick(timedelta(hours=1))
    await nod.tick()
    assert told(nod, "Expires in") == 1
    assert [(ref in nod.chat.cards, people) for ref, _, people in nod.chat.reminders] == [(True, (ANA,))]


async def test_a_place_with_two_copies_of_the_card_is_told_once_at_the_newer(nod: Nod) -> None:
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    (copy,) = nod.database.read_now(posted_cards.list_copies, painted.id)
    nod.chat.cards["newer"] = nod.chat.card_of(painted)
    nod.database.write_now(posted_cards.add_card, painted.id, copy.address, "newer", painted.version)
    await nod.tick(timedelta(hours=20))
    assert [ref for ref, _, _ in nod.chat.reminders] == ["newer"]


async def test_the_last_minute_is_not_told_as_none(nod: Nod) -> None:
    await rule(nod, "ttl 4m for paint")
    await nod.asked(call("paint", lamp="desk", color="red"))
    await nod.tick(timedelta(minutes=3, seconds=30))
    assert told(nod, "Expires in less than a minute if no one decides: Paint lamp desk red") == 1


async def test_a_ttl_for_one_tool_holds_for_it_alone(nod: Nod) -> None:
    await rule(nod, "ttl 15m for paint")
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    (smashed,) = await nod.asked(call("smash", lamp="door"))
    await nod.tick(timedelta(minutes=15))
    assert (await nod.now(painted)).state is State.EXPIRED
    assert (await nod.now(smashed)).state is State.PROPOSED


async def test_extend_restarts_its_timer_and_warns_again(nod: Nod) -> None:
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    await nod.tick(timedelta(hours=20))
    assert (await nod.press(Verb.EXTEND, painted)).answer is Answer.ACCEPTED
    await nod.tick(timedelta(hours=19))
    assert (await nod.now(painted)).state is State.PROPOSED
    await nod.tick(timedelta(hours=1))
    assert told(nod, "Expires in") == 2


async def test_reminders_come_at_their_pace_but_not_in_quiet_hours(nod: Nod) -> None:
    await rule(nod, "remind 2h")
    await nod.asked(call("paint", lamp="desk", color="red"))
    await nod.tick(timedelta(hours=2))
    await nod.tick(timedelta(hours=2))
    assert told(nod, "Still waiting") == 2
    begin = (nod.clock() - timedelta(hours=1)).strftime("%H:%M")
    end = (nod.clock() + timedelta(hours=3)).strftime("%H:%M")
    await rule(nod, f"quiet {begin} {end}")
    await nod.tick(timedelta(hours=2))
    assert told(nod, "Still waiting") == 2
    await nod.tick(timedelta(hours=2))
    assert told(nod, "Still waiting") == 3


async def test_no_one_deciding_shows_it_to_a_second_circle_that_may_decide(nod: Nod) -> None:
    await rule(nod, "roles add chat:ben approver")
    await rule(nod, f"escalate 4h {WALL}")
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    await nod.tick(timedelta(hours=4))
    await nod.tick()
    wall = nod.channels["wall"]
    assert [card.proposal_id for card in wall.cards.values()] == [painted.id]
    from tests.kit import BEN

    assert (await nod.approve(painted, by=BEN)).state is State.SUCCEEDED
    assert "Done." in next(iter(wall.cards.values())).outcome


async def test_after_escalation_anyone_in_that_chat_may_decide_and_the_card_there_says_so(nod: Nod) -> None:
    await rule(nod, f"escalate 4h {WALL}")
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    assert (await nod.press(Verb.APPROVE, painted, by=EVE, at=WALL)).answer is Answer.REFUSED
    await nod.tick(timedelta(hours=4))
    await nod.tick()
    [there] = nod.channels["wall"].cards.values()
    assert "No one decided in time, so anyone in this chat may decide." in there.notes
    assert Verb.APPROVE in there.verbs
    here = nod.chat.card_of(painted)
    assert "anyone in the chat it was escalated to" in here.deciders
    history = await nod.database.read(log.list_rows_of_proposal, painted.id)
    assert history[-1].verb == "escalate"
    assert (await nod.press(Verb.APPROVE, painted, by=EVE, at=ROOM)).answer is Answer.REFUSED
    assert (await nod.press(Verb.APPROVE, painted, by=EVE, at=WALL)).answer is Answer.ACCEPTED


async def test_a_person_to_whom_it_escalated_decides_from_anywhere(nod: Nod) -> None:
    await rule(nod, "escalate 4h chat:eve")
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    await nod.tick(timedelta(hours=4))
    assert (await nod.approve(painted, by=EVE)).state is State.SUCCEEDED


async def test_a_route_posts_cards_there_too_and_every_copy_follows(nod: Nod) -> None:
    await rule(nod, f"route {WALL} for paint")
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    await nod.approve(painted)
    assert ["Done." in card.outcome for card in nod.channels["wall"].cards.values()] == [True]


async def test_a_late_press_asks_again_with_what_is_there_now_instead_of_dying(nod: Nod) -> None:
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    await nod.tick(timedelta(hours=25))
    assert (await nod.now(painted)).state is State.EXPIRED
    nod.world.lamps["desk"] = "blue"
    reply = await nod.press(Verb.APPROVE, painted)
    await nod.idle()
    again = await nod.now(painted)
    assert reply.answer is Answer.STALE
    assert "Here it is again" in reply.text
    assert (again.state, again.preview[0].old_value, again.round) == (State.PROPOSED, "blue", 2)
    assert nod.world.runs == []
    assert nod.chat.card_of(painted).pending
    assert (await nod.approve(again)).state is State.SUCCEEDED


async def test_a_late_press_before_the_sweep_asks_again_too(nod: Nod) -> None:
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    nod.clock.forward(timedelta(hours=25))
    assert (await nod.press(Verb.APPROVE, painted)).answer is Answer.STALE
    assert (await nod.now(painted)).state is State.PROPOSED


async def test_a_clock_that_jumps_and_ticks_that_are_missed_harm_nothing(nod: Nod) -> None:
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    nod.clock.forward(timedelta(hours=-5))
    await nod.tick()
    assert (await nod.now(painted)).state is State.PROPOSED
    await nod.tick(timedelta(days=400))
    assert (await nod.now(painted)).state is State.EXPIRED
    assert told(nod, "Expires in") == 0


async def test_the_daily_digest_comes_once_a_day_where_an_admin_wants_it(nod: Nod) -> None:
    at = (nod.clock() + timedelta(minutes=30)).strftime("%H:%M")
    await rule(nod, f"digest {at} {WALL}")
    await nod.asked(call("paint", lamp="desk", color="red"))
    await nod.tick()
    assert nod.channels["wall"].texts == []
    await nod.tick(timedelta(hours=1))
    await nod.tick(timedelta(minutes=5))
    ((where, text),) = nod.channels["wall"].texts
    assert where == WALL
    assert "1 waiting for a decision" in text
    assert "Paint lamp desk red" in text


async def test_an_anchor_goes_to_the_approvers_once_an_hour_when_there_is_news(nod: Nod) -> None:
    nod.routes = [WALL]
    await nod.restart()
    await nod.tick()
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    anchors: list[str] = []
    for passed in (timedelta(), timedelta(minutes=30), timedelta(hours=1), timedelta(hours=2)):
        if passed == timedelta(minutes=30):
            await nod.approve(painted)
        await nod.tick(passed)
        posted = [text for at, text in nod.channels["wall"].texts if at == WALL and "anchor" in text]
        anchors.append(posted[-1].split("`")[1])
        assert len(posted) == len(set(anchors))
    assert [anchor.partition("-")[0] for anchor in anchors] == ["1", "1", "4", "4"]
    assert await nod.database.read(verification.find_faults_in_session, anchors) == []
    verified = await nod.command("/approvals audit verify", by=ADA)
    assert verified.text == "Audit log verified: nothing missing or altered."


async def sealed(nod: Nod) -> None:
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    await nod.approve(painted)
    await nod.tick()


async def test_a_changed_row_is_named(nod: Nod) -> None:
    await sealed(nod)
    await nod.database.write(
        lambda s: s.execute(update(AuditRow).where(col(AuditRow.id) == 2).values(actor="chat:eve"))
    )
    assert any(
        "row 2 (proposal" in fault for fault in await nod.database.read(verification.find_faults_in_session)
    )
    await nod.database.write(
        lambda s: s.execute(update(AuditRow).where(col(AuditRow.id) == 2).values(actor="chat:ana"))
    )


async def test_removed_rows_are_named_at_the_end_in_the_middle_and_all_together(nod: Nod) -> None:

    await sealed(nod)
    rows = await nod.database.read(lambda s: [r.model_dump() for r in s.exec(select(AuditRow))])
    for gone in ([rows[-1]], [rows[1]], rows):
        ids = [row["id"] for row in gone]
        await nod.database.write(
            lambda s, ids=ids: s.execute(delete(AuditRow).where(col(AuditRow.id).in_(ids)))
        )
        faults = await nod.database.read(verification.find_faults_in_session)
        assert faults, gone
        await nod.database.write(lambda s, gone=gone: [s.add(AuditRow(**row)) for row in gone])
    assert await nod.database.read(verification.find_faults_in_session) == []


async def test_a_proposal_changed_past_the_audit_is_named(nod: Nod) -> None:
    await sealed(nod)
    await nod.database.write(lambda s: s.execute(update(ProposalRow).values(version=9)))
    faults = await nod.database.read(verification.find_faults_in_session)
    assert any("its row is at version 9, its audit is not" in fault for fault in faults)
    await nod.database.write(lambda s: s.execute(update(ProposalRow).values(version=4)))


async def test_the_export_tells_who_did_what_and_hides_secrets(nod: Nod) -> None:
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    await nod.press(Verb.DECLINE, painted, reason="token xoxb-123456789012-abcdef")
    found = await nod.database.read(search.list_matching_rows, AuditFilter())
    lines = export_formats.format_jsonl(found)
    assert '"verb": "decline"' in lines
    assert '"actor": "chat:ana"' in lines
    assert "xoxb" not in lines + export_formats.format_csv(found)
    assert export_formats.format_csv(found).startswith('\ufeff"id","proposal_id","version","at","verb"')
