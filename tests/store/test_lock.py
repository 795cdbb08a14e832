"""One process at a time works on a SQLite file."""

from pathlib import Path

import pytest

from bot.errors import SettingsError
from bot.store.lock import ProcessLock


def test_a_second_process_is_told_what_to_do(tmp_path: Path) -> None:
    with ProcessLock(tmp_path / "nod.db") as first:
        assert first.exclusive
        with (
            pytest.raises(SettingsError, match="another nod is running on"),
            ProcessLock(tmp_path / "nod.db"),
        ):
            pass
    with ProcessLock(tmp_path / "nod.db") as second:
        assert second.exclusive


def test_without_a_file_nothing_is_locked_and_nobody_is_alone() -> None:
    with ProcessLock(None) as lock:
        assert not lock.exclusive
