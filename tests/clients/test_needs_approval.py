"""A function under @needs_approval runs only once people approved its call, with what they approved."""

import asyncio
from datetime import date

import pytest

from nod_client import AsyncNod, Declined, EditDoesNotFit, Expired, Nod, needs_approval
from tests.clients.conftest import House
from tests.web.conftest import ANA


@pytest.fixture
def ran() -> list[object]:
    return []


async def test_an_async_function_asks_and_then_runs(house: House, asking: AsyncNod, ran):
    @needs_approval(nod=asking)
    async def close_account(name: str, times: int = 1) -> str:
        """Close it."""
        ran.append((name, times))
        return f"closed {name}"

    assert (close_account.__name__, close_account.__doc__) == ("close_account", "Close it.")
    call = asyncio.create_task(close_account("acme"))
    proposal = await house.card()
    assert proposal["description"] == "Close account"
    shown = {f["field"]: f["new_value"] for f in proposal["preview"]}
    assert shown == {"Tool": "close_account", "Name": "acme", "Times": "1"}
    assert ran == []
    await house.press("approve", proposal)
    assert await call == "closed acme"
    assert ran == [("acme", 1)]


async def test_a_plain_function_asks_too_and_a_method_does_not_show_itself(house: House, ran):
    with Nod(house.url, ANA) as nod:

        class Desk:
            @needs_approval(summary="Deploy {version}", hide=("session",), nod=nod)
            def deploy(self, version: str, *more: str, session: object, **notes: str) -> str:
                ran.append((version, more, session, notes))
                return "deployed"

        session = object()
        call = asyncio.create_task(
            asyncio.to_thread(Desk().deploy, "1.4", "eu", "us", session=session, why="a fix")
        )
        proposal = await house.card()
        assert proposal["description"] == "Deploy 1.4"
        assert [f["field"] for f in proposal["preview"]] == ["Tool", "Version", "More", "Notes"]
        await house.edit(version="1.3", more=["eu"])
        assert await call == "deployed"
    assert ran == [("1.3", ("eu",), session, {"why": "a fix"})]


async def test_it_does_not_run_when_people_decline_or_are_silent(house: House, asking: AsyncNod, ran):
    @needs_approval(nod=asking, ttl=3600)
    async def deploy(version: str) -> None:
        ran.append(version)

    call = asyncio.create_task(deploy("1.4"))
    await house.press("decline", reason="Not today")
    with pytest.raises(Declined, match="Not today"):
        await call
    call = asyncio.create_task(deploy("1.4"))
    await house.expire()
    with pytest.raises(Expired):
        await call
    assert ran == []


async def test_it_survives_a_restart_of_nod_and_with_a_key_one_of_its_own(house: House, asking, ran):
    @needs_approval(nod=asking, key="deploy-{version}")
    async def deploy(version: str) -> None:
        ran.append(version)

    call = asyncio.create_task(deploy("1.4"))
    proposal = await house.card()
    call.cancel()  # the script ends, and begins again
    call = asyncio.create_task(deploy("1.4"))
    await house.restart()
    await house.press("approve", proposal)
    await call
    assert ran == ["1.4"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"number": "many"}, r"ben made number 'many', and it must be a number"),
        ({"tags": "a"}, r"it must be a list"),
        ({"colour": "red"}, r"ben removed or added colour"),
    ],
)
async def test_an_edit_that_the_function_cannot_take_does_not_run(house: House, asking, ran, changed, words):
    @needs_approval(nod=asking)
    async def order(number: int, tags: list[str]) -> None:
        ran.append(number)

    call = asyncio.create_task(order(3, ["x"]))
    await house.edit(**changed)
    with pytest.raises(EditDoesNotFit, match=words):
        await call
    assert ran == []


async def test_only_what_people_changed_is_replaced(house: House, asking, ran):
    @needs_approval(nod=asking)
    async def order(size: tuple[int, int], number: int, note: str | None = None) -> None:
        ran.append((size, number, note))

    call = asyncio.create_task(order((1, 2), 3))
    await house.edit(number=4, note="soon")
    await call
    assert ran == [((1, 2), 4, "soon")]


async def test_what_people_cannot_be_shown_is_refused_before_anyone_is_asked(house: House, asking, ran):
    @needs_approval(nod=asking)
    async def book(day: date) -> None:
        ran.append(day)

    with pytest.raises(TypeError, match=r"the argument day, a date\. Pass text or numbers, or hide it"):
        await book(date(2026, 3, 2))
    with pytest.raises(TypeError, match="missing a required argument"):
        await book()
    with pytest.raises(TypeError, match="has no argument dya"):
        needs_approval(hide=("dya",))(book)
    assert (ran, await house.all()) == ([], [])
