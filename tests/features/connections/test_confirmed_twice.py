"""The digits of a sign-in that are sent twice in one moment: one message connects, and neither is wrong."""

import asyncio

from bot.features.connections.sign_in.pending import NO_SIGN_IN_WAITS_TEXT
from tests.features.connections.conftest import ANA, KEY, Connectable
from tests.features.connections.test_ended_twice import held
from tests.features.connections.tracker import Tracker
from tests.web.conftest import TOKENS, Serve


async def test_digits_that_are_sent_twice_in_one_moment_are_not_wrong(
    serve: Serve, tracker: Tracker, database_url: str
):
    given = {"NOD_MCP_CONFIG": "mcp.json", "NOD_SECRET_KEY": (KEY,), "NOD_HTTP_TOKENS": TOKENS}
    async with serve(**given, NOD_DATABASE_URL=database_url) as nod:
        there = Connectable(nod, tracker)
        digits = await there.digits()
        async with held(nod.app.database, 2, "connecting"):
            both = [asyncio.create_task(there.say(f"confirm {digits}")) for _ in range(2)]
            await asyncio.sleep(0)
        connected, late = sorted([(await each).text for each in both])
        assert connected.startswith("Connected: As Ana")
        assert late == NO_SIGN_IN_WAITS_TEXT
        assert [row.owner for row in there.rows()] == [str(ANA)]
        assert tracker.people.revoked == []
        await there.close()
