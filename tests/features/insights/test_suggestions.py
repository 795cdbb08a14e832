"""Where people always approve the same kind of call unchanged, admins are asked whether to stop asking."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from bot.domain import kinds
from bot.domain.chat import Address, Answer, Request
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.features.insights import suggestions
from bot.store import rules
from bot.store.audit import verification
from tests.kit import ADA, ANA, BEN, WALL, MakeNod, Nod, RecordingChannel, call, says

pytestmark = pytest.mark.slow

HALL = Address("chat", "T1/hall/7")
DAY = timedelta(days=1)


@pytest.fixture
def nod(make_nod: MakeNod, monkeypatch: pytest.MonkeyPatch) -> Nod:
    monkeypatch.setattr(suggestions, "_MIN_APPROVALS", 3)
    return make_nod(admins=[ADA], channels=[RecordingChannel(), RecordingChannel("wall")])


async def rule(nod: Nod, words: str) -> None:
    reply = await nod.command(f"/approvals {words}", by=ADA)
    assert reply.answer is Answer.ACCEPTED, reply.text


async def painted(nod: Nod, times: int = 3, **changes: Any) -> list[Proposal]:
    """Ana has the desk painted so often, each time approved after four minutes."""
    found = []
    for turn in range(times):
        asked = call("paint", **({"lamp": "desk", "color": f"red {turn}"} | changes))
        (proposal,) = await nod.asked(asked, at=HALL, private=False)
        nod.clock.forward(timedelta(minutes=4))
        found.append(await nod.approve(proposal))
    return found


async def suggested(nod: Nod, later: timedelta = DAY) -> list[Proposal]:
    await nod.tick(later)
    return [p for p in await nod.proposals() if p.kind is kinds.SUGGESTION and p.state is State.PROPOSED]


async def test_what_was_always_approved_is_suggested_to_admins_and_set_in_their_name(nod: Nod) -> None:
    await painted(nod)
    await nod.tick()
    posted = len(nod.chat.cards)
    (found,) = await suggested(nod)
    place = "paint in chat:T1/hall"
    assert found.description.startswith(
        f"{place}: asked 3 times in 30 days, always approved unchanged, median 4 min"
    )
    assert found.preview[0].new_value == "policy destructive for paint in chat:T1/hall"
    assert len(nod.chat.cards) == posted  # it is in the inbox alone
    assert await suggested(nod) == [found]
    for stranger in (ANA, BEN):
        assert (await nod.press(Verb.APPROVE, found, by=stranger)).answer is Answer.REFUSED
    done = await nod.approve(found, by=ADA)
    assert done.state is State.SUCCEEDED
    assert "policy destructive for paint" in (done.result_sentence or "")
    [set_now] = await nod.database.read(rules.list_rules)
    assert (set_now.set_by, set_now.rule.command_text) == (
        str(ADA),
        "policy destructive for paint in chat:T1/hall",
    )
    (free,) = await nod.asked(call("paint", lamp="door", color="blue"), at=HALL, private=False)
    (lost,) = await nod.asked(call("smash", lamp="door"), at=HALL, private=False)
    assert ((await nod.now(free)).state, lost.state) == (State.SUCCEEDED, State.PROPOSED)
    faults = await nod.database.read(verification.find_faults_in_session)
    assert [fault for fault in faults if fault.startswith("rule")] == []


async def test_where_there_is_a_digest_the_card_stands_below_it_with_its_three_buttons(nod: Nod) -> None:
    await rule(nod, f"digest 08:00 {WALL}")
    await painted(nod)
    (found,) = await suggested(nod)
    await nod.tick()
    wall = nod.channels["wall"]
    [card] = [card for card in wall.cards.values() if card.proposal_id == found.id]
    assert card.requester_line == "Suggested by Nod"
    assert [card.button(verb).label for verb in card.verbs] == [
        "Set this rule",
        "Not now",
        "Never suggest this",
    ]
    digests = [text for _, text in wall.texts]
    assert all("waiting for a decision" in text and "paint in" not in text for text in digests)
    assert (await nod.press(Verb.APPROVE, found, by=BEN, at=WALL)).answer is Answer.REFUSED
    await nod.tick(DAY)
    assert len([card for card in wall.cards.values() if card.proposal_id == found.id]) == 1


async def test_not_now_is_asked_again_after_a_month_and_never_is_not(nod: Nod) -> None:
    await painted(nod)
    (first,) = await suggested(nod)
    reply = await nod.press(Verb.DECLINE, first, by=ADA)
    assert reply.text == "Not now. It may be suggested again in a month."
    await painted(nod)
    assert await suggested(nod) == []
    nod.clock.forward(timedelta(days=27))
    await painted(nod)
    (again,) = await suggested(nod, timedelta(days=3))
    assert (await nod.press(Verb.NEVER, again, by=BEN)).answer is Answer.REFUSED
    assert (await nod.press(Verb.NEVER, again, by=ADA)).text == "It will not be suggested again."
    nod.clock.forward(timedelta(days=300))
    await painted(nod)
    assert await suggested(nod) == []


async def declined(nod: Nod) -> None:
    (proposal,) = await nod.asked(call("paint", lamp="door", color="pink"), at=HALL, private=False)
    await nod.press(Verb.DECLINE, proposal)


async def edited(nod: Nod) -> None:
    (proposal,) = await nod.asked(call("paint", lamp="door", color="pink"), at=HALL, private=False)
    await nod.press(Verb.APPROVE, proposal, arguments={"lamp": "door", "color": "blue"})


async def expired(nod: Nod) -> None:
    await nod.asked(call("paint", lamp="door", color="pink"), at=HALL, private=False)
    await nod.tick(timedelta(hours=25))


async def secret(nod: Nod) -> None:
    await painted(nod, 1, color="sk-abcdefghijklmnopqrstuvwx")


async def asked_on_purpose(nod: Nod) -> None:
    await rule(nod, "policy always for paint")


@pytest.mark.parametrize("happened", [declined, edited, expired, secret, asked_on_purpose])
async def test_one_call_that_people_wanted_otherwise_is_enough_to_suggest_nothing(
    nod: Nod, happened: Any
) -> None:
    await painted(nod)
    await happened(nod)
    await nod.idle()
    assert await suggested(nod) == []


async def test_what_cannot_be_undone_is_never_suggested(nod: Nod) -> None:
    for lamp in ("desk", "door", "roof"):
        (proposal,) = await nod.asked(call("smash", lamp=lamp), at=HALL, private=False)
        await nod.approve(proposal)
    assert await suggested(nod) == []


async def test_turned_off_nothing_is_suggested(nod: Nod) -> None:
    nod.changed_settings["insights"] = False
    nod.rebuild()
    await painted(nod)
    assert await suggested(nod) == []


async def test_no_one_gets_a_rule_set_but_by_an_admin_who_approves_a_suggestion(nod: Nod) -> None:
    await painted(nod)
    (found,) = await suggested(nod)
    arguments: Mapping[str, Any] = {"tool_name": "*", "place": "*"}
    for verb in (Verb.EDIT, Verb.APPROVE):
        reply = await nod.press(verb, found, by=ADA, arguments=arguments)
        assert (reply.answer, "as it is" in reply.text) == (Answer.INVALID, True)
    await nod.press(Verb.REASSIGN, found, by=ADA, reason=str(BEN))
    refused = await nod.approve(await nod.now(found), by=BEN)
    assert (refused.state, "Only an admin" in (refused.error or "")) == (State.FAILED, True)
    script = Actor("http", "ci", "ci")
    asked = Request(script, suggestions.RULE_TOOL_NAME, arguments, Address("http", "ci/1"), "please")
    assert (await nod.assistant.handle(asked)).answer is Answer.REFUSED
    await rule(nod, "policy never")
    nod.model.will(says("", call(suggestions.RULE_TOOL_NAME, **arguments)), says("Sorry."))
    await nod.say("set it", by=ADA)
    await nod.idle()
    assert [each.rule.command_text for each in await nod.database.read(rules.list_rules)] == ["policy never"]


async def test_no_model_is_told_of_a_suggestion(nod: Nod) -> None:
    await painted(nod)
    await suggested(nod)
    nod.model.will(says("", call("proposals_waiting")), says("Nothing."))
    await nod.say("what waits?", by=ADA, at=Address("chat", "ada"))
    await nod.idle()
    transcript = await nod.transcript(Address("chat", "ada"))
    results = [each.text for line in transcript.lines for each in line.results.values()]
    assert len(results) == 1
    assert "paint" not in results[0]
    offered = {spec.name for specs in nod.model.offered for spec in specs}
    assert "paint" in offered
    assert suggestions.RULE_TOOL_NAME not in offered
