"""Groups of people as deciders: asked for before it matters; no one decides where no one can say."""

from datetime import timedelta

import pytest

from bot.domain.chat import Answer
from bot.domain.people import Actor, Membership, UserGroup
from bot.domain.proposal_states import State
from bot.domain.verbs import Verb
from bot.errors import ChannelError
from bot.store.rules import GROUP_VALID_FOR
from tests.kit import ADA, ANA, BEN, EVE, ROOM, MakeNod, Nod, call

OPS = "chat:ops/admins"
RED = call("paint", lamp="desk", color="red")
SMASH = call("smash", lamp="desk")
CANT_CHECK = "I can't check who is in the ops right now. Press again. It stays open."


@pytest.fixture
async def nod(make_nod: MakeNod) -> Nod:
    """What anyone asks for is decided by the ops, who are Ben."""
    nod = make_nod(admins=[ADA])
    nod.chat.groups[OPS] = UserGroup("the ops", frozenset({str(BEN)}))
    reply = await nod.command(f"/approvals approvers {OPS}", by=ADA)
    assert reply.text == "Set: rule 1: approvers the ops."
    return nod


async def test_one_of_the_group_decides_and_others_are_refused_by_its_name(nod: Nod) -> None:
    [p] = await nod.asked(RED, private=False)
    refused = await nod.press(Verb.APPROVE, p, by=EVE, at=ROOM)
    assert refused.text == "You may not decide this one. Who may: the ops. It stays open."
    assert (await nod.press(Verb.APPROVE, p, by=BEN)).text == "Approved."


async def test_who_has_left_the_group_decides_no_longer_once_its_time_is_over(nod: Nod) -> None:
    [p] = await nod.asked(RED, private=False)
    nod.chat.groups[OPS] = UserGroup("the ops", frozenset({str(EVE)}))
    nod.clock.forward(GROUP_VALID_FOR)
    assert "may not decide" in (await nod.press(Verb.APPROVE, p, by=BEN)).text
    assert (await nod.press(Verb.APPROVE, p, by=EVE)).text == "Approved."


async def test_while_the_platform_does_not_say_who_is_in_it_no_one_decides(nod: Nod) -> None:
    [p] = await nod.asked(RED, private=False)
    nod.chat.refusals["look_up"] = ChannelError("down")
    nod.clock.forward(GROUP_VALID_FOR)
    refused = await nod.press(Verb.APPROVE, p, by=BEN)
    assert (refused.answer, refused.text) == (Answer.REFUSED, CANT_CHECK)
    asked = len(nod.chat.looked_up)
    assert (await nod.press(Verb.APPROVE, p, by=BEN)).text == CANT_CHECK
    assert len(nod.chat.looked_up) == asked, "a platform that is down is not asked at each press"
    nod.chat.refusals.clear()
    nod.clock.forward(timedelta(seconds=5))
    assert (await nod.press(Verb.APPROVE, p, by=BEN)).text == "Approved."


async def test_after_a_restart_the_group_is_asked_before_the_first_press_counts(nod: Nod) -> None:
    [p] = await nod.asked(RED, private=False)
    await nod.restart()
    assert "may not decide" in (await nod.press(Verb.APPROVE, p, by=EVE)).text
    assert (await nod.press(Verb.APPROVE, p, by=BEN)).text == "Approved."


async def test_a_linked_account_counts_wherever_it_presses(nod: Nod) -> None:
    token = Actor("http", "ben-token")
    await nod.link(BEN, token)
    [p] = await nod.asked(RED, private=False)
    assert (await nod.press(Verb.APPROVE, p, by=token)).text == "Approved."


@pytest.mark.parametrize("standing", [Membership.GUEST, Membership.UNKNOWN, None])
async def test_a_linked_account_that_is_no_member_there_by_now_decides_nowhere(
    nod: Nod, standing: Membership | None
) -> None:
    token = Actor("http", "ben-token")
    await nod.link(BEN, token)
    nod.chat.standings[str(BEN)] = standing
    [p] = await nod.asked(RED, private=False)
    nod.clock.forward(GROUP_VALID_FOR)
    assert "may not decide" in (await nod.press(Verb.APPROVE, p, by=token)).text


async def test_someone_from_outside_does_not_decide_by_being_in_the_group(nod: Nod) -> None:
    [p] = await nod.asked(RED, private=False)
    guest = Actor(BEN.channel, BEN.key, "Ben", Membership.GUEST)
    assert "may not decide" in (await nod.press(Verb.APPROVE, p, by=guest)).text


async def test_what_waits_for_the_group_is_listed_for_those_in_it_alone(nod: Nod) -> None:
    [p] = await nod.asked(RED, private=False)
    nod.clock.forward(GROUP_VALID_FOR)
    assert p.id[:8] in (await nod.command("/nod status", by=BEN)).text
    assert (await nod.command("/nod status", by=EVE)).text == "Nothing is waiting."
    assert [each.proposal_id for each in (await nod.lookup.overview(BEN)).waiting] == [p.id]


async def test_a_private_request_is_sent_to_those_in_the_group(nod: Nod) -> None:
    [p] = await nod.asked(RED, private=True)
    assert str(BEN) in {str(address) for address in nod.chat.places.values()}
    assert nod.chat.card_of(p).decider_names.text == "the ops"


async def test_a_group_with_no_one_in_it_is_a_rule_that_no_one_can_satisfy(nod: Nod) -> None:
    nod.chat.groups[OPS] = UserGroup("the ops", frozenset())
    nod.clock.forward(GROUP_VALID_FOR)
    assert await nod.asked(RED, private=False) == []
    assert "REFUSED: no one may decide this here" in nod.model.results[-1]
    reply = await nod.command(f"/approvals approvers {OPS} for paint", by=ADA)
    assert "Calls of paint are refused now: no one may decide this here" in reply.text


async def test_too_few_in_the_group_for_a_quorum_is_told(nod: Nod) -> None:
    reply = await nod.command("/approvals quorum 2", by=ADA)
    assert "2 approvals are needed, but only 1 may decide" in reply.text


async def test_what_cannot_be_undone_is_never_approved_by_who_asked_although_they_are_in_it(nod: Nod) -> None:
    nod.chat.groups[OPS] = UserGroup("the ops", frozenset({str(BEN), str(ANA)}))
    nod.clock.forward(GROUP_VALID_FOR)
    [p] = await nod.asked(SMASH, private=False)
    assert "Four eyes" in (await nod.press(Verb.APPROVE, p, by=ANA)).text
    assert (await nod.press(Verb.APPROVE, p, by=BEN)).text == "Approved."


async def test_while_no_one_can_say_who_is_in_it_what_cannot_be_undone_needs_four_eyes(nod: Nod) -> None:
    nod.chat.refusals["look_up"] = ChannelError("down")
    nod.clock.forward(GROUP_VALID_FOR)
    [p] = await nod.asked(SMASH, private=False)
    assert (p.state, p.deciders.four_eyes) == (State.PROPOSED, True)


async def test_an_admin_who_names_a_group_that_cannot_be_asked_for_is_told_why(nod: Nod) -> None:
    nod.chat.refusals["look_up"] = ChannelError("It is down.")
    reply = await nod.command("/approvals approvers chat:other/admins for paint", by=ADA)
    assert "Nod can't see who is in chat:other/admins. It is down." in reply.text


async def test_six_groups_in_one_rule_are_too_many(nod: Nod) -> None:
    named = " ".join(f"chat:g{each}/admins" for each in range(6))
    assert "at most 5 groups" in (await nod.command(f"/approvals approvers {named}", by=ADA)).text


async def test_a_proposal_is_reassigned_to_a_group_and_its_members_decide(nod: Nod) -> None:
    await nod.command("/approvals drop 1", by=ADA)
    [p] = await nod.asked(RED, private=False)
    other = "chat:night/admins"
    nod.chat.groups[other] = UserGroup("the night", frozenset({str(EVE)}))
    assert "Reassigned" in (await nod.command(f"/approvals reassign {p.id} {other}", by=ADA)).text
    assert (await nod.press(Verb.APPROVE, p, by=EVE)).text == "Approved."


async def test_a_reminder_names_the_group(nod: Nod) -> None:
    await nod.command("/approvals remind 1h", by=ADA)
    await nod.asked(RED, private=False)
    nod.clock.forward(timedelta(hours=1))
    await nod.reminders.remind(nod.clock())
    [(_, _, named)] = nod.chat.reminders
    assert [each.label for each in named] == ["the ops"]
