"""Tables of CommonMark (GFM) for platforms that show none: as columns in a code block, or row by row. Pure.

Everything that a cell says is in it, with the address of each link.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import pyromark
from rich.cells import cell_len

from bot.domain.direction import isolate

MAX_WIDTH_CELLS = 80  # of a table in columns; a wider one is told row by row
MAX_COLUMNS = 40  # more than anyone reads; the parser would fill up every row of them
_READ = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH


@dataclass
class _Table:
    start: int  # in bytes, as `end`
    end: int
    alignments: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)


def is_too_wide(markdown: str) -> bool:
    """Return whether a table may have more columns than anyone reads."""
    return any(
        line.count("|") > MAX_COLUMNS and not line.strip("|:->0123456789.)+* \t")
        for line in markdown.splitlines()
    )


def lay_out_tables(markdown: str) -> str:
    """Return the text with each table in a form that people can read without a renderer of tables."""
    if "|" not in markdown or is_too_wide(markdown):
        return markdown
    data = markdown.encode(errors="replace")
    pieces, done = [], 0
    for table in _find_tables(pyromark.events_with_range(data.decode(), options=_READ)):
        begin = data.rfind(b"\n", 0, table.start) + 1
        margin = "".join(each if each in "> \t" else " " for each in data[begin : table.start].decode())
        lines = f"\n{margin}".join(_draw(table))
        pieces += [data[done : table.start].decode(), f"{lines}\n"]
        done = table.end
    return "".join([*pieces, data[done:].decode()])


def _find_tables(events: Any) -> Iterator[_Table]:
    table: _Table | None = None
    links: list[tuple[str, int]] = []
    for event, at in events:
        kind, about = next(iter(event.items())) if isinstance(event, dict) else (event, None)
        if kind == "Start" and isinstance(about, Mapping) and "Table" in about:
            table = _Table(at["start"], at["end"], about["Table"])
        elif table is None:
            continue
        elif event == {"End": "Table"}:
            yield table
            table = None
        elif kind == "Start" and about in ("TableHead", "TableRow"):
            table.rows.append([])
        elif kind == "Start" and about == "TableCell":
            table.rows[-1].append("")
        elif kind == "Start" and isinstance(about, Mapping) and "Link" in about:
            links.append((str(about["Link"]["dest_url"]), len(table.rows[-1][-1])))
        elif event == {"End": "Link"} and links:
            address, begun = links.pop()
            if table.rows[-1][-1][begun:] != address:
                table.rows[-1][-1] += f" ({address})"
        elif kind in ("Text", "Code", "InlineHtml"):
            table.rows[-1][-1] += str(about)
        elif kind in ("SoftBreak", "HardBreak"):
            table.rows[-1][-1] += " "


def _draw(table: _Table) -> list[str]:
    """Give the lines of a table: columns in a code block, or rows as paragraphs where it is too wide."""
    rows = [[isolate(cell.strip()) for cell in row] for row in table.rows]
    widths = [max(map(cell_len, cells)) for cells in zip_longest(*rows, fillvalue="")]
    if sum(widths) + 3 * (len(widths) - 1) > MAX_WIDTH_CELLS:
        return _tell_rows(rows)
    lines = [_in_columns(row, widths, table.alignments) for row in rows]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    return ["```", *(line.replace("```", "`\u200b``") for line in lines), "```"]


def _in_columns(row: Sequence[str], widths: Sequence[int], alignments: Sequence[str]) -> str:
    cells = []
    for cell, width, alignment in zip(row, widths, alignments, strict=False):
        room = " " * (width - cell_len(cell))
        cells.append(f"{room}{cell}" if alignment == "Right" else f"{cell}{room}")
    return " | ".join(cells).rstrip()


def _tell_rows(rows: Sequence[Sequence[str]]) -> list[str]:
    """Give each row as a paragraph: its cells in lines, each after the name of its column."""
    head, *below = rows
    lines = []
    for row in below:
        named = zip_longest(head, row, fillvalue="")
        cells = [
            f"**{_escape_cell(name)}:** {_escape_cell(cell)}" if name else _escape_cell(cell)
            for name, cell in named
            if cell
        ]
        lines += [f"{cell}  " for cell in cells] + [""]
    return lines[:-1] if below else [" | ".join(map(_escape_cell, head))]


def _escape_cell(text: str) -> str:
    return "".join(f"\\{each}" if each in "\\`*_[]<>|~" else each for each in text)
