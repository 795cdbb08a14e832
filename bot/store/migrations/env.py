"""Alembic's entry: runs the versions over the engine it was handed."""

from alembic import context
from alembic.runtime.migration import MigrationInfo

from bot.store import migrations
from bot.store.migrations.schema import SCHEMA

ahead: list[str] = []  # the versions to come


def tell(ctx: object, step: MigrationInfo, heads: object, run_args: object) -> None:  # noqa: ARG001 - by name
    """Tell how many versions are done, after each."""
    context.config.attributes["progress"](ahead.index(str(step.up_revision_id)) + 1, len(ahead))


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
        on_version_apply=tell,
    )
    migrations.adopt(connection, context.get_context().get_current_revision())
    at = context.get_context().get_current_revision() or ""
    ahead += sorted(version for version in migrations.list_known_versions() if version > at)
    context.run_migrations()
