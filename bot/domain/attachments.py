"""Files that people attach to messages: an `Upload` as it arrives, an `Attachment` as it is stored. Pure.

A message may also bring files from earlier messages, such as those of the thread that Nod is called into. The
type of a file is found by its bytes (`type_of`), since its name, and the type that a platform gives, may be
made up. ``bot/agent/attachments.py`` reads the files before a turn; here are the limits and the texts.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from bot.domain.text import escape_markdown, one_line, shorten

TEXT, HTML = "text/plain", "text/html"
PDF = "application/pdf"
ZIP = "application/zip"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSB = "application/vnd.ms-excel.sheet.binary.macroenabled.12"
XLS = "application/vnd.ms-excel"
DOC, PPT, MSG = "application/msword", "application/vnd.ms-powerpoint", "application/vnd.ms-outlook"
OLE = "application/x-ole-storage"
ODT = "application/vnd.oasis.opendocument.text"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
ODP = "application/vnd.oasis.opendocument.presentation"
EPUB = "application/epub+zip"
PICTURES = (
    "image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/tiff", "image/heic",
    "image/avif", "image/vnd.adobe.photoshop", "image/x-icon", "image/jp2",
)  # fmt: skip
UNKNOWN = "application/octet-stream"
MEGABYTE = 1_000_000
MAX_EARLIER_FILES = 5  # the most files of earlier messages that are read with a message

_ARCHIVE = "application/gzip"  # stands for every archive except ZIP: none is opened

# the bytes that mark a format: their offset, the bytes, and the media type; the first match counts
_MAGIC_BYTES = (
    (0, b"%PDF-", PDF),
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"II*\0", "image/tiff"),
    (0, b"MM\0*", "image/tiff"),
    (0, b"8BPS\0\1", "image/vnd.adobe.photoshop"),
    (0, b"\0\0\1\0", "image/x-icon"),
    (4, b"jP  \r\n\x87\n", "image/jp2"),
    (0, b"PK\x03\x04", ZIP),
    (0, b"PK\x05\x06", ZIP),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", OLE),
    (0, b"\x1f\x8b", _ARCHIVE),
    (0, b"7z\xbc\xaf\x27\x1c", _ARCHIVE),
    (0, b"Rar!\x1a\x07", _ARCHIVE),
    (0, b"BZh", _ARCHIVE),
    (0, b"\xfd7zXZ\0", _ARCHIVE),
    (0, b"\x28\xb5\x2f\xfd", _ARCHIVE),
    (257, b"ustar", _ARCHIVE),
    (0, b"OggS", "audio/ogg"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"#!AMR", "audio/amr"),
    (8, b"WAVE", "audio/wav"),
    (8, b"AVI ", "video/x-msvideo"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
    (0, b"\x7fELF", "application/x-executable"),
    (0, b"SQLite format 3\0", "application/vnd.sqlite3"),
)
_BRANDS = {  # the brands of the ISO base media format, the four bytes after "ftyp", with the media type
    b"heic": "image/heic", b"heix": "image/heic", b"hevc": "image/heic", b"heim": "image/heic",
    b"heis": "image/heic", b"mif1": "image/heic", b"msf1": "image/heic", b"avif": "image/avif",
    b"avis": "image/avif", b"M4A ": "audio/mp4", b"M4B ": "audio/mp4", b"F4A ": "audio/mp4",
}  # fmt: skip
_OLE_STREAMS = (  # the name of the stream with the document, and the media type
    ("EncryptedPackage", OLE), ("WordDocument", DOC), ("PowerPoint Document", PPT),
    ("__properties_version1.0", MSG), ("Workbook", XLS), ("Book", XLS),
)  # fmt: skip
_MP3_FRAMES = frozenset({0xFA, 0xFB, 0xF2, 0xF3})  # the second byte of an MPEG frame's header, for layer III
_PDF_WITHIN_BYTES = 1_024  # readers of PDF accept the mark anywhere in the first bytes
_BITMAP_HEAD_BYTES = 26
_KIND_NAMES = {
    TEXT: "text",
    HTML: "a web page",
    PDF: "a PDF document",
    DOCX: "a Word document",
    XLSX: "a spreadsheet",
    XLSB: "a spreadsheet",
    XLS: "a spreadsheet",
    ODS: "a spreadsheet",
    PPTX: "a presentation",
    ODP: "a presentation",
    ODT: "an OpenDocument text",
    EPUB: "a book",
    ZIP: "an archive",
    _ARCHIVE: "an archive",
    "application/vnd.sqlite3": "a database",
    DOC: "a Word document of the old format; save it as .docx",
    PPT: "a presentation of the old format; save it as .pptx",
    MSG: "a message of Outlook; save it as .eml or as text",
    OLE: "a document of an old or protected format",
    "application/x-executable": "a program",
    UNKNOWN: "of a kind I don't know",
}
_GROUP_NAMES = {"image": "a picture", "audio": "a recording", "video": "a video", "text": _KIND_NAMES[TEXT]}
"""The names of further media types, by the part before the slash."""
# the start of a page, perhaps after an XML declaration and a comment: "<?xml …?> <!-- … --> <!doctype html"
HTML_PAGE = re.compile(
    r"\s*+(?:<\?xml[^>]{0,200}>\s*+)?(?:<!--(?:(?!-->).){0,2000}-->\s*+)?<(?:!doctype\s+html|html)\b",
    re.IGNORECASE | re.DOTALL,
)
_CONTROLS = bytes(byte for byte in range(32) if byte not in b"\t\n\v\f\r\x1b") + b"\x7f"
_CONTROL_RUN = re.compile(b"[" + re.escape(_CONTROLS) + b"]+")
# the fewest other bytes that a text has for each control character; random bytes have about 8
_MIN_BYTES_PER_CONTROL = 20
_MIN_BYTES_PER_RUN = 12  # the same for each run of control characters
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_MAX_NAME_CHARS = 100
_MAX_TRANSCRIPT_CHARS = 600  # the most characters of a transcript that the agent's answer quotes
TRANSCRIPT_PREFIX = "Heard:"
"""The beginning of the agent's answer to a recording, before the quoted transcript."""


class Origin(StrEnum):
    """The way in which a file came with a message."""

    ATTACHED = ""  # the writer added it
    SPOKEN = "spoken"  # the writer recorded it for this message: their own words
    EARLIER = "earlier"  # it came with an earlier message, which may be someone else's


class Upload(NamedTuple):
    """A file that comes with a message: with its bytes, or with the reference by which they are fetched."""

    name: str
    data: bytes | None = None  # None: fetch them by ``ref``
    ref: str = ""  # the reference by which the channel fetches the file
    size: int = 0  # bytes, as the platform says; 0 if it does not
    earlier: bool = False  # it came with an earlier message
    spoken: bool = False  # a recording that the writer made for the message that it came with

    @property
    def origin(self) -> Origin:
        """The way in which the file came. A recording in an earlier message counts as earlier."""
        if self.earlier:
            return Origin.EARLIER
        return Origin.SPOKEN if self.spoken else Origin.ATTACHED

    @property
    def bytes(self) -> int:
        """The number of bytes; 0 where it is not known before the file is fetched."""
        if self.data is None:
            return self.size
        return len(self.data)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file as it is stored with a message of a conversation."""

    handle: str  # the id by which the model and rows name the file
    name: str
    size: int  # bytes
    kind: str  # its media type; empty before it was read
    text: str  # the beginning of its text
    length: int  # the number of characters of its complete text
    fault: str  # why it can't be read; empty if it can
    ready: bool  # it was read, and has a text or a fault
    origin: Origin = Origin.ATTACHED

    @property
    def is_recording(self) -> bool:
        """True for a recording that was transcribed: its text is the transcript."""
        return self.ready and not self.fault and self.kind.startswith("audio/")

    @property
    def is_spoken(self) -> bool:
        """True if its text is the transcript of a recording that the writer made for this message."""
        return self.is_recording and self.origin is Origin.SPOKEN

    @property
    def is_picture(self) -> bool:
        return self.ready and not self.fault and self.kind.startswith("image/")


class FileContent(NamedTuple):
    """The content of a file after reading: a text for the model, or a fault."""

    kind: str  # its media type
    text: str = ""
    fault: str = ""  # why it can't be read; empty if it can
    data: bytes | None = None  # the bytes to store, as of a picture; None: only the text is stored
    note: str = ""  # sentences on what was left out of the text

    @property
    def text_for_model(self) -> str:
        """The text for the model, with the note above it if there is one."""
        if self.note:
            return f"[{self.note}]\n{self.text}"
        return self.text


@dataclass(frozen=True, slots=True)
class FileBounds:
    """The limits on attached files."""

    max_file_bytes: int = 10 * MEGABYTE  # the most bytes of one file; 0: no files are taken
    max_files: int = 10  # the most files of one message
    files_a_day: int = 200  # the most files of one person in a day

    @property
    def max_message_bytes(self) -> int:
        """The most bytes of all files of one message."""
        return 2 * self.max_file_bytes

    @property
    def bytes_a_day(self) -> int:
        """The most bytes of one person's files in a day."""
        return 20 * self.max_file_bytes

    def find_refusal(self, files: "tuple[Upload, ...]") -> str:
        """Return why a message with these files is refused, in words; empty if it is not.

        Files of earlier messages are never a reason. Nor is a file above the limit for one file: it is left
        out (`explain_too_large`) and not counted in the sum, and the others are read.
        """
        own = [file for file in files if not file.earlier]
        if own and not self.max_file_bytes:
            return "I take no files here. Please write what you need."
        if len(own) > self.max_files:
            return f"That is {len(own)} files; I take at most {self.max_files} in one message."
        taken = [file for file in own if not self.explain_too_large(file.bytes)]
        if sum(len(file.data or b"") for file in taken) > self.max_message_bytes:
            limit = format_size(self.max_message_bytes)
            return f"I take at most {limit} of files in one message. Please send fewer."
        return ""

    def explain_too_large(self, size: int) -> str:
        """Return why a file of ``size`` bytes is left out, in words; empty if it is not left out."""
        if not self.max_file_bytes:
            return "I take no files here"
        if size > self.max_file_bytes:
            return f"it is larger than {format_size(self.max_file_bytes)}"
        return ""


def choose_earlier(files: Sequence[Upload], opening: Sequence[Upload] = ()) -> tuple[Upload, ...]:
    """Return the files of earlier messages that are read with a new message, at most `MAX_EARLIER_FILES`.

    First come the files of a thread's first message (``opening``), since the thread is about them. The newest
    of the other ``files``, which are given oldest first, fill what is left.
    """
    chosen = {file.ref: file for file in opening[:MAX_EARLIER_FILES]}
    others = {file.ref: file for file in files if file.ref not in chosen}
    other_count = MAX_EARLIER_FILES - len(chosen)
    newest_others = list(others.values())[max(len(others) - other_count, 0) :]
    return tuple(file._replace(earlier=True) for file in (*chosen.values(), *newest_others))


def describe_files(files: Iterable[Upload], unread: Collection[str] = ()) -> str:
    """Name the files of an earlier message for the model: ``(attached: a.csv, b.png)``.

    ``unread``: the ``ref`` of each file whose content the model is not given; these are listed apart.
    """
    names: dict[str, list[str]] = {"attached": [], "attached, not read": []}
    for file in files:
        words = "attached, not read" if file.ref in unread else "attached"
        names[words].append(format_name(file.name))
    return "\n".join(f"({words}: {', '.join(listed)})" for words, listed in names.items() if listed)


def format_name(name: str) -> str:
    """Return the name of a file as people and the model read it, on one line."""
    return one_line(name)[:_MAX_NAME_CHARS].strip() or "unnamed"


def describe_kind(kind: str) -> str:
    """Name a media type in words, for example ``a spreadsheet``."""
    if kind in _KIND_NAMES:
        return _KIND_NAMES[kind]
    group = kind.partition("/")[0]
    return _GROUP_NAMES.get(group, _KIND_NAMES[UNKNOWN])


def quote_heard(files: Iterable[Attachment]) -> str:
    """Return the beginning of an answer to recordings, which quotes their transcripts; empty without any."""
    words = " ".join(one_line(file.text) for file in files if file.is_recording)
    if not words:
        return ""
    return f"{TRANSCRIPT_PREFIX} “{escape_markdown(shorten(words, _MAX_TRANSCRIPT_CHARS))}”\n\n"


def format_size(size: int) -> str:
    """Return a number of bytes as people read it."""
    for unit, step in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= step:
            return f"{size / step:.1f}".removesuffix(".0") + f" {unit}"
    return f"{size} bytes"


def type_of(data: bytes) -> str:
    """Return the media type of these bytes; `UNKNOWN` if they are neither a known format nor a text."""
    kind = find_type_by_magic_bytes(data)
    if kind:
        return kind
    text = text_of(data)
    if text is None:
        return UNKNOWN
    if HTML_PAGE.match(text[:3000]):
        return HTML
    return TEXT


def find_type_by_magic_bytes(data: bytes) -> str:
    """Return the media type by the bytes that mark a format; empty where none is found, as in a text."""
    for offset, magic_bytes, kind in _MAGIC_BYTES:
        if data[offset : offset + len(magic_bytes)] == magic_bytes:
            if kind == OLE:
                return _type_of_ole(data)
            return kind
    if data[4:8] == b"ftyp":
        return _BRANDS.get(data[8:12], "video/mp4")
    # the header of an MPEG frame: eleven bits that are set, the version, layer III, and a valid bit rate
    is_mp3_frame = len(data) > 2 and data[0] == 0xFF and data[1] in _MP3_FRAMES and data[2] != 0xFF  # noqa: PLR2004
    if is_mp3_frame:
        return "audio/mpeg"
    if data[:2] == b"BM" and len(data) >= _BITMAP_HEAD_BYTES and data[6:10] == bytes(4):
        return "image/bmp"
    if data[:2] == b"MZ" and strip_controls(data) is None:
        return "application/x-executable"
    # a PDF whose mark is not at the start; other parts of the format must be there, too
    offset = data.find(b"%PDF-", 0, _PDF_WITHIN_BYTES)
    if offset > 0 and b"%%EOF" in data[-2_048:] and b" obj" in data:
        return PDF
    return ""


def _type_of_ole(data: bytes) -> str:
    for stream, kind in _OLE_STREAMS:
        if f"{stream}\0".encode("utf-16-le") in data:
            return kind
    return OLE


def strip_controls(data: bytes) -> bytes | None:
    """Return a text's bytes without control characters; None for binary data, which has too many of them."""
    plain = data.translate(None, _CONTROLS)
    if len(plain) == len(data):
        return data
    run_count = len(_CONTROL_RUN.findall(data))
    # NUL is not counted here: a crash leaves long blocks of it in a log
    control_count = len(data) - len(plain) - data.count(0)
    min_bytes = max(run_count * _MIN_BYTES_PER_RUN, control_count * _MIN_BYTES_PER_CONTROL)
    return plain if len(plain) >= min_bytes else None


def text_of(data: bytes) -> str | None:
    """Return the text in the bytes, decoded as UTF-8 or else as Windows-1252; None where they are no text.

    Files that people attach are read by ``bot/tools/documents.py``, which detects other encodings.
    """
    for byte_order_mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(byte_order_mark):
            return data.decode(encoding, errors="replace")
    if strip_controls(data) != data:  # a text in UTF-16 without a mark, for example, has NUL characters
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")
