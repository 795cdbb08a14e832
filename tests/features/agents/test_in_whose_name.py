"""An agent acts as its person where they allowed it, and changes nothing as them without their press."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from bot.app.assembly import build
from bot.domain.chat import Press
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.rule_values import Mode, Subject
from bot.domain.rules import Rule
from bot.domain.verbs import Verb
from bot.settings import Settings
from bot.store import rules, tokens
from bot.store.tokens import AgentTerms
from tests.features.agents.kit import call, look
from tests.features.connections.conftest import ANA, KEY, Connectable, tracker  # noqa: F401 - a fixture
from tests.features.connections.test_in_whose_name import find, writes
from tests.features.connections.tracker import Tracker
from tests.kit import FakeClock, make_tables
from tests.kit.urls import Urls
from tests.web.conftest import TOKENS, Notes, Served
from tests.web.scripted import ScriptedModel

pytestmark = pytest.mark.slow


@pytest.fixture
async def there(
    tracker: Tracker,  # noqa: F811 - the fixture
    database_of: Urls,
    clock: FakeClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Connectable]:
    monkeypatch.chdir(tmp_path)  # no .env of anybody's
    make_tables(url := database_of("nod"))
    settings = Settings.load(
        NOD_DATABASE_URL=url,
        NOD_PORT=0,
        NOD_MCP_CONFIG="mcp.json",
        NOD_SECRET_KEY=(KEY,),
        NOD_HTTP_TOKENS=TOKENS,
        NOD_ADMINS=("http:chief",),
    )
    app = build(settings, model=ScriptedModel(), clock=clock)
    async with asyncio.timeout(120), app.running(ticking=False), httpx.AsyncClient() as client:
        made = Connectable(Served(app, app.models[0], Notes(), clock, client), tracker)  # type: ignore[arg-type]
        yield made
        await made.close()


async def agent_for(
    there: Connectable, person: Actor = ANA, servers: tuple[str, ...] = ()
) -> httpx.AsyncClient:
    clock = there.nod.clock
    until = clock() + timedelta(days=1)
    terms = AgentTerms(person, ("tracker_*",), servers, (), until, agreed=True)
    token = await there.nod.app.database.write(
        tokens.issue_token, f"agent-{person.key[-1]}", person, clock(), terms
    )
    return there.nod.caller(token)


async def press(there: Connectable, actor: Actor, verb: Verb, p: Proposal) -> State:
    await there.nod.app.core.assistant.handle(Press(actor, verb, p.id, p.round))
    await there.nod.app.dispatcher.wait_until_idle()
    return next(each for each in find(there) if each.id == p.id).state


async def test_the_servers_where_it_acts_as_its_person_are_asked_for_once(there: Connectable) -> None:
    await there.connect(ANA, "octocat")
    there.tracker.log.clear()
    async with await agent_for(there) as agent:
        for _ in range(2):
            assert (await agent.get("/api/tools")).json()["tools"] == []
            assert (await call(agent, "tracker_list_issues", status=404))["error"]
        assert there.tracker.log == []
        [asked] = find(there)
        assert (str(asked.requester), asked.tool_name, asked.arguments["servers"]) == (
            str(ANA), "allow_agent", ["tracker"],
        )  # fmt: skip
        assert await press(there, Actor("http", "chief", "chief"), Verb.APPROVE, asked) is State.PROPOSED
        assert await press(there, ANA, Verb.APPROVE, asked) is State.SUCCEEDED
        read = await call(agent, "tracker_list_issues")
        assert read["end"] == "succeeded"
        assert [who for who, *_ in there.tracker.log] == ["octocat"]


async def test_a_question_that_can_not_be_asked_stops_no_listing_and_is_asked_later(
    there: Connectable,
) -> None:
    await there.connect(ANA, "octocat")
    database, now = there.nod.app.database, there.nod.clock()
    chief = Actor("http", "chief", "chief")
    rule = await database.write(
        rules.set_rule, Rule(0, Subject.POLICY, "*", "allow_agent", Mode.FORBID), chief, now
    )
    async with await agent_for(there) as agent:
        for _ in range(2):
            assert (await agent.get("/api/tools")).json()["tools"] == []
        assert find(there) == []
        await database.write(rules.end_rule, rule.id, chief, now)
        assert (await agent.get("/api/tools")).json()["tools"] == []
    [asked] = find(there)
    assert (asked.tool_name, asked.arguments["servers"]) == ("allow_agent", ["tracker"])


async def test_a_change_as_its_person_needs_their_own_press_although_others_approve(
    there: Connectable,
) -> None:
    await there.connect(ANA, "octocat")
    async with await agent_for(there, servers=("tracker",)) as agent:
        made = await call(agent, "tracker_close_issue", number=1)
        [p] = find(there)
        assert p.connection is not None
        assert p.connection.acts_as == "As Ana at tracker (octocat)"
        await press(there, Actor("http", "chief", "chief"), Verb.APPROVE, p)
        assert writes(there) == []
        await press(there, ANA, Verb.APPROVE, p)
        assert writes(there) == [("octocat", 1)]
        assert (await look(agent, made))["end"] == "succeeded"


async def test_an_agent_of_someone_without_an_account_there_has_no_such_tool(there: Connectable) -> None:
    await there.connect(ANA, "octocat")
    there.tracker.log.clear()
    ben = Actor("slack", "T1/U8", "Ben")
    async with await agent_for(there, ben, servers=("tracker",)) as agent:
        await call(agent, "tracker_list_issues", status=404)
    assert there.tracker.log == []
