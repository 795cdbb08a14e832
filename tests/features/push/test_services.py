"""Push services fail as they fail: nothing is lost, nothing is sent twice, and none holds up another."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import fields
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from bot.features.push.push_client import MAX_ASKED_PAUSE
from bot.features.push.push_message import find_topic
from bot.features.push.sender import PAUSES, PushSender
from bot.features.push.vapid import PushKey
from bot.jobs.outbound_post import PinnedClient
from tests.fakes.push_service import ENDLESS, HANGING, NONSENSE, Answer, FakePushService
from tests.features.push.conftest import KEY, PUSHING, add, list_devices, propose, push
from tests.web.conftest import Serve

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("status", [404, 410])
async def test_a_subscription_that_is_gone_is_dropped(serve: Serve, service: FakePushService, status: int):
    async with serve(**PUSHING) as nod:
        gone, other = service.subscribe(KEY.public, Answer(status)), service.subscribe(KEY.public)
        await add(nod, gone)
        await add(nod, other, name="Laptop")
        await propose(nod)
        await push(nod)
        assert [each["name"] for each in await list_devices(nod)] == ["Laptop"]
        assert len(other.messages) == 1
        await propose(nod)
        await push(nod)
        assert (gone.tries, len(other.messages)) == (1, 2)


@pytest.mark.parametrize("status", [400, 401, 403, 413, 302, 307, 418])
async def test_a_refusal_is_final_for_that_message_and_stands_in_the_list(
    serve: Serve, service: FakePushService, status: int
):
    async with serve(**PUSHING) as nod:
        browser = service.subscribe(KEY.public, Answer(status, {"Location": "http://169.254.169.254/latest"}))
        await add(nod, browser)
        await propose(nod)
        await push(nod)
        await push(nod, timedelta(hours=8))
        assert browser.tries == 1
        assert (await list_devices(nod))[0]["fault"] == f"HTTP {status}"
        browser.answer = None
        await propose(nod)
        await push(nod)
        assert len(browser.messages) == 1
        assert (await list_devices(nod))[0]["fault"] == ""


async def test_a_redirect_inwards_is_not_followed(serve: Serve, service: FakePushService):
    async with serve(**PUSHING) as nod:
        inner = service.subscribe(KEY.public)
        browser = service.subscribe(KEY.public, Answer(308, {"Location": inner.endpoint}))
        await add(nod, browser)
        await propose(nod)
        await push(nod)
        assert (browser.tries, inner.tries) == (1, 0)


@pytest.mark.parametrize("status", [429, 500, 502, 503])
async def test_what_may_pass_is_tried_again_with_a_growing_pause(
    serve: Serve, service: FakePushService, status: int
):
    async with serve(**PUSHING) as nod:
        browser = service.subscribe(KEY.public, Answer(status))
        await add(nod, browser)
        await propose(nod)
        await push(nod)
        for number, pause in enumerate(PAUSES[:4], 1):
            await push(nod, pause - SECOND)
            assert browser.tries == number
            await push(nod, SECOND)
            assert browser.tries == number + 1
        browser.answer = None
        await push(nod, PAUSES[4])
        assert len(browser.messages) == 1
        await push(nod, PAUSES[-1])
        assert len(browser.messages) == 1


@pytest.mark.parametrize("form", ["seconds", "date", "far", "nonsense"])
async def test_the_pause_that_a_service_asks_for_is_kept_within_a_bound(
    serve: Serve, service: FakePushService, form: str
):
    async with serve(**PUSHING) as nod:
        asked = timedelta(minutes=7)
        words, expected = {
            "seconds": ("420", asked),
            "date": (format_datetime(nod.clock() + asked, usegmt=True), asked),
            "far": ("9" * 40, MAX_ASKED_PAUSE),
            "nonsense": ("a while", PAUSES[0]),
        }[form]
        browser = service.subscribe(KEY.public, Answer(429, {"Retry-After": words}))
        await add(nod, browser)
        await propose(nod)
        await push(nod)
        await push(nod, expected - SECOND * 2)
        assert browser.tries == 1
        await push(nod, SECOND * 3)
        assert browser.tries == 2


async def test_a_gigabyte_in_answer_is_not_read(serve: Serve, service: FakePushService):
    async with serve(**PUSHING) as nod:
        browser = service.subscribe(KEY.public, ENDLESS)
        await add(nod, browser)
        await propose(nod)
        await push(nod)
        assert len(browser.messages) == 1
        assert service.sent_bytes < 64 << 20
        assert (await list_devices(nod))[0]["fault"] == ""


async def test_nonsense_in_answer_is_a_fault_like_any_other(serve: Serve, service: FakePushService):
    async with serve(**PUSHING) as nod:
        browser = service.subscribe(KEY.public, NONSENSE)
        await add(nod, browser)
        await propose(nod)
        await push(nod)
        assert "could not be reached" in (await list_devices(nod))[0]["fault"]
        browser.answer = None
        await push(nod, PAUSES[0])
        assert len(browser.messages) == 1


async def test_a_service_that_hangs_holds_up_no_other_device_and_is_tried_again(
    serve: Serve, service: FakePushService
):
    async with serve(**PUSHING) as nod:
        stuck, well = service.subscribe(KEY.public, HANGING), service.subscribe(KEY.public)
        await add(nod, stuck)
        await add(nod, well)
        await propose(nod)
        await push(nod)
        assert service.hanging.is_set()
        assert (stuck.tries, len(well.messages)) == (1, 1)
        await propose(nod)
        await push(nod)
        assert (stuck.tries, len(well.messages)) == (1, 2)
        service.let_go.set()
        await push(nod)
        stuck.answer = None
        await push(nod, PAUSES[0])
        assert len(stuck.messages) == 2


async def test_no_answer_takes_longer_than_its_bound(service: FakePushService):
    stuck = service.subscribe(KEY.public, HANGING)
    answer = await PinnedClient(("127.0.0.1",), seconds=0.05).post(stuck.endpoint, [], b"x")
    assert (answer.status, answer.fault) == (None, "no answer within 0.05 s")


async def test_what_was_not_sent_before_a_restart_is_sent_after_it_and_once(
    serve: Serve, service: FakePushService
):
    browser = service.subscribe(KEY.public)
    async with serve(**PUSHING) as nod:
        await add(nod, browser)
        await propose(nod)
    async with serve(**PUSHING) as nod:
        await push(nod)
        await push(nod)
    async with serve(**PUSHING) as nod:
        await push(nod)
        assert len(browser.messages) == 1
        [proposal] = (await nod.client.get("/api/proposals")).json()["proposals"]
        await nod.press(proposal, "decline")
    async with serve(**PUSHING) as nod:
        await push(nod)
        await push(nod)
        assert [each.get("close", False) for each in browser.shown] == [False, True]


async def test_a_process_that_died_while_it_sent_keeps_the_device_for_its_lease_alone(
    serve: Serve, service: FakePushService
):
    browser = service.subscribe(KEY.public, HANGING)
    async with serve(**PUSHING) as nod:
        await add(nod, browser)
        await propose(nod)
        await push(nod)
    browser.answer = None
    async with serve(**PUSHING) as nod:
        await push(nod)
        assert browser.messages == []
        await push(nod, timedelta(seconds=46))
        assert len(browser.messages) == 1


async def test_several_processes_send_it_once(serve: Serve, service: FakePushService):
    async with serve(**PUSHING) as nod:
        browsers = [service.subscribe(KEY.public) for _ in range(4)]
        for browser in browsers:
            await add(nod, browser)
        [sweep] = [each for each in nod.app.sweeps if each.name == "push"]
        others = [type(sweep.run.__self__)(**_parts(sweep.run.__self__)) for _ in range(3)]
        for number in range(3):
            await propose(nod, ("keep", {"text": f"note {number}"}))
            await nod.idle()
            for _ in range(2):
                await _gather(sweep.run, *(other.run for other in others), now=nod.clock())
        assert [len(browser.messages) for browser in browsers] == [3] * 4


async def test_a_service_that_knows_another_key_refuses_and_a_new_key_ends_old_devices(
    serve: Serve, service: FakePushService
):
    browser = service.subscribe(KEY.public)
    async with serve(**PUSHING) as nod:
        await add(nod, browser)
    async with serve(**PUSHING | {"NOD_PUSH_KEY": PushKey.generate().private}) as nod:
        await propose(nod)
        await push(nod)
        assert await list_devices(nod) == []
        assert browser.tries == 0


def test_a_topic_says_nothing_and_is_of_the_form_that_services_take():
    topic = find_topic("0b8a3f0e-proposal")
    assert (len(topic), topic.isalnum(), "proposal" in topic) == (32, True, False)


def _parts(sender: PushSender) -> dict[str, Any]:
    """What another process makes its own sender of."""
    return {each.name: getattr(sender, each.name) for each in fields(sender) if not each.name.startswith("_")}


async def _gather(*runs: Callable[[datetime], Awaitable[object]], now: datetime) -> None:
    await asyncio.gather(*(run(now) for run in runs))
