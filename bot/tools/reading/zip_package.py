"""Files that are ZIP archives: `Package` reads their parts, `identify` finds the kind of a document.

A *part* is a file in the archive. The parts of an Office document refer to each other by *relations* (Open
Packaging Conventions, ECMA-376). The relations of a part are in a part of their own: those of
``word/document.xml`` in ``word/_rels/document.xml.rels``. The *main part* is the one that the archive itself
refers to as the document.
"""

import re
import zipfile
from collections.abc import Mapping
from io import BytesIO
from typing import Any, NamedTuple

from bot.domain.attachments import DOCX, EPUB, ODP, ODS, ODT, PPTX, XLSB, XLSX, ZIP
from bot.tools.reading.markup import parse_xml
from bot.tools.reading.report import Report, UnreadableError

_MAX_UNPACKED_BYTES = 100_000_000
_MAX_ENTRIES = 2_000
_MAX_LISTED = 200  # names of files in an archive
_MAX_MIME_ENTRY_BYTES = 200  # the part ``mimetype`` of an OpenDocument or EPUB, which names its media type
_MAX_MIME_BYTES = 100  # what is read of that part
DAMAGED_TEXT = "it is damaged, or not what it says it is"
PROTECTED_TEXT = "it is protected by a password"
_TOO_LARGE_TEXT = "it unpacks to more than I read"
_MIME_TYPES = {
    b"application/epub+zip": EPUB,
    b"application/vnd.oasis.opendocument.text": ODT,
    b"application/vnd.oasis.opendocument.text-template": ODT,
    b"application/vnd.oasis.opendocument.spreadsheet": ODS,
    b"application/vnd.oasis.opendocument.spreadsheet-template": ODS,
    b"application/vnd.oasis.opendocument.presentation": ODP,
    b"application/vnd.oasis.opendocument.presentation-template": ODP,
}
_MAIN_PART_TYPES = (  # words in the content type of an Office document's main part
    ("wordprocessingml", DOCX), ("ms-word", DOCX), ("presentationml", PPTX), ("ms-powerpoint", PPTX),
    ("sheet.binary", XLSB), ("spreadsheetml", XLSX), ("ms-excel", XLSX),
)  # fmt: skip


class Relation(NamedTuple):
    """A reference of one part to another."""

    kind: str  # such as "header"
    part: str  # the name of the other part


class Package:
    """An archive whose parts are read by name. Its methods raise UnreadableError if it is damaged."""

    def __init__(self, data: bytes) -> None:
        try:
            self._archive = zipfile.ZipFile(BytesIO(data))
        except (zipfile.BadZipFile, NotImplementedError, ValueError):
            raise UnreadableError(DAMAGED_TEXT) from None
        self.entries = self._archive.infolist()
        self.names = {entry.filename for entry in self.entries}

    def check_size(self) -> None:
        """Raise UnreadableError if it has too many entries, or unpacks to too much."""
        unpacked_bytes = sum(entry.file_size for entry in self.entries)
        if len(self.entries) > _MAX_ENTRIES or unpacked_bytes > _MAX_UNPACKED_BYTES:
            raise UnreadableError(_TOO_LARGE_TEXT)

    def read(self, name: str) -> bytes:
        """Return a part's bytes; empty if there is no such part."""
        try:
            return self._archive.read(name) if name in self.names else b""
        except RuntimeError:  # zipfile raises it for an entry with a password
            raise UnreadableError(PROTECTED_TEXT) from None
        except (zipfile.BadZipFile, NotImplementedError, EOFError):
            raise UnreadableError(DAMAGED_TEXT) from None

    def list_parts(self, pattern: str) -> list[str]:
        """Return the names that match a regular expression in full, shorter names first: 10 comes after 9."""
        names = [name for name in self.names if re.fullmatch(pattern, name)]
        return sorted(names, key=lambda name: (len(name), name))

    def relations(self, part: str) -> dict[str, Relation]:
        """Return a part's relations by id. The part "" is the document itself."""
        folder, _, name = part.rpartition("/")
        data = self.read(f"{folder}/_rels/{name}.rels" if folder else f"_rels/{name}.rels")
        if not data:
            return {}
        relations = {}
        for element in parse_xml(data):
            kind = element.get("Type", "").rpartition("/")[2]
            relations[element.get("Id", "")] = Relation(kind, _resolve_target(folder, element))
        return relations

    def with_parts(self, changed: Mapping[str, bytes]) -> bytes:
        """Return the bytes of the archive with other contents for some of its parts."""
        out = BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for entry in self.entries:
                name = entry.filename
                archive.writestr(name, changed.get(name) or self.read(name))
        return out.getvalue()


def _resolve_target(folder: str, relation: Any) -> str:
    """Return the name of the part that a relation leads to; it is stated relative to ``folder``."""
    target = relation.get("Target", "")
    if relation.get("TargetMode") == "External":
        return str(target)
    if target.startswith("/"):
        return str(target[1:])
    steps: list[str] = folder.split("/") if folder else []
    for step in target.split("/"):
        if step == ".." and steps:
            steps.pop()
        elif step not in ("..", "."):
            steps.append(step)
    return "/".join(steps)


def identify(package: Package) -> str:
    """Return the media type of the document; `ZIP` if it is just an archive of files."""
    mime = _read_mime(package)
    if mime in _MIME_TYPES:
        return _MIME_TYPES[mime]
    if "[Content_Types].xml" in package.names:
        return _identify_office(package)
    if "META-INF/container.xml" in package.names:
        return EPUB
    return ZIP


def _read_mime(package: Package) -> bytes:
    """Return the content of the part ``mimetype``; empty without one, or if it is too large to be one."""
    for entry in package.entries:
        if entry.filename == "mimetype" and entry.file_size < _MAX_MIME_ENTRY_BYTES:
            return package.read("mimetype")[:_MAX_MIME_BYTES].strip()
    return b""


def _identify_office(package: Package) -> str:
    """Return the media type of an Office document by its main part: by its content type, else its folder."""
    main = find_main_part(package)
    types = package.read("[Content_Types].xml").decode("utf-8", errors="replace")
    match = re.search(rf'PartName="/{re.escape(main)}"[^>]*ContentType="([^"]*)"', types)
    if match is None:
        match = re.search(rf'ContentType="([^"]*)"[^>]*PartName="/{re.escape(main)}"', types)
    if match is not None:
        for word, kind in _MAIN_PART_TYPES:
            if word in match[1]:
                return kind
    by_folder = {"word": DOCX, "xl": XLSX, "ppt": PPTX}
    return by_folder.get(main.partition("/")[0], ZIP)


def find_main_part(package: Package) -> str:
    """Return the name of an Office document's main part; empty without one."""
    for kind, part in package.relations("").values():
        if kind == "officeDocument":
            return part
    return ""


def list_archive(package: Package, report: Report) -> str:
    """Return the names and sizes of an archive's files; their contents are left out."""
    files = [entry for entry in package.entries if not entry.is_dir()]
    report.count_left_out("packed file", len(files))
    rows = [f"{file.filename}\t{file.file_size:,} bytes\n" for file in files[:_MAX_LISTED]]
    if len(files) > _MAX_LISTED:
        report.remark(f"Only the first {_MAX_LISTED} names are listed.")
    if files:
        return f"[Archive of {len(files):,} files]\n" + "".join(rows)
    return ""
