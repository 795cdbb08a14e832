"""Plain SQL on a test's database: rows are looked at and altered without the store's own modules."""

from typing import Any

from sqlalchemy import create_engine, text


def sql(url: str, statement: str, **values: Any) -> list[dict[str, Any]]:
    """Run one statement in a transaction of its own, and give its rows by the names of their columns."""
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            result = connection.execute(text(statement), values)
            return [dict(row) for row in result.mappings()] if result.returns_rows else []
    finally:
        engine.dispose()
