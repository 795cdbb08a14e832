"""Changes of files by a command in its copy of a workspace: finding, describing and storing them.

Only content, links, modes and folders can be applied. If a command leaves anything else (a device, a link
that leads out, a file that runs as another user), all of its changes are refused.
"""

import base64
import contextlib
import os
import stat
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from bot.domain.proposals import PreviewField
from bot.domain.trials import TriedFile
from bot.errors import ToolError
from bot.tools.builtin.files.descriptors import FOLDER, READ, kind_of, open_descriptor
from bot.tools.builtin.files.paths import may_be_in_path
from bot.tools.builtin.files.workspace import decode_text
from bot.tools.builtin.trials.copies import Node, Nodes, Stamp

_MAX_PATHS = 1000  # that change
_MAX_CONTENT_BYTES = 16 << 20  # of old content, and of new content, that are read
_MAX_UNDO_BYTES = 1_000_000  # of old content that is stored for an undo
_MAX_DEPTH = 60
_MAX_TEXT_CHARS = 200_000  # of one text on the card
_MAX_SHOWN_CHARS = 600_000  # of all texts on the card
_MAX_FIELDS = 100  # files whose text is on the card


@dataclass(frozen=True, slots=True)
class FileState:
    """The state of a path: ``kind`` is file, folder, link or other.

    ``mark`` identifies its content: a hash, the target of a link, or the stamp of a file too large to read.
    ``content`` is a file's, compressed; empty if it was not read or not stored.
    """

    kind: str
    mode: int = 0
    size: int = 0
    mark: str = ""
    content: str = field(default="", compare=False, repr=False)

    @classmethod
    def of(cls, mode: int, content: bytes) -> "FileState":
        """Return the state of a file."""
        mark = f"sha256:{sha256(content).hexdigest()}"
        packed = base64.b64encode(zlib.compress(content, 1)).decode()
        return cls("file", mode, len(content), mark, packed)

    @property
    def bare(self) -> "FileState":
        """The state without its content."""
        return replace(self, content="")

    @property
    def unpacked(self) -> bytes:
        return zlib.decompress(base64.b64decode(self.content))

    @property
    def text(self) -> str | None:
        """The content as text, or as size and hash if it is binary; None if it was not read."""
        if self.content:
            return decode_text(self.unpacked).text
        return None

    @property
    def words(self) -> str:
        """The kind, size and mode in words."""
        if self.kind == "link":
            return f"link to {self.mark}"
        if self.kind == "folder":
            return f"{self.kind}, mode {self.permissions}"
        size = f"{self.size:,} bytes, {self.mark.replace(':', ' ')}"
        return f"{self.kind}, {size}, mode {self.permissions}"

    @property
    def permissions(self) -> str:
        is_executable = self.kind == "file" and self.mode & 0o111
        return f"{self.mode:o}, it can run" if is_executable else f"{self.mode:o}"


@dataclass(frozen=True, slots=True)
class FileChange:
    """The change of one path: its state before and after; None for no file."""

    path: str
    old: FileState | None
    new: FileState | None

    @classmethod
    def read(cls, stored: Any) -> "FileChange":
        """Parse a stored change; an older release stored the new content next to the states."""
        old, new = (FileState(**part) if part else None for part in (stored["old"], stored["new"]))
        if new and stored.get("content"):
            new = replace(new, content=stored["content"])
        return cls(stored["path"], old, new)

    @property
    def parts(self) -> list[FileState]:
        return [state for state in (self.old, self.new) if state is not None]

    @property
    def kind(self) -> str:
        if self.old is None:
            return "added"
        if self.new is None:
            return "removed"
        return "changed"


class Inapplicable(Exception):
    """The changes can't be applied; the message says why."""


def content_of(fd: int) -> bytes:
    """Return the full content of an open file."""
    parts = []
    while part := os.read(fd, 1 << 20):
        parts.append(part)
    return b"".join(parts)


class _Reader:
    """A reader of files, until their contents take all of `_MAX_CONTENT_BYTES`."""

    def __init__(self) -> None:
        self.room = _MAX_CONTENT_BYTES

    def read(self, fd: int, mode: int, size: int) -> FileState | None:
        """Return the state of an open file; None if it is too large."""
        if size > self.room:
            return None
        self.room -= size
        return FileState.of(mode, content_of(fd))


def compare_copy(workspace: Path, copy: Path, nodes: Nodes, owner: int) -> list[FileChange]:
    """Return the applicable differences between a copy and its source. Raises Inapplicable.

    ``owner``: the account that must own all of the copy. Old contents are read from the workspace, which must
    not have changed since. The command has ended, so the copy no longer changes.
    """
    new: dict[str, FileState] = {}
    with open_descriptor(str(copy), FOLDER) as root:
        for path, state in _walk_copy(root, "", nodes, owner, _Reader(), 0):
            new[path] = state
            if len(new) > _MAX_PATHS:
                break
        removed = _list_removed(root, nodes)
    if len(new) + len(removed) > _MAX_PATHS:
        raise Inapplicable(f"It changes more than {_MAX_PATHS:,} files.")
    changes: list[FileChange] = []
    reader = _Reader()
    for path in [*removed, *new]:
        if not all(map(may_be_in_path, path.split("/"))):
            raise Inapplicable(f"{path!a} has a name that can't be shown.")
        old = _read_old_state(workspace, path, nodes[path], reader) if path in nodes else None
        if old != new.get(path):
            changes.append(FileChange(path, old, new.get(path)))
    return [*_order_changes(changes)]


def _walk_copy(
    folder: int, parent: str, nodes: Nodes, owner: int, reader: _Reader, depth: int
) -> Iterator[tuple[str, FileState]]:
    """Yield every path in the copy that is new or was touched, with its state."""
    if depth > _MAX_DEPTH:
        raise Inapplicable(f"It made folders more than {_MAX_DEPTH} deep.")
    for name in sorted(os.listdir(folder)):
        path = f"{parent}/{name}" if parent else name
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        node, kind, mode = nodes.get(path), kind_of(status.st_mode), status.st_mode & 0o777
        _check_entry(path, kind, status, owner)
        if kind == "folder":
            if node is None or node.kind != "folder" or mode | 0o700 != node.mode | 0o700:
                yield path, FileState(kind, mode | 0o700)
            os.chmod(name, mode | 0o700, dir_fd=folder)
            with open_descriptor(name, FOLDER, folder) as inner:
                yield from _walk_copy(inner, path, nodes, owner, reader, depth + 1)
        elif node is not None and node.copy == Stamp.of(status):
            continue
        elif kind == "link":
            target = os.readlink(name, dir_fd=folder)
            if leads_out(path, target):
                raise Inapplicable(f"It makes a link that leads out of the workspace: {path}.")
            yield path, FileState(kind, mark=target)
        else:
            os.chmod(name, mode | 0o400, dir_fd=folder)
            with open_descriptor(name, READ, folder) as fd:
                state = reader.read(fd, mode, status.st_size)
            if state is None:
                raise Inapplicable(f"It changes more than {_MAX_CONTENT_BYTES >> 20} MB.")
            yield path, state


def _check_entry(path: str, kind: str, status: os.stat_result, owner: int) -> None:
    if kind == "other":
        raise Inapplicable(f"It makes a device, a pipe or a socket: {path}.")
    if status.st_uid != owner:
        raise Inapplicable(f"It gives a file to another user: {path}.")
    if kind == "file" and status.st_mode & (stat.S_ISUID | stat.S_ISGID):
        raise Inapplicable(f"It makes a file that runs as another user: {path}.")


def leads_out(path: str, target: str) -> bool:
    """Tell if a link may lead out of the workspace: only ``..`` at its beginning can be counted."""
    steps = [step for step in target.split("/") if step not in ("", ".")]
    up = next((count for count, step in enumerate(steps) if step != ".."), len(steps))
    return target.startswith("/") or not target or ".." in steps[up:] or up > path.count("/")


def _list_removed(root: int, nodes: Nodes) -> list[str]:
    """Return the copied paths that the command removed, deepest first."""
    removed: list[str] = []
    removed_folders: set[str] = set()
    for path, node in nodes.items():  # a folder comes before what is in it
        kind = None
        if path.rpartition("/")[0] not in removed_folders:
            with contextlib.suppress(FileNotFoundError):
                kind = kind_of(os.stat(path, dir_fd=root, follow_symlinks=False).st_mode)
        if kind is None:
            removed.append(path)
        if node.kind == "folder" and kind != "folder":
            removed_folders.add(path)
    return removed[::-1]


def _read_old_state(workspace: Path, path: str, node: Node, reader: _Reader) -> FileState:
    """Return the state that was copied. Raises Inapplicable if it has changed in the workspace."""
    if node.kind != "file":
        return FileState(node.kind, node.mode | 0o700 if node.kind == "folder" else 0, mark=node.target)
    with contextlib.suppress(OSError), open_descriptor(str(workspace / path), READ) as fd:
        if Stamp.of(os.fstat(fd)) == node.source:
            stamped = FileState("file", node.mode, node.size, node.source.mark)
            return reader.read(fd, node.mode, node.size) or stamped
    raise Inapplicable(f"Someone else changed a file while it was tried: {path}.")


def _order_changes(changes: Sequence[FileChange]) -> Iterator[FileChange]:
    """Yield the changes in the order in which they can be applied: removals, deepest first, then additions.

    A path that becomes a folder, or was one, is removed and added.
    """
    removals: list[FileChange] = []
    additions: list[FileChange] = []
    for change in changes:
        kinds = {part.kind for part in change.parts}
        if change.new is None:
            removals.append(change)
        elif len(kinds) > 1 and "folder" in kinds:
            removals.append(replace(change, new=None))
            additions.append(replace(change, old=None))
        else:
            additions.append(change)
    yield from sorted(removals, key=lambda change: (-change.path.count("/"), change.path))
    yield from sorted(additions, key=lambda change: (change.parts[-1].kind != "folder", change.path))


def is_code(path: str) -> bool:
    """Tell if git runs the file at a path, or programs that it names."""
    names = [name.casefold() for name in path.split("/")]
    if ".git" not in names:
        return False
    inner = names[names.index(".git") + 1 :]
    return "hooks" in inner or (bool(inner) and inner[-1] in ("config", "config.worktree", "attributes"))


def describe_changes(changes: Sequence[FileChange]) -> tuple[list[PreviewField], tuple[TriedFile, ...]]:
    """Return the changes for people: code that git runs first, texts line by line, others in a list."""
    fields: list[PreviewField] = []
    files: list[TriedFile] = []
    listed: list[str] = []
    room = _MAX_SHOWN_CHARS
    for change in sorted(changes, key=lambda change: (not is_code(change.path), change.path)):
        code, old, new = is_code(change.path), as_words(change.old), as_words(change.new)
        size = len(old or "") + len(new or "")
        has_content = all(part.content for part in change.parts)
        fits = size <= room and len(fields) < _MAX_FIELDS and has_content
        is_in_git = ".git" in change.path.casefold().split("/")
        name = ""
        if old != new and (code or (fits and not is_in_git)):
            room -= size
            name = f"{'code' if code else 'content'} of {change.path}"
            fields.append(PreviewField(name, old, new))
        modes = _find_modes(change) if name or code else None
        if modes:
            fields.append(PreviewField(f"mode of {change.path}", *modes))
        elif not name:
            states = " → ".join(part.words for part in change.parts)
            listed.append(f"{change.kind} {change.path}: {states}")
        old_size, new_size = _find_size(change.old), _find_size(change.new)
        files.append(TriedFile(change.path, change.kind, old_size, new_size, code, name))
    if listed:
        fields.append(PreviewField("other changes", None, "\n".join(listed)))
    return fields, tuple(files)


def _find_size(state: FileState | None) -> int | None:
    if state is None or state.kind != "file":
        return None
    return state.size


def _find_modes(change: FileChange) -> tuple[str | None, str] | None:
    """Return the old and new permissions of a file if they differ, and those of a new executable file."""
    old = change.old.permissions if change.old and change.old.kind == "file" else None
    new = change.new.permissions if change.new and change.new.kind == "file" else None
    if new and old != new and (old or change.parts[-1].mode & 0o111):
        return (old, new)
    return None


def as_words(state: FileState | None) -> str | None:
    """Return a state's text, or a description of a state without text; None for no state."""
    if state is None:
        return None
    text = state.text
    if text is None or len(text) > _MAX_TEXT_CHARS:
        return state.words
    return text


def changes_to_json(changes: Sequence[FileChange]) -> list[dict[str, Any]]:
    """Return the changes as JSON data, without old contents of more than 1 MB in all."""
    old_bytes = sum(_find_size(change.old) or 0 for change in changes)
    if old_bytes > _MAX_UNDO_BYTES:
        changes = [replace(change, old=change.old and change.old.bare) for change in changes]
    return [asdict(change) for change in changes]


def undoing(changes: Sequence[FileChange]) -> list[FileChange] | None:
    """Return the changes that undo these; None if the old contents are not stored."""
    old_files = [change.old for change in changes if change.old is not None and change.old.kind == "file"]
    if not all(state.content for state in old_files):
        return None
    return [
        FileChange(change.path, change.new and change.new.bare, change.old) for change in reversed(changes)
    ]


def check_changes(changes: Sequence[FileChange]) -> None:
    """Raise ToolError for a path or a link that leads out of the workspace, which no trial returns."""
    for change in changes:
        names = change.path.split("/")
        is_outside = not all(map(may_be_in_path, names)) or ".." in names
        if change.new and change.new.kind == "link":
            is_outside = is_outside or leads_out(change.path, change.new.mark)
        if is_outside:
            raise ToolError(f"{change.path!a} leads out of the workspace. Nothing was changed.")
