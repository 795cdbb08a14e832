"""Absence: the stand-in decides what the absent person may, as one vote, for a time, and never further."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from bot.domain.chat import Answer
from bot.domain.people import Actor, Membership
from bot.domain.policy import Policy
from bot.domain.proposal_states import State
from bot.domain.rulebook import Rulebook
from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.store import proposals
from bot.store.audit import log, verification
from tests.kit import ADA, ANA, BEN, EVE, MakeNod, Nod, call

RED = call("paint", lamp="desk", color="red")
SMASH = call("smash", lamp="desk")
CLEO = Actor("chat", "cleo", "Cleo")
STAY = Actor("chat", "stay", "Stay")


@pytest.fixture
async def nod(make_nod: MakeNod) -> Nod:
    """Ana is the one approver, Ada the admin, Ben and Eve have no role; approvers decide."""
    nod = make_nod(policy=Policy(approvers=frozenset({str(ANA)})), admins=[ADA])
    assert "Set" in (await nod.command("/approvals approvers approver", by=ADA)).text
    return nod


async def away(nod: Nod, said: str = f"{BEN} until monday", *, by: Actor = ANA) -> str:
    return (await nod.command(f"/nod away {said}", by=by)).text


async def asked(nod: Nod, what: Any = RED, *, by: Actor = EVE) -> Any:
    [p] = await nod.asked(what, by=by, private=False)
    return p


async def test_who_stands_in_decides_what_the_absent_may_and_cards_say_for_whom(nod: Nod) -> None:
    said = await away(nod)
    assert said == (
        "You're away until Monday 9 Mar, 00:00 UTC. chat:ben may decide what you may, "
        "shown as “chat:ben for Ana”. `/nod back` ends it."
    )
    p = await asked(nod)
    assert nod.chat.card_of(p).decider_names.text == "any approver or chat:ben for Ana"
    p = await nod.approve(p, by=BEN)
    assert (p.state, p.decided_by) == (State.SUCCEEDED, "Ben for Ana")
    assert nod.chat.card_of(p).votes == ("Ben for Ana: approve",)
    assert "approved by Ben for Ana" in nod.model.results[-1]
    [approved] = [e for e in await nod.database.read(log.list_rows_of_proposal, p.id) if e.verb == "approve"]
    assert (approved.actor, approved.reason) == (str(BEN), f"for Ana ({ANA})")


async def test_no_one_else_may_and_no_other_right_comes_with_it(nod: Nod) -> None:
    await away(nod)
    p = await asked(nod)
    assert "may not decide" in (await nod.press(Verb.APPROVE, p, by=EVE)).text
    for verb in (Verb.REASSIGN, Verb.EXPIRE, Verb.CANCEL):
        assert (await nod.press(verb, p, by=BEN, reason="admin")).answer is Answer.REFUSED
    assert "is for admins" in (await nod.command("/approvals roles", by=BEN)).text


async def test_an_admins_stand_in_has_no_admins_rights(nod: Nod) -> None:
    await away(nod, by=ADA)
    assert "is for admins" in (await nod.command("/approvals policy never", by=BEN)).text
    p = await asked(nod)
    assert "may not decide" in (await nod.press(Verb.APPROVE, p, by=BEN)).text  # approvers alone decide


async def test_nothing_lasting_is_allowed_in_someones_place(nod: Nod) -> None:
    await away(nod)
    p = await asked(nod)
    assert list(await nod.lookup.ladder(p.id, BEN)) == []
    reply = await nod.press(Verb.SIMILAR, p, by=BEN, rung=GrantScope.TOOL, lasting=GrantDuration.DAY)
    assert (reply.answer, reply.text.split(".")[0]) == (
        Answer.REFUSED,
        "A stand-in decides one at a time",
    )


async def test_it_ends_when_its_time_is_over(nod: Nod) -> None:
    await away(nod, f"{BEN} for 2h")
    p = await asked(nod)
    nod.clock.forward(timedelta(hours=2))
    assert "may not decide" in (await nod.press(Verb.APPROVE, p, by=BEN)).text
    await nod.tick()
    assert "Ana is back" in nod.chat.shown
    await nod.recovery.recover(nod.clock())
    await nod.idle()
    assert nod.chat.card_of(p).decider_names.text == "any approver"


async def test_it_ends_with_the_right_of_the_absent_person(nod: Nod) -> None:
    await nod.command(f"/approvals roles add {CLEO} approver", by=ADA)
    await away(nod, by=CLEO)
    p = await asked(nod)
    await nod.command(f"/approvals roles remove {CLEO} approver", by=ADA)
    assert "may not decide" in (await nod.press(Verb.APPROVE, p, by=BEN)).text


async def test_it_ends_when_they_are_back_or_an_admin_says_so(nod: Nod) -> None:
    p = await asked(nod)
    for by, words in ((ANA, "back"), (ADA, "back ana"), (ADA, f"back {ANA}")):
        await away(nod)
        assert (await nod.press(Verb.EDIT, p, by=BEN, arguments={"lamp": "desk", "color": "blue"})).answer
        assert (await nod.command(f"/nod {words}", by=by)).text.endswith(" for Ana.")
        assert "may not decide" in (await nod.press(Verb.APPROVE, p, by=BEN)).text
    await away(nod)
    refused = await nod.command("/nod back ana", by=BEN)
    assert (refused.answer, refused.text) == (Answer.REFUSED, "Only an admin can say that for someone else.")
    assert (await nod.command("/nod back", by=BEN)).text == "You are not away."


async def test_it_never_goes_further(nod: Nod) -> None:
    await away(nod)
    await away(nod, f"{CLEO} for 3d", by=BEN)
    p = await asked(nod)
    assert "may not decide" in (await nod.press(Verb.APPROVE, p, by=CLEO)).text
    assert (await nod.press(Verb.APPROVE, p, by=BEN)).text == "Approved."


async def test_no_one_who_is_away_is_named(nod: Nod) -> None:
    await away(nod, f"{CLEO} for 3d", by=BEN)
    assert "is away, too" in await away(nod)


async def test_no_one_approves_what_they_asked_for_in_anothers_place(nod: Nod) -> None:
    await away(nod)
    for what in (RED, SMASH):
        p = await asked(nod, what, by=BEN)
        assert (await nod.press(Verb.APPROVE, p, by=BEN)).answer is Answer.REFUSED


async def test_four_eyes_of_the_absent_hold_for_who_stands_in(nod: Nod) -> None:
    await nod.command(f"/approvals roles add {CLEO} approver", by=ADA)
    await away(nod)
    p = await asked(nod, SMASH, by=ANA)
    assert "Four eyes" in (await nod.press(Verb.APPROVE, p, by=ANA)).text
    assert (await nod.press(Verb.APPROVE, p, by=BEN)).answer is Answer.REFUSED


async def test_both_have_one_vote(nod: Nod) -> None:
    """Ben stands in for Ana and is an approver himself, as is Cleo."""
    for each in (BEN, CLEO):
        await nod.command(f"/approvals roles add {each} approver", by=ADA)
    await nod.command("/approvals quorum 2", by=ADA)
    await away(nod)
    p = await asked(nod)
    assert (await nod.press(Verb.APPROVE, p, by=BEN)).text == "Your vote counts: 1 of 2."
    assert "already been counted" in (await nod.press(Verb.APPROVE, p, by=ANA)).text
    assert "already been counted" in (await nod.press(Verb.APPROVE, p, by=BEN)).text
    assert (await nod.press(Verb.APPROVE, p, by=CLEO)).text == "Approved."


async def test_a_vote_in_anothers_place_stays_theirs_after_their_return(nod: Nod) -> None:
    for each in (CLEO, STAY):
        await nod.command(f"/approvals roles add {each} approver", by=ADA)
    await nod.command("/approvals quorum 2", by=ADA)
    await away(nod)
    p = await asked(nod)
    await nod.press(Verb.APPROVE, p, by=BEN)
    await nod.command("/nod back")
    assert "already been counted" in (await nod.press(Verb.APPROVE, p, by=ANA)).text
    await away(nod, f"{EVE} for 3d")
    assert (await nod.press(Verb.APPROVE, p, by=EVE)).answer is Answer.REFUSED  # it is Eve's own request
    await away(nod, f"{STAY} for 3d")
    assert (await nod.press(Verb.APPROVE, p, by=STAY)).answer is Answer.ALREADY
    assert (await nod.press(Verb.APPROVE, p, by=CLEO)).text == "Approved."


async def test_a_quorum_that_only_both_could_reach_is_refused(nod: Nod) -> None:
    await nod.command(f"/approvals roles add {BEN} approver", by=ADA)
    await nod.command("/approvals quorum 2", by=ADA)
    await away(nod)
    assert await nod.asked(RED, by=EVE, private=False) == []
    assert "2 approvals are needed, but only 1 may decide" in nod.model.results[-1]


async def test_linked_accounts_stand_in_and_are_away_as_one_person(nod: Nod) -> None:
    token, web = Actor("http", "ben-token"), Actor("http", "ana-token")
    await nod.link(BEN, token)
    await nod.link(ANA, web)
    await nod.command(f"/approvals link {ANA} {web}", by=ADA)
    await away(nod, by=web)
    p = await asked(nod)
    assert (await nod.press(Verb.APPROVE, p, by=token)).text == "Approved."
    assert (await nod.command("/nod back", by=ANA)).text.startswith("Ended")


async def test_a_guest_stands_in_for_no_one(nod: Nod) -> None:
    await away(nod)
    p = await asked(nod)
    guest = Actor(BEN.channel, BEN.key, "Ben", Membership.GUEST)
    assert "may not decide" in (await nod.press(Verb.APPROVE, p, by=guest)).text
    await nod.command("/nod back")
    assert "not part of this team" in await away(nod)


async def test_a_grant_is_never_as_good_as_the_stand_in(nod: Nod) -> None:
    await away(nod)
    p = await asked(nod)
    assert (await nod.press(Verb.APPROVE_STEPS, p, by=BEN)).answer is Answer.REFUSED


async def test_what_waits_for_the_absent_is_listed_for_who_stands_in(nod: Nod) -> None:
    await away(nod)
    p = await asked(nod)
    said = (await nod.command("/nod status", by=BEN)).text
    assert p.id[:8] in said
    assert "Ana is away until Monday 9 Mar, 00:00 UTC: Ben may decide what they may" in said
    assert "away" not in (await nod.command("/nod status", by=EVE)).text
    assert (await nod.command("/nod away", by=EVE)).text == "No one is away."
    assert "Ana is away" in (await nod.command("/nod away", by=ADA)).text
    assert [each.proposal_id for each in (await nod.lookup.overview(BEN)).waiting] == [p.id]
    assert [each.proposal_id for each in (await nod.lookup.overview(BEN)).asked] == []


async def test_who_stands_in_is_told_and_gets_private_cards(nod: Nod) -> None:
    await away(nod)
    await nod.asked(RED, by=EVE, private=True)
    assert str(BEN) in {str(at) for at in nod.chat.places.values()}
    await nod.reminders.send(nod.clock())
    assert "Ana is away until Monday 9 Mar, 00:00 UTC, and you may decide what they may" in nod.chat.shown


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("ben", "Say who decides for you and until when"),
        ("until monday", "Say who decides for you and until when"),
        (f"{BEN} until blursday", "'blursday': write a moment such as"),
        (f"{BEN} for 15d", "14 days at most"),
        (f"{BEN} until 2027-01-01", "14 days at most"),
        (f"{BEN} until 2026-01-01", "that time has passed"),
        (f"{BEN} for 9999999999999d", "write a duration"),
        (f"{ANA} for 3d", "That is you"),
        ("nobody for 3d", "No one is called that"),
        ("% for 3d", "No one is called that"),
        ("slak:T1/U7 for 3d", "There is no channel slak"),
    ],
)
async def test_what_cannot_be_is_refused_in_words(nod: Nod, said: str, why: str) -> None:
    assert why in await away(nod, said)
    assert (await nod.command("/nod away", by=ADA)).text == "No one is away."


async def test_a_name_counts_for_one_with_a_role_alone_since_anyone_may_take_it(nod: Nod) -> None:
    await nod.say("hello", by=BEN, names={str(BEN): "Ben Berg"})
    assert "Ben Berg is `chat:ben`" in await away(nod, "ben for 3d")
    await nod.command(f"/approvals roles add {BEN} approver", by=ADA)
    await nod.say("hello", by=EVE, names={str(EVE): "Ben"})
    assert "Ben Berg (chat:ben) may decide what you may" in await away(nod, "@ben for 3d")


async def test_it_is_in_the_audit_log_with_its_end(nod: Nod) -> None:
    await away(nod)
    await nod.command("/nod back")
    said = (await nod.command("/approvals audit", by=ADA)).text
    assert "absence Ana: leave by Ana: nothing → " in said
    assert "absence Ana: return by Ana: " in said
    assert await nod.database.read(verification.find_faults_in_session) == []


async def test_naming_another_ends_the_first(nod: Nod) -> None:
    await away(nod)
    await away(nod, f"{CLEO} for 3d")
    p = await asked(nod)
    assert "may not decide" in (await nod.press(Verb.APPROVE, p, by=BEN)).text
    assert (await nod.press(Verb.APPROVE, p, by=CLEO)).text == "Approved."


async def test_after_a_restart_it_holds(nod: Nod) -> None:
    await away(nod)
    p = await asked(nod)
    await nod.restart()
    assert (await nod.press(Verb.APPROVE, p, by=BEN)).text == "Approved."
    assert (await nod.database.read(proposals.get, p.id)).votes[0].absent == ANA


async def test_a_day_begins_in_the_teams_time_zone(make_nod: MakeNod) -> None:
    nod = make_nod(policy=Policy(rulebook=Rulebook(zone=ZoneInfo("Europe/Oslo"))))
    assert (await away(nod)).startswith("You're away until Monday 9 Mar, 00:00 CET. ")
    nod.clock.now = datetime(2026, 3, 8, 23, 0, tzinfo=UTC)
    assert (await nod.command("/nod away")).text == "No one is away."
