"""A tracker, a Nod whose people connect accounts there, and browsers that go through the sign-in."""

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from sqlmodel import Session, col, select

from bot.domain.chat import Address, Command, Reply
from bot.domain.people import Actor
from bot.features.connections.port import AccountConnections
from bot.features.connections.tables import ConnectionRow
from bot.store.connections import get_connections
from bot.store.notices import NoticeRow
from bot.store.secrets import new_key
from tests.features.connections.tracker import Tracker
from tests.web.conftest import TOKENS, Serve, Served

ANA = Actor("slack", "T1/U7", "Ana")
BEN = Actor("slack", "T1/U8", "Ben")
KEY = new_key()
_DIGITS = re.compile(r"<strong>(\d{6})</strong>")


@pytest.fixture
async def tracker(tmp_path: Path) -> AsyncIterator[Tracker]:
    served = Tracker()
    await served.up()
    write_config(tmp_path, tracker=entry(served))
    yield served
    await served.down()


def entry(served: Tracker, **more: Any) -> dict[str, Any]:
    """The entry of a tracker, with people's accounts."""
    whoami = {"tool": "get_me", "field": "login", "subject": "id"}
    return {"url": served.url, "identity": "person", "trust": "trusted", "whoami": whoami, **more}


def write_config(folder: Path, **servers: dict[str, Any]) -> None:
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))


@dataclass
class Browser:
    """A person's browser: it keeps cookies, and names its page with each form, as browsers do."""

    nod: str
    client: httpx.AsyncClient

    async def open(self, url: str, **headers: str) -> httpx.Response:
        return await self.client.get(url, headers=headers)

    async def press(self, url: str, **headers: str) -> httpx.Response:
        """Press the button of a page of Nod's."""
        return await self.client.post(url, headers={"Origin": self.nod, **headers})

    async def follow(self, answer: httpx.Response) -> httpx.Response:
        """Go where the answer leads, up to a page."""
        while answer.is_redirect:
            answer = await self.client.get(answer.headers["location"])
        return answer

    async def sign_in(self, link: str) -> httpx.Response:
        """Go through all of it; gives the page at the end."""
        assert (await self.open(link)).status_code == 200
        return await self.follow(await self.press(link))


class Connectable:
    """A running Nod, its tracker, and what people do with both."""

    def __init__(self, nod: Served, tracker: Tracker) -> None:
        self.nod, self.tracker = nod, tracker
        self._browsers: list[httpx.AsyncClient] = []

    def browser(self) -> Browser:
        self._browsers.append(httpx.AsyncClient(timeout=20))
        return Browser(self.nod.url, self._browsers[-1])

    async def close(self) -> None:
        for each in self._browsers:
            await each.aclose()

    async def say(self, words: str, actor: Actor = ANA, at: str = "") -> Reply:
        """Say ``/nod connections …`` in a chat, in private unless ``at`` names one."""
        place = Address("slack", at or f"T1/D{actor.key[-1]}")
        command = Command(actor, "nod", f"connections {words}".strip(), place, private=not at)
        return await self.nod.app.core.assistant.handle(command)

    async def link(self, actor: Actor = ANA, server: str = "tracker") -> str:
        said = (await self.say(f"connect {server}", actor)).text
        found = re.search(r"\((http[^)]+)\)", said)
        assert found, said
        return found[1]

    async def digits(self, actor: Actor = ANA, user: str = "octocat", server: str = "tracker") -> str:
        """Sign in as ``user`` with this person's link; the number that the browser shows."""
        self.tracker.people.user = user
        page = await self.browser().sign_in(await self.link(actor, server))
        found = _DIGITS.search(page.text)
        assert found, page.text
        return found[1]

    async def connect(self, actor: Actor = ANA, user: str = "octocat", server: str = "tracker") -> str:
        """Connect an account; what the person is told."""
        return (await self.say(f"confirm {await self.digits(actor, user, server)}", actor)).text

    def told(self, actor: Actor = ANA) -> list[str]:
        """What waits to be posted to a person in private, with the address of its button, oldest first."""

        def read(session: Session) -> list[str]:
            theirs = select(NoticeRow).where(col(NoticeRow.key) == actor.key).order_by(col(NoticeRow.id))
            return [f"{row.text} {row.link.url}" if row.link else row.text for row in session.exec(theirs)]

        return self.nod.app.database.read_now(read)

    def rows(self) -> list[ConnectionRow]:
        return self.nod.app.database.read_now(lambda session: list(session.exec(select(ConnectionRow))))

    async def sweep(self) -> None:
        """Let time do what is due."""
        for each in self.nod.app.sweeps:
            if each.name == "end_connections":
                await each.run(self.nod.clock())


Connect = Callable[..., AbstractAsyncContextManager[Served]]


@pytest.fixture
def start(serve: Serve) -> Connect:
    """Start a Nod with people's accounts: ``async with start() as nod``."""

    def begin(**more: Any) -> AbstractAsyncContextManager[Served]:
        given = {"NOD_MCP_CONFIG": "mcp.json", "NOD_SECRET_KEY": (KEY,), "NOD_HTTP_TOKENS": TOKENS}
        return serve(**{**given, "patience": 120.0, **more})

    return begin


@pytest.fixture
async def there(start: Connect, tracker: Tracker) -> AsyncIterator[Connectable]:
    async with start() as nod:
        made = Connectable(nod, tracker)
        yield made
        await made.close()


def query_of(url: str) -> str:
    return urlsplit(url).query


def port_of(there: Connectable) -> AccountConnections:
    """The port of the running Nod."""
    port = get_connections(there.nod.app.database)
    assert isinstance(port, AccountConnections)
    return port
