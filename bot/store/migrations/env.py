"""Alembic's entry: runs the versions over the engine it was handed."""

from alembic import context

from bot.store import migrations
from bot.store.migrations.schema import SCHEMA

with context.config.attributes["engine"].begin() as connection:
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # all versions or none: the driver would commit each
    else:
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('nod schema'))")  # one at a time
    context.configure(
        connection=connection,
        target_metadata=SCHEMA,
        render_as_batch=True,
        compare_type=True,
    )
    migrations.adopt(connection, context.get_context().get_current_revision())
    context.run_migrations()
