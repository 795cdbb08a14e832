"""Applying changes to a workspace: all of them or none, even if Nod is killed in the middle.

1. The new contents are written to a staging folder in the workspace, and synced to the disk.
2. A file with the list of changes is added; it says that the folder is complete.
3. Each path is exchanged with its staged content by one rename. The old content, which is now in the staging
   folder, is compared with what people saw. If it differs, it is put back.
4. The staging folder gets a new name, which says how the apply ended. Then it is removed.

So the staging folder and the paths show how far an apply came. After a crash `settle_apply` finishes it, or
undoes it if a file was changed by someone else.

Each change has a *slot* in the staging folder: an entry that is named by the position of the change in the
list. Other applies wait for the lock of the workspace. No link in the workspace is followed. All functions
block. In their parameters, ``root`` is the descriptor of the open workspace and ``stage`` that of the open
staging folder.
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
    FOLDER_FLAGS,
    NOREPLACE,
    READ_FLAGS,
    kind_of,
    open_descriptor,
    renameat2,
    stat_entry,
    write_new,
)
from bot.tools.builtin.trials.changes import (
    FileChange,
    FileState,
    check_changes,
    read_content,
    strip_content,
)
from bot.tools.builtin.trials.copies import STAGING_PREFIX, Stamp, remove_folder

_READY_FILE = "ready"  # the list of changes in a complete staging folder
_DONE_SUFFIX = ".done"  # ends the staging folder's name once all changes are made
_UNDONE_SUFFIX = ".undone"  # ends the name if the changes were undone, so that none is made
_ALTERED_TEXT = "it is not what was tried"
_NOTHING_DONE_TEXT = "Nod stopped before anything was changed."
_MAX_COMPARED_BYTES = 16 << 20  # the largest file whose content is compared


def describe_conflict(workspace: Path, changes: Sequence[FileChange]) -> str:
    """Return a sentence that names the first path that changed since the trial; empty if none did.

    Raises ToolError for changes that no trial returns (`check_changes`), as the other functions do.
    """
    with _lock_workspace(workspace, changes) as root:
        return _describe_conflict(root, changes)


def apply(workspace: Path, changes: Sequence[FileChange], key: str) -> None:
    """Make all changes, or none of them.

    Raises ToolError if none is made, and OSError if that is unclear. ``key`` identifies this apply, and is a
    part of its staging folder's name.
    """
    with _lock_workspace(workspace, changes) as root:
        conflict = _describe_conflict(root, changes)
        if conflict:
            raise ToolError(f"{conflict} Nothing was changed.")
        stage_name = f"{STAGING_PREFIX}{key}"
        for suffix in ("", _DONE_SUFFIX, _UNDONE_SUFFIX):
            with contextlib.suppress(FileNotFoundError):
                # left by an earlier apply that failed
                remove_folder(workspace / f"{stage_name}{suffix}")
        try:
            _write_stage(root, changes, stage_name)
        except OSError as error:
            with contextlib.suppress(OSError):
                remove_folder(workspace / stage_name)
            raise ToolError(f"It can't be applied ({error.strerror}). Nothing was changed.") from error
        failure = _carry_out(workspace, root, changes, key)
        if failure:
            raise ToolError(f"{failure} It was undone: nothing is changed.")


def settle_apply(workspace: Path, changes: Sequence[FileChange], key: str) -> bool:
    """Finish an interrupted `apply`, or undo it if a change can't be made.

    Return True if all changes are made, and False if that is unclear. Raises ToolError if none is made.
    """
    with _lock_workspace(workspace, changes) as root:
        for suffix in (_DONE_SUFFIX, _UNDONE_SUFFIX):
            ended_folder = workspace / f"{STAGING_PREFIX}{key}{suffix}"
            if ended_folder.exists():
                remove_folder(ended_folder)
                if suffix == _DONE_SUFFIX:
                    return True
                raise ToolError("It could not be applied, and was undone: nothing is changed.")
        staging_folder = workspace / f"{STAGING_PREFIX}{key}"
        try:
            names = {path.name for path in staging_folder.iterdir()}
        except FileNotFoundError:
            return _judge_by_paths(root, changes)
        if _READY_FILE not in names:
            _remove_stage(workspace, root, key, _UNDONE_SUFFIX)
            raise ToolError(_NOTHING_DONE_TEXT)
        changes = _read_staged_changes(staging_folder / _READY_FILE, changes)
        failure = _carry_out(workspace, root, changes, key)
        if failure:
            raise ToolError(f"Nod stopped in the middle. {failure} It was undone: nothing is changed.")
        return True


def read_states(workspace: Path, changes: Sequence[FileChange]) -> list[FileState | None]:
    """Return the current state of each path."""
    check_changes(changes)
    with open_descriptor(str(workspace), FOLDER_FLAGS) as root:
        return [_read_state(root, change.path) for change in changes]


def _read_staged_changes(ready: Path, changes: Sequence[FileChange]) -> Sequence[FileChange]:
    """Return the changes that the file ``ready`` of a staging folder lists, with their old states.

    Raises OSError if a listed change is not among ``changes``, which people approved.
    """
    content = ready.read_bytes()
    if not content:  # an older release wrote no list
        return changes
    listed = [FileChange.parse(change) for change in json.loads(content)]
    approved = {(change.path, change.new) for change in changes}
    for change in listed:
        if (change.path, change.new) not in approved:
            raise OSError(errno.ESTALE, _ALTERED_TEXT)
    return listed


def _judge_by_paths(root: int, changes: Sequence[FileChange]) -> bool:
    """Return the result of `settle_apply` if no staging folder is left.

    Then either all changes are made or none. A path in its new state says that all are, a path in its old
    state that none is. If there are both sorts, or neither, it is unclear.
    """
    if not changes:
        return True
    first_states: dict[str, FileState | None] = {}  # before the first change of each path
    last_states: dict[str, FileState | None] = {}  # after the last change of each path
    for change in changes:
        first_states.setdefault(change.path, change.old)
        last_states[change.path] = change.new
    any_is_new = False
    any_is_old = False
    for path, last_state in last_states.items():
        state = _read_state(root, path)
        any_is_new = any_is_new or state == last_state
        any_is_old = any_is_old or state == first_states[path]
    if any_is_old and not any_is_new:
        raise ToolError(_NOTHING_DONE_TEXT)
    return any_is_new and not any_is_old


def _remove_stage(workspace: Path, root: int, key: str, suffix: str) -> None:
    """Rename the staging folder, then remove it. A half-removed one must not look like an open apply."""
    stage_name = f"{STAGING_PREFIX}{key}"
    ended_name = f"{stage_name}{suffix}"
    os.rename(stage_name, ended_name, src_dir_fd=root, dst_dir_fd=root)
    os.fsync(root)
    remove_folder(workspace / ended_name)


@contextlib.contextmanager
def _lock_workspace(workspace: Path, changes: Sequence[FileChange]) -> Iterator[int]:
    """Yield the open workspace, locked against other applies. Raises ToolError for bad changes."""
    check_changes(changes)
    with open_descriptor(str(workspace), FOLDER_FLAGS) as root:
        fcntl.flock(root, fcntl.LOCK_EX)
        yield root


@contextlib.contextmanager
def _open_parent(root: int, path: str) -> Iterator[tuple[int, str]]:
    """Yield the open parent folder of a path, and the last name of the path.

    Raises OSError if there is no such folder.
    """
    *folders, name = path.split("/")
    parent = root
    with contextlib.ExitStack() as stack:
        for folder in folders:
            parent = stack.enter_context(open_descriptor(folder, FOLDER_FLAGS, parent))
        yield parent, name


def _read_state(root: int, path: str) -> FileState | None:
    """Return the state of a path; None if there is nothing at the path, or no folder on the way to it."""
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
            with open_descriptor(name, READ_FLAGS, folder) as fd:
                return FileState.of(mode, read_content(fd))
        case _:
            return FileState(kind, mode)


def _has_state(folder: int, name: str, state: FileState, *, may_have_entries: bool = False) -> bool:
    """Return whether an entry of a folder has this state.

    A folder must be empty, unless it ``may_have_entries``. Stamps are compared without the inode's change
    time, which a rename sets.
    """
    stamped = state.kind == "file" and state.mark.startswith("stamp:")  # as `Stamp.mark` writes it
    try:
        current = _read_entry(folder, name, stamped=stamped)
        if state.kind == "folder" and not may_have_entries:
            with open_descriptor(name, FOLDER_FLAGS, folder) as inner:
                if os.listdir(inner):  # noqa: PTH208 - a descriptor
                    return False
    except OSError:  # such as: there is no such entry
        return False
    if stamped and current.kind == "file":
        return _strip_change_time(current.mark) == _strip_change_time(state.mark)
    return current == state


def _strip_change_time(mark: str) -> list[str]:
    """Return the parts of a `Stamp.mark` without the inode's change time."""
    inode, modified, _, *others = mark.split(".")
    return [inode, modified, *others]


def _describe_conflict(root: int, changes: Sequence[FileChange]) -> str:
    """Return the result of `describe_conflict` for an open workspace."""
    removed: set[str] = set()  # the paths that earlier changes of the list removed
    for change in changes:
        is_same = False
        if change.old is not None:
            with contextlib.suppress(OSError), _open_parent(root, change.path) as (folder, name):
                is_same = _has_state(folder, name, change.old, may_have_entries=True)
        elif _is_removed(change.path, removed):
            is_same = True  # there will be nothing at this path when its turn comes
        else:
            is_same = _read_state(root, change.path) is None
        if not is_same:
            return f"{change.path} changed after it was tried."
        if change.new is None:
            removed.add(change.path)
    return ""


def _is_removed(path: str, removed: set[str]) -> bool:
    """Return whether a path, or a folder that it is in, is among the removed paths."""
    names = path.split("/")
    return any("/".join(names[:count]) in removed for count in range(1, len(names) + 1))


def _write_stage(root: int, changes: Sequence[FileChange], stage_name: str) -> None:
    """Make the staging folder: every new content and, as the last file, the list of changes."""
    os.mkdir(stage_name, 0o700, dir_fd=root)
    with open_descriptor(stage_name, FOLDER_FLAGS, root) as stage:
        for number, change in enumerate(changes):
            if change.new is not None and not _is_mode_change(change):
                _write_slot(root, stage, str(number), change.path, change.new)
        os.fsync(stage)
        stripped = [
            FileChange(change.path, strip_content(change.old), strip_content(change.new))
            for change in changes
        ]
        document = json.dumps([asdict(change) for change in stripped])
        write_new(_READY_FILE, stage, document.encode(), 0o600)
        os.fsync(stage)
    os.fsync(root)


def _is_mode_change(change: FileChange) -> bool:
    """Return whether only the mode of a folder changes. Such a change has no slot."""
    return change.old is not None and change.new is not None and change.new.kind == "folder"


def _write_slot(root: int, stage: int, slot: str, path: str, new: FileState) -> None:
    """Write the new content of a path to its slot of the staging folder, with the owner of the old one."""
    if new.kind == "folder":
        os.mkdir(slot, 0o700, dir_fd=stage)
        os.chmod(slot, new.mode, dir_fd=stage)
    elif new.kind == "link":
        os.symlink(new.mark, slot, dir_fd=stage)
    else:
        write_new(slot, stage, new.unpacked, new.mode)
        with contextlib.suppress(OSError), _open_parent(root, path) as (folder, name):
            owner = os.stat(name, dir_fd=folder, follow_symlinks=False)
            os.chown(slot, owner.st_uid, owner.st_gid, dir_fd=stage, follow_symlinks=False)
            os.chmod(slot, new.mode, dir_fd=stage)


def _carry_out(workspace: Path, root: int, changes: Sequence[FileChange], key: str) -> str:
    """Make all changes that are not made yet. If one fails, undo all.

    Return the reason for the failure; empty if all changes are made. In both cases the staging folder is
    removed. Raises OSError if not all can be undone; then the staging folder stays.
    """
    with open_descriptor(f"{STAGING_PREFIX}{key}", FOLDER_FLAGS, root) as stage:
        failure = _exchange_all(root, stage, changes)
        os.fsync(stage)
    _remove_stage(workspace, root, key, _UNDONE_SUFFIX if failure else _DONE_SUFFIX)
    return failure


def _exchange_all(root: int, stage: int, changes: Sequence[FileChange]) -> str:
    """Make all changes or, if one fails, none. Return and raise the same as `_carry_out`."""
    for number, change in enumerate(changes):
        try:
            _exchange(root, stage, str(number), change)
        except OSError as error:
            failure = f"{change.path} can't be changed ({error.strerror})."
            stuck = _undo_changes(root, stage, changes[: number + 1])
            if stuck:
                failure = f"{failure} These were changed by someone else: {', '.join(stuck)}"
                raise OSError(errno.EBUSY, failure) from error
            return failure
    # sync each folder in which something changed
    one_path_per_folder = {change.path.rpartition("/")[0]: change.path for change in changes}
    for path in one_path_per_folder.values():
        with contextlib.suppress(OSError), _open_parent(root, path) as (folder, _):
            os.fsync(folder)
    return ""


def _undo_changes(root: int, stage: int, changes: Sequence[FileChange]) -> list[str]:
    """Undo changes, the last first. Return the paths that someone else has changed since."""
    stuck = []
    for number in reversed(range(len(changes))):
        change = changes[number]
        inverse = FileChange(change.path, change.new, change.old)
        try:
            _exchange(root, stage, str(number), inverse)
        except FileNotFoundError:
            if change.old is not None:  # else its folder was not there yet, so nothing was made
                stuck.append(change.path)
        except OSError:
            stuck.append(change.path)
    return stuck


def _exchange(root: int, stage: int, slot: str, change: FileChange) -> None:
    """Exchange the content of a path with that of its slot in the staging folder.

    If that was done before, do nothing. Raises OSError if the path or the slot has another content than the
    change says; that content stays where it is.

    The slot before and after, by the kind of change:

    - addition: the new content, then nothing
    - removal: nothing, then the old content
    - change: the new content, then the old content

    To undo a change, call this with its inverse: the slot is then as the change left it.
    """
    old = change.old
    new = change.new
    if new is not None and _is_mode_change(change):
        with (
            _open_parent(root, change.path) as (folder, name),
            open_descriptor(name, FOLDER_FLAGS, folder) as fd,
        ):
            os.fchmod(fd, new.mode)
        return

    is_slot_full = stat_entry(slot, stage) is not None
    if new is None:  # a removal
        is_done = is_slot_full
    elif old is None:  # an addition
        is_done = not is_slot_full
    else:
        is_done = not is_slot_full or _has_state(stage, slot, old)
    if is_done:
        return

    if new is not None and not _has_state(stage, slot, new):
        raise OSError(errno.ESTALE, _ALTERED_TEXT)
    with _open_parent(root, change.path) as (folder, name):
        if old is None:
            renameat2(slot, stage, name, folder, NOREPLACE)
            return
        flag = NOREPLACE if new is None else EXCHANGE
        renameat2(name, folder, slot, stage, flag)
        if not _has_state(stage, slot, old):  # someone changed it in the meantime: put it back
            renameat2(slot, stage, name, folder, flag)
            raise OSError(errno.ESTALE, _ALTERED_TEXT)
