"""Messages between the processes on one PostgreSQL, sent by NOTIFY.

Messages may be lost, as while a connection is made again: the rows have all facts. A message is cut into
pieces that NOTIFY takes, and put together where it arrives.
"""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from sqlalchemy.engine import make_url

from bot.store.engine import session_options
from bot.store.locks.process_lock import AT_WORK, CHANNEL
from bot.telemetry.logs import logger

log = logger(__name__)

_PIECE = 7000  # bytes; NOTIFY takes fewer than 8,000
_PAUSE = 1.0  # seconds between two tries to connect

HERE = "here"
"""The kind of message that a process sends when it begins to listen, also to itself after a break."""

MessageHandler = Callable[[Any], None]


def conninfo(url: str, *, hasty: bool = False) -> str:
    """Return psycopg's connection string for a database that SQLAlchemy knows by this URL.

    ``hasty``: no commit waits for the disk, for rows that may be lost with the server.
    """
    _, parts = make_url(url).get_dialect()().create_connect_args(make_url(url))
    told = session_options(url, *(["-csynchronous_commit=off"] if hasty else []))
    return make_conninfo(**{**parts, **told})


class Wire:
    """Two connections to PostgreSQL, one for LISTEN and one for NOTIFY; both reconnect when they break."""

    def __init__(self, url: str, process: str) -> None:
        self._conninfo = conninfo(url, hasty=True)
        self.process = process
        self._channel = ""
        self._handlers: dict[str, MessageHandler] = {HERE: lambda _: None}  # by kind
        self._rang = asyncio.Event()
        self._numbers = itertools.count()
        self._pieces: dict[str, list[str]] = {}  # the pieces of messages that are not complete, by sender
        self._listening: psycopg.AsyncConnection[Any] | None = None
        self._sending: psycopg.AsyncConnection[Any] | None = None
        self._unsent: list[str] = []
        self._more = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.others = True  # there may be other processes
        self.heard_of_others = 0  # the number of messages from other processes

    def on(self, kind: str, handler: MessageHandler) -> None:
        """Call the handler with each message of a kind from another process."""
        self._handlers[kind] = handler

    async def open(self) -> None:
        """Connect and listen. Raises psycopg.Error."""
        self._listening = await self._connect()
        both = self._listen(self._listening), self._send()
        self._tasks = [asyncio.create_task(each, name="wire") for each in both]
        self.broadcast(HERE, None)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._unsent:
            await self._send_all()
        for connection in (self._listening, self._sending):
            if connection is not None:
                await connection.close()

    def reckon(self, *, others: bool, heard: int) -> None:
        """Set ``others`` from the rows, unless a message of another process came since they were read.

        ``heard`` is the number of such messages at that time.
        """
        if others or self.heard_of_others == heard:
            self.others = others

    async def rings(self) -> AsyncIterator[None]:
        """Yield each time another process has signalled, or may have (``locks/process_lock.py``)."""
        while True:
            await self._rang.wait()
            self._rang.clear()
            yield

    def notify(self) -> None:
        """Wake this process, as a message of another would."""
        self._rang.set()

    def broadcast(self, kind: str, body: Any) -> None:
        """Send a message to all other processes soon, in the order of the calls. It may be lost."""
        if self.others:
            self._unsent += self._cut(kind, body)
            self._more.set()

    async def _send(self) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            await self._send_all()

    async def _send_all(self) -> None:
        pieces, self._unsent = self._unsent, []
        try:
            if self._sending is None or self._sending.closed:
                self._sending = await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)
            await self._sending.execute(
                "SELECT pg_notify(%s, piece) FROM unnest(%s::text[]) AS piece", (self._channel, pieces)
            )
        except psycopg.Error as error:
            log.info("other processes were not told", why=str(error).strip())
            await asyncio.sleep(_PAUSE)

    def _cut(self, kind: str, body: Any) -> list[str]:
        """Cut a message into pieces ``sender number left text``, whose ``left`` counts down to 0."""
        text = json.dumps([kind, body])  # the text is ASCII, so its characters are bytes
        texts = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
        number = next(self._numbers)
        return [f"{self.process} {number} {len(texts) - 1 - at} {piece}" for at, piece in enumerate(texts)]

    async def _connect(self) -> psycopg.AsyncConnection[Any]:
        connection = await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)
        try:
            found = await connection.execute(f"SELECT {CHANNEL}, pg_advisory_lock_shared({AT_WORK})")
            self._channel = str((await found.fetchone() or ("",))[0])
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        except BaseException:  # also where the start is cancelled
            await connection.close()
            raise
        return connection

    async def _listen(self, connection: psycopg.AsyncConnection[Any]) -> None:
        while True:
            try:
                async for said in connection.notifies():
                    self._take(said.payload)
            except psycopg.Error as error:
                log.warning("the connection to other processes is lost", why=str(error).strip())
            with contextlib.suppress(psycopg.Error):
                await connection.close()
            while connection.closed:
                await asyncio.sleep(_PAUSE)
                with contextlib.suppress(psycopg.Error):
                    self._listening = connection = await self._connect()
            log.info("the connection to other processes is back")
            self.broadcast(HERE, None)
            self._handlers[HERE](None)  # processes that listened again earlier were not heard
            self._rang.set()

    def _take(self, payload: str) -> None:
        if not payload:
            self._rang.set()
        elif not payload.startswith(f"{self.process} "):
            self.others = True
            self.heard_of_others += 1
            sender, number, left, text = payload.split(" ", 3)
            pieces = self._pieces.setdefault(sender, [])
            pieces.append(text)
            if left == "0":
                del self._pieces[sender]
                self._handle("".join(pieces), number)

    def _handle(self, text: str, number: str) -> None:
        try:
            kind, body = json.loads(text)
            handler = self._handlers[kind]
        except (ValueError, KeyError):  # the beginning was lost, or a newer release sent the message
            log.debug("another process was not understood", number=number)
            return
        handler(body)
