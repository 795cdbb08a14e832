"""``make migration NAME=…``: write a new version of the schema.

A new database is brought to the newest version; Alembic compares it with the tables in the code, and writes a
version that makes the difference.
"""

import sys
import tempfile
from pathlib import Path

from alembic import command

from bot.store import migrations
from bot.store.engine import open_engine


def revise(name: str) -> Path:
    """Write the next version, and return the file."""
    with tempfile.TemporaryDirectory() as folder:
        engine = open_engine(f"sqlite:///{folder}/nod.db")
        settings = migrations.make_alembic_config(engine)
        command.upgrade(settings, "head")
        settings.set_main_option("truncate_slug_length", "60")
        number = f"{int(migrations.find_newest_version()) + 1:04}"
        made = command.revision(settings, name, autogenerate=True, rev_id=number)
        engine.dispose()
    if made is None or isinstance(made, list):
        raise RuntimeError("alembic wrote no version")
    return Path(made.path)


if __name__ == "__main__":
    print(revise(" ".join(sys.argv[1:])))  # noqa: T201 - who asked for it reads it
