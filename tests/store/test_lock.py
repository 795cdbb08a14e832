"""One process at a time works on a database, and another that changes its rows can wake it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import text

from bot.errors import SettingsError
from bot.store.database import Database, open_engine
from bot.store.lock import News, ProcessLock, ring

pytestmark = pytest.mark.slow


def test_a_second_process_is_refused_and_told_what_to_do(database_url: str) -> None:
    with ProcessLock.of(database_url):
        assert ProcessLock.of(database_url).taken()
        with pytest.raises(SettingsError, match="another nod is running on"), ProcessLock.of(database_url):
            pass
    assert not ProcessLock.of(database_url).taken()
    with ProcessLock.of(database_url):
        pass


def test_a_link_to_the_file_is_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "nod.db").touch()
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "other.db"
    link.symlink_to(tmp_path / "nod.db")
    with (
        ProcessLock.of(f"sqlite:///{tmp_path / 'nod.db'}"),
        pytest.raises(SettingsError, match="another nod is running on"),
        ProcessLock.of(f"sqlite:///{link}"),
    ):
        pass


def test_a_file_with_two_names_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nod.db").touch()
    (tmp_path / "twin.db").hardlink_to(tmp_path / "nod.db")
    with (
        pytest.raises(SettingsError, match=r"has 2 names \(hard links\)"),
        ProcessLock.of(f"sqlite:///{tmp_path / 'twin.db'}"),
    ):
        pass


async def _next(news: AsyncIterator[News]) -> News:
    async with asyncio.timeout(20):
        return await anext(news)


async def test_another_process_wakes_the_one_that_holds_the_lock(
    database: Database, database_url: str
) -> None:
    ring(database.engine)  # no one listens: nothing happens
    with ProcessLock.of(database_url) as lock:
        news = lock.watch()
        heard = asyncio.create_task(_next(news))
        await asyncio.sleep(0)
        ring(database.engine)
        assert await heard is News.RANG
    if database.dialect == "sqlite":
        file = database.engine.url.database
        assert not Path(f"{file}.wake").exists()  # noqa: ASYNC240 - a moment


async def test_something_else_in_the_bells_place_is_left_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'nod.db'}"
    (tmp_path / "nod.db.wake").write_text("mine")
    with ProcessLock.of(url) as lock:
        heard = asyncio.create_task(anext(lock.watch()))
        await asyncio.sleep(0)
        engine = open_engine(url)
        ring(engine)
        engine.dispose()
        heard.cancel()
        await asyncio.gather(heard, return_exceptions=True)
    assert (tmp_path / "nod.db.wake").read_text() == "mine"


def _cut(database: Database) -> None:
    """End the connection that holds the lock, as a restart of the server does."""
    with database.engine.begin() as connection:
        holders = (
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND "
            "((classid::bigint << 32) | objid::bigint) = hashtextextended('nod ' || current_schema(), 0)"
        )
        connection.execute(text(holders))


async def test_a_lost_lock_is_noticed_and_taken_again(database: Database, database_url: str) -> None:
    if database.dialect == "sqlite":
        pytest.skip("a file's lock cannot be lost")
    with ProcessLock.of(database_url) as lock:
        news = lock.watch()
        heard = asyncio.create_task(_next(news))
        await asyncio.sleep(0)
        await asyncio.to_thread(_cut, database)
        assert await heard is News.LOST
        assert await _next(news) is News.BACK
        assert await asyncio.to_thread(ProcessLock.of(database_url).taken)


async def test_where_another_process_took_the_lost_lock_this_one_stops(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if database.dialect == "sqlite":
        pytest.skip("a file's lock cannot be lost")
    monkeypatch.setattr("bot.store.lock._PAUSE", 0.01)
    with ProcessLock.of(database_url) as lock:
        news = lock.watch()
        heard = asyncio.create_task(_next(news))
        await asyncio.sleep(0)
        await asyncio.to_thread(_cut, database)
        assert await heard is News.LOST
        with ProcessLock.of(database_url), pytest.raises(SettingsError, match="another nod took over"):
            await _next(news)


def test_the_lock_of_a_missing_folder_is_one_line(tmp_path: Path) -> None:
    lock = ProcessLock.of(f"sqlite:///{tmp_path / 'no' / 'nod.db'}")
    assert not lock.taken()
    with pytest.raises(SettingsError, match="cannot write"), lock:
        pass
    assert not [*tmp_path.iterdir()]
