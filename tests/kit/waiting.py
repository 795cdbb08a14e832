"""Places where work stops until a test lets it continue."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable

from sqlmodel import Session

from bot.store.database import Database
from bot.store.engine import POSTGRES_WRITERS


async def until(true: Callable[[], bool]) -> None:
    """Let everything else run until it is so; a test's own time limit ends what never is."""
    async with asyncio.timeout(30):
        while not true():  # noqa: ASYNC110 - what is waited for rings no bell
            await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def held(database: Database) -> AsyncIterator[Callable[[], None]]:
    """Nothing is written until the end, or what is called here lets writes be done one after the other."""
    many = 1 if database.dialect == "sqlite" else POSTGRES_WRITERS
    inside, one, all_ = threading.Barrier(many + 1), threading.Event(), threading.Event()

    def hold(_: Session, until: threading.Event) -> None:
        inside.wait(30)
        assert until.wait(30)

    holds = [asyncio.create_task(database.write(hold, one if not n else all_)) for n in range(many)]
    await asyncio.to_thread(inside.wait, 30)
    try:
        yield one.set
    finally:
        one.set()
        all_.set()
        await asyncio.gather(*holds, return_exceptions=True)  # PostgreSQL ends what is idle for long
