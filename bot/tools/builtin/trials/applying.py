"""Application of changes to a workspace: all of them or none, also where Nod is killed in the middle.

New contents are written to a staging folder in the workspace, and synced; then comes a file with the list of
changes. From there on each path is exchanged with its staged twin by one rename, and what comes out is
compared with what people saw: where it is something else, it goes back. So what is staged and what stands in
place tell how far it came. After a crash `settle_apply` finishes it, or undoes it where something else
changed.

Others who apply something wait for the lock of the workspace. No link in it is followed. All of it blocks.
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
from bot.tools.builtin.files.workspace import (
    EXCHANGE,
    FOLDER,
    NOREPLACE,
    READ,
    kind_of,
    look_at,
    open_descriptor,
    rename,
    write_new,
)
from bot.tools.builtin.trials.changes import FileChange, FileState, check_changes, content_of
from bot.tools.builtin.trials.copies import STAGE, Stamp, remove_folder

_READY = "ready"
_DONE, _UNDONE = ".done", ".undone"
_ALTERED = "it is not what was tried"
_BEFORE = "Nod stopped before anything was changed."
_LARGEST = 16 << 20  # bytes of a file whose content is compared


def find_changed(workspace: Path, changes: Sequence[FileChange]) -> str:
    """Return the path that has changed since, in words, or an empty text. Raises ToolError."""
    with _lock_workspace(workspace, changes) as root:
        return _find_changed_path(root, changes)


def apply(workspace: Path, changes: Sequence[FileChange], key: str) -> None:
    """Make the changes. Raises ToolError where it made none, and OSError where it can't say.

    ``key`` names the apply for `settle_apply`.
    """
    with _lock_workspace(workspace, changes) as root:
        why = _find_changed_path(root, changes)
        if why:
            raise ToolError(f"{why} Nothing was changed.")
        for how in ("", _DONE, _UNDONE):
            with contextlib.suppress(FileNotFoundError):
                remove_folder(workspace / f"{STAGE}{key}{how}")  # of an earlier try that came to nothing
        try:
            _prepare(root, changes, f"{STAGE}{key}")
        except OSError as error:
            with contextlib.suppress(OSError):
                remove_folder(workspace / f"{STAGE}{key}")
            raise ToolError(f"It can't be applied ({error.strerror}). Nothing was changed.") from error
        why = _carry_out(workspace, root, changes, key)
        if why:
            raise ToolError(f"{why} It was undone: nothing is changed.")


def settle_apply(workspace: Path, changes: Sequence[FileChange], key: str) -> bool | None:
    """Finish an `apply` that was cut off: True when it is done, None when its state is unclear.

    Raises ToolError where nothing is changed.
    """
    with _lock_workspace(workspace, changes) as root:
        for how in (_DONE, _UNDONE):
            if (cleared := workspace / f"{STAGE}{key}{how}").exists():
                remove_folder(cleared)
                if how == _DONE:
                    return True
                raise ToolError("It could not be applied, and was undone: nothing is changed.")
        try:
            staged = {each.name for each in (workspace / f"{STAGE}{key}").iterdir()}
        except FileNotFoundError:
            return _judge_by_paths(root, changes)
        if _READY not in staged:
            _clear(workspace, root, key, _UNDONE)
            raise ToolError(_BEFORE)
        changes = _list_staged(workspace / f"{STAGE}{key}" / _READY, changes)
        why = _carry_out(workspace, root, changes, key)
        if why:
            raise ToolError(f"Nod stopped in the middle. {why} It was undone: nothing is changed.")
        return True


def now(workspace: Path, changes: Sequence[FileChange]) -> list[FileState | None]:
    """Return the present state of each path."""
    check_changes(changes)
    with open_descriptor(str(workspace), FOLDER) as root:
        return [_at(root, each.path) for each in changes]


def _list_staged(ready: Path, changes: Sequence[FileChange]) -> Sequence[FileChange]:
    """Return the staged ones of these changes, with the former states. Raises OSError for any other."""
    found = ready.read_bytes()
    if not found:  # of an older release
        return changes
    staged = [FileChange.read(each) for each in json.loads(found)]
    if {(each.path, each.new) for each in staged} <= {(each.path, each.new) for each in changes}:
        return staged
    raise OSError(errno.ESTALE, _ALTERED)


def _judge_by_paths(root: int, changes: Sequence[FileChange]) -> bool | None:
    """Return the result of `settle_apply` where no staging folder is left.

    All was applied or nothing, so one path is enough to tell.
    """
    old = {each.path: each.old for each in reversed(changes)}  # the first of each path
    new = {each.path: each.new for each in changes}
    there = {path: _at(root, path) for path in new}
    is_new, is_old = (any(there[path] == then[path] for path in there) for then in (new, old))
    if is_old and not is_new:
        raise ToolError(_BEFORE)
    if not changes or (is_new and not is_old):
        return True
    return None


def _clear(workspace: Path, root: int, key: str, how: str) -> None:
    """Remove the staging folder, renamed first: a half-removed one must not look like an unfinished apply."""
    os.rename(f"{STAGE}{key}", f"{STAGE}{key}{how}", src_dir_fd=root, dst_dir_fd=root)
    os.fsync(root)
    remove_folder(workspace / f"{STAGE}{key}{how}")


@contextlib.contextmanager
def _lock_workspace(workspace: Path, changes: Sequence[FileChange]) -> Iterator[int]:
    """Open the workspace and lock it against other applies. Raises ToolError for bad changes."""
    check_changes(changes)
    with open_descriptor(str(workspace), FOLDER) as root:
        fcntl.flock(root, fcntl.LOCK_EX)
        yield root


@contextlib.contextmanager
def _above(root: int, path: str) -> Iterator[tuple[int, str]]:
    """Yield the open folder in which a path stands, and its name there. Raises OSError without one."""
    *folders, name = path.split("/")
    with contextlib.ExitStack() as stack:
        for each in folders:
            root = stack.enter_context(open_descriptor(each, FOLDER, root))
        yield root, name


def _at(root: int, path: str) -> FileState | None:
    """Return the state of a path; None without it, or without its folder."""
    try:
        with _above(root, path) as (folder, name):
            return _thing(folder, name)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise


def _thing(folder: int, name: str, *, stamped: bool = False) -> FileState:
    seen = os.stat(name, dir_fd=folder, follow_symlinks=False)
    kind, mode = kind_of(seen.st_mode), seen.st_mode & 0o777
    match kind:
        case "folder":
            return FileState(kind, mode | 0o700)
        case "link":
            return FileState(kind, mark=os.readlink(name, dir_fd=folder))
        case "file" if stamped or seen.st_size > _LARGEST:
            return FileState(kind, mode, seen.st_size, Stamp.of(seen).mark)
        case "file":
            with open_descriptor(name, READ, folder) as fd:
                return FileState.of(mode, content_of(fd))
        case _:
            return FileState(kind, mode)


def _is(folder: int, name: str, thing: FileState, *, alone: bool = True) -> bool:
    """Tell if this state is in place; ``alone``: a folder must be empty.

    The stamp is compared without the time that a rename changes.
    """
    stamped = thing.mark.startswith("stamp:")
    try:
        found = _thing(folder, name, stamped=stamped)
        if alone and thing.kind == "folder":
            with open_descriptor(name, FOLDER, folder) as inner:
                if os.listdir(inner):  # noqa: PTH208 - a descriptor
                    return False
    except OSError:
        return False
    if stamped:
        return _steady(found.mark) == _steady(thing.mark)
    return found == thing


def _steady(mark: str) -> list[str]:
    """Return a stamp without its inode's change time."""
    ino, written, _, *rest = mark.split(".")
    return [ino, written, *rest]


def _find_changed_path(root: int, changes: Sequence[FileChange]) -> str:
    """Return the first path where something else stands than was tried, in words; empty for none."""
    gone: set[str] = set()
    for each in changes:
        same = False
        if each.old is None:
            above = each.path.split("/")
            same = any("/".join(above[:n]) in gone for n in range(1, len(above) + 1))
            same = same or _at(root, each.path) is None
        else:
            with contextlib.suppress(OSError), _above(root, each.path) as (folder, name):
                same = _is(folder, name, each.old, alone=False)
        if not same:
            return f"{each.path} changed after it was tried."
        if each.new is None:
            gone.add(each.path)
    return ""


def _prepare(root: int, changes: Sequence[FileChange], stage: str) -> None:
    """Stage every new content, and last that all of it is there."""
    os.mkdir(stage, 0o700, dir_fd=root)
    with open_descriptor(stage, FOLDER, root) as staged:
        for number, each in enumerate(changes):
            if each.new is None or (each.new.kind == "folder" and each.old is not None):
                continue
            if each.new.kind == "folder":
                os.mkdir(str(number), 0o700, dir_fd=staged)
                os.chmod(str(number), each.new.mode, dir_fd=staged)
                continue
            if each.new.kind == "link":
                os.symlink(each.new.mark, str(number), dir_fd=staged)
                continue
            write_new(str(number), staged, each.new.unpacked, each.new.mode)
            with contextlib.suppress(OSError), _above(root, each.path) as (folder, name):
                owner = os.stat(name, dir_fd=folder, follow_symlinks=False)
                os.chown(str(number), owner.st_uid, owner.st_gid, dir_fd=staged, follow_symlinks=False)
                os.chmod(str(number), each.new.mode, dir_fd=staged)
        os.fsync(staged)
        bare = [
            FileChange(each.path, each.old and each.old.bare, each.new and each.new.bare) for each in changes
        ]
        write_new(_READY, staged, json.dumps([asdict(each) for each in bare]).encode(), 0o600)
        os.fsync(staged)
    os.fsync(root)


def _carry_out(workspace: Path, root: int, changes: Sequence[FileChange], key: str) -> str:
    """Take every step that is not taken; where one can't be, undo them all, and say why.

    Then nothing is staged any longer. Raises OSError where not all can be undone.
    """
    with open_descriptor(f"{STAGE}{key}", FOLDER, root) as staged:
        why = _steps(root, staged, changes)
        os.fsync(staged)
    _clear(workspace, root, key, _UNDONE if why else _DONE)
    return why


def _steps(root: int, staged: int, changes: Sequence[FileChange]) -> str:
    for number, each in enumerate(changes):
        try:
            _exchange(root, staged, number, each.path, each.old, each.new)
        except OSError as error:
            why = f"{each.path} can't be changed ({error.strerror})."
            steps = reversed([*enumerate(changes)][: number + 1])
            left = [done.path for at, done in steps if not _undo_change(root, staged, at, done)]
            if left:
                why = f"{why} These were changed by someone else: {', '.join(left)}"
                raise OSError(errno.EBUSY, why) from error
            return why
    for path in {each.path.rpartition("/")[0] for each in changes}:
        with contextlib.suppress(OSError), _above(root, f"{path}/." if path else ".") as (folder, _):
            os.fsync(folder)
    return ""


def _undo_change(root: int, staged: int, number: int, each: FileChange) -> bool:
    """Undo one change, if it was made; False where something else stands there by now."""
    try:
        _exchange(root, staged, number, each.path, each.new, each.old)
    except FileNotFoundError:
        return each.old is None  # its folder was not there yet
    except OSError:
        return False
    return True


def _exchange(
    root: int, staged: int, number: int, path: str, was: FileState | None, will: FileState | None
) -> None:
    """Put what will be in the place of what was, which is staged then; nothing where it is so already.

    Raises OSError where something else stands there, or is staged; that stays as it is.
    """
    slot = str(number)
    if was is not None and will is not None and will.kind == "folder":
        with _above(root, path) as (folder, name), open_descriptor(name, FOLDER, folder) as made:
            os.fchmod(made, will.mode)
        return
    there = look_at(slot, staged) is not None
    if there == (will is None) or (was is not None and there and _is(staged, slot, was)):
        return
    if will is not None and not _is(staged, slot, will):
        raise OSError(errno.ESTALE, _ALTERED)
    with _above(root, path) as (folder, name):
        if was is None:
            rename(slot, staged, name, folder, NOREPLACE)
            return
        how = EXCHANGE if will is not None else NOREPLACE
        rename(name, folder, slot, staged, how)
        if not _is(staged, slot, was):
            rename(slot, staged, name, folder, how)
            raise OSError(errno.ESTALE, _ALTERED)
