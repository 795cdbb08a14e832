"""Files that are ZIP archives: what they are, and their parts, all within bounds."""

import re
import zipfile
from collections.abc import Mapping
from io import BytesIO
from typing import Any

from bot.domain.attachments import DOCX, EPUB, ODP, ODS, ODT, PPTX, XLSB, XLSX, ZIP
from bot.tools.reading.markup import parse_xml
from bot.tools.reading.report import Report, UnreadableError

_MAX_UNPACKED_BYTES = 100_000_000
_MAX_ENTRIES = 2_000
_MAX_LISTED = 200
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
_MAIN_PART_TYPES = (
    ("wordprocessingml", DOCX), ("ms-word", DOCX), ("presentationml", PPTX), ("ms-powerpoint", PPTX),
    ("sheet.binary", XLSB), ("spreadsheetml", XLSX), ("ms-excel", XLSX),
)  # fmt: skip


class Package:
    """An archive whose parts are read by name. Raises UnreadableError where it is damaged or too large."""

    def __init__(self, data: bytes) -> None:
        try:
            self._archive = zipfile.ZipFile(BytesIO(data))
        except (zipfile.BadZipFile, NotImplementedError, ValueError):
            raise UnreadableError(DAMAGED_TEXT) from None
        self.entries = self._archive.infolist()
        self.names = {each.filename for each in self.entries}

    def require_bounded(self) -> None:
        """Raise UnreadableError where unpacking it takes more than the bounds."""
        unpacked = sum(each.file_size for each in self.entries)
        if len(self.entries) > _MAX_ENTRIES or unpacked > _MAX_UNPACKED_BYTES:
            raise UnreadableError(_TOO_LARGE_TEXT)

    def read(self, name: str) -> bytes:
        """Return a part's bytes; empty where there is no such part."""
        try:
            return self._archive.read(name) if name in self.names else b""
        except RuntimeError:  # what zipfile raises for an entry with a password
            raise UnreadableError(PROTECTED_TEXT) from None
        except (zipfile.BadZipFile, NotImplementedError, EOFError):
            raise UnreadableError(DAMAGED_TEXT) from None

    def list_parts(self, pattern: str) -> list[str]:
        """Return the names that match a regular expression in full, in the order of their numbers."""
        found = (name for name in self.names if re.fullmatch(pattern, name))
        return sorted(found, key=lambda name: (len(name), name))

    def relations(self, part: str) -> dict[str, tuple[str, str]]:
        """Return a part's relations by id: the last word of the type, and the target as a part's name."""
        folder, _, name = part.rpartition("/")
        data = self.read(f"{folder}/_rels/{name}.rels" if folder else f"_rels/{name}.rels")
        if not data:
            return {}
        found = {}
        for each in parse_xml(data):
            kind = each.get("Type", "").rpartition("/")[2]
            found[each.get("Id", "")] = (kind, _resolve(folder, each))
        return found

    def replace(self, changed: Mapping[str, bytes]) -> bytes:
        """Return the archive with other bytes for some of its parts."""
        out = BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for each in self.entries:
                archive.writestr(each.filename, changed.get(each.filename) or self.read(each.filename))
        return out.getvalue()


def _resolve(folder: str, relation: Any) -> str:
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
    """Return the media type of what is packed; `ZIP` where it is an archive of files."""
    if _is_small(package, "mimetype"):
        mime = package.read("mimetype")[:100].strip()
    else:
        mime = b""
    if mime in _MIME_TYPES:
        return _MIME_TYPES[mime]
    if "[Content_Types].xml" not in package.names:
        if "META-INF/container.xml" in package.names:
            return EPUB
        return ZIP
    main = main_part(package)
    types = package.read("[Content_Types].xml").decode("utf-8", errors="replace")
    said = re.search(rf'PartName="/{re.escape(main)}"[^>]*ContentType="([^"]*)"', types)
    said = said or re.search(rf'ContentType="([^"]*)"[^>]*PartName="/{re.escape(main)}"', types)
    stated = said[1] if said else ""
    kinds = [kind for word, kind in _MAIN_PART_TYPES if word in stated]
    by_folder = {"word": DOCX, "xl": XLSX, "ppt": PPTX}
    if kinds:
        return kinds[0]
    return by_folder.get(main.partition("/")[0], ZIP)


def main_part(package: Package) -> str:
    """Return the name of an Office document's main part, else nothing."""
    found = (target for kind, target in package.relations("").values() if kind == "officeDocument")
    return next(found, "")


def _is_small(package: Package, name: str) -> bool:
    return any(each.filename == name and each.file_size < _MAX_LISTED for each in package.entries)


def list_archive(package: Package, report: Report) -> str:
    """Return the names and sizes of an archive's files; their contents are left out."""
    files = [each for each in package.entries if not each.is_dir()]
    report.leave_out("packed file", len(files))
    rows = [f"{each.filename}\t{each.file_size:,} bytes\n" for each in files[:_MAX_LISTED]]
    if len(files) > _MAX_LISTED:
        report.remark(f"Only the first {_MAX_LISTED} names are listed.")
    if files:
        return f"[Archive of {len(files):,} files]\n" + "".join(rows)
    return ""
