"""Files that people attach to what they say: as they come, and as a line carries them.

What a file is, its bytes say: names and what a platform calls it are a stranger's words. Pure.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

from bot.domain.text import one_line

TEXT, HTML = "text/plain", "text/html"
PDF = "application/pdf"
ZIP = "application/zip"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
UNKNOWN = "application/octet-stream"
MEGABYTE = 1_000_000

_SIGNS = (  # what files begin with: where, the bytes, and what it is then
    (0, b"%PDF-", PDF),
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"PK\x03\x04", ZIP),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"OggS", "audio/ogg"),
    (0, b"ID3", "audio/mpeg"),
    (8, b"WAVE", "audio/wav"),
    (4, b"ftyp", "video/mp4"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
    (0, b"\x7fELF", "application/x-executable"),
    (0, b"MZ", "application/x-executable"),
)
_CALLED = {
    TEXT: "text",
    HTML: "a web page",
    PDF: "a PDF document",
    DOCX: "a Word document",
    XLSX: "a spreadsheet",
    ZIP: "an archive",
    "application/gzip": "an archive",
    "application/x-ole-storage": "a document of an old or protected format",
    "application/x-executable": "a program",
    UNKNOWN: "of a kind I don't know",
}
_PAGE = re.compile(r"\s*+(?:<\?xml[^>]{0,200}>\s*+)?<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_BINARY = bytes(each for each in range(32) if each not in b"\t\n\v\f\r\x1b")
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_NAME = 100  # characters


class Upload(NamedTuple):
    """A file that comes with a message: its bytes, or ``ref``, what its channel fetches it by.

    ``size`` in bytes, 0 where its platform does not tell it.
    """

    name: str
    data: bytes | None = None
    ref: str = ""
    size: int = 0

    @property
    def bytes(self) -> int:
        return self.size if self.data is None else len(self.data)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file as a line carries it: the beginning of its text, and the ``length`` of all of it in characters.

    ``fault`` says why it can't be read; ``ready``: it was read, or can't be.
    """

    handle: str
    name: str
    size: int
    kind: str
    text: str
    length: int
    fault: str
    ready: bool

    @property
    def is_picture(self) -> bool:
        return self.ready and not self.fault and self.kind.startswith("image/")


class FileContent(NamedTuple):
    """What was read of a file: its text, or why it can't be read; ``data`` are the bytes that are kept."""

    kind: str
    text: str = ""
    fault: str = ""
    data: bytes | None = None


@dataclass(frozen=True, slots=True)
class FileBounds:
    """In bytes and files; those of a day are for one person."""

    file: int = 10 * MEGABYTE
    files: int = 10  # of a message
    files_a_day: int = 200

    @property
    def message(self) -> int:
        return 2 * self.file

    @property
    def a_day(self) -> int:
        return 20 * self.file

    def refusal(self, files: "tuple[Upload, ...]") -> str:
        """Why a message with these files is not taken, in words; one that is too large alone is left out."""
        if files and not self.file:
            return "I take no files here. Please write what you need."
        if len(files) > self.files:
            return f"That is {len(files)} files; I take at most {self.files} in one message."
        if sum(len(each.data or b"") for each in files) > self.message:
            return f"I take at most {sized(self.message)} of files in one message. Please send fewer."
        return ""

    def too_large(self, size: int) -> str:
        """Why one file is left out, in words; empty where it is not."""
        return f"it is larger than {sized(self.file)}" if size > self.file else ""


def called_name(name: str) -> str:
    """The name of a file as people and the model read it, on one line."""
    return one_line(name)[:_NAME].strip() or "unnamed"


def called(kind: str) -> str:
    """What a file is, in words."""
    major = kind.partition("/")[0]
    return _CALLED.get(kind) or {"image": "a picture", "audio": "a recording", "video": "a video"}[major]


def sized(size: int) -> str:
    """A number of bytes as people read it."""
    for unit, step in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= step:
            return f"{size / step:.1f}".removesuffix(".0") + f" {unit}"
    return f"{size} bytes"


def type_of(data: bytes) -> str:
    """The media type by the bytes; of text that is a web page, `HTML`."""
    for at, sign, kind in _SIGNS:
        if data[at : at + len(sign)] == sign:
            return kind
    text = text_of(data)
    if text is None:
        return UNKNOWN
    return HTML if _PAGE.match(text[:1000]) else TEXT


def text_of(data: bytes) -> str | None:
    """The text in the bytes, by its mark, as UTF-8 or as Windows writes it; None where they are no text."""
    for mark, coding in _MARKS:
        if data.startswith(mark):
            return data.decode(coding, errors="replace")
    if len(data.translate(None, _BINARY)) < len(data):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")
