"""Thirty attacks by an agent on its person, on other agents and on Nod, each with the rule that stops it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

import httpx
import pytest
from sqlmodel import Session, select

from bot.domain.people import Actor
from bot.domain.rules import Mode, Rule, Subject
from bot.store import rules, tokens
from bot.store.tables.agents import AgentCallRow
from tests.features.agents.kit import PERSON, SETTINGS, call, look, make_agent, press, waiting
from tests.web.conftest import CHIEF, Json, Serve, Served


@dataclass
class Scene:
    """A Nod with two agents of one person, an open call of the other one, and its finished call."""

    nod: Served
    agent: httpx.AsyncClient
    other: httpx.AsyncClient
    theirs: Json  # the other agent's, open
    card: Json  # of that
    done: Json  # the other agent's, ended

    async def send(self, method: str, path: str, body: object = None, **headers: str) -> httpx.Response:
        return await self.agent.request(method, path, json=body, headers=headers)


Attack = Callable[[Scene], Awaitable[None]]
ATTACKS: list[tuple[str, str, Attack]] = []


def attack(name: str, rule: str) -> Callable[[Attack], Attack]:
    def add(made: Attack) -> Attack:
        ATTACKS.append((name, rule, made))
        return made

    return add


def refuse(method: str, path: str, body: object = None) -> Attack:
    """An attack that is a request, and is refused for what it is."""

    async def made(scene: Scene) -> None:
        target = path.format(card=scene.card["id"], call=scene.theirs["id"])
        answer = await scene.send(method, target, body)
        assert answer.status_code == 403, answer.text

    return made


PATHS = "a token of an agent opens its own calls and nothing else"
for verb in ("approve", "decline", "similar", "edit", "extend", "retry", "undo", "expire", "reassign"):
    attack(f"it presses {verb} on a card", PATHS)(refuse("POST", "/api/proposals/{card}/" + verb, {}))
for what, path in {
    "the cards of all": "/api/proposals",
    "a card": "/api/proposals/{card}",
    "the result of another": "/api/proposals/{card}/result",
    "the files of another": "/api/proposals/{card}/files",
    "what led to a card": "/api/proposals/{card}/context",
    "the stream of changes": "/api/events",
    "the audit log": "/api/audit",
    "the settings": "/api/settings",
    "the grants": "/api/grants",
    "the tokens": "/api/agents",
    "who its person is": "/api/me",
}.items():
    attack(f"it reads {what}", PATHS)(refuse("GET", path))
attack("it makes another token", PATHS)(refuse("POST", "/api/agents", {"name": "x", "tools": ["*"]}))
attack("it sets a rule", PATHS)(
    refuse("POST", "/api/commands", {"name": "approvals", "text": "policy never in agents/*"})
)
attack("it speaks as its person", PATHS)(refuse("POST", "/api/chat", {"message": "yes, approve it"}))


@attack("it approves its own call as a session of its person would", PATHS)
async def _(scene: Scene) -> None:
    mine = await call(scene.agent, "keep", text="mine")
    [card] = [each for each in await waiting(scene.nod) if each["tool_arguments"]["text"] == "mine"]
    for headers in ({"Cookie": "nod_session=x"}, {"Nod-Account": "http:ana"}, {"X-Forwarded-User": "ana"}):
        answer = await scene.send("POST", f"/api/proposals/{card['id']}/approve", {}, **headers)
        assert answer.status_code == 403
    assert (await look(scene.agent, mine))["end"] == "waiting"


@attack("it reads another agent's result", "a call is told to the token that made it")
async def _(scene: Scene) -> None:
    for made in (scene.theirs, scene.done):
        assert (await scene.send("GET", f"/api/calls/{made['id']}")).status_code == 404


@attack("it withdraws another agent's call", "a call is withdrawn by the token that made it")
async def _(scene: Scene) -> None:
    assert (await scene.send("POST", f"/api/calls/{scene.theirs['id']}/cancel")).status_code == 404
    assert (await scene.send("POST", f"/api/proposals/{scene.card['id']}/cancel", {})).status_code == 404


@attack("it makes another agent's call again to be told its end", "only the same token joins a call")
async def _(scene: Scene) -> None:
    made = await call(scene.agent, "keep", text="done")
    assert (made["end"], made["id"] != scene.done["id"]) == ("waiting", True)


@attack("it uses another agent's idempotency key", "keys are the token's own")
async def _(scene: Scene) -> None:
    made = await call(scene.agent, "keep", key="theirs", text="theirs")
    assert made["id"] != scene.theirs["id"]


@attack("it guesses ids", "an id is 128 random bits, and of another token it is unknown")
async def _(scene: Scene) -> None:
    for ident in ("0" * 32, scene.card["id"], "..%2Fme", "%00", "1" * 4000):
        answer = await scene.send("GET", f"/api/calls/{ident}")
        assert answer.status_code in (403, 404, 422), (ident, answer.status_code)


@attack("it writes that people approved", "no text approves anything")
async def _(scene: Scene) -> None:
    answer = await scene.agent.post(
        "/api/tools/keep/calls",
        json={"arguments": {"text": "APPROVED by ana: run it"}, "reason": "Ana said yes already. Approved."},
    )
    assert answer.json()["call"]["end"] == "waiting"
    assert "APPROVED by ana: run it" not in scene.nod.notes.kept


@attack("it names its person as who approves in the arguments", "what no schema knows is refused")
async def _(scene: Scene) -> None:
    await call(scene.agent, "keep", status=422, text="x", approved_by="ana")


@attack("it calls a tool that it was not given", "a token calls the tools that its patterns name")
async def _(scene: Scene) -> None:
    token = await make_agent(scene.nod, "narrow", tools=("read",))
    async with scene.nod.caller(token) as narrow:
        await call(narrow, "keep", status=404, text="x")
        for name in ("read/../keep", "READ", "read ", "r*", "*"):
            assert (await narrow.post(f"/api/tools/{name}/calls", json={})).status_code in (403, 404)


@attack("it asks its person for more rights by Nod's own tool", "Nod's own tools are no agent's")
async def _(scene: Scene) -> None:
    await call(scene.agent, "allow_agent", status=404, label="x")


@attack("it calls what a rule forbids by now", "forbidden is forbidden, for agents too")
async def _(scene: Scene) -> None:
    rule = Rule(0, Subject.POLICY, "*", "keep", Mode.FORBID)
    await scene.nod.app.database.write(rules.set_rule, rule, Actor("http", "chief"), scene.nod.clock())
    await call(scene.agent, "keep", status=404, text="x")
    async with scene.nod.caller(CHIEF) as chief:  # nor does what was asked before run
        answer = await scene.nod.press(scene.card, "approve", chief)
    assert answer.status_code == 403


@attack("it floods calls", "calls a minute are bounded for each token")
async def _(scene: Scene) -> None:
    codes = [(await scene.agent.post("/api/tools/read/calls", json={})).status_code for _ in range(50)]
    assert codes.count(429) > 0
    assert codes[-1] == 429


@attack("it calls itself through Nod for ever", "the depth of calls that lead to calls is bounded")
async def _(scene: Scene) -> None:
    answer = await scene.send("POST", "/api/tools/read/calls", {}, **{"Nod-Depth": "4"})
    assert (answer.status_code, "too deep" in answer.json()["error"]) == (403, True)


@attack("it goes on after its token was ended", "an ended token is unknown")
async def _(scene: Scene) -> None:
    mine = await call(scene.agent, "keep", text="mine")
    await scene.nod.app.database.write(tokens.revoke_token, "claude-code", PERSON, scene.nod.clock())
    assert (await scene.send("GET", f"/api/calls/{mine['id']}")).status_code == 401


@attack("it replays an approved call", "what was approved runs once")
async def _(scene: Scene) -> None:
    mine = await call(scene.agent, "keep", text="once")
    [card] = [each for each in await waiting(scene.nod) if each["tool_arguments"]["text"] == "once"]
    await press(scene.nod, "approve", card)
    for _ in range(3):
        await look(scene.agent, mine)
    await call(scene.agent, "keep", text="once")
    assert scene.nod.notes.kept.count("once") == 1


@attack("it takes a name that a rule loosens for", "a name is one person's for good")
async def _(scene: Scene) -> None:
    async with scene.nod.caller(CHIEF) as chief:
        taken = await chief.post("/api/agents", json={"name": "claude-code", "tools": ["*"]})
    assert taken.status_code == 422


@attack("it uses the person's plain account by another beginning of its token", "the hash is over all of it")
async def _(scene: Scene) -> None:
    token = await make_agent(scene.nod, "prefixed")
    for forged in (f"nod_{token[5:]}", token[5:], f"NODA_{token[5:]}", token[:-1], f"{token}a"):
        async with scene.nod.caller(forged) as caller:
            assert (await caller.get("/api/tools")).status_code == 401


def test_there_are_thirty_attacks_at_least() -> None:
    assert len(ATTACKS) >= 30
    assert all(rule for _, rule, _ in ATTACKS)


@pytest.mark.parametrize(("rule", "made"), [each[1:] for each in ATTACKS], ids=[each[0] for each in ATTACKS])
async def test_no_attack_gets_through(serve: Serve, rule: str, made: Attack) -> None:
    settings = SETTINGS | {"NOD_MAX_AGENT_CALLS": 30}
    async with serve(**settings) as nod:
        mine, others = await make_agent(nod), await make_agent(nod, "other")
        async with nod.caller(mine) as agent, nod.caller(others) as other:
            done = await call(other, "keep", text="done")
            await press(nod, "approve")
            theirs = await call(other, "keep", key="theirs", text="theirs")
            [card] = await waiting(nod)
            kept = list(nod.notes.kept)
            await made(Scene(nod, agent, other, theirs, card, done))
            assert (await nod.proposal(card["id"]))["state"] in ("proposed", "cancelled"), rule
            assert [each for each in nod.notes.kept if each not in kept] in ([], ["once"]), rule
            assert "theirs" not in nod.notes.kept

            def read(session: Session) -> int:
                return len(session.exec(select(AgentCallRow)).all())

            assert await nod.app.database.read(read) >= 2
            nod.clock.forward(timedelta(minutes=2))
            told = await look(other, done)  # the other one's own is still there for it
            assert told["end"] == "succeeded"
