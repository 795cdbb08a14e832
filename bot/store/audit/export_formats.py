"""The formats of exported files: JSON Lines, and CSV that spreadsheets open without running formulas."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bot.store.audit.search import EXPORTED


def format_jsonl(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as text with a line of JSON for each."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def format_csv(rows: Iterable[Mapping[str, Any]], names: Sequence[str] = EXPORTED) -> str:
    """Return rows as CSV with a header of ``names``.

    A cell that a spreadsheet would run as a formula begins with an apostrophe. Each cell is in quotation
    marks, so that a spreadsheet with another separator splits none. A byte-order mark comes first: without
    it, Excel reads other letters than ASCII in the code page of its computer.
    """
    return format_csv_head(names) + format_csv_lines(rows, names)


def format_csv_head(names: Sequence[str] = EXPORTED) -> str:
    """Return the byte-order mark and the header line."""
    out = io.StringIO()
    csv.DictWriter(out, fieldnames=names, quoting=csv.QUOTE_ALL).writeheader()
    return f"\ufeff{out.getvalue()}"


def format_csv_lines(rows: Iterable[Mapping[str, Any]], names: Sequence[str] = EXPORTED) -> str:
    """Return the lines of the rows, without the header."""
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=names, quoting=csv.QUOTE_ALL)
    for row in rows:
        writer.writerow({name: _format_cell(value) for name, value in row.items()})
    return out.getvalue()


class ExportFormat(NamedTuple):
    """A format of exported files."""

    head: str  # the beginning of a file
    write_rows: Callable[[Iterable[Mapping[str, Any]]], str]  # returns rows as text


FORMATS: Mapping[str, ExportFormat] = {
    "jsonl": ExportFormat("", format_jsonl),
    "csv": ExportFormat(format_csv_head(), format_csv_lines),
}
"""The formats of exported files, by name."""


def _format_cell(value: Any) -> Any:
    """Return a value as a cell that no spreadsheet runs as a formula; objects and lists as JSON."""
    if isinstance(value, dict | list):
        text = json.dumps(value, ensure_ascii=False)
    else:
        text = value
    if isinstance(text, str) and text[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{text}"
    return text
