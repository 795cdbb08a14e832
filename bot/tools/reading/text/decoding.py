"""Decoding of text whose encoding is not known: `decode` tries several, and reports what it guessed."""

import codecs
import re

from bot.domain.attachments import UNKNOWN, describe_kind, strip_controls
from bot.tools.reading.encodings import detect_encoding
from bot.tools.reading.report import Report, UnreadableError

_CHARS_PER_BAD_CHAR = 50  # a text has at most one damaged or control character among this many
_RIGHT_PER_WRONG = 4  # damaged UTF-8 has this many right characters that are not ASCII for each wrong one
_BYTE_ORDER_MARKS = (  # UTF-32 before UTF-16: their marks begin alike
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UNSAFE_CODECS = frozenset({"punycode", "idna", "unicode-escape", "raw-unicode-escape", "undefined", "utf-7"})
_SUPERSET_OF = {  # the encoding that programs write although they name the smaller one
    "shift_jis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "iso8859-1": "cp1252",
}
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
# '<?xml version="1.0" encoding="utf-8"' (group 1), '<meta charset="utf-8"' (group 2)
_DECLARED_ENCODING = re.compile(
    rb"""<\?xml[^>]{0,200}\bencoding\s*=\s*["']([A-Za-z0-9._:-]{2,40})|<meta[^>]{0,300}\bcharset\s*=\s*["']?([A-Za-z0-9._:-]{2,40})""",
    re.IGNORECASE,
)


def decode(data: bytes, report: Report) -> str:
    """Return the text in the bytes. Raises UnreadableError for bytes that are no text.

    These are tried in turn: a byte-order mark, the declared encoding, UTF-8, UTF-8 with a few damaged
    characters, and the encoding that `detect_encoding` finds.
    """
    for mark, coding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return _decode_loosely(data[len(mark) :], coding, report)
    declared = _DECLARED_ENCODING.search(data[:2_000])
    if declared:
        coding = _find_coding(declared[1] or declared[2])
        if coding and _is_decodable(data, coding):
            return data.decode(coding)
    plain = strip_controls(data)
    if plain is None:  # too many control characters for UTF-8
        return _decode_as_detected(data, report)
    if len(plain) < len(data):
        report.leave_out("control character", len(data) - len(plain))
    is_iso_2022_jp = b"\x1b$" in plain  # its bytes are also valid UTF-8
    if not is_iso_2022_jp and _is_decodable(plain, "utf-8"):
        return plain.decode()
    if _is_mostly_utf8(plain):
        return _decode_loosely(plain, "utf-8", report)
    return _decode_as_detected(plain, report)


def _find_coding(name: bytes) -> str:
    """Return the codec of a declared character set, if that is a superset of ASCII; empty for another."""
    try:
        coding = codecs.lookup(name.decode("ascii")).name
    except (LookupError, ValueError):
        return ""
    if coding in _UNSAFE_CODECS or coding.startswith(("utf-16", "utf-32")):
        return ""
    return _SUPERSET_OF.get(coding, coding)


def _is_decodable(data: bytes, coding: str) -> bool:
    try:
        data.decode(coding)
    except (UnicodeError, LookupError):
        return False
    return True


def _is_mostly_utf8(data: bytes) -> bool:
    """Tell if the bytes are damaged UTF-8, and not another encoding: hardly any characters are wrong."""
    text = data.decode(errors="replace")
    wrong = text.count("\ufffd")
    right = sum(1 for char in text if char > "\x7f") - wrong
    return right > 0 and wrong * _RIGHT_PER_WRONG <= right


def _decode_loosely(data: bytes, coding: str, report: Report) -> str:
    text = data.decode(coding, errors="replace")
    report.leave_out("damaged character", text.count("\ufffd") - data.count("\ufffd".encode(coding)))
    kept = _CONTROLS.sub("", text)
    report.leave_out("control character", len(text) - len(kept))
    return kept


def _decode_as_detected(data: bytes, report: Report) -> str:
    """Return the text in the detected encoding, which is reported. Raises UnreadableError."""
    encoding = detect_encoding(data)
    if not encoding:
        raise UnreadableError(f"it is {describe_kind(UNKNOWN)}")
    coding = codecs.lookup(encoding).name
    text = data.decode(_SUPERSET_OF.get(coding, coding), errors="replace")
    if _has_too_many_bad_chars(text):
        raise UnreadableError(f"it is {describe_kind(UNKNOWN)}")
    report.leave_out("damaged character", text.count("\ufffd"))
    kept = _CONTROLS.sub("", text)
    report.leave_out("control character", len(text) - len(kept))
    report.remark(f"The file doesn't say its encoding. I read it as {encoding}.")
    return kept.removeprefix("\ufeff")


def _has_too_many_bad_chars(text: str) -> bool:
    bad = text.count("\ufffd") + len(_CONTROLS.findall(text))
    return bad * _CHARS_PER_BAD_CHAR > len(text)
