"""The database's file moved, deleted, replaced or damaged under Nod: nothing runs, and words say why."""

import asyncio
import contextlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from sqlalchemy import make_url
from typer.testing import CliRunner

from bot.cli.main import main
from bot.errors import NodError
from tests.kit.urls import Urls
from tests.web.conftest import Serve, Served
from tests.web.scripted import ScriptedModel, ask

pytestmark = pytest.mark.usefixtures("only_on_sqlite")

MOVED = "was moved or replaced while Nod ran. Put it back, or restart Nod."
DAMAGED = "is damaged. Stop Nod, and restore a backup."


@pytest.fixture
def file(database_of: Urls) -> Path:
    return Path(make_url(database_of("here")).database or "")


def url(file: Path) -> str:
    return f"sqlite:///{file}"


def nod(file: Path, *words: str) -> Result:
    return CliRunner().invoke(main, words, env={"NOD_DATABASE_URL": url(file)})


def move(file: Path) -> Path:
    return file.rename(file.with_name("elsewhere.db"))


def size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def replace(file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file)) as there:
        there.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(file, file.with_name("copy.db"))
    file.with_name("copy.db").replace(file)


def damage(file: Path) -> None:
    """Overwrite where the tables of proposals and messages begin, as a failing disk may."""
    with contextlib.closing(sqlite3.connect(file)) as there:
        there.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        [size] = there.execute("PRAGMA page_size").fetchone()
        tables = "SELECT rootpage FROM sqlite_master WHERE name IN ('proposal', 'message')"
        pages = [page for (page,) in there.execute(tables)]
    with file.open("r+b") as disk:
        for page in pages:
            disk.seek((page - 1) * size)
            disk.write(b"\xa5" * size)
    with contextlib.closing(sqlite3.connect(file)) as there:
        there.execute("PRAGMA user_version = 7")  # pages in memory are read again


async def refused(nod: Served, proposal: dict[str, str], words: str) -> None:
    """A press is refused with these words, nothing runs, and the process isn't ready."""
    answer = await nod.press(proposal, "approve")
    assert answer.status_code == 503
    ready = await nod.client.get("/readyz")
    assert (ready.status_code, nod.notes.kept) == (503, [])
    assert words in ready.text
    said = await nod.client.post("/api/chat", json={"message": "and now?"})
    assert said.status_code == 503
    assert words in said.text


@pytest.mark.parametrize("lose", [move, replace, Path.unlink], ids=["moved", "replaced", "deleted"])
async def test_while_the_file_is_not_the_one_that_was_opened_nothing_runs(
    serve: Serve, file: Path, lose: Callable[[Path], object]
) -> None:
    model = ScriptedModel(ask(("keep", {"text": "a"})))
    async with serve(model=model, NOD_DATABASE_URL=url(file)) as nod:
        [proposal] = await nod.proposed()
        assert (await nod.client.get("/readyz")).status_code == 200
        lose(file)
        await refused(nod, proposal, MOVED)


async def test_once_the_file_is_back_everything_continues(serve: Serve, file: Path) -> None:
    model = ScriptedModel(ask(("keep", {"text": "a"})))
    async with serve(model=model, NOD_DATABASE_URL=url(file)) as nod:
        [proposal] = await nod.proposed()
        elsewhere = move(file)
        await refused(nod, proposal, MOVED)
        elsewhere.rename(file)
        assert (await nod.client.get("/readyz")).status_code == 200
        assert (await nod.press(proposal, "approve")).is_success
        await nod.idle()
        assert nod.notes.kept == ["a"]


@pytest.mark.parametrize("lose", [move, lambda file: file.write_bytes(b"")], ids=["moved", "emptied"])
async def test_a_start_without_the_database_that_was_there_is_a_question(
    serve: Serve, file: Path, lose: Callable[[Path], object]
) -> None:
    async with serve(NOD_DATABASE_URL=url(file)):
        pass
    lose(file)
    with pytest.raises(
        NodError, match=r"it is gone or empty\. Put it back\. For a new one, delete .*\.lock first"
    ):
        async with serve(NOD_DATABASE_URL=url(file)):
            pass
    assert size(file) == 0
    assert "is gone or empty" in nod(file, "db", "upgrade").output
    file.with_name(f"{file.name}.lock").unlink()
    async with serve(NOD_DATABASE_URL=url(file)) as fresh:
        assert (await fresh.client.get("/readyz")).status_code == 200


async def test_damaged_pages_end_the_work_and_are_told_by_every_command(serve: Serve, file: Path) -> None:
    model = ScriptedModel(ask(("keep", {"text": "a"})))
    async with serve(model=model, NOD_DATABASE_URL=url(file)) as running:
        [proposal] = await running.proposed()
        damage(file)
        assert (await running.press(proposal, "approve")).status_code == 503
        await refused(running, proposal, DAMAGED)
    copy = file.with_name("copy.db")
    result = nod(file, "db", "backup", str(copy))
    assert (result.exit_code, copy.exists()) == (1, False)
    assert "is damaged, so no copy was kept" in result.output
    assert "is damaged" in (await asyncio.to_thread(nod, file, "doctor")).output
    with pytest.raises(NodError, match="is damaged"):
        async with serve(NOD_DATABASE_URL=url(file)):
            pass
