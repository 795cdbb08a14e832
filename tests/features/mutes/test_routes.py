"""Mutes over HTTP: one's own, and the end of one."""

from collections.abc import AsyncIterator

import pytest

from tests.web.conftest import ANA, BEN, TOKENS, Serve, Served

pytestmark = pytest.mark.platform


@pytest.fixture
async def nod(serve: Serve) -> AsyncIterator[Served]:
    async with serve(NOD_HTTP_TOKENS=TOKENS, token=ANA) as served:
        yield served


async def test_one_sees_and_ends_ones_own_mutes_and_no_one_elses(nod: Served) -> None:
    async with nod.caller(ANA) as ana, nod.caller(BEN) as ben:
        set_by = {"name": "nod", "text": "mutes keep for 8h"}
        said = await ana.post("/api/commands", json=set_by)
        assert said.status_code == 200, said.text
        [mute] = (await ana.get("/api/mutes")).json()["mutes"]
        assert mute["tool_name"] == "keep"
        assert (await ben.get("/api/mutes")).json()["mutes"] == []
        assert (await ben.delete(f"/api/mutes/{mute['id']}")).status_code == 404
        ended = await ana.delete(f"/api/mutes/{mute['id']}")
        assert ended.json()["text"] == "You are told again of keep."
        assert (await ana.get("/api/mutes")).json()["mutes"] == []
        assert (await ana.delete(f"/api/mutes/{mute['id']}")).status_code == 404
