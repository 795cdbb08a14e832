"""A chat with two addresses: what people set at the first holds at the second."""

import pytest

from bot.domain.audit import Act
from bot.domain.chat import Address, Answer, ChatMoved
from bot.domain.proposal_states import State
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.features.memory import rows as facts
from bot.features.memory.facts import About, Fact
from bot.store.audit.log import Author
from tests.kit import ADA, ANA, BEN, MakeNod, Nod, call

OLD, NEW, ELSEWHERE = Address("chat", "hall"), Address("chat", "hall2"), Address("chat", "cellar")
RED = {"lamp": "desk", "color": "red"}


@pytest.fixture
def nod(make_nod: MakeNod) -> Nod:
    return make_nod(admins=[ADA])


async def rule(nod: Nod, words: str) -> None:
    reply = await nod.command(f"/approvals {words}", by=ADA)
    assert reply.answer is Answer.ACCEPTED, reply.text


async def move(nod: Nod) -> None:
    reply = await nod.assistant.handle(ChatMoved(OLD, NEW))
    assert reply.answer is Answer.ACCEPTED


def list_rules(nod: Nod) -> set[str]:
    book = nod.database.read_now(nod.gate.policies.load).rulebook
    return {each.command_text for each in book.rules}


async def test_its_rules_hold_at_both_addresses_and_one_that_was_set_at_the_new_one_stays(nod: Nod) -> None:
    for words in (
        f"policy forbid for smash in {OLD}",
        f"quorum 2 for paint in {OLD}/1",
        f"ttl 2h in {OLD}",
        f"ttl 3h in {NEW}",
        f"policy never in {ELSEWHERE}",
        "policy always",
    ):
        await rule(nod, words)
    before = list_rules(nod)
    for _ in range(2):
        await move(nod)
        assert list_rules(nod) == before | {
            f"policy forbid for smash in {NEW}",
            f"quorum 2 for paint in {NEW}/1",
        }
    nod.model.rule = None
    assert await nod.asked(call("smash", lamp="desk"), at=NEW, private=False) == []


async def test_a_grant_for_all_in_the_chat_counts_at_the_new_address_and_no_longer_at_the_old_one(
    nod: Nod,
) -> None:
    (proposal,) = await nod.asked(call("paint", RED), at=OLD, private=False)
    reply = await nod.press(
        Verb.SIMILAR,
        proposal,
        by=ADA,
        rung=GrantScope.TOOL,
        lasting=GrantDuration.DAY,
        reach=GrantAudience.CHAT,
    )
    assert reply.answer is Answer.ACCEPTED, reply.text
    await nod.idle()
    await move(nod)
    states = {}
    for place in (NEW, OLD, ELSEWHERE):
        (asked,) = await nod.asked(call("paint", lamp="door", color="blue"), by=BEN, at=place, private=False)
        states[place] = asked.state
    assert states == {NEW: State.SUCCEEDED, OLD: State.PROPOSED, ELSEWHERE: State.PROPOSED}


async def test_what_is_remembered_for_the_chat_is_told_at_the_new_address(nod: Nod) -> None:
    for place in (OLD, ELSEWHERE):
        fact = Fact(0, f"of {place}", (About.PLACE, str(place)), ANA, nod.clock(), None)
        nod.database.write_now(facts.add_fact, fact, Author.of_nod(Act.REMEMBER))
    await move(nod)
    await move(nod)
    scopes = [(About.PLACE, str(place)) for place in (OLD, NEW)]
    found = nod.database.read_now(facts.list_facts, scopes, nod.clock())
    assert [(each.text, each.scope[1]) for each in found] == [(f"of {OLD}", str(NEW))]
