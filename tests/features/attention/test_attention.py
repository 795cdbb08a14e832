"""Beyond so many cards an hour, what is not urgent reaches a person in one table. Nothing is lost or late."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import count

import pytest
from sqlalchemy import event, select
from sqlmodel import Session

from bot.approvals.accounts import linking
from bot.channels.delivery import audience
from bot.domain.chat import Address, Answer
from bot.domain.people import Actor, UserGroup
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.errors import NotDeliverable
from bot.features.attention import rows
from bot.features.attention.tables import HeldRow, ReachedRow
from bot.features.attention.watcher import AttentionWatcher
from bot.store.audit import log
from tests.kit import ADA, ANA, BEN, EVE, MakeNod, Nod, call

BENS = Address("chat", BEN.key)
LIMIT = 3
_ROOMS = count()
TABLE = "waited for you"


async def make(make_nod: MakeNod, limit: int = LIMIT, whom: str = "") -> Nod:
    """Ben decides what others ask for, and so many cards an hour reach him."""
    nod = make_nod(admins=[ADA])
    await rule(nod, f"attention {limit} an hour{whom}")
    await rule(nod, f"approvers {BEN}")
    return nod


async def rule(nod: Nod, words: str) -> None:
    reply = await nod.command(f"/approvals {words}", by=ADA)
    assert reply.answer is Answer.ACCEPTED, reply.text


async def ask(nod: Nod, many: int, by: Actor = ANA, *, tool: str = "paint") -> list[Proposal]:
    """Someone asks so many times, each time in another private chat."""
    asked = []
    for _ in range(many):
        wanted = call(tool, lamp="desk", **({"color": "red"} if tool == "paint" else {}))
        at = Address("chat", f"{by.key}-{next(_ROOMS)}")
        asked += await nod.asked(wanted, by=by, at=at)
    return asked


def told(nod: Nod, at: Address = BENS) -> list[str]:
    """The proposals whose cards came there, in their order."""
    return [nod.chat.cards[ref].proposal_id for ref, place in nod.chat.places.items() if place == at]


def list_tables(nod: Nod) -> list[str]:
    return [text for place, text in nod.chat.texts if place == BENS and TABLE in text]


def find_held(nod: Nod) -> Sequence[HeldRow]:
    return nod.database.read_now(lambda session: list(session.execute(select(HeldRow)).scalars()))


async def list_acts(nod: Nod, proposal: Proposal) -> list[str]:
    return [entry.verb for entry in await nod.database.read(log.list_rows_of_proposal, proposal.id)]


async def test_what_is_beyond_the_number_waits_in_one_table_and_who_asked_is_told(make_nod: MakeNod) -> None:
    nod = await make(make_nod)
    nod.clock.now = nod.clock.now.replace(minute=10, second=0)
    asked = await ask(nod, LIMIT + 2)
    assert told(nod) == [each.id for each in asked[:LIMIT]]
    [line] = (await nod.now(asked[-1])).annotations
    assert line.line.startswith("Attention: 1 person will be told at ")
    assert ":30." in line.line
    assert nod.chat.card_of(asked[-1]).annotations == (line,)
    await nod.tick(timedelta(minutes=19))
    assert list_tables(nod) == []
    await nod.tick(timedelta(minutes=2))
    [table] = list_tables(nod)
    assert table.startswith("2 cards waited for you")
    assert table.count("`/nod open ") == 2
    assert "pprove" not in table
    for proposal in asked[LIMIT:]:
        assert (await list_acts(nod, proposal)) == ["propose", "hold", "release"]
        assert (await nod.now(proposal)).annotations == ()
    await nod.tick(timedelta(minutes=30))
    assert len(list_tables(nod)) == 1


async def test_the_line_counts_people_and_says_for_each_when_they_are_told(make_nod: MakeNod) -> None:
    nod = await make(make_nod)
    tablet = Actor("tablet", "3")
    nod.database.write_now(linking.link_accounts, nod.gate.policies, EVE, tablet, EVE, nod.clock())
    nod.clock.now = nod.clock.now.replace(minute=10, second=0)
    *earlier, held = await ask(nod, LIMIT + 1)
    for proposal in earlier:
        nod.database.write_now(rows.note_reached, [str(EVE)], proposal.id, nod.clock())
    nod.clock.forward(timedelta(minutes=25))
    watcher, notified = AttentionWatcher(nod.gate.policies), {str(BEN), str(EVE), str(tablet)}
    hold_back = watcher.hold_back
    assert nod.database.write_now(hold_back, await nod.now(held), notified, nod.clock()) == notified
    [line] = (await nod.now(held)).annotations
    assert line.line == (
        "Attention: 1 person will be told at 09:30. 1 person will be told at 10:00. "
        "Many cards came within an hour."
    )


async def test_a_row_opens_its_card_in_the_private_chat_and_that_card_decides(make_nod: MakeNod) -> None:
    nod = await make(make_nod)
    *_, held = await ask(nod, LIMIT + 1)
    await nod.tick(timedelta(minutes=30))
    assert (await nod.command(f"/nod open {held.id}", by=EVE)).answer is Answer.INVALID
    assert (await nod.command(f"/nod open {held.id}", by=BEN)).answer is Answer.ACCEPTED
    await nod.tick()
    assert told(nod)[-1] == held.id
    await nod.command(f"/nod open {held.id}", by=BEN)
    await nod.tick()
    assert told(nod).count(held.id) == 1
    assert nod.chat.texts[-1] == (BENS, "Here is the card.")
    assert (await nod.approve(held, by=BEN)).state is State.SUCCEEDED
    assert "approved by Ben" in (await nod.command(f"/nod open {held.id}", by=BEN)).text


async def test_the_first_two_open_cards_of_each_asker_and_what_can_t_be_undone_are_never_held(
    make_nod: MakeNod,
) -> None:
    nod = await make(make_nod, 1)
    flood = await ask(nod, 4)
    others = await ask(nod, 3, EVE)
    [urgent] = await ask(nod, 1, EVE, tool="smash")
    assert told(nod) == [*(each.id for each in (*flood[:2], *others[:2])), urgent.id]
    await nod.press(Verb.DECLINE, flood[0], by=BEN)
    await nod.press(Verb.DECLINE, flood[1], by=BEN)
    await nod.press(Verb.DECLINE, flood[2], by=BEN)
    await nod.idle()
    [next_one] = await ask(nod, 1)  # one of that asker's is open
    assert told(nod)[-1] == next_one.id


async def test_what_was_escalated_is_never_held(make_nod: MakeNod) -> None:
    nod = await make(make_nod, 1, f" for {BEN}")
    await rule(nod, f"escalate 5m {EVE}")
    nod.clock.now = nod.clock.now.replace(minute=10, second=0)
    asked = await ask(nod, 4)
    assert [row.proposal_id for row in find_held(nod)] == [each.id for each in asked[2:]]
    await nod.tick(timedelta(minutes=5))
    await nod.tick(timedelta(seconds=5))
    [table] = list_tables(nod)
    assert all(each.id in table for each in asked[2:])
    assert sorted(told(nod, Address("chat", EVE.key))) == sorted(each.id for each in asked)
    assert all(row.released_at is not None for row in find_held(nod))
    for proposal in asked[2:]:
        assert (await list_acts(nod, proposal)) == ["propose", "hold", "escalate", "release"]


async def test_nothing_is_held_past_half_of_what_is_left_to_its_expiry(make_nod: MakeNod) -> None:
    nod = await make(make_nod, 1)
    await rule(nod, "ttl 10m")
    nod.clock.now = nod.clock.now.replace(minute=1, second=0)
    *_, held = await ask(nod, 3)
    [row] = find_held(nod)
    assert row.until - row.held_at == timedelta(minutes=5)
    await nod.tick(timedelta(minutes=5))
    assert held.id in list_tables(nod)[0]


async def test_a_decided_card_is_not_in_the_table_and_where_nothing_is_left_none_comes(
    make_nod: MakeNod,
) -> None:
    nod = await make(make_nod, 1)
    *_, one, other = await ask(nod, 4)
    assert (await nod.command(f"/approvals approve {one.id}", by=BEN)).answer is Answer.ACCEPTED
    await nod.tick(timedelta(minutes=30))
    [table] = list_tables(nod)
    assert one.id not in table
    assert other.id in table


async def test_who_lost_the_right_to_decide_since_is_told_nothing(make_nod: MakeNod) -> None:
    nod = await make(make_nod, 1)
    *_, held = await ask(nod, 3)
    await nod.command(f"/approvals reassign {held.id} {EVE}", by=ADA)
    await nod.tick(timedelta(minutes=30))
    assert list_tables(nod) == []


async def test_a_shared_chat_keeps_its_card_and_only_the_mention_waits(make_nod: MakeNod) -> None:
    nod = await make(make_nod, 1)
    places = [Address("chat", f"T1/hall/{number}") for number in range(3)]
    for place in places:
        await nod.asked(call("paint", lamp="desk", color="red"), at=place, private=False)
    assert list(nod.chat.places.values()) == places
    mentioned = [
        [part for part in card.decider_names.parts if isinstance(part, Actor)]
        for card in nod.chat.cards.values()
    ]
    assert mentioned[:2] == [[BEN], [BEN]]
    assert find_held(nod)[0].place == str(places[2])
    nod.chat.refusals["post"] = NotDeliverable("he never wrote to me")
    await nod.tick(timedelta(minutes=30))
    nod.chat.refusals.clear()
    await nod.tick(timedelta(minutes=1))
    [said] = [text for place, text in nod.chat.texts if place == places[2] and "waited" in text]
    assert "Paint" not in said  # what waits is not told to others


async def test_a_rule_counts_for_the_person_or_the_group_that_it_names(make_nod: MakeNod) -> None:
    nod = await make(make_nod, 1, f" for {EVE}")
    await ask(nod, 3)
    assert find_held(nod) == []
    group = "chat:T1/S2"
    nod.chat.groups[group] = UserGroup("ops", frozenset({str(BEN)}))
    await rule(nod, f"attention 1 an hour for {group}")
    await ask(nod, 3)
    assert {row.account for row in find_held(nod)} == {str(BEN)}


async def test_an_hour_later_cards_reach_the_person_again(make_nod: MakeNod) -> None:
    nod = await make(make_nod, 1)
    await ask(nod, 3)
    await nod.tick(timedelta(minutes=61))
    [later] = await ask(nod, 1)
    assert told(nod)[-1] == later.id
    await nod.tick()
    assert len(nod.database.read_now(lambda s: s.execute(select(ReachedRow)).all())) == 1


async def test_where_no_rule_asks_nothing_is_read_and_nothing_written(make_nod: MakeNod) -> None:
    nod = make_nod(admins=[ADA])
    await nod.tick()
    said: list[str] = []

    def note(*given: object) -> None:
        said.append(str(given[2]))

    event.listen(nod.database.engine, "before_cursor_execute", note)
    await ask(nod, 3)
    await nod.tick(timedelta(minutes=30))
    event.remove(nod.database.engine, "before_cursor_execute", note)
    assert said
    assert [each for each in said if "held" in each or "reached" in each] == []


@pytest.mark.parametrize("many", [40, 999])
async def test_of_a_flood_nothing_is_lost_or_late(make_nod: MakeNod, many: int) -> None:
    nod = await make(make_nod, 12)
    nod.clock.now = nod.clock.now.replace(minute=3, second=0)
    flood: list[Proposal] = []
    for number in range(many):
        nod.clock.forward(timedelta(seconds=60) / many)
        if number == many // 2:
            [urgent] = await ask(nod, 1, tool="smash")
            assert told(nod)[-1] == urgent.id
        flood += await ask(nod, 1)
        if number == many * 3 // 4:
            await nod.crash()
    assert told(nod) == [*(each.id for each in flood[:12]), urgent.id]
    held = find_held(nod)
    assert len(flood) == many
    assert {row.proposal_id for row in held} == {each.id for each in flood[12:]}
    assert all(row.until - row.held_at <= rows.LONGEST_HOLD for row in held)
    other = nod.beside()
    nod.clock.forward(timedelta(minutes=27))
    for _ in range(many // 20 + 2):  # each look records some
        for process in (nod, other):
            await process.tick()
    await other.close()
    [table] = list_tables(nod)
    assert table.startswith(f"{many - 12} cards waited for you")
    assert table.count("`/nod open ") == 20
    await nod.restart()
    await nod.tick(timedelta(minutes=30))
    assert len(list_tables(nod)) == 1
    for proposal in flood[12:]:
        assert (await list_acts(nod, proposal)).count("release") == 1
    assert not nod.database.read_now(rows.has_unrecorded)


async def settle_step(nod: Nod, proposal: Proposal, *accounts: Actor) -> frozenset[str]:
    """Have a step notify these accounts of a card; the accounts that are notified now."""

    def settle(session: Session) -> frozenset[str]:
        named = [str(each) for each in accounts]
        return audience.choose_and_tell_step_recipients(session, proposal, named, nod.clock())

    return nod.database.write_now(settle)


async def test_a_step_reaches_no_account_of_who_is_told_later_and_those_whom_the_card_reached(
    make_nod: MakeNod,
) -> None:
    nod = await make(make_nod, 2)
    phone = Actor("phone", "ben", "Ben")
    nod.database.write_now(linking.link_accounts, nod.gate.policies, BEN, phone, BEN, nod.clock())
    reached, _, held = await ask(nod, 3)
    assert [row.proposal_id for row in find_held(nod)] == [held.id]
    assert await settle_step(nod, await nod.now(held), BEN, phone, EVE) == {str(EVE)}
    assert await settle_step(nod, await nod.now(reached), BEN, phone) == {str(BEN), str(phone)}
    assert {row.proposal_id for row in find_held(nod)} == {held.id}
    await nod.tick(timedelta(minutes=31))
    assert await settle_step(nod, await nod.now(held), BEN) == {str(BEN)}


async def test_no_table_is_sent_twice_by_two_processes(make_nod: MakeNod) -> None:
    nod = await make(make_nod, 1)
    await ask(nod, 3)
    now = nod.clock.forward(timedelta(minutes=30)) or nod.clock()

    def release_twice(session: Session) -> list[int]:
        return [len(rows.release_all(session, str(BEN), now)[0]) for _ in range(2)]

    assert nod.database.write_now(release_twice) == [1, 0]
