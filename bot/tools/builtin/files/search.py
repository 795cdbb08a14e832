"""Search for text in the workspace: a bounded walk over open folders, no link followed."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from bot.errors import ToolError
from bot.tools.builtin.files.paths import Names, format_path, may_be_in_path
from bot.tools.builtin.files.workspace import ConfinedFolder

_MAX_MATCHES = 100
_MAX_FILES = 5_000
_MAX_BYTES = 50_000_000  # the size of all files that are read
_MAX_LINE_CHARS = 300
_MAX_DEPTH = 30  # the nesting of folders
_SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__"})


@dataclass(slots=True)
class Search:
    """A search, with its results so far."""

    confined: ConfinedFolder
    text: str  # the text to find, whatever the case of its letters
    pattern: str  # a pattern of file names, such as "*.py"
    matches: list[dict[str, Any]] = field(default_factory=list)
    file_count: int = 0  # the number of files read so far
    byte_count: int = 0  # the size of all files read so far
    left_out: int = 0  # the number of binary, too large, linked or unreadable files
    cut: bool = False  # True once a limit was reached, so that there may be more matches

    def run(self, names: Names) -> dict[str, Any]:
        """Search a folder, and return the result for the model."""
        for file_names, number, line in self._iterate_lines(names):
            if len(self.matches) == _MAX_MATCHES:
                self.cut = True
                break
            text = line.strip()[:_MAX_LINE_CHARS]
            self.matches.append({"path": format_path(file_names), "line": number, "text": text})
        return {
            "matches": self.matches,
            "files_searched": self.file_count,
            "files_left_out": self.left_out,
            "cut": self.cut,
        }

    def _iterate_lines(self, names: Names) -> Iterator[tuple[Names, int, str]]:
        """Yield the file, the number and the content of every line that has the text to find."""
        folded_text = self.text.casefold()
        for file_names, content in self._iterate_texts(names):
            for number, line in enumerate(content.split("\n"), 1):
                if folded_text in line.casefold():
                    yield file_names, number, line

    def _iterate_texts(self, names: Names) -> Iterator[tuple[Names, str]]:
        """Yield every text file in a folder, then the files in its folders, in the order of names."""
        with self.confined.open_folder(names) as fd:
            with os.scandir(fd) as entries:
                # pairs of a name, and True for a folder
                named_kinds = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
            folders = []
            for name, is_folder in named_kinds:
                if self.file_count >= _MAX_FILES or self.byte_count >= _MAX_BYTES:
                    self.cut = True
                    return
                if not may_be_in_path(name):
                    self.left_out += 1
                elif is_folder:
                    folders.append(name)
                elif fnmatchcase(name, self.pattern):
                    content = self._read_text((*names, name), fd)
                    if content is not None:
                        yield (*names, name), content
        for name in folders:
            if name in _SKIPPED_FOLDERS or len(names) >= _MAX_DEPTH:
                continue
            try:
                yield from self._iterate_texts((*names, name))
            except ToolError:
                self.left_out += 1  # gone or swapped in the meantime

    def _read_text(self, names: Names, fd: int) -> str | None:
        """Return a file's text; None, counted as left out, if it is binary or can't be read."""
        try:
            content = self.confined.read_at(names, fd)
            self.file_count += 1
            self.byte_count += len(content)
            if b"\0" not in content:
                return content.decode()
        except (ToolError, UnicodeDecodeError):
            pass
        self.left_out += 1
        return None
