"""Changes of files by a command that was tried in a copy of a workspace: finding, showing and storing them.

`compare_copy` finds the changes: each `FileChange` has the `FileState` of a path before and after the
command. `describe_changes` puts them on a card, `changes_to_json` stores them, and `invert_changes` makes the
changes that undo them. ``applying.py`` applies them to the workspace.

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

from bot.domain.preview import PreviewField
from bot.domain.trials import TriedFile
from bot.errors import ToolError
from bot.tools.builtin.files.descriptors import FOLDER_FLAGS, READ_FLAGS, kind_of, open_descriptor
from bot.tools.builtin.files.paths import may_be_in_path
from bot.tools.builtin.files.workspace import decode_text
from bot.tools.builtin.trials.copies import CopiedPath, CopiedPaths, Stamp

_MAX_PATHS = 1000  # the paths that change
_MAX_CONTENT_BYTES = 16 << 20  # of all old files together; all new files together have this limit again
_MAX_UNDO_BYTES = 1_000_000  # the old content that is stored for an undo
_MAX_DEPTH = 60  # the nesting of folders
_MAX_TEXT_CHARS = 200_000  # one text on the card
_MAX_SHOWN_CHARS = 600_000  # all texts on the card
_MAX_FIELDS = 100  # files whose text is on the card


@dataclass(frozen=True, slots=True)
class FileState:
    """The state of a path: of a file, a folder, a link, or of another kind (a device, a pipe)."""

    kind: str  # file, folder, link or other
    mode: int = 0  # the permissions; 0 for a link
    size: int = 0  # the bytes of a file; 0 for anything else
    mark: str = ""
    """A text that identifies the content: a link's target, a file's hash, or the `Stamp` of a large file."""
    content: str = field(default="", compare=False, repr=False)
    """A file's content, compressed, in base64; empty if it was not read or is not stored."""

    @classmethod
    def of(cls, mode: int, content: bytes) -> "FileState":
        """Return the state of a file."""
        mark = f"sha256:{sha256(content).hexdigest()}"
        packed = base64.b64encode(zlib.compress(content, 1)).decode()
        return cls("file", mode, len(content), mark, packed)

    @property
    def unpacked(self) -> bytes:
        """The file's content; only if it was read and is stored."""
        return zlib.decompress(base64.b64decode(self.content))

    @property
    def text(self) -> str | None:
        """The content as text, or as size and hash if it is binary; None if it was not read."""
        if not self.content:
            return None
        return decode_text(self.unpacked).text

    @property
    def description(self) -> str:
        """The kind, the size, the mark and the mode in words."""
        if self.kind == "link":
            return f"link to {self.mark}"
        if self.kind == "folder":
            return f"{self.kind}, mode {self.permissions}"
        size = f"{self.size:,} bytes, {self.mark.replace(':', ' ')}"
        return f"{self.kind}, {size}, mode {self.permissions}"

    @property
    def permissions(self) -> str:
        """The mode as people see it, such as "755, it can run"."""
        if self.kind == "file" and self.mode & 0o111:
            return f"{self.mode:o}, it can run"
        return f"{self.mode:o}"


@dataclass(frozen=True, slots=True)
class FileChange:
    """The change of one path: its state before and after; None for nothing at this path."""

    path: str
    old: FileState | None
    new: FileState | None

    @classmethod
    def parse(cls, stored: Any) -> "FileChange":
        """Return a change from its stored JSON data."""
        old = FileState(**stored["old"]) if stored["old"] else None
        new = FileState(**stored["new"]) if stored["new"] else None
        if new and stored.get("content"):  # an older release stored the new content here
            new = replace(new, content=stored["content"])
        return cls(stored["path"], old, new)

    @property
    def states(self) -> list[FileState]:
        """The states before and after, without None."""
        return [state for state in (self.old, self.new) if state is not None]

    @property
    def kind(self) -> str:
        if self.old is None:
            return "added"
        if self.new is None:
            return "removed"
        return "changed"


class Inapplicable(Exception):
    """The changes of a command can't be applied, for the reason in the message."""


def read_content(fd: int) -> bytes:
    """Return the full content of an open file."""
    parts = []
    while part := os.read(fd, 1 << 20):
        parts.append(part)
    return b"".join(parts)


class _BoundedReader:
    """A reader of files that reads no more than `_MAX_CONTENT_BYTES` in all."""

    def __init__(self) -> None:
        self.bytes_left = _MAX_CONTENT_BYTES

    def read(self, fd: int, mode: int, size: int) -> FileState | None:
        """Return the state of an open file; None if it is larger than the rest of the limit."""
        if size > self.bytes_left:
            return None
        self.bytes_left -= size
        return FileState.of(mode, read_content(fd))


def compare_copy(workspace: Path, copy: Path, copied_paths: CopiedPaths, owner: int) -> list[FileChange]:
    """Return the changes that a command made in a copy. Raises Inapplicable if they can't be applied.

    ``owner``: the account that must own all of the copy. Old contents are read from the workspace, which must
    not have changed since. The command has ended, so the copy no longer changes.
    """
    new_states: dict[str, FileState] = {}
    with open_descriptor(str(copy), FOLDER_FLAGS) as root:
        walker = _CopyWalker(copied_paths, owner, _BoundedReader())
        for path, state in walker.walk(root, parent="", depth=0):
            new_states[path] = state
            if len(new_states) > _MAX_PATHS:
                break  # they are refused below
        removed = _list_removed(root, copied_paths)
    if len(new_states) + len(removed) > _MAX_PATHS:
        raise Inapplicable(f"It changes more than {_MAX_PATHS:,} files.")
    changes: list[FileChange] = []
    reader = _BoundedReader()
    for path in [*removed, *new_states]:
        if not all(map(may_be_in_path, path.split("/"))):
            raise Inapplicable(f"{path!a} has a name that can't be shown.")
        old = None
        if path in copied_paths:
            old = _read_old_state(workspace, path, copied_paths[path], reader)
        new = new_states.get(path)
        if old != new:
            changes.append(FileChange(path, old, new))
    return _order_changes(changes)


@dataclass(frozen=True, slots=True)
class _CopyWalker:
    """Finds the paths of a copy that a command added or touched.

    To read them, it gives their owner the right to read each file, and all rights to each folder of the copy.
    """

    copied_paths: CopiedPaths
    owner: int  # the account that must own all of the copy
    reader: _BoundedReader

    def walk(self, folder: int, parent: str, depth: int) -> Iterator[tuple[str, FileState]]:
        """Yield every path below an open folder that is new or was touched, with its state.

        ``parent``: the folder's path. ``depth``: the number of folders that the folder is in. Folders are
        compared, and applied, with all rights for their owner, because Nod must get into them.
        """
        if depth > _MAX_DEPTH:
            raise Inapplicable(f"It made folders more than {_MAX_DEPTH} deep.")
        for name in sorted(os.listdir(folder)):
            path = f"{parent}/{name}" if parent else name
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            copied = self.copied_paths.get(path)
            kind = kind_of(status.st_mode)
            mode = status.st_mode & 0o777
            _check_entry(path, kind, status, self.owner)
            if kind == "folder":
                open_mode = mode | 0o700
                if copied is None or copied.kind != "folder" or copied.mode | 0o700 != open_mode:
                    yield path, FileState(kind, open_mode)
                os.chmod(name, open_mode, dir_fd=folder)
                with open_descriptor(name, FOLDER_FLAGS, folder) as inner:
                    yield from self.walk(inner, path, depth + 1)
            elif copied is not None and copied.copy_stamp == Stamp.of(status):
                continue  # it was not changed since it was copied
            elif kind == "link":
                target = os.readlink(name, dir_fd=folder)
                if leads_out(path, target):
                    raise Inapplicable(f"It makes a link that leads out of the workspace: {path}.")
                yield path, FileState(kind, mark=target)
            else:
                yield path, self._read_file(name, folder, mode, status.st_size)

    def _read_file(self, name: str, folder: int, mode: int, size: int) -> FileState:
        os.chmod(name, mode | 0o400, dir_fd=folder)
        with open_descriptor(name, READ_FLAGS, folder) as fd:
            state = self.reader.read(fd, mode, size)
        if state is None:
            raise Inapplicable(f"It changes more than {_MAX_CONTENT_BYTES >> 20} MB.")
        return state


def _check_entry(path: str, kind: str, status: os.stat_result, owner: int) -> None:
    """Raise Inapplicable for an entry of the copy that can't be applied to the workspace."""
    if kind == "other":
        raise Inapplicable(f"It makes a device, a pipe or a socket: {path}.")
    if status.st_uid != owner:
        raise Inapplicable(f"It gives a file to another user: {path}.")
    if kind == "file" and status.st_mode & (stat.S_ISUID | stat.S_ISGID):
        raise Inapplicable(f"It makes a file that runs as another user: {path}.")


def leads_out(path: str, target: str) -> bool:
    """Return whether the link at ``path`` may lead out of the workspace.

    It can't if all ``..`` in its target come first, and lead no further than to the workspace's top. A ``..``
    after another name counts as leading out, because that name may be a link itself.
    """
    if not target or target.startswith("/"):
        return True
    steps = [step for step in target.split("/") if step not in ("", ".")]
    steps_up = 0
    while steps_up < len(steps) and steps[steps_up] == "..":
        steps_up += 1
    depth = path.count("/")
    return steps_up > depth or ".." in steps[steps_up:]


def _list_removed(root: int, copied_paths: CopiedPaths) -> list[str]:
    """Return the copied paths that the command removed, deepest first.

    What was in a folder is removed with it, also if the command put something else in the folder's place.
    """
    removed: list[str] = []
    removed_folders: set[str] = set()
    for path, copied in copied_paths.items():  # a folder comes before its entries
        kind = None
        if path.rpartition("/")[0] not in removed_folders:
            with contextlib.suppress(FileNotFoundError):
                kind = kind_of(os.stat(path, dir_fd=root, follow_symlinks=False).st_mode)
        if kind is None:
            removed.append(path)
        if copied.kind == "folder" and kind != "folder":
            removed_folders.add(path)
    return list(reversed(removed))


def _read_old_state(workspace: Path, path: str, copied: CopiedPath, reader: _BoundedReader) -> FileState:
    """Return the state of a path when it was copied. Raises Inapplicable if a file has changed since."""
    if copied.kind == "folder":
        return FileState("folder", copied.mode | 0o700)
    if copied.kind == "link":
        return FileState("link", mark=copied.target)
    with contextlib.suppress(OSError), open_descriptor(str(workspace / path), READ_FLAGS) as fd:
        if Stamp.of(os.fstat(fd)) == copied.source_stamp:
            state = reader.read(fd, copied.mode, copied.size)
            # a file that is too large to read is identified by its stamp
            return state or FileState("file", copied.mode, copied.size, copied.source_stamp.mark)
    raise Inapplicable(f"Someone else changed a file while it was tried: {path}.")


def _order_changes(changes: Sequence[FileChange]) -> list[FileChange]:
    """Return the changes in the order in which they can be applied.

    Removals come first, beginning with the deepest path, then new folders, then all other changes. A path
    that becomes a folder, or was a folder, is removed and added.
    """
    removals: list[FileChange] = []
    folders: list[FileChange] = []
    others: list[FileChange] = []
    for change in changes:
        was_folder = change.old is not None and change.old.kind == "folder"
        becomes_folder = change.new is not None and change.new.kind == "folder"
        if change.new is None:
            removals.append(change)
            continue
        if change.old is not None and was_folder != becomes_folder:
            removals.append(replace(change, new=None))
            change = replace(change, old=None)  # noqa: PLW2901 - the second half of the same change
        if becomes_folder:
            folders.append(change)
        else:
            others.append(change)
    removals.sort(key=lambda change: (-change.path.count("/"), change.path))
    folders.sort(key=lambda change: change.path)
    others.sort(key=lambda change: change.path)
    return removals + folders + others


def is_code_of_git(path: str) -> bool:
    """Return whether git runs the file at a path (a hook), or programs that it names (a configuration)."""
    names = [name.casefold() for name in path.split("/")]
    if ".git" not in names:
        return False
    names_inside = names[names.index(".git") + 1 :]
    if not names_inside:
        return False
    return "hooks" in names_inside or names_inside[-1] in ("config", "config.worktree", "attributes")


def describe_changes(changes: Sequence[FileChange]) -> tuple[list[PreviewField], tuple[TriedFile, ...]]:
    """Return the changes as fields of a card, and every changed file.

    Code that git runs comes first, and always has a field. Any other text has a field, as long as there is
    room and it is not in ``.git``. All other changes are listed in one last field.
    """
    fields: list[PreviewField] = []
    files: list[TriedFile] = []
    other_lines: list[str] = []  # the lines of the last field
    chars_left = _MAX_SHOWN_CHARS
    for change in sorted(changes, key=lambda change: (not is_code_of_git(change.path), change.path)):
        path = change.path
        is_run_by_git = is_code_of_git(path)
        old = show_state(change.old)
        new = show_state(change.new)
        size = len(old or "") + len(new or "")
        has_room = size <= chars_left and len(fields) < _MAX_FIELDS
        content_field = ""
        if old != new:
            content_field = _name_content_field(change, is_run_by_git=is_run_by_git, has_room=has_room)
        if content_field:
            chars_left -= size
            fields.append(PreviewField(content_field, old, new))

        modes = _find_modes(change) if content_field or is_run_by_git else None
        if modes:
            fields.append(PreviewField(f"mode of {path}", *modes))
        elif not content_field:
            states = " → ".join(state.description for state in change.states)
            other_lines.append(f"{change.kind} {path}: {states}")

        old_size = _find_size(change.old)
        new_size = _find_size(change.new)
        files.append(TriedFile(path, change.kind, old_size, new_size, is_run_by_git, content_field))
    if other_lines:
        fields.append(PreviewField("other changes", None, "\n".join(other_lines)))
    return fields, tuple(files)


def _name_content_field(change: FileChange, *, is_run_by_git: bool, has_room: bool) -> str:
    """Return the name of the field with the text of a change; empty if the text gets no field."""
    path = change.path
    if is_run_by_git:
        return f"code of {path}"
    is_in_git = ".git" in path.casefold().split("/")
    has_content = all(state.content for state in change.states)
    if has_room and has_content and not is_in_git:
        return f"content of {path}"
    return ""


def _find_size(state: FileState | None) -> int | None:
    if state is None or state.kind != "file":
        return None
    return state.size


def _find_modes(change: FileChange) -> tuple[str | None, str] | None:
    """Return a file's old and new permissions if they differ, or if a new file can run; else None."""
    if change.new is None or change.new.kind != "file":
        return None
    new = change.new.permissions
    if change.old is not None and change.old.kind == "file":
        old = change.old.permissions
        return None if old == new else (old, new)
    if change.new.mode & 0o111:
        return None, new
    return None


def show_state(state: FileState | None) -> str | None:
    """Return a state as a card shows it: its text, or its description if it has no short text.

    None if there is no state.
    """
    if state is None:
        return None
    text = state.text
    if text is None or len(text) > _MAX_TEXT_CHARS:
        return state.description
    return text


def changes_to_json(changes: Sequence[FileChange]) -> list[dict[str, Any]]:
    """Return the changes as JSON data, without old contents of more than 1 MB in all."""
    old_bytes = sum(_find_size(change.old) or 0 for change in changes)
    if old_bytes > _MAX_UNDO_BYTES:
        changes = [replace(change, old=strip_content(change.old)) for change in changes]
    return [asdict(change) for change in changes]


def strip_content(state: FileState | None) -> FileState | None:
    """Return a state without its content."""
    return replace(state, content="") if state else None


def invert_changes(changes: Sequence[FileChange]) -> list[FileChange] | None:
    """Return the changes that undo these; None if the old contents are not stored."""
    old_files = [change.old for change in changes if change.old is not None and change.old.kind == "file"]
    if not all(state.content for state in old_files):
        return None
    return [FileChange(change.path, strip_content(change.new), change.old) for change in reversed(changes)]


def check_changes(changes: Sequence[FileChange]) -> None:
    """Raise ToolError for a path or a link that leads out of the workspace, which no trial returns."""
    for change in changes:
        names = change.path.split("/")
        is_outside = not all(map(may_be_in_path, names)) or ".." in names
        if change.new and change.new.kind == "link":
            is_outside = is_outside or leads_out(change.path, change.new.mark)
        if is_outside:
            raise ToolError(f"{change.path!a} leads out of the workspace. Nothing was changed.")
