"""The clock begins each sweep once at a time, and stopping it is no fault."""

import asyncio
from datetime import datetime

import pytest
from sqlalchemy.exc import OperationalError
from structlog.testing import capture_logs

from bot.jobs.scheduler import Scheduler, Sweep
from bot.jobs.webhooks import Webhooks
from tests.kit import Hold, Nod


async def test_an_outage_of_the_database_is_one_line_at_its_start_and_one_at_its_end(nod: Nod) -> None:
    scheduler = Scheduler(nod.recovery, nod.reminders, Webhooks(nod.database, None, ()), nod.clock)
    away = True

    async def sweep(_: datetime) -> None:
        if away:
            raise OperationalError("", None, Exception("the disk is gone"))

    with capture_logs() as logs:
        for away in (True, True, True, False, False):  # noqa: B007 - what the sweep reads
            await scheduler._tick(Sweep("sweep", 1, sweep))
            await asyncio.gather(*scheduler._under_way.values())
    assert [each["event"] for each in logs] == ["sweeps wait for the database", "sweeps work again"]


async def test_a_sweep_under_way_is_not_begun_again_and_stopping_it_is_no_error(
    nod: Nod, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = Scheduler(nod.recovery, nod.reminders, Webhooks(nod.database, None, ()), nod.clock)
    scheduler.start()
    hold = Hold()
    begun: list[datetime] = []

    async def sweep(now: datetime) -> None:
        begun.append(now)
        await hold.wait()

    with capture_logs() as logs:
        await scheduler._tick(Sweep("sweep", 1, sweep))
        await hold.reached.wait()
        await scheduler._tick(Sweep("sweep", 1, sweep))
        await asyncio.sleep(0)
        await scheduler.stop()
    assert len(begun) == 1
    assert (logs, caplog.text) == ([], "")
