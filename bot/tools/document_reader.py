"""Reads one document or picture, in a process that can be killed (``bot/tools/documents.py``).

A question is ``{"kind": …, "size": …}`` with that many bytes after its line. The answer is ``{"text": …}``,
``{"picture": base64}`` or ``{"fault": words}``, and the ``kind`` where it turned out to be another. The
libraries are loaded here alone: only the one that a file needs, and never by Nod itself.
"""

import base64
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from typing import Any

from bot.domain.attachments import DOCX, HTML, PDF, XLSX, ZIP, called
from bot.tools.builtin.fetch_text import readable
from bot.tools.child import serve
from bot.tools.documents import MOST_TEXT, cut

_PAGES, _CELLS, _SHEETS, _BLOCKS, _NESTED = 300, 100_000, 50, 50_000, 4
_UNPACKED = 100_000_000  # bytes of what a document packs
_ENTRIES = 2_000
_PIXELS = 40_000_000
_SIDE = 1600  # pixels of a picture that is kept
_LEFT_OUT = "[The rest is left out: it is too long to read.]"
_OFFICE = {"word/document.xml": DOCX, "xl/workbook.xml": XLSX}
_BROKEN = "it is damaged, or not what it says it is"


class Unreadable(Exception):
    """Why a file can't be read, in words."""


def answer(question: Mapping[str, Any]) -> dict[str, Any]:
    data, kind = sys.stdin.buffer.read(question["size"]), question["kind"]
    try:
        if kind.startswith("image/"):
            return _picture(data)
        if kind == ZIP:
            kind = _packed(data)
        text = cut("".join(_bounded(_READERS[kind](data)))).strip()
    except Unreadable as error:
        return {"kind": kind, "fault": str(error)}
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a parser on a stranger's bytes
        return {"kind": kind, "fault": _BROKEN}
    return {"kind": kind, "text": text} if text else {"kind": kind, "fault": "there is no text in it"}


def _bounded(pieces: Iterable[str]) -> Iterator[str]:
    """The pieces until there are enough of them."""
    room = MOST_TEXT
    for piece in pieces:
        if room < 0:
            return
        yield piece
        room -= len(piece)


def _packed(data: bytes) -> str:
    """What is packed; raises Unreadable for anything but a document without macros, of a fair size."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as packed:
            entries = packed.infolist()
    except zipfile.BadZipFile:
        raise Unreadable(_BROKEN) from None
    names = {each.filename for each in entries}
    kind = next((kind for name, kind in _OFFICE.items() if name in names), None)
    if kind is None:
        raise Unreadable(f"it is {called(ZIP)}")
    if any(name.endswith("vbaProject.bin") for name in names):
        raise Unreadable("it has macros; save it without them")
    if len(entries) > _ENTRIES or sum(each.file_size for each in entries) > _UNPACKED:
        raise Unreadable("it unpacks to more than I read")
    return kind


def _pdf(data: bytes) -> Iterator[str]:
    from pypdf import PdfReader

    reader = PdfReader(BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise Unreadable("it is protected by a password")
    for count, page in enumerate(reader.pages):
        if count == _PAGES:
            yield f"\n{_LEFT_OUT}"
            return
        if text := page.extract_text().strip():
            yield f"\n[Page {count + 1}]\n{text}\n"


def _docx(data: bytes) -> Iterator[str]:
    from docx import Document

    document = Document(BytesIO(data))
    for count, block in enumerate(document.iter_inner_content()):
        if count == _BLOCKS:
            yield _LEFT_OUT
            return
        yield from _block(block, 0)


def _block(block: Any, depth: int) -> Iterator[str]:
    """A paragraph, or the rows of a table with what is in their cells."""
    if hasattr(block, "text"):
        heading = block.style is not None and str(block.style.name).startswith("Heading")
        yield f"{'# ' if heading and block.text else ''}{block.text}\n"
    elif depth < _NESTED:
        for row in block.rows:
            cells = (
                "".join(t for b in cell.iter_inner_content() for t in _block(b, depth + 1))
                for cell in row.cells
            )
            yield "\t".join(" ".join(cell.split()) for cell in cells) + "\n"


def _xlsx(data: bytes) -> Iterator[str]:
    from openpyxl import load_workbook  # type: ignore[import-untyped]

    book = load_workbook(BytesIO(data), read_only=True, data_only=True, keep_links=False)
    cells = 0
    for sheet in book.worksheets[:_SHEETS]:
        yield f"\n[Sheet {sheet.title}]\n"
        for row in sheet.iter_rows(values_only=True):
            cells += max(1, len(row))
            if cells > _CELLS:
                yield _LEFT_OUT
                return
            said = "\t".join("" if value is None else str(value) for value in row).rstrip()
            if said:
                yield f"{said}\n"


def _html(data: bytes) -> Iterator[str]:
    page = readable(data, HTML, "utf-8")
    if title := page.get("title"):
        yield f"# {title}\n"
    yield page["text"]


def _picture(data: bytes) -> dict[str, Any]:
    """Upright, scaled and drawn again, so that nothing but what is seen stays in it."""
    from PIL import Image, ImageOps

    Image.MAX_IMAGE_PIXELS = None  # what is too large is refused in words
    try:
        with Image.open(BytesIO(data), formats=("PNG", "JPEG", "GIF", "WEBP")) as picture:
            width, height = picture.size
            picture.draft("RGB", (_SIDE, _SIDE))
            if picture.width * picture.height > _PIXELS:
                raise Unreadable(f"it has {width:,} by {height:,} pixels, more than I read")
            picture.thumbnail((_SIDE, _SIDE))
            upright = ImageOps.exif_transpose(picture)
            seen = upright.has_transparency_data
            drawn = upright.convert("RGBA" if seen else "RGB")
            clean = Image.new(drawn.mode, drawn.size)
            clean.paste(drawn)
    except (OSError, ValueError, SyntaxError, EOFError):
        raise Unreadable(_BROKEN) from None
    out = BytesIO()
    clean.save(out, "PNG" if seen else "JPEG", quality=85)
    kind = "image/png" if seen else "image/jpeg"
    return {"kind": kind, "picture": base64.b64encode(out.getvalue()).decode()}


_READERS = {PDF: _pdf, DOCX: _docx, XLSX: _xlsx, HTML: _html}

if __name__ == "__main__":
    serve(answer, float(sys.argv[1]))
