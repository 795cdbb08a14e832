"""Who muted a kind of card is not told of it, and may decide it. Where too few others may, all are told."""

from datetime import datetime, timedelta

import pytest
from sqlmodel import Session

from bot.domain.chat import Address, Answer
from bot.domain.people import Actor, Person
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.features.mutes import rows
from bot.store.audit import verification
from tests.kit import ADA, BEN, EVE, MakeNod, Nod, call

BENS, EVES = Address("chat", BEN.key), Address("chat", EVE.key)
WHY = "too few others may decide"


async def make(make_nod: MakeNod, quorum: int = 1) -> Nod:
    """Ben and Eve decide what Ana asks for."""
    nod = make_nod(admins=[ADA])
    await rule(nod, f"approvers {BEN} {EVE}")
    await rule(nod, f"quorum {quorum}")
    return nod


async def rule(nod: Nod, words: str) -> None:
    reply = await nod.command(f"/approvals {words}", by=ADA)
    assert reply.answer is Answer.ACCEPTED, reply.text


async def propose(nod: Nod, at: str, tool: str = "paint", *, private: bool = True) -> Proposal:
    wanted = call(tool, lamp="desk", **({"color": "red"} if tool == "paint" else {}))
    (proposal,) = await nod.asked(wanted, at=Address("chat", at), private=private)
    return proposal


async def mute(nod: Nod, proposal: Proposal, *people: Actor) -> None:
    for person in people:
        reply = await nod.press(Verb.MUTE, proposal, by=person)
        assert reply.answer is Answer.ACCEPTED, reply.text


def told(nod: Nod, proposal: Proposal) -> set[Address]:
    places = {nod.chat.places[ref] for ref, card in nod.chat.cards.items() if card.proposal_id == proposal.id}
    return places & {BENS, EVES}


def says_why(nod: Nod, proposal: Proposal) -> bool:
    return any(WHY in line.text for line in nod.chat.card_of(proposal).annotations)


async def test_who_muted_a_kind_is_not_told_of_it_and_may_decide_it(make_nod: MakeNod) -> None:
    nod = await make(make_nod)
    first = await propose(nod, "one")
    assert Verb.MUTE in nod.chat.card_of(first).verbs
    reply = await nod.press(Verb.MUTE, first, by=BEN)
    assert reply.text == (
        "You are not told of paint for 8 h. You may still decide. Press again for a week. /nod mutes ends it."
    )
    assert (await nod.now(first)).version == first.version  # nothing of it changed
    second = await propose(nod, "two")
    assert told(nod, second) == {EVES}
    assert not says_why(nod, second)
    assert told(nod, await propose(nod, "three", "smash")) == {BENS, EVES}
    assert (await nod.approve(second, by=BEN)).state is State.SUCCEEDED
    assert await nod.database.read(verification.find_faults_in_session) == []


async def test_a_second_press_mutes_for_a_week_and_each_ends_by_itself(make_nod: MakeNod) -> None:
    nod = await make(make_nod)
    first = await propose(nod, "one")
    await mute(nod, first, BEN)
    await nod.tick(timedelta(hours=8, minutes=1))
    again = await propose(nod, "two")
    assert told(nod, again) == {BENS, EVES}
    await mute(nod, again, BEN)
    assert "for 7 d" in (await nod.press(Verb.MUTE, again, by=BEN)).text
    await nod.tick(timedelta(days=6))
    assert told(nod, await propose(nod, "three")) == {EVES}
    await nod.tick(timedelta(days=1, minutes=1))
    assert told(nod, await propose(nod, "four")) == {BENS, EVES}


@pytest.mark.parametrize(
    ("quorum", "muted", "expected"),
    [(1, [BEN], {EVES}), (2, [BEN], {BENS, EVES}), (1, [BEN, EVE], {BENS, EVES})],
    ids=["enough others", "too few votes", "everyone"],
)
async def test_where_too_few_others_may_decide_everyone_is_told_and_told_why(
    make_nod: MakeNod, quorum: int, muted: list[Actor], expected: set[Address]
) -> None:
    nod = await make(make_nod, quorum)
    await mute(nod, await propose(nod, "one"), *muted)
    proposal = await propose(nod, "two")
    assert told(nod, proposal) == expected
    assert says_why(nod, proposal) is (len(expected) == 2)


async def test_in_a_shared_chat_a_mute_means_no_mention_and_no_reminder(
    make_nod: MakeNod,
) -> None:
    nod = await make(make_nod)
    await nod.command("/nod mutes paint for 1w", by=BEN)
    shared = await propose(nod, "T1/hall/1", private=False)
    card = nod.chat.card_of(shared)
    assert [part for part in card.decider_names.parts if isinstance(part, Actor)] == [EVE]
    await nod.tick(timedelta(hours=20))
    named = {people for ref, _, people in nod.chat.reminders if nod.chat.cards[ref].proposal_id == shared.id}
    assert named == {(EVE,)}


async def test_what_cannot_be_undone_and_what_was_escalated_is_never_muted(make_nod: MakeNod) -> None:
    nod = await make(make_nod)
    harm = await propose(nod, "one", "smash")
    assert Verb.MUTE not in nod.chat.card_of(harm).verbs
    assert "never muted" in (await nod.press(Verb.MUTE, harm, by=BEN)).text
    assert (await nod.command("/nod mutes smash for 1w", by=BEN)).answer is Answer.ACCEPTED
    assert told(nod, await propose(nod, "two", "smash")) == {BENS, EVES}


async def test_a_mute_counts_for_all_accounts_of_the_person_and_for_no_one_else(make_nod: MakeNod) -> None:
    nod = await make(make_nod)
    other = Actor("chat", "ben2", "Ben")
    await nod.link(BEN, other)
    reply = await nod.command("/nod mutes paint for 8h", by=other)
    assert reply.answer is Answer.ACCEPTED, reply.text
    assert told(nod, await propose(nod, "one")) == {EVES}


async def test_one_lists_and_ends_ones_own_mutes(make_nod: MakeNod) -> None:
    nod = await make(make_nod)
    assert "You mute nothing" in (await nod.command("/nod mutes", by=BEN)).text
    await mute(nod, await propose(nod, "one"), BEN)
    assert "- `paint` until " in (await nod.command("/nod mutes", by=BEN)).text
    assert "You mute nothing" in (await nod.command("/nod mutes", by=EVE)).text
    assert "don't mute" in (await nod.command("/nod mutes end paint", by=EVE)).text
    assert "You mute nothing" in (await nod.command("/nod mutes end all", by=EVE)).text
    assert "Say which" in (await nod.command("/nod mutes end", by=EVE)).text
    assert "again of paint" in (await nod.command("/nod mutes end paint", by=BEN)).text
    assert told(nod, await propose(nod, "two")) == {BENS, EVES}
    for words in ("paint for 9d", "paint", "nothing for 8h", "paint for soon"):
        assert (await nod.command(f"/nod mutes {words}", by=BEN)).answer is Answer.INVALID


async def test_a_mute_holds_after_a_restart_and_in_another_process(make_nod: MakeNod) -> None:
    nod = await make(make_nod)
    other = nod.beside()
    await mute(nod, await propose(nod, "one"), BEN)
    other.model.rule = None
    assert told(nod, await propose(other, "two")) == {EVES}
    await other.close()
    await nod.restart()
    assert told(nod, await propose(nod, "three")) == {EVES}


async def test_who_may_not_decide_mutes_nothing(make_nod: MakeNod) -> None:
    nod = await make(make_nod)
    proposal = await propose(nod, "one")
    assert (await nod.press(Verb.MUTE, proposal, by=ADA)).answer is Answer.REFUSED


async def test_a_mute_that_is_over_counts_no_longer_towards_the_most(make_nod: MakeNod) -> None:
    nod = await make(make_nod)
    now, hour, ben = nod.clock(), timedelta(hours=1), Person("ben", accounts=frozenset({str(BEN)}))

    def fill(session: Session) -> tuple[bool, bool]:
        for number in range(rows.MAX_MUTES):
            rows.set_mute(session, BEN, ben, f"tool{number}", now + hour, now)
        during = rows.set_mute(session, BEN, ben, "paint", now + 2 * hour, now)
        return during, rows.set_mute(session, BEN, ben, "paint", now + 4 * hour, now + 2 * hour)

    assert await nod.database.write(fill) == (False, True)


async def test_of_two_mutes_of_linked_accounts_the_one_that_ends_last_counts(make_nod: MakeNod) -> None:
    nod = await make(make_nod)
    now, hour = nod.clock(), timedelta(hours=1)

    def find_after_link(session: Session) -> datetime | None:
        for hours, who in enumerate((BEN, EVE), start=1):
            person = Person(str(who), accounts=frozenset({str(who)}))
            rows.set_mute(session, who, person, "paint", now + hours * hour, now)
        both = Person("both", accounts=frozenset({str(BEN), str(EVE)}))
        found = rows.find_mute(session, both, "paint", now)
        return found.until if found else None

    assert await nod.database.write(find_after_link) == now + 2 * hour
