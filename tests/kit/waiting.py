"""Places where work stops until a test lets it continue."""

import asyncio
from collections.abc import Callable


class Hold:
    """A place where work stops: `reached` says that it did, `go` lets it on."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.go = asyncio.Event()

    async def wait(self) -> None:
        self.reached.set()
        await self.go.wait()


async def until(true: Callable[[], bool]) -> None:
    """Let everything else run until it is so; a test's own time limit ends what never is."""
    async with asyncio.timeout(30):
        while not true():  # noqa: ASYNC110 - what is waited for rings no bell
            await asyncio.sleep(0.005)
