"""Tokens made with ``nod token``: they work immediately, are kept as hashes, and end when revoked."""

import asyncio

import pytest
from sqlmodel import Session
from starlette.requests import Request

from bot.domain.audit import AuditFilter
from bot.domain.people import Actor
from bot.errors import NodError
from bot.store import tokens
from bot.store.audit import search, verification
from bot.store.locks.process_lock import notify_processes
from bot.store.tables.row import Row
from bot.web.sign_in.tokens import Unauthenticated
from bot.web.site import LongPoll
from bot.web.streams import Pace
from tests.kit import sql
from tests.web.conftest import ANA, TOKENS, Serve, Served
from tests.web.scripted import ScriptedModel, ask

ADA = Actor("cli", "ada")


async def issued(nod: Served, name: str = "ci") -> str:
    return await nod.app.database.write(tokens.issue_token, name, ADA, nod.clock())


async def revoked(nod: Served, which: str) -> list[tokens.IssuedToken]:
    return await nod.app.database.write(tokens.revoke_token, which, ADA, nod.clock())


def _everything(session: Session) -> str:
    tables = Row.metadata.sorted_tables
    return "\n".join(str(row) for table in tables for row in session.connection().execute(table.select()))


@pytest.mark.parametrize("settings", [{}, {"NOD_HTTP_TOKENS": TOKENS, "NOD_ADMINS": ("http:ana",)}])
async def test_a_token_works_from_when_it_is_made_until_it_is_revoked(serve: Serve, settings):
    async with serve(**settings) as nod:
        token = await issued(nod)
        async with nod.caller(token) as ci:
            assert (await ci.get("/api/me")).json()["account"] == "http:ci"
            assert [t.label for t in await revoked(nod, token.split("_")[1])] == [token.split("_")[1]]
            assert (await ci.get("/api/me")).status_code == 401
        assert await revoked(nod, "ci") == []
        async with nod.caller(ANA if settings else None) as ana:
            assert (await ana.get("/api/me")).status_code == 200


async def test_a_revoked_token_does_not_fall_back_to_the_person_at_this_machine(serve: Serve):
    async with serve() as nod:
        for wrong in ("nod_", "nod_00000000_x", "x", 'nod_"x', ""):
            async with nod.caller() as caller:
                answer = await caller.get("/api/me", headers={"Authorization": f"Bearer {wrong}".strip()})
                assert answer.status_code == 401, wrong


async def test_all_tokens_of_a_name_end_with_the_name(serve: Serve):
    async with serve() as nod:
        made = [await issued(nod), await issued(nod), await issued(nod, "other")]
        assert {t.name for t in await revoked(nod, "ci")} == {"ci"}
        found = []
        for token in made:
            async with nod.caller(token) as caller:
                found.append((await caller.get("/api/me")).status_code)
        assert found == [401, 401, 200]


async def test_the_database_has_no_token_and_the_audit_log_has_who_made_and_ended_it(serve: Serve):
    async with serve() as nod:
        token = await issued(nod)
        await revoked(nod, "ci")
        label, secret = token.split("_", 2)[1:]
        everything = await nod.app.database.read(_everything)
        assert label in everything
        assert secret not in everything
        rows = await nod.app.database.read(search.list_matching_rows, AuditFilter())
        assert [(r["thing"], r["key"], r["verb"], r["actor"]) for r in rows] == [
            ("token", label, "issue", "cli:ada"),
            ("token", label, "revoke", "cli:ada"),
        ]
        assert await nod.app.database.read(verification.find_faults_in_session) == []


async def test_a_token_that_is_put_into_the_database_past_the_record_shows(serve: Serve):
    async with serve() as nod:
        columns = "label, name, hash, made_by, made_at"
        slipped_in = f"INSERT INTO token ({columns}) VALUES ('aaaaaaaa', 'eve', 'x', 'cli:eve', '2026-03-02')"
        await nod.app.database.write(lambda s: s.connection().exec_driver_sql(slipped_in) and None)
        (fault,) = await nod.app.database.read(verification.find_faults_in_session)
        assert "token aaaaaaaa" in fault


async def test_an_open_stream_ends_when_its_token_is_revoked(serve: Serve):
    model = ScriptedModel(ask(("keep", {"text": "milk"})))
    async with serve(model=model, pace=Pace(keep_alive_seconds=0.1)) as nod:
        token = await issued(nod)
        async with nod.caller(token) as ci, nod.stream("GET", "/api/events", ci) as stream:
            await stream.raw()
            (proposal,) = await nod.proposed(client=ci)
            assert (await stream.next())["proposal"]["id"] == proposal["id"]
            await revoked(nod, "ci")
            notify_processes(nod.app.database.engine)
            await nod.press(proposal, "decline")
            assert await stream.rest() == []


async def test_a_long_poll_of_a_revoked_token_tells_nothing_of_what_happened_afterwards(serve: Serve):
    async with serve(model=ScriptedModel(ask(("keep", {"text": "milk"})))) as nod:
        token = await issued(nod)
        async with nod.caller(token) as ci:
            (proposal,) = await nod.proposed(client=ci)
            polled = asyncio.create_task(ci.get(f"/api/proposals/{proposal['id']}?wait=20"))
            while not nod.app.site.poll_limit.open_requests["http:ci"]:  # noqa: ASYNC110 - it has no event for it
                await asyncio.sleep(0)
            await revoked(nod, "ci")
            await nod.press(proposal, "decline")
            answer = await polled
            assert (answer.status_code, "declined" in answer.text) == (401, False)


async def test_a_long_poll_tells_nothing_either_where_no_word_of_the_change_arrives(serve: Serve):
    async with serve(
        model=ScriptedModel(ask(("keep", {"text": "milk"}))), pace=Pace(poll_seconds=0.01)
    ) as nod:
        token = await issued(nod)
        async with nod.caller(token) as ci:
            (proposal,) = await nod.proposed(client=ci)
            polled = asyncio.create_task(ci.get(f"/api/proposals/{proposal['id']}?wait=20"))
            while not nod.app.site.poll_limit.open_requests["http:ci"]:  # noqa: ASYNC110 - it has no event for it
                await asyncio.sleep(0)
            nod.app.database.write_now(
                tokens.revoke_token, "ci", ADA, nod.clock()
            )  # before its first look ends
            url = nod.app.database.engine.url.render_as_string(hide_password=False)
            sql(url, "UPDATE proposal SET state = 'expired' WHERE id = :id", id=proposal["id"])
            answer = await polled
            assert (answer.status_code, "expired" in answer.text) == (401, False)


async def test_a_long_poll_whose_token_is_revoked_before_its_first_look_tells_nothing_either(serve: Serve):
    async with serve() as nod:
        headers = [(b"authorization", f"Bearer {await issued(nod)}".encode())]
        request = Request({"type": "http", "method": "GET", "headers": headers})

        async def look() -> str:
            await revoked(nod, "ci")
            return "what happened afterwards"

        with pytest.raises(Unauthenticated):
            await LongPoll(request, nod.app.site, 20).poll(look, bool)


async def test_agents_over_mcp_are_refused_with_a_revoked_token(serve: Serve):
    async with serve() as nod:
        token = await issued(nod)
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        headers = {"Accept": "application/json, text/event-stream"}
        async with nod.caller(token, **headers) as ci:
            assert (await ci.post("/mcp", json=asked)).status_code != 401
            await revoked(nod, "ci")
            assert (await ci.post("/mcp", json=asked)).status_code == 401


@pytest.mark.parametrize("name", ["", "local", "a b", "x" * 65, "a:b", "a,b"])
async def test_what_is_no_name_of_an_account_gets_no_token(serve: Serve, name):
    async with serve() as nod:
        with pytest.raises(NodError, match="not a name"):
            await issued(nod, name)
