"""Messages between the processes on one PostgreSQL, sent by NOTIFY.

A message has a kind and a body of JSON; an empty notification is only a signal that rows have changed.
Messages may be lost, as while a connection is made again: all facts are in the rows. A message is cut into
pieces that are short enough for NOTIFY, and put together where it arrives. ``bot/jobs/database_cluster.py``
opens the `Wire` of a process.
"""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from sqlalchemy.engine import make_url

from bot.store.engine import make_connect_arguments
from bot.store.locks.process_lock import CHANNEL_SQL, WORK_LOCK_SQL
from bot.telemetry.logs import logger

log = logger(__name__)

_PIECE_BYTES = 7000  # NOTIFY takes fewer than 8,000
_RETRY_SECONDS = 1.0  # between two tries to connect

LISTENING = "here"  # the word that earlier releases send
"""The kind of message that a process sends when it begins to listen."""

MessageHandler = Callable[[Any], None]
"""A function that is called with the body of a message."""


def build_conninfo(url: str, *, without_sync: bool = False) -> str:
    """Return psycopg's connection string for a database that SQLAlchemy knows by this URL.

    ``without_sync``: no commit waits for the disk, where losing the last rows with the server does no harm.
    """
    parsed = make_url(url)
    dialect = parsed.get_dialect()()
    _, parameters = dialect.create_connect_args(parsed)
    further_options = ["-csynchronous_commit=off"] if without_sync else []
    return make_conninfo(**{**parameters, **make_connect_arguments(url, *further_options)})


@dataclass(slots=True)
class _IncompleteMessage:
    """A message of which some pieces have come."""

    number: str
    pieces: list[str] = field(default_factory=list)


class Wire:
    """Two connections to PostgreSQL, one for LISTEN and one for NOTIFY; both reconnect when they break."""

    def __init__(self, url: str, process: str) -> None:
        self._conninfo = build_conninfo(url, without_sync=True)
        self.process = process
        self._channel = ""
        self._handlers: dict[str, MessageHandler] = {LISTENING: lambda _: None}  # by kind
        self._was_signalled = asyncio.Event()
        self._numbers = itertools.count()  # of the messages that this process sends
        self._incomplete: dict[str, _IncompleteMessage] = {}  # by sender
        self._listening: psycopg.AsyncConnection[Any] | None = None
        self._sending: psycopg.AsyncConnection[Any] | None = None
        self._unsent_pieces: list[str] = []
        self._has_unsent = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.has_others = True  # False: no other process is registered, so nothing is sent
        self.pieces_received = 0  # the number of pieces that have come from other processes so far

    def on(self, kind: str, handler: MessageHandler) -> None:
        """Call the handler with each message of a kind from another process."""
        self._handlers[kind] = handler

    async def open(self) -> None:
        """Connect and listen. Raises psycopg.Error."""
        self._listening = await self._connect()
        self._tasks = [
            asyncio.create_task(self._listen(self._listening), name="wire"),
            asyncio.create_task(self._send(), name="wire"),
        ]
        self.broadcast(LISTENING, None)

    async def close(self) -> None:
        """Send what is not sent yet, and close both connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._unsent_pieces:
            await self._send_all()
        for connection in (self._listening, self._sending):
            if connection is not None:
                await connection.close()

    def update_others(self, *, others: bool, pieces_before: int) -> None:
        """Store whether other processes were registered when the rows were read.

        ``pieces_before``: the value of ``pieces_received`` just before that. If a piece has come since, there
        is another process by now, even if the rows had none.
        """
        if others or self.pieces_received == pieces_before:
            self.has_others = others

    async def wait_for_signals(self) -> AsyncIterator[None]:
        """Yield, without end, each time another process has signalled that rows changed, or may have."""
        while True:
            await self._was_signalled.wait()
            self._was_signalled.clear()
            yield

    def signal_self(self) -> None:
        """Signal this process itself, as another process would."""
        self._was_signalled.set()

    def broadcast(self, kind: str, body: Any) -> None:
        """Send a message to all other processes soon, in the order of the calls. It may be lost."""
        if self.has_others:
            self._unsent_pieces += self._cut(kind, body)
            self._has_unsent.set()

    async def _send(self) -> None:
        """Send pieces as they come, without end."""
        while True:
            await self._has_unsent.wait()
            self._has_unsent.clear()
            await self._send_all()

    async def _send_all(self) -> None:
        """Send the pieces that are not sent yet; where that fails, they are lost."""
        pieces = self._unsent_pieces
        self._unsent_pieces = []
        try:
            if self._sending is None or self._sending.closed:
                self._sending = await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)
            await self._sending.execute(
                "SELECT pg_notify(%s, piece) FROM unnest(%s::text[]) AS piece", (self._channel, pieces)
            )
        except psycopg.Error as error:
            log.info("other processes were not told", why=str(error).strip())
            await asyncio.sleep(_RETRY_SECONDS)

    def _cut(self, kind: str, body: Any) -> list[str]:
        """Cut a message into pieces ``SENDER NUMBER REMAINING TEXT``.

        REMAINING, the number of pieces that follow, counts down to 0 within the message of this NUMBER.
        """
        text = json.dumps([kind, body])  # the text is ASCII, so its characters are bytes
        texts = [text[at : at + _PIECE_BYTES] for at in range(0, len(text), _PIECE_BYTES)]
        number = next(self._numbers)
        last = len(texts) - 1
        return [f"{self.process} {number} {last - index} {piece}" for index, piece in enumerate(texts)]

    async def _connect(self) -> psycopg.AsyncConnection[Any]:
        """Return a connection that listens and shares the advisory lock of processes at work."""
        connection = await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)
        try:
            found = await connection.execute(
                f"SELECT {CHANNEL_SQL}, pg_advisory_lock_shared({WORK_LOCK_SQL})"
            )
            self._channel = str((await found.fetchone() or ("",))[0])
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        except BaseException:  # also where the start is cancelled
            await connection.close()
            raise
        return connection

    async def _listen(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Receive notifications without end, on a new connection after each that is lost."""
        while True:
            try:
                async for notification in connection.notifies():
                    self._receive(notification.payload)
            except psycopg.Error as error:
                log.warning("the connection to other processes is lost", why=str(error).strip())
            with contextlib.suppress(psycopg.Error):
                await connection.close()
            while connection.closed:
                await asyncio.sleep(_RETRY_SECONDS)
                with contextlib.suppress(psycopg.Error):
                    self._listening = connection = await self._connect()
            log.info("the connection to other processes is back")
            self.broadcast(LISTENING, None)
            self._handlers[LISTENING](None)  # others may have begun to listen while this process did not
            self._was_signalled.set()

    def _receive(self, payload: str) -> None:
        """Receive a notification: a signal, or a piece of a message as `_cut` makes it."""
        if not payload:
            self._was_signalled.set()
            return
        try:
            sender, number, remaining, text = payload.split(" ", 3)
        except ValueError:
            log.debug("a notification was not understood", payload=payload)
            return
        if sender == self.process:
            return
        self.has_others = True
        self.pieces_received += 1
        message = self._incomplete.get(sender)
        if message is None or message.number != number:  # the last piece of an earlier message may be lost
            message = self._incomplete[sender] = _IncompleteMessage(number)
        message.pieces.append(text)
        if remaining == "0":
            del self._incomplete[sender]
            self._handle("".join(message.pieces), number)

    def _handle(self, text: str, number: str) -> None:
        """Call the handler of a message. A fault in one message must not end the listening."""
        try:
            kind, body = json.loads(text)
            handler = self._handlers[kind]
        except (ValueError, TypeError, KeyError):  # the beginning was lost, or a newer release sent it
            log.debug("another process was not understood", number=number)
            return
        try:
            handler(body)
        except Exception as error:
            log.error("a message of another process could not be handled", kind=kind, exc_info=error)
