"""One process at a time works on a file, and another that changes its rows can wake it."""

import asyncio
import errno
import fcntl
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.errors import SettingsError
from bot.store.engine import open_engine
from bot.store.locks.process_lock import FileLock, is_at_work, notify_processes


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "nod.db"


def test_a_second_process_is_refused_and_told_what_to_do(file: Path) -> None:
    with FileLock(file):
        assert is_at_work(f"sqlite:///{file}")
        with pytest.raises(SettingsError, match="another nod is running on"), FileLock(file):
            pass
    assert not is_at_work(f"sqlite:///{file}")
    with FileLock(file):
        pass


def test_a_link_to_the_file_is_the_same_file(file: Path) -> None:
    file.touch()
    (file.parent / "elsewhere").mkdir()
    link = file.parent / "elsewhere" / "other.db"
    link.symlink_to(file)
    with (
        FileLock(file),
        pytest.raises(SettingsError, match="another nod is running on"),
        FileLock(link),
    ):
        pass


def test_a_file_with_two_names_is_refused(file: Path) -> None:
    file.touch()
    twin = file.with_name("twin.db")
    twin.hardlink_to(file)
    with pytest.raises(SettingsError, match=r"has 2 names \(hard links\)"), FileLock(twin):
        pass


def test_a_folder_in_place_of_the_file_is_refused(file: Path) -> None:
    file.mkdir()
    with pytest.raises(SettingsError, match="is a folder"), FileLock(file):
        pass


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EIO])
def test_a_file_system_without_locks_is_told_as_that(
    file: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    (file.parent / "nod.db.lock").touch()
    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(SettingsError, match="a file system without locks"), FileLock(file):
        pass
    with pytest.raises(SettingsError, match="a file system without locks"):
        is_at_work(f"sqlite:///{file}")


def test_a_file_that_can_not_be_looked_at_is_told_as_that(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Path.stat

    def refuse(path: Path, **more: bool) -> os.stat_result:
        if path == file:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return look(path, **more)

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(SettingsError, match=r"cannot read .*nod\.db \(Input/output error\)"), FileLock(file):
        pass
    monkeypatch.undo()
    with FileLock(file):  # the lock was given back
        pass


def _ring(file: Path) -> None:
    engine = open_engine(f"sqlite:///{file}")
    notify_processes(engine)
    engine.dispose()


async def _next(signals: AsyncIterator[None]) -> None:
    async with asyncio.timeout(20):
        await anext(signals)


async def test_another_process_wakes_the_one_that_holds_the_lock(file: Path) -> None:
    _ring(file)  # no one listens: nothing happens
    with FileLock(file) as lock:
        heard = asyncio.create_task(_next(lock.wait_for_signals()))
        await asyncio.sleep(0)
        _ring(file)
        await heard
    assert not Path(f"{file}.wake").exists()  # noqa: ASYNC240 - a moment


async def test_something_else_in_the_bells_place_is_left_alone(file: Path) -> None:
    wake = file.with_name("nod.db.wake")
    wake.write_text("mine")
    with FileLock(file) as lock:
        heard = asyncio.create_task(_next(lock.wait_for_signals()))
        await asyncio.sleep(0)
        _ring(file)
        heard.cancel()
        await asyncio.gather(heard, return_exceptions=True)
    assert wake.read_text() == "mine"


def test_the_lock_of_a_missing_folder_is_one_line(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "no" / "nod.db")
    assert not lock.is_taken()
    with pytest.raises(SettingsError, match="cannot write"), lock:
        pass
    assert not [*tmp_path.iterdir()]
