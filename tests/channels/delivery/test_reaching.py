"""What Nod says by itself arrives, or those who must know are told that it can't."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from bot.channels.delivery.notices import Notices
from bot.domain.chat import Address, Answer
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.errors import ChannelError, NotDeliverable
from tests.kit import ADA, ANA, ROOM, WALL, MakeNod, Nod, RecordingChannel, call

pytestmark = pytest.mark.slow

ASKER, ADMIN = Address("chat", ANA.key), Address("chat", ADA.key)
OPS = Actor("http", "ops")  # an admin who is in no chat
DOWN = ChannelError("internal_error")
OUT = NotDeliverable("Nod is not in the channel")


@pytest.fixture
def nod(make_nod: MakeNod) -> Nod:
    return make_nod(admins=[ADA], channels=[RecordingChannel(), RecordingChannel("wall")])


async def rule(nod: Nod, words: str, by: Actor = ADA) -> None:
    reply = await nod.command(f"/approvals {words}", by=by)
    assert reply.answer is Answer.ACCEPTED, reply.text


def told(nod: Nod, words: str) -> list[Address]:
    return [address for address, text in nod.chat.texts if words in text]


async def recovers(nod: Nod) -> None:
    """The platforms are back, and two minutes pass."""
    for channel in nod.channels.values():
        channel.refusals.clear()
    for _ in range(4):
        await nod.tick(timedelta(seconds=30))


async def test_an_escalation_that_meets_a_bad_moment_arrives_once_even_after_a_restart(nod: Nod) -> None:
    await rule(nod, f"escalate 4h {WALL}")
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    wall = nod.channels["wall"]
    wall.refusals["post_card"] = DOWN
    await nod.tick(timedelta(hours=4))
    await nod.restart()
    await recovers(nod)
    assert [card.proposal_id for card in wall.cards.values()] == [painted.id]


async def test_a_reminder_and_a_warning_that_meet_a_bad_moment_arrive_once(nod: Nod) -> None:
    await rule(nod, "remind 20h")
    await nod.asked(call("paint", lamp="desk", color="red"))
    nod.chat.refusals["remind"] = DOWN
    await nod.tick(timedelta(hours=20))
    assert nod.chat.reminders == []
    await recovers(nod)
    assert [words.split(" (")[0].split(" in ")[0] for _, words, _ in nod.chat.reminders] == [
        "Expires",
        "Still waiting for a decision",
    ]


async def test_a_digest_that_meets_a_bad_moment_arrives_once(nod: Nod) -> None:
    await rule(nod, f"digest 00:00 {ROOM}")
    nod.chat.refusals["post"] = DOWN
    await nod.tick()
    await recovers(nod)
    assert told(nod, "Nothing is waiting") == [ROOM]


async def test_a_reminder_of_what_was_decided_since_is_not_sent(nod: Nod) -> None:
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    nod.chat.refusals["remind"] = DOWN
    await nod.tick(timedelta(hours=20))
    await nod.approve(painted)
    await recovers(nod)
    assert nod.chat.reminders == []


async def test_an_escalation_into_a_place_that_refuses_for_good_is_told_to_who_asked_and_the_admins(
    nod: Nod,
) -> None:
    await rule(nod, f"escalate 4h {WALL}")
    await nod.asked(call("paint", lamp="desk", color="red"))
    nod.channels["wall"].refusals["post_card"] = OUT
    await nod.tick(timedelta(hours=4))
    await recovers(nod)
    assert sorted(told(nod, "Nod is not in the channel"), key=str) == sorted([ROOM, ADMIN], key=str)


async def test_a_digest_into_a_place_that_refuses_for_good_is_told_to_the_admins(nod: Nod) -> None:
    await rule(nod, f"digest 00:00 {WALL}")
    nod.channels["wall"].refusals["post"] = OUT
    await nod.tick()
    await recovers(nod)
    assert told(nod, "Nod is not in the channel") == [ADMIN]


async def test_a_card_that_only_who_asked_can_see_is_told_to_them_and_to_the_admins(nod: Nod) -> None:
    await rule(nod, "approvers wall:ben")
    await rule(nod, f"route {WALL}")
    nod.channels["wall"].refusals["post_card"] = OUT
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    await recovers(nod)
    assert (await nod.now(painted)).state is State.PROPOSED
    assert sorted(told(nod, "Nod is not in the channel"), key=str) == sorted([ROOM, ADMIN], key=str)


async def test_a_refusal_is_told_though_its_first_transaction_failed(
    nod: Nod, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell_unreached = Notices.tell_unreached
    failures = [OperationalError("", {}, Exception("disk I/O error"))]

    def fail_once(notices: Notices, *given: Any) -> None:
        tell_unreached(notices, *given)
        if failures:
            raise failures.pop()

    monkeypatch.setattr(Notices, "tell_unreached", fail_once)
    await rule(nod, "approvers wall:ben")
    await rule(nod, f"route {WALL}")
    nod.channels["wall"].refusals["post_card"] = OUT
    await nod.asked(call("paint", lamp="desk", color="red"))
    for _ in range(4):
        await nod.tick(timedelta(seconds=30))
    assert failures == []
    assert sorted(told(nod, "Nod is not in the channel"), key=str) == sorted([ROOM, ADMIN], key=str)


async def test_the_only_approver_whose_private_chat_is_closed_is_told_to_who_asked(make_nod: MakeNod) -> None:
    wall = RecordingChannel("wall")
    nod = make_nod(admins=[OPS], channels=[RecordingChannel(), wall])
    await rule(nod, "approvers wall:ben", by=OPS)
    wall.refusals["post_card"] = NotDeliverable("their private chat is closed")
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    await recovers(nod)
    assert (await nod.now(painted)).state is State.PROPOSED
    assert told(nod, "their private chat is closed") == [ROOM]


async def test_a_card_that_its_requester_may_approve_is_no_news_where_a_route_refuses(nod: Nod) -> None:
    await rule(nod, f"route {WALL}")
    nod.channels["wall"].refusals["post_card"] = OUT
    await nod.asked(call("paint", lamp="desk", color="red"))
    await recovers(nod)
    assert told(nod, "Nod is not in the channel") == []


async def test_a_waiting_card_that_someone_deleted_is_posted_again_when_it_is_due_to_be_reminded_of(
    nod: Nod,
) -> None:
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    nod.chat.cards.clear()
    await nod.tick(timedelta(hours=20))
    await recovers(nod)
    assert [(card.proposal_id, card.pending) for card in nod.chat.cards.values()] == [(painted.id, True)]


async def test_a_card_that_can_not_be_shown_where_it_was_asked_for_goes_to_who_asked(nod: Nod) -> None:
    class Closed(RecordingChannel):
        async def post_card(self, address, card):  # type: ignore[no-untyped-def]
            if address == ROOM:
                raise OUT
            return await super().post_card(address, card)

    nod.channels["chat"] = Closed()
    nod.rebuild()
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    assert painted.state is State.PROPOSED
    assert list(nod.chat.places.values()) == [ASKER]


async def test_a_redraw_that_is_refused_again_and_again_is_tried_less_and_less_often(nod: Nod) -> None:
    tries = 0

    class Busy(RecordingChannel):
        async def redraw_card(self, address, ref, card):  # type: ignore[no-untyped-def]
            nonlocal tries
            tries += 1
            raise DOWN

    nod.channels["chat"] = Busy()
    nod.rebuild()
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    await nod.approve(painted, by=Actor("chat", ANA.key))
    for _ in range(120):
        await nod.tick(timedelta(seconds=5))
    assert 5 < tries < 20
