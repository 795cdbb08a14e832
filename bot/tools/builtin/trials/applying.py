"""Applying changes to a workspace: all of them or none, even if Nod is killed in the middle.

1. The new contents are written to a staging folder in the workspace, and synced to the disk.
2. A file with the list of changes is added; it says that the folder is complete.
3. Each path is exchanged with its staged content by one rename. The old content, which is now in the staging
   folder, is compared with what people saw. If it differs, it is put back.
4. The staging folder is renamed, which says how it ended, and removed.

So the staging folder and the paths show how far an apply came. After a crash `settle_apply` finishes it, or
undoes it if a file was changed by someone else.

Each change has a *slot* in the staging folder, named by the position of the change in the list. Other applies
wait for the lock of the workspace. Links in it are not followed. All functions block. In their parameters,
``root`` is the open workspace and ``staged`` the open staging folder.
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
from bot.tools.builtin.trials.changes import (
    FileChange,
    FileState,
    check_changes,
    content_of,
    strip_content,
)
from bot.tools.builtin.trials.copies import STAGING_PREFIX, Stamp, remove_folder

_READY_FILE = "ready"  # the list of changes in a complete staging folder
_DONE_SUFFIX = ".done"  # ends the staging folder's name once all changes are made
_UNDONE_SUFFIX = ".undone"  # ends the name if the changes were undone, so that none is made
_ALTERED_TEXT = "it is not what was tried"
_NOTHING_DONE_TEXT = "Nod stopped before anything was changed."
_MAX_COMPARED_BYTES = 16 << 20  # the largest file whose content is compared


def find_changed(workspace: Path, changes: Sequence[FileChange]) -> str:
    """Return in words the first path that changed since the trial; empty if none did.

    Raises ToolError for changes that no trial returns (`check_changes`), as the other functions do.
    """
    with _lock_workspace(workspace, changes) as root:
        return _find_changed_path(root, changes)


def apply(workspace: Path, changes: Sequence[FileChange], key: str) -> None:
    """Make all changes. Raises ToolError if none is made, and OSError if that is unclear.

    ``key`` identifies this apply, and is a part of its staging folder's name.
    """
    with _lock_workspace(workspace, changes) as root:
        why = _find_changed_path(root, changes)
        if why:
            raise ToolError(f"{why} Nothing was changed.")
        for suffix in ("", _DONE_SUFFIX, _UNDONE_SUFFIX):
            with contextlib.suppress(FileNotFoundError):
                # left by an earlier apply that failed
                remove_folder(workspace / f"{STAGING_PREFIX}{key}{suffix}")
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
    """Finish an interrupted `apply`, or undo it if a change can't be made.

    Return True if all changes are made, None if that is unclear. Raises ToolError if none is made.
    """
    with _lock_workspace(workspace, changes) as root:
        for suffix in (_DONE_SUFFIX, _UNDONE_SUFFIX):
            ended_stage = workspace / f"{STAGING_PREFIX}{key}{suffix}"
            if ended_stage.exists():
                remove_folder(ended_stage)
                if suffix == _DONE_SUFFIX:
                    return True
                raise ToolError("It could not be applied, and was undone: nothing is changed.")
        stage = workspace / f"{STAGING_PREFIX}{key}"
        try:
            names = {path.name for path in stage.iterdir()}
        except FileNotFoundError:
            return _judge_by_paths(root, changes)
        if _READY_FILE not in names:
            _remove_stage(workspace, root, key, _UNDONE_SUFFIX)
            raise ToolError(_NOTHING_DONE_TEXT)
        changes = _read_staged_changes(stage / _READY_FILE, changes)
        why = _carry_out(workspace, root, changes, key)
        if why:
            raise ToolError(f"Nod stopped in the middle. {why} It was undone: nothing is changed.")
        return True


def read_states(workspace: Path, changes: Sequence[FileChange]) -> list[FileState | None]:
    """Return the current state of each path."""
    check_changes(changes)
    with open_descriptor(str(workspace), FOLDER) as root:
        return [_read_state(root, change.path) for change in changes]


def _read_staged_changes(ready: Path, changes: Sequence[FileChange]) -> Sequence[FileChange]:
    """Return the changes that a complete staging folder lists, with their old states.

    Raises OSError if a listed change is not among ``changes``, which people approved.
    """
    content = ready.read_bytes()
    if not content:  # an older release wrote no list
        return changes
    staged = [FileChange.read(change) for change in json.loads(content)]
    approved = {(change.path, change.new) for change in changes}
    for change in staged:
        if (change.path, change.new) not in approved:
            raise OSError(errno.ESTALE, _ALTERED_TEXT)
    return staged


def _judge_by_paths(root: int, changes: Sequence[FileChange]) -> bool | None:
    """Return the result of `settle_apply` if no staging folder is left.

    Then either all changes are made or none. A path in its new state says that all are, a path in its old
    state that none is. If there are both sorts, or neither, it is unclear.
    """
    if not changes:
        return True
    old = {change.path: change.old for change in reversed(changes)}  # before the first change of each path
    new = {change.path: change.new for change in changes}  # after the last change of each path
    any_is_new = False
    any_is_old = False
    for path, new_state in new.items():
        state = _read_state(root, path)
        any_is_new = any_is_new or state == new_state
        any_is_old = any_is_old or state == old[path]
    if any_is_old and not any_is_new:
        raise ToolError(_NOTHING_DONE_TEXT)
    if any_is_new and not any_is_old:
        return True
    return None


def _remove_stage(workspace: Path, root: int, key: str, suffix: str) -> None:
    """Rename the staging folder, then remove it. A half-removed one must not look like an open apply."""
    os.rename(f"{STAGING_PREFIX}{key}", f"{STAGING_PREFIX}{key}{suffix}", src_dir_fd=root, dst_dir_fd=root)
    os.fsync(root)
    remove_folder(workspace / f"{STAGING_PREFIX}{key}{suffix}")


@contextlib.contextmanager
def _lock_workspace(workspace: Path, changes: Sequence[FileChange]) -> Iterator[int]:
    """Yield the open workspace, locked against other applies. Raises ToolError for bad changes."""
    check_changes(changes)
    with open_descriptor(str(workspace), FOLDER) as root:
        fcntl.flock(root, fcntl.LOCK_EX)
        yield root


@contextlib.contextmanager
def _open_parent(root: int, path: str) -> Iterator[tuple[int, str]]:
    """Yield the open parent folder of a path, and the name in it. Raises OSError without the folder."""
    *folders, name = path.split("/")
    parent = root
    with contextlib.ExitStack() as stack:
        for folder in folders:
            parent = stack.enter_context(open_descriptor(folder, FOLDER, parent))
        yield parent, name


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
    """Return the state of an entry of a folder.

    The mark of a file is its hash or, if the file is large or ``stamped``, its `Stamp`.
    """
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    kind = kind_of(status.st_mode)
    mode = status.st_mode & 0o777
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


def _has_state(folder: int, name: str, state: FileState, *, may_have_entries: bool = False) -> bool:
    """Tell if an entry of a folder has this state.

    A folder must be empty, unless it ``may_have_entries``. Stamps are compared without the time that a rename
    changes.
    """
    stamped = state.mark.startswith("stamp:")
    try:
        current = _read_entry(folder, name, stamped=stamped)
        if state.kind == "folder" and not may_have_entries:
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
    """Return the result of `find_changed` for an open workspace."""
    removed: set[str] = set()  # the paths that earlier changes of the list removed
    for change in changes:
        is_same = False
        if change.old is not None:
            with contextlib.suppress(OSError), _open_parent(root, change.path) as (folder, name):
                is_same = _has_state(folder, name, change.old, may_have_entries=True)
        elif _is_in_any(removed, change.path):
            is_same = True  # there will be nothing at this path when its turn comes
        else:
            is_same = _read_state(root, change.path) is None
        if not is_same:
            return f"{change.path} changed after it was tried."
        if change.new is None:
            removed.add(change.path)
    return ""


def _is_in_any(removed: set[str], path: str) -> bool:
    """Tell if a path, or a folder that it is in, was removed."""
    names = path.split("/")
    return any("/".join(names[:count]) in removed for count in range(1, len(names) + 1))


def _stage(root: int, changes: Sequence[FileChange], stage: str) -> None:
    """Write every new content to the staging folder, and last the file that says it is complete."""
    os.mkdir(stage, 0o700, dir_fd=root)
    with open_descriptor(stage, FOLDER, root) as staged:
        for number, change in enumerate(changes):
            if change.new is not None and not _is_mode_change(change):
                _stage_content(root, staged, str(number), change.path, change.new)
        os.fsync(staged)
        stripped = [
            FileChange(change.path, strip_content(change.old), strip_content(change.new))
            for change in changes
        ]
        document = json.dumps([asdict(change) for change in stripped])
        write_new(_READY_FILE, staged, document.encode(), 0o600)
        os.fsync(staged)
    os.fsync(root)


def _is_mode_change(change: FileChange) -> bool:
    """Tell if only the mode of a folder changes: nothing is exchanged for that."""
    return change.old is not None and change.new is not None and change.new.kind == "folder"


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
    """Make all changes that are not made yet. If one fails, undo all.

    Return the reason for the failure; empty if all changes are made. The staging folder is removed in both
    cases. Raises OSError if not all can be undone.
    """
    with open_descriptor(f"{STAGING_PREFIX}{key}", FOLDER, root) as staged:
        why = _exchange_all(root, staged, changes)
        os.fsync(staged)
    _remove_stage(workspace, root, key, _UNDONE_SUFFIX if why else _DONE_SUFFIX)
    return why


def _exchange_all(root: int, staged: int, changes: Sequence[FileChange]) -> str:
    """Make all changes or, if one fails, none. The result is that of `_carry_out`."""
    for number, change in enumerate(changes):
        try:
            _exchange(root, staged, str(number), change)
        except OSError as error:
            why = f"{change.path} can't be changed ({error.strerror})."
            stuck = _undo_changes(root, staged, changes[: number + 1])
            if stuck:
                why = f"{why} These were changed by someone else: {', '.join(stuck)}"
                raise OSError(errno.EBUSY, why) from error
            return why
    for path in {change.path.rpartition("/")[0] for change in changes}:
        inside = f"{path}/." if path else "."
        with contextlib.suppress(OSError), _open_parent(root, inside) as (folder, _):
            os.fsync(folder)
    return ""


def _undo_changes(root: int, staged: int, changes: Sequence[FileChange]) -> list[str]:
    """Undo changes, the last first. Return the paths that someone else has changed since."""
    stuck = []
    for number, change in reversed(list(enumerate(changes))):
        inverse = FileChange(change.path, change.new, change.old)
        try:
            _exchange(root, staged, str(number), inverse)
        except FileNotFoundError:
            if change.old is not None:  # else its folder was not there yet, so nothing was made
                stuck.append(change.path)
        except OSError:
            stuck.append(change.path)
    return stuck


def _exchange(root: int, staged: int, slot: str, change: FileChange) -> None:
    """Exchange the content of a path with that of its slot in the staging folder.

    If that was done before, do nothing. Raises OSError if the path or the slot has another content than
    expected, which stays.

    The slot before and after, by the kind of change:

    - addition: the new content, then nothing
    - removal: nothing, then the old content
    - change: the new content, then the old content
    """
    old, new = change.old, change.new
    if new is not None and _is_mode_change(change):
        with _open_parent(root, change.path) as (folder, name), open_descriptor(name, FOLDER, folder) as fd:
            os.fchmod(fd, new.mode)
        return

    is_slot_full = look_at(slot, staged) is not None
    if new is None:
        is_done = is_slot_full
    elif old is None:
        is_done = not is_slot_full
    else:
        is_done = not is_slot_full or _has_state(staged, slot, old)
    if is_done:
        return

    if new is not None and not _has_state(staged, slot, new):
        raise OSError(errno.ESTALE, _ALTERED_TEXT)
    with _open_parent(root, change.path) as (folder, name):
        if old is None:
            renameat2(slot, staged, name, folder, NOREPLACE)
            return
        flag = NOREPLACE if new is None else EXCHANGE
        renameat2(name, folder, slot, staged, flag)
        if not _has_state(staged, slot, old):
            renameat2(slot, staged, name, folder, flag)
            raise OSError(errno.ESTALE, _ALTERED_TEXT)
