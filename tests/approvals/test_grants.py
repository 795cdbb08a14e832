"""Approve similar: what a grant covers, whom it needs, when it ends; and hostile arguments against it."""

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.chat import Address, Answer, Reply
from bot.domain.digests import to_canonical_json
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope, Likeness, list_grant_scopes
from bot.domain.verbs import Verb
from tests.kit import ADA, ANA, BEN, EVE, ROOM, MakeNod, Nod, call
from tests.kit.examples import examples

OTHER = Address("chat", "other")


@pytest.fixture
def nod(make_nod: MakeNod) -> Nod:
    return make_nod(admins=[ADA])


async def similar(
    nod: Nod,
    proposal: Proposal,
    rung: GrantScope,
    lasting: GrantDuration = GrantDuration.HOUR,
    **more: object,
) -> Reply:
    reply = await nod.press(Verb.SIMILAR, proposal, rung=rung, lasting=lasting, **more)  # type: ignore[arg-type]
    await nod.idle()
    return reply


async def paint(nod: Nod, lamp: str, color: str, at: Address = ROOM) -> Proposal:
    (painted,) = await nod.asked(call("paint", lamp=lamp, color=color), at=at)
    return await nod.now(painted)


async def test_the_ladder_is_offered_narrowest_first_in_words(nod: Nod) -> None:
    first = await paint(nod, "desk", "red")
    assert await nod.lookup.ladder(first.id, ANA) == [
        (GrantScope.EXACT, "paint with exactly these arguments"),
        (GrantScope.KEY, "paint with lamp = desk, whatever the rest"),
        (GrantScope.TOOL, "paint with any arguments"),
    ]
    assert await nod.lookup.ladder(first.id, EVE) == []


async def test_one_press_approves_and_allows_and_says_exactly_what(nod: Nod) -> None:
    first = await paint(nod, "desk", "red")
    reply = await similar(nod, first, GrantScope.KEY)
    assert (await nod.now(first)).state is State.SUCCEEDED
    what, whose = "paint with lamp = desk, whatever the rest", "Ana in the conversation where it was asked"
    assert reply.text.startswith(f"Approved. G-1 now allows {what}, for {whose}, for 1h.")


async def test_a_covered_call_runs_and_is_shown_as_approved_by_the_grant(nod: Nod) -> None:
    await similar(nod, await paint(nod, "desk", "red"), GrantScope.KEY)
    second = await paint(nod, "desk", "blue")
    assert (second.state, second.decided_by, second.grant_id) == (State.SUCCEEDED, "Ana's grant G-1", 1)
    assert "Approved by Ana's grant G-1" in nod.chat.card_of(second).outcome
    assert nod.world.lamps["desk"] == "blue"
    assert "uses: 1" in (await nod.command("/approvals grants", by=ADA)).text


@pytest.mark.parametrize(
    ("rung", "lamp", "color", "covered"),
    [
        (GrantScope.EXACT, "desk", "red", True),
        (GrantScope.EXACT, "desk", "blue", False),
        (GrantScope.KEY, "desk", "blue", True),
        (GrantScope.KEY, "door", "red", False),
        (GrantScope.TOOL, "door", "blue", True),
    ],
)
async def test_each_rung_covers_what_it_says(
    nod: Nod, rung: GrantScope, lamp: str, color: str, *, covered: bool
) -> None:
    await similar(nod, await paint(nod, "desk", "red"), rung)
    nod.world.lamps["desk"] = "white"
    assert (await paint(nod, lamp, color)).state is (State.SUCCEEDED if covered else State.PROPOSED)


async def test_another_tool_is_never_covered(nod: Nod) -> None:
    await similar(nod, await paint(nod, "desk", "red"), GrantScope.TOOL)
    (smashed,) = await nod.asked(call("smash", lamp="desk"))
    assert smashed.state is State.PROPOSED


async def test_a_grant_for_one_conversation_holds_only_there_and_ends_with_it(nod: Nod) -> None:
    await similar(nod, await paint(nod, "desk", "red"), GrantScope.TOOL, GrantDuration.CONVERSATION)
    assert (await paint(nod, "door", "red", at=OTHER)).state is State.PROPOSED
    assert (await paint(nod, "door", "red")).state is State.SUCCEEDED
    await nod.command("/nod new")
    assert (await paint(nod, "roof", "red")).state is State.PROPOSED


async def test_a_grant_ends_when_its_time_is_up(nod: Nod) -> None:
    await similar(nod, await paint(nod, "desk", "red"), GrantScope.TOOL, GrantDuration.HOUR)
    nod.clock.forward(timedelta(minutes=59))
    assert (await paint(nod, "door", "red")).state is State.SUCCEEDED
    nod.clock.forward(timedelta(minutes=1))
    assert (await paint(nod, "roof", "red")).state is State.PROPOSED


@pytest.mark.parametrize(
    "words",
    [
        "revoke G-1",
        "revoke all",
        "policy always",
        "policy always for pa*",
        "risk destructive for paint",
        "quorum 2 in chat:room",
        "approvers approver admin in chat:*",
    ],
)
async def test_a_grant_ends_when_revoked_or_when_a_rule_makes_its_calls_stricter(
    nod: Nod, words: str
) -> None:
    await similar(nod, await paint(nod, "desk", "red"), GrantScope.TOOL)
    reply = await nod.command(f"/approvals {words}", by=ADA)
    assert words.startswith("revoke") or " Grants ended with it: G-1." in reply.text
    assert "no grants" in (await nod.command("/approvals grants", by=ADA)).text


@pytest.mark.parametrize(
    "words",
    [
        "policy destructive",
        "policy always for smash",
        "policy always in chat:hall",
        "quorum 2 for smash",
        "quorum 1",
        "risk write for paint",
        "approvers requester approver admin member",
    ],
)
async def test_a_rule_that_loosens_or_is_about_other_calls_ends_no_grant(nod: Nod, words: str) -> None:
    await similar(nod, await paint(nod, "desk", "red"), GrantScope.TOOL)
    reply = await nod.command(f"/approvals {words}", by=ADA)
    assert reply.text.startswith("Set: ")
    assert "G-1" in (await nod.command("/approvals grants", by=ADA)).text


async def test_a_grant_ends_when_a_rule_that_loosened_its_calls_is_dropped(nod: Nod) -> None:
    await nod.command("/approvals approvers requester admin member", by=ADA)
    await similar(nod, await paint(nod, "desk", "red"), GrantScope.TOOL)
    reply = await nod.command("/approvals drop 1", by=ADA)
    assert reply.text.endswith("Grants ended with it: G-1.")


async def test_destructive_calls_are_not_granted_unless_an_admin_allows_it(nod: Nod) -> None:
    (smashed,) = await nod.asked(call("smash", lamp="desk"))
    assert await nod.lookup.ladder(smashed.id, ANA) == []
    refused = await similar(nod, smashed, GrantScope.TOOL)
    assert refused.answer is Answer.REFUSED
    assert (await nod.now(smashed)).state is State.PROPOSED

    await nod.command("/approvals grants allow destructive for smash", by=ADA)
    await nod.press(Verb.DECLINE, smashed)
    await nod.idle()
    (again,) = await nod.asked(call("smash", lamp="desk"), private=True)
    await similar(nod, again, GrantScope.TOOL, by=ADA)
    (door,) = await nod.asked(call("smash", lamp="door"))
    assert (await nod.now(door)).state is State.SUCCEEDED


async def test_what_needs_several_people_is_not_granted_by_one(nod: Nod) -> None:
    await nod.command("/approvals approvers chat:ana chat:ben", by=ADA)
    await nod.command("/approvals quorum 2", by=ADA)
    refused = await similar(nod, await paint(nod, "desk", "red"), GrantScope.TOOL)
    assert refused.answer is Answer.REFUSED


async def test_a_grant_of_one_who_may_not_decide_that_call_does_not_count(nod: Nod) -> None:
    await similar(nod, await paint(nod, "desk", "red"), GrantScope.TOOL)
    (bens,) = await nod.asked(call("paint", lamp="door", color="red"), by=BEN, at=OTHER)
    assert bens.state is State.PROPOSED


async def test_a_stranger_can_give_no_grant(nod: Nod) -> None:
    first = await paint(nod, "desk", "red")
    assert (await similar(nod, first, GrantScope.TOOL, by=EVE)).answer is Answer.REFUSED
    assert (await paint(nod, "door", "red")).state is State.PROPOSED


async def test_a_tool_that_changed_is_not_covered_any_longer(nod: Nod) -> None:
    from tests.kit import lamp_tools

    await similar(nod, await paint(nod, "desk", "red"), GrantScope.TOOL)
    nod.toolset = lamp_tools(nod.world, version="2")
    await nod.restart()
    assert (await paint(nod, "door", "red")).state is State.PROPOSED


async def test_a_grant_for_a_conversation_is_not_given_once_that_has_ended(nod: Nod) -> None:
    first = await paint(nod, "desk", "red")
    await nod.command("/nod new")
    reply = await similar(nod, first, GrantScope.TOOL, GrantDuration.CONVERSATION)
    assert (reply.answer, (await nod.now(first)).state) == (Answer.INVALID, State.PROPOSED)
    assert "Choose a time" in reply.text
    assert "no grants" in (await nod.command("/approvals grants", by=ADA)).text

    await similar(nod, first, GrantScope.TOOL, GrantDuration.HOUR)
    assert (await nod.now(first)).state is State.SUCCEEDED


async def test_a_card_offers_a_grant_for_what_cannot_be_undone_only_where_an_admin_allows_that(
    nod: Nod,
) -> None:
    (first,) = await nod.asked(call("smash", lamp="desk"), private=False)
    assert Verb.SIMILAR not in nod.chat.card_of(first).verbs
    await nod.command("/approvals grants allow destructive", by=ADA)
    (second,) = await nod.asked(call("smash", lamp="door"), private=False)
    assert Verb.SIMILAR in nod.chat.card_of(second).verbs


async def grant_of(nod: Nod, reach: GrantAudience, *, by: Actor = ADA, private: bool = False) -> Reply:
    (asked,) = await nod.asked(call("paint", lamp="desk", color="red"), private=private)
    return await similar(nod, asked, GrantScope.TOOL, by=by, reach=reach)


@pytest.mark.parametrize(
    ("reach", "anas_here", "anas_elsewhere", "bens_here", "bens_elsewhere"),
    [
        (GrantAudience.HERE, True, False, False, False),
        (GrantAudience.REQUESTER, True, True, False, False),
        (GrantAudience.CHAT, True, False, True, False),
        (GrantAudience.EVERYONE, True, True, True, True),
    ],
)
async def test_a_grant_lets_run_the_calls_of_those_and_there_that_it_was_given_for(
    nod: Nod,
    reach: GrantAudience,
    *,
    anas_here: bool,
    anas_elsewhere: bool,
    bens_here: bool,
    bens_elsewhere: bool,
) -> None:
    await grant_of(nod, reach)
    ran = []
    for color, by, at in (("1", ANA, ROOM), ("2", ANA, OTHER), ("3", BEN, ROOM), ("4", BEN, OTHER)):
        (asked,) = await nod.asked(call("paint", lamp="door", color=color), by=by, at=at, private=False)
        ran.append(asked.grant_id is not None)
    assert ran == [anas_here, anas_elsewhere, bens_here, bens_elsewhere]


@pytest.mark.parametrize("reach", [GrantAudience.CHAT, GrantAudience.EVERYONE])
async def test_only_an_admin_allows_calls_of_others(nod: Nod, reach: GrantAudience) -> None:
    reply = await grant_of(nod, reach, by=ANA)
    assert (reply.answer, "Only an admin" in reply.text) == (Answer.REFUSED, True)
    assert "no grants" in (await nod.command("/approvals grants", by=ADA)).text


async def test_whose_calls_a_grant_lets_run_is_said_before_and_after_it_is_given_and_recorded(
    nod: Nod,
) -> None:
    first = await paint(nod, "desk", "red")
    assert await nod.lookup.reaches(first.id, ANA) == [
        (GrantAudience.HERE, "Ana in the conversation where it was asked"),
        (GrantAudience.REQUESTER, "Ana everywhere"),
    ]
    assert (await nod.lookup.reaches(first.id, ADA))[-1] == (GrantAudience.EVERYONE, "everyone everywhere")
    assert await nod.lookup.reaches(first.id, EVE) == []
    reply = await similar(nod, first, GrantScope.TOOL, reach=GrantAudience.REQUESTER)
    assert "for Ana everywhere, for 1h" in reply.text
    listed = await nod.command("/approvals grants", by=ADA)
    assert "paint with any arguments, for Ana everywhere" in listed.text
    entry = await nod.command("/approvals audit G-1", by=ADA)
    assert "for Ana everywhere" in entry.text


async def test_a_grant_that_ends_with_its_conversation_reaches_no_further(nod: Nod) -> None:
    first = await paint(nod, "desk", "red")
    reply = await similar(
        nod, first, GrantScope.TOOL, GrantDuration.CONVERSATION, reach=GrantAudience.REQUESTER
    )
    assert (reply.answer, (await nod.now(first)).state) == (Answer.INVALID, State.PROPOSED)


async def test_a_grant_survives_a_crash(nod: Nod) -> None:
    await similar(nod, await paint(nod, "desk", "red"), GrantScope.TOOL)
    await nod.crash()
    assert (await paint(nod, "door", "red")).state is State.SUCCEEDED


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@examples(500)
@given(
    st.dictionaries(st.text(), json_values, max_size=4), st.dictionaries(st.text(), json_values, max_size=4)
)
def test_an_exact_grant_covers_equal_arguments_only_whatever_they_are(
    shown: dict[str, object], called: dict[str, object]
) -> None:
    (scope, _), *_ = list_grant_scopes("t", "1", shown, Likeness())
    assert scope.covers("t", "1", called, Likeness()) == (
        to_canonical_json(shown) == to_canonical_json(called)
    )
    assert scope.covers("t", "1", json.loads(to_canonical_json(shown)), Likeness())
