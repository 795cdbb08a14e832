"""The dispatcher of several processes: what it begins itself, what waits, what the world can break."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import Engine, text

from bot.domain.jobs import Job, Queue, Work
from bot.store.engine import open_engine
from bot.store.turns import WAKE_UPS
from bot.store.wire import Wire
from bot.upkeep.dispatcher import QueueOf
from bot.upkeep.distributed import DistributedDispatcher, prepare
from bot.upkeep.job_rows import SIZES
from tests.kit import until
from tests.kit.urls import POSTGRES_URL, schema

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not POSTGRES_URL, reason="NOD_TEST_POSTGRES_URL names no PostgreSQL"),
]


Sleep = Callable[[float], Awaitable[None]]


class Desk:
    """Where jobs are done, by any dispatcher; none ends before ``go``."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.done: Counter[Job] = Counter()
        self.at_work: Counter[str] = Counter()  # by conversation
        self.most_of_one = 0
        self.most = 0

    async def do(self, job: Job) -> tuple[Job, ...]:
        self.at_work[job.key] += 1
        self.most_of_one = max(self.most_of_one, self.at_work[job.key])
        self.most = max(self.most, self.at_work.total())
        try:
            await self.go.wait()
        finally:
            self.at_work[job.key] -= 1
        self.done[job] += 1
        return ()


class Office:
    """One database, its dispatchers, and one desk for all of them."""

    def __init__(self, url: str, engine: Engine, stack: contextlib.AsyncExitStack) -> None:
        self.url = url
        self.engine = engine
        self.desk = Desk()
        self._stack = stack
        self._count = 0

    async def dispatcher(
        self, *, alone: bool = False, queue_of: QueueOf | None = None, sleep: Sleep = asyncio.sleep
    ) -> DistributedDispatcher:
        self._count += 1
        wire = Wire(self.url, f"p{self._count}")
        found = DistributedDispatcher(self.url, wire, sleep=sleep)
        await wire.open()
        self._stack.push_async_callback(wire.close)
        await found.open()
        self._stack.push_async_callback(found.close, 0)
        wire.others = not alone
        found.start(self.desk.do, queue_of)
        return found

    def rows(self, query: str, **values: Any) -> list[Any]:
        with self.engine.begin() as connection:
            return list(connection.execute(text(query), values).all())

    def states(self) -> list[str]:
        return sorted(row.status for row in self.rows("SELECT status::text FROM procrastinate_jobs"))

    async def until(self, states: list[str]) -> None:
        async with asyncio.timeout(60):
            while self.states() != states:  # noqa: ASYNC110 - rows ring no bell
                await asyncio.sleep(0.01)


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    with schema() as url:
        engine = open_engine(url)
        prepare(engine)
        async with contextlib.AsyncExitStack() as stack:
            found = Office(url, engine, stack)
            yield found
            found.desk.go.set()
        engine.dispose()


def team(many: int) -> list[Job]:
    return [Job(Work.TEAM, f"c{number}") for number in range(many)]


async def test_what_there_is_room_for_begins_here_and_is_never_put_into_a_queue(office: Office) -> None:
    here = await office.dispatcher()
    await here.wake(*team(3))
    assert set(here.tasks) == set(team(3))
    assert office.states() == ["doing"] * 3
    assert not office.rows("SELECT * FROM procrastinate_events")  # of what waited there is one
    office.desk.go.set()
    await office.until([])
    assert office.desk.done == Counter(team(3))


async def test_what_there_is_no_room_for_waits_for_it(office: Office) -> None:
    here = await office.dispatcher(alone=True)
    size = SIZES["team"]
    await here.wake(*team(size + 5))
    assert office.states() == ["doing"] * size + ["todo"] * 5
    office.desk.go.set()
    await office.until([])
    assert office.desk.done == Counter(team(size + 5))
    assert office.desk.most == size


async def test_where_there_are_others_most_of_it_is_left_to_who_has_room(office: Office) -> None:
    here = await office.dispatcher()
    await here.wake(*team(8))
    await office.until(["doing"] * 8)
    count = "SELECT count(*) AS many FROM procrastinate_jobs GROUP BY worker_id ORDER BY 1"
    assert [row.many for row in office.rows(count)] == [3, SIZES["team"] // 4]


async def test_one_process_at_a_time_speaks_in_a_conversation(office: Office) -> None:
    first, second = await office.dispatcher(), await office.dispatcher()
    turn, word = Job(Work.TURN, "c1"), Job(Work.DELIVER, "c1")
    await first.wake(turn)
    await second.wake(turn, word)
    assert not second.tasks
    assert office.states() == ["doing", "todo", "todo"]
    office.desk.go.set()
    await office.until([])
    assert office.desk.done == {turn: 2, word: 1}
    assert office.desk.most_of_one == 1


async def test_of_many_that_begin_one_job_in_the_same_moment_one_does_it(office: Office) -> None:
    several = [await office.dispatcher() for _ in range(3)]
    conversations = [Job(Work.TURN, f"c{number}") for number in range(10)]
    await asyncio.gather(*(each.wake(*conversations) for each in several))
    assert office.states().count("doing") == 10
    office.desk.go.set()
    await office.until([])
    assert set(office.desk.done) == set(conversations)
    assert office.desk.most_of_one == 1


async def test_what_is_woken_while_it_runs_runs_once_more(office: Office) -> None:
    here = await office.dispatcher()
    [job] = team(1)
    for _ in range(3):
        await here.wake(job)
    assert office.states() == ["doing", "todo"]
    office.desk.go.set()
    await office.until([])
    assert office.desk.done == {job: 2}


async def test_who_wakes_and_gives_up_waiting_leaves_the_job_to_begin(office: Office) -> None:
    here = await office.dispatcher()
    waking = asyncio.create_task(here.wake(*team(1)))
    await asyncio.sleep(0)
    waking.cancel()
    office.desk.go.set()
    await office.until([])
    await here.wake(*team(1))
    await office.until([])
    assert set(office.desk.done) == set(team(1))


async def test_what_a_killed_process_had_begun_is_free_again_once_it_looks_dead(office: Office) -> None:
    here = await office.dispatcher()
    [job] = team(1)
    [dead] = office.rows(
        "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 minute') RETURNING id"
    )
    with office.engine.begin() as connection:
        begun = (
            "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, status, worker_id) "
            "VALUES ('team', 'work', :name, :name, 'doing', :worker)"
        )
        connection.execute(text(begun), {"name": f"{job.work}:{job.key}", "worker": dead.id})
    await here.wake(job)
    assert not here.tasks
    await here.find(job)
    office.desk.go.set()
    await office.until([])
    assert set(office.desk.done) == {job}
    assert office.desk.most_of_one == 1


async def test_what_a_process_that_stops_had_begun_is_done_by_another(office: Office) -> None:
    leaving = await office.dispatcher()
    await leaving.wake(*team(3))
    staying = await office.dispatcher()
    await leaving.close(0)
    async with asyncio.timeout(60):
        while set(staying.tasks) != set(team(3)):  # noqa: ASYNC110 - rows ring no bell
            await asyncio.sleep(0.01)
    assert not leaving.tasks
    office.desk.go.set()
    await office.until([])
    assert office.desk.done == Counter(team(3))


async def test_a_job_begins_and_ends_though_every_connection_is_lost_in_between(office: Office) -> None:
    here = await office.dispatcher()
    [job] = team(1)
    await here.wake(job)
    name = office.rows("SHOW application_name")[0][0]
    lost = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = :name AND pid <> pg_backend_pid()"
    )
    office.rows(lost, name=name)
    office.desk.go.set()
    await office.until([])
    await here.wake(job)
    await office.until([])
    async with asyncio.timeout(60):
        while office.desk.done != {job: 2}:  # a wake-up may be lost, and a tick finds what it was for
            await here.find(job)
            await office.until([])


async def test_one_person_has_so_much_at_work_and_the_next_begins_when_one_ends(office: Office) -> None:
    async def anas(_: Job) -> Queue:
        return Queue("ana", 2)

    here = await office.dispatcher(alone=True, queue_of=anas)
    await here.wake(*(Job(Work.TURN, f"c{number}") for number in range(5)))
    office.desk.go.set()
    await office.until([])
    assert office.desk.done.total() == 5
    assert office.desk.most == 2


async def test_a_flood_of_wake_ups_takes_no_place_from_people(office: Office) -> None:
    people = {"c40"}

    async def queue_of(job: Job) -> Queue:
        return Queue("ana", 10) if job.key in people else WAKE_UPS

    here = await office.dispatcher(alone=True, queue_of=queue_of)
    await here.wake(*(Job(Work.TURN, f"c{number}") for number in range(60)))
    turn = Job(Work.TURN, "c40")
    assert turn in here.tasks
    assert len(here.tasks) == WAKE_UPS.most + 1
    people.add("c59")  # who speaks where a wake-up waits is not left to wait with it
    await here.wake(Job(Work.TURN, "c59"))
    await until(lambda: Job(Work.TURN, "c59") in here.tasks)
    assert len(here.tasks) == WAKE_UPS.most + 2
    office.desk.go.set()
    await office.until([])
    assert office.desk.done.total() == 60


async def test_a_worker_that_fails_says_so_and_begins_again_more_slowly_each_time(office: Office) -> None:
    pauses: asyncio.Queue[float] = asyncio.Queue()
    goes = asyncio.Semaphore(0)

    async def sleep(seconds: float) -> None:
        pauses.put_nowait(seconds)
        await goes.acquire()

    here = await office.dispatcher(alone=True, sleep=sleep)
    others = (
        "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args) SELECT 'team', "
        "'work', 'team:' || c, 'team:' || c, "
        "jsonb_build_object('work', 'team', 'key', c, 'who', '', 'most', 99) "
        "FROM unnest(ARRAY['c0', 'c1', 'c2']) AS c"
    )
    rename = "ALTER TABLE procrastinate_jobs RENAME COLUMN {} TO {}"
    with office.engine.begin() as connection:  # as a newer version of its library may
        connection.execute(text(rename.format("attempts", "tries")))
        connection.execute(text(others))
    for expected in (1, 2, 4):
        assert await pauses.get() == expected
        assert here.fault == "work can't be taken up, see the log: team"
        goes.release()
    with office.engine.begin() as connection:
        connection.execute(text(rename.format("tries", "attempts")))
    await until(lambda: here.fault is None)
    assert not here.tasks
    await here.find(*team(3))  # what it fetched and could not read is a dead worker's
    office.desk.go.set()
    await office.until([])
    assert office.desk.done == Counter(team(3))
