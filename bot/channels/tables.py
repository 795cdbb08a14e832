"""Tables of CommonMark (GFM) for platforms that show none: as columns in a code block, or row by row. Pure.

Everything that a cell says is in it, with the address of each link.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from rich.cells import cell_len

from bot.domain.direction import isolate

MAX_WIDTH_CELLS = 80  # of a table in columns; a wider one is told row by row
_BAR = re.compile(r"(?<!\\)\|")
MAX_BRACKETS = 500  # in a text: the parser takes each for a link or picture that it may close far below
MAX_COLUMNS = 40  # more than anyone reads; the parser would fill up every row of them


@dataclass
class _Table:
    start: int
    end: int
    alignments: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)


def bound_links(parser: MarkdownIt) -> MarkdownIt:
    """Have a parser leave paragraphs and cells as they were written, once a text has had `MAX_BRACKETS`.

    It takes some 300 steps for each bracket that nothing closes.
    """
    parser.core.ruler.before("inline", "bound_links", _leave_brackets)
    return parser


def _leave_brackets(state: StateCore) -> None:
    brackets = 0
    for token in state.tokens:
        if token.type == "inline":
            brackets += token.content.count("[")
            if brackets > MAX_BRACKETS:
                token.children = [Token("text", "", 0, content=token.content)]
                token.content = ""


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
    text = markdown.replace("\r\n", "\n").replace("\r", "\n")  # as the parser counts
    pieces, done = [], 0
    for found in _find_tables(_PARSER.parse(text)):
        begin = text.rfind("\n", 0, found.start) + 1
        margin = "".join(each if each in "> \t" else " " for each in text[begin : found.start])
        lines = f"\n{margin}".join(_draw(found))
        pieces += [text[done : found.start], lines]
        done = found.end
    return "".join([*pieces, text[done:]])


def _note_place(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - as the parser calls it
    """Read a table as the parser does, and note where in the text it is.

    A row with more cells than there are columns makes it none: the parser would drop them.
    """
    first = len(state.tokens)
    if not table(state, start, end, silent):
        return False
    if silent:
        return True
    columns = sum(token.type == "th_open" for token in state.tokens[first:])
    rows = (state.src[state.bMarks[line] : state.eMarks[line]] for line in range(start, state.line))
    if any(len(_BAR.findall(row.strip(" \t>").strip("|"))) >= columns for row in rows):
        del state.tokens[first:]
        return False
    place = state.bMarks[start] + state.tShift[start], state.eMarks[state.line - 1]
    state.tokens[first].meta["place"] = place
    return True


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.block.ruler.at("table", _note_place, {"alt": ["paragraph", "reference"]})
    return bound_links(parser)


_PARSER = _make_parser()


def _find_tables(tokens: Sequence[Token]) -> Iterator[_Table]:
    current: _Table | None = None
    for token in tokens:
        if token.type == "table_open":
            current = _Table(*token.meta["place"])
        elif current is None:
            continue
        elif token.type == "table_close":
            yield current
            current = None
        elif token.type == "tr_open":
            current.rows.append([])
        elif token.type in ("th_open", "td_open") and len(current.rows) == 1:
            current.alignments.append(str(token.attrs.get("style", "")))
        elif token.type == "inline":
            current.rows[-1].append(_read_cell(token.children or ()))


def _read_cell(tokens: Sequence[Token]) -> str:
    """Return what a cell says, with the address of each link."""
    text = ""
    links: list[tuple[str, int]] = []
    for token in tokens:
        match token.type:
            case "link_open":
                links.append((str(token.attrs.get("href", "")), len(text)))
            case "link_close":
                address, begun = links.pop()
                text += f" ({address})" if text[begun:] != address else ""
            case "softbreak" | "hardbreak":
                text += " "
            case "image":
                text += _read_cell(token.children or ())
            case _:
                text += token.content
    return text


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
        cells.append(f"{room}{cell}" if alignment.endswith("right") else f"{cell}{room}")
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
    if below:
        return lines[:-1]
    return [" | ".join(map(_escape_cell, head))]


def _escape_cell(text: str) -> str:
    return "".join(f"\\{each}" if each in "\\`*_[]<>|~" else each for each in text)
