"""Each file of tables is complete by itself: no other has to be imported first."""

import subprocess
import sys
from pathlib import Path

import pytest

import bot.store.tables

pytestmark = pytest.mark.slow

FILES = sorted(path.stem for path in Path(bot.store.tables.__path__[0]).glob("[a-z]*.py"))


_EACH_ALONE = """
import importlib, os, sys
from sqlmodel import SQLModel
for file in sys.argv[1:]:
    if os.fork() == 0:
        importlib.import_module(f"bot.store.tables.{file}")
        print(file, [key.column for table in SQLModel.metadata.tables.values() for key in table.foreign_keys])
        sys.exit()
    assert os.wait()[1] == 0, file
"""


def test_what_a_foreign_key_names_is_imported_with_it() -> None:
    done = subprocess.run([sys.executable, "-c", _EACH_ALONE, *FILES], capture_output=True, text=True)  # noqa: S603, PLW1510 - our own
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(FILES)


def test_the_schema_has_every_file_of_tables() -> None:
    look = (
        "import sys, bot.store.migrations.schema;"
        "print(*(m for m in sys.modules if m.startswith('bot.store.tables.')))"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)  # noqa: S603 - our own
    assert set(done.stdout.split()) == {f"bot.store.tables.{file}" for file in FILES}
