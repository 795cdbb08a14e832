"""Word documents, as Word and its kin write them."""

import zipfile
from collections.abc import Iterator, Mapping
from io import BytesIO

from tests.tools.yardstick import Case

MAIN = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STRICT_RELATIONS = "http://purl.oclc.org/ooxml/officeDocument/relationships"
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml"
BY = 'w:id="1" w:author="Ben" w:date="2026-01-01T00:00:00Z"'
SPACES = (
    f'xmlns:w="{MAIN}" xmlns:r="{RELATIONS}" xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    ' xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"'
    ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    ' xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture"'
    ' xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    ' xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office"'
)


def packed(parts: Mapping[str, str | bytes]) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return out.getvalue()


def document(
    body: str,
    parts: Mapping[str, tuple[str, str]] | None = None,
    *,
    main: str = "document",
    kind: str = f"{WORD}.document.main+xml",
    more: Mapping[str, bytes] | None = None,
    more_relations: str = "",
) -> bytes:
    """``parts``: by the name of a part in ``word/``: its content type's last word and its text."""
    parts = dict(parts or {})
    types = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{WORD}.{what}+xml"/>'
        for name, (what, _) in parts.items()
    )
    relations = "".join(
        f'<Relationship Id="{name}" Type="{RELATIONS}/{what}" Target="{name}.xml"/>'
        for name, (what, _) in parts.items()
    )
    return packed({
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/><Default Extension="png" ContentType="image/png"/>'
        '<Default Extension="bin" ContentType="application/octet-stream"/>'
        f'<Override PartName="/word/{main}.xml" ContentType="{kind}"/>{types}</Types>',
        "_rels/.rels": _relations(
            f'<Relationship Id="rId1" Type="{RELATIONS}/officeDocument" Target="word/{main}.xml"/>'
        ),
        f"word/{main}.xml": f"<w:document {SPACES}><w:body>{body}</w:body></w:document>",
        f"word/_rels/{main}.xml.rels": _relations(relations + more_relations),
        **{f"word/{name}.xml": text for name, (_, text) in parts.items()},
        **(more or {}),
    })  # fmt: skip


def _relations(inside: str) -> str:
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{inside}</Relationships>'


def _old_choice(number: str) -> str:
    """A list of an old form between its marks."""
    result = f'<w:result w:val="{number}"/>' if number else ""
    entries = '<w:listEntry w:val="No"/><w:listEntry w:val="Maybe"/>'
    begin = f'<w:fldChar w:fldCharType="begin"><w:ffData><w:ddList>{result}{entries}</w:ddList></w:ffData></w:fldChar>'
    code = "<w:r><w:instrText> FORMDROPDOWN </w:instrText></w:r>"
    return f'<w:p>{run("Answer: ")}<w:r>{begin}</w:r>{code}<w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>'


def paragraph(text: str, form: str = "") -> str:
    return f"<w:p>{run(text, form)}</w:p>"


def run(text: str, form: str = "") -> str:
    return f'<w:r><w:rPr>{form}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def strict() -> bytes:
    plain = document(
        paragraph("Strict words")
        + "<w:tbl><w:tr><w:tc><w:p>"
        + run("in a cell")
        + "</w:p></w:tc></w:tr></w:tbl>"
    )
    out = {}
    with zipfile.ZipFile(BytesIO(plain)) as archive:
        for name in archive.namelist():
            out[name] = archive.read(name).decode().replace(MAIN, STRICT).replace(RELATIONS, STRICT_RELATIONS)
    return packed(out)


def _part(tag: str, inside: str) -> str:
    return f"<w:{tag} {SPACES}>{inside}</w:{tag}>"


def _notes(tag: str, words: str) -> str:
    one = tag.removesuffix("s")
    return _part(tag, f'<w:{one} w:id="5">{paragraph(words)}</w:{one}>')


def _drawing(inside: str, about: str = "") -> str:
    return (
        f'<w:r><w:drawing><wp:inline><wp:docPr id="1" name="x" {about}/>'
        f'<a:graphic><a:graphicData uri="u">{inside}</a:graphicData></a:graphic></wp:inline></w:drawing></w:r>'
    )


def _table(*rows: tuple[str, ...]) -> str:
    cells = ("".join(f"<w:tc>{each}</w:tc>" for each in row) for row in rows)
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"


def _field(code: str, shown: str) -> str:
    return (
        '<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r>'
        f"<w:r><w:instrText>{code}</w:instrText></w:r>"
        '<w:r><w:fldChar w:fldCharType="separate"/></w:r>'
        f'{run(shown)}<w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>'
    )


TEXT_BOX = (
    '<mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:anchor><wp:docPr id="1" name="x"/><a:graphic>'
    f'<a:graphicData uri="u"><wps:wsp><wps:txbx><w:txbxContent>{paragraph("Boxed words")}</w:txbxContent></wps:txbx>'
    "</wps:wsp></a:graphicData></a:graphic></wp:anchor></w:drawing></mc:Choice><mc:Fallback><w:pict><v:textbox>"
    f"<w:txbxContent>{paragraph('Boxed words')}</w:txbxContent></v:textbox></w:pict></mc:Fallback></mc:AlternateContent>"
)
PICTURE = '<pic:pic><pic:blipFill><a:blip r:embed="img"/></pic:blipFill></pic:pic>'
CHART = '<c:chart xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" r:id="chart1"/>'
ART = '<dgm:relIds xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" r:dm="data1"/>'


def _insertion() -> str:
    return f"<w:p>{run('Ends with ')}<w:ins {BY}>{run('14 days notice')}</w:ins></w:p>"


def cases() -> Iterator[Case]:
    def word(
        name: str,
        body: str,
        *reads: str,
        notes: tuple[str, ...] = (),
        never: tuple[str, ...] = (),
        **parts: tuple[str, str],
    ) -> Case:
        return Case(f"word {name}", lambda: document(body, parts), reads, notes, never=never)

    yield word("plain", paragraph("Plain words"), "Plain words")
    yield word("inserted by tracking", _insertion(), "Ends with 14 days notice")
    yield word(
        "deleted by tracking",
        f'<w:p>{run("Kept ")}<w:del {BY}><w:r><w:delText>struck</w:delText></w:r></w:del></w:p>',
        "Kept", notes=("1 tracked deletion",), never=("struck",),
    )  # fmt: skip
    yield word(
        "moved by tracking",
        f"<w:p><w:moveFrom {BY}>{run('Moved clause')}</w:moveFrom></w:p><w:p><w:moveTo {BY}>{run('Moved clause')}</w:moveTo></w:p>",
        "Moved clause",
    )
    yield word(
        "moved to the end",
        f'<w:p><w:moveFrom {BY}>{run("Old place")}</w:moveFrom></w:p>{paragraph("Middle")}<w:p><w:moveTo {BY}>{run("Old place")}</w:moveTo></w:p>',
        "Middle\nOld place", never=("Old place\nMiddle",),
    )  # fmt: skip
    yield word(
        "inserted paragraph in a table",
        _table((f"<w:p><w:ins {BY}>{run('New sum 9')}</w:ins></w:p>",)),
        "New sum 9",
    )
    yield word(
        "content control",
        f"<w:sdt><w:sdtContent>{paragraph('Filled in')}</w:sdtContent></w:sdt>",
        "Filled in",
    )
    yield word(
        "content control in a line",
        f"<w:p>{run('Name: ')}<w:sdt><w:sdtContent>{run('Ana')}</w:sdtContent></w:sdt></w:p>",
        "Name: Ana",
    )
    yield word(
        "content control around a cell",
        f"<w:tbl><w:tr><w:tc>{paragraph('A')}</w:tc><w:sdt><w:sdtContent><w:tc>{paragraph('Chosen')}</w:tc></w:sdtContent></w:sdt></w:tr></w:tbl>",
        "Chosen",
    )
    yield word(
        "content control around a row",
        f"<w:tbl><w:sdt><w:sdtContent><w:tr><w:tc>{paragraph('Row in control')}</w:tc></w:tr></w:sdtContent></w:sdt></w:tbl>",
        "Row in control",
    )
    yield word(
        "check box",
        '<w:p><w:sdt><w:sdtPr><w14:checkbox xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"><w14:checked w14:val="1"/></w14:checkbox></w:sdtPr><w:sdtContent>'
        + run("☒")
        + "</w:sdtContent></w:sdt>"
        + run(" Agreed")
        + "</w:p>",
        "☒",
        "Agreed",
    )
    yield word(
        "check box not set",
        '<w:p><w:sdt><w:sdtPr><w14:checkbox xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"><w14:checked w14:val="0"/></w14:checkbox></w:sdtPr><w:sdtContent>'
        + run("☐")
        + "</w:sdtContent></w:sdt>"
        + run(" Agreed")
        + "</w:p>",
        "☐",
        "Agreed",
    )
    yield word("field", _field(" DATE ", "5 May 2026"), "5 May 2026", never=("DATE",))
    yield word(
        "simple field",
        f'<w:p><w:fldSimple w:instr=" REF x ">{run("Clause 7")}</w:fldSimple></w:p>',
        "Clause 7",
    )
    yield word(
        "field that is a link",
        _field(' HYPERLINK "https://example.com/a" ', "The page"),
        "The page",
        "https://example.com/a",
    )
    yield word(
        "smart tag", f'<w:p><w:smartTag w:element="place">{run("Berlin")}</w:smartTag></w:p>', "Berlin"
    )
    yield word(
        "footnote",
        f'<w:p>{run("Sum")}<w:r><w:footnoteReference w:id="5"/></w:r></w:p>',
        "Sum",
        "Without tax",
        footnotes=("footnotes", _notes("footnotes", "Without tax")),
    )
    yield word(
        "endnote",
        f'<w:p>{run("Sum")}<w:r><w:endnoteReference w:id="5"/></w:r></w:p>',
        "Sum",
        "See annex",
        endnotes=("endnotes", _notes("endnotes", "See annex")),
    )
    yield word(
        "comment", f'<w:p>{run("Price")}<w:r><w:commentReference w:id="5"/></w:r></w:p>', "Price", "Too high",
        comments=("comments", _part("comments", f'<w:comment w:id="5" w:author="Ben">{paragraph("Too high")}</w:comment>')),
    )  # fmt: skip
    yield word(
        "header",
        paragraph("Body") + '<w:sectPr><w:headerReference w:type="default" r:id="header1"/></w:sectPr>',
        "Body",
        "Draft, not valid",
        header1=("header", _part("hdr", paragraph("Draft, not valid"))),
    )
    yield word(
        "footer of the first page",
        paragraph("Body")
        + '<w:sectPr><w:footerReference w:type="first" r:id="footer1"/><w:titlePg/></w:sectPr>',
        "Body",
        "Bank 123",
        footer1=("footer", _part("ftr", paragraph("Bank 123"))),
    )
    yield word(
        "table in a header",
        paragraph("Body") + '<w:sectPr><w:headerReference w:type="default" r:id="header1"/></w:sectPr>',
        "No. 4711",
        header1=("header", _part("hdr", _table((paragraph("No. 4711"),)))),
    )
    yield word("text box", f"<w:p>{run('Around')}<w:r>{TEXT_BOX}</w:r></w:p>", "Around", "Boxed words")
    yield word(
        "text box without a fallback",
        f"<w:p><w:r>{TEXT_BOX.replace('mc:Fallback', 'mc:Nothing')}</w:r></w:p>",
        "Boxed words",
    )
    yield word(
        "text box in a drawing alone",
        f"<w:p><w:r>{TEXT_BOX.partition('<mc:Choice Requires=' + chr(34) + 'wps' + chr(34) + '>')[2].partition('</mc:Choice>')[0]}</w:r></w:p>",
        "Boxed words",
    )
    yield word(
        "deleted row",
        f"<w:tbl><w:tr>{'<w:tc>' + paragraph('Stays') + '</w:tc>'}</w:tr><w:tr><w:trPr><w:del {BY}/></w:trPr><w:tc><w:p><w:del {BY}><w:r><w:delText>Gone</w:delText></w:r></w:del></w:p></w:tc></w:tr></w:tbl>",
        "Stays",
        notes=("tracked deletion",),
        never=("Gone",),
    )
    yield word(
        "hidden by its style",
        f"<w:p>{run('Seen ')}{run('secret', '<w:rStyle w:val=' + chr(34) + 'H' + chr(34) + '/>')}</w:p>",
        "Seen",
        notes=("hidden",),
        never=("secret",),
        styles=(
            "styles",
            _part(
                "styles",
                '<w:style w:type="character" w:styleId="H"><w:name w:val="H"/><w:rPr><w:vanish/></w:rPr></w:style>',
            ),
        ),
    )
    yield word(
        "old text box",
        f"<w:p><w:r><w:pict><v:shape><v:textbox><w:txbxContent>{paragraph('Old box')}</w:txbxContent></v:textbox></v:shape></w:pict></w:r></w:p>",
        "Old box",
    )
    yield word("table", _table((paragraph("left"), paragraph("right"))), "left\tright")
    yield word(
        "nested table",
        _table((_table((paragraph("inner"), paragraph("cell"))) + "<w:p/>", paragraph("outer"))),
        "inner",
        "cell",
        "outer",
    )
    yield word(
        "merged cells",
        f'<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr>{paragraph("Both")}</w:tc></w:tr><w:tr><w:tc>{paragraph("a")}</w:tc><w:tc>{paragraph("b")}</w:tc></w:tr></w:tbl>',
        "Both",
        "a\tb",
    )
    yield word(
        "cells merged downwards",
        f'<w:tbl><w:tr><w:tc><w:tcPr><w:vMerge w:val="restart"/></w:tcPr>{paragraph("Tall")}</w:tc><w:tc>{paragraph("a")}</w:tc></w:tr><w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p/></w:tc><w:tc>{paragraph("b")}</w:tc></w:tr></w:tbl>',
        "Tall\ta",
        "b",
    )
    yield word(
        "two paragraphs in a cell",
        _table((paragraph("one") + paragraph("two"), paragraph("c"))),
        "one",
        "two",
        "c",
        never=("onetwo",),
    )
    yield word(
        "numbered list",
        '<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr>'
        + run("First point")
        + "</w:p>",
        "First point",
    )
    yield Case(
        "word link",
        lambda: document(
            f'<w:p><w:hyperlink r:id="l1">{run("our terms")}</w:hyperlink></w:p>',
            more_relations=f'<Relationship Id="l1" Type="{RELATIONS}/hyperlink" Target="https://example.com/terms" TargetMode="External"/>',
        ),
        ("our terms", "https://example.com/terms"),
    )
    yield word(
        "hidden text", f"<w:p>{run('Seen ')}{run('secret', '<w:vanish/>')}</w:p>", "Seen", notes=("hidden",)
    )
    yield word("struck through", f"<w:p>{run('Old ', '<w:strike/>')}{run('new')}</w:p>", "Old", "new")
    yield word(
        "tabs and breaks",
        f"<w:p>{run('a')}<w:r><w:tab/></w:r>{run('b')}<w:r><w:br/></w:r>{run('c')}</w:p>",
        "a\tb\nc",
    )
    yield word(
        "symbol", f'<w:p>{run("Done ")}<w:r><w:sym w:font="Wingdings" w:char="F0FC"/></w:r></w:p>', "Done"
    )
    yield word("hyphens", f"<w:p>{run('co')}<w:r><w:noBreakHyphen/></w:r>{run('op')}</w:p>", "co\u2011op")
    yield word(
        "heading",
        '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr>' + run("Title here") + "</w:p>",
        "# Title here",
        styles=(
            "styles",
            _part(
                "styles",
                '<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>',
            ),
        ),
    )
    yield Case("word on the web", lambda: document(paragraph("Web words"), main="document2"), ("Web words",))
    yield Case("word strict", strict, ("Strict words", "in a cell"))
    yield Case(
        "word template",
        lambda: document(paragraph("Template words"), kind=f"{WORD}.template.main+xml"),
        ("Template words",),
    )
    yield Case(
        "word with macros",
        lambda: document(
            paragraph("Macro words"),
            kind="application/vnd.ms-word.document.macroEnabled.main+xml",
            more={"word/vbaProject.bin": b"x"},
        ),
        ("Macro words",),
        ("macros",),
    )
    yield Case(
        "word picture with words",
        lambda: document(
            f"<w:p>{_drawing(PICTURE, 'descr=' + chr(34) + 'A broken lamp' + chr(34))}</w:p>{paragraph('Text')}",
            more={"word/media/a.png": b"x"},
            more_relations=f'<Relationship Id="img" Type="{RELATIONS}/image" Target="media/a.png"/>',
        ),
        ("A broken lamp", "Text"),
        ("1 picture",),
    )
    yield Case(
        "word picture alone",
        lambda: document(
            f"<w:p>{_drawing(PICTURE)}</w:p>",
            more={"word/media/a.png": b"x"},
            more_relations=f'<Relationship Id="img" Type="{RELATIONS}/image" Target="media/a.png"/>',
        ),
        fault="no text in it",
        notes=("1 picture",),
    )
    yield word("chart", paragraph("Text") + f"<w:p>{_drawing(CHART)}</w:p>", "Text", notes=("1 chart",))
    yield word("SmartArt", paragraph("Text") + f"<w:p>{_drawing(ART)}</w:p>", "Text", notes=("1 diagram",))
    yield word(
        "equation",
        f"<w:p>{run('So ')}<m:oMath><m:r><m:t>x=2y</m:t></m:r></m:oMath></w:p>",
        "So",
        notes=("1 equation",),
    )
    yield word(
        "embedded object",
        f'<w:p>{run("See ")}<w:r><w:object><o:OLEObject ProgID="Excel.Sheet.12"/></w:object></w:r></w:p>',
        "See",
        notes=("1 embedded object",),
    )
    yield word("embedded page", paragraph("Seen") + '<w:altChunk r:id="x"/>', "Seen", notes=("1 embedded",))
    yield Case(
        "word change of direction",
        lambda: document(f'<w:p><w:bdo w:val="rtl">{run("Turned")}</w:bdo></w:p>'),
        ("Turned",),
    )
    yield Case(
        "word direction",
        lambda: document(f'<w:p><w:dir w:val="rtl">{run("Turned")}</w:dir></w:p>'),
        ("Turned",),
    )
    yield Case(
        "word reading above words",
        lambda: document(
            f"<w:p><w:r><w:ruby><w:rt>{run('とうきょう')}</w:rt><w:rubyBase>{run('東京')}</w:rubyBase></w:ruby></w:r></w:p>"
        ),
        ("東京 (とうきょう)",),
    )
    yield Case(
        "word choice of an old form", lambda: document(_old_choice("1")), ("Answer: Maybe",), never=("No",)
    )
    yield Case(
        "word first choice of an old form",
        lambda: document(_old_choice("")),
        ("Answer: No",),
        never=("Maybe",),
    )
    yield Case(
        "word part of a master document",
        lambda: document(f'{paragraph("T")}<w:subDoc r:id="rIdX"/>'),
        ("T",),
        ("1 embedded document",),
    )
    yield Case(
        "word comment without a place",
        lambda: document(
            paragraph("Price"),
            {
                "comments": (
                    "comments",
                    f"<w:comments {SPACES}><w:comment {BY}>{paragraph('Too high')}</w:comment></w:comments>",
                )
            },
        ),
        ("Price", "Too high"),
    )
    yield Case(
        "word white text",
        lambda: document(paragraph("Seen") + paragraph("Pay twice", '<w:color w:val="FFFFFF"/>')),
        ("Seen", "Pay twice"),
        ("Hidden in the file, but read: 1 piece of white text",),
    )
    yield Case(
        "word white text on a colour",
        lambda: document(
            paragraph("Title", '<w:color w:val="FFFFFF"/><w:shd w:val="clear" w:fill="1F3864"/>')
        ),
        ("Title",),
    )
    yield Case("word empty", lambda: document("<w:p/>"), fault="no text in it")
    yield Case("word damaged", lambda: document(paragraph("x"))[:300], fault="damaged")
    yield Case("word whose text is damaged", lambda: document("<w:p><w:r>"), fault="damaged")
    yield Case(
        "word of a thousand levels",
        lambda: document(
            "<w:tbl><w:tr><w:tc>" * 300 + paragraph("Deep") + "<w:p/></w:tc></w:tr></w:tbl>" * 300
        ),
        fault="damaged",
    )
    yield Case("word with an entity bomb", lambda: packed({**_bomb()}), fault="damaged")


def _bomb() -> dict[str, str]:
    plain = document(paragraph("&j;"))
    with zipfile.ZipFile(BytesIO(plain)) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    entities = '<!ENTITY a "ha">' + "".join(
        f'<!ENTITY {name} "{f"&{before};" * 20}">'
        for before, name in zip("abcdefghi", "bcdefghij", strict=True)
    )
    parts["word/document.xml"] = f"<!DOCTYPE d [{entities}]>" + parts["word/document.xml"]
    return parts
