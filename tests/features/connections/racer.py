"""``python -m tests.features.connections.racer``: a process that asks for one person's token when it is told.

For each line on its standard input, a moment, it prints the token that it is given then.
"""

import asyncio
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from bot.app.assembly import build
from bot.domain.connections import ConnectionOwner, Identity
from bot.settings import Settings
from bot.store.connections import get_connections
from bot.testing.world import ScriptedModel


async def main(owner: str) -> None:
    now = [datetime.now(UTC)]
    settings = Settings(
        _env_file=None,
        NOD_DATABASE_URL=os.environ["NOD_DATABASE_URL"],
        NOD_SECRET_KEY=os.environ["NOD_SECRET_KEY"],
        NOD_MCP_CONFIG=Path(os.environ["NOD_MCP_CONFIG"]),
        NOD_PORT=0,
    )
    app = build(settings, model=ScriptedModel(), clock=lambda: now[0])
    port = get_connections(app.database)
    assert port is not None
    whose = ConnectionOwner(frozenset({owner}), owner)
    connection = app.database.read_now(lambda session: port.find(session, "tracker", Identity.PERSON, whose))
    assert connection is not None
    access = port.access(connection)
    print("ready", flush=True)  # noqa: T201 - its answer
    while line := await asyncio.to_thread(sys.stdin.readline):
        now[0] = datetime.fromisoformat(line.strip())
        print(await access.get_token(), flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
