"""The client asks and is told what people pressed; each end has its own error; a restart loses nothing."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator

import pytest

from nod_client import (
    AsyncNod,
    Cancelled,
    Declined,
    End,
    Expired,
    NodError,
    NotApproved,
    Refused,
    StillWaiting,
    Unreachable,
    ask,
    ask_async,
)
from nod_client.errors import approved
from tests.clients.conftest import BOTH, House, Ticks
from tests.features.requests.test_routes import SETTINGS
from tests.web.conftest import ANA, BEN, Serve


@BOTH
async def test_it_is_told_who_approved_and_what(house: House, client):
    async with client(house.url, ANA, clock=Ticks()) as nod:
        asked = asyncio.create_task(nod.ask("Deploy 1.4?", details="Two minutes.", fields={"version": "1.4"}))
        proposal = await house.press("approve")
        request = await asked
    assert proposal["description"] == "Deploy 1.4?"
    assert [f["field"] for f in proposal["preview"]] == ["Version", "Details"]
    assert (request.end, request.decided_by, request.edited_by) == (End.APPROVED, "ben", None)
    assert (request.summary, request.fields) == ("Deploy 1.4?", {"version": "1.4"})
    assert request.told == "ben approved it."


@BOTH
async def test_a_refusal_is_raised_with_its_reason(house: House, client):
    async with client(house.url, ANA, clock=Ticks()) as nod:
        asked = asyncio.create_task(nod.ask("Deploy 1.4?"))
        await house.press("decline", reason="Not on a Friday")
        with pytest.raises(Declined, match=r"ben declined it\. Reason: Not on a Friday") as refusal:
            await asked
    assert refusal.value.request.reason == "Not on a Friday"


@BOTH
async def test_silence_is_raised_as_silence(house: House, client):
    async with client(house.url, ANA, clock=Ticks()) as nod:
        asked = asyncio.create_task(nod.ask("Deploy 1.4?", ttl=3600))
        await house.expire()
        with pytest.raises(Expired, match="No one refused it"):
            await asked


@BOTH
async def test_what_people_changed_is_what_was_approved(house: House, client):
    async with client(house.url, ANA, clock=Ticks()) as nod:
        asked = asyncio.create_task(nod.ask("Deploy?", fields={"version": "1.4", "token": "a-true-secret"}))
        proposal = await house.card()
        arguments = proposal["tool_arguments"]
        arguments["fields"]["version"] = "1.3"
        await house.press("approve", proposal, arguments=arguments)
        request = await asked
    assert request.fields == {"version": "1.3", "token": "a-true-secret"}
    assert request.told == "ben approved it. ben changed it first."


@BOTH
async def test_a_restart_of_nod_in_between_is_waited_out(house: House, client):
    async with client(house.url, ANA, clock=Ticks()) as nod:
        asked = asyncio.create_task(nod.ask("Deploy 1.4?"))
        proposal = await house.card()
        await house.restart()
        assert not asked.done()
        await house.press("approve", proposal)
        assert (await asked).id == proposal["id"]


@BOTH
async def test_a_nod_that_stays_away_is_given_up_after_the_clients_patience(house: House, client):
    ticks = Ticks()
    async with client(house.url, ANA, patience=120, clock=ticks) as nod:
        asked = asyncio.create_task(nod.ask("Deploy 1.4?"))
        await house.card()
        waited = sum(ticks.pauses)
        await house.stop()
        with pytest.raises(Unreachable, match=r"can't be reached: .* Tried for 120 s\. Is `nod run` up"):
            await asked
    assert 120 <= sum(ticks.pauses) - waited < 130


@BOTH
async def test_a_wrong_address_is_told_sooner(client):
    ticks = Ticks()
    async with client("http://127.0.0.1:9", ANA, clock=ticks) as nod:
        with pytest.raises(Unreachable, match=r"http://127\.0\.0\.1:9 can't be reached: ConnectError"):
            await nod.ask("Deploy 1.4?")
    assert sum(ticks.pauses) == 30


@contextlib.asynccontextmanager
async def forgetful(port: int) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A door before Nod that hands the first request on and loses its answer."""
    heads: list[bytes] = []

    async def door(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", port)
        head = await reader.readuntil(b"\r\n\r\n")
        heads.append(head)
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        outer.write(head.replace(b"keep-alive", b"close") + await reader.readexactly(length))
        answer = await inner.read()
        if len(heads) > 1:
            writer.write(answer)
            await writer.drain()
        outer.close()
        writer.close()

    server = await asyncio.start_server(door, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heads


@BOTH
async def test_an_answer_that_was_lost_on_its_way_does_not_ask_twice(house: House, client):
    async with forgetful(house.port) as (url, heads), client(url, ANA, clock=Ticks()) as nod:
        request = await nod.open("Deploy 1.4?")
        assert len(heads) == 2
        assert [each["id"] for each in await house.all()] == [request.id]


async def test_the_same_key_is_the_same_question_also_for_a_script_that_was_started_again(house: House):
    async with AsyncNod(house.url, ANA) as nod:
        first = await nod.open("Deploy 1.4?", key="run-7")
    async with AsyncNod(house.url, ANA) as nod:
        again = asyncio.create_task(nod.ask("Deploy 1.4?", key="run-7"))
        await house.press("approve")
        assert (await again).id == first.id
        with pytest.raises(Refused, match="idempotency key") as taken:
            await nod.ask("Something else", key="run-7")
        assert taken.value.status == 409


async def test_a_question_no_one_can_come_back_for_is_withdrawn_when_the_wait_is_over(house: House):
    async with AsyncNod(house.url, ANA) as nod:
        with pytest.raises(Cancelled, match="withdrawn before anyone decided"):
            await nod.ask("Deploy 1.4?", wait=0)
        with pytest.raises(StillWaiting):
            await nod.ask("Deploy 1.5?", wait=0.01, key="run-8")
    assert [each["description"] for each in await house.pending()] == ["Deploy 1.5?"]


async def test_a_decision_that_came_before_the_withdrawal_stands(house: House):
    async with AsyncNod(house.url, ANA) as nod:
        request = await nod.open("Deploy 1.4?")
        assert (await nod.look(request.id)).end is End.WAITING
        await house.press("approve")
        assert (await nod.cancel(request.id)).end is End.APPROVED


async def test_every_end_but_one_raises_an_error_of_its_own(house: House):
    async with AsyncNod(house.url, ANA) as nod:
        request = await nod.open("Deploy 1.4?")
    raised = {}
    for end in End:
        try:
            assert approved(dataclasses.replace(request, end=end)).end is End.APPROVED
        except NotApproved as error:
            raised[end] = (type(error), str(error))
    assert set(End) - set(raised) == {End.APPROVED}
    for told in zip(*raised.values(), strict=True):
        assert len(set(told)) == 7


async def test_what_nod_refuses_is_told_in_its_own_words_and_not_tried_again(house: House):
    ticks = Ticks()
    async with AsyncNod(house.url, ANA, sleep=ticks.sleep) as nod:
        with pytest.raises(Refused, match="summary") as refused:
            await nod.ask("")
        assert (refused.value.status, list(refused.value.fields)) == (422, ["summary"])
    async with AsyncNod(house.url, "of-nobody", sleep=ticks.sleep) as nod:
        with pytest.raises(Refused, match="NOD_TOKEN must be one of NOD_HTTP_TOKENS"):
            await nod.ask("Deploy 1.4?")
    async with AsyncNod(house.url + "/nowhere", BEN, sleep=ticks.sleep) as nod:
        with pytest.raises(Refused, match=r"There is nothing at this address"):
            await nod.ask("Deploy 1.4?")
    assert ticks.pauses == []


async def test_an_address_that_is_not_nods_is_told(house: House):
    async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(page, "127.0.0.1", 0)
    async with server, AsyncNod(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as nod:
        with pytest.raises(Refused, match=r"is not Nod \(HTTP 200\)\. Check NOD_URL"):
            await nod.ask("Deploy 1.4?")
    with pytest.raises(NodError, match="must begin with http"):
        AsyncNod("localhost:8080")


async def test_the_environment_says_which_nod_and_as_whom(house: House, monkeypatch):
    monkeypatch.setenv("NOD_URL", house.url)
    monkeypatch.setenv("NOD_TOKEN", ANA)
    for begun in (lambda: asyncio.to_thread(ask, "Deploy 1.4?"), lambda: ask_async("Deploy 1.5?")):
        asked = asyncio.create_task(begun())
        await house.press("approve")
        assert (await asked).decided_by == "ben"


async def test_on_either_database_each_end_is_told_and_a_restart_loses_nothing(serve: Serve, database_url):
    house = House(serve, SETTINGS | {"NOD_DATABASE_URL": database_url})
    await house.start()
    async with AsyncNod(house.url, ANA, clock=(clock := Ticks()), sleep=clock.sleep) as nod:
        asked = asyncio.create_task(nod.ask("Deploy 1.4?", fields={"version": "1.4"}))
        await house.card()
        await house.restart()
        proposal = await house.card()
        arguments = proposal["tool_arguments"] | {"fields": {"version": "1.3"}}
        await house.press("approve", proposal, arguments=arguments)
        assert (await asked).fields == {"version": "1.3"}
        for end, act in (
            (Declined, lambda: house.press("decline", reason="Not on a Friday")),
            (Expired, house.expire),
            (Cancelled, lambda: house.press("cancel", token=ANA)),
        ):
            asked = asyncio.create_task(nod.ask("Deploy 1.5?"))
            await act()
            with pytest.raises(end):
                await asked
    await house.stop()
