"""What a command did to its copy of a workspace: found, described to people, and as a token to apply.

Only content, links, modes and folders can be applied. Anything else that a command leaves (a device, a link
that leads out, a file that runs as another user) makes all of it refused.
"""

import base64
import contextlib
import os
import stat
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from bot.domain.proposals import PreviewField
from bot.domain.trials import TriedFile
from bot.errors import ToolError
from bot.tools.builtin.files.workspace import FOLDER, READ, as_text, plain
from bot.tools.builtin.trials.copies import Node, Nodes, Stamp, kind_of, opened

_MOST = 1000  # paths that change
_ROOM = 16 << 20  # bytes of old and of new content that are read
_DEPTH = 60
_SHOWN = 200_000  # characters of one text that are shown, and
_ALL_SHOWN = 600_000  # of all
_FIELDS = 100  # files shown with their text


@dataclass(frozen=True, slots=True)
class FileState:
    """What stands under a path: ``kind`` is file, folder or link; ``mark`` tells its content from others.

    ``mark`` is a hash, the target of a link, or the stamp of a file too large to read.
    """

    kind: str
    mode: int
    size: int
    mark: str


@dataclass(frozen=True, slots=True)
class FileChange:
    """One path, what stood and what will stand there. ``content`` is that of a new file, `packed`."""

    path: str
    old: FileState | None
    new: FileState | None
    content: str = ""

    @classmethod
    def read(cls, kept: Any) -> "FileChange":
        """What `asdict` gave."""
        old, new = (FileState(**part) if part else None for part in (kept["old"], kept["new"]))
        return cls(kept["path"], old, new, kept["content"])


def packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 1)).decode()


def unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))


def content_of(fd: int) -> bytes:
    """All that an open file holds."""
    parts = []
    while part := os.read(fd, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def mark_of(content: bytes) -> str:
    return f"sha256:{sha256(content).hexdigest()}"


class Inapplicable(Exception):
    """Why nothing of it can be applied, in words."""


@dataclass(frozen=True, slots=True)
class FoundChanges:
    """The changes in the order in which they are applied, with the old and new texts that people see."""

    changes: tuple[FileChange, ...]
    contents: dict[str, tuple[bytes | None, bytes | None]]


class _Reader:
    """Reads contents as far as there is room for them."""

    def __init__(self) -> None:
        self.room = _ROOM

    def read(self, fd: int, size: int) -> bytes | None:
        """All of an open file; None where it is too large."""
        if size > self.room:
            return None
        self.room -= size
        return content_of(fd)


def compared(workspace: Path, copy: Path, nodes: Nodes, owner: int) -> FoundChanges:
    """What differs between a copy and what it was made of. Raises Inapplicable.

    ``owner``: whose files all of the copy must be. Old contents are read from the workspace, which must be
    as it was copied. The command has ended, so nothing moves in the copy.
    """
    reader, new, contents = _Reader(), dict[str, FileState](), dict[str, bytes]()
    root = os.open(copy, FOLDER)
    try:
        for path, thing, content in _walked(root, "", nodes, owner, reader, 0):
            new[path] = thing
            if content is not None:
                contents[path] = content
            if len(new) > _MOST:
                raise Inapplicable(f"It changes more than {_MOST:,} files.")
        gone = _gone(root, nodes)
    finally:
        os.close(root)
    if len(new) + len(gone) > _MOST:
        raise Inapplicable(f"It changes more than {_MOST:,} files.")
    changes: list[FileChange] = []
    texts: dict[str, tuple[bytes | None, bytes | None]] = {}
    before = _Reader()
    for path in [*gone, *new]:
        if not all(map(plain, path.split("/"))):
            raise Inapplicable(f"{path!a} has a name that can't be shown.")
        node = nodes.get(path)
        old, was = (None, None) if node is None else _old(workspace, path, node, before)
        there = new.get(path)
        if old != there:
            texts[path] = (was, contents.get(path))
            changes.append(FileChange(path, old, there, packed(contents.get(path, b"")) if there else ""))
    return FoundChanges(tuple(_in_order(changes)), texts)


def _walked(
    folder: int, above: str, nodes: Nodes, owner: int, reader: _Reader, depth: int
) -> Iterator[tuple[str, FileState, bytes | None]]:
    """Everything in the copy that is new or was touched."""
    if depth > _DEPTH:
        raise Inapplicable(f"It made folders more than {_DEPTH} deep.")
    for name in sorted(os.listdir(folder)):
        path = f"{above}/{name}" if above else name
        seen = os.stat(name, dir_fd=folder, follow_symlinks=False)
        node, kind, mode = nodes.get(path), kind_of(seen.st_mode), seen.st_mode & 0o777
        _check(path, kind, seen, owner)
        if kind == "folder":
            if node is None or node.kind != "folder" or mode | 0o700 != node.mode | 0o700:
                yield path, FileState("folder", mode | 0o700, 0, ""), None
            os.chmod(name, mode | 0o700, dir_fd=folder)
            with opened(name, FOLDER, folder) as inner:
                yield from _walked(inner, path, nodes, owner, reader, depth + 1)
        elif node is not None and node.copy == Stamp.of(seen):
            continue
        elif kind == "link":
            target = os.readlink(name, dir_fd=folder)
            if leads_out(path, target):
                raise Inapplicable(f"It makes a link that leads out of the workspace: {path}.")
            yield path, FileState("link", 0, 0, target), None
        else:
            os.chmod(name, mode | 0o400, dir_fd=folder)
            with opened(name, READ, folder) as fd:
                content = reader.read(fd, seen.st_size)
            if content is None:
                raise Inapplicable(f"It changes more than {_ROOM >> 20} MB.")
            yield path, FileState("file", mode, len(content), mark_of(content)), content


def _check(path: str, kind: str, seen: os.stat_result, owner: int) -> None:
    if kind == "other":
        raise Inapplicable(f"It makes a device, a pipe or a socket: {path}.")
    if seen.st_uid != owner:
        raise Inapplicable(f"It gives a file to another user: {path}.")
    if kind == "file" and seen.st_mode & (stat.S_ISUID | stat.S_ISGID):
        raise Inapplicable(f"It makes a file that runs as another user: {path}.")


def leads_out(path: str, target: str) -> bool:
    """Whether a link may lead out of the workspace: only ``..`` at its beginning can be counted."""
    steps = [each for each in target.split("/") if each not in ("", ".")]
    up = next((n for n, each in enumerate(steps) if each != ".."), len(steps))
    return target.startswith("/") or not target or ".." in steps[up:] or up > path.count("/")


def _gone(root: int, nodes: Nodes) -> list[str]:
    """Paths that were copied and are not there any longer, deepest first."""
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


def _old(workspace: Path, path: str, node: Node, reader: _Reader) -> tuple[FileState, bytes | None]:
    """What was copied, with its content; raises Inapplicable where it is not there as it was."""
    if node.kind != "file":
        return FileState(node.kind, node.mode | 0o700 if node.kind == "folder" else 0, 0, node.target), None
    try:
        fd = os.open(workspace / path, READ)
    except OSError:
        raise Inapplicable(f"Someone else changed a file while it was tried: {path}.") from None
    try:
        if Stamp.of(os.fstat(fd)) != node.source:
            raise Inapplicable(f"Someone else changed a file while it was tried: {path}.")
        content = reader.read(fd, node.size)
    finally:
        os.close(fd)
    mark = f"stamp:{'.'.join(map(str, node.source))}" if content is None else mark_of(content)
    return FileState("file", node.mode, node.size, mark), content


def _in_order(changes: Sequence[FileChange]) -> Iterator[FileChange]:
    """As they can be applied one after the other: what goes first, deepest first, then what comes.

    A path whose kind changes goes and comes.
    """
    going: list[FileChange] = []
    coming: list[FileChange] = []
    for each in changes:
        if each.new is None:
            going.append(each)
        elif (
            each.old is not None
            and "folder" in (each.old.kind, each.new.kind)
            and each.old.kind != each.new.kind
        ):
            going.append(replace(each, new=None, content=""))
            coming.append(replace(each, old=None))
        else:
            coming.append(each)
    yield from sorted(going, key=lambda each: (-each.path.count("/"), each.path))
    yield from sorted(
        coming, key=lambda each: (each.new is not None and each.new.kind != "folder", each.path)
    )


def is_code(path: str) -> bool:
    """Whether git runs what stands there, or what it names."""
    names = [each.casefold() for each in path.split("/")]
    if ".git" not in names:
        return False
    inner = names[names.index(".git") + 1 :]
    return "hooks" in inner or (bool(inner) and inner[-1] in ("config", "config.worktree", "attributes"))


def described(found: FoundChanges) -> tuple[list[PreviewField], tuple[TriedFile, ...]]:
    """The changes as people see them: what git would run first, texts line by line, the rest in a list."""
    fields: list[PreviewField] = []
    files: list[TriedFile] = []
    listed: list[str] = []
    room = _ALL_SHOWN
    for each in sorted(found.changes, key=lambda each: (not is_code(each.path), each.path)):
        code, (old, new) = is_code(each.path), (each.old, each.new)
        what = "added" if old is None else "removed" if new is None else "changed"
        texts = _texts(each, found) if code or ".git" not in each.path.casefold().split("/") else None
        taken = sum(len(text or "") for text in texts) if texts else 0
        name = ""
        if texts and (code or (taken <= room and len(fields) < _FIELDS)):
            room -= taken
            name = f"{'code' if code else 'content'} of {each.path}"
            fields += [PreviewField(name, *texts), *_modes(each)]
        else:
            listed.append(f"{what} {each.path}: {_told(old, new)}")
        was, now = (thing.size if thing and thing.kind == "file" else None for thing in (old, new))
        files.append(TriedFile(each.path, what, was, now, code, name))
    if listed:
        fields.append(PreviewField("other changes", None, "\n".join(listed)))
    return fields, tuple(files)


def _modes(each: FileChange) -> list[PreviewField]:
    """A field for a mode that changes, and for a new file that can be run."""
    old, new = (_mode(thing) if thing else None for thing in (each.old, each.new))
    if each.new is None or old == new or (old is None and not each.new.mode & 0o111):
        return []
    return [PreviewField(f"mode of {each.path}", old, new)]


def _texts(each: FileChange, found: FoundChanges) -> tuple[str | None, str | None] | None:
    """Its text before and after; None for something else, for too much, and where only the mode changes."""
    things = [thing for thing in (each.old, each.new) if thing is not None]
    was, now = found.contents.get(each.path, (None, None))
    texts: list[str | None] = []
    for thing, content in ((each.old, was), (each.new, now)):
        if thing is not None and content is None:
            return None
        text = None if thing is None or content is None else as_text(content)
        if text is not None and len(text.text) > _SHOWN:
            return None
        texts.append(text.text if text else None)
    if any(thing.kind != "file" for thing in things) or texts[0] == texts[1]:
        return None
    return texts[0], texts[1]


def _told(old: FileState | None, new: FileState | None) -> str:
    """A change without its text, such as ``12 bytes, sha256 ab… → 14 bytes, sha256 cd…``."""
    return " → ".join(_in_words(thing) for thing in (old, new) if thing is not None)


def _mode(thing: FileState) -> str:
    return f"{thing.mode:o}{', it can run' if thing.mode & 0o111 else ''}"


def _in_words(thing: FileState) -> str:
    if thing.kind == "folder":
        return f"folder, mode {thing.mode:o}"
    if thing.kind == "link":
        return f"link to {thing.mark}"
    return f"{thing.size:,} bytes, mode {_mode(thing)}, {thing.mark.replace(':', ' ')}"


def as_words(thing: FileState | None, content: bytes | None) -> str | None:
    """What stands or will stand somewhere: its text, or words for what has none; None for nothing."""
    if thing is None:
        return None
    text = as_text(content) if content is not None and thing.kind == "file" else None
    return text.text if text is not None and text.whole else _in_words(thing)


def kept(changes: Sequence[FileChange]) -> list[dict[str, Any]]:
    """As JSON data."""
    return [asdict(each) for each in changes]


def check(changes: Sequence[FileChange]) -> None:
    """Raises ToolError for what no trial gives: a path or a link that leads out."""
    for each in changes:
        names = each.path.split("/")
        outside = not all(map(plain, names)) or ".." in names
        if outside or (each.new and each.new.kind == "link" and leads_out(each.path, each.new.mark)):
            raise ToolError(f"{each.path!a} leads out of the workspace. Nothing was changed.")
