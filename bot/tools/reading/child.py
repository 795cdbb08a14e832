"""The child process that reads documents and pictures, one at a time (``bot/tools/child.py``).

A question is the JSON object ``{"kind": …, "size": …}`` on one line, followed by that many bytes of the file.
The kind ``text/html`` is for web pages, and those are in UTF-8.

The answer is a JSON object:

- ``kind``: the media type that the file turned out to have
- ``text``, ``picture`` (base64) or ``fault`` (a phrase): the content, or why it can't be read
- ``note``: what was left out
- ``title`` and ``links``: of a web page

A library is loaded only for the files that need it.
"""

import base64
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from bot.domain.attachments import DOCX, EPUB, HTML, ODP, ODS, ODT, PDF, PPTX, TEXT, XLS, XLSB, XLSX, ZIP
from bot.tools.child import serve
from bot.tools.documents import cut_text
from bot.tools.reading.report import Report, UnreadableError
from bot.tools.reading.zip_package import DAMAGED_TEXT, Package, identify, list_archive

_TOO_NESTED_TEXT = "it is nested more deeply than I read"
_EMPTY_TEXT = "there is no text in it"


def answer_question(question: Mapping[str, Any]) -> dict[str, Any]:
    """Read the file that follows the question, and return the answer."""
    kind = question["kind"]
    data = sys.stdin.buffer.read(question["size"])
    report = Report()
    try:
        if kind.startswith("image/"):
            from bot.tools.reading.pictures import draw_picture

            picture = draw_picture(data, kind, report)
            encoded = base64.b64encode(picture.data).decode()
            return {"kind": picture.kind, "picture": encoded, "note": report.as_text()}
        if kind == HTML:
            from bot.tools.reading.pages import read_page

            page = read_page(data.decode(), report)
            return {**asdict(page), "kind": kind, "note": report.as_text()}
        package = Package(data) if kind == ZIP else None
        if package:
            kind = identify(package)
        kind, text = _read_text(data, kind, package, report)
        text = cut_text(text, report.remark)  # remarks that it cut the text
    except UnreadableError as error:
        return {"kind": kind, "fault": str(error)}
    except MemoryError:
        raise  # the process ends: Nod says that the file is too large
    except RecursionError:
        return {"kind": kind, "fault": _TOO_NESTED_TEXT}
    except Exception:  # noqa: BLE001 - a parser on a stranger's bytes
        return {"kind": kind, "fault": DAMAGED_TEXT}

    note = report.as_text()
    if not text.strip():
        fault = f"{_EMPTY_TEXT}. {note.removesuffix('.')}" if note else _EMPTY_TEXT
        return {"kind": kind, "fault": fault, "note": note}
    if kind != TEXT:  # plain text keeps its white space
        text = text.strip()
    return {"kind": kind, "text": text, "note": note}


def _read_text(data: bytes, kind: str, package: Package | None, report: Report) -> tuple[str, str]:
    """Return the media type and the text of a file that is no picture."""
    if kind == PDF:
        from bot.tools.reading.pdf import read_pdf

        return kind, read_pdf(data, report)
    if kind == ZIP and package:
        return kind, list_archive(package, report)
    if package:
        package.check_size()
    if kind in (XLSX, XLSB, XLS, ODS):
        from bot.tools.reading.sheets import read_workbook

        return kind, read_workbook(data, kind, package, report)
    if not package:
        from bot.tools.reading.text.plain import read_plain

        return read_plain(data, report)
    if kind == DOCX:
        from bot.tools.reading.word import read_docx

        return kind, read_docx(package, report)
    if kind == PPTX:
        from bot.tools.reading.slides import read_slides

        return kind, read_slides(data, package, report)
    if kind in (ODT, ODP):
        from bot.tools.reading.open_document import read_open_document

        return kind, read_open_document(package, report)
    if kind == EPUB:
        from bot.tools.reading.books import read_book

        return kind, read_book(package, report)
    raise UnreadableError(DAMAGED_TEXT)


if __name__ == "__main__":
    max_cpu_seconds = float(sys.argv[1])
    serve(answer_question, max_cpu_seconds)
