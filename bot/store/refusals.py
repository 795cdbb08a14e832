"""The reason why a database can't be used, for people who start Nod."""

from bot.telemetry.outages import may_open_files

_ADVICE_BY_CODE = {
    "SQLITE_FULL": "Make room, then start again.",
    "SQLITE_READONLY": "Let Nod write this file and its folder, then start again.",
    "SQLITE_PERM": "Let Nod write this file and its folder, then start again.",
    "SQLITE_CANTOPEN": "Name a folder that exists and that Nod may write to, then start again.",
    "SQLITE_IOERR": "Look at its disk and at the quota there, then start again.",
    # PostgreSQL: disk full, read-only transaction, insufficient privilege
    "53100": "Make room on the disk of PostgreSQL, then start again.",
    "25006": "Name a PostgreSQL server that takes writes, then start again.",
    "42501": "Let the role of this address make and change tables, then start again.",
}
"""Advice for people on an error, by PostgreSQL's code or the beginning of SQLite's name of the error."""
_ADVICE_BY_WORDS = {
    "too many clients": "Give PostgreSQL more connections, or end others, then start again.",
    "connection slots": "Give PostgreSQL more connections, or end others, then start again.",
}
"""Advice for people on an error, by words in PostgreSQL's message."""
_POOLER_TEXT = "a pooler such as PgBouncer answers there. Name the PostgreSQL server itself"
_NO_FILES_TEXT = "Let this process open more files (ulimit -n), then start again."


def explain_refusal(error: object) -> str:
    """Return why the database can't be used, in a line that names the setting and says what to do.

    ``error``: the error of psycopg or sqlite3 itself, not of SQLAlchemy, which has it as ``orig`` or as its
    cause.
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    reason = lines[0].rstrip(".")
    if "unsupported startup parameter" in reason:
        reason = _POOLER_TEXT
    code = str(getattr(error, "sqlite_errorname", None) or getattr(error, "sqlstate", None) or "")
    if code.startswith("SQLITE_CANTOPEN") and not may_open_files():
        return f"NOD_DATABASE_URL: {reason}. {_NO_FILES_TEXT}"
    for beginning, advice in _ADVICE_BY_CODE.items():
        if code.startswith(beginning):
            return f"NOD_DATABASE_URL: {reason}. {advice}"
    for words, advice in _ADVICE_BY_WORDS.items():
        if words in reason:
            return f"NOD_DATABASE_URL: {reason}. {advice}"
    return f"NOD_DATABASE_URL: {reason}; nod doctor looks closer"
