"""The schema's history. `upgrade` brings a database to the newest version at every start."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine

HERE = Path(__file__).parent


def config(engine: Engine) -> Config:
    """Alembic's configuration for this database, without a file."""
    settings = Config()
    settings.set_main_option("script_location", str(HERE).replace("%", "%%"))
    settings.attributes["engine"] = engine
    return settings


def upgrade(engine: Engine) -> None:
    """Bring the schema to the newest version; does nothing where it is."""
    settings = config(engine)
    if current(engine) != newest(engine):
        command.upgrade(settings, "head")


def current(engine: Engine) -> str | None:
    """The version the database is at; None for an empty one."""
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def newest(engine: Engine) -> str | None:
    """The version this release knows."""
    return ScriptDirectory.from_config(config(engine)).get_current_head()


def known(engine: Engine) -> frozenset[str]:
    """Every version this release knows."""
    script = ScriptDirectory.from_config(config(engine))
    return frozenset(revision.revision for revision in script.walk_revisions())
