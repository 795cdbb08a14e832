"""Spreadsheets of all kinds, as rows of values between tabs.

The library calamine reads the values. It does not give hidden rows, formulas without a value, comments, and
units such as "%". Of an XLSX file, `_inspect_workbook` reads these facts (`_SheetFacts`) first, from the XML
of the sheets. Names of elements (``v`` for a value, ``f`` for a formula, ``cellXfs``) are those of
SpreadsheetML (ECMA-376).
"""

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, NamedTuple

from lxml import etree  # type: ignore[import-untyped]

from bot.domain.attachments import ODS, XLSX
from bot.tools.documents import MAX_TEXT_CHARS
from bot.tools.reading.markup import find_all, find_child, local_name, parse_xml, read_attribute
from bot.tools.reading.open_document import read_content
from bot.tools.reading.report import Report, UnreadableError
from bot.tools.reading.unseen.sheet_styles import find_unseen_styles
from bot.tools.reading.zip_package import PROTECTED_TEXT, Package, find_main_part

_MAX_SHEETS = 100
_MAX_INSPECTED_ROWS = 400_000  # more than the text of a document can hold
_MAX_STYLES_IN_QUERY = 200
_MAX_COLUMNS = 16_384
_MAX_AREA_CELLS = 10_000_000  # the rectangle that holds a sheet's cells: calamine keeps it in full
_MAX_DISPLAYED_CELLS = 200_000  # cells whose text on the screen differs from their value
_MAX_NAMED_COLUMNS = 20  # hidden columns that a heading names
_OVERVIEW_SHARE = 10  # sheets get an overview if their text is more than the limit divided by this
_HEADINGS_CHARS = 2_000  # of a document's text, kept free for the headings of its sheets
_MAX_WHOLE_FLOAT = 10**15  # from there on a float does not hold every whole number
_PERCENT_IDS = frozenset({"9", "10"})  # the built-in formats 0% and 0.00%
_PERCENT_SIGN = re.compile(r"(?<![\\\"])%")  # not one that is escaped or quoted, and so plain text
# the unit in a number format, by an example of each form
_UNIT = re.compile(
    r"\[\$([^\]\-]+)(?:-[0-9A-Fa-f]+)?\]"  # [$EUR-407]
    r'|[0#?][\\\s]*"\s*([^"]+)"'  # 0 "kg"
    r'|"([^"]*[€$£¥₹₩₽][^"]*)"'  # "€" 0
    r"|([€$£¥])"
)
# XPath conditions of a cell. Of its children ``v`` is a value, ``is`` a text in the cell, ``f`` a formula.
_IS_ERROR = "@t='e'"
_IS_FORMULA_WITHOUT_VALUE = "*[local-name()='f'] and not(*[local-name()='v']/node())"
_HAS_VALUE = "*[local-name()='v' or local-name()='is']"
_IS_NOT_EMPTY = "*[local-name()='v' or local-name()='is' or local-name()='f']"
_CELL_NAME = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")  # B12
_THREAD_PLACEHOLDER = "[Threaded comment]"  # Excel's note to its older versions, next to the comment itself


@dataclass(slots=True)
class _SheetFacts:
    """The facts in the XML of a sheet in addition to its values. Rows and columns count from 0."""

    displayed: dict[tuple[int, int], str] = field(default_factory=dict)
    """Texts that people see in place of a value, by row and column."""
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    formulas_without_value: int = 0
    invisible_cells: int = 0
    """The number of cells whose style hides their value."""
    comments: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of a cell's name, such as B12, and the words."""
    last_row: int = 0
    """The last row that holds something."""
    last_column: int = 0
    """The last column that holds something."""


class _SheetText(NamedTuple):
    """The text of a sheet."""

    heading: str
    lines: list[str]  # its rows, then its comments


def read_workbook(data: bytes, kind: str, package: Package | None, report: Report) -> str:
    """Return every sheet as rows of values between tabs. Large sheets are cut so that each gets its share.

    ``kind``: the media type. ``package``: the parts of the file; None for XLS, which has none.
    """
    import python_calamine

    facts: dict[str, _SheetFacts] = {}
    if package is not None:
        _count_parts(package, report)
        if kind == XLSX:
            facts = _inspect_workbook(package)
        elif kind == ODS:
            _count_ods(package, report)
    try:
        book = python_calamine.CalamineWorkbook.from_filelike(BytesIO(data))
    except python_calamine.PasswordError:
        raise UnreadableError(PROTECTED_TEXT) from None
    texts = [
        _read_sheet(book, metadata, facts.get(metadata.name) or _SheetFacts(), report)
        for metadata in book.sheets_metadata[:_MAX_SHEETS]
    ]
    report.count_left_out("sheet", len(book.sheets_metadata) - len(texts))
    if any(text.lines for text in texts):
        return "\n".join(_cut_sheets(texts, report))
    return ""


def _read_sheet(book: Any, metadata: Any, facts: _SheetFacts, report: Report) -> _SheetText:
    import python_calamine

    is_hidden = metadata.visible != python_calamine.SheetVisibleEnum.Visible
    if is_hidden:
        report.count_hidden("hidden sheet")
    heading = f"[{'Hidden sheet' if is_hidden else 'Sheet'} {metadata.name}]"
    if metadata.typ != python_calamine.SheetTypeEnum.WorkSheet:
        report.count_left_out("sheet with a chart or macros")
        return _SheetText(heading, ["[Not read: it holds no cells.]"])
    if (facts.last_row + 1) * (facts.last_column + 1) > _MAX_AREA_CELLS:
        report.count_left_out("sheet of too large an area")
        return _SheetText(heading, ["[Not read: its cells are too far apart.]"])
    lines = list(_list_rows(book.get_sheet_by_name(metadata.name), facts, report))
    lines += [f"[Comment at {place}: {words}]" for place, words in facts.comments]
    report.count_left_out("formula without a value", facts.formulas_without_value)
    report.count_hidden("cell whose colour or format hides it", facts.invisible_cells)
    report.count_hidden("hidden row", len(facts.hidden_rows))
    report.count_hidden("hidden column", len(facts.hidden_columns))
    if facts.hidden_columns:
        columns = sorted(facts.hidden_columns)[:_MAX_NAMED_COLUMNS]
        letters = ", ".join(map(_column_letters, columns))
        heading += f" (hidden columns: {letters})"
    return _SheetText(heading, lines)


def _list_rows(sheet: Any, facts: _SheetFacts, report: Report) -> Iterator[str]:
    """Yield each row that holds something, within the limit of a document's text.

    calamine gives the rows from the first to the last that has a value. Texts that are displayed in place of
    a value may be in rows before or after these.
    """
    displayed_by_row: dict[int, dict[int, str]] = {}
    for (row, column), text in facts.displayed.items():
        displayed_by_row.setdefault(row, {})[column] = text
    start_row, start_column = sheet.start or (0, 0)
    end_row = start_row + (sheet.total_height if sheet.start else 0)

    def write_line(row: int, values: list[object], offset: int) -> str:
        """Return a row as it is read. ``offset``: the column of the first value."""
        line = _format_row(values, offset, displayed_by_row.get(row, {}))
        if line and row in facts.hidden_rows:
            return f"[hidden row] {line}"
        return line

    for row in sorted(row for row in displayed_by_row if row < start_row):
        yield write_line(row, [], 0)
    chars_left = MAX_TEXT_CHARS
    for row, values in enumerate(sheet.iter_rows(), start_row):
        line = write_line(row, values, start_column)
        if line:
            chars_left -= len(line)
            if chars_left < 0:
                report.count_left_out("row", end_row - row)
                return
            yield line
    for row in sorted(row for row in displayed_by_row if row >= end_row):
        yield write_line(row, [], 0)


def _format_row(values: list[object], offset: int, displayed: dict[int, str]) -> str:
    """Return the cells of a row, with tabs between them.

    ``offset``: the column of the first value. The columns before it have no value in any row; they are left
    out if nothing is displayed there. ``displayed``: texts in place of a value, by column.
    """
    cells = [""] * offset + [_format_value(value) for value in values]
    for column, text in displayed.items():
        cells += [""] * (column + 1 - len(cells))
        cells[column] = text
    if not any(cells[:offset]):
        cells = cells[offset:]
    return "\t".join(cells).rstrip()


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        if value.is_integer() and abs(value) < _MAX_WHOLE_FLOAT:
            return str(int(value))
        return repr(value)
    if isinstance(value, dt.timedelta):
        seconds = round(value.total_seconds())
        return f"{seconds // 3600}:{seconds % 3600 // 60:02}:{seconds % 60:02}"
    if isinstance(value, dt.datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return " / ".join(str(value).split("\n")).replace("\t", " ")


def _cut_sheets(texts: list[_SheetText], report: Report) -> list[str]:
    """Return the text of each sheet. The longest texts are cut, so that all texts fit the limit together.

    Several long sheets get an overview in front.
    """
    max_chars = MAX_TEXT_CHARS - _HEADINGS_CHARS
    sizes = [sum(len(line) + 1 for line in lines) for _, lines in texts]
    max_sheet_chars = _find_fair_share(sizes, max_chars)
    shares = []
    for heading, lines in texts:
        rows = _cut_rows(lines, max_sheet_chars)
        missing = len(lines) - len(rows)
        if missing:
            report.count_left_out("row", missing)
            rows.append(f"[{missing:,} more rows of this sheet are left out.]")
        shares.append("\n".join((heading, *rows)) + "\n")
    if len(texts) > 1 and sum(sizes) > max_chars // _OVERVIEW_SHARE:
        overview = ", ".join(f"{heading} {len(lines):,} rows" for heading, lines in texts)
        shares.insert(0, f"Sheets: {overview}")
    return shares


def _find_fair_share(sizes: list[int], total: int) -> int:
    """Return the largest size that each sheet may have so that all sheets fit in ``total``.

    The smallest come first: each takes what it needs, and the rest is shared by those that are left.
    """
    if sum(sizes) <= total:
        return total
    share = total
    for position, size in enumerate(sorted(sizes)):
        sizes_left = len(sizes) - position
        share = total // sizes_left
        if size > share:
            break
        total -= size
    return share


def _cut_rows(lines: list[str], max_chars: int) -> list[str]:
    """Return the first lines, as many as fit."""
    used = 0
    for position, line in enumerate(lines):
        used += len(line) + 1
        if used > max_chars:
            return lines[:position]
    return list(lines)


def _count_parts(package: Package, report: Report) -> None:
    """Count the content of a workbook that is not read."""
    report.count_left_out("picture", len(package.list_parts(r"xl/media/[^/]+")))
    report.count_left_out("chart", len(package.list_parts(r"xl/charts/chart[0-9]*\.xml")))
    report.count_left_out("embedded object", len(package.list_parts(r"xl/embeddings/[^/]+")))
    report.count_left_out("text box or shape", _count_shapes(package))
    if any(name.endswith("vbaProject.bin") for name in package.names):
        report.count_left_out("part with macros")
    report.count_left_out(
        "pivot table with its settings", len(package.list_parts(r"xl/pivotTables/[^/]+\.xml"))
    )
    has_xml_sheets = bool(package.list_parts(r"xl/worksheets/[^/]+\.xml"))
    if not has_xml_sheets:  # as in XLSB, whose comments are not read
        report.count_left_out("comment part", len(package.list_parts(r"xl/comments[^/]*")))


def _count_shapes(package: Package) -> int:
    count = 0
    for name in package.list_parts(r"xl/drawings/[^/]+\.xml"):
        count += len(find_all(parse_xml(package.read(name)), "sp"))
    return count


def _count_ods(package: Package, report: Report) -> None:
    for element in read_content(package).iter():
        match local_name(element):
            case "annotation":
                report.count_left_out("comment")
            case "table-row" if read_attribute(element, "visibility") in ("collapse", "filter"):
                report.count_hidden("hidden row")
            case "table-column" if read_attribute(element, "visibility") == "collapse":
                report.count_hidden("hidden column")
            case "image":
                report.count_left_out("picture")
            case "object":
                report.count_left_out("chart or embedded object")


def _inspect_workbook(package: Package) -> dict[str, _SheetFacts]:
    """Return the facts of each sheet, by its name."""
    main = find_main_part(package)
    relations = package.relations(main)
    style_parts = [part for kind, part in relations.values() if kind == "styles"]
    styles = package.read(style_parts[0]) if style_parts else b""
    units = _find_units(styles)
    invisible_styles = find_unseen_styles(styles)
    facts = {}
    for sheet in find_all(parse_xml(package.read(main)), "sheet"):
        _, part = relations.get(read_attribute(sheet, "id"), ("", ""))
        if part in package.names:
            facts[sheet.get("name", "")] = _inspect_sheet(package, part, units, invisible_styles)
    return facts


def _find_units(styles: bytes) -> list[str]:
    """Return for each cell style the unit that its number format adds: "%", a currency, "kg"; or "".

    ``styles``: the styles part of a workbook.
    """
    if not styles:
        return []
    root = parse_xml(styles)
    codes = {element.get("numFmtId"): element.get("formatCode", "") for element in find_all(root, "numFmt")}
    cell_styles = find_child(root, "cellXfs")
    if cell_styles is None:
        return []
    return [_find_unit(style.get("numFmtId", "0"), codes) for style in cell_styles]


def _find_unit(format_id: str, codes: dict[str, str]) -> str:
    """Return the unit of a number format. ``codes``: the formats that the workbook defines, by id."""
    code = codes.get(format_id, "")
    if format_id in _PERCENT_IDS or _PERCENT_SIGN.search(code):
        return "%"
    match = _UNIT.search(code)
    if match is None:
        return ""
    currency_code, unit_after_number, quoted_currency, currency = match.groups()
    return (currency_code or unit_after_number or quoted_currency or currency or "").strip()


@dataclass(frozen=True, slots=True)
class _RowQueries:
    """Compiled XPath queries of a row: libxml2 runs them much faster than a loop over the cells."""

    displayed_cells: etree.XPath  # the cells that display something else than their value
    invisible_count: etree.XPath  # the number of cells whose style hides their value
    last_cell: etree.XPath  # the last cell that is not empty

    @classmethod
    def compile(cls, units: list[str], invisible_styles: set[int]) -> "_RowQueries":
        styles_with_unit = [style for style, unit in enumerate(units) if unit]
        conditions = [_IS_ERROR, _IS_FORMULA_WITHOUT_VALUE]
        if styles_with_unit:
            conditions.append(_match_styles(styles_with_unit))
        invisible = _match_styles(sorted(invisible_styles)) or "false()"
        return cls(
            displayed_cells=etree.XPath(f"*[{' or '.join(conditions)}]"),
            invisible_count=etree.XPath(f"count(*[({invisible}) and {_HAS_VALUE}])"),
            last_cell=etree.XPath(f"*[{_IS_NOT_EMPTY}][last()]"),
        )


def _match_styles(styles: list[int]) -> str:
    """Return an XPath condition that holds for cells of these styles; empty without styles."""
    return " or ".join(f"@s='{style}'" for style in styles[:_MAX_STYLES_IN_QUERY])


def _inspect_sheet(package: Package, part: str, units: list[str], invisible_styles: set[int]) -> _SheetFacts:
    """Return the facts of a sheet; rows past `_MAX_INSPECTED_ROWS` are left out.

    ``part``: the name of the sheet's XML. ``units``: as `_find_units` returns them.
    """
    facts = _SheetFacts()
    queries = _RowQueries.compile(units, invisible_styles)
    row = -1
    events = etree.iterparse(
        BytesIO(package.read(part)),
        tag=("{*}row", "{*}col"),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
    )
    for _, element in events:
        if local_name(element) == "col":
            _inspect_column(element, facts)
            continue
        number = element.get("r", "")
        row = int(number) - 1 if number.isdecimal() else row + 1
        _inspect_row(element, row, facts, queries, units)
        # frees the elements that were read: lxml keeps each until its parent is gone
        element.clear()
        while element.getprevious() is not None:
            del element.getparent()[0]
        if row > _MAX_INSPECTED_ROWS:
            break
    facts.hidden_columns = {column for column in facts.hidden_columns if column <= facts.last_column}
    facts.comments = list(_list_comments(package, part))
    return facts


def _inspect_row(element: Any, row: int, facts: _SheetFacts, queries: _RowQueries, units: list[str]) -> None:
    last_cells = queries.last_cell(element)  # none or one
    if last_cells:
        facts.last_row = max(facts.last_row, row)
        facts.last_column = max(facts.last_column, _find_column(last_cells[0]))
        if element.get("hidden") in ("1", "true") or element.get("ht") == "0":
            facts.hidden_rows.add(row)
        facts.invisible_cells += int(queries.invisible_count(element))
    for cell in queries.displayed_cells(element):
        _inspect_cell(cell, facts, (row, _find_column(cell)), units)


def _inspect_column(element: Any, facts: _SheetFacts) -> None:
    if element.get("hidden") in ("1", "true") or element.get("width") == "0":
        first, last = int(element.get("min", 1)), int(element.get("max", 1))
        facts.hidden_columns.update(range(first - 1, min(last, _MAX_COLUMNS)))


def _find_column(cell: Any) -> int:
    """Return the column of a cell, from 0. A cell without a name follows the cell before it."""
    name = _CELL_NAME.fullmatch(cell.get("r", ""))
    if name:
        return _column_index(name[1])
    return sum(1 for _ in cell.itersiblings(preceding=True))


def _inspect_cell(cell: Any, facts: _SheetFacts, place: tuple[int, int], units: list[str]) -> None:
    """Record the text that a cell displays in place of its value. ``place``: its row and column."""
    formula = find_child(cell, "f")
    value = find_child(cell, "v")
    if value is None:
        value = find_child(cell, "is")  # a text in the cell itself
    if value is None or not "".join(value.itertext()):
        if formula is not None:
            facts.formulas_without_value += 1
            _set_displayed(facts, place, f"={formula.text or '…'} [no value]")
        return
    kind = cell.get("t", "n")  # "n" for a number, "e" for an error
    if kind == "e":
        _set_displayed(facts, place, value.text or "")
    style = cell.get("s", "0")
    unit = ""
    if style.isdecimal() and int(style) < len(units):
        unit = units[int(style)]
    if unit and kind == "n":
        _set_displayed(facts, place, _format_number(value.text or "", unit))


def _set_displayed(facts: _SheetFacts, place: tuple[int, int], text: str) -> None:
    if len(facts.displayed) < _MAX_DISPLAYED_CELLS:
        facts.displayed[place] = text


def _format_number(text: str, unit: str) -> str:
    try:
        number = float(text)
    except ValueError:
        return text
    if unit == "%":
        return f"{number * 100:.10g}%"
    return f"{_format_value(number)} {unit}"


def _list_comments(package: Package, part: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each cell that has a comment, and the words."""
    for kind, target in package.relations(part).values():
        if kind not in ("comments", "threadedComment") or target not in package.names:
            continue
        for element in parse_xml(package.read(target)).iter():
            if local_name(element) not in ("comment", "threadedComment"):
                continue
            words = " ".join("".join(element.itertext()).split())
            if words and not words.startswith(_THREAD_PLACEHOLDER):
                yield element.get("ref", ""), words


def _column_index(letters: str) -> int:
    """Return the index of a column from its letters: 0 for A, 26 for AA."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _column_letters(index: int) -> str:
    """Return the letters of a column from its index: A for 0, AA for 26."""
    letters = ""
    number = index + 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
