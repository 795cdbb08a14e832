"""Jupyter notebooks: JSON files of cells, each with its source and, if it was run, its outputs."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from bot.tools.reading.report import Report


def read_notebook(text: str, report: Report) -> str | None:
    """Return the cells and their outputs as text; None if the JSON is no notebook."""
    try:
        notebook = json.loads(text)
        if "cells" in notebook:
            cells = notebook["cells"]
        else:  # notebooks before version 4 have sheets
            cells = notebook["worksheets"][0]["cells"]
        lines: list[str] = []
        for number, cell in enumerate(cells, 1):
            lines += _read_cell(number, cell, report)
        return "\n".join(lines)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _read_cell(number: int, cell: Mapping[str, Any], report: Report) -> Iterator[str]:
    yield f"[Cell {number}, {cell['cell_type']}]\n{_join_lines(cell.get('source', cell.get('input', '')))}\n"
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        text = output.get("text", data.get("text/plain", ""))
        report.count_left_out("picture", sum(1 for kind in data if kind.startswith("image/")))
        report.count_left_out(
            "interactive output", sum(1 for kind in data if kind.startswith("application/"))
        )
        if "ename" in output:
            text = f"{output['ename']}: {output.get('evalue', '')}"
        if text:
            yield f"[Output]\n{_join_lines(text)}\n"
    for parts in (cell.get("attachments") or {}).values():
        report.count_left_out("picture", len(parts))


def _join_lines(lines: Any) -> str:
    if isinstance(lines, str):
        return lines
    return "".join(map(str, lines))
