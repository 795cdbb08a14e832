"""PDF documents, and slides of PowerPoint."""

from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

from tests.tools.yardstick import Case
from tests.tools.yardstick.word import packed

PICTURE = b"<</Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8/Length 1>>stream\n\x80\nendstream"


def document(
    *pages: str | bytes,
    more: Mapping[int, bytes] | None = None,
    catalogue: str = "",
    of_page: str = "",
    before: bytes = b"",
    resources: str = "",
) -> bytes:
    """Pages of content (a text is one line of it). Objects from 10 on are the pages, ``more`` has its own numbers."""
    objects: dict[int, bytes] = {
        1: f"<</Type/Catalog/Pages 2 0 R{catalogue}>>".encode(),
        3: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        4: PICTURE,
    }
    kids = []
    for at, content in enumerate(pages):
        number = 10 + 2 * at
        kids.append(f"{number} 0 R")
        stream = content if isinstance(content, bytes) else line(content)
        objects[number] = (
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {number + 1} 0 R{of_page}"
            f"/Resources<</Font<</F1 3 0 R>>/XObject<</I 4 0 R>>{resources}>>>>"
        ).encode()
        objects[number + 1] = b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream)
    objects[2] = f"<</Type/Pages/Kids[{' '.join(kids)}]/Count {len(pages)}>>".encode()
    objects |= more or {}
    out, places = bytearray(b"%PDF-1.7\n"), {}
    for number, each in sorted(objects.items()):
        places[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    size, start = max(places) + 1, len(out)
    rows = (
        b"%010d 00000 n \n" % places[n] if n in places else b"0000000000 00000 f \n" for n in range(1, size)
    )
    out += b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, b"".join(rows))
    return before + bytes(out) + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (size, start)


def line(text: str, x: int = 72, y: int = 720) -> bytes:
    return b"BT /F1 12 Tf %d %d Td (%s) Tj ET\n" % (x, y, text.encode("cp1252"))


SCAN = b"q 500 0 0 700 50 50 cm /I Do Q"


def _form(field: str, *, of_form: str = "") -> bytes:
    return document(
        "Application", more={100: f"<</Type/Annot/Subtype/Widget/Rect[72 600 300 620]/P 10 0 R{field}>>".encode()},
        catalogue=f"/AcroForm<</Fields[100 0 R]/DA(/Helv 0 Tf 0 g)/NeedAppearances true{of_form}>>", of_page="/Annots[100 0 R]",
    )  # fmt: skip


def _note(inside: str) -> bytes:
    return document(
        "Clause",
        more={100: f"<</Type/Annot/Rect[72 600 300 620]{inside}>>".encode()},
        of_page="/Annots[100 0 R]",
    )


def _locked(user: str, owner: str = "owner") -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(BytesIO(document("Locked words"))))
    writer.encrypt(user, owner, algorithm="AES-256")
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def _attached() -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(BytesIO(document("Invoice"))))
    writer.add_attachment("invoice.xml", b"<x/>")
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def slides(change: Any) -> bytes:
    import pptx

    deck = pptx.Presentation()
    change(deck, lambda: deck.slides.add_slide(deck.slide_layouts[6]), pptx)
    out = BytesIO()
    deck.save(out)
    return out.getvalue()


def _box(slide: Any, text: str) -> None:
    slide.shapes.add_textbox(0, 0, 100, 100).text_frame.text = text


def _chart(slide: Any) -> None:
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE

    data = CategoryChartData()
    data.categories = ["North", "South"]
    data.add_series("Sales", (12.5, 7))
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, 1000, 1000, data)


def _table(slide: Any, left: str = "left", right: str = "right") -> None:
    table = slide.shapes.add_table(1, 2, 0, 0, 100, 100).table
    table.cell(0, 0).text, table.cell(0, 1).text = left, right


def _picture(slide: Any) -> None:
    from PIL import Image

    out = BytesIO()
    Image.new("RGB", (4, 4)).save(out, "PNG")
    slide.shapes.add_picture(out, 0, 0)


def _again(data: bytes, change: Any) -> bytes:
    """A package after a change of the text of its parts."""
    import zipfile

    with zipfile.ZipFile(BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    return packed({name: change(name, part) for name, part in parts.items()})


def _commented(data: bytes, text: str) -> bytes:
    """A deck with a comment, as PowerPoint 2010 writes it."""
    import zipfile

    with zipfile.ZipFile(BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    comment = f'<p:cm authorId="0" idx="1"><p:pos x="1" y="1"/><p:text>{text}</p:text></p:cm>'
    space = "http://schemas.openxmlformats.org/presentationml/2006/main"
    parts["ppt/comments/comment1.xml"] = f'<p:cmLst xmlns:p="{space}">{comment}</p:cmLst>'.encode()
    return packed(parts)


def _strict(_name: str, part: bytes) -> bytes:
    return (
        part.replace(
            b"http://schemas.openxmlformats.org/presentationml/2006/",
            b"http://purl.oclc.org/ooxml/presentationml/",
        )
        .replace(
            b"http://schemas.openxmlformats.org/drawingml/2006/", b"http://purl.oclc.org/ooxml/drawingml/"
        )
        .replace(
            b"http://schemas.openxmlformats.org/officeDocument/2006/relationships",
            b"http://purl.oclc.org/ooxml/officeDocument/relationships",
        )
    )


def _damage(data: bytes, page: int) -> bytes:
    """The document with one page that is no page."""
    number = b"%d 0 obj\n" % (10 + 2 * (page - 1))
    at = data.index(number) + len(number)
    end = data.index(b"endobj", at)
    return data[:at] + b"[ ]".ljust(end - at) + data[end:]


def cases() -> Iterator[Case]:
    yield Case("pdf plain", lambda: document("Paid in full"), ("[Page 1]\nPaid in full",))
    yield Case("pdf of two pages", lambda: document("One", "Two"), ("[Page 1]\nOne", "[Page 2]\nTwo"))
    yield Case(
        "pdf with a field filled in",
        lambda: _form("/FT/Tx/T(name)/V(Ana Lima)"),
        ("Application", "name: Ana Lima"),
    )
    yield Case(
        "pdf with a field by its label",
        lambda: _form("/FT/Tx/T(f1)/TU(Your name)/V(Ana)"),
        ("Your name: Ana",),
    )
    yield Case("pdf with a box ticked", lambda: _form("/FT/Btn/T(agree)/V/Yes/AS/Yes"), ("agree: ticked",))
    yield Case(
        "pdf with a box not ticked", lambda: _form("/FT/Btn/T(agree)/V/Off/AS/Off"), ("agree: not ticked",)
    )
    yield Case("pdf with a choice", lambda: _form("/FT/Ch/T(country)/V(Portugal)"), ("country: Portugal",))
    yield Case(
        "pdf with a form of XFA", lambda: _form("/FT/Tx/T(a)/V(b)", of_form="/XFA(x)"), ("a: b",), ("XFA",)
    )
    yield Case(
        "pdf with text over it",
        lambda: _note("/Subtype/FreeText/Contents(Not agreed)/DA(/Helv 12 Tf)"),
        ("Clause", "Not agreed"),
    )
    yield Case("pdf with a note", lambda: _note("/Subtype/Text/Contents(Ask Ben)"), ("Ask Ben",))
    yield Case(
        "pdf with a highlight's note", lambda: _note("/Subtype/Highlight/Contents(Wrong sum)"), ("Wrong sum",)
    )
    yield Case("pdf with a stamp", lambda: _note("/Subtype/Stamp/Contents(DRAFT)"), ("DRAFT",))
    yield Case("pdf with a highlight alone", lambda: _note("/Subtype/Highlight"), ("Clause",), ("1 mark",))
    yield Case("pdf with ink", lambda: _note("/Subtype/Ink"), ("Clause",), ("1 mark",))
    yield Case(
        "pdf with a link",
        lambda: _note("/Subtype/Link/A<</S/URI/URI(https://example.com/t)>>"),
        ("https://example.com/t",),
    )
    yield Case("pdf after blank lines", lambda: document("Late", before=b"\r\n\r\n"), ("Late",))
    yield Case(
        "pdf after headers",
        lambda: document("Late", before=b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n"),
        ("Late",),
    )
    yield Case(
        "pdf with one bad page",
        lambda: _damage(document("One", "Two", "Three"), 2),
        ("One", "Three"),
        ("Page 2 can't be read.",),
    )
    yield Case(
        "pdf with scanned pages",
        lambda: document("One", SCAN, SCAN, "Four"),
        ("One", "Four"),
        ("Pages 2 and 3 hold no text.", "2 pictures"),
    )
    yield Case(
        "pdf with one scanned page", lambda: document("One", SCAN), ("One",), ("Page 2 holds no text.",)
    )
    yield Case("pdf of scans", lambda: document(SCAN), fault="no text in it")
    yield Case("pdf with a picture", lambda: document(line("Words") + SCAN), ("Words",), ("1 picture",))
    yield Case("pdf with an attached file", _attached, ("Invoice",), ("1 attached file",))
    yield Case("pdf with an owner's password", lambda: _locked(""), ("Locked words",))
    yield Case("pdf with a password", lambda: _locked("secret"), fault="password")
    yield Case("pdf that is turned", lambda: document("Turned", of_page="/Rotate 90"), ("Turned",))
    yield Case(
        "pdf in columns",
        lambda: document(
            line("left one")
            + line("left two", 72, 700)
            + line("right one", 320)
            + line("right two", 320, 700)
        ),
        ("left one", "left two", "right one", "right two"),
    )
    yield Case("pdf with accents", lambda: document("Größe 5 €"), ("Größe 5 €",))
    yield Case(
        "pdf with a ligature",
        lambda: document(b"BT /F1 12 Tf 72 720 Td /Span<</ActualText(office)>>BDC (o\x02ce) Tj EMC ET"),
        ("o",),
    )
    yield Case(
        "pdf of two lines", lambda: document(line("first") + line("second", 72, 700)), ("first\nsecond",)
    )
    yield Case(
        "pdf of many pages",
        lambda: document(*[f"Page text {n}" for n in range(1_010)]),
        ("Page text 999",),
        ("10 pages after the first thousand",),
    )
    yield Case("pdf damaged", lambda: b"%PDF-1.7 and nothing", fault="damaged")
    yield Case("pdf cut at its end", lambda: document("Half a file")[:-60], fault="damaged")
    yield Case("pdf empty", lambda: document(""), fault="no text in it")

    yield Case(
        "pptx", lambda: slides(lambda _d, new, _p: _box(new(), "Slide words")), ("[Slide 1]\nSlide words",)
    )
    yield Case("pptx notes", lambda: slides(lambda _d, new, _p: _noted(new())), ("Seen", "[Notes]\nSay this"))
    yield Case(
        "pptx hidden slide",
        lambda: slides(lambda _d, new, _p: (_box(new(), "A"), _hide(new()))),
        ("[Hidden slide 2]", "Backup"),
        ("1 hidden slide",),
    )
    yield Case("pptx table", lambda: slides(lambda _d, new, _p: _table(new())), ("left\tright",))
    yield Case(
        "pptx chart",
        lambda: slides(lambda _d, new, _p: _chart(new())),
        ("North\tSouth", "Sales\t12.5\t7"),
        ("1 chart",),
    )
    yield Case("pptx group", lambda: slides(lambda _d, new, _p: _grouped(new())), ("In a group",))
    yield Case(
        "pptx picture",
        lambda: slides(lambda _d, new, _p: (_picture(slide := new()), _box(slide, "Words"))),
        ("Words",),
        ("1 picture",),
    )
    yield Case("pptx diagram", _diagram, ("Plan", "Do", "Check"), ("1 diagram",))
    yield Case(
        "pptx strict",
        lambda: _again(slides(lambda _d, new, _p: _box(new(), "Strict words")), _strict),
        ("Strict words",),
    )
    yield Case(
        "pptx show",
        lambda: _again(
            slides(lambda _d, new, _p: _box(new(), "Show words")),
            lambda _n, part: part.replace(
                b"presentationml.presentation.main", b"presentationml.slideshow.main"
            ),
        ),
        ("Show words",),
    )
    yield Case(
        "pptx without text", lambda: slides(lambda _d, new, _p: _picture(new())), fault="no text in it"
    )
    yield Case(
        "pptx with an empty table alone",
        lambda: slides(lambda _d, new, _p: _table(new(), "", "")),
        fault="no text in it",
    )
    yield Case(
        "pptx with a comment alone",
        lambda: _commented(slides(lambda _d, new, _p: _picture(new())), "Pay Ana 500"),
        ("[Slide 1]", "[Comment: Pay Ana 500]"),
    )
    yield Case("pptx damaged", lambda: slides(lambda _d, new, _p: _box(new(), "x"))[:500], fault="damaged")


def _noted(slide: Any) -> None:
    _box(slide, "Seen")
    slide.notes_slide.notes_text_frame.text = "Say this"


def _hide(slide: Any) -> None:
    _box(slide, "Backup")
    slide.element.set("show", "0")


def _grouped(slide: Any) -> None:
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, 10, 10).text_frame.text = "In a group"


def _diagram() -> bytes:
    frame = (
        b'<p:graphicFrame xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram"><p:nvGraphicFramePr><p:cNvPr id="9" name="d"/>'
        b'<p:cNvGraphicFramePr/><p:nvPr/></p:nvGraphicFramePr><p:xfrm><a:off x="0" y="0"/><a:ext cx="1" cy="1"/></p:xfrm><a:graphic>'
        b'<a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/diagram"><dgm:relIds r:dm="d1" r:lo="d1" r:qs="d1" r:cs="d1"/>'
        b"</a:graphicData></a:graphic></p:graphicFrame></p:spTree>"
    )
    related = b'<Relationship Id="d1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/diagramData" Target="../diagrams/data1.xml"/></Relationships>'
    words = (
        '<dgm:dataModel xmlns:dgm="d" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main">'
        + "".join(f"<a:t>{each}</a:t>" for each in ("Do", "Check"))
        + "</dgm:dataModel>"
    )

    def change(name: str, part: bytes) -> bytes:
        if name == "ppt/slides/slide1.xml":
            return part.replace(b"</p:spTree>", frame)
        return (
            part.replace(b"</Relationships>", related) if name == "ppt/slides/_rels/slide1.xml.rels" else part
        )

    plain = _again(slides(lambda _d, new, _p: _box(new(), "Plan")), change)
    import zipfile

    out = BytesIO(plain)
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr("ppt/diagrams/data1.xml", words)
    return out.getvalue()
