"""Changes that a command made in its copy of a workspace: found, described to people, and packed as a token.

Only content, links, modes and folders can be applied. Anything else that a command leaves (a device, a link
that leads out, a file that runs as another user) makes all of it refused.
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
from bot.tools.builtin.files.workspace import FOLDER, READ, decode_text, kind_of, open_descriptor, plain
from bot.tools.builtin.trials.copies import Node, Nodes, Stamp

_MOST = 1000  # paths that change
_ROOM = 16 << 20  # bytes of old and of new content that are read
_KEPT = 1_000_000  # bytes of old content that are kept, to be put back
_DEPTH = 60
_SHOWN = 200_000  # characters of one text that are shown, and
_ALL_SHOWN = 600_000  # of all
_FIELDS = 100  # files shown with their text


@dataclass(frozen=True, slots=True)
class FileState:
    """The state of a path: ``kind`` is file, folder, link or other.

    ``mark`` tells its content from others: a hash, the target of a link, or the stamp of a file too large to
    read. ``content`` is that of a file, compressed; empty where it was not read, or is not kept.
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
        """Its text, or a line with size and hash for what is binary; None where it has none to show."""
        if self.content:
            return decode_text(self.unpacked).text
        return None

    @property
    def words(self) -> str:
        """The kind, size and mode in words."""
        if self.kind == "link":
            return f"link to {self.mark}"
        if self.kind == "folder":
            size = ""
        else:
            size = f"{self.size:,} bytes, {self.mark.replace(':', ' ')}, "
        return f"{self.kind}, {size}mode {self.permissions}"

    @property
    def permissions(self) -> str:
        runs = self.kind == "file" and self.mode & 0o111
        return f"{self.mode:o}{', it can run' if runs else ''}"


@dataclass(frozen=True, slots=True)
class FileChange:
    """The change of one path: its state before and after; None for no file."""

    path: str
    old: FileState | None
    new: FileState | None

    @classmethod
    def read(cls, kept: Any) -> "FileChange":
        """Read a stored change; an older release kept the new content next to the states."""
        old, new = (FileState(**part) if part else None for part in (kept["old"], kept["new"]))
        if new and kept.get("content"):
            new = replace(new, content=kept["content"])
        return cls(kept["path"], old, new)

    @property
    def parts(self) -> list[FileState]:
        return [each for each in (self.old, self.new) if each is not None]

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
    """Return all that an open file holds."""
    parts = []
    while part := os.read(fd, 1 << 20):
        parts.append(part)
    return b"".join(parts)


class _Reader:
    """A reader of files, as far as there is room for their contents."""

    def __init__(self) -> None:
        self.room = _ROOM

    def read(self, fd: int, mode: int, size: int) -> FileState | None:
        """Read an open file; None where it is too large."""
        if size > self.room:
            return None
        self.room -= size
        return FileState.of(mode, content_of(fd))


def compare_copy(workspace: Path, copy: Path, nodes: Nodes, owner: int) -> list[FileChange]:
    """Return the applicable differences between a copy and its source. Raises Inapplicable.

    ``owner``: whose files all of the copy must be. Old contents are read from the workspace, which must be as
    it was copied. The command has ended, so nothing moves in the copy.
    """
    new: dict[str, FileState] = {}
    with open_descriptor(str(copy), FOLDER) as root:
        for path, thing in _walk_copy(root, "", nodes, owner, _Reader(), 0):
            new[path] = thing
            if len(new) > _MOST:
                break
        gone = _list_gone(root, nodes)
    if len(new) + len(gone) > _MOST:
        raise Inapplicable(f"It changes more than {_MOST:,} files.")
    changes: list[FileChange] = []
    before = _Reader()
    for path in [*gone, *new]:
        if not all(map(plain, path.split("/"))):
            raise Inapplicable(f"{path!a} has a name that can't be shown.")
        old = _old(workspace, path, nodes[path], before) if path in nodes else None
        if old != new.get(path):
            changes.append(FileChange(path, old, new.get(path)))
    return [*_in_order(changes)]


def _walk_copy(
    folder: int, above: str, nodes: Nodes, owner: int, reader: _Reader, depth: int
) -> Iterator[tuple[str, FileState]]:
    """Yield every path in the copy that is new or was touched, with its state."""
    if depth > _DEPTH:
        raise Inapplicable(f"It made folders more than {_DEPTH} deep.")
    for name in sorted(os.listdir(folder)):
        path = f"{above}/{name}" if above else name
        seen = os.stat(name, dir_fd=folder, follow_symlinks=False)
        node, kind, mode = nodes.get(path), kind_of(seen.st_mode), seen.st_mode & 0o777
        _check(path, kind, seen, owner)
        if kind == "folder":
            if node is None or node.kind != "folder" or mode | 0o700 != node.mode | 0o700:
                yield path, FileState(kind, mode | 0o700)
            os.chmod(name, mode | 0o700, dir_fd=folder)
            with open_descriptor(name, FOLDER, folder) as inner:
                yield from _walk_copy(inner, path, nodes, owner, reader, depth + 1)
        elif node is not None and node.copy == Stamp.of(seen):
            continue
        elif kind == "link":
            target = os.readlink(name, dir_fd=folder)
            if leads_out(path, target):
                raise Inapplicable(f"It makes a link that leads out of the workspace: {path}.")
            yield path, FileState(kind, mark=target)
        else:
            os.chmod(name, mode | 0o400, dir_fd=folder)
            with open_descriptor(name, READ, folder) as fd:
                found = reader.read(fd, mode, seen.st_size)
            if found is None:
                raise Inapplicable(f"It changes more than {_ROOM >> 20} MB.")
            yield path, found


def _check(path: str, kind: str, seen: os.stat_result, owner: int) -> None:
    if kind == "other":
        raise Inapplicable(f"It makes a device, a pipe or a socket: {path}.")
    if seen.st_uid != owner:
        raise Inapplicable(f"It gives a file to another user: {path}.")
    if kind == "file" and seen.st_mode & (stat.S_ISUID | stat.S_ISGID):
        raise Inapplicable(f"It makes a file that runs as another user: {path}.")


def leads_out(path: str, target: str) -> bool:
    """Return whether a link may lead out of the workspace: only ``..`` at its beginning can be counted."""
    steps = [each for each in target.split("/") if each not in ("", ".")]
    up = next((n for n, each in enumerate(steps) if each != ".."), len(steps))
    return target.startswith("/") or not target or ".." in steps[up:] or up > path.count("/")


def _list_gone(root: int, nodes: Nodes) -> list[str]:
    """Return the copied paths that are gone, deepest first."""
    gone: list[str] = []
    closed: set[str] = set()  # folders that are gone
    for path, node in nodes.items():  # a folder comes before what is in it
        kind = None
        if path.rpartition("/")[0] not in closed:
            with contextlib.suppress(FileNotFoundError):
                kind = kind_of(os.stat(path, dir_fd=root, follow_symlinks=False).st_mode)
        if kind is None:
            gone.append(path)
        if node.kind == "folder" and kind != "folder":
            closed.add(path)
    return gone[::-1]


def _old(workspace: Path, path: str, node: Node, reader: _Reader) -> FileState:
    """Return the state that was copied. Raises Inapplicable if it has changed in the workspace."""
    if node.kind != "file":
        return FileState(node.kind, node.mode | 0o700 if node.kind == "folder" else 0, mark=node.target)
    with contextlib.suppress(OSError), open_descriptor(str(workspace / path), READ) as fd:
        if Stamp.of(os.fstat(fd)) == node.source:
            stamped = FileState("file", node.mode, node.size, node.source.mark)
            return reader.read(fd, node.mode, node.size) or stamped
    raise Inapplicable(f"Someone else changed a file while it was tried: {path}.")


def _in_order(changes: Sequence[FileChange]) -> Iterator[FileChange]:
    """Yield the changes in the order in which they can be applied: removals, deepest first, then additions.

    A path that becomes a folder, or was one, is removed and added.
    """
    going: list[FileChange] = []
    coming: list[FileChange] = []
    for each in changes:
        kinds = {part.kind for part in each.parts}
        if each.new is None:
            going.append(each)
        elif len(kinds) > 1 and "folder" in kinds:
            going.append(replace(each, new=None))
            coming.append(replace(each, old=None))
        else:
            coming.append(each)
    yield from sorted(going, key=lambda each: (-each.path.count("/"), each.path))
    yield from sorted(coming, key=lambda each: (each.parts[-1].kind != "folder", each.path))


def is_code(path: str) -> bool:
    """Return whether git runs what stands there, or what it names."""
    names = [each.casefold() for each in path.split("/")]
    if ".git" not in names:
        return False
    inner = names[names.index(".git") + 1 :]
    return "hooks" in inner or (bool(inner) and inner[-1] in ("config", "config.worktree", "attributes"))


def describe_changes(changes: Sequence[FileChange]) -> tuple[list[PreviewField], tuple[TriedFile, ...]]:
    """Return the changes for people: what git would run first, texts line by line, the rest in a list."""
    fields: list[PreviewField] = []
    files: list[TriedFile] = []
    listed: list[str] = []
    room = _ALL_SHOWN
    for each in sorted(changes, key=lambda each: (not is_code(each.path), each.path)):
        code, old, new = is_code(each.path), as_words(each.old), as_words(each.new)
        taken = len(old or "") + len(new or "")
        fits = taken <= room and len(fields) < _FIELDS and all(part.content for part in each.parts)
        inside = ".git" in each.path.casefold().split("/")
        name = ""
        if old != new and (code or (fits and not inside)):
            room -= taken
            name = f"{'code' if code else 'content'} of {each.path}"
            fields.append(PreviewField(name, old, new))
        if (name or code) and (modes := _modes(each)):
            fields.append(PreviewField(f"mode of {each.path}", *modes))
        elif not name:
            listed.append(f"{each.kind} {each.path}: {' → '.join(part.words for part in each.parts)}")
        was, now = (part.size if part and part.kind == "file" else None for part in (each.old, each.new))
        files.append(TriedFile(each.path, each.kind, was, now, code, name))
    if listed:
        fields.append(PreviewField("other changes", None, "\n".join(listed)))
    return fields, tuple(files)


def _modes(each: FileChange) -> tuple[str | None, str] | None:
    """Return the changed permissions of a file, and those of a new executable one."""
    old, new = (part.permissions if part and part.kind == "file" else None for part in (each.old, each.new))
    if new and old != new and (old or each.parts[-1].mode & 0o111):
        return (old, new)
    return None


def as_words(thing: FileState | None) -> str | None:
    """Return a state's text, or a description of a state without one; None for nothing."""
    if thing is None:
        return None
    text = thing.text
    if text is None or len(text) > _SHOWN:
        return thing.words
    return text


def changes_to_json(changes: Sequence[FileChange]) -> list[dict[str, Any]]:
    """Return the changes as JSON data, without old contents of more than 1 MB in all."""
    olds = [each.old.size for each in changes if each.old is not None and each.old.kind == "file"]
    if sum(olds) > _KEPT:
        changes = [replace(each, old=each.old and each.old.bare) for each in changes]
    return [asdict(each) for each in changes]


def undoing(changes: Sequence[FileChange]) -> list[FileChange] | None:
    """Return the changes that undo these; None where the old contents are not kept."""
    if any(each.old is not None and each.old.kind == "file" and not each.old.content for each in changes):
        return None
    return [FileChange(each.path, each.new and each.new.bare, each.old) for each in reversed(changes)]


def check_changes(changes: Sequence[FileChange]) -> None:
    """Raise ToolError for what no trial gives: a path or a link that leads out."""
    for each in changes:
        names = each.path.split("/")
        outside = not all(map(plain, names)) or ".." in names
        if outside or (each.new and each.new.kind == "link" and leads_out(each.path, each.new.mark)):
            raise ToolError(f"{each.path!a} leads out of the workspace. Nothing was changed.")
