"""Several processes on one PostgreSQL do each thing once, and take over what one of them leaves."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from http import HTTPStatus
from itertools import count
from typing import Any, get_args

import httpx
import psycopg
import pytest
from sqlalchemy import event, text

from bot.app.app import App
from bot.app.assembly import build
from bot.approvals import decide
from bot.channels.connecting import PlatformWaits
from bot.domain.chat import Address, Answer, Message, Press, Reply
from bot.domain.events import (
    AnswerBegun,
    Ending,
    ProposalOpened,
    TextDelta,
    TextRestarted,
    ThoughtDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnDelayed,
    TurnEnded,
    TurnEvent,
    TurnFailed,
)
from bot.domain.jobs import Job, Work
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.errors import SettingsError
from bot.settings import Settings
from bot.store import conversations, processes, proposals, tokens, transcripts
from bot.store.locks.process_lock import notify_processes
from bot.tools.mcp.interface import Action, Elicited, Question
from bot.web.channel import HttpChannel
from tests.kit import Hold, ScriptedModel, World, call, lamp_tools, make_tables, says, until
from tests.kit.tables import OURS
from tests.kit.urls import POSTGRES_URL, plain, schema

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not POSTGRES_URL, reason="NOD_TEST_POSTGRES_URL names no PostgreSQL"),
]

ANA = Actor("http", "ana", "Ana")
_events = count(1)


class Processes:
    """Nods on one database, each with a model of its own, in one world."""

    def __init__(self, url: str, stack: contextlib.AsyncExitStack) -> None:
        self.url = url
        self.world = World()
        self.models: list[ScriptedModel] = []
        self._stack = stack

    async def start(self, settings: Mapping[str, Any] | None = None, **how: Any) -> App:
        self.models.append(ScriptedModel())
        given = {"NOD_DATABASE_URL": self.url, "NOD_PORT": 0, "NOD_ADMINS": "http:ana", **(settings or {})}
        app = build(
            Settings.load(**given),
            model=self.models[-1],
            toolsets=[lamp_tools(self.world)],
            **how,
        )
        await self._stack.enter_async_context(app.running(ticking=False))
        return app

    def all_say(self, *answers: Any) -> None:
        for model in self.models:
            model.answers.clear()
            model.will(*answers)

    @property
    def calls(self) -> int:
        """How often any model was asked."""
        return sum(len(model.transcripts) for model in self.models)


@pytest.fixture
async def nods() -> AsyncIterator[Processes]:
    with schema() as url:
        make_tables(url)
        async with contextlib.AsyncExitStack() as stack:
            yield Processes(url, stack)


async def test_a_process_ends_though_the_database_does_not_take_it_off_its_list(nods: Processes) -> None:
    async with contextlib.AsyncExitStack() as stack, asyncio.timeout(60):
        app = await Processes(nods.url, stack).start()
        rename = text("ALTER TABLE procrastinate_workers RENAME TO lost")
        await app.database.write(lambda s: s.execute(rename))


async def test_a_process_whose_work_cannot_be_taken_up_is_not_ready(nods: Processes) -> None:
    app = await nods.start()
    rename = "ALTER TABLE procrastinate_jobs RENAME COLUMN {} TO {}"
    job = "INSERT INTO procrastinate_jobs (queue_name, task_name) VALUES ('team', 'work')"

    async def readiness() -> httpx.Response:
        async with httpx.AsyncClient() as client:
            return await client.get(f"http://127.0.0.1:{app.web.port}/readyz")

    async def not_ready() -> str | None:
        answer = await readiness()
        return answer.json()["error"] if answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE else None

    async def ready() -> bool:
        return (await readiness()).status_code == HTTPStatus.OK

    assert await ready()
    # not in the loop itself: it would wait for a lock that a coroutine of this loop holds
    await app.database.write(lambda s: s.execute(text(rename.format("attempts", "tries"))))
    await app.database.write(lambda s: s.execute(text(job)))
    assert (await eventually(not_ready)).startswith("work can't be taken up, see the log: ")
    await app.database.write(lambda s: s.execute(text(rename.format("tries", "attempts"))))
    assert await eventually(ready)


async def say(app: App, words: str = "please", key: str = "1") -> Reply:
    return await app.core.assistant.handle(
        Message(Address("http", f"ana/{key}"), ANA, words, f"e{next(_events)}")
    )


async def press(app: App, proposal: Proposal, verb: Verb = Verb.APPROVE) -> Reply:
    return await app.core.assistant.handle(Press(ANA, verb, proposal.id))


async def eventually(look: Callable[[], Any]) -> Any:
    """What ``look`` gives, once it gives something."""
    async with asyncio.timeout(60):
        while not (found := await look()):  # noqa: ASYNC110 - what is waited for rings no bell
            await asyncio.sleep(0.01)
        return found


async def all_in(app: App, state: State) -> list[Proposal]:
    return await app.database.read(proposals.list_in_states, [state], 100)


async def said(app: App, key: str = "1") -> list[str]:
    found = await app.database.read(conversations.find_current_conversation, Address("http", f"ana/{key}"))
    assert found is not None
    transcript = await app.database.read(transcripts.read_transcript, found.id)
    assert transcript is not None
    return [line.text for line in transcript.lines]


async def test_what_one_is_told_another_does(nods: Processes) -> None:
    ear = await nods.start(works=False)
    hand = await nods.start(receives=False)
    nods.models[1].will(says("I will.", call("paint", lamp="desk", color="red")))
    await say(ear)
    [p] = await eventually(lambda: all_in(hand, State.PROPOSED))
    await press(ear, p)
    await eventually(lambda: all_in(ear, State.SUCCEEDED))
    assert await eventually(lambda: _answered(ear, 3)) == ["please", "I will.", "OK."]
    assert (len(nods.models[0].transcripts), len(nods.models[1].transcripts)) == (0, 2)
    assert len(nods.world.runs) == 1


async def _answered(app: App, lines: int) -> list[str] | None:
    found = await said(app)
    return found if len(found) == lines else None


async def test_two_that_both_look_for_work_run_each_turn_once(nods: Processes) -> None:
    first, second = await nods.start(), await nods.start()
    hold = Hold()
    for model in nods.models:
        model.rule = lambda _: says("I will.", call("paint", lamp="desk", color="red"), hold=hold)
    for key in "abcdef":
        await say(first, key=key)
    await hold.reached.wait()
    for _ in range(3):
        await asyncio.gather(
            first.core.recovery.recover(first.clock()), second.core.recovery.recover(second.clock())
        )
    hold.go.set()
    await eventually(lambda: _all(first, 6))
    assert nods.calls == 6


async def _all(app: App, many: int) -> bool:
    return len(await all_in(app, State.PROPOSED)) == many


async def test_a_press_of_one_card_in_two_processes_runs_it_once(nods: Processes) -> None:
    both = [await nods.start(), await nods.start()]
    nods.all_say(says("I will.", call("paint", lamp="desk", color="red")))
    await say(both[0])
    [p] = await eventually(lambda: all_in(both[0], State.PROPOSED))
    await asyncio.gather(*(press(app, p) for app in both for _ in range(5)))
    await eventually(lambda: all_in(both[0], State.SUCCEEDED))
    assert len(nods.world.runs) == 1


async def test_what_runs_though_its_lock_is_lost_lets_no_other_change_of_the_same_thing_begin(
    nods: Processes,
) -> None:
    """Its connection may end at any time, as when PostgreSQL is restarted."""
    one, other = [await nods.start(), await nods.start()]
    hold = nods.world.before["paint"] = Hold()
    nods.models[0].will(says("I will.", call("paint", lamp="desk", color="red")))
    await say(one)
    [first] = await eventually(lambda: all_in(one, State.PROPOSED))
    nods.models[1].will(says("I will.", call("paint", lamp="desk", color="blue")))
    await say(other, key="2")
    second = next(p for p in await eventually(partial(more, other, 1)) if p.id != first.id)
    await press(one, first)
    await hold.reached.wait()
    locks = f"FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND {OURS}"
    other.database.write_now(lambda s: s.execute(text(f"SELECT pg_terminate_backend(pid) {locks}")))
    await press(other, second)
    async with asyncio.timeout(30):
        await other.core.execution.start(second.id)
    assert [p.id for p in await all_in(other, State.APPROVED)] == [second.id]
    hold.go.set()
    await eventually(lambda: all_in(other, State.SUCCEEDED))
    await other.core.recovery.recover(other.clock())
    [again] = await eventually(lambda: all_in(other, State.PROPOSED))
    assert (again.id, again.preview[0].old_value) == (second.id, "red")


async def test_who_was_next_in_one_process_and_was_run_in_another_stands_in_no_ones_way(
    nods: Processes,
) -> None:
    one, other = [await nods.start(), await nods.start()]
    waiting = []
    for color in ("red", "blue", "green"):
        nods.models[0].will(says("I will.", call("paint", lamp="desk", color=color)))
        await say(one, key=color)
        await eventually(partial(more, one, len(waiting)))
        waiting += [p for p in await all_in(one, State.PROPOSED) if p not in waiting]
    red, blue, green = waiting
    for each in waiting:  # no one is woken: who runs what is this test's matter
        asked = Press(ANA, Verb.APPROVE, each.id)
        await one.database.write(decide.decide, asked, one.core.gate.policies, one.clock())
    hold = nods.world.before["paint"] = Hold()
    running = asyncio.create_task(one.core.execution.start(red.id))
    await hold.reached.wait()
    assert await one.core.execution.start(blue.id) == ()
    hold.go.set()
    assert Job(Work.EXECUTE, blue.id) in await running
    await other.core.execution.start(blue.id)
    await one.core.execution.start(green.id)
    # both would change what is red by now, so people are asked again
    assert {p.id for p in await all_in(one, State.PROPOSED)} == {blue.id, green.id}


async def more(app: App, than: int) -> list[Proposal]:
    found = await all_in(app, State.PROPOSED)
    return found if len(found) > than else []


async def test_a_stop_reaches_the_turn_that_runs_elsewhere(nods: Processes) -> None:
    ear = await nods.start(works=False)
    await nods.start(receives=False)
    hold = Hold()
    nods.models[1].will(says("Too late.", hold=hold))
    await say(ear)
    await hold.reached.wait()
    http: Any = ear.channels["http"]
    with http.broadcaster.listen("ana/1") as listener:
        assert await ear.core.assistant.stop(Address("http", "ana/1"), ANA) == "Stopped."
        async with asyncio.timeout(60):
            while not isinstance(event := (await listener.get())[0], TurnEnded):
                pass
    assert event.ending is Ending.STOPPED
    await say(ear, "and now?")
    assert await eventually(lambda: _answered(ear, 3)) == ["please", "and now?", "OK."]


async def test_who_begins_while_another_looks_for_others_is_told_things_from_then_on(nods: Processes) -> None:
    first = await nods.start()
    looked, go_on, over = threading.Semaphore(0), threading.Semaphore(0), threading.Event()

    def wait(_: Any) -> None:
        if threading.current_thread().name == "beats" and not over.is_set():
            looked.release()
            go_on.acquire()

    event.listen(first.database.engine, "commit", wait)
    wire: Any = first.cluster.wire  # type: ignore[attr-defined]
    try:
        await asyncio.to_thread(looked.acquire)  # and saw no one
        await nods.start()
        await eventually(lambda: asyncio.sleep(0, wire.pieces_received))
        go_on.release()
        await asyncio.to_thread(looked.acquire)  # once more: what it saw the first time has had its effect
        assert wire.has_others
    finally:
        over.set()
        go_on.release()


async def test_what_a_frozen_process_had_is_taken_over_and_its_late_answer_dropped(nods: Processes) -> None:
    frozen = await nods.start()
    hold = Hold()
    nods.models[0].will(says("Late.", hold=hold))
    await say(frozen)
    await hold.reached.wait()
    other = await nods.start()
    await eventually(lambda: _taken_over(other, frozen))
    assert await said(other) == ["please", "OK."]
    hold.go.set()
    await frozen.dispatcher.wait_until_idle()
    assert await said(other) == ["please", "OK."]


async def _taken_over(app: App, other: App) -> bool:
    """Time passes in which the other process gives no beat; whether its turn was answered here."""
    await app.database.write(processes.leave_process, other.process)
    await app.core.recovery.recover(app.clock())
    return "OK." in await said(app)


async def test_what_a_process_that_stops_leaves_is_done_by_another(nods: Processes) -> None:
    async with contextlib.AsyncExitStack() as stack:
        leaving = Processes(nods.url, stack)
        first = await leaving.start()
        hold = Hold()
        leaving.models[0].will(says("Never.", hold=hold))
        await say(first)
        await hold.reached.wait()
        second = await nods.start()
    assert await eventually(lambda: _answered(second, 2)) == ["please", "OK."]


async def test_many_that_start_on_an_empty_database_at_the_same_time_all_come_up(nods: Processes) -> None:
    apps = await asyncio.gather(*(nods.start() for _ in range(3)))
    await say(apps[0])
    assert await eventually(lambda: _answered(apps[2], 2)) == ["please", "OK."]


async def test_who_listens_in_one_process_follows_a_turn_that_runs_in_another(nods: Processes) -> None:
    ear = await nods.start(works=False)
    await nods.start(receives=False)
    http = ear.channels["http"]
    assert isinstance(http, HttpChannel)
    nods.models[1].will(
        says("Let me look.", call("look", lamp="desk")),
        says("I will.", call("paint", lamp="desk", color="red")),
    )
    with http.broadcaster.listen("ana/1") as listener:
        await say(ear)
        heard: list[Any] = []
        async with asyncio.timeout(60):
            while not heard or not isinstance(heard[-1], TurnEnded):
                item = await listener.get()
                assert item is not None
                heard.append(item[0] or item[1].type)
    kinds = [type(each) for each in heard if not isinstance(each, str)]
    text_ = "".join(each.text for each in heard if isinstance(each, TextDelta))
    assert text_ == "Let me look.\n\nI will."
    assert [kind for kind in kinds if kind is not TextDelta] == [
        AnswerBegun,
        ToolStarted,
        ToolFinished,
        AnswerBegun,
        ProposalOpened,
        TurnEnded,
    ]


async def test_who_listens_in_one_process_is_told_every_kind_of_event_and_more_after_an_unknown_one(
    nods: Processes,
) -> None:
    here, there = await nods.start(), await nods.start()
    speaks, listens = here.channels["http"], there.channels["http"]
    assert isinstance(listens, HttpChannel)
    cluster: Any = here.cluster
    cluster.peers.broadcast("turn", ["http", "ana/1", ["http", "ana", "Ana"], "OfANewerRelease", {}])
    events: list[TurnEvent] = [
        AnswerBegun("k1"),
        TurnDelayed("The model is busy."),
        TextDelta("a"),
        ThoughtDelta("Hm."),
        TextRestarted(),
        ToolStarted("c1", "look", "Look at the desk", {"lamp": "desk"}),
        ToolProgress("c1", "look", "half"),
        ToolFinished("c1", "look", ok=True, result="white"),
        TurnFailed("That went wrong.", 1),
        TurnEnded(Ending.DONE, 1, "a"),
    ]
    assert {type(each) for each in events} | {ProposalOpened} == set(get_args(TurnEvent))
    stream = speaks.open_stream(Address("http", "ana/1"), ANA)
    with listens.broadcaster.listen("ana/1") as listener:
        for each in events:
            await stream.send(each)
        async with asyncio.timeout(60):
            items = [await listener.get() for _ in events]
    assert [item and item[0] for item in items] == events


async def test_a_token_that_is_revoked_opens_nothing_in_any_process_and_its_streams_tell_no_more(
    nods: Processes,
) -> None:
    both = [await nods.start(), await nods.start()]
    token = await both[0].database.write(tokens.issue_token, "ana", ANA, both[0].clock())
    async with contextlib.AsyncExitStack() as stack:
        listening = []
        for app in both:
            given: Any = {"headers": {"Authorization": f"Bearer {token}"}, "timeout": 60}
            client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{app.web.port}", **given)
            client = await stack.enter_async_context(client)
            stream = await stack.enter_async_context(client.stream("GET", "/api/events"))
            listening.append((client, stream.aiter_lines()))
        nods.all_say(says("I will.", call("paint", lamp="desk", color="red")))
        await say(both[0])
        [p] = await eventually(lambda: all_in(both[0], State.PROPOSED))
        for _, lines in listening:
            while p.id not in await anext(lines):
                pass
        generations = [app.notifier.generation for app in both]
        await both[0].database.write(tokens.revoke_token, "ana", ANA, both[0].clock())
        notify_processes(both[0].database.engine)  # as `nod token revoke` does
        await eventually(lambda: _rang(both, generations))
        await press(both[0], p)
        for client, lines in listening:
            assert not [line async for line in lines if p.id in line]  # up to its end
            assert (await client.get("/api/proposals")).status_code == HTTPStatus.UNAUTHORIZED


async def _rang(apps: list[App], before: list[int]) -> bool:
    return all(app.notifier.generation > generation for app, generation in zip(apps, before, strict=True))


async def test_a_question_is_answered_in_a_process_that_does_not_ask_it(nods: Processes) -> None:
    asking, other = await nods.start(), await nods.start()
    p, answer = await asked(asking)
    await eventually(lambda: _knows(other, p))
    await sent(other, p)
    assert await answer == Elicited(Action.ACCEPT, {"color": "red"})


async def test_a_question_is_answered_in_a_process_that_began_after_it(nods: Processes) -> None:
    asking = await nods.start()
    p, answer = await asked(asking)
    other = await nods.start()
    await eventually(lambda: _knows(other, p))
    await sent(other, p)
    assert await answer == Elicited(Action.ACCEPT, {"color": "red"})


async def test_a_question_is_answered_in_a_process_that_was_cut_off_when_it_was_asked(
    nods: Processes,
) -> None:
    asking, other = await nods.start(), await nods.start()
    wire: Any = other.cluster.wire  # type: ignore[attr-defined]
    hears, missed = wire._handlers["question"], asyncio.Event()
    wire.on("question", lambda _: missed.set())
    p, answer = await asked(asking)
    await missed.wait()
    wire.on("question", hears)
    broken = text("SELECT pg_terminate_backend(:it)").bindparams(it=wire._listening.info.backend_pid)
    await asking.database.read(lambda s: s.execute(broken).all())
    await eventually(lambda: _knows(other, p))
    await sent(other, p)
    assert await answer == Elicited(Action.ACCEPT, {"color": "red"})


async def asked(app: App) -> tuple[Proposal, asyncio.Task[Elicited]]:
    """A server asks Ana in the middle of a call: the open question, and what the call waits for."""
    reply = await say(app)
    assert await eventually(lambda: _answered(app, 2))
    schema = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
    question = Question("lamps", "Which color?", str(reply.conversation_id), str(ANA), schema)
    answer = asyncio.create_task(app.questions.ask(question))
    [p] = await eventually(lambda: all_in(app, State.PROPOSED))
    return p, answer


async def sent(app: App, question: Proposal) -> None:
    given = {"color": "red"}
    answer = Press(ANA, Verb.APPROVE, question.id, question.round, arguments=given, digest=question.digest)
    reply = await app.core.assistant.handle(answer)
    assert reply.answer is Answer.ACCEPTED, reply


async def _knows(app: App, question: Proposal) -> bool:
    return question.tool_name in (await app.registry.load_tools()).tools


async def test_telegram_is_polled_by_one_and_taken_over_when_that_one_ends(nods: Processes) -> None:
    first, second = await nods.start(), await nods.start()
    cluster: Any = first.cluster
    follower: Any = second.cluster
    assert await cluster.lease("telegram")
    assert not await follower.lease("telegram")
    await first.database.write(processes.leave_process, first.process)
    assert await follower.lease("telegram")


async def test_what_a_platform_tells_one_process_to_wait_the_others_wait_too(nods: Processes) -> None:
    platforms = ("telegram", "slack", "discord")
    here, there = ({each: PlatformWaits(each) for each in platforms} for _ in range(2))
    for waits in (here, there):
        others = (await nods.start()).cluster.peers
        assert others is not None
        for each in waits.values():
            each.share(others)

    async def told() -> bool:
        for platform, waits in here.items():
            waits.note_wait(f"C1 of {platform}", 60)
        return all(waits.count_seconds_left(f"C1 of {platform}") > 0 for platform, waits in there.items())

    await eventually(told)
    assert there["slack"].count_seconds_left("C1 of discord") == 0


async def test_processes_with_other_settings_say_once_which_and_no_value(
    nods: Processes, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    printed: list[str] = []

    def told() -> list[str]:  # wherever the log goes
        printed.append(capsys.readouterr().out)
        lines = ("".join(printed) + caplog.text).splitlines()
        return [each for each in lines if "other settings" in each]

    odd = {"NOD_INSTRUCTIONS": "Be brief.", "NOD_ISSUES": False, "NOD_LOG_LEVEL": "error"}
    await nods.start()
    await nods.start(settings=odd)
    await until(lambda: len(told()) == 2)
    await nods.start()
    await until(lambda: len(told()) == 3)  # the second was told of such a one before
    for each in told():
        assert "['NOD_INSTRUCTIONS', 'NOD_ISSUES']" in each
        assert "Be brief" not in each


async def test_a_start_that_the_database_refuses_is_told_without_a_trace(nods: Processes) -> None:
    with psycopg.connect(plain(nods.url), autocommit=True) as other:
        other.execute("CREATE TYPE procrastinate_job_status AS ENUM ()")
        with pytest.raises(SettingsError, match=r"NOD_DATABASE_URL: .+ already exists; nod doctor"):
            await nods.start()
        other.execute("DROP TYPE procrastinate_job_status")
        await nods.start()
