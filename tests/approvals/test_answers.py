"""What a call in a person's name answers is seen by others only where that person allowed it."""

from collections.abc import AsyncIterator, Callable

import pytest

from bot.channels.card_text import card_text
from bot.domain.chat import Address
from bot.domain.connections import Connection
from bot.domain.hooks import Hooks
from bot.domain.policy import Policy
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.rule_values import Mode
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import Verb
from tests.kit import ADA, ANA, BEN, FakeClock, call, cores
from tests.kit.accounts import ConnectedNod
from tests.kit.urls import Urls

THREAD = Address("chat", "group")
OTHER = Address("chat", "other")
ALONE = Address("chat", "ana")
WARNING = "Anyone who sees this card also sees what forge answers."
HIDDEN = "forge answered. Ana alone sees it, since they allowed no one else to."


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


async def close(nod: ConnectedNod, number: int = 3, at: Address = THREAD) -> Proposal:
    asked = call("close_issue", number=number, approval_reason="done")
    [p] = await nod.asked(asked, at=at, private=at is ALONE)
    return p


async def allow(nod: ConnectedNod, p: Proposal) -> None:
    """Approve it and allow calls like it, by its owner."""
    similar = {"lasting": GrantDuration.DAY, "reach": GrantAudience.REQUESTER}
    await nod.press(Verb.SIMILAR, p, rung=GrantScope.TOOL, **similar)
    await nod.idle()


async def cards_of(nod: ConnectedNod) -> str:
    return "\n".join(str(card_text(card)) for card in nod.chat.cards.values())


async def told_in_private(nod: ConnectedNod) -> str:
    await nod.tick()
    return "\n".join(text for place, text in nod.chat.texts if place == ALONE)


async def test_the_card_says_who_sees_the_answer_and_the_owners_press_allows_it(
    nod: ConnectedNod, octocat: Connection
):
    p = await close(nod)
    assert WARNING in await cards_of(nod)
    done = await nod.approve(p)
    assert (done.state, done.result) == (State.SUCCEEDED, "closed 3")
    assert "closed 3" in nod.model.results[-1]


async def test_a_grant_holds_for_the_answers_of_its_place_and_of_a_private_chat(
    nod: ConnectedNod, octocat: Connection
):
    await allow(nod, await close(nod))
    assert [(await close(nod, 4)).result, (await close(nod, 5, ALONE)).result] == ["closed 4", "closed 5"]


async def test_under_a_grant_of_another_place_the_answer_goes_to_the_owner_alone(
    nod: ConnectedNod, octocat: Connection
):
    await allow(nod, await close(nod, at=ALONE))
    p = await close(nod, 4)
    assert (p.state, p.result, nod.forge.log[-1][2]) == (State.SUCCEEDED, HIDDEN, "4")
    assert "closed 4" not in await cards_of(nod)
    assert "closed 4" not in str(nod.model.transcripts)
    assert "closed 4" in await told_in_private(nod)


async def test_an_answer_to_a_read_allows_it_in_that_conversation(nod: ConnectedNod, octocat: Connection):
    await allow(nod, await close(nod, at=ALONE))
    [asked] = await nod.asked(call("read_issue", number=7), at=THREAD, private=False)
    await nod.approve(asked)
    assert [(await close(nod, 4)).result, (await close(nod, 5, OTHER)).result] == ["closed 4", HIDDEN]


async def test_only_in_private_outranks_the_press_on_the_card(nod: ConnectedNod, octocat: Connection):
    [asked] = await nod.asked(call("read_issue", number=7), at=THREAD, private=False)
    await nod.press(Verb.NEVER, asked)
    await nod.idle()
    done = await nod.approve(await close(nod))
    assert (done.state, done.result) == (State.SUCCEEDED, HIDDEN)
    assert "closed 3" in await told_in_private(nod)


async def test_an_error_of_the_server_is_an_answer_too(nod: ConnectedNod, octocat: Connection):
    await allow(nod, await close(nod, at=ALONE))
    nod.forge.refuses = "issue 4, “sell the house”, is locked"
    p = await close(nod, 4)
    assert (p.state, p.cause) == (State.FAILED, Cause.ERROR)
    assert p.error == "forge refused it. Ana alone sees why, since they allowed no one else to."
    assert "sell the house" not in await cards_of(nod)
    assert "sell the house" not in str(nod.model.transcripts)
    assert "sell the house" in await told_in_private(nod)


async def test_progress_is_an_answer_too(nod: ConnectedNod, octocat: Connection):
    await allow(nod, await close(nod, at=ALONE))
    nod.forge.says = "looking at “sell the house”"
    await close(nod, 4)
    assert "sell the house" not in str(nod.chat.drawn)


async def test_a_card_that_does_not_say_who_sees_the_answer_allows_nothing(make):
    nod = make(policy=Policy(Mode.ALWAYS, admins=frozenset({str(ADA)})), hooks=Hooks())
    nod.accounts.connect("forge", ANA, "octocat")
    assert (await nod.approve(await close(nod))).result == HIDDEN
