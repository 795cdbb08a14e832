"""People act under accounts of their own at a server behind OAuth, while Nod's processes are killed.

The server is not killed: its log has whose account each call was made under, which the check compares with
who asked. Tokens live for a few seconds, all of them end at times, and people disconnect and connect again.
"""

import asyncio
import contextlib
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import httpx
from mcp.server import MCPServer
from sqlalchemy import create_engine, text

from bot.domain.outcomes import REASON_PARAMETER
from bot.store.secrets import new_key
from tests.features.connections.hub import Hub
from tests.features.connections.tracker import CHANGES
from tests.torture.nods import PATIENCE, PAUSE, TOKENS, Nods

if TYPE_CHECKING:
    from tests.torture.people import People

SERVER = "desk"
TOOL = f"{SERVER}_mark_as"
_LIVES_SECONDS = 36  # a token is renewed 30 s before its end
_ENDED = 0.25  # how often all tokens end between card and press
_DISCONNECTED = 0.25  # how often the account is disconnected there
_DIGITS = re.compile(r"<strong>(\d{6})</strong>")


def call_of(words: str) -> tuple[str, dict[str, Any]]:
    """What the model calls where someone asks for a change under their account."""
    return TOOL, {"text": words, REASON_PARAMETER: "They asked."}


class Desk(Hub):
    """The server: it leaves a line for each change, with whose account it was made under."""

    def add_tools(self, made: MCPServer[Any]) -> None:
        @made.tool(annotations=CHANGES)
        def mark_as(text: str) -> str:
            """Leave a mark under your account."""
            return f"{self._note('mark_as', text=text)} marked {text}."


class Accounts:
    """The server, and the sign-ins of people there. ``connected`` counts them."""

    def __init__(self, folder: Path) -> None:
        self.desk = Desk()
        self.desk.lives = _LIVES_SECONDS
        self.connected = 0
        self._config = folder / "mcp.json"
        self._key = new_key()
        self._at_browser = asyncio.Lock()
        self._busy = {who: asyncio.Lock() for who in TOKENS}

    @property
    def environment(self) -> dict[str, str]:
        return {"NOD_MCP_CONFIG": str(self._config), "NOD_SECRET_KEY": self._key}

    async def __aenter__(self) -> Self:
        self._config.write_text(json.dumps({"mcpServers": {SERVER: self.desk.entry}}))
        await self.desk.up()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.desk.down()

    async def live(self, people: "People", name: str, dice: random.Random) -> str:
        """Someone connects their account, asks for a change under it, and says yes in two places."""
        who = dice.choice(list(TOKENS))
        async with self._busy[who]:
            await self._connect(people, who, dice)
            conversation = await people._say(f"account {name}", dice, who=who)
            [ident] = await people._cards(conversation, 1, lacking=TOOL) or [""]
            if not ident:
                return "given up"
            chance = dice.random()
            if chance < _DISCONNECTED:
                return await self._return_to(people, ident, who, dice)
            if chance < _DISCONNECTED + _ENDED:
                self.desk.end_tokens()
            how = await self._approve(people, ident, who, dice)
            if how == "succeeded":
                return "succeeded under an account"
            return f"{await self._retry(people, ident, who, dice)} under an account, tried again"

    async def _return_to(self, people: "People", ident: str, who: str, dice: random.Random) -> str:
        """Disconnect, say yes, and find that nothing ran; connect the same account, and try again."""
        await people._insist(dice, who, "/api/connections", people._deleting)
        how = await self._approve(people, ident, who, dice)
        if how != "failed" or self._count(ident, people._nods):
            raise AssertionError(f"{ident} is {how} without an account, and ran")
        await self._connect(people, who, dice)
        return f"{await self._retry(people, ident, who, dice)} once connected again"

    async def _approve(self, people: "People", ident: str, who: str, dice: random.Random) -> str:
        others = [other for other in TOKENS if other != who]
        return await people._timed(
            ident, *(people._press(each, "approve", ident, dice) for each in (dice.choice(others), who, who))
        )

    async def _retry(self, people: "People", ident: str, who: str, dice: random.Random) -> str:
        await self._connect(people, who, dice)
        await asyncio.gather(*(people._press(who, "retry", ident, dice) for _ in range(2)))
        return await people._end(ident)

    async def _connect(self, people: "People", who: str, dice: random.Random) -> None:
        """Sign in until the account is connected: a process that is killed in between ends a sign-in."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = await people._insist(dice, who, "/api/connections", people._getting)
            mine = [each for each in found["connections"] if each["mine"] and not each["expired"]]
            if mine:
                if [each["name"] for each in mine] != [_user_of(who)]:
                    raise AssertionError(f"{who} has the accounts {mine}")
                return
            with contextlib.suppress(httpx.HTTPError):
                await self._sign_in(people, who, dice)
            await asyncio.sleep(PAUSE)
        raise AssertionError(f"{who} could not connect in {PATIENCE:.0f} s")

    async def _sign_in(self, people: "People", who: str, dice: random.Random) -> None:
        """Go through a sign-in, each step at any process; it is left where one gives no answer."""
        posting = people._posting({}, refusals=True)
        made = await people._insist(dice, who, f"/api/connections/{SERVER}/link", posting)
        if "url" not in made:
            return
        async with httpx.AsyncClient(timeout=30) as browser:
            nod = f"http://127.0.0.1:{people._nods.port(dice)}"
            away = await browser.post(f"{nod}{urlsplit(made['url']).path}", headers={"Origin": nod})
            if not away.is_redirect:
                return
            async with self._at_browser:
                self.desk.user = _user_of(who)
                signed_in = await browser.get(away.headers["location"])
            back = urlsplit(signed_in.headers["location"])
            nod = f"http://127.0.0.1:{people._nods.port(dice)}"
            page = await browser.get(f"{nod}{back.path}?{back.query}")
        if digits := _DIGITS.search(page.text):
            confirming = people._posting({"digits": digits[1]}, refusals=True)
            await people._insist(dice, who, "/api/connections/confirm", confirming)
            self.connected += 1

    def _count(self, ident: str, nods: Nods) -> int:
        """How often the change of a proposal was made at the server."""
        wanted = _list_calls(nods.url)[ident]["text"]
        return sum(given["text"] == wanted for _, _, given in self.desk.log)

    def faults(self, url: str) -> Iterator[str]:
        """Each change was made at most once a run, under the account of who asked, and as its end says."""
        calls = _list_calls(url)
        asked = {call["text"]: call for call in calls.values()}
        made = Counter(given["text"] for _, tool, given in self.desk.log if tool == "mark_as")
        for subject, _, given in self.desk.log:
            call = asked.get(given["text"])
            if call is None:
                yield f"a change was made that no one asked for: {given}"
            elif subject != _user_of(call["requester"].removeprefix("http:")):
                yield f"{call['requester']} asked for {given}, and it was made as {subject}"
        for ident, call in calls.items():
            many = made[call["text"]]
            unknown = call["state"] == "failed" and call["cause"] == "outcome_unknown"
            if many > call["runs"]:
                yield f"{ident} was made {many} times at the server in {call['runs']} runs"
            if call["state"] == "succeeded" and not many:
                yield f"{ident} says that it succeeded, and was not made at the server"
            if many and call["state"] != "succeeded" and not unknown:
                yield f"{ident} was made at the server, and says {call['state']} ({call['cause']})"


def _user_of(who: str) -> str:
    return f"{who}-at-the-desk"


def _list_calls(url: str) -> dict[str, dict[str, Any]]:
    """The calls under accounts, by the id of their proposal."""
    engine = create_engine(url)
    query = f"""
        SELECT id, requester, state, cause, CAST(arguments AS text) AS arguments,
        (SELECT count(*) FROM audit WHERE proposal_id = proposal.id AND verb = 'execute') AS runs
        FROM proposal WHERE tool_name = '{TOOL}'
    """
    try:
        with engine.connect() as connection:
            found = [dict(row) for row in connection.execute(text(query)).mappings()]
    finally:
        engine.dispose()
    return {each["id"]: each | {"text": json.loads(each["arguments"])["text"]} for each in found}
