"""Alembic's entry: runs the versions over the engine it was handed."""

from alembic import context
from sqlmodel import SQLModel

import bot.store.issues
import bot.store.mcp
import bot.store.outputs
import bot.store.slack
import bot.store.tables  # noqa: F401 - registers its tables

with context.config.attributes["engine"].begin() as connection:
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # all versions or none: the driver would commit each
    else:
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('nod schema'))")  # one at a time
    context.configure(
        connection=connection,
        target_metadata=SQLModel.metadata,
        render_as_batch=True,
        compare_type=True,
    )
    context.run_migrations()
