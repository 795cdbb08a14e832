"""Decoding of text whose encoding is not known: `decode` tries several, and reports what it guessed."""

import codecs
import re

from bot.domain.attachments import UNKNOWN, describe_kind, strip_controls
from bot.tools.reading.encodings import detect_encoding
from bot.tools.reading.report import Report, UnreadableError

_CHARS_PER_BAD_CHAR = 50  # a text has at most one damaged or control character among this many
# damaged UTF-8 has at least this many right characters that are not ASCII for each wrong one
_MIN_RIGHT_PER_WRONG_CHAR = 4
_MAX_DECLARATION_BYTES = 2_000  # a declared encoding is looked for in the first bytes
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
    for mark, codec_name in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return _decode_loosely(data[len(mark) :], codec_name, report)
    declared = _DECLARED_ENCODING.search(data[:_MAX_DECLARATION_BYTES])
    if declared:
        codec_name = _find_codec(declared[1] or declared[2])
        if codec_name and _is_decodable(data, codec_name):
            return data.decode(codec_name)
    without_controls = strip_controls(data)
    if without_controls is None:  # too many control characters for UTF-8
        return _decode_as_detected(data, report)
    if len(without_controls) < len(data):
        report.count_left_out("control character", len(data) - len(without_controls))
    is_iso_2022_jp = b"\x1b$" in without_controls  # its bytes are also valid UTF-8
    if not is_iso_2022_jp and _is_decodable(without_controls, "utf-8"):
        return without_controls.decode()
    if _is_mostly_utf8(without_controls):
        return _decode_loosely(without_controls, "utf-8", report)
    return _decode_as_detected(without_controls, report)


def _find_codec(name: bytes) -> str:
    """Return the codec of a declared character set, if that is a superset of ASCII; empty for another."""
    try:
        codec_name = codecs.lookup(name.decode("ascii")).name
    except (LookupError, ValueError):
        return ""
    if codec_name in _UNSAFE_CODECS or codec_name.startswith(("utf-16", "utf-32")):
        return ""
    return _SUPERSET_OF.get(codec_name, codec_name)


def _is_decodable(data: bytes, codec_name: str) -> bool:
    try:
        data.decode(codec_name)
    except (UnicodeError, LookupError):
        return False
    return True


def _is_mostly_utf8(data: bytes) -> bool:
    """Tell if the bytes are damaged UTF-8, and not another encoding: hardly any characters are wrong."""
    text = data.decode(errors="replace")
    wrong = text.count("\ufffd")
    right = sum(1 for char in text if char > "\x7f") - wrong
    return right > 0 and wrong * _MIN_RIGHT_PER_WRONG_CHAR <= right


def _decode_loosely(data: bytes, codec_name: str, report: Report) -> str:
    text = data.decode(codec_name, errors="replace")
    # a replacement character that the file itself has is no damage
    own_replacements = data.count("\ufffd".encode(codec_name))
    report.count_left_out("damaged character", text.count("\ufffd") - own_replacements)
    kept = _CONTROLS.sub("", text)
    report.count_left_out("control character", len(text) - len(kept))
    return kept


def _decode_as_detected(data: bytes, report: Report) -> str:
    """Return the text in the detected encoding, which is reported. Raises UnreadableError."""
    encoding = detect_encoding(data)
    if not encoding:
        raise UnreadableError(f"it is {describe_kind(UNKNOWN)}")
    codec_name = codecs.lookup(encoding).name
    text = data.decode(_SUPERSET_OF.get(codec_name, codec_name), errors="replace")
    if _has_too_many_bad_chars(text):
        raise UnreadableError(f"it is {describe_kind(UNKNOWN)}")
    report.count_left_out("damaged character", text.count("\ufffd"))
    kept = _CONTROLS.sub("", text)
    report.count_left_out("control character", len(text) - len(kept))
    report.remark(f"The file doesn't say its encoding. I read it as {encoding}.")
    return kept.removeprefix("\ufeff")


def _has_too_many_bad_chars(text: str) -> bool:
    bad_chars = text.count("\ufffd") + len(_CONTROLS.findall(text))
    return bad_chars * _CHARS_PER_BAD_CHAR > len(text)
