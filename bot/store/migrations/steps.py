"""The steps from one version of the schema to the next, which Alembic takes."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine

_HERE = Path(__file__).parent


def config(engine: Engine) -> Config:
    """Alembic's configuration for this database, without a file."""
    settings = Config()
    settings.set_main_option("script_location", str(_HERE).replace("%", "%%"))
    settings.attributes["engine"] = engine
    return settings


def up(engine: Engine) -> None:
    """Take every step that the database lacks."""
    command.upgrade(config(engine), "head")
