"""A database of each released schema opens, and what waits in it is decided and carried out."""

import asyncio
import contextlib
import sqlite3
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlmodel import Session

from bot.app.app import App
from bot.app.assembly import build
from bot.domain.chat import Address, Message, Press
from bot.domain.people import LOCAL, Actor
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.settings import Settings
from bot.store import migrations, proposals
from bot.store.audit import verification
from tests.kit import FakeClock
from tests.tiers import MORE

pytestmark = pytest.mark.slow

FROZEN = Path(__file__).parent / "frozen"
BEN = Actor("http", "ben", "Ben")


def restored(release: str, folder: Path) -> str:
    """The URL of a file as that release left it."""
    file = folder / "nod.db"
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.executescript((FROZEN / f"schema_{release}.sql").read_text())
    file.chmod(0o600)
    return f"sqlite:///{file}"


async def in_state(app: App, state: State) -> list[Proposal]:
    return await app.database.read(proposals.list_in_states, [state], 100)


def newest(session: Session) -> datetime:
    return datetime.fromisoformat(f"{session.execute(text('SELECT max(at) FROM audit')).scalar()}+00:00")


def conversation_of_the_grant(session: Session) -> Address:
    found = session.execute(
        text(
            "SELECT channel, key FROM conversation WHERE id = "
            "(SELECT conversation_id FROM proposal WHERE grant_id = 1)"
        )
    ).one()
    return Address(*found)


async def undone_and_spared(app: App) -> None:
    """What was done in time is undone, and a rule with a condition still spares what it names."""
    at, handle = Address("http", "local/g"), app.core.assistant.handle
    done = [p for p in await in_state(app, State.SUCCEEDED) if p.description.startswith("Change assignee")]
    [p] = [p for p in done if p.undo_until is not None]
    reply = await handle(Press(LOCAL, Verb.UNDO, p.id))
    assert reply.text.startswith("Undoing it: "), reply
    await handle(Message(at, LOCAL, "set the priority of #2 to low", "e-low"))
    await app.dispatcher.wait_until_idle()
    assert (await app.database.read(proposals.get, p.id)).undone_by_name == "you"
    spared = [p for p in await in_state(app, State.SUCCEEDED) if "where priority in" in p.rule_text]
    assert [p.arguments for p in spared] == [{"number": 2, "priority": "low"}]


# one vote of two on the deletion, and a plan of a teammate
_LATER = ("shell_run", "update_issue", "remember", "schedule_task")  # of which a fact and a schedule
_WITH_ALL = (
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0014",
    "0015",
    "0016",
    "0017",
    "0018",
    "0019",
    "0020",
    "0021",
    "0022",
    "0023",
    "0024",
)
_BY_DAY = ("0015", _WITH_ALL[-1])
_WAITING: dict[str, Cause | None] = {"create_issue": None, "delete_issue": None, "plan_submit": None}


@pytest.mark.parametrize(
    ("release", "causes"),
    [
        ("0004", _WAITING),
        ("0007", _WAITING),
        # a command that was tried, and a batch of three
        ("0008", _WAITING | {"shell_run": None, "update_issue": None}),
        # each goes through the steps of all releases after it: by day some of them and the newest
        *(
            pytest.param(each, _WAITING | dict.fromkeys(_LATER), marks=[] if each in _BY_DAY else [MORE])
            for each in _WITH_ALL
        ),
    ],
)
async def test_what_waits_in_a_released_database_is_decided_and_done(
    release: str, causes: dict[str, Cause | None], tmp_path: Path, clock: FakeClock
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "a.txt").write_text("one\n")
    given = Settings.load(
        _env_file=None,
        NOD_DATABASE_URL=restored(release, tmp_path),
        NOD_PORT=0,
        NOD_ADMINS="http:local,http:ben",
        NOD_WORKSPACE=str(workspace),
        NOD_SHELL=True,
        NOD_TRIALS=True,
    )
    app = build(given, clock=clock)
    clock.now = app.database.read_now(newest) + timedelta(minutes=1)
    async with asyncio.timeout(60), app.running(ticking=False):
        found = await in_state(app, State.PROPOSED)
        assert {p.tool_name for p in found} == set(causes)
        for proposal in found:
            by = BEN if proposal.votes else LOCAL
            press = Press(by, Verb.APPROVE, proposal.id, proposal.round, digest=proposal.digest)
            reply = await app.core.assistant.handle(press)
            assert reply.text.startswith("Approved."), reply
        await app.dispatcher.wait_until_idle()
        ended = [await app.database.read(proposals.get, proposal.id) for proposal in found]
        assert {p.tool_name: p.cause for p in ended if p} == causes
        there = await app.database.read(conversation_of_the_grant)
        await app.core.assistant.handle(Message(there, LOCAL, "comment on #1 'more'", "e-new"))
        await app.dispatcher.wait_until_idle()
        allowed = [p for p in await in_state(app, State.SUCCEEDED) if p.grant_id == 1]
        assert len(allowed) == (1 if Cause.TOOL_CHANGED in causes.values() else 2)
        if "shell_run" in causes:
            assert (workspace / "a.txt").read_text() == "one\ntwo\n"
            await undone_and_spared(app)
        assert await app.database.read(verification.find_faults_in_session) == []


def test_every_released_schema_has_its_frozen_file() -> None:
    frozen = {file.stem.removeprefix("schema_") for file in FROZEN.glob("schema_*.sql")}
    released = {file.stem[:4] for file in Path(migrations.__path__[0], "versions").glob("0*.py")}
    assert released - frozen <= {max(released)}  # the newest may not be released yet
