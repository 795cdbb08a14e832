"""Search for text in the workspace: a bounded walk over open folders, no link followed."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from bot.errors import ToolError
from bot.tools.builtin.files.paths import Names, format_path, may_be_in_path
from bot.tools.builtin.files.workspace import ConfinedFolder

_MOST_MATCHES = 100
_MOST_FILES = 5_000
_MOST_BYTES = 50_000_000
_LONGEST_LINE = 300
_DEEPEST = 30
_SKIPPED = frozenset({".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__"})


@dataclass(slots=True)
class Search:
    """A search. ``text`` matches in any case, ``pattern`` matches file names, as ``*.py``."""

    confined: ConfinedFolder
    text: str
    pattern: str
    matches: list[dict[str, Any]] = field(default_factory=list)
    files: int = 0
    bytes: int = 0
    left_out: int = 0  # binary, too large, linked or unreadable files
    cut: bool = False

    def run(self, names: Names) -> dict[str, Any]:
        """Walk the folder; ``cut`` says that there may be more than what is told."""
        for found, number, line in self._lines(names):
            if len(self.matches) == _MOST_MATCHES:
                self.cut = True
                break
            here = line.strip()[:_LONGEST_LINE]
            self.matches.append({"path": format_path(found), "line": number, "text": here})
        return {
            "matches": self.matches,
            "files_searched": self.files,
            "files_left_out": self.left_out,
            "cut": self.cut,
        }

    def _lines(self, names: Names) -> Iterator[tuple[Names, int, str]]:
        """Yield every line with the text, its file and its number."""
        wanted = self.text.casefold()
        for found, content in self._texts(names):
            for number, line in enumerate(content.split("\n"), 1):
                if wanted in line.casefold():
                    yield found, number, line

    def _texts(self, names: Names) -> Iterator[tuple[Names, str]]:
        """Yield every text file below, in the order of names."""
        with self.confined.folder(names) as fd:
            with os.scandir(fd) as entries:
                kinds = sorted((each.name, each.is_dir(follow_symlinks=False)) for each in entries)
            folders = []
            for name, is_folder in kinds:
                if self.files >= _MOST_FILES or self.bytes >= _MOST_BYTES:
                    self.cut = True
                    return
                if not may_be_in_path(name):
                    self.left_out += 1
                elif is_folder:
                    folders.append(name)
                elif fnmatchcase(name, self.pattern):
                    content = self._text((*names, name), fd)
                    if content is not None:
                        yield (*names, name), content
        for name in folders:
            if name in _SKIPPED or len(names) >= _DEEPEST:
                continue
            try:
                yield from self._texts((*names, name))
            except ToolError:
                self.left_out += 1  # gone or swapped in the meantime

    def _text(self, names: Names, fd: int) -> str | None:
        try:
            content = self.confined.read_at(names, fd)
            self.files += 1
            self.bytes += len(content)
            if b"\0" not in content:
                return content.decode()
        except (ToolError, UnicodeDecodeError):
            pass
        self.left_out += 1
        return None
