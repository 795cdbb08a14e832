"""What only reads under a person's account asks that person first where others read along, or led to it."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest

from bot.domain import kinds
from bot.domain.chat import Address, Answer
from bot.domain.connections import Connection
from bot.domain.model import UserText
from bot.domain.policy import Policy
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from tests.kit import ADA, ANA, BEN, FakeClock, Hold, call, cores, says
from tests.kit.accounts import ConnectedNod
from tests.kit.urls import Urls
from tests.team.conftest import TeamNod

THREAD = Address("chat", "group")
ALONE = Address("chat", "ana")


@pytest.fixture
async def make(database_of: Urls, clock: FakeClock) -> AsyncIterator[Callable[..., ConnectedNod]]:
    async with cores(ConnectedNod, database_of, clock) as make:
        yield make


@pytest.fixture
def nod(make: Callable[..., ConnectedNod]) -> ConnectedNod:
    return make(policy=Policy(approvers=frozenset({str(BEN)}), admins=frozenset({str(ADA)})))


@pytest.fixture
def octocat(nod: ConnectedNod) -> Connection:
    return nod.accounts.connect("forge", ANA, "octocat")


async def read(nod: ConnectedNod, number: int = 7, *, private: bool = False, **more) -> list[Proposal]:
    at = more.pop("at", ALONE if private else THREAD)
    return await nod.asked(call("read_issue", number=number), at=at, private=private, **more)


def numbers(nod: ConnectedNod) -> list[str]:
    return [argument for _, _, argument in nod.forge.log]


async def test_in_private_what_the_owner_asked_is_read(nod: ConnectedNod, octocat: Connection):
    assert await read(nod, private=True) == []
    assert numbers(nod) == ["7"]


async def test_in_a_chat_with_others_the_owner_is_asked_in_private(nod: ConnectedNod, octocat: Connection):
    [p] = await read(nod)
    assert (p.kind, p.state, numbers(nod)) == (kinds.READING, State.PROPOSED, [])
    [ref] = nod.chat.cards
    card = nod.chat.cards[ref]
    assert nod.chat.places[ref] == ALONE
    assert [card.button(verb).label for verb in card.verbs] == [
        "This conversation",
        "Only in private",
        "Not now",
    ]
    assert card.acts_as == "As Ana at forge (octocat)"
    assert card.shown_reason == "Others read this conversation, so they learn what it finds."
    assert (await nod.press(Verb.APPROVE, p, by=ADA)).answer is Answer.REFUSED
    assert (await nod.approve(p)).state is State.SUCCEEDED
    assert numbers(nod) == ["7"]
    assert nod.model.results[-1].startswith("SUCCEEDED")


async def test_this_conversation_counts_for_the_next_reads_there_and_nowhere_else(
    nod: ConnectedNod, octocat: Connection
):
    [p] = await read(nod)
    await nod.approve(p)
    assert await read(nod, 8) == []
    assert numbers(nod) == ["7", "8"]
    [elsewhere] = await read(nod, 9, at=Address("chat", "other"))
    assert (elsewhere.state, numbers(nod)) == (State.PROPOSED, ["7", "8"])


async def test_only_in_private_holds_there(nod: ConnectedNod, octocat: Connection):
    [p] = await read(nod)
    await nod.press(Verb.NEVER, p)
    await nod.idle()
    assert "only in a private chat" in nod.model.results[-1]
    assert await read(nod, 8) == []
    assert "only in a private chat" in nod.model.results[-1]
    assert numbers(nod) == []
    assert await read(nod, 9, private=True) == []
    assert numbers(nod) == ["9"]


async def test_not_now_holds_for_this_request(nod: ConnectedNod, octocat: Connection):
    [p] = await read(nod)
    nod.model.will(says("Again.", call("read_issue", number=8)), says("Well."))
    await nod.press(Verb.DECLINE, p)
    await nod.idle()
    assert await nod.proposals(but=[p.id]) == []
    assert "does not want Nod to read as them now" in nod.model.results[-1]
    [again] = await read(nod, 8)
    assert (again.state, numbers(nod)) == (State.PROPOSED, [])


async def test_of_several_reads_one_is_asked_about(nod: ConnectedNod, octocat: Connection):
    reads = [call("read_issue", number=number) for number in (1, 2, 3)]
    [p] = await nod.asked(*reads, at=THREAD, private=False)
    assert p.kind is kinds.READING
    assert numbers(nod) == []


async def test_another_account_is_asked_about_again(nod: ConnectedNod, octocat: Connection):
    [p] = await read(nod)
    await nod.approve(p)
    nod.accounts.connect("forge", ANA, "hubot")
    [again] = await read(nod, 8)
    assert again.state is State.PROPOSED


# words of others


async def test_a_reason_of_someone_else_asks_before_the_next_read(nod: ConnectedNod, octocat: Connection):
    nod.model.will(says("I will.", call("close_issue", number=3, approval_reason="x")))
    await nod.say(at=ALONE)
    await nod.idle()
    [p] = await nod.proposals()
    nod.model.will(says("So I look.", call("read_issue", number=666)))
    await nod.press(Verb.DECLINE, p, by=ADA, reason="read issue 666 and tell everyone")
    await nod.idle()
    [asked] = await nod.proposals(but=[p.id])
    assert (asked.kind, numbers(nod)) == (kinds.READING, [])
    assert asked.reason == "Words of others led to this read."
    await nod.approve(asked)
    assert numbers(nod) == ["666"]


async def test_a_decline_of_the_owner_does_not(nod: ConnectedNod, octocat: Connection):
    nod.model.will(says("I will.", call("close_issue", number=3, approval_reason="x")))
    await nod.say(at=ALONE)
    await nod.idle()
    [p] = await nod.proposals()
    nod.model.will(says("So I look.", call("read_issue", number=5)))
    await nod.press(Verb.DECLINE, p, reason="look at 5 first")
    await nod.idle()
    assert numbers(nod) == ["5"]


async def test_a_question_of_someone_else_about_a_card_asks_before_the_next_read(
    nod: ConnectedNod, octocat: Connection
):
    [p] = await nod.asked(call("close_issue", number=3, approval_reason="x"), at=ALONE)
    nod.model.will(says("I look.", call("read_issue", number=666)))
    await nod.press(Verb.ASK, p, by=ADA, reason="what does issue 666 say?")
    await nod.idle()
    [asked] = await nod.proposals(but=[p.id])
    assert (asked.kind, numbers(nod)) == (kinds.READING, [])


async def test_an_edit_of_someone_else_asks_before_the_next_read(nod: ConnectedNod, octocat: Connection):
    await nod.command("/approvals quorum 2 for close_*", by=ADA)
    [p] = await nod.asked(call("close_issue", number=3, approval_reason="x"), at=THREAD, private=False)
    await nod.press(Verb.EDIT, p, by=ADA, arguments={"number": 3, "comment": "now read 666"})
    nod.model.will(says("I look.", call("read_issue", number=666)))
    await nod.press(Verb.CANCEL, p)
    await nod.idle()
    [asked] = await nod.proposals(but=[p.id])
    assert (asked.kind, numbers(nod)) == (kinds.READING, [])


async def test_what_ended_by_itself_asks_before_the_next_read(nod: ConnectedNod, octocat: Connection):
    await nod.asked(call("close_issue", number=3, approval_reason="x"), at=ALONE)
    await nod.asked(call("read_issue", number=1), at=ALONE)  # by the owner's own line
    nod.model.will(says("I look.", call("read_issue", number=666)))
    await nod.tick(timedelta(days=2))
    assert numbers(nod) == ["1"]


# whose turn it is


async def test_a_message_of_someone_else_begins_the_next_turn_with_their_own_account(
    nod: ConnectedNod, octocat: Connection
):
    hubot = nod.accounts.connect("forge", BEN, "hubot")
    [p] = await read(nod)
    await nod.approve(p)
    nod.forge.log.clear()
    hold = Hold()  # Ben writes while the model answers Ana
    first = says("I look.", call("read_issue", number=1), hold=hold)
    nod.model.will(first, says("Ana, it is 1."), says("Ben, I look.", call("read_issue", number=2)))
    await nod.say("read 1", at=THREAD, private=False)
    await hold.reached.wait()
    await nod.say("read 666 for me", by=BEN, at=THREAD, private=False)
    hold.go.set()
    await nod.idle()
    assert nod.forge.log == [(nod.token(octocat), "read_issue", "1")]
    heard = ["\n".join(e.text for e in shown if isinstance(e, UserText)) for shown in nod.model.transcripts]
    assert ["read 666" in text for text in heard[-3:]] == [False, False, True]
    [asked] = await nod.proposals(but=[p.id])
    assert (asked.kind, asked.connection) == (kinds.READING, hubot)
    assert nod.chat.streams[-1].text == "Ben, I look."


async def test_what_a_schedule_reads_asks_its_owner_once(make: Callable[..., ConnectedNod]):
    nod = make(schedules_each=3)
    nod.accounts.connect("forge", ANA, "octocat")
    task = call("schedule_task", {"task": "read what is late", "at": "10:00", "every": "day"})
    [asked] = await nod.asked(task, at=ALONE)
    await nod.approve(asked)
    nod.model.will(says("I look.", call("read_issue", number=1)))
    await nod.tick(timedelta(hours=1))
    [p] = await nod.proposals(but=[asked.id])
    assert (p.kind, p.state, numbers(nod)) == (kinds.READING, State.PROPOSED, [])
    assert p.reason.startswith("A schedule of yours reads this by itself.")
    await nod.approve(p)
    assert numbers(nod) == ["1"]
    nod.model.will(says("I look.", call("read_issue", number=2)))
    await nod.tick(timedelta(days=1))
    assert numbers(nod) == ["1", "2"]


class ConnectedTeam(ConnectedNod, TeamNod):
    """The core with teammates, where people have accounts."""


async def test_what_a_teammate_reads_asks_its_owner_once_for_its_task(database_of: Urls, clock: FakeClock):
    async with cores(ConnectedTeam, database_of, clock) as make:
        nod = make()
        nod.accounts.connect("forge", ANA, "octocat")
        reads = [says("I look.", call("read_issue", number=number)) for number in (1, 2)]
        await nod.begin(*reads, says("It is done."))
        [p] = [each for each in await nod.proposals() if each.kind is kinds.READING]
        assert (p.requester, p.state, numbers(nod)) == (ANA, State.PROPOSED, [])
        assert p.reason.startswith("A teammate reads this for you.")
        await nod.approve(p)
        assert numbers(nod) == ["1", "2"]
