"""The script that Alembic executes for each command: it runs the versions over the configured engine.

All versions run in one transaction, on SQLite too, so an upgrade happens fully or not at all. The engine is
in the configuration that `migrations.config` makes.
"""

from alembic import context
from alembic.runtime.migration import MigrationInfo

from bot.store import migrations
from bot.store.migrations.schema import SCHEMA

ahead: list[str] = []  # the versions to run, in their order


def report_version(  # Alembic calls it after each version, with these names
    ctx: object,  # noqa: ARG001
    step: MigrationInfo,
    heads: object,  # noqa: ARG001
    run_args: object,  # noqa: ARG001
) -> None:
    """Report how many versions are done."""
    context.config.attributes["progress"](ahead.index(str(step.up_revision_id)) + 1, len(ahead))


with context.config.attributes["engine"].begin() as connection:
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # otherwise the driver would commit each statement
    else:
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('nod schema'))")  # one at a time
    context.configure(
        connection=connection,
        target_metadata=SCHEMA,
        render_as_batch=True,
        compare_type=True,
        on_version_apply=report_version,
    )
    migrations.adopt(connection, context.get_context().get_current_revision())
    at = context.get_context().get_current_revision() or ""
    ahead += sorted(version for version in migrations.list_known_versions() if version > at)
    context.run_migrations()
