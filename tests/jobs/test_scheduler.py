"""The clock begins each sweep once at a time, and stopping it is no fault."""

import asyncio
import logging
from datetime import datetime

import pytest
from sqlalchemy.exc import OperationalError
from structlog.testing import capture_logs

from bot.jobs.scheduler import Scheduler, Sweep
from bot.jobs.webhooks import Webhooks
from tests.kit import Hold, Nod

_SHORT_SECONDS = 0.001
_TICKS = 5


async def test_an_outage_of_the_database_is_one_line_at_its_start_and_one_at_its_end(nod: Nod) -> None:
    scheduler = Scheduler(nod.recovery, nod.reminders, Webhooks(nod.database, None, ()), nod.clock)
    away = True

    async def sweep(_: datetime) -> None:
        if away:
            raise OperationalError("", None, Exception("the disk is gone"))

    with capture_logs() as logs:
        for away in (True, True, True, False, False):  # noqa: B007 - what the sweep reads
            await scheduler.run(Sweep("sweep", 1, sweep))
    assert [each["event"] for each in logs] == ["sweeps wait for the database", "sweeps work again"]


async def test_a_sweep_under_way_is_not_begun_again_and_stopping_it_is_no_error(
    nod: Nod, caplog: pytest.LogCaptureFixture
) -> None:
    hold = Hold()
    begun: list[datetime] = []
    ticks: list[datetime] = []
    enough = asyncio.Event()

    async def sweep(now: datetime) -> None:
        begun.append(now)
        await hold.wait()

    async def tick(now: datetime) -> None:
        ticks.append(now)
        if hold.reached.is_set() and len(ticks) > _TICKS:
            enough.set()

    scheduler = Scheduler(
        nod.recovery,
        nod.reminders,
        Webhooks(nod.database, None, ()),
        nod.clock,
        (Sweep("held", _SHORT_SECONDS, sweep), Sweep("ticks", _SHORT_SECONDS, tick)),
    )
    with capture_logs() as logs:
        scheduler.start()
        await enough.wait()
        await scheduler.stop()
    assert len(begun) == 1
    assert [each for each in logs if each["log_level"] != "debug"] == []
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []
