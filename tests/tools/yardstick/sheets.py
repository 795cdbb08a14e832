"""Spreadsheets, as Excel, its kin and exporters write them."""

import datetime as dt
import struct
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

from tests.tools.yardstick import Case
from tests.tools.yardstick.open_document import opened
from tests.tools.yardstick.word import RELATIONS, packed

SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def made(change: Callable[[Any], object]) -> Callable[[], bytes]:
    """A workbook of openpyxl's after a change."""

    def make() -> bytes:
        from openpyxl import Workbook  # type: ignore[import-untyped]

        book = Workbook()
        change(book)
        out = BytesIO()
        book.save(out)
        return out.getvalue()

    return make


def book(
    *sheets: str,
    states: tuple[str, ...] = (),
    styles: str = "",
    strings: str = "",
    more: dict[str, str | bytes] | None = None,
    main_kind: str = f"{KIND}.sheet.main+xml",
) -> bytes:
    """``sheets``: the XML inside each; they are called S1, S2 and so on."""
    states = states or ("visible",) * len(sheets)
    listed = "".join(
        f'<sheet name="S{at}" sheetId="{at}" state="{state}" r:id="s{at}"/>'
        for at, state in enumerate(states, 1)
    )
    relations = "".join(
        f'<Relationship Id="s{at}" Type="{RELATIONS}/worksheet" Target="worksheets/sheet{at}.xml"/>'
        for at in range(1, len(sheets) + 1)
    )
    relations += f'<Relationship Id="st" Type="{RELATIONS}/styles" Target="styles.xml"/><Relationship Id="ss" Type="{RELATIONS}/sharedStrings" Target="sharedStrings.xml"/>'
    package = "http://schemas.openxmlformats.org/package/2006"
    return packed({
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="{main_kind}"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r" Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{SHEET}" xmlns:r="{RELATIONS}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">{relations}</Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{SHEET}">{styles}</styleSheet>',
        "xl/sharedStrings.xml": f'<sst xmlns="{SHEET}">{strings}</sst>',
        **{f"xl/worksheets/sheet{at}.xml": f'<worksheet xmlns="{SHEET}">{inside}</worksheet>' for at, inside in enumerate(sheets, 1)},
        **(more or {}),
    })  # fmt: skip


def cell(place: str, value: str, form: str = "") -> str:
    return f'<c r="{place}" {form}><v>{value}</v></c>'


def words(place: str, text: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'


def data(*rows: str) -> str:
    return "<sheetData>" + "".join(rows) + "</sheetData>"


def row(number: int, *cells: str, form: str = "") -> str:
    return f'<row r="{number}" {form}>{"".join(cells)}</row>'


def _change(**cells: tuple[object, str]) -> Callable[[], bytes]:
    def change(workbook: Any) -> None:
        for place, (value, form) in cells.items():
            workbook.active[place] = value
            if form:
                workbook.active[place].number_format = form

    return made(change)


def binary() -> bytes:
    """A workbook of the binary kind, of one sheet with a word and a number."""

    def record(kind: int, body: bytes = b"") -> bytes:
        number = bytes([kind]) if kind < 128 else bytes([kind & 0x7F | 0x80, kind >> 7])
        size, length = b"", len(body)
        while True:
            size += bytes([length & 0x7F | (0x80 if length > 127 else 0)])
            length >>= 7
            if not length:
                return number + size + body

    def text(value: str) -> bytes:
        return struct.pack("<I", len(value)) + value.encode("utf-16-le")

    workbook = (
        record(131)
        + record(143)
        + record(156, struct.pack("<II", 0, 1) + text("s1") + text("Binary"))
        + record(144)
        + record(132)
    )
    rows = record(0, struct.pack("<IIHBBB", 0, 0, 300, 0, 0, 0) + struct.pack("<I", 0))
    cells = record(6, struct.pack("<II", 0, 0) + text("Packed words")) + record(
        5, struct.pack("<IId", 1, 0, 12.5)
    )
    sheet = (
        record(129)
        + record(148, struct.pack("<IIII", 0, 0, 0, 1))
        + record(145)
        + rows
        + cells
        + record(146)
        + record(130)
    )
    package = "http://schemas.openxmlformats.org/package/2006"
    return packed({
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.bin" ContentType="application/vnd.ms-excel.sheet.binary.macroEnabled.main"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r" Type="{RELATIONS}/officeDocument" Target="xl/workbook.bin"/></Relationships>',
        "xl/workbook.bin": workbook,
        "xl/_rels/workbook.bin.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="s1" Type="{RELATIONS}/worksheet" Target="worksheets/sheet1.bin"/></Relationships>',
        "xl/worksheets/sheet1.bin": sheet,
    })  # fmt: skip


def compound(name: str, content: bytes) -> bytes:
    """A compound file, as the old formats of Office are, with one stream."""
    content = content.ljust(4096, b"\0")
    content += bytes(-len(content) % 512)
    sectors = len(content) // 512
    fat = [0xFFFFFFFD, 0xFFFFFFFE, *range(3, 2 + sectors), 0xFFFFFFFE]
    fat += [0xFFFFFFFF] * (128 - len(fat))

    def entry(called: str, kind: int, child: int, start: int, size: int) -> bytes:
        coded = (called + "\0").encode("utf-16-le") if called else b""
        return (
            coded.ljust(64, b"\0")
            + struct.pack("<HBBIII", len(coded), kind, 1, 0xFFFFFFFF, 0xFFFFFFFF, child)
            + bytes(36)
            + struct.pack("<IQ", start, size)
        )

    head = (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
        + bytes(16)
        + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6)
        + bytes(6)
    )
    head += (
        struct.pack("<IIIIIIIII", 0, 1, 1, 0, 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0)
        + struct.pack("<I", 0)
        + b"\xff" * 432
    )
    folder = (
        entry("Root Entry", 5, 1, 0xFFFFFFFE, 0)
        + entry(name, 2, 0xFFFFFFFF, 2, len(content))
        + entry("", 0, 0xFFFFFFFF, 0, 0) * 2
    )
    return head + struct.pack("<128I", *fat) + folder + content


def old_workbook() -> bytes:
    """A workbook of Excel 97 with a word, a number and a hidden sheet."""

    def record(kind: int, body: bytes) -> bytes:
        return struct.pack("<HH", kind, len(body)) + body

    def label(text: str) -> bytes:
        return struct.pack("<HB", len(text), 0) + text.encode("latin-1")

    def begin(kind: int) -> bytes:
        return record(0x809, struct.pack("<HHHHII", 0x600, kind, 0, 0, 0, 0))

    def sheet(text: str) -> bytes:
        cells = record(0x204, struct.pack("<HHH", 0, 0, 0) + label(text)) + record(
            0x203, struct.pack("<HHHd", 0, 1, 0, 12.5)
        )
        return begin(0x10) + record(0x200, struct.pack("<IIHHH", 0, 1, 0, 2, 0)) + cells + record(0x0A, b"")

    first, second = sheet("Old words"), sheet("Behind")

    def boundary(at: int, hidden: int, name: str) -> bytes:
        return record(
            0x85, struct.pack("<IBB", at, hidden, 0) + struct.pack("<BB", len(name), 0) + name.encode()
        )

    size = len(begin(5)) + len(boundary(0, 0, "One")) + len(boundary(0, 1, "Two")) + 4
    top = begin(5) + boundary(size, 0, "One") + boundary(size + len(first), 1, "Two") + record(0x0A, b"")
    return compound("Workbook", top + first + second)


def cases() -> Iterator[Case]:
    yield Case(
        "xlsx plain", made(lambda b: b.active.append(["name", 12.5, 3])), ("[Sheet Sheet]", "name\t12.5\t3")
    )
    yield Case(
        "xlsx that says it is A1",
        lambda: book(
            '<dimension ref="A1"/>'
            + data(row(1, words("A1", "a"), words("B1", "b")), row(2, cell("A2", "7")))
        ),
        ("a\tb", "7"),
    )
    yield Case(
        "xlsx without places",
        lambda: book(
            data("<row><c t='inlineStr'><is><t>x</t></is></c><c><v>5</v></c></row><row><c><v>6</v></c></row>")
        ),
        ("x\t5", "6"),
    )
    yield Case(
        "xlsx empty formatted rows",
        lambda: book(
            data(
                *(row(n, '<c r="A1" s="0"/>'.replace("A1", f"A{n}")) for n in range(1, 5000)),
                row(5000, words("A5000", "The end")),
            )
        ),
        ("The end",),
    )
    yield Case(
        "xlsx large first sheet",
        made(lambda b: (_fill(b.active, 12_000), b.create_sheet("Last").append(["Last words"]))),
        ("Last words", "[Sheet Last]"),
        ("row",),
    )
    yield Case(
        "xlsx hidden row",
        lambda: book(data(row(1, words("A1", "seen")), row(2, words("A2", "filtered"), form='hidden="1"'))),
        ("seen", "[hidden row] filtered"),
        ("1 hidden row",),
    )
    yield Case(
        "xlsx hidden column",
        lambda: book(
            '<cols><col min="2" max="2" hidden="1"/></cols>'
            + data(row(1, words("A1", "seen"), words("B1", "cost")))
        ),
        ("hidden columns: B", "cost"),
        ("1 hidden column",),
    )
    yield Case(
        "xlsx hidden sheet",
        lambda: book(
            data(row(1, words("A1", "open"))),
            data(row(1, words("A1", "closed"))),
            states=("visible", "hidden"),
        ),
        ("[Sheet S1]", "[Hidden sheet S2]", "closed"),
        ("1 hidden sheet",),
    )
    yield Case(
        "xlsx very hidden sheet",
        lambda: book(
            data(row(1, words("A1", "open"))),
            data(row(1, words("A1", "closed"))),
            states=("visible", "veryHidden"),
        ),
        ("[Hidden sheet S2]",),
        ("1 hidden sheet",),
    )
    yield Case(
        "xlsx formula without a value",
        made(lambda b: b.active.append(["sum", "=1+1"])),
        ("=1+1 [no value]",),
        ("1 formula without a value",),
    )
    yield Case(
        "xlsx formula with its value",
        lambda: book(data(row(1, '<c r="A1"><f>1+1</f><v>2</v></c>'))),
        ("2",),
        never=("1+1",),
    )
    yield Case(
        "xlsx formula with a text",
        lambda: book(data(row(1, '<c r="A1" t="str"><f>A2</f><v>yes</v></c>'))),
        ("yes",),
    )
    yield Case("xlsx date", _change(A1=(dt.date(2026, 5, 5), "")), ("2026-05-05",))
    yield Case(
        "xlsx date as Germans write it", _change(A1=(dt.date(2026, 5, 5), "dd.mm.yyyy")), ("2026-05-05",)
    )
    yield Case(
        "xlsx date and time", _change(A1=(dt.datetime(2026, 5, 5, 10, 30), "")), ("2026-05-05 10:30:00",)
    )
    yield Case("xlsx time", _change(A1=(dt.time(8, 15), "")), ("08:15:00",))
    yield Case("xlsx more than a day", _change(A1=(dt.timedelta(hours=30), "[h]:mm")), ("30:00",))
    yield Case(
        "xlsx dates from 1904",
        lambda: book(
            data(row(1, cell("A1", "0", 's="1"'))),
            styles='<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>',
        ).replace(b"x", b"x"),
        ("00:00:00",),
    )
    yield Case("xlsx percent", _change(A1=(0.25, "0%"), A2=(0.125, "0.0%")), ("25%", "12.5%"))
    yield Case("xlsx euro", _change(A1=(1234.5, '#,##0.00 "€"')), ("1234.5 €",))
    yield Case("xlsx pounds by a code", _change(A1=(9, "[$£-809]#,##0.00")), ("9 £",))
    yield Case("xlsx euro before", _change(A1=(12.5, '"€" #,##0.00')), ("12.5 €",))
    yield Case("xlsx zloty", _change(A1=(12.5, '#,##0.00\\ "zł"')), ("12.5 zł",))
    yield Case("xlsx unit", _change(A1=(9, '0 "kg"')), ("9 kg",))
    yield Case("xlsx word before", _change(A1=(9, '"size "0')), ("9",), never=("size",))
    yield Case("xlsx dollar", _change(A1=(9.5, "$#,##0.00")), ("9.5 $",))
    yield Case("xlsx long number", _change(A1=(4111111111111111, "0")), ("4111111111111111",))
    yield Case("xlsx number as a text", _change(A1=("00123", "@")), ("00123",))
    yield Case("xlsx truth", _change(A1=(True, "")), ("TRUE",))
    yield Case(
        "xlsx fault in a cell",
        lambda: book(data(row(1, '<c r="A1" t="e"><f>1/0</f><v>#DIV/0!</v></c>'))),
        ("#DIV/0!",),
    )
    yield Case(
        "xlsx rich text",
        lambda: book(
            data(row(1, cell("A1", "0", 't="s"'))),
            strings='<si><r><t xml:space="preserve">half </t></r><r><t>bold</t></r></si>',
        ),
        ("half bold",),
    )
    yield Case(
        "xlsx phonetic",
        lambda: book(
            data(row(1, cell("A1", "0", 't="s"'))),
            strings='<si><t>東京</t><rPh sb="0" eb="2"><t>トウキョウ</t></rPh></si>',
        ),
        ("東京",),
    )
    yield Case("xlsx lines in a cell", _change(A1=("one\ntwo", "")), ("one / two",))
    yield Case(
        "xlsx odd style",
        lambda: book(
            data(row(1, cell("A1", "5", 's="99"'))),
            styles='<cellXfs><xf numFmtId="boom"/></cellXfs><fills><fill><patternFill patternType="odd"/></fill></fills>',
        ),
        ("5",),
    )
    yield Case(
        "xlsx merged",
        made(lambda b: (b.active.append(["Both", None, "c"]), b.active.merge_cells("A1:B1"))),
        ("Both\t\tc",),
    )
    yield Case("xlsx comment", made(_comment), ("Price", "Too high"))
    yield Case("xlsx begins below", made(lambda b: b.active.cell(5, 4, "Far")), ("Far",))
    yield Case(
        "xlsx stray cell at the end",
        made(lambda b: (b.active.append(["near"]), b.active.cell(1_048_576, 16_384, "far"))),
        ("Not read: its cells are too far apart",),
        ("area",),
    )
    yield Case(
        "xlsx picture",
        lambda: book(data(row(1, words("A1", "see"))), more={"xl/media/image1.png": b"x"}),
        ("see",),
        ("1 picture",),
    )
    yield Case(
        "xlsx chart",
        lambda: book(data(row(1, words("A1", "see"))), more={"xl/charts/chart1.xml": "<c/>"}),
        ("see",),
        ("1 chart",),
    )
    yield Case(
        "xlsx text box",
        lambda: book(
            data(row(1, words("A1", "see"))),
            more={
                "xl/drawings/drawing1.xml": '<x:wsDr xmlns:x="u"><x:sp><x:txBody>Boxed</x:txBody></x:sp></x:wsDr>'
            },
        ),
        ("see",),
        ("1 text box",),
    )
    yield Case(
        "xlsx with macros",
        lambda: book(
            data(row(1, words("A1", "sum"))),
            more={"xl/vbaProject.bin": b"x"},
            main_kind="application/vnd.ms-excel.sheet.macroEnabled.main+xml",
        ),
        ("sum",),
        ("macros",),
    )
    yield Case(
        "xlsx template",
        lambda: book(data(row(1, words("A1", "sum"))), main_kind=f"{KIND}.template.main+xml"),
        ("sum",),
    )
    yield Case("xlsx empty", made(lambda _book: None), fault="no text in it")
    yield Case("xlsx damaged", lambda: made(lambda b: b.active.append(["x"]))()[:400], fault="damaged")
    yield Case("xlsx in strict Open XML", lambda: _strict(), ("strict", "7"))
    yield Case(
        "xlsx of many cells",
        lambda: book(
            data(*(row(n, *(cell(f"{_column(c)}{n}", "1") for c in range(100))) for n in range(1, 3001)))
        ),
        ("1\t1",),
        ("row",),
    )
    yield Case("xlsb", binary, ("[Sheet Binary]", "Packed words\t12.5"))
    yield Case(
        "xls",
        old_workbook,
        ("[Sheet One]", "Old words\t12.5", "[Hidden sheet Two]", "Behind"),
        ("1 hidden sheet",),
    )
    yield Case("xls with a password", lambda: compound("EncryptedPackage", b"x"), fault="password")
    yield Case("doc of the old format", lambda: compound("WordDocument", b"Words"), fault="save it as .docx")
    yield Case(
        "ppt of the old format", lambda: compound("PowerPoint Document", b"Words"), fault="save it as .pptx"
    )
    yield Case("msg of Outlook", lambda: compound("__properties_version1.0", b"Words"), fault="Outlook")
    yield Case(
        "ods",
        lambda: opened(
            "spreadsheet",
            '<table:table table:name="T"><table:table-row><table:table-cell office:value-type="string"><text:p>Open</text:p></table:table-cell><table:table-cell office:value-type="float" office:value="2.5"><text:p>2,5</text:p></table:table-cell></table:table-row></table:table>',
        ),
        ("[Sheet T]", "Open\t2.5"),
    )
    yield Case(
        "ods hidden row and comment",
        lambda: opened(
            "spreadsheet",
            '<table:table table:name="T"><table:table-row table:visibility="collapse"><table:table-cell office:value-type="string"><office:annotation><text:p>Hm</text:p></office:annotation><text:p>Open</text:p></table:table-cell></table:table-row></table:table>',
        ),
        ("Open",),
        ("1 comment", "1 hidden row"),
    )
    yield Case(
        "ods hidden sheet",
        lambda: opened(
            "spreadsheet",
            '<table:table table:name="T" table:style-name="ta"><table:table-row><table:table-cell office:value-type="string"><text:p>Open</text:p></table:table-cell></table:table-row></table:table>',
            automatic='<style:style style:name="ta" style:family="table"><style:table-properties table:display="false"/></style:style>',
        ),
        ("[Hidden sheet T]",),
        ("1 hidden sheet",),
    )
    yield Case(
        "ods percent",
        lambda: opened(
            "spreadsheet",
            '<table:table table:name="T"><table:table-row><table:table-cell office:value-type="percentage" office:value="0.25"><text:p>25%</text:p></table:table-cell></table:table-row></table:table>',
        ),
        ("0.25",),
    )
    yield Case(
        "csv with semicolons",
        lambda: "Name;Preis\r\nGröße;1.234,50\r\n".encode("cp1252"),
        ("Größe;1.234,50",),
    )
    yield Case("csv with tabs", lambda: b"a\tb\r\n1,5\t2\r\n", ("1,5\t2",))
    yield Case("csv with a mark", lambda: "\ufeffa,b\r\n1,2\r\n".encode(), ("a,b",), never=("\ufeff",))
    yield Case("csv with lines in quotes", lambda: b'a,"one\ntwo",c\n', ('"one\ntwo"',))
    yield Case("csv of Excel's UTF-16", lambda: "a\tPreis\r\n1\t2 €\r\n".encode("utf-16"), ("2 €",))


def _fill(sheet: Any, rows: int) -> None:
    for number in range(rows):
        sheet.append([number, "a line that is long enough to fill what there is of room in the text"])


def _comment(workbook: Any) -> None:
    from openpyxl.comments import Comment  # type: ignore[import-untyped]

    workbook.active["A1"] = "Price"
    workbook.active["A1"].comment = Comment("Too high", "Ben")


def _column(index: int) -> str:
    return chr(65 + index) if index < 26 else chr(64 + index // 26) + chr(65 + index % 26)


def _strict() -> bytes:
    import zipfile

    plain = book(data(row(1, words("A1", "strict"), cell("B1", "7"))))
    with zipfile.ZipFile(BytesIO(plain)) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    return packed({
        name: text.replace(SHEET, "http://purl.oclc.org/ooxml/spreadsheetml/main").replace(RELATIONS, "http://purl.oclc.org/ooxml/officeDocument/relationships")
        for name, text in parts.items()
    })  # fmt: skip
