"""Files as people send them, and as someone who means harm would."""

import struct
import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO

from PIL import Image


def pdf(text: str) -> bytes:
    """A document of one page that says so."""
    stream = b"BT /F1 12 Tf 72 720 Td (%s) Tj ET" % text.encode()
    return _pdf(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )


def pdf_of_many_objects(count: int) -> bytes:
    """Each page is one of a million in a tree that is as deep as it has leaves."""
    inner = [b"<</Type/Pages/Kids[%d 0 R]/Count 1>>" % (number + 3) for number in range(count)]
    return _pdf(b"<</Type/Catalog/Pages 2 0 R>>", *inner, b"<</Type/Page>>")


def _pdf(*objects: bytes) -> bytes:
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, each in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start, size = len(out), len(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
    return bytes(out + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (size, start))


def docx(*paragraphs: str, more: Mapping[str, bytes] | None = None) -> bytes:
    from docx import Document

    document = Document()
    for each in paragraphs:
        document.add_paragraph(each)
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "left", "right"
    out = BytesIO()
    document.save(out)
    return _with(out.getvalue(), more or {})


def xlsx(rows: list[list[object]], more: Mapping[str, bytes] | None = None) -> bytes:
    from openpyxl import Workbook  # type: ignore[import-untyped]

    book = Workbook()
    for row in rows:
        book.active.append(row)
    out = BytesIO()
    book.save(out)
    return _with(out.getvalue(), more or {})


def _with(packed: bytes, more: Mapping[str, bytes]) -> bytes:
    out = BytesIO(packed)
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, data in more.items():
            archive.writestr(name, data)
    return out.getvalue()


def picture(kind: str = "PNG", size: tuple[int, int] = (40, 30), place: str = "") -> bytes:
    """``place``: words of where it was taken, in its EXIF."""
    image, out = Image.new("RGB", size, "teal"), BytesIO()
    exif = image.getexif()
    if place:
        exif[0x010E] = place
        exif.get_ifd(0x8825)[29] = place  # among the GPS fields
    image.save(out, kind, exif=exif)
    return out.getvalue()


def huge_picture(side: int) -> bytes:
    """A PNG of a few kilobytes that says it has so many pixels a side."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(100_000))) + chunk(b"IEND", b"")
