"""Signs of how people decide: kept and named only where that was turned on, each sees their own."""

from datetime import timedelta

import pytest
from sqlmodel import Session, select

from bot.domain.chat import Address
from bot.domain.people import Actor
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.features.insights import reading_signs
from bot.features.insights.reading_signs import BY_PEOPLE, HOURS_TEXT, SIGNS_TEXT, Signs
from bot.features.insights.tables import OpenedCardRow, ReadDecisionRow, ShownCopyRow
from tests.kit import ADA, ANA, BEN, EVE, ROOM, MakeNod, Nod, call

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
TABLES = (ShownCopyRow, OpenedCardRow, ReadDecisionRow)


@pytest.fixture
def nod(make_nod: MakeNod) -> Nod:
    return make_nod(admins=[ADA], insights=BY_PEOPLE)


def find_signs(nod: Nod, by: Actor, *, by_name: bool = True) -> Signs:
    def find(session: Session) -> Signs:
        since = nod.clock() - timedelta(days=30)
        return reading_signs.find_signs(session, nod.gate.policies, by, since, has_notes=by_name)

    return nod.database.read_now(find)


async def paint(nod: Nod, *, by: Actor = ANA, lamp: str = "desk", at: Address = ROOM) -> Proposal:
    (proposal,) = await nod.asked(call("paint", lamp=lamp, color="red"), by=by, at=at, private=False)
    return proposal


def ref_of(nod: Nod, proposal: Proposal) -> str:
    """Return the reference of the newest copy of a card."""
    found = [ref for ref, card in nod.chat.cards.items() if card.proposal_id == proposal.card_id]
    return found[-1]


async def press(nod: Nod, proposal: Proposal, verb: Verb = Verb.APPROVE, by: Actor = ANA) -> None:
    """Press on the newest copy of the card in the room."""
    ref = ref_of(nod, proposal)
    await nod.press(verb, proposal, by=by, at=ROOM, ref=ref)
    await nod.idle()


def count_rows(nod: Nod) -> list[int]:
    return nod.database.read_now(lambda s: [len(s.exec(select(table)).all()) for table in TABLES])


async def test_a_press_right_after_the_card_is_faster_than_it_can_be_read(nod: Nod) -> None:
    fast, slow = await paint(nod), await paint(nod, lamp="door")
    nod.clock.forward(SECOND)
    await press(nod, fast)
    nod.clock.forward(MINUTE)
    await press(nod, slow, Verb.DECLINE)
    [ana] = find_signs(nod, ADA).people
    assert (ana.name, ana.signs.decided, ana.signs.approved) == ("Ana", 2, 1)
    assert (ana.signs.timed, ana.signs.faster, ana.signs.longest_run) == (2, 1, 1)


async def test_an_edit_is_read_from_when_its_card_was_drawn(nod: Nod) -> None:
    proposal = await paint(nod)
    nod.clock.forward(10 * MINUTE)
    await nod.press(Verb.EDIT, proposal, arguments={"lamp": "desk", "color": "blue"}, round_shown=1)
    await nod.idle()
    nod.clock.forward(SECOND)
    await press(nod, await nod.now(proposal))
    [ana] = find_signs(nod, ADA).people
    assert (ana.signs.timed, ana.signs.faster) == (1, 1)


async def test_view_all_is_counted_before_an_approval_and_not_for_an_earlier_round(nod: Nod) -> None:
    first, second = await paint(nod), await paint(nod, lamp="door")
    for proposal in (first, second):
        await nod.lookup.note_opened(proposal.id, ANA)
    await nod.lookup.note_opened(first.id, ANA)
    nod.clock.forward(MINUTE)
    await press(nod, first)
    await nod.press(Verb.EDIT, second, arguments={"lamp": "door", "color": "blue"}, round_shown=1)
    await nod.idle()
    nod.clock.forward(MINUTE)
    await press(nod, await nod.now(second))
    await nod.lookup.note_opened(first.id, ANA)
    [ana] = find_signs(nod, ADA).people
    assert (ana.signs.approved, ana.signs.viewed) == (2, 1)


async def test_a_table_is_read_by_its_rows_and_is_one_decision(nod: Nod) -> None:
    nod.world.lamps = {f"lamp {n}": "white" for n in range(30)}
    rows = await nod.asked(*(call("paint", lamp=lamp, color="red") for lamp in nod.world.lamps))
    nod.clock.forward(20 * SECOND)
    await nod.press(Verb.APPROVE_ALL, rows[0], at=ROOM, ref=ref_of(nod, rows[0]))
    await nod.idle()
    [ana] = find_signs(nod, ADA).people
    assert (ana.signs.decided, ana.signs.timed, ana.signs.faster) == (1, 1, 1)


@pytest.mark.parametrize("count", [1, 5])  # a card of its own, and a row of a table
async def test_view_all_is_counted_before_an_approval_with_an_edit(nod: Nod, count: int) -> None:
    nod.world.lamps = {f"lamp {n}": "white" for n in range(count)}
    *_, last = await nod.asked(*(call("paint", lamp=lamp, color="red") for lamp in nod.world.lamps))
    await nod.lookup.note_opened(last.id, ANA)
    nod.clock.forward(MINUTE)
    edited = last.arguments | {"color": "blue"}
    await nod.press(Verb.APPROVE, last, arguments=edited, round_shown=1)
    await nod.idle()
    [ana] = find_signs(nod, ADA).people
    assert (ana.signs.approved, ana.signs.viewed) == (1, 1)


async def test_each_person_sees_their_own_alone(nod: Nod) -> None:
    await nod.command("/approvals roles add chat:ben approver", by=ADA)
    mine, theirs = await paint(nod), await paint(nod, lamp="door")
    await press(nod, mine)
    await press(nod, theirs, by=BEN)
    assert [each.name for each in find_signs(nod, ADA).people] == ["Ana", "Ben"]
    for person in (ANA, BEN):
        found = find_signs(nod, person)
        assert [each.name for each in found.people] == [person.name]
        assert (found.everyone, found.total) == (False, None)
    assert find_signs(nod, EVE).people == ()
    said = (await nod.command("/approvals insights people", by=BEN)).text
    assert "Ana" not in said
    assert said.splitlines()[1].startswith("- You: decided 1;")


async def test_admins_are_told_by_name_that_these_are_signs(nod: Nod) -> None:
    await press(nod, await paint(nod))
    lines = (await nod.command("/approvals insights people 7d", by=ADA)).text.splitlines()
    assert lines[0] == "**How people decided in the last 7 d**"
    assert lines[1].startswith(
        "- Ana: decided 1; 1 of 1 faster than can be read; longest run without a no 1;"
    )
    assert lines[2:] == [f"{SIGNS_TEXT} {HOURS_TEXT}"]


@pytest.mark.parametrize("mode", [True, False])
async def test_where_it_is_not_turned_on_nothing_is_kept(make_nod: MakeNod, mode: bool) -> None:
    nod = make_nod(admins=[ADA], insights=mode)
    proposal = await paint(nod)
    await nod.lookup.note_opened(proposal.id, ANA)
    await press(nod, proposal)
    assert count_rows(nod) == [0, 0, 0]
    said = (await nod.command("/approvals insights people", by=ADA)).text
    assert ("turned off" in said) is not mode


async def test_without_names_an_admin_sees_the_total_of_three_or_more(make_nod: MakeNod) -> None:
    nod = make_nod(admins=[ADA], insights=True)
    for account in ("chat:ben", "chat:eve"):
        await nod.command(f"/approvals roles add {account} approver", by=ADA)
    for person, lamp in ((ANA, "desk"), (BEN, "door")):
        await press(nod, await paint(nod, lamp=lamp), by=person)
    assert (find_signs(nod, ADA, by_name=False).total, find_signs(nod, ADA, by_name=False).people) == (
        None,
        (),
    )
    await press(nod, await paint(nod, lamp="roof"), by=EVE)
    found = find_signs(nod, ADA, by_name=False)
    assert found.total is not None
    assert (found.total.decided, found.total.timed, found.people) == (3, 0, ())
    said = (await nod.command("/approvals insights people", by=ADA)).text
    assert said.splitlines()[1].startswith("- Everyone: decided 3; longest run without a no 1;")
    for name in ("Ana", "Ben", "Eve"):
        assert f"{name}:" not in said


async def test_it_is_forgotten_after_a_year_and_once_it_is_turned_off(nod: Nod) -> None:
    proposal = await paint(nod)
    await nod.lookup.note_opened(proposal.id, ANA)
    await press(nod, proposal)
    [forget] = [sweep for sweep in nod.sweeps if sweep.name == "forget_reading"]
    await forget.run(nod.clock())
    assert count_rows(nod) == [1, 1, 1]
    nod.changed_settings["insights"] = True
    await nod.restart()
    [forget] = [sweep for sweep in nod.sweeps if sweep.name == "forget_reading"]
    nod.clock.forward(SECOND)
    await forget.run(nod.clock())
    assert count_rows(nod) == [0, 0, 0]


async def test_a_restart_between_the_card_and_the_press_changes_nothing(nod: Nod) -> None:
    proposal = await paint(nod)
    await nod.crash()
    nod.clock.forward(SECOND)
    await press(nod, proposal)
    [ana] = find_signs(nod, ADA).people
    assert (ana.signs.timed, ana.signs.faster) == (1, 1)
