"""Documents with text that people who open them don't see, and others that look nearly like them."""

from collections.abc import Iterator
from typing import Any

from tests.tools.yardstick import Case, pdf, sheets, word
from tests.tools.yardstick.open_document import opened

WORD_STYLES = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
LEFT_OUT_IN_WORD = ("<w:vanish/>", "<w:specVanish/>", '<w:vanish w:val="true"/>')
FAINT_IN_WORD = {
    '<w:color w:val="FFFFFF"/>': "white text",
    '<w:color w:val="fefefe"/>': "text in the colour of its ground",
    '<w:color w:themeColor="background1"/>': "white text",
    '<w:color w:val="auto" w:themeColor="background1"/>': "white text",
    '<w:shd w:val="clear" w:fill="FFFFFF"/><w:color w:val="FFFFFF"/>': "white text",
    '<w:shd w:val="clear" w:fill="auto"/><w:color w:val="FFFFFF"/>': "white text",
    '<w:shd w:val="clear" w:fill="000000"/><w:color w:val="000000"/>': "text in the colour of its ground",
    '<w:sz w:val="2"/>': "tiny text",
    '<w:sz w:val="1"/>': "tiny text",
    '<w:w w:val="1"/>': "tiny text",
}
SEEN_IN_WORD = (
    '<w:vanish w:val="0"/>', '<w:color w:val="333333"/>', '<w:sz w:val="16"/>',
    '<w:color w:val="FFFFFF"/><w:shd w:val="clear" w:fill="003366"/>',
    '<w:color w:val="FFFFFF"/><w:highlight w:val="blue"/>',
    '<w:color w:themeColor="background1" w:themeShade="80"/>', "<w:webHidden/>",
)  # fmt: skip
PLACES_IN_WORD = {
    '<w:framePr w:x="-20000" w:y="-20000"/>': "text off the page",
    '<w:ind w:left="-20000"/>': "text off the page",
    '<w:spacing w:line="1" w:lineRule="exact"/>': "tiny text",
}
CELL_STYLES = (
    '<numFmts count="1"><numFmt numFmtId="200" formatCode=";;;"/></numFmts>'
    '<fonts><font><sz val="11"/></font><font><sz val="11"/><color rgb="FFFFFFFF"/></font><font><sz val="1"/></font>'
    '<font><color theme="0"/></font><font><color theme="4"/></font><font><color theme="1"/></font></fonts>'
    '<fills><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="solid">'
    '<fgColor rgb="FF003366"/></patternFill></fill><fill><gradientFill><stop position="0">'
    '<color rgb="FF003366"/></stop><stop position="1"><color rgb="FF000000"/></stop></gradientFill></fill>'
    '<fill><patternFill patternType="solid"><fgColor rgb="FF000000"/></patternFill></fill></fills>'
    '<cellXfs><xf numFmtId="0" fontId="0" fillId="0"/><xf numFmtId="0" fontId="1" fillId="0"/>'
    '<xf numFmtId="200" fontId="0" fillId="0"/><xf numFmtId="0" fontId="2" fillId="0"/>'
    '<xf numFmtId="0" fontId="3" fillId="0"/><xf numFmtId="0" fontId="1" fillId="1"/>'
    '<xf numFmtId="0" fontId="1" fillId="2"/><xf numFmtId="0" fontId="4" fillId="3"/>'
    '<xf numFmtId="0" fontId="5" fillId="3"/></cellXfs>'
)
PDF_PAGES = {
    "invisible text": b"BT /F1 12 Tf 3 Tr 72 700 Td (secret) Tj ET\n",
    "white text": b"1 1 1 rg " + pdf.line("secret", y=700),
    "text outside it": pdf.line("secret", x=-900, y=700),
    "tiny text": b"BT /F1 0.5 Tf 72 700 Td (secret) Tj ET\n",
    "covered text": pdf.line("secret", y=700) + b"0 g 60 690 300 30 re f\n",
}
SEEN_IN_PDF = (
    pdf.line("Shown", y=700),
    b"0 0 0.5 rg 60 690 300 30 re f 1 1 1 rg " + pdf.line("Shown", y=700),
    b"60 690 300 30 re S " + pdf.line("Shown", y=700) + b"60 690 300 30 re S\n",
    b"0.9 g 60 600 300 30 re f 0 g " + pdf.line("Shown", y=700),
    b"q 500 0 0 100 50 650 cm /I Do Q 1 1 1 rg " + pdf.line("Shown", y=700),
)


def cases() -> Iterator[Case]:
    yield from _of_word()
    yield from _of_sheets()
    yield from _of_slides()
    yield from _of_pdf()
    yield from _of_others()


def _of_word() -> Iterator[Case]:
    for form in LEFT_OUT_IN_WORD:
        body = f"<w:p>{word.run('Seen ')}{word.run('secret', form)}</w:p>"
        yield _case(
            f"word {form}", word.document(body), ("Seen",), "1 piece of hidden text", never=("secret",)
        )
    for form, kind in FAINT_IN_WORD.items():
        body = f"<w:p>{word.run('Seen ')}{word.run('secret', form)}</w:p>"
        yield _case(
            f"word faint by {form}", word.document(body), ("Seen", "secret"), f"but read: 1 piece of {kind}"
        )
    for form in SEEN_IN_WORD:
        body = f"<w:p>{word.run('Shown', form)}</w:p>"
        yield _case(f"word shows with {form}", word.document(body), ("Shown",), never=("Hidden", "hidden"))
    for form, kind in PLACES_IN_WORD.items():
        body = f"<w:p><w:pPr>{form}</w:pPr>{word.run('secret')}</w:p>"
        yield _case(
            f"word paragraph {form}", word.document(body), ("secret",), f"but read: 1 piece of {kind}"
        )
    row = "<w:tbl><w:tr><w:trPr><w:hidden/></w:trPr><w:tc>{}</w:tc></w:tr></w:tbl>".format(
        word.paragraph("secret")
    )
    yield _case(
        "word hidden row",
        word.document(word.paragraph("Seen") + row),
        ("Seen",),
        "1 hidden row",
        never=("secret",),
    )
    styles = (
        f'<w:styles xmlns:w="{WORD_STYLES}"><w:style w:type="character" w:styleId="Base"><w:rPr><w:vanish/></w:rPr></w:style>'
        '<w:style w:type="character" w:styleId="Sub"><w:basedOn w:val="Base"/></w:style>'
        '<w:style w:type="character" w:styleId="White"><w:rPr><w:color w:val="FFFFFF"/></w:rPr></w:style></w:styles>'
    )
    parts = {"styles": ("styles", styles)}
    styled = word.run("secret", '<w:rStyle w:val="Sub"/>')
    body = f"<w:p>{word.run('Seen ')}{styled}</w:p>"
    yield _case(
        "word hidden by what its style builds on",
        word.document(body, parts),
        ("Seen",),
        "hidden text",
        never=("secret",),
    )
    styled = word.run("secret", '<w:rStyle w:val="White"/>')
    body = f"<w:p>{word.run('Seen ')}{styled}</w:p>"
    yield _case(
        "word white by its style", word.document(body, parts), ("Seen", "secret"), "1 piece of white text"
    )


def _of_sheets() -> Iterator[Case]:
    hidings = {
        1: "white",
        2: "an empty format",
        3: "a tiny font",
        4: "the theme's paper",
        8: "the theme's ink on black",
    }
    for style, name in hidings.items():
        made = sheets.book(
            sheets.data(sheets.row(1, sheets.cell("A1", "5"), sheets.cell("B1", "77", f's="{style}"'))),
            styles=CELL_STYLES,
        )
        yield _case(
            f"xlsx hides by {name}", made, ("5\t77",), "but read: 1 cell whose colour or format hides it"
        )
    for style, name in ((5, "white on blue"), (6, "white on a gradient"), (7, "a theme's colour on black")):
        made = sheets.book(
            sheets.data(sheets.row(1, sheets.cell("A1", "5", f's="{style}"'))), styles=CELL_STYLES
        )
        yield _case(f"xlsx {name}", made, ("5",), never=("Hidden", "but read"))
    made = sheets.book(
        sheets.data(
            sheets.row(1, sheets.cell("A1", "5")), sheets.row(2, sheets.cell("A2", "7"), form='ht="0"')
        )
    )
    yield _case("xlsx row without height", made, ("[hidden row] 7",), "1 hidden row")


def _of_slides() -> Iterator[Case]:
    hidings = {"off the slide": _move_away, "hidden": _hide_shape, "white": _make_white, "tiny": _make_tiny}
    kinds = ("shape off the slide", "hidden shape", "piece of white text", "piece of tiny text")
    for (name, change), kind in zip(hidings.items(), kinds, strict=True):
        yield Case(
            f"pptx text that is {name}",
            lambda change=change: pdf.slides(lambda _deck, new, _pptx: _place(new(), change)),
            ("Seen", "secret"),
            (f"Hidden in the file, but read: 1 {kind}",),
        )
    yield Case(
        "pptx text in a colour that is none",
        lambda: pdf.slides(lambda _deck, new, _pptx: _place(new(), _give_bad_colour)),
        ("Seen", "secret"),
        never=("Hidden",),
    )
    yield Case(
        "pptx white text on a colour",
        lambda: pdf.slides(lambda _deck, new, _pptx: _place(new(), _make_white_on_blue)),
        ("secret",),
        never=("Hidden",),
    )


def _place(slide: Any, change: Any) -> None:
    slide.shapes.add_textbox(0, 0, 900_000, 900_000).text_frame.text = "Seen"
    shape = slide.shapes.add_textbox(2_000_000, 2_000_000, 900_000, 900_000)
    shape.text_frame.text = "secret"
    change(shape)


def _move_away(shape: Any) -> None:
    shape.left = -5_000_000


def _hide_shape(shape: Any) -> None:
    shape.element.nvSpPr.cNvPr.set("hidden", "1")


def _make_tiny(shape: Any) -> None:
    from pptx.util import Pt

    shape.text_frame.paragraphs[0].runs[0].font.size = Pt(1)


def _make_white(shape: Any) -> None:
    from pptx.dml.color import RGBColor

    shape.text_frame.paragraphs[0].runs[0].font.color.rgb = RGBColor(255, 255, 255)


def _give_bad_colour(shape: Any) -> None:
    _make_white(shape)
    for colour in shape.element.iter("{*}srgbClr"):
        colour.set("val", "white")


def _make_white_on_blue(shape: Any) -> None:
    from pptx.dml.color import RGBColor

    _make_white(shape)
    shape.fill.solid()
    shape.fill.fore_color.rgb = RGBColor(0, 50, 100)


def _of_pdf() -> Iterator[Case]:
    for kind, content in PDF_PAGES.items():
        made = pdf.document(pdf.line("Seen") + content)
        yield _case(f"pdf {kind}", made, ("Seen",), f"Hidden in the file, but read: 1 page with {kind}")
    cropped = pdf.document(pdf.line("Seen") + pdf.line("secret", y=20), of_page="/CropBox[0 100 612 792]")
    yield _case("pdf text outside the crop box", cropped, ("Seen",), "1 page with text outside it")
    crowded = pdf.line("Seen") + pdf.line("secret", y=700) + b"0.9 g 10 10 1 1 re f\n" * 500
    for name, content in (("covered", b"0 g 60 690 300 30 re f\n"), ("plain", b"")):
        yield _case(
            f"pdf {name} text of a page with many shapes",
            pdf.document(crowded + content),
            ("Seen", "secret"),
            "among the first 500 shapes of a page alone." if content else "",
            never=() if content else ("Hidden",),
        )
    many = pdf.line("Seen") + b"0 0 m 1 1 l S\n" * 60_000 + pdf.line("secret", y=-20)
    yield _case(
        "pdf page with more objects than are looked at",
        pdf.document(many),
        ("Seen",),
        "among the first 60,000 shapes of a page alone.",
        never=("Hidden in the file",),
    )
    for at, content in enumerate(SEEN_IN_PDF):
        yield _case(f"pdf text that is seen, {at}", pdf.document(content), ("Shown",), never=("Hidden",))


def _of_others() -> Iterator[Case]:
    white = '<style:style style:name="T1" style:family="text"><style:text-properties xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0" fo:color="#ffffff"/></style:style>'
    body = '<text:p>Seen <text:span text:style-name="T1">secret</text:span></text:p>'
    yield Case(
        "odt white text",
        lambda: opened("text", body, automatic=white),
        ("Seen", "secret"),
        ("Hidden in the file, but read: 1 piece of white or tiny text",),
    )
    yield _case(
        "RTF white text",
        rb"{\rtf1{\colortbl;\red255\green255\blue255;\red0\green0\blue0;}Seen {\cf1 secret}}",
        ("Seen", "secret"),
        "1 piece of white or tiny text",
    )
    yield _case(
        "RTF tiny text", rb"{\rtf1 Seen {\fs2 secret}}", ("Seen", "secret"), "1 piece of white or tiny text"
    )
    yield _case(
        "RTF white text on a colour",
        rb"{\rtf1{\colortbl;\red255\green255\blue255;\red0\green0\blue90;}{\cf1\chcbpat2 Shown}}",
        ("Shown",),
        never=("Hidden",),
    )


def _case(
    name: str, data: bytes, reads: tuple[str, ...], note: str = "", *, never: tuple[str, ...] = ()
) -> Case:
    return Case(name, lambda: data, reads, (note,) if note else (), never=never)
