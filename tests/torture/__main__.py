"""``python -m tests.torture``: the long run. Exit code 1 when anything is wrong."""

import argparse
import asyncio
import contextlib
import logging
import math
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tests.kit.urls import schema
from tests.torture.figures import Figures
from tests.torture.flood import Flooded, flood
from tests.torture.harness import torture
from tests.torture.postgres import Postgres


def _report(figures: Figures) -> None:
    sys.stdout.write(f"{datetime.now(UTC):%H:%M:%S} so far: {figures}\n\n")
    sys.stdout.flush()


async def _run(given: argparse.Namespace) -> Figures | Flooded:
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(given.folder or stack.enter_context(tempfile.TemporaryDirectory()))
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        url, restart = f"sqlite:///{folder}/nod.db", None
        if given.postgres:
            server = await stack.enter_async_context(Postgres(Path(given.postgres), folder))
            url, restart = server.url, server.restart
        elif given.database:
            url = stack.enter_context(schema(given.database))
        if given.flood:
            return await flood(url, folder, given.flood)
        return await torture(
            url,
            folder,
            processes=given.processes,
            kills=given.kills,
            seed=given.seed,
            people=given.people,
            stories=given.stories,
            restart=restart,
            minutes=given.minutes,
            pause=tuple(given.pause),
            rolls=given.rolls,
            report=_report,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", default="", help="a PostgreSQL server; a new SQLite file if left out")
    parser.add_argument(
        "--postgres", default="", help="the folder of PostgreSQL's programs: a server of its own, restarted"
    )
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=math.inf, help="at most")
    parser.add_argument("--rolls", type=int, default=0, help="rolling restarts by SIGTERM, after the kills")
    parser.add_argument("--flood", type=int, default=0, help="send so many messages to one, and kill nothing")
    parser.add_argument("--pause", nargs=2, type=float, default=[0.5, 3.0], help="seconds before each kill")
    parser.add_argument("--people", type=int, default=4)
    parser.add_argument("--folder", default="", help="for logs and a SQLite file, kept; else a temporary one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stories", nargs="*", default=[], help="what people do; everything if left out")
    given = parser.parse_args()
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # the model's callers are killed
    figures = asyncio.run(_run(given))
    sys.stdout.write("\n".join([str(figures), *figures.faults, ""]))
    sys.exit(1 if figures.faults else 0)


if __name__ == "__main__":
    main()
