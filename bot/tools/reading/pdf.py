"""PDF documents: their text by PDFium, their forms, notes and attached files by pypdf."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

from bot.tools.documents import MAX_TEXT_CHARS
from bot.tools.reading.packed import DAMAGED_TEXT, PROTECTED_TEXT
from bot.tools.reading.report import Report, UnreadableError, describe_numbers
from bot.tools.reading.unseen.pdf_objects import UnseenText

_MAX_PAGES = 1_000
_MAX_FIELDS, _MAX_NOTES, _MAX_LINKS = 2_000, 1_000, 200
_PASSWORD_FAULTS = ("password", "security")
_SILENT_NOTES = frozenset({"/Link", "/Widget", "/Popup"})


def read_pdf(data: bytes, report: Report) -> str:
    """Return the text of each page, then what was filled in, noted and linked."""
    pages = _read_pages(data, report)
    try:
        more = list(_read_more(data, len(pages), report))
    except Exception:  # noqa: BLE001 - a parser on a stranger's bytes; the pages were read
        report.remark("Its form fields, notes and attached files can't be read.")
        more = []
    room, told = MAX_TEXT_CHARS, []
    for number, text in enumerate(pages, 1):
        if text:
            told.append(f"[Page {number}]\n{text}\n")
            room -= len(text)
        if room < 0:
            break
    if room < 0:
        return "\n".join((*more, *told))
    return "\n".join((*told, *more))


def _read_pages(data: bytes, report: Report) -> list[str]:
    import pypdfium2  # type: ignore[import-untyped]

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if any(word in str(error).lower() for word in _PASSWORD_FAULTS):
            raise UnreadableError(PROTECTED_TEXT) from None
        raise UnreadableError(DAMAGED_TEXT) from None
    total = len(document)
    report.leave_out("page after the first thousand", max(0, total - _MAX_PAGES))
    texts, damaged, pictures, room = [], [], 0, 2 * MAX_TEXT_CHARS
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
        room -= len(text)
        if room < 0:
            report.leave_out("page", total - number - 1)
            break
    if damaged and len(damaged) == len(texts):
        raise UnreadableError(DAMAGED_TEXT)
    silent = [at for at, text in enumerate(texts, 1) if not text and at not in damaged]
    if silent:
        report.remark(
            f"{describe_numbers('Page', silent)} {'holds' if len(silent) == 1 else 'hold'} no text."
        )
    if damaged:
        report.remark(f"{describe_numbers('Page', damaged)} can't be read.")
    report.leave_out("picture", pictures)
    return texts


def _tidy(text: str) -> str:
    return text.replace("\ufffe\n", "").replace("\ufffe", "-").replace("\0", "").replace("\r", "\n")


def _count_pictures(page: Any) -> int:
    from pypdfium2 import raw

    return sum(1 for _ in page.get_objects(filter=(raw.FPDF_PAGEOBJ_IMAGE,), max_depth=3))


def _read_more(data: bytes, pages: int, report: Report) -> Iterator[str]:
    from pypdf import PdfReader

    reader = PdfReader(BytesIO(data))
    if reader.is_encrypted:
        reader.decrypt("")
    fields = list(_fields(reader))
    if fields:
        yield "[Form]\n" + "\n".join(fields[:_MAX_FIELDS]) + "\n"
    report.leave_out("form field", max(0, len(fields) - _MAX_FIELDS))
    form = reader.root_object.get("/AcroForm")
    if form is not None and "/XFA" in form.get_object():
        report.leave_out("form of the XFA kind")
    report.leave_out("attached file", len(reader.attachments))
    notes: list[str] = []
    links: list[str] = []
    for number in range(min(pages, len(reader.pages))):
        for note in reader.pages[number].get("/Annots") or ():
            _take_note(note.get_object(), number + 1, notes, links, report)
    yield from notes[:_MAX_NOTES]
    report.leave_out("note", max(0, len(notes) - _MAX_NOTES))
    addresses = list(dict.fromkeys(links))
    if addresses:
        yield "[Links]\n" + "\n".join(addresses[:_MAX_LINKS])
    report.leave_out("link", max(0, len(addresses) - _MAX_LINKS))


def _fields(reader: Any) -> Iterator[str]:
    for name, field in (reader.get_fields() or {}).items():
        value = field.get("/V")
        if field.get("/FT") is None or value is None or value == "":
            continue
        said = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        if field.get("/FT") == "/Btn":
            said = {"/Off": "not ticked", "/Yes": "ticked", "/On": "ticked"}.get(
                said, f"ticked: {said.lstrip('/')}"
            )
        elif field.get("/FT") == "/Sig":
            said = "signed"
        yield f"{field.get('/TU') or name}: {said}"


def _take_note(note: Any, page: int, notes: list[str], links: list[str], report: Report) -> None:
    kind = note.get("/Subtype")
    words = str(note.get("/Contents") or "").replace("\r", "\n").strip()
    action = note.get("/A")
    if kind == "/Link" and action is not None:
        address = action.get_object().get("/URI")
        if address:
            links.append(str(address))
    elif words and kind not in _SILENT_NOTES:
        notes.append(f"[Note on page {page}: {words}]")
    elif kind == "/FileAttachment":
        report.leave_out("attached file")
    elif kind not in _SILENT_NOTES:
        report.leave_out("mark without words")
