"""The workspace's files: what the tools do, and that nothing leads out of the jail."""

import asyncio
import ctypes
import json
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from bot.domain.risks import Level
from bot.errors import BadArguments, SettingsError, ToolError
from bot.tools.builtin.files.paths import parse_path
from bot.tools.builtin.files.tools import file_tools, make_folder_key
from bot.tools.builtin.files.workspace import ConfinedFolder, ExpectedContent
from tests.kit.examples import examples
from tests.tools.builtin.corpora import lines
from tests.tools.calls import Hands

SECRET = "the secret that stands outside"
GIT = "[core]\n\tbare = false\n"


class World:
    """A workspace full of ways out, alongside a secret."""

    def __init__(self, root: Path) -> None:
        self.outside = root / "outside"
        self.work = root / "work"
        (self.outside / "inner").mkdir(parents=True)
        (self.outside / "secret.txt").write_text(SECRET)
        (self.outside / "inner" / "deep.txt").write_text(SECRET)
        (root / "secret.txt").write_text(SECRET)
        (self.work / "a" / "b").mkdir(parents=True)
        (self.work / "a" / "plain.txt").write_text("one\ntwo\n")
        (self.work / ".git" / "hooks").mkdir(parents=True)
        (self.work / ".git" / "config").write_text(GIT)
        for name, to in {
            "link-to-file": "../outside/secret.txt",
            "link-to-folder": str(self.outside),
            "link-to-root": "/",
            "relative-link": "../outside",
            "a/link-in-the-middle": "../../outside",
            "link-to-link": "link-to-file",
            "link-to-proc": "/proc/self",
        }.items():
            (self.work / name).symlink_to(to)
        (self.work / "hard-link").hardlink_to(self.outside / "secret.txt")
        os.mkfifo(self.work / "fifo")
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(self.work / "socket"))
        with suppress(PermissionError):
            os.mknod(self.work / "device", 0o20666, os.makedev(1, 5))  # /dev/zero, for root alone
        self.hands = Hands(file_tools(self.work))
        self.before = self.around()

    def around(self) -> dict[str, str]:
        """Everything outside of the workspace, and git's own folder in it."""
        found = {}
        for path in sorted([self.outside.parent, *self.outside.parent.rglob("*")]):
            inside = path.relative_to(self.outside.parent).parts
            if inside[:1] == ("work",) and inside[1:2] != (".git",):
                continue
            found[str(path)] = "folder" if path.is_dir() else path.read_text()
        return found

    async def try_everything(self, path: str) -> list[str]:
        """All the tools with this path; what they answered."""
        answers = []
        for name, more in {
            "file_list": {},
            "file_read": {},
            "file_search": {"text": "secret"},
            "file_write": {"content": "overwritten"},
            "file_edit": {"old": "secret", "new": "overwritten"},
            "file_move": {"to": "moved-here"},
            "file_delete": {},
        }.items():
            for act in (self.hands.run, self.hands.preview):
                with suppress(ToolError):
                    answers.append(str(await act(name, path=path, **more)))
        with suppress(ToolError):
            answers.append(str(await self.hands.run("file_move", path="a/plain.txt", to=path)))
        return answers


@contextmanager
def world() -> Iterator[World]:
    root = Path(tempfile.mkdtemp())
    try:
        yield World(root)
    finally:
        shutil.rmtree(root)


@pytest.fixture
def here() -> Iterator[World]:
    with world() as made:
        yield made


@pytest.fixture
def hands(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "plan.md").write_text("one\ntwo\nthree\n")
    return Hands(file_tools(tmp_path))


# -- the jail


@pytest.mark.parametrize("path", lines("jail"))
async def test_no_written_escape_reaches_anything_outside(here, path):
    try:
        answers = await here.try_everything(json.loads(path))
    except BadArguments:
        answers = []
    assert here.around() == here.before
    assert not [answer for answer in answers if SECRET in answer or "root:" in answer]


PIECES = st.sampled_from([
    "..", ".", "", "a", "b", "~", " ", "secret.txt", "outside", "work", "inner", ".git", "config", "hooks",
    "etc",
    "passwd", "link-to-folder", "relative-link", "link-in-the-middle", "link-to-root", "link-to-proc",
    "hard-link",
    "cwd", "root", "proc", "\uff0e\uff0e", "\u2025", "..\u200d", "\\..\\", "\x00", "%2e%2e", "fifo",
    "plain.txt",
])  # fmt: skip
PATHS = st.lists(PIECES | st.text(max_size=4), min_size=1, max_size=7).map("/".join)


@pytest.mark.slow
@examples(120, suppress_health_check=list(HealthCheck))
@given(st.lists(PATHS, min_size=1, max_size=3))
def test_no_invented_path_reaches_anything_outside(paths):
    with world() as made:
        for path in paths:
            answers = asyncio.run(made.try_everything(path))
            assert made.around() == made.before
            assert not [answer for answer in answers if SECRET in answer]


@given(st.text(max_size=60))
def test_what_is_taken_for_a_path_has_only_names_that_stay_below(path):
    try:
        found = parse_path(path)
    except ToolError:
        return
    assert not {"", ".", ".."} & set(found)
    assert all("/" not in name and "\0" not in name and name == name.strip() for name in found)


def test_a_folder_swapped_for_a_link_while_it_is_open_still_leads_inside(here):
    confined = ConfinedFolder(here.work)
    (here.work / "a" / "secret.txt").write_text("inside")
    with confined.open_folder(("a",)) as fd:
        (here.work / "a").rename(here.work / "gone")
        (here.work / "a").symlink_to(here.outside)
        assert confined.read_at(("a", "secret.txt"), fd) == b"inside"


def test_a_folder_that_keeps_turning_into_a_link_never_leads_outside(here):
    confined, stop = ConfinedFolder(here.work), threading.Event()
    (here.work / "turning").mkdir()
    (here.work / "turning" / "secret.txt").write_text("inside")
    link = here.work / "other"
    link.symlink_to(here.outside)

    def turn() -> None:
        libc = ctypes.CDLL(None)
        one, two = os.fsencode(here.work / "turning"), os.fsencode(link)
        while not stop.is_set():
            libc.renameat2(-100, one, -100, two, 2)  # AT_FDCWD, RENAME_EXCHANGE: never a moment without

    thread = threading.Thread(target=turn)
    thread.start()
    seen = set()
    try:
        for _ in range(300):
            with suppress(ToolError):
                seen.add(confined.read(("turning", "secret.txt")))
            with suppress(ToolError):
                confined.write(("turning", "secret.txt"), b"inside")
    finally:
        stop.set()
        thread.join()
    assert seen <= {b"inside"}
    assert here.around() == here.before


async def test_writing_over_a_hard_link_leaves_its_other_end_alone(here):
    await here.hands.run("file_write", path="hard-link", content="mine now")
    assert (here.work / "hard-link").read_text() == "mine now"
    assert (here.outside / "secret.txt").read_text() == SECRET


async def test_links_are_listed_but_not_followed(here):
    listed = await here.hands.run("file_list")
    kinds = {each["name"]: each["kind"] for each in listed["entries"]}
    assert (kinds["link-to-folder"], kinds["fifo"], kinds["a"]) == ("link", "other", "folder")
    with pytest.raises(ToolError, match="links are not followed"):
        await here.hands.run("file_list", path="link-to-folder")


async def test_a_name_that_is_no_text_is_shown_escaped(here):
    os.close(os.open(os.fsencode(here.work) + b"/a/b/\xff\n", os.O_CREAT))
    listed = await here.hands.run("file_list", path="a/b")
    assert listed["entries"][0]["name"] == "'\\udcff\\n'"
    json.dumps(listed, ensure_ascii=False).encode()


def test_a_workspace_that_is_no_folder_stops_the_start(tmp_path):
    with pytest.raises(SettingsError, match="not a folder"):
        file_tools(tmp_path / "nowhere")


# -- reading


async def test_a_file_is_read_by_its_lines(hands):
    assert await hands.run("file_read", path="./docs//plan.md", from_line=2, lines=1) == {
        "path": "docs/plan.md",
        "from_line": 2,
        "to_line": 2,
        "total_lines": 3,
        "text": "two",
    }


async def test_a_binary_file_is_described_and_not_dumped(hands, tmp_path):
    (tmp_path / "image").write_bytes(b"\x89PNG\x00\x01")
    assert (await hands.run("file_read", path="image"))["binary"].startswith("binary, 6 bytes, sha256 ")


async def test_a_file_that_is_too_large_is_refused(tmp_path):
    (tmp_path / "large").write_bytes(b"x" * 101)
    small = Hands(file_tools(tmp_path, max_read=100, max_write=10))
    with pytest.raises(ToolError, match="101 bytes; at most 100"):
        await small.run("file_read", path="large")
    for act in (small.run, small.preview):
        with pytest.raises(ToolError, match="10"):
            await act("file_write", path="new", content="éééééé")
    assert not (tmp_path / "new").exists()


def test_a_restored_file_that_is_too_large_is_refused_with_the_limit_of_restored_files(tmp_path):
    confined = ConfinedFolder(tmp_path, max_write=10)
    with pytest.raises(ToolError, match="has 1000001 bytes; at most 1000000 are written"):
        confined.write(("new",), b"x" * 1_000_001, mode=0o644)


async def test_a_search_finds_lines_in_any_case_and_counts_what_it_left_out(hands, tmp_path):
    (tmp_path / "docs" / "other.txt").write_text("nothing\nTWO words\n")
    (tmp_path / "docs" / "binary").write_bytes(b"two\0")
    found = await hands.run("file_search", text="two")
    assert found["matches"] == [
        {"path": "docs/other.txt", "line": 2, "text": "TWO words"},
        {"path": "docs/plan.md", "line": 2, "text": "two"},
    ]
    assert (found["files_searched"], found["files_left_out"], found["cut"]) == (3, 1, False)


async def test_a_search_can_be_kept_to_some_names(hands, tmp_path):
    (tmp_path / "docs" / "plan.txt").write_text("two")
    found = await hands.run("file_search", text="two", path="docs", pattern="*.txt")
    assert [each["path"] for each in found["matches"]] == ["docs/plan.txt"]


# -- writing


async def test_the_preview_of_a_write_is_the_old_and_the_new_content_once(hands):
    shown = await hands.preview("file_write", path="docs/plan.md", content="one\n2\nthree\n")
    assert shown == [("content of docs/plan.md", "one\ntwo\nthree\n", "one\n2\nthree\n")]


async def test_a_new_file_has_no_old_content_and_its_folders_are_made(hands, tmp_path):
    shown = await hands.preview("file_write", path="new/deep/a.txt", content="hi")
    assert shown == [("content of new/deep/a.txt", None, "hi")]
    assert not (tmp_path / "new").exists()
    await hands.run("file_write", path="new/deep/a.txt", content="hi")
    assert (tmp_path / "new" / "deep" / "a.txt").read_text() == "hi"


async def test_the_title_of_a_write_counts_the_lines_that_change(hands, tmp_path):
    (tmp_path / "image").write_bytes(b"\0")
    write = hands.tools["file_write"]
    titles = [
        await write.title({"path": path, "content": content})
        for path, content in (
            ("docs/plan.md", "one\n2\nthree\n"),
            ("docs/plan.md", "1\n2\nthree\nfour\n"),
            ("new.txt", "hi"),
            ("image", "x"),
        )
    ]
    assert titles == [
        "Change docs/plan.md (1 line)",
        "Change docs/plan.md (3 lines)",
        "Create new.txt (1 line)",
        "Replace image",
    ]


async def test_an_old_content_that_moved_since_gives_another_old_value(hands, tmp_path):
    first = await hands.preview("file_write", path="docs/plan.md", content="x")
    (tmp_path / "docs" / "plan.md").write_text("somebody else was here\n")
    second = await hands.preview("file_write", path="docs/plan.md", content="x")
    assert first[0][1] != second[0][1]


async def test_a_binary_file_is_replaced_with_its_hash_as_old_value_and_no_diff(hands, tmp_path):
    (tmp_path / "image").write_bytes(b"\0")
    (field,) = await hands.preview("file_write", path="image", content="x")
    assert field[1].startswith("binary, 1 bytes, sha256 6e340b9cffb3")


async def test_a_write_keeps_the_mode_of_the_file_and_leaves_no_other_behind(hands, tmp_path):
    (tmp_path / "run.sh").write_text("old")
    (tmp_path / "run.sh").chmod(0o750)
    await hands.run("file_write", path="run.sh", content="new")
    assert (tmp_path / "run.sh").stat().st_mode & 0o777 == 0o750
    assert sorted(each.name for each in tmp_path.iterdir()) == ["docs", "run.sh"]


async def test_a_write_that_would_change_nothing_is_refused(hands):
    with pytest.raises(ToolError, match="change nothing"):
        await hands.preview("file_write", path="docs/plan.md", content="one\ntwo\nthree\n")


@pytest.mark.parametrize(
    ("old", "now"),
    [
        ("one", "one, and two"),
        ("one", None),
        (None, "somebody else's"),
        ("one", b"\0"),
        (b"\0one", b"\0two"),
        ("x" * 2_000_000, "y" * 2_000_000),
    ],
    ids=["text", "gone", "appeared", "became binary", "binary", "too long to show"],
)
async def test_a_file_that_moved_after_the_last_look_is_not_written_over(hands, tmp_path, old, now):
    file = tmp_path / "plan.txt"

    def put(content):
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_bytes(content if isinstance(content, bytes) else content.encode())

    put(old)
    shown = await hands.preview("file_write", path="plan.txt", content="new")
    put(now)
    with pytest.raises(ToolError, match=r"plan.txt (changed after it was shown|already exists)"):
        await hands.run_as_shown("file_write", shown, path="plan.txt", content="new")
    assert file.exists() == (now is not None)
    assert now is None or file.read_bytes() == (now if isinstance(now, bytes) else now.encode())
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".nod")] == []
    put(old)
    shown = await hands.preview("file_write", path="plan.txt", content="new")
    await hands.run_as_shown("file_write", shown, path="plan.txt", content="new")
    assert file.read_text() == "new"


async def test_where_no_one_was_shown_anything_a_write_replaces_what_is_there(hands, tmp_path):
    (tmp_path / "plan.txt").write_text("one")
    await hands.run("file_write", path="plan.txt", content="new")
    assert (tmp_path / "plan.txt").read_text() == "new"


def test_a_file_that_appears_in_the_very_last_moment_is_not_written_over(here):
    confined = ConfinedFolder(here.work)

    class Late(ConfinedFolder):
        def _require_unchanged(self, names, fd, before):
            super()._require_unchanged(names, fd, before)
            (here.work / "late.txt").write_text("theirs")

    with pytest.raises(ToolError, match="already exists"):
        Late(here.work).write(("late.txt",), b"ours", ExpectedContent(None))
    assert confined.read(("late.txt",)) == b"theirs"


async def test_a_folder_is_never_written_over(hands):
    for act in (hands.run, hands.preview):
        with pytest.raises(ToolError, match="is a folder"):
            await act("file_write", path="docs", content="x")


async def test_a_move_shows_both_places_and_overwrites_nothing(hands, tmp_path):
    assert await hands.preview("file_move", path="docs/plan.md", to="old/plan.md") == [
        ("path", "docs/plan.md", "old/plan.md"),
        ("content of old/plan.md", "one\ntwo\nthree\n", "one\ntwo\nthree\n"),
    ]
    await hands.run("file_move", path="docs/plan.md", to="old/plan.md")
    (tmp_path / "docs" / "plan.md").write_text("a new one")
    for act in (hands.run, hands.preview):
        with pytest.raises(ToolError, match="already exists"):
            await act("file_move", path="docs/plan.md", to="old/plan.md")
    assert (tmp_path / "old" / "plan.md").read_text() == "one\ntwo\nthree\n"


async def test_a_folder_moves_but_not_into_itself(hands, tmp_path):
    with pytest.raises(ToolError, match="cannot be put there"):
        await hands.run("file_move", path="docs", to="docs/inner")
    await hands.run("file_move", path="docs", to="papers")
    assert (tmp_path / "papers" / "plan.md").exists()


async def test_a_deletion_shows_what_is_lost_and_takes_only_empty_folders(hands, tmp_path):
    assert await hands.preview("file_delete", path="docs/plan.md") == [
        ("content of docs/plan.md", "one\ntwo\nthree\n", None)
    ]
    for attempt in (hands.preview, hands.run):
        with pytest.raises(ToolError, match="docs is a folder with something in it"):
            await attempt("file_delete", path="docs")
    await hands.run("file_delete", path="docs/plan.md")
    assert await hands.preview("file_delete", path="docs") == [
        ("content of docs", "folder with 0 entries", None)
    ]
    await hands.run("file_delete", path="docs")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ToolError, match=r"There is no docs"):
        await hands.run("file_delete", path="docs")


def test_reading_writing_and_deleting_are_told_apart(hands):
    levels = {name: tool.classify({}).level for name, tool in hands.tools.items()}
    assert levels == {
        "file_list": Level.READ,
        "file_read": Level.READ,
        "file_search": Level.READ,
        "file_write": Level.WRITE,
        "file_edit": Level.WRITE,
        "file_move": Level.WRITE,
        "file_delete": Level.DESTRUCTIVE,
        "file_restore": Level.WRITE,
    }


async def test_the_folder_of_a_call_has_one_spelling(here):
    key = make_folder_key(ConfinedFolder(here.work))
    assert await key({"path": "./a//b/./x.txt"}) == {"folder": "a/b"}
    assert await key({"path": "new/x.txt"}) == {"folder": "new"}
    assert await key({"path": "x.txt", "to": "a/x.txt"}) == {"folder": ".", "to_folder": "a"}
    for path in ("../x", "relative-link/x", "/etc/x", ".git/x"):
        with pytest.raises(ToolError):
            await key({"path": path})


async def test_an_edit_changes_one_place_and_its_card_shows_the_old_and_the_new_text(hands, tmp_path):
    path = tmp_path / "lib.py"
    path.write_text("one = 1\ntwo = 2\n")
    shown = await hands.preview("file_edit", path="lib.py", old="two = 2", new="two = 3")
    assert shown == [("content of lib.py", "one = 1\ntwo = 2\n", "one = 1\ntwo = 3\n")]
    title = await hands.tools["file_edit"].title({"path": "lib.py", "old": "two = 2", "new": "two = 3"})
    assert title == "Change lib.py (1 line)"
    await hands.run_as_shown("file_edit", shown, path="lib.py", old="two = 2", new="two = 3")
    assert path.read_text() == "one = 1\ntwo = 3\n"


@pytest.mark.parametrize(
    ("old", "words"),
    [
        ("three", "is not in lib.py. Read the file again."),
        ("o", "is in lib.py 2 times. Give more of the lines around it."),
    ],
)
async def test_an_edit_that_is_not_clear_is_refused_in_words(hands, tmp_path, old, words):
    (tmp_path / "lib.py").write_text("one\ntwo\n")
    with pytest.raises(ToolError, match=words):
        await hands.preview("file_edit", path="lib.py", old=old, new="x")
    assert (tmp_path / "lib.py").read_text() == "one\ntwo\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("twin", "twin is a hard link; its other name may be outside."),
        ("docs", "docs is a folder."),
        ("large", "large has 1000001 bytes; at most 1000000 can be read."),
        ("binary", "binary can't be edited: it is binary."),
    ],
)
async def test_an_edit_of_what_is_no_text_file_says_what_it_is(hands, tmp_path, name, words):
    (tmp_path / "twin").hardlink_to(tmp_path / "docs" / "plan.md")
    (tmp_path / "large").write_text("x" * 1_000_001)
    (tmp_path / "binary").write_bytes(b"\0")
    with pytest.raises(ToolError) as refused:
        await hands.preview("file_edit", path=name, old="one", new="x")
    assert refused.value.message == words


async def test_an_edit_of_a_file_that_changed_since_it_was_shown_is_not_made(hands, tmp_path):
    (tmp_path / "lib.py").write_text("one\ntwo\n")
    shown = await hands.preview("file_edit", path="lib.py", old="two", new="three")
    (tmp_path / "lib.py").write_text("ONE\ntwo\n")
    with pytest.raises(ToolError):
        await hands.run_as_shown("file_edit", shown, path="lib.py", old="two", new="three")
    assert (tmp_path / "lib.py").read_text() == "ONE\ntwo\n"


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", ".git/config", "gone.txt"])
async def test_an_edit_stays_in_the_workspace(hands, path):
    with pytest.raises(ToolError):
        await hands.preview("file_edit", path=path, old="a", new="b")
