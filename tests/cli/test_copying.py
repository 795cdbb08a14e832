"""``nod db copy``: refused where rows could be lost, and a password is never printed."""

import pytest

from bot.store.locks.process_lock import FileLock
from tests.cli.conftest import Shell

pytestmark = pytest.mark.slow


def test_a_database_is_copied_to_a_new_file(shell: Shell) -> None:
    shell.nod("db", "upgrade")
    done = shell.nod("db", "copy", "nod.db", "new.db")
    assert "The audit log verifies." in done.stdout
    assert (shell.folder / "new.db").exists()


def test_what_a_running_nod_works_on_is_not_copied(shell: Shell) -> None:
    shell.nod("db", "upgrade")
    with FileLock(shell.folder / "nod.db"):
        done = shell.nod("db", "copy", "nod.db", "new.db")
    assert done.stderr == "nod: nod.db: Nod is running on this database. Stop it first.\n"
    assert not (shell.folder / "new.db").exists()


def test_a_source_that_is_missing_is_named(shell: Shell) -> None:
    done = shell.nod("db", "copy", "gone.db", "new.db")
    assert done.stderr == "nod: there is no file gone.db here\n"
