"""Tables of CommonMark (GFM) for platforms that show none: as columns in a code block, or row by row. Pure.

`lay_out_tables` parses the text with markdown-it, and replaces the tables in it. Each cell keeps all of its
text, with the address of each link. A rule of the parser, `_parse_and_note_place`, finds where each table is.
The parser is slow on hostile texts, so its work is bounded (`limit_brackets`, `has_too_many_columns`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block import table as read_table
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from rich.cells import cell_len

from bot.domain.text_direction import isolate_lines

MAX_WIDTH_CELLS = 80  # the width of a table in columns; a wider table is written row by row
MAX_BRACKETS = 500  # in a text; for each, the parser looks far ahead for the end of a link or picture
MAX_COLUMNS = 40  # more than anyone reads; the parser fills up each row to the number of columns
_BAR = re.compile(r"(?<!\\)\|")  # a bar between two cells, which no backslash escapes
_SEPARATOR = " | "
_RULE_CHARS = "|:- \t"  # the rule below a table's head
_MARGIN_CHARS = ">0123456789.)+*"  # before the rule, in a quote or in a list


@dataclass
class _Table:
    """A table in a text."""

    start: int  # the index of its first character in the text
    end: int  # the index behind its last character
    alignments: list[str] = field(default_factory=list)
    """The style of each column: empty, or such as ``text-align:right``."""
    rows: list[list[str]] = field(default_factory=list)  # the cells; the first row is the head


def limit_brackets(parser: MarkdownIt) -> MarkdownIt:
    """Make a parser leave the paragraphs and cells after `MAX_BRACKETS` brackets of a text unparsed.

    The parser takes some 300 steps for each bracket that nothing closes.
    """
    parser.core.ruler.before("inline", "limit_brackets", _leave_brackets)
    return parser


def _leave_brackets(state: StateCore) -> None:
    brackets = 0
    for token in state.tokens:
        if token.type == "inline":
            brackets += token.content.count("[")
            if brackets > MAX_BRACKETS:
                token.children = [Token("text", "", 0, content=token.content)]
                token.content = ""


def has_too_many_columns(markdown: str) -> bool:
    """Tell if a table may have more columns than `MAX_COLUMNS`, by the rule below its head."""
    for line in markdown.splitlines():
        is_rule = not line.strip(_RULE_CHARS + _MARGIN_CHARS)
        if is_rule and line.count("|") > MAX_COLUMNS:
            return True
    return False


def lay_out_tables(markdown: str) -> str:
    """Return the text with each table in a form that people can read where tables are not rendered."""
    if "|" not in markdown or has_too_many_columns(markdown):
        return markdown
    text = markdown.replace("\r\n", "\n").replace("\r", "\n")  # as the parser counts lines
    pieces = []
    done = 0
    for table in _find_tables(_PARSER.parse(text)):
        line_start = text.rfind("\n", 0, table.start) + 1
        # the marks of a quote are repeated at each line; the rest, such as a list's number, becomes spaces
        margin = re.sub(r"[^> \t]", " ", text[line_start : table.start])
        lines = f"\n{margin}".join(_format_table(table))
        pieces += [text[done : table.start], lines]
        done = table.end
    return "".join([*pieces, text[done:]])


def _parse_and_note_place(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - as the parser calls it
    """Read a table by the parser's own rule, and store its place in the text with its first token.

    It is called as a rule of the parser: ``start`` and ``end`` are lines, and with ``silent`` it only tells
    if a table begins there. A table with a row of more cells than columns is left as it is written, since the
    parser would drop the cells.
    """
    first = len(state.tokens)
    if not read_table(state, start, end, silent):
        return False
    if silent:
        return True
    columns = sum(token.type == "th_open" for token in state.tokens[first:])
    for line in range(start, state.line):
        row = state.src[state.bMarks[line] : state.eMarks[line]].strip(" \t>").strip("|")
        cells = len(_BAR.findall(row)) + 1
        if cells > columns:
            del state.tokens[first:]
            return False
    # bMarks and eMarks: the first and last index of each line; tShift: its indent
    place = state.bMarks[start] + state.tShift[start], state.eMarks[state.line - 1]
    state.tokens[first].meta["place"] = place
    return True


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    # "alt": the kinds of blocks that a table may interrupt, as for the parser's own rule
    parser.block.ruler.at("table", _parse_and_note_place, {"alt": ["paragraph", "reference"]})
    return limit_brackets(parser)


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
    """Return the text of a cell, with the address of each link."""
    text = ""
    links: list[tuple[str, int]] = []  # the open links: the address, and where the words begin
    for token in tokens:
        match token.type:
            case "link_open":
                links.append((str(token.attrs.get("href", "")), len(text)))
            case "link_close":
                address, start = links.pop()
                if text[start:] != address:
                    text += f" ({address})"
            case "softbreak" | "hardbreak":
                text += " "
            case "image":
                text += _read_cell(token.children or ())
            case _:
                text += token.content
    return text


def _format_table(table: _Table) -> list[str]:
    """Return the lines of a table: columns in a code block, or rows as paragraphs if it is too wide."""
    rows = [[isolate_lines(cell.strip()) for cell in row] for row in table.rows]
    widths = [max(map(cell_len, column)) for column in zip_longest(*rows, fillvalue="")]
    if sum(widths) + len(_SEPARATOR) * (len(widths) - 1) > MAX_WIDTH_CELLS:
        return _write_rows(rows)
    lines = [_write_columns(row, widths, table.alignments) for row in rows]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    harmless_lines = [line.replace("```", "`\u200b``") for line in lines]  # a cell must not end the block
    return ["```", *harmless_lines, "```"]


def _write_columns(row: Sequence[str], widths: Sequence[int], alignments: Sequence[str]) -> str:
    """Return a row as one line, each cell filled up to the width of its column."""
    cells = []
    for cell, width, alignment in zip(row, widths, alignments, strict=False):
        padding = " " * (width - cell_len(cell))
        cells.append(f"{padding}{cell}" if alignment.endswith("right") else f"{cell}{padding}")
    return _SEPARATOR.join(cells).rstrip()


def _write_rows(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return each row as a paragraph: its cells in lines, each after the name of its column."""
    head, *below = rows
    if not below:
        return [_SEPARATOR.join(map(_escape_cell, head))]
    lines = []
    for row in below:
        for name, cell in zip_longest(head, row, fillvalue=""):
            if not cell:
                continue
            label = f"**{_escape_cell(name)}:** " if name else ""
            lines.append(f"{label}{_escape_cell(cell)}  ")  # two spaces break the line in CommonMark
        lines.append("")
    return lines[:-1]


def _escape_cell(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~])", r"\\\1", text)
