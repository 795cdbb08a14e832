"""A server whose calls are made in people's names: each has a session, a list and a token of their own."""

import base64
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest

from bot.domain.chat import Address
from bot.domain.connections import Connection, Identity
from bot.domain.policy import Policy
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.redaction import HIDDEN
from bot.domain.verbs import Verb
from bot.store.connections import give_connections
from bot.tools.mcp.account_sessions import MAX_IDLE_TIME
from bot.tools.mcp.config import Http, ServerConfig, Trust
from bot.tools.mcp.toolset import McpToolset
from bot.tools.toolset import Toolset
from tests.kit import ADA, ANA, BEN, FakeClock, Nod, call, cores, says
from tests.kit.accounts import Accounts
from tests.kit.urls import Urls
from tests.tools.mcp.conftest import Pauses, until
from tests.tools.mcp.servers.desk import Desk

pytestmark = pytest.mark.slow

THREAD = Address("chat", "group")
ALONE = Address("chat", "ana")
BENS = Address("chat", "ben")
OFFERED = frozenset({"desk_read_issue", "desk_close_issue", "desk_secret_list"})


class DeskNod(Nod):
    """The core over a desk, where people have accounts."""

    def __init__(
        self, *given: Any, desk: Desk, identity: Identity = Identity.PERSON, most: int = 64, **parts: Any
    ) -> None:
        self.desk, self.accounts, self.identity, self.most = desk, Accounts(), identity, most
        self.pauses = Pauses()
        self.stopped: list[McpToolset] = []
        super().__init__(*given, **parts)

    def tools(self) -> Toolset:
        give_connections(self.database, self.accounts)
        launch = Http(self.desk.url)
        config = ServerConfig("desk", launch, Trust.TRUSTED, prefix="desk_", identity=self.identity)
        self.toolset = McpToolset(
            [config], clock=self.clock, database=self.database, sleep=self.pauses, max_sessions=self.most
        )
        self.stopped.append(self.toolset)
        return self.toolset

    async def close(self) -> None:
        for toolset in self.stopped:
            await toolset.stop()
        await super().close()

    def connect(self, owner: Any, name: str, **more: Any) -> Connection:
        made = self.accounts.connect("desk", owner, name, **more)
        self.desk.tokens[self.accounts.tokens[made.id]] = name
        return made

    async def offered(self, by: Any, at: Address) -> set[str]:
        await self.say("hello", by=by, at=at)
        await self.idle()
        return {spec.name for spec in self.model.offered[-1]} & OFFERED


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    desk = Desk()
    await desk.up()
    yield desk
    await desk.down()


@pytest.fixture
async def make(database_of: Urls, clock: FakeClock, desk: Desk) -> AsyncIterator[Callable[..., DeskNod]]:
    async with cores(lambda *given, **parts: DeskNod(*given, desk=desk, **parts), database_of, clock) as make:
        yield make


@pytest.fixture
def nod(make: Callable[..., DeskNod]) -> DeskNod:
    return make(policy=Policy(approvers=frozenset({str(BEN)}), admins=frozenset({str(ADA)})))


async def close(nod: DeskNod, number: int = 3, **more: Any) -> Proposal:
    wanted = call("desk_close_issue", number=number, approval_reason="done")
    [p] = await nod.asked(wanted, **{"at": THREAD, "private": False, **more})
    return p


async def test_two_people_in_one_thread_each_act_with_their_own_account(nod: DeskNod, desk: Desk) -> None:
    nod.connect(ANA, "octocat")
    nod.connect(BEN, "hubot")
    of_ana, of_ben = await close(nod, 1, by=ANA), await close(nod, 2, by=BEN)
    assert (of_ana.connection.acts_as, of_ben.connection.acts_as) == (  # type: ignore[union-attr]
        "As Ana at desk (octocat)",
        "As Ben at desk (hubot)",
    )
    await nod.press(Verb.APPROVE, of_ana, by=BEN)
    await nod.idle()
    assert desk.log == []
    assert (await nod.approve(of_ben, by=BEN)).state is State.SUCCEEDED
    assert (await nod.approve(of_ana, by=ANA)).state is State.SUCCEEDED
    assert desk.log == [("hubot", "close_issue", {"number": 2}), ("octocat", "close_issue", {"number": 1})]


async def test_each_is_offered_what_the_server_lists_for_them(nod: DeskNod, desk: Desk) -> None:
    nod.connect(ANA, "octocat")
    nod.connect(BEN, "hubot")
    desk.extra["octocat"] = frozenset({"secret_list"})
    common = {"desk_read_issue", "desk_close_issue"}
    assert await nod.offered(ANA, ALONE) == common | {"desk_secret_list"}
    assert await nod.offered(BEN, BENS) == common
    assert await nod.offered(ADA, Address("chat", "ada")) == set()
    assert set(desk.listed) == {"octocat", "hubot"}


async def test_a_card_runs_after_a_restart_under_the_same_account(nod: DeskNod, desk: Desk) -> None:
    nod.connect(ANA, "octocat")
    p = await close(nod)
    await nod.restart()
    assert (await nod.approve(p)).state is State.SUCCEEDED
    assert desk.log == [("octocat", "close_issue", {"number": 3})]


async def test_a_schema_that_differs_by_account_is_a_version_of_its_own(nod: DeskNod, desk: Desk) -> None:
    desk.required["hubot"] = "It asks for a reason."
    nod.connect(ANA, "octocat")
    nod.connect(BEN, "hubot")
    of_ana, of_ben = await close(nod, 1, by=ANA), await close(nod, 1, by=BEN)
    assert of_ana.tool_version != of_ben.tool_version


@pytest.mark.parametrize("change", ["disconnect", "expire", "switch", "revoke"])
async def test_nothing_runs_under_another_account_or_none(nod: DeskNod, desk: Desk, change: str) -> None:
    octocat = nod.connect(ANA, "octocat")
    p = await close(nod)
    match change:
        case "disconnect":
            nod.accounts.disconnect("desk", ANA)
        case "expire":
            nod.accounts.expire("desk", ANA)
        case "switch":
            nod.connect(ANA, "hubot")
        case "revoke":  # by the server alone: its next answer says so
            del desk.tokens[nod.accounts.tokens[octocat.id]]
    failed = await nod.approve(p)
    assert (failed.state, desk.log) == (State.FAILED, [])
    assert (failed.cause is Cause.DISCONNECTED) is (change != "revoke")
    again = nod.connect(ANA, "octocat")
    assert again.key == octocat.key
    await nod.press(Verb.RETRY, failed)
    await nod.idle()
    assert (await nod.now(p)).state is State.SUCCEEDED
    assert desk.log == [("octocat", "close_issue", {"number": 3})]


async def test_what_the_server_says_has_no_token_in_it(nod: DeskNod, desk: Desk) -> None:
    octocat = nod.connect(ANA, "octocat")
    token = nod.accounts.tokens[octocat.id]
    nod.model.will(says("I look.", call("desk_read_issue", number=7)))
    await nod.say(at=ALONE)
    await nod.idle()
    assert nod.model.results == [f"octocat reads 7, by {HIDDEN}"]
    everything = str(nod.model.transcripts) + "".join(await nod.said(ALONE))
    assert token not in everything
    assert base64.b64encode(token.encode()).decode() not in everything


async def test_a_place_s_account_is_that_of_its_chat(make: Callable[..., DeskNod], desk: Desk) -> None:
    nod = make(identity=Identity.PLACE)
    nod.connect("chat:group", "room-bot", identity=Identity.PLACE)
    p = await close(nod, by=BEN)
    assert (await nod.approve(p, by=BEN)).state is State.SUCCEEDED
    assert desk.log == [("room-bot", "close_issue", {"number": 3})]
    assert await nod.offered(BEN, BENS) == set()


async def test_sessions_that_no_one_uses_are_closed(nod: DeskNod, desk: Desk) -> None:
    nod.connect(ANA, "octocat")
    await nod.offered(ANA, ALONE)
    sessions = nod.toolset.connected
    assert sessions is not None
    sessions.end_idle()
    assert len(sessions) == 1
    nod.clock.forward(MAX_IDLE_TIME + timedelta(seconds=1))
    sessions.end_idle()
    assert len(sessions) == 0
    assert await nod.offered(ANA, ALONE) == {"desk_read_issue", "desk_close_issue"}


async def test_the_least_used_sessions_make_room(make: Callable[..., DeskNod], desk: Desk) -> None:
    nod = make(most=1)
    nod.connect(ANA, "octocat")
    nod.connect(BEN, "hubot")
    await nod.offered(ANA, ALONE)
    await nod.offered(BEN, BENS)
    sessions = nod.toolset.connected
    assert sessions is not None
    assert len(sessions) == 1
    assert await nod.offered(ANA, ALONE) == {"desk_read_issue", "desk_close_issue"}


async def test_a_new_session_stays_where_all_others_are_in_a_call(
    make: Callable[..., DeskNod], desk: Desk
) -> None:
    nod = make(most=1)
    nod.connect(ANA, "octocat")
    nod.connect(BEN, "hubot")
    desk.may_answer.clear()
    nod.model.will(says("I look.", call("desk_read_issue", number=7)))
    await nod.say("read it", by=ANA, at=ALONE)
    await until(lambda: desk.log)
    await nod.say("hello", by=BEN, at=BENS)
    await until(lambda: len(nod.model.offered) == 2)
    assert {spec.name for spec in nod.model.offered[-1]} & OFFERED == {"desk_read_issue", "desk_close_issue"}
    desk.may_answer.set()
    await nod.idle()


async def test_a_name_full_of_marks_and_mentions_is_bounded_on_the_card(nod: DeskNod, desk: Desk) -> None:
    hostile = "<!channel> @everyone \u202egnp.exe\n[x](http://evil.example) " + "a" * 10_000
    nod.connect(ANA, hostile, token="token-of-someone")
    p = await close(nod)
    assert p.connection is not None
    assert len(p.connection.name) < 100
    card = next(iter(nod.chat.cards.values()))
    assert "\u202e" not in card.acts_as
    assert "\n" not in card.acts_as
