"""An agent's token opens a few addresses and nothing else, and only while its person lets it."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from bot.domain.people import Actor
from bot.domain.rule_values import Mode, Subject
from bot.domain.rules import Rule
from bot.store import rules, tokens
from tests.features.agents.kit import PERSON, SETTINGS, agent_of, call, make_agent, press, waiting
from tests.web.conftest import BEN, CHIEF, Json, Serve, Served

OPEN = {
    ("GET", "/api/tools"),
    ("POST", "/api/tools/{name}/calls"),
    ("GET", "/api/calls/{call_id}"),
    ("POST", "/api/calls/{call_id}/cancel"),
    ("POST", "/api/approvals"),
    ("POST", "/api/permissions"),
    ("GET", "/api/approvals/{proposal_id}"),
}
VERBS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
MORE = ("/", "/metrics", "/docs", "/openapi.json", "/static/console.js", "/oauth/callback", "/agui", "/mcp/x")


def addresses(document: Json) -> Iterator[tuple[str, str]]:
    """Every verb at every path of the document, and at some that it does not have."""
    for path in (*document["paths"], *MORE):
        yield from ((verb, path) for verb in VERBS)
    yield from ((verb, "/mcp") for verb in VERBS if verb not in ("GET", "POST", "DELETE"))


async def test_every_other_path_and_verb_is_refused(serve: Serve):
    async with serve(patience=120, **SETTINGS) as nod, agent_of(nod) as agent:
        document = (await nod.client.get("/openapi.json")).json()
        reached = set()
        for verb, path in addresses(document):
            target = path.replace("{verb}", "approve").replace("{", "").replace("}", "")
            answer = await agent.request(verb, target)
            if answer.status_code != 403:
                reached.add((verb, path))
        assert reached == OPEN
        verbs = document["paths"]["/api/proposals/{proposal_id}/{verb}"]["post"]["parameters"]
        [names] = [each["schema"] for each in verbs if each["name"] == "verb"]
        known = document["components"]["schemas"][names["$ref"].rpartition("/")[2]]["enum"]
        for verb in known:
            answer = await agent.post(f"/api/proposals/0123456789abcdef/{verb}", json={})
            assert answer.status_code == (404 if verb == "cancel" else 403), verb


async def test_an_agent_withdraws_what_it_asked_for_and_nothing_else(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent, agent_of(nod, "other") as other:
        asked = (await agent.post("/api/approvals", json={"summary": "Deploy"})).json()["proposal"]
        assert asked["requester"] == "claude-code, for ana"
        of_ana = (await nod.client.post("/api/approvals", json={"summary": "Mine"})).json()["proposal"]
        for client, ident in ((other, asked["id"]), (agent, of_ana["id"])):
            assert (await client.post(f"/api/proposals/{ident}/cancel", json={})).status_code == 404
            assert (await client.get(f"/api/approvals/{ident}")).status_code == 404
        done = await agent.post(f"/api/proposals/{asked['id']}/cancel", json={})
        assert done.status_code == 200, done.text
        assert (await agent.get(f"/api/approvals/{asked['id']}")).json()["proposal"]["end"] == "cancelled"
        assert (await nod.proposal(of_ana["id"]))["state"] == "proposed"


async def test_a_token_lists_and_calls_only_the_tools_it_was_made_for(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod, tools=("re*",), shown_tools=("read",)) as agent:
        listed = (await agent.get("/api/tools")).json()["tools"]
        assert [each["name"] for each in listed] == ["read"]
        refused = await call(agent, "keep", status=404, text="milk")
        assert "no tool called 'keep'" in refused["error"]
        assert await waiting(nod) == []


async def test_no_tool_of_nods_own_life_is_given_to_an_agent(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        listed = {each["name"] for each in (await agent.get("/api/tools")).json()["tools"]}
        assert {each for each in listed if not each.endswith(("issue", "issues", "workload"))} == {
            "keep",
            "read",
        }
        for name in (
            "my_decisions",
            "proposals_waiting",
            "list_schedules",
            "allow_agent",
            "request_approval",
            "permit_tool_use",
            "ask",
            "plan_submit",
            "remember",
        ):
            assert name not in listed
            await call(agent, name, status=404)


async def test_a_forbidden_tool_is_neither_listed_nor_called(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        rule = Rule(0, Subject.POLICY, "*", "keep", Mode.FORBID)
        await nod.app.database.write(rules.set_rule, rule, Actor("http", "chief"), nod.clock())
        assert "keep" not in {each["name"] for each in (await agent.get("/api/tools")).json()["tools"]}
        await call(agent, "keep", status=404, text="milk")


async def test_a_token_opens_nothing_before_its_person_said_yes(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod, agreed=False) as agent:
        answer = await agent.get("/api/tools")
        assert (answer.status_code, "has not allowed this token yet" in answer.json()["error"]) == (403, True)
        await call(agent, "read", status=403)


async def test_a_token_ends_at_its_time_and_when_it_is_ended(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent, agent_of(nod, "second") as second:
        listed = (await nod.client.get("/api/agents")).json()["agents"]
        [label] = [each["label"] for each in listed if each["name"] == "claude-code"]
        assert (await nod.client.delete(f"/api/agents/{label}")).status_code == 200
        assert (await agent.get("/api/tools")).status_code == 401
        assert (await second.get("/api/tools")).status_code == 200
        nod.clock.forward(timedelta(days=91))
        answer = await second.get("/api/tools")
        assert (answer.status_code, "has ended" in answer.json()["error"]) == (403, True)


async def test_what_waits_is_withdrawn_when_its_token_ends(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent, agent_of(nod, "second") as second:
        await call(agent, "keep", text="milk")
        await call(second, "keep", text="tea")
        listed = (await nod.client.get("/api/agents")).json()["agents"]
        [label] = [each["label"] for each in listed if each["name"] == "claude-code"]
        await nod.client.delete(f"/api/agents/{label}")
        [left] = await waiting(nod)
        assert left["requester"] == "second, for ana"
        nod.clock.forward(timedelta(days=91))
        for sweep in nod.app.sweeps:
            if sweep.name == "end_agents":
                await sweep.run(nod.clock())
        found = (await nod.client.get("/api/proposals")).json()["proposals"]
        assert {each["outcome"] for each in found} == {"Withdrawn by Nod: its token has ended."}
        assert nod.notes.kept == []


async def test_a_token_ends_with_its_persons_right_to_come_in(serve: Serve):
    async with serve(**SETTINGS) as nod:
        gone = Actor("http", "gone", "gone")
        async with agent_of(nod, person=gone) as agent:
            answer = await agent.get("/api/tools")
        assert (answer.status_code, "may not come in any longer" in answer.json()["error"]) == (403, True)


async def test_the_token_of_someone_whom_a_proxy_signs_in_works(serve: Serve):
    """A proxy alone knows who may come in: no list of Nod's names them."""
    proxy = {"NOD_HTTP_TRUSTED_PROXIES": "127.0.0.1", "NOD_HTTP_USER_HEADER": "X-Forwarded-Email"}
    kim = Actor("http", "sso.kim@example.com", "kim@example.com")
    async with serve(**proxy) as nod:
        named = {"X-Forwarded-Email": "kim@example.com"}
        assert (await nod.client.get("/api/me", headers=named)).json()["account"] == str(kim)
        async with agent_of(nod, person=kim) as agent:
            assert (await agent.get("/api/tools")).status_code == 200
        by_id = Actor("http", "sso-id.4711", "Kim")  # whom no proxy can name
        async with agent_of(nod, "other", person=by_id) as agent:
            assert (await agent.get("/api/tools")).status_code == 403


async def test_people_see_and_end_their_own_agents_and_admins_everyones(serve: Serve):
    async with serve(**SETTINGS) as nod:
        await make_agent(nod)
        async with nod.caller(BEN) as ben, nod.caller(CHIEF) as chief:
            assert (await ben.get("/api/agents")).json()["agents"] == []
            [seen] = (await chief.get("/api/agents")).json()["agents"]
            assert (seen["name"], seen["person"], seen["mine"]) == ("claude-code", "http:ana", False)
            assert "hash" not in seen
            assert (await ben.delete(f"/api/agents/{seen['label']}")).status_code == 404
            assert (await chief.delete(f"/api/agents/{seen['label']}")).status_code == 200


async def test_a_person_makes_a_token_for_themselves_and_sees_its_tools_first(serve: Serve):
    async with serve(**SETTINGS) as nod:
        body = {"name": "cursor", "tools": ["ke*"], "dry_run": True}
        tried = (await nod.client.post("/api/agents", json=body)).json()
        assert (tried["tools"], tried["token"]) == (["keep"], None)
        made = (await nod.client.post("/api/agents", json=body | {"dry_run": False})).json()
        async with nod.caller(made["token"]) as agent:
            assert [t["name"] for t in (await agent.get("/api/tools")).json()["tools"]] == ["keep"]
        async with nod.caller(BEN) as ben:  # rules name agents by their name
            taken = await ben.post("/api/agents", json=body | {"dry_run": False})
        assert (taken.status_code, "another one's token" in taken.json()["error"]) == (422, True)


async def test_tokens_of_before_are_as_they_were(serve: Serve):
    async with serve(**SETTINGS) as nod:
        token = await nod.app.database.write(tokens.issue_token, "deploy", PERSON, nod.clock())
        assert token.startswith("nod_")
        async with nod.caller(token) as script:
            assert (await script.get("/api/me")).json()["account"] == "http:deploy"
            await call(script, "read", status=403)


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer "])
async def test_a_token_is_an_agents_however_it_is_sent(serve: Serve, scheme: str):
    async with serve(**SETTINGS) as nod:
        token = await make_agent(nod)
        for given in (f"{scheme} {token}", f"{scheme}  {token}"):
            async with nod.caller(Authorization=given) as agent:
                assert (await agent.get("/healthz")).status_code == 403
                assert (await agent.get("/api/me")).status_code == 403
        async with nod.caller(f"nod_{token.removeprefix('noda_')}") as forged:
            assert (await forged.get("/api/me")).status_code == 401


async def consent(nod: Served) -> Json:
    [card] = await waiting(nod, SETTINGS["token"])
    return card


async def test_the_last_use_is_told(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        await call(agent, "read")
        [seen] = (await nod.client.get("/api/agents")).json()["agents"]
        assert seen["last_used_at"] == nod.clock().isoformat()


async def test_new_tools_are_told_before_they_are_offered(serve: Serve):
    telegram = Actor("telegram", "991", "Ana")
    async with serve(**SETTINGS) as nod, agent_of(nod, person=telegram, shown_tools=("read",)) as agent:
        listed = (await agent.get("/api/tools")).json()["tools"]
        assert {"keep", "read"} <= {each["name"] for each in listed}
        told = await nod.app.database.read(lambda session: session.connection().exec_driver_sql(
            "SELECT channel, key, text FROM notice").all())  # fmt: skip
        [(channel, key, text)] = told
        assert (channel, key) == ("telegram", "991")
        assert "keep" in text
        assert "read," not in text
        await agent.get("/api/tools")
        again = await nod.app.database.read(lambda session: session.connection().exec_driver_sql(
            "SELECT count(*) FROM notice").scalar())  # fmt: skip
        assert again == 1


async def test_an_answer_of_the_person_is_theirs_alone(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        await call(agent, "keep", text="milk")
        shown = await press(nod, "approve", token=CHIEF)
        assert shown["decided_by"] == "chief"
