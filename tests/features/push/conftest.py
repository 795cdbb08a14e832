"""A Nod with a key pair, and a push service on loopback that it may reach."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from bot.features.push.vapid import PushKey
from tests.fakes.push_service import FakeBrowser, FakePushService
from tests.kit import FakeClock
from tests.web.conftest import Json, Served
from tests.web.scripted import ask

KEY = PushKey("ZL5OVp3FyGqDhxYCqfWrNrBt9eZAXqPYGpFRv0JfhB8")
NOTE = {"text": "milk and honey"}
PUSHING: dict[str, Any] = {
    "NOD_PUSH_KEY": KEY.private,
    "NOD_WEBHOOK_HOSTS": ("127.0.0.1",),
    "NOD_ADMINS": ("http:local",),
}


@pytest.fixture
async def service(clock: FakeClock) -> AsyncIterator[FakePushService]:
    service = FakePushService(clock)
    await service.start()
    yield service
    await service.stop()


async def add(
    nod: Served, browser: FakeBrowser, client: httpx.AsyncClient | None = None, **more: Any
) -> Json:
    """Have a device notified; as its list has it."""
    answer = await (client or nod.client).post("/api/push/devices", json=browser.subscription(**more))
    assert answer.status_code == 201, answer.text
    device: Json = answer.json()["device"]
    return device


async def propose(nod: Served, *calls: tuple[str, dict[str, Any]]) -> list[Json]:
    """The model wants to keep a note, or makes these calls."""
    nod.model.answer(ask(*(calls or (("keep", NOTE),))))
    return await nod.proposed()


async def push(nod: Served, passed: timedelta = timedelta()) -> None:
    """Time passes, and the sweep sends what is due."""
    await nod.idle()
    nod.clock.forward(passed)
    [sweep] = [each for each in nod.app.sweeps if each.name == "push"]
    await sweep.run(nod.clock())


async def list_devices(nod: Served, client: httpx.AsyncClient | None = None) -> list[Json]:
    answer = await (client or nod.client).get("/api/push")
    listed: list[Json] = answer.json()["devices"]
    return listed
