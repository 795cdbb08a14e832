"""The dispatcher of several processes: what it does itself, what others take, what the world can break."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import Engine, text

from bot.domain.jobs import Job, Queue, Work
from bot.errors import LeasedElsewhere
from bot.jobs.dispatcher import SLOTS, Handler, QueueOf
from bot.jobs.distributed import DistributedDispatcher, prepare
from bot.store.engine import open_engine
from bot.store.notifications import Wire
from bot.store.turns import WAKE_UPS
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
        self,
        *,
        alone: bool = False,
        works: bool = True,
        handler: Handler | None = None,
        queue_of: QueueOf | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> DistributedDispatcher:
        self._count += 1
        wire = Wire(self.url, f"p{self._count}")
        found = DistributedDispatcher(self.url, wire, does_jobs=works, sleep=sleep)
        await wire.open()
        self._stack.push_async_callback(wire.close)
        await found.open()
        self._stack.push_async_callback(found.close, 0)
        wire.has_others = not alone
        found.start(handler or self.desk.do, queue_of)
        return found

    def rows(self, query: str, **values: Any) -> list[Any]:
        with self.engine.begin() as connection:
            return list(connection.execute(text(query), values).all())

    def waiting(self) -> int:
        """How many jobs wait in Procrastinate's queues, or are done by its workers."""
        return len(self.rows("SELECT FROM procrastinate_jobs"))


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    with schema() as url:
        engine = open_engine(url)
        prepare(url)
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
    assert office.waiting() == 0
    office.desk.go.set()
    await here.wait_until_idle()
    assert office.desk.done == Counter(team(3))


async def test_one_alone_does_all_of_it_within_its_room(office: Office) -> None:
    here = await office.dispatcher(alone=True)
    size = SLOTS[Work.TEAM]
    await here.wake(*team(size + 5))
    assert office.waiting() == 0
    await until(lambda: office.desk.most == size)
    office.desk.go.set()
    await here.wait_until_idle()
    assert office.desk.done == Counter(team(size + 5))
    assert office.desk.most == size


async def test_where_there_are_others_most_of_it_is_left_to_who_has_room(office: Office) -> None:
    here = await office.dispatcher()
    there = await office.dispatcher()
    await here.wake(*team(20))
    assert len(here.tasks) >= SLOTS[Work.TEAM] // 4
    await until(lambda: len(here.tasks) + len(there.tasks) == 20)
    assert there.tasks
    office.desk.go.set()
    await until(lambda: office.desk.done == Counter(team(20)))
    await until(lambda: office.waiting() == 0)


async def test_one_that_only_listens_leaves_all_of_it_to_those_who_work(office: Office) -> None:
    ear = await office.dispatcher(works=False)
    hand = await office.dispatcher()
    await ear.wake(*team(3), *team(3))
    await until(lambda: set(hand.tasks) == set(team(3)))
    assert not ear.tasks
    office.desk.go.set()
    await until(lambda: office.desk.done == Counter(team(3)))


async def test_what_a_turn_asks_is_shown_by_the_process_that_runs_it(office: Office) -> None:
    here = await office.dispatcher()
    turn, word = Job(Work.TURN, "c1"), Job(Work.DELIVER, "c1")
    await here.wake(*(Job(Work.DELIVER, f"d{number}") for number in range(SLOTS[Work.DELIVER] // 4)))
    await here.wake(turn, word)
    assert {turn, word} <= set(here.tasks)


async def test_what_another_process_has_at_hand_is_done_there_once_more_after(office: Office) -> None:
    [job] = team(1)

    async def refuse(_: Job) -> tuple[Job, ...]:
        raise LeasedElsewhere("p1")

    owner = await office.dispatcher()
    other = await office.dispatcher(handler=refuse)
    await owner.wake(job)
    await until(lambda: office.desk.at_work[job.key] == 1)
    await other.wake(job)
    await other.wait_until_idle()
    office.desk.go.set()
    await until(lambda: office.desk.done == {job: 2})
    assert office.desk.most_of_one == 1


async def test_what_is_woken_while_it_runs_runs_once_more(office: Office) -> None:
    here = await office.dispatcher()
    [job] = team(1)
    await here.wake(job)
    await until(lambda: office.desk.at_work[job.key] == 1)
    for _ in range(3):
        await here.wake(job)
    office.desk.go.set()
    await here.wait_until_idle()
    await until(lambda: office.desk.done == {job: 2})


async def test_a_job_that_a_dead_worker_had_goes_to_another(office: Office) -> None:
    here = await office.dispatcher()
    [job] = team(1)
    [dead] = office.rows(
        "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 minute') RETURNING id"
    )
    with office.engine.begin() as connection:
        begun = (
            "INSERT INTO procrastinate_jobs (queue_name, task_name, args, status, worker_id) "
            "VALUES ('team', 'work', jsonb_build_object('work', 'team', 'key', 'c0'), 'doing', :worker)"
        )
        connection.execute(text(begun), {"worker": dead.id})
    await here.find()
    office.desk.go.set()
    await until(lambda: office.desk.done == {job: 1})
    await until(lambda: office.waiting() == 0)


async def test_what_a_process_that_stops_had_fetched_leaves_no_job_behind(office: Office) -> None:
    leaving = await office.dispatcher()
    await leaving.wake(*team(8))
    await until(lambda: len(leaving.tasks) == 8)
    await leaving.close(0)
    assert not leaving.tasks
    assert office.waiting() == 0
    staying = await office.dispatcher()
    office.desk.go.set()
    await staying.find(*team(8))
    await until(lambda: office.desk.done == Counter(team(8)))


async def test_what_runs_continues_though_every_connection_is_lost(office: Office) -> None:
    here = await office.dispatcher()
    there = await office.dispatcher()
    await here.wake(*team(12))
    await until(lambda: len(here.tasks) + len(there.tasks) == 12)
    name = office.rows("SHOW application_name")[0][0]
    lost = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = :name AND pid <> pg_backend_pid()"
    )
    office.rows(lost, name=name)
    office.desk.go.set()
    await until(lambda: set(office.desk.done) == set(team(12)))
    await here.wake(*(Job(Work.TEAM, f"d{number}") for number in range(12)))
    await until(lambda: office.desk.done.total() >= 24)


async def test_one_person_has_so_much_at_work_and_the_next_begins_when_one_ends(office: Office) -> None:
    async def anas(_: Job) -> Queue:
        return Queue("ana", 2)

    here = await office.dispatcher(queue_of=anas)
    await here.wake(*(Job(Work.TURN, f"c{number}") for number in range(5)))
    await until(lambda: len(here.tasks) == 5)
    office.desk.go.set()
    await until(lambda: office.desk.done.total() == 5)
    assert office.desk.most == 2


async def test_a_flood_of_one_person_takes_no_place_from_another(office: Office) -> None:
    async def queue_of(job: Job) -> Queue:
        return Queue(job.key[0], 3)

    here = await office.dispatcher(queue_of=queue_of)
    await here.wake(*(Job(Work.TURN, f"a{number}") for number in range(SLOTS[Work.TURN] + 50)))
    many = (Job(Work.TURN, f"{person}1") for person in "bcdefghijklmnopqrstuvwxyz")
    await here.wake(*many)  # more than it does itself where there are others
    await until(lambda: all(office.desk.at_work[f"{person}1"] for person in "bcdefghijklmnopqrstuvwxyz"))
    assert sum(count for key, count in office.desk.at_work.items() if key[0] == "a") == 3


async def test_a_flood_of_wake_ups_takes_no_place_from_people(office: Office) -> None:
    people = {"c40"}

    async def queue_of(job: Job) -> Queue:
        return Queue("ana", 10) if job.key in people else WAKE_UPS

    here = await office.dispatcher(alone=True, queue_of=queue_of)
    await here.wake(*(Job(Work.TURN, f"c{number}") for number in range(60)))
    await until(lambda: office.desk.most == WAKE_UPS.max_running + 1)
    assert office.desk.at_work["c40"] == 1
    people.add("c59")  # who speaks where a wake-up waits is not left to wait with it
    await here.wake(Job(Work.TURN, "c59"))
    await until(lambda: office.desk.at_work["c59"] == 1)
    office.desk.go.set()
    await here.wait_until_idle()
    assert office.desk.done.total() == 60


async def test_a_worker_that_fails_says_so_and_begins_again_more_slowly_each_time(office: Office) -> None:
    pauses: asyncio.Queue[float] = asyncio.Queue()
    goes = asyncio.Semaphore(0)

    async def sleep(seconds: float) -> None:
        pauses.put_nowait(seconds)
        await goes.acquire()

    rename = "ALTER TABLE procrastinate_jobs RENAME COLUMN {} TO {}"
    with office.engine.begin() as connection:  # as a newer version of its library may
        connection.execute(text(rename.format("attempts", "tries")))
    here = await office.dispatcher(sleep=sleep)
    for expected in (1, 2, 4):
        assert [await pauses.get() for _ in range(3)] == [expected] * 3
        assert here.fault == "work can't be taken up, see the log: executions, posts, turns"
        if expected < 4:
            for _ in range(3):
                goes.release()
    with office.engine.begin() as connection:
        connection.execute(text(rename.format("tries", "attempts")))
    for _ in range(3):
        goes.release()
    others = await office.dispatcher(works=False)
    await others.wake(Job(Work.TURN, "c"), Job(Work.EXECUTE, "p"), *team(1))
    await until(lambda: here.fault is None)
    office.desk.go.set()
    await until(lambda: office.desk.done.total() == 3)
