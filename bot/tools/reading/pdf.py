"""PDF documents: their text is read by PDFium, their forms, notes and links by pypdf.

Notes and links are *annotations* of a page. Keys such as ``/Subtype`` are those of the PDF standard
(ISO 32000).
"""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

from bot.tools.documents import MAX_TEXT_CHARS
from bot.tools.reading.report import Report, UnreadableError, describe_numbers
from bot.tools.reading.unseen.pdf_objects import UnseenText
from bot.tools.reading.zip_package import DAMAGED_TEXT, PROTECTED_TEXT

_MAX_PAGES = 1_000  # "page after the first thousand" names it
_MAX_FIELDS = 2_000
_MAX_NOTES = 1_000
_MAX_LINKS = 200
_PASSWORD_FAULTS = ("password", "security")  # words in PDFium's errors
_NOT_NOTES = frozenset({"/Link", "/Widget", "/Popup"})  # the kinds of annotations that are no notes of people
_BUTTON_STATES = {"/Off": "not ticked", "/Yes": "ticked", "/On": "ticked"}


def read_pdf(data: bytes, report: Report) -> str:
    """Return the text of each page, then the form fields, the notes and the links.

    If the pages alone exceed `MAX_TEXT_CHARS`, the rest comes first, because the caller cuts the end.
    """
    pages = _read_pages(data, report)
    try:
        extras = list(_read_extras(data, len(pages), report))
    except Exception:  # noqa: BLE001 - a parser on a stranger's bytes; the pages were read
        report.remark("Its form fields, notes and attached files can't be read.")
        extras = []
    chars_left = MAX_TEXT_CHARS
    texts = []
    for number, text in enumerate(pages, 1):
        if text:
            texts.append(f"[Page {number}]\n{text}\n")
            chars_left -= len(text)
        if chars_left < 0:  # the later pages would be cut anyway
            return "\n".join((*extras, *texts))
    return "\n".join((*texts, *extras))


def _read_pages(data: bytes, report: Report) -> list[str]:
    import pypdfium2  # type: ignore[import-untyped]

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if any(word in str(error).lower() for word in _PASSWORD_FAULTS):
            raise UnreadableError(PROTECTED_TEXT) from None
        raise UnreadableError(DAMAGED_TEXT) from None
    total = len(document)
    report.count_left_out("page after the first thousand", max(0, total - _MAX_PAGES))
    texts: list[str] = []
    damaged: list[int] = []  # numbers of pages
    pictures = 0
    chars_left = 2 * MAX_TEXT_CHARS  # more than enough: the text is cut at `MAX_TEXT_CHARS`
    unseen = UnseenText(report)
    for number in range(min(total, _MAX_PAGES)):
        try:
            page = document[number]
            text = page.get_textpage().get_text_range().replace("\r\n", "\n").strip()
            pictures += _count_pictures(page)
            unseen.inspect(page)
        except pypdfium2.PdfiumError:
            damaged.append(number + 1)
            text = ""
        texts.append(_tidy(text))
        chars_left -= len(text)
        if chars_left < 0:
            report.count_left_out("page", total - number - 1)
            break
    if damaged and len(damaged) == len(texts):
        raise UnreadableError(DAMAGED_TEXT)
    without_text = [number for number, text in enumerate(texts, 1) if not text and number not in damaged]
    if without_text:
        verb = "holds" if len(without_text) == 1 else "hold"
        report.remark(f"{describe_numbers('Page', without_text)} {verb} no text.")
    if damaged:
        report.remark(f"{describe_numbers('Page', damaged)} can't be read.")
    report.count_left_out("picture", pictures)
    return texts


def _tidy(text: str) -> str:
    """Return the text without PDFium's marks. U+FFFE is a hyphen; at the end of a line it splits a word."""
    return text.replace("\ufffe\n", "").replace("\ufffe", "-").replace("\0", "").replace("\r", "\n")


def _count_pictures(page: Any) -> int:
    from pypdfium2 import raw

    return sum(1 for _ in page.get_objects(filter=(raw.FPDF_PAGEOBJ_IMAGE,), max_depth=3))


def _read_extras(data: bytes, pages: int, report: Report) -> Iterator[str]:
    """Yield the form, the notes and the links of a document; unreadable parts are counted."""
    from pypdf import PdfReader

    reader = PdfReader(BytesIO(data))
    if reader.is_encrypted:
        reader.decrypt("")
    fields = list(_list_fields(reader))
    if fields:
        yield "[Form]\n" + "\n".join(fields[:_MAX_FIELDS]) + "\n"
    report.count_left_out("form field", max(0, len(fields) - _MAX_FIELDS))
    form = reader.root_object.get("/AcroForm")
    if form is not None and "/XFA" in form.get_object():
        report.count_left_out("form of the XFA kind")
    report.count_left_out("attached file", len(reader.attachments))
    notes: list[str] = []
    links: list[str] = []
    for number in range(min(pages, len(reader.pages))):
        for annotation in reader.pages[number].get("/Annots") or ():
            _collect_annotation(annotation.get_object(), number + 1, notes, links, report)
    yield from notes[:_MAX_NOTES]
    report.count_left_out("note", max(0, len(notes) - _MAX_NOTES))
    addresses = list(dict.fromkeys(links))
    if addresses:
        yield "[Links]\n" + "\n".join(addresses[:_MAX_LINKS])
    report.count_left_out("link", max(0, len(addresses) - _MAX_LINKS))


def _list_fields(reader: Any) -> Iterator[str]:
    """Yield each field that is filled in: its label and its value. The keys are from the PDF standard."""
    for name, field in (reader.get_fields() or {}).items():
        kind, value = field.get("/FT"), field.get("/V")
        if kind is None or value is None or value == "":
            continue
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        if kind == "/Btn":
            text = _BUTTON_STATES.get(text) or f"ticked: {text.lstrip('/')}"
        elif kind == "/Sig":
            text = "signed"
        yield f"{field.get('/TU') or name}: {text}"


def _collect_annotation(
    annotation: Any, page: int, notes: list[str], links: list[str], report: Report
) -> None:
    """Add an annotation to the notes or to the links, or count it as left out."""
    kind = annotation.get("/Subtype")
    words = str(annotation.get("/Contents") or "").replace("\r", "\n").strip()
    action = annotation.get("/A")
    if kind == "/Link" and action is not None:
        address = action.get_object().get("/URI")
        if address:
            links.append(str(address))
    elif words and kind not in _NOT_NOTES:
        notes.append(f"[Note on page {page}: {words}]")
    elif kind == "/FileAttachment":
        report.count_left_out("attached file")
    elif kind not in _NOT_NOTES:
        report.count_left_out("mark without words")
