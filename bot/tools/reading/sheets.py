"""Spreadsheets of all kinds, their values read by calamine.

What calamine does not tell (hidden rows, formulas without a value, comments, percent) is read from the XML.
"""

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from lxml import etree  # type: ignore[import-untyped]

from bot.domain.attachments import ODS, XLSX
from bot.tools.documents import MAX_TEXT_CHARS
from bot.tools.reading.markup import attribute, local_name, parse_xml
from bot.tools.reading.open_document import read_content
from bot.tools.reading.packed import PROTECTED_TEXT, Package, main_part
from bot.tools.reading.report import Report, UnreadableError
from bot.tools.reading.unseen.sheet_styles import find_unseen_styles

_MAX_SHEETS = 100
_MAX_INSPECTED_ROWS = 400_000  # more than the room has
_MAX_TOLD_STYLES = 200
_MAX_COLUMNS = 16_384
_MAX_AREA_CELLS = 10_000_000  # of the rectangle that holds a sheet's cells: calamine keeps all of it
_MAX_SHOWN_CELLS = 200_000  # whose form differs from their value
_PERCENT_IDS = frozenset({9, 10})
_CURRENCY = re.compile(r'\[\$([^\]\-]+)(?:-[0-9A-Fa-f]+)?\]|"([^"]*[€$£¥₹₩₽zł][^"]*)"|([€$£¥])')
_REFERENCE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")


@dataclass(slots=True)
class _Sheet:
    """The facts of one sheet that are not its values; ``shown`` by row and column, from 0."""

    shown: dict[tuple[int, int], str] = field(default_factory=dict)
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    without_value: int = 0
    unseen: int = 0
    comments: list[tuple[str, str]] = field(default_factory=list)
    last: tuple[int, int] = (0, 0)


def read_workbook(data: bytes, kind: str, package: Package | None, report: Report) -> str:
    """Return every sheet as rows of values between tabs; a large one leaves room for the others."""
    import python_calamine

    facts: dict[str, _Sheet] = {}
    if package is not None:
        facts = _inspect_workbook(package, report) if kind == XLSX else {}
        _count_parts(package, report)
    if package is not None and kind == ODS:
        _count_ods(package, report)
    try:
        book = python_calamine.CalamineWorkbook.from_filelike(BytesIO(data))
    except python_calamine.PasswordError:
        raise UnreadableError(PROTECTED_TEXT) from None
    texts = [
        _read_sheet(book, each, facts.get(each.name) or _Sheet(), report)
        for each in book.sheets_metadata[:_MAX_SHEETS]
    ]
    report.leave_out("sheet", len(book.sheets_metadata) - len(texts))
    if any(lines for _, lines in texts):
        return "\n".join(_share(texts, report))
    return ""


def _read_sheet(book: Any, about: Any, facts: _Sheet, report: Report) -> tuple[str, list[str]]:
    """Return the heading of a sheet, and its lines."""
    import python_calamine

    is_hidden = about.visible != python_calamine.SheetVisibleEnum.Visible
    if is_hidden:
        report.reveal("hidden sheet")
    heading = f"[{'Hidden sheet' if is_hidden else 'Sheet'} {about.name}]"
    if about.typ != python_calamine.SheetTypeEnum.WorkSheet:
        report.leave_out("sheet with a chart or macros")
        return heading, ["[Not read: it holds no cells.]"]
    if (facts.last[0] + 1) * (facts.last[1] + 1) > _MAX_AREA_CELLS:
        report.leave_out("sheet of too large an area")
        return heading, ["[Not read: its cells are too far apart.]"]
    lines = list(_lines(book.get_sheet_by_name(about.name), facts, report))
    lines += [f"[Comment at {place}: {words}]" for place, words in facts.comments]
    report.leave_out("formula without a value", facts.without_value)
    report.reveal("cell whose colour or format hides it", facts.unseen)
    report.reveal("hidden row", len(facts.hidden_rows))
    report.reveal("hidden column", len(facts.hidden_columns))
    if facts.hidden_columns:
        letters = ", ".join(_letters(each) for each in sorted(facts.hidden_columns)[:20])
        heading += f" (hidden columns: {letters})"
    return heading, lines


def _lines(sheet: Any, facts: _Sheet, report: Report) -> Iterator[str]:
    """Yield the rows that say something, also what `_Sheet.shown` has past calamine's last cell."""
    start_row, start_column = sheet.start or (0, 0)
    room, number = MAX_TEXT_CHARS, start_row - 1
    shown: dict[int, dict[int, str]] = {}
    for (row, column), text in facts.shown.items():
        shown.setdefault(row, {})[column] = text
    for before in sorted(row for row in shown if row < start_row):
        yield _line(before, [], 0, shown, facts)
    for number, row in enumerate(sheet.iter_rows(), start_row):
        line = _line(number, row, start_column, shown, facts)
        if line:
            room -= len(line)
            if room < 0:
                report.leave_out("row", start_row + sheet.total_height - number)
                return
            yield line
    for after in sorted(row for row in shown if row > number):
        yield _line(after, [], 0, shown, facts)


def _line(number: int, row: list[object], first: int, shown: dict[int, dict[int, str]], facts: _Sheet) -> str:
    said = [""] * first + [_format_value(value) for value in row]
    for column, text in shown.get(number, {}).items():
        said += [""] * (column + 1 - len(said))
        said[column] = text
    line = "\t".join(said[first:] if not any(said[:first]) else said).rstrip()
    if line and number in facts.hidden_rows:
        return f"[hidden row] {line}"
    return line


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 10**15:
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


def _share(texts: list[tuple[str, list[str]]], report: Report) -> list[str]:
    """Cut the longest sheets so that every sheet has its part of the room."""
    room = MAX_TEXT_CHARS - 2_000
    sizes = [sum(len(line) + 1 for line in lines) for _, lines in texts]
    bound = room
    if sum(sizes) > room:
        left, rest = room, len(sizes)
        for size in sorted(sizes):
            bound = left // rest
            if size > bound:
                break
            left, rest = left - size, rest - 1
    told = []
    for heading, lines in texts:
        kept, used = [], 0
        for line in lines:
            used += len(line) + 1
            if used > bound:
                break
            kept.append(line)
        if len(kept) < len(lines):
            report.leave_out("row", len(lines) - len(kept))
            kept.append(f"[{len(lines) - len(kept):,} more rows of this sheet are left out.]")
        told.append("\n".join((heading, *kept)) + "\n")
    if len(texts) > 1 and sum(sizes) > room // 10:
        counted = ", ".join(f"{heading} {len(lines):,} rows" for heading, lines in texts)
        told.insert(0, f"Sheets: {counted}")
    return told


def _count_parts(package: Package, report: Report) -> None:
    report.leave_out("picture", len(package.list_parts(r"xl/media/[^/]+")))
    report.leave_out("chart", len(package.list_parts(r"xl/charts/chart[0-9]*\.xml")))
    report.leave_out("embedded object", len(package.list_parts(r"xl/embeddings/[^/]+")))
    report.leave_out("text box or shape", _count_shapes(package))
    if any(name.endswith("vbaProject.bin") for name in package.names):
        report.leave_out("part with macros")
    report.leave_out("pivot table with its settings", len(package.list_parts(r"xl/pivotTables/[^/]+\.xml")))
    if not package.list_parts(r"xl/worksheets/[^/]+\.xml"):
        report.leave_out("comment part", len(package.list_parts(r"xl/comments[^/]*")))


def _count_shapes(package: Package) -> int:
    drawings = (parse_xml(package.read(name)) for name in package.list_parts(r"xl/drawings/[^/]+\.xml"))
    return sum(local_name(each) == "sp" for drawing in drawings for each in drawing.iter())


def _count_ods(package: Package, report: Report) -> None:
    for each in read_content(package).iter():
        name = local_name(each)
        if name == "annotation":
            report.leave_out("comment")
        elif name == "table-row" and attribute(each, "visibility") in ("collapse", "filter"):
            report.reveal("hidden row")
        elif name == "table-column" and attribute(each, "visibility") == "collapse":
            report.reveal("hidden column")
        elif name in ("image", "object"):
            report.leave_out("picture" if name == "image" else "chart or embedded object")


def _inspect_workbook(package: Package, report: Report) -> dict[str, _Sheet]:
    main = main_part(package)
    relations = package.relations(main)
    styles = next((target for kind, target in relations.values() if kind == "styles"), "")
    forms = _forms(package.read(styles))
    unseen = find_unseen_styles(package.read(styles))
    found = {}
    for each in parse_xml(package.read(main)).iter():
        if local_name(each) == "sheet":
            part = relations.get(attribute(each, "id"), ("", ""))[1]
            if part in package.names:
                found[each.get("name", "")] = _inspect_sheet(package, part, forms, unseen)
    if len(package.read("xl/vbaProject.bin")) > 0 and not found:
        report.leave_out("part with macros")
    return found


def _forms(data: bytes) -> list[str]:
    """Return for each cell style: "%" for percent, the sign of a currency, or nothing."""
    if not data:
        return []
    root = parse_xml(data)
    codes = {
        each.get("numFmtId"): each.get("formatCode", "")
        for each in root.iter()
        if local_name(each) == "numFmt"
    }
    styles = next((each for each in root if local_name(each) == "cellXfs"), ())
    return [_form(each.get("numFmtId", "0"), codes) for each in styles]


def _form(number: str, codes: dict[str, str]) -> str:
    code = codes.get(number, "")
    if (number.isdecimal() and int(number) in _PERCENT_IDS) or re.search(r"(?<![\\\"])%", code):
        return "%"
    sign = _CURRENCY.search(code)
    if sign:
        return next(filter(None, sign.groups()), "").strip()
    return ""


def _inspect_sheet(package: Package, part: str, forms: list[str], unseen: set[int]) -> _Sheet:
    """Look at each row in libxml2: what is asked of a row is one expression, not a step for each cell."""
    sheet = _Sheet()
    telling = [str(at) for at, form in enumerate(forms) if form]
    styled = " or ".join(f"@s='{each}'" for each in telling[:_MAX_TOLD_STYLES])
    has_no_value = "*[local-name()='f'] and not(*[local-name()='v']/node())"
    conditions = " or ".join(filter(None, ("@t='e'", has_no_value, styled)))
    find_cells = etree.XPath(f"*[{conditions}]")
    hiding = " or ".join(f"@s='{each}'" for each in sorted(unseen)[:_MAX_TOLD_STYLES])
    count_unseen = etree.XPath(
        f"count(*[({hiding or 'false()'}) and *[local-name()='v' or local-name()='is']])"
    )
    find_last = etree.XPath("*[*[local-name()='v' or local-name()='is' or local-name()='f']][last()]")
    row = -1
    steps = etree.iterparse(
        BytesIO(package.read(part)),
        tag=("{*}row", "{*}col"),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
    )
    for _, element in steps:
        if local_name(element) == "col":
            _inspect_column(element, sheet)
            continue
        stated = element.get("r", "")
        row = int(stated) - 1 if stated.isdecimal() else row + 1
        filled = find_last(element)
        if filled:
            sheet.last = max(sheet.last[0], row), max(sheet.last[1], _column(filled[0]))
            if element.get("hidden") in ("1", "true") or element.get("ht") == "0":
                sheet.hidden_rows.add(row)
            sheet.unseen += int(count_unseen(element))
        for cell in find_cells(element):
            _inspect_cell(cell, sheet, (row, _column(cell)), forms)
        element.clear()
        while element.getprevious() is not None:
            del element.getparent()[0]
        if row > _MAX_INSPECTED_ROWS:
            break
    sheet.hidden_columns = {each for each in sheet.hidden_columns if each <= sheet.last[1]}
    sheet.comments = list(_comments(package, part))
    return sheet


def _inspect_column(element: Any, sheet: _Sheet) -> None:
    if element.get("hidden") in ("1", "true") or element.get("width") == "0":
        first, last = int(element.get("min", 1)), int(element.get("max", 1))
        sheet.hidden_columns.update(range(first - 1, min(last, _MAX_COLUMNS)))


def _column(cell: Any) -> int:
    """Return the column of a cell, from 0. A cell without a reference follows those before it."""
    place = _REFERENCE.fullmatch(cell.get("r", ""))
    if place:
        return _index(place[1])
    return sum(1 for _ in cell.itersiblings(preceding=True))


def _inspect_cell(cell: Any, sheet: _Sheet, place: tuple[int, int], forms: list[str]) -> None:
    """Note what a cell shows that its value does not say."""
    formula = next((each for each in cell if local_name(each) == "f"), None)
    value = next((each for each in cell if local_name(each) in ("v", "is")), None)
    if value is None or not "".join(value.itertext()):
        if formula is not None:
            sheet.without_value += 1
            _show(sheet, place, f"={formula.text or '…'} [no value]")
        return
    if cell.get("t") == "e":
        _show(sheet, place, value.text or "")
    style = cell.get("s", "0")
    if style.isdecimal() and int(style) < len(forms):
        form = forms[int(style)]
    else:
        form = ""
    if form and cell.get("t", "n") == "n":
        _show(sheet, place, _show_number(value.text or "", form))


def _show(sheet: _Sheet, place: tuple[int, int], text: str) -> None:
    if len(sheet.shown) < _MAX_SHOWN_CELLS:
        sheet.shown[place] = text


def _show_number(text: str, form: str) -> str:
    try:
        number = float(text)
    except ValueError:
        return text
    if form == "%":
        return f"{number * 100:.10g}%"
    return f"{_format_value(number)} {form}"


def _comments(package: Package, part: str) -> Iterator[tuple[str, str]]:
    for kind, target in package.relations(part).values():
        if kind in ("comments", "threadedComment") and target in package.names:
            for each in parse_xml(package.read(target)).iter():
                if local_name(each) in ("comment", "threadedComment"):
                    words = " ".join("".join(each.itertext()).split())
                    if words and not words.startswith("[Threaded comment]"):
                        yield each.get("ref", ""), words


def _index(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number - 1


def _letters(index: int) -> str:
    letters, index = "", index + 1
    while index:
        index, rest = divmod(index - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
