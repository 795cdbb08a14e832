"""What a trial did, applied: all of it or nothing, whatever happens in between."""

import os
import shutil
import signal
import sys
import tempfile
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.errors import ToolError
from bot.tools.builtin.trials import applying
from bot.tools.builtin.trials.changes import (
    FileChange,
    Inapplicable,
    changes_to_json,
    compare_copy,
    describe_changes,
)
from bot.tools.builtin.trials.copies import CopyLimits, copy_workspace, find_excess, remove_folder
from tests.tools.builtin.trials.world import CRASHING, mark

pytestmark = pytest.mark.slow

KEY = "nod-1"
NAMES = st.sampled_from(["a", "b", "c.txt", "é"])
FILES = st.tuples(st.binary(max_size=20), st.sampled_from([0o644, 0o755, 0o600]))
TREES = st.recursive(
    FILES | st.just("link"), lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
).filter(lambda tree: isinstance(tree, dict))


def grow(folder: Path, tree) -> None:
    for name, each in tree.items():
        path = folder / name
        if isinstance(each, dict):
            path.mkdir()
            grow(path, each)
        elif each == "link":
            path.symlink_to("nowhere")
        else:
            path.write_bytes(each[0])
            path.chmod(each[1])


def seen(folder: Path) -> dict[str, str]:
    return {str(each.relative_to(folder)): mark(each) for each in sorted(folder.rglob("*"))}


class Trial:
    """A workspace, and a copy of it in which something changed."""

    def __init__(self, base: Path, before, after) -> None:
        self.workspace, self.copy = base / "ws", base / "copy"
        self.workspace.mkdir()
        self.copy.mkdir()
        grow(self.workspace, before)
        nodes = copy_workspace(self.workspace, self.copy, CopyLimits())
        for each in self.copy.iterdir():
            remove_folder(each) if each.is_dir() and not each.is_symlink() else each.unlink()
        grow(self.copy, after)
        self.before, self.after = seen(self.workspace), seen(self.copy)
        changes = compare_copy(self.workspace, self.copy, nodes, os.geteuid())
        self.fields, self.files = describe_changes(changes)
        self.changes = [FileChange.parse(each) for each in changes_to_json(changes)]

    def crash(self, after: int) -> bool:
        """Apply it in a process that is killed at its so many-th change of the disk; whether it was."""
        child = os.fork()
        if child == 0:
            left = after

            def count(event: str, _) -> None:
                nonlocal left
                if event in CRASHING:
                    left -= 1
                    if left == 0:
                        os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(count)
            with suppress(BaseException):
                applying.apply(self.workspace, self.changes, KEY)
            os._exit(0)
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@given(TREES, TREES)
@settings(max_examples=60, deadline=None)
def test_what_is_applied_is_what_the_trial_did(before, after):
    with tempfile.TemporaryDirectory() as base:
        trial = Trial(Path(base), before, after)
        assert applying.describe_conflict(trial.workspace, trial.changes) == ""
        applying.apply(trial.workspace, trial.changes, KEY)
        assert seen(trial.workspace) == trial.after
        assert len({each.path for each in trial.files}) == len({each.path for each in trial.changes})


BEFORE = {
    "a": (b"old", 0o644),
    "gone": (b"x", 0o644),
    "d": {"in": (b"1", 0o644)},
    "l": "link",
    "k": {"f": (b"", 0o644)},
}
AFTER = {
    "a": (b"new", 0o755),
    "d": {"in": (b"2", 0o644), "deep": {"er": (b"3", 0o600)}},
    "l": (b"now a file", 0o644),
    "k": (b"now a file, too", 0o644),
    "new": "link",
}


def test_a_kill_at_any_change_of_the_disk_leaves_all_of_it_or_nothing(tmp_path):
    ends, after = set(), 0
    while True:
        after += 1
        base = tmp_path / str(after)
        base.mkdir()
        trial = Trial(base, BEFORE, AFTER)
        if not trial.crash(after):
            break
        try:
            ends.add(applying.settle_apply(trial.workspace, trial.changes, KEY))
            assert seen(trial.workspace) == trial.after
        except ToolError as error:
            ends.add(error.message)
            assert seen(trial.workspace) == trial.before
    assert seen(trial.workspace) == trial.after
    assert after > 20
    assert ends == {True, "Nod stopped before anything was changed."}


def test_what_a_kill_left_is_settled_with_what_was_staged_and_nothing_that_was_not_asked_for(tmp_path):
    for after in (9, 12, 15):
        base = tmp_path / str(after)
        base.mkdir()
        trial = Trial(base, BEFORE, AFTER)
        assert trial.crash(after)
        asked = [FileChange(each.path, None, each.new) for each in trial.changes]  # as Undo knows them
        stage = next(trial.workspace.glob(".nod-apply-*"), None)
        if stage and (ready := stage / "ready").exists():
            staged = ready.read_text()
            ready.write_text(staged.replace('"path": "new"', '"path": "other"'))
            with pytest.raises(OSError, match="not what was tried"):
                applying.settle_apply(trial.workspace, asked, KEY)
            ready.write_text(staged)
        with suppress(ToolError):
            applying.settle_apply(trial.workspace, asked, KEY)
        assert seen(trial.workspace) in (trial.before, trial.after)


def test_what_else_changed_while_nod_was_down_is_kept_and_the_rest_is_undone(tmp_path):
    undone, after = 0, 0
    while True:
        after += 1
        base = tmp_path / str(after)
        base.mkdir()
        trial = Trial(base, BEFORE, AFTER)
        if not trial.crash(after):
            break
        at = trial.workspace / "l"  # comes near the end
        if at.is_symlink():
            at.unlink()
            at.symlink_to("elsewhere")
            with pytest.raises(ToolError) as caught:
                applying.settle_apply(trial.workspace, trial.changes, KEY)
            undone += "undone" in caught.value.message
            assert seen(trial.workspace) == {**trial.before, "l": mark(at)}
    assert undone


def test_a_path_that_is_no_longer_what_was_tried_leaves_everything_as_it_is(tmp_path):
    for number, (path, change) in enumerate(
        {
            "a": lambda at: at.write_text("mine"),
            "gone": lambda at: at.unlink(),
            "d/in": lambda at: at.chmod(0o600),
            "d/deep": lambda at: at.mkdir(),
            "new": lambda at: at.write_text("mine"),
            "k": shutil.rmtree,
        }.items()
    ):
        base = tmp_path / str(number)
        base.mkdir()
        trial = Trial(base, BEFORE, AFTER)
        change(trial.workspace / path)
        now = seen(trial.workspace)
        assert path in applying.describe_conflict(trial.workspace, trial.changes)
        with pytest.raises(ToolError, match="Nothing was changed"):
            applying.apply(trial.workspace, trial.changes, KEY)
        assert seen(trial.workspace) == now


@pytest.mark.parametrize("put", [Path.mkdir, lambda at: at.symlink_to("nowhere")], ids=["folder", "link"])
def test_another_entry_in_the_place_of_a_file_too_large_to_read_is_told(tmp_path, put):
    trial = Trial(tmp_path, {"big": (bytes(17 << 20), 0o644), "a": (b"1", 0o644)}, {"a": (b"1", 0o644)})
    (trial.workspace / "big").unlink()
    put(trial.workspace / "big")
    now = seen(trial.workspace)
    assert "big changed after it was tried" in applying.describe_conflict(trial.workspace, trial.changes)
    with pytest.raises(ToolError, match="Nothing was changed"):
        applying.apply(trial.workspace, trial.changes, KEY)
    assert seen(trial.workspace) == now


def test_a_link_whose_target_looks_like_a_stamp_is_compared_as_a_link(tmp_path):
    trial = Trial(tmp_path, {"l": "link", "a": (b"1", 0o644)}, {"a": (b"1", 0o644)})
    [change] = trial.changes
    (trial.workspace / "l").unlink()
    (trial.workspace / "l").symlink_to("stamp:1")
    changes = [replace(change, old=replace(change.old, mark="stamp:1"))]
    assert applying.describe_conflict(trial.workspace, changes) == ""


def test_a_folder_that_is_filled_after_the_trial_is_not_removed(tmp_path):
    trial = Trial(tmp_path, {"d": {"in": (b"", 0o644)}, "a": (b"1", 0o644)}, {"a": (b"2", 0o644)})
    (trial.workspace / "d" / "mine").write_text("mine")
    now = seen(trial.workspace)
    with pytest.raises(ToolError, match="It was undone"):
        applying.apply(trial.workspace, trial.changes, KEY)
    assert seen(trial.workspace) == now


def test_a_link_put_in_the_place_of_a_folder_is_not_followed(tmp_path):
    trial = Trial(tmp_path, {"d": {"in": (b"1", 0o644)}}, {"d": {"in": (b"2", 0o644), "new": (b"3", 0o644)}})
    elsewhere = tmp_path / "elsewhere"
    (trial.workspace / "d").rename(elsewhere)
    (trial.workspace / "d").symlink_to(elsewhere)
    with pytest.raises(ToolError):
        applying.apply(trial.workspace, trial.changes, KEY)
    assert (elsewhere / "in").read_bytes() == b"1"
    assert not (elsewhere / "new").exists()


def test_a_file_that_changes_while_it_is_tried_refuses_the_trial(tmp_path):
    workspace, copy = tmp_path / "ws", tmp_path / "copy"
    for each in (workspace, copy):
        each.mkdir()
    (workspace / "a").write_text("1")
    nodes = copy_workspace(workspace, copy, CopyLimits())
    (copy / "a").write_text("2")
    (workspace / "a").write_text("3")
    with pytest.raises(Inapplicable, match="Someone else changed a file while it was tried: a"):
        compare_copy(workspace, copy, nodes, os.geteuid())


def test_a_workspace_beyond_the_bounds_is_not_copied(tmp_path):
    workspace = tmp_path / "ws"
    workspace.mkdir()
    for number in range(20):
        (workspace / str(number)).write_text("x" * 1000)
    for limits, word in (
        (CopyLimits(entries=10), "more than 10 files"),
        (CopyLimits(unshared_bytes=1000), "MB to copy"),
        (CopyLimits(seconds=-1.0), "takes more than"),
    ):
        copy = tmp_path / word
        copy.mkdir()
        with pytest.raises(ToolError, match=word):
            copy_workspace(workspace, copy, limits)


def test_a_file_that_is_removed_while_a_folder_is_measured_hides_no_other(tmp_path, monkeypatch):
    (tmp_path / "large").write_bytes(os.urandom(2 << 20))
    gone = tmp_path / "gone"
    gone.write_text("x")
    scan = os.scandir

    def scan_and_remove(path):
        entries = sorted(scan(path), key=lambda entry: entry.name)
        gone.unlink(missing_ok=True)
        return nullcontext(entries)

    monkeypatch.setattr(os, "scandir", scan_and_remove)
    assert find_excess(tmp_path, 10, 1 << 20) == "it wrote more than 1 MB"


def test_a_folder_is_removed_whatever_the_folders_in_it_are_called(tmp_path):
    copy = tmp_path / "copy"
    for inner in ("a/b/c", ".nod-trial-1/b", ".nod-trial-2/b/c"):
        (copy / inner).mkdir(parents=True)
    remove_folder(copy)
    assert not copy.exists()


def test_a_link_in_the_place_of_a_hook_is_code_and_comes_first(tmp_path):
    trial = Trial(tmp_path, {".git": {"hooks": {}}}, {".git": {"hooks": {"c": "link"}}, "a": (b"1", 0o644)})
    assert [(each.field, each.new_value) for each in trial.fields] == [
        ("code of .git/hooks/c", "link to nowhere"),
        ("content of a", "1"),
    ]


@pytest.mark.parametrize("many", [1000, 1001])
def test_a_thousand_paths_can_be_applied_and_no_more(tmp_path, many):
    after = {str(n): (b"", 0o644) for n in range(many)}
    if many > 1000:
        with pytest.raises(Inapplicable, match="more than 1,000 files"):
            Trial(tmp_path, {}, after)
    else:
        trial = Trial(tmp_path, {}, after)
        applying.apply(trial.workspace, trial.changes, KEY)
        assert seen(trial.workspace) == trial.after


@pytest.mark.skipif("NOD_TEST_REFLINK" not in os.environ, reason="it names no folder on XFS or Btrfs")
def test_where_files_can_share_blocks_a_copy_takes_no_room_and_is_a_file_of_its_own():
    with tempfile.TemporaryDirectory(dir=os.environ["NOD_TEST_REFLINK"]) as base:
        workspace, copy = Path(base) / "ws", Path(base) / "copy"
        for each in (workspace, copy):
            each.mkdir()
        (workspace / "large").write_bytes(os.urandom(8 << 20))
        os.sync()
        free = os.statvfs(base).f_bavail
        nodes = copy_workspace(
            workspace, copy, CopyLimits(unshared_bytes=1000)
        )  # bytes of what can't share them
        os.sync()
        taken = (free - os.statvfs(base).f_bavail) * os.statvfs(base).f_frsize
        assert taken < 1 << 20
        with (copy / "large").open("r+b") as file:
            file.write(b"changed")
        assert (workspace / "large").read_bytes()[:7] != b"changed"
        assert [each.path for each in compare_copy(workspace, copy, nodes, os.geteuid())] == ["large"]


def test_what_git_runs_comes_first_and_is_called_code(tmp_path):
    trial = Trial(
        tmp_path,
        {".git": {"config": (b"[core]\n", 0o644), "hooks": {}}, "a": (b"1", 0o644)},
        {
            ".git": {"config": (b"[x]\n", 0o644), "hooks": {"c.txt": (b"#!/bin/sh\n", 0o755)}},
            "a": (b"\0", 0o644),
        },
    )
    names = [each.field for each in trial.fields]
    assert names == [
        "code of .git/config",
        "code of .git/hooks/c.txt",
        "mode of .git/hooks/c.txt",
        "content of a",
    ]
    assert "binary, 1 bytes, sha256" in trial.fields[-1].new_value
    assert [each.path for each in trial.files if each.code] == [".git/config", ".git/hooks/c.txt"]
