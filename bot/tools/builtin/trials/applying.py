"""Applying changes to a workspace: all of them or none, even if Nod is killed in the middle.

New contents are written to a staging folder in the workspace, and synced; then comes a file with the list of
changes. After that each path is exchanged with its staged content by one rename. The old content that this
takes out is compared with what people saw; if it differs, it is put back. So the staging folder and the paths
show how far an apply came. After a crash `settle_apply` finishes it, or undoes it if another file changed.

Other applies wait for the lock of the workspace. Links in it are not followed. All functions block.
"""

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from bot.errors import ToolError
from bot.tools.builtin.files.descriptors import (
    EXCHANGE,
    FOLDER,
    NOREPLACE,
    READ,
    kind_of,
    look_at,
    open_descriptor,
    renameat2,
    write_new,
)
from bot.tools.builtin.trials.changes import FileChange, FileState, check_changes, content_of
from bot.tools.builtin.trials.copies import STAGING_PREFIX, Stamp, remove_folder

_READY_FILE = "ready"
_DONE_SUFFIX, _UNDONE_SUFFIX = ".done", ".undone"
_ALTERED_TEXT = "it is not what was tried"
_NOTHING_DONE_TEXT = "Nod stopped before anything was changed."
_MAX_COMPARED_BYTES = 16 << 20  # of a file whose content is compared


def find_changed(workspace: Path, changes: Sequence[FileChange]) -> str:
    """Return the first path that changed since the trial, in words; empty if none did. Raises ToolError."""
    with _lock_workspace(workspace, changes) as root:
        return _find_changed_path(root, changes)


def apply(workspace: Path, changes: Sequence[FileChange], key: str) -> None:
    """Make the changes. Raises ToolError if none was made, and OSError if that is unclear.

    ``key`` identifies the apply for `settle_apply`.
    """
    with _lock_workspace(workspace, changes) as root:
        why = _find_changed_path(root, changes)
        if why:
            raise ToolError(f"{why} Nothing was changed.")
        for suffix in ("", _DONE_SUFFIX, _UNDONE_SUFFIX):
            with contextlib.suppress(FileNotFoundError):
                remove_folder(workspace / f"{STAGING_PREFIX}{key}{suffix}")  # of an earlier failed apply
        try:
            _stage(root, changes, f"{STAGING_PREFIX}{key}")
        except OSError as error:
            with contextlib.suppress(OSError):
                remove_folder(workspace / f"{STAGING_PREFIX}{key}")
            raise ToolError(f"It can't be applied ({error.strerror}). Nothing was changed.") from error
        why = _carry_out(workspace, root, changes, key)
        if why:
            raise ToolError(f"{why} It was undone: nothing is changed.")


def settle_apply(workspace: Path, changes: Sequence[FileChange], key: str) -> bool | None:
    """Finish an interrupted `apply`. Return True if it is done, None if its state is unclear.

    Raises ToolError if nothing is changed.
    """
    with _lock_workspace(workspace, changes) as root:
        for suffix in (_DONE_SUFFIX, _UNDONE_SUFFIX):
            ended = workspace / f"{STAGING_PREFIX}{key}{suffix}"
            if ended.exists():
                remove_folder(ended)
                if suffix == _DONE_SUFFIX:
                    return True
                raise ToolError("It could not be applied, and was undone: nothing is changed.")
        try:
            staged = {path.name for path in (workspace / f"{STAGING_PREFIX}{key}").iterdir()}
        except FileNotFoundError:
            return _judge_by_paths(root, changes)
        if _READY_FILE not in staged:
            _remove_stage(workspace, root, key, _UNDONE_SUFFIX)
            raise ToolError(_NOTHING_DONE_TEXT)
        changes = _list_staged(workspace / f"{STAGING_PREFIX}{key}" / _READY_FILE, changes)
        why = _carry_out(workspace, root, changes, key)
        if why:
            raise ToolError(f"Nod stopped in the middle. {why} It was undone: nothing is changed.")
        return True


def now(workspace: Path, changes: Sequence[FileChange]) -> list[FileState | None]:
    """Return the current state of each path."""
    check_changes(changes)
    with open_descriptor(str(workspace), FOLDER) as root:
        return [_read_state(root, change.path) for change in changes]


def _list_staged(ready: Path, changes: Sequence[FileChange]) -> Sequence[FileChange]:
    """Return the staged changes with their old states. Raises OSError if they are not among ``changes``."""
    content = ready.read_bytes()
    if not content:  # written by an older release
        return changes
    staged = [FileChange.read(change) for change in json.loads(content)]
    wanted = {(change.path, change.new) for change in changes}
    if all((change.path, change.new) in wanted for change in staged):
        return staged
    raise OSError(errno.ESTALE, _ALTERED_TEXT)


def _judge_by_paths(root: int, changes: Sequence[FileChange]) -> bool | None:
    """Return the result of `settle_apply` if no staging folder is left.

    Either all or nothing was applied, so one path is enough to tell.
    """
    old = {change.path: change.old for change in reversed(changes)}  # before the first change of each path
    new = {change.path: change.new for change in changes}
    current = {path: _read_state(root, path) for path in new}
    is_new = any(state == new[path] for path, state in current.items())
    is_old = any(state == old[path] for path, state in current.items())
    if is_old and not is_new:
        raise ToolError(_NOTHING_DONE_TEXT)
    if not changes or (is_new and not is_old):
        return True
    return None


def _remove_stage(workspace: Path, root: int, key: str, suffix: str) -> None:
    """Rename the staging folder, then remove it: a half-removed one must not look like an open apply."""
    os.rename(f"{STAGING_PREFIX}{key}", f"{STAGING_PREFIX}{key}{suffix}", src_dir_fd=root, dst_dir_fd=root)
    os.fsync(root)
    remove_folder(workspace / f"{STAGING_PREFIX}{key}{suffix}")


@contextlib.contextmanager
def _lock_workspace(workspace: Path, changes: Sequence[FileChange]) -> Iterator[int]:
    """Open the workspace and lock it against other applies. Raises ToolError for bad changes."""
    check_changes(changes)
    with open_descriptor(str(workspace), FOLDER) as root:
        fcntl.flock(root, fcntl.LOCK_EX)
        yield root


@contextlib.contextmanager
def _open_parent(root: int, path: str) -> Iterator[tuple[int, str]]:
    """Yield the open parent folder of a path, and the name in it. Raises OSError without the folder."""
    *folders, name = path.split("/")
    with contextlib.ExitStack() as stack:
        for parent in folders:
            root = stack.enter_context(open_descriptor(parent, FOLDER, root))
        yield root, name


def _read_state(root: int, path: str) -> FileState | None:
    """Return the state of a path; None without it, or without its folder."""
    try:
        with _open_parent(root, path) as (folder, name):
            return _read_entry(folder, name)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise


def _read_entry(folder: int, name: str, *, stamped: bool = False) -> FileState:
    """Return the state of an entry of a folder; a large or ``stamped`` file's by its stamp."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    kind, mode = kind_of(status.st_mode), status.st_mode & 0o777
    match kind:
        case "folder":
            return FileState(kind, mode | 0o700)
        case "link":
            return FileState(kind, mark=os.readlink(name, dir_fd=folder))
        case "file" if stamped or status.st_size > _MAX_COMPARED_BYTES:
            return FileState(kind, mode, status.st_size, Stamp.of(status).mark)
        case "file":
            with open_descriptor(name, READ, folder) as fd:
                return FileState.of(mode, content_of(fd))
        case _:
            return FileState(kind, mode)


def _is_in_place(folder: int, name: str, state: FileState, *, alone: bool = True) -> bool:
    """Tell if an entry of a folder has this state; ``alone``: a folder must be empty.

    Stamps are compared without the time that a rename changes.
    """
    stamped = state.mark.startswith("stamp:")
    try:
        current = _read_entry(folder, name, stamped=stamped)
        if alone and state.kind == "folder":
            with open_descriptor(name, FOLDER, folder) as inner:
                if os.listdir(inner):  # noqa: PTH208 - a descriptor
                    return False
    except OSError:
        return False
    if stamped:
        return _strip_change_time(current.mark) == _strip_change_time(state.mark)
    return current == state


def _strip_change_time(mark: str) -> list[str]:
    """Return the parts of a stamp without the inode's change time."""
    inode, modified, _, *others = mark.split(".")
    return [inode, modified, *others]


def _find_changed_path(root: int, changes: Sequence[FileChange]) -> str:
    """Return the first path that is not as it was tried, in words; empty if all are."""
    removed: set[str] = set()  # by earlier changes of the list
    for change in changes:
        is_same = False
        if change.old is None:
            parts = change.path.split("/")
            ancestors = {"/".join(parts[:count]) for count in range(1, len(parts) + 1)}
            is_same = not removed.isdisjoint(ancestors) or _read_state(root, change.path) is None
        else:
            with contextlib.suppress(OSError), _open_parent(root, change.path) as (folder, name):
                is_same = _is_in_place(folder, name, change.old, alone=False)
        if not is_same:
            return f"{change.path} changed after it was tried."
        if change.new is None:
            removed.add(change.path)
    return ""


def _stage(root: int, changes: Sequence[FileChange], stage: str) -> None:
    """Write every new content to the staging folder, and last the file that says it is complete."""
    os.mkdir(stage, 0o700, dir_fd=root)
    with open_descriptor(stage, FOLDER, root) as staged:
        for number, change in enumerate(changes):
            changes_folder = change.old is not None and change.new is not None and change.new.kind == "folder"
            if change.new is not None and not changes_folder:
                _stage_content(root, staged, str(number), change.path, change.new)
        os.fsync(staged)
        bare = [
            FileChange(change.path, change.old and change.old.bare, change.new and change.new.bare)
            for change in changes
        ]
        write_new(_READY_FILE, staged, json.dumps([asdict(change) for change in bare]).encode(), 0o600)
        os.fsync(staged)
    os.fsync(root)


def _stage_content(root: int, staged: int, slot: str, path: str, new: FileState) -> None:
    """Write the new content of a path to its slot of the staging folder, with the owner of the old one."""
    if new.kind == "folder":
        os.mkdir(slot, 0o700, dir_fd=staged)
        os.chmod(slot, new.mode, dir_fd=staged)
    elif new.kind == "link":
        os.symlink(new.mark, slot, dir_fd=staged)
    else:
        write_new(slot, staged, new.unpacked, new.mode)
        with contextlib.suppress(OSError), _open_parent(root, path) as (folder, name):
            owner = os.stat(name, dir_fd=folder, follow_symlinks=False)
            os.chown(slot, owner.st_uid, owner.st_gid, dir_fd=staged, follow_symlinks=False)
            os.chmod(slot, new.mode, dir_fd=staged)


def _carry_out(workspace: Path, root: int, changes: Sequence[FileChange], key: str) -> str:
    """Make all changes that are not made yet. If one fails, undo all and return why; else return "".

    The staging folder is removed in both cases. Raises OSError if not all can be undone.
    """
    with open_descriptor(f"{STAGING_PREFIX}{key}", FOLDER, root) as staged:
        why = _exchange_all(root, staged, changes)
        os.fsync(staged)
    _remove_stage(workspace, root, key, _UNDONE_SUFFIX if why else _DONE_SUFFIX)
    return why


def _exchange_all(root: int, staged: int, changes: Sequence[FileChange]) -> str:
    for number, change in enumerate(changes):
        try:
            _exchange(root, staged, number, change.path, change.old, change.new)
        except OSError as error:
            why = f"{change.path} can't be changed ({error.strerror})."
            made = list(enumerate(changes))[: number + 1]
            stuck = [done.path for at, done in reversed(made) if not _undo_change(root, staged, at, done)]
            if stuck:
                why = f"{why} These were changed by someone else: {', '.join(stuck)}"
                raise OSError(errno.EBUSY, why) from error
            return why
    for path in {change.path.rpartition("/")[0] for change in changes}:
        inside = f"{path}/." if path else "."
        with contextlib.suppress(OSError), _open_parent(root, inside) as (folder, _):
            os.fsync(folder)
    return ""


def _undo_change(root: int, staged: int, number: int, change: FileChange) -> bool:
    """Undo one change, if it was made. Return False if the path was changed since."""
    try:
        _exchange(root, staged, number, change.path, change.new, change.old)
    except FileNotFoundError:
        return change.old is None  # its folder was not there yet
    except OSError:
        return False
    return True


def _exchange(
    root: int, staged: int, number: int, path: str, old: FileState | None, new: FileState | None
) -> None:
    """Exchange the content of a path with its staged content, unless that was done before.

    Raises OSError if the path or its slot has another content than expected, which stays.
    """
    slot = str(number)
    if old is not None and new is not None and new.kind == "folder":
        with _open_parent(root, path) as (folder, name), open_descriptor(name, FOLDER, folder) as existing:
            os.fchmod(existing, new.mode)
        return
    is_staged = look_at(slot, staged) is not None
    if is_staged == (new is None) or (old is not None and is_staged and _is_in_place(staged, slot, old)):
        return
    if new is not None and not _is_in_place(staged, slot, new):
        raise OSError(errno.ESTALE, _ALTERED_TEXT)
    with _open_parent(root, path) as (folder, name):
        if old is None:
            renameat2(slot, staged, name, folder, NOREPLACE)
            return
        flag = EXCHANGE if new is not None else NOREPLACE
        renameat2(name, folder, slot, staged, flag)
        if not _is_in_place(staged, slot, old):
            renameat2(slot, staged, name, folder, flag)
            raise OSError(errno.ESTALE, _ALTERED_TEXT)
