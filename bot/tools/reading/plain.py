"""Text whose encoding is not known, and kinds of file that are text with marks: RTF, notebooks, e-mail."""

import codecs
import email
import email.policy
import json
import re
from collections.abc import Iterator, Mapping
from email.message import EmailMessage, MIMEPart
from typing import Any

from bot.domain.attachments import HTML, HTML_PAGE, TEXT, UNKNOWN, describe_kind, strip_controls
from bot.tools.reading.encodings import detect_encoding
from bot.tools.reading.pages import read_page
from bot.tools.reading.report import Report, UnreadableError

_MAX_PARTS = 200
_MIN_CHARS_PER_ODD = 50
_MAX_RTF_BYTES = 3_000_000
_BYTE_ORDER_MARKS = (  # UTF-32 before UTF-16: their marks begin alike
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NO_CHARSETS = frozenset({"punycode", "idna", "unicode-escape", "raw-unicode-escape", "undefined", "utf-7"})
_SUPERSET_OF = {
    "shift_jis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "iso8859-1": "cp1252",
}
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_RTF_PICTURE = re.compile(rb"[0-9a-fA-F\r\n]{10000,}")
_RTF_GROUP = (  # a group whose leading control words include the given one, as in {\b\deleted …}; not \v0
    rb"\{(?:\\(?!%s(?![a-z]))[a-z]+-?[0-9]* ?)*+\\%s(?![0-9a-z])(?:\\[^v]|\\v(?!0)|[^{}\\])*+\}"
)
_RTF_DROPPED = (  # groups that striprtf drops: each becomes a paragraph, so that its text is kept
    (re.compile(rb"\{\\footnote(?![a-z]) ?"), rb"{\\par [Note] "),
    (re.compile(rb"\{\\header[flr]?(?![a-z]) ?"), rb"{\\par [Header] "),
    (re.compile(rb"\{\\footer[flr]?(?![a-z]) ?"), rb"{\\par [Footer] "),
    (re.compile(rb"\{\\\*\\annotation(?![a-z]) ?"), rb"{\\par [Comment] "),
    (re.compile(rb"\{(?:\\\*)?\\(?:shp|shpinst|do)(?![a-z])"), rb"{\\nod "),
    (re.compile(rb"\{\\(?:shptxt|dptxbxtext)(?![a-z]) ?"), rb"{\\par "),
)
_RTF_BRIGHT = re.compile(rb"\\(?:red|green|blue)2[45][0-9](?![0-9])")
_RTF_LEVELS = 3  # red, green and blue
_RTF_BACKGROUND = re.compile(rb"\\(?:chcbpat|cbpat|clcbpat|highlight|cb)[1-9]")
_STATED = re.compile(
    rb"""<\?xml[^>]{0,200}\bencoding\s*=\s*["']([A-Za-z0-9._:-]{2,40})|<meta[^>]{0,300}\bcharset\s*=\s*["']?([A-Za-z0-9._:-]{2,40})""",
    re.IGNORECASE,
)
_MAIL = re.compile(
    r"(?:(?:Received|From|To|Return-Path|MIME-Version|Delivered-To|Subject|Date|Message-ID|Reply-To|X-[\w-]+"
    r"|DKIM-Signature|Content-Type|ARC-[\w-]+|Authentication-Results): [^\n]*\n(?:[ \t][^\n]*\n)*){2}",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+")
_ONLY_IN_PLAIN_VERSION = re.compile(
    r"\b(?:https?://|mailto:)[^\s<>]+|\[(?:image|cid):[^\]\n]*\]", re.IGNORECASE
)
_SHOWN_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_PACKED_LINE = re.compile(
    r"^(?:PHOTO|LOGO|SOUND|KEY|ATTACH)[;:][^\n]*(?:\n[ \t][^\n]*)*", re.IGNORECASE | re.MULTILINE
)
_DATA_ADDRESS = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,[A-Za-z0-9+/=]{200,}")


def read_plain(data: bytes, report: Report) -> tuple[str, str]:
    """Return the media type and the text."""
    text = decode(data, report)
    begin = text[:5_000].lstrip()
    if begin.startswith("{\\rtf"):
        return TEXT, _read_rtf(data, report)
    if HTML_PAGE.match(begin):
        return HTML, read_html(text, report)
    if begin.startswith("{") and '"nbformat"' in text:
        notebook = _read_notebook(text, report)
        if notebook is not None:
            return TEXT, notebook
    if _MAIL.match(begin) and re.search(r"^(?:from|received):", begin, re.IGNORECASE | re.MULTILINE):
        return TEXT, _read_mail(data, report)
    return TEXT, _leave_out_packed(text, report)


def decode(data: bytes, report: Report) -> str:
    """Return the text in the bytes; raises UnreadableError for other bytes.

    Tried in this order: a byte-order mark, the encoding that the text states, UTF-8, UTF-8 with a few damaged
    characters, and what detection finds.
    """
    for mark, coding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return _decode_loosely(data[len(mark) :], coding, report)
    stated = _STATED.search(data[:2_000])
    coding = _find_coding(stated[1] or stated[2]) if stated else ""
    if coding and _is_decodable(data, coding):
        return data.decode(coding)
    plain = strip_controls(data)
    if plain is None:
        return _decode_as_detected(data, report)
    if len(plain) < len(data):
        report.leave_out("control character", len(data) - len(plain))
    is_iso_2022_jp = b"\x1b$" in plain  # whose bytes are also valid UTF-8
    if not is_iso_2022_jp and _is_decodable(plain, "utf-8"):
        return plain.decode()
    if _is_mostly_utf8(plain):
        return _decode_loosely(plain, "utf-8", report)
    return _decode_as_detected(plain, report)


def _find_coding(name: bytes) -> str:
    """Return the name of a character set that is one byte or more for each character; empty for another."""
    try:
        found = codecs.lookup(name.decode("ascii")).name
    except (LookupError, ValueError):
        return ""
    if found in _NO_CHARSETS or found.startswith(("utf-16", "utf-32")):
        return ""
    return _SUPERSET_OF.get(found, found)


def _is_decodable(data: bytes, coding: str) -> bool:
    try:
        data.decode(coding)
    except (UnicodeError, LookupError):
        return False
    return True


def _is_mostly_utf8(data: bytes) -> bool:
    """Tell if it is damaged UTF-8, not another encoding: hardly any characters are wrong."""
    text = data.decode(errors="replace")
    wrong = text.count("\ufffd")
    right = sum(1 for each in text if each > "\x7f") - wrong
    return right > 0 and wrong * 4 <= right


def _decode_loosely(data: bytes, coding: str, report: Report) -> str:
    text = data.decode(coding, errors="replace")
    report.leave_out("damaged character", text.count("\ufffd") - data.count("\ufffd".encode(coding)))
    kept = _CONTROLS.sub("", text)
    report.leave_out("control character", len(text) - len(kept))
    return kept


def _decode_as_detected(data: bytes, report: Report) -> str:
    """Detect the encoding, and say which one was taken."""
    found = detect_encoding(data)
    if not found:
        raise UnreadableError(f"it is {describe_kind(UNKNOWN)}")
    coding = codecs.lookup(found).name
    text = data.decode(_SUPERSET_OF.get(coding, coding), errors="replace")
    if _has_too_many_odd(text):
        raise UnreadableError(f"it is {describe_kind(UNKNOWN)}")
    report.leave_out("damaged character", text.count("\ufffd"))
    kept = _CONTROLS.sub("", text)
    report.leave_out("control character", len(text) - len(kept))
    report.remark(f"The file doesn't say its encoding. I read it as {found}.")
    return kept.removeprefix("\ufeff")


def _has_too_many_odd(text: str) -> bool:
    odd = text.count("\ufffd") + len(_CONTROLS.findall(text))
    return odd * _MIN_CHARS_PER_ODD > len(text)


def read_html(text: str, report: Report, sheets: Mapping[str, str] | None = None) -> str:
    """Return a page's title and what people see of it. ``sheets`` as in `read_page`."""
    page = read_page(text, report, sheets)
    return f"# {page.title}\n{page.text}" if page.title else page.text


def _read_rtf(data: bytes, report: Report) -> str:
    from striprtf.striprtf import rtf_to_text

    if len(data) > _MAX_RTF_BYTES:  # the digits of its pictures
        data = _RTF_PICTURE.sub(b"", data)
    report.leave_out("picture", len(re.findall(rb"\\pict\b", data)))
    report.leave_out("embedded object", len(re.findall(rb"\\object\b", data)))
    for kind, word in (("tracked deletion", rb"deleted"), ("piece of hidden text", rb"v")):
        data, removed = re.subn(_RTF_GROUP % (word, word), b"", data)
        report.leave_out(kind, removed)
        report.reveal(kind, len(re.findall(rb"\\%s(?![0-9a-z])" % word, data)))
    report.reveal("piece of white or tiny text", _count_faint_rtf(data))
    for pattern, written in _RTF_DROPPED:
        data = pattern.sub(written, data)
    stated = re.search(rb"\\ansicpg([0-9]{3,5})", data)
    coding = f"cp{stated[1].decode()}" if stated else "cp1252"
    text = rtf_to_text(data.decode("latin-1"), encoding=coding, errors="replace")  # type: ignore[no-untyped-call]
    return str(text)


def _count_faint_rtf(data: bytes) -> int:
    """Count the changes to white, where the text has no background, or to less than three points."""
    table = re.search(rb"\\colortbl([^{}]*)", data)
    colours = table[1].split(b";") if table else []
    white = []
    for number, colour in enumerate(colours):
        if len(_RTF_BRIGHT.findall(colour)) == _RTF_LEVELS:
            white.append(b"%d" % number)
    tiny = len(re.findall(rb"\\fs[0-5](?![0-9])", data))
    if not white or _RTF_BACKGROUND.search(data):
        return tiny
    return tiny + len(re.findall(rb"\\cf(?:%s)(?![0-9])" % b"|".join(white), data))


def _read_notebook(text: str, report: Report) -> str | None:
    """Return the cells and what they gave as text; None where the JSON is no notebook."""
    try:
        notebook = json.loads(text)
        if "cells" in notebook:
            cells = notebook["cells"]
        else:
            cells = notebook["worksheets"][0]["cells"]
        return "\n".join(line for at, cell in enumerate(cells, 1) for line in _read_cell(at, cell, report))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _read_cell(number: int, cell: Mapping[str, Any], report: Report) -> Iterator[str]:
    yield f"[Cell {number}, {cell['cell_type']}]\n{_join_lines(cell.get('source', cell.get('input', '')))}\n"
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        text = output.get("text", data.get("text/plain", ""))
        report.leave_out("picture", sum(1 for kind in data if kind.startswith("image/")))
        report.leave_out("interactive output", sum(1 for kind in data if kind.startswith("application/")))
        if "ename" in output:
            text = f"{output['ename']}: {output.get('evalue', '')}"
        if text:
            yield f"[Output]\n{_join_lines(text)}\n"
    for parts in (cell.get("attachments") or {}).values():
        report.leave_out("picture", len(parts))


def _join_lines(lines: Any) -> str:
    if isinstance(lines, str):
        return lines
    return "".join(map(str, lines))


def _read_mail(data: bytes, report: Report) -> str:
    """Return the headers that people see and the text; attached files are named and left out."""
    message = email.message_from_bytes(data, policy=email.policy.default)
    lines = [f"{name}: {message[name]}" for name in _SHOWN_HEADERS if message[name]]
    body = _read_body(message, report)
    if body is not None:
        lines += ["", body]
    elif not message.is_multipart():
        report.leave_out("attached file")
    for part in list(message.iter_attachments())[:_MAX_PARTS]:
        if part.get_content_maintype() == "image" and part.get_content_disposition() != "attachment":
            report.leave_out("picture")
        else:
            report.leave_out("attached file")
            lines.append(f"[Attached: {part.get_filename() or part.get_content_type()}]")
    return "\n".join(lines)


def _read_body(message: EmailMessage, report: Report) -> str | None:
    """Return the text as people see it.

    The plain version is taken if it has the same words as the HTML one; else the HTML one, which people see.
    """
    plain, page = message.get_body(("plain",)), message.get_body(("html",))
    if page is None:
        if plain is None:
            return None
        return _read_part(plain, report)
    if plain is None:
        return read_html(_read_part(page, report), report)
    written, seen = _read_part(plain, report), Report()
    shown = read_html(_read_part(page, seen), seen)
    if set(_WORD.findall(shown)) == set(_WORD.findall(_ONLY_IN_PLAIN_VERSION.sub("", written))):
        return written
    report.leave_out("plain version with other words")
    report.left_out.update(seen.left_out)
    report.revealed.update(seen.revealed)
    report.remarks.extend(seen.remarks)
    return shown


def _read_part(part: MIMEPart, report: Report) -> str:
    """Return the text of a part. Without a declared encoding it is read like a file."""
    data = part.get_payload(decode=True)
    if part.get_content_charset() is None and isinstance(data, bytes) and not data.isascii():
        return decode(data, report)
    return str(part.get_content())


def _leave_out_packed(text: str, report: Report) -> str:
    """Leave out data in base64: a picture in a card, a file in a calendar or in an address."""
    if text.lstrip().startswith(("BEGIN:VCARD", "BEGIN:VCALENDAR")):
        text, count = _PACKED_LINE.subn("[data left out]", text)
        report.leave_out("picture or file", count)
    text, count = _DATA_ADDRESS.subn("[data left out]", text)
    report.leave_out("picture or file", count)
    return text
