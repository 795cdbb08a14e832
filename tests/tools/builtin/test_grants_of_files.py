"""A grant for a folder, against paths that try to lead elsewhere: a real workspace, the tool's own key."""

import itertools
import os
import unicodedata
from pathlib import Path

import pytest

from bot.domain.digests import to_canonical_json
from bot.domain.similarity import GrantScope, Scope, list_grant_scopes
from bot.errors import ToolError
from bot.tools.builtin.files.tools import file_tools
from bot.tools.tool import Tool

CAFE = "caf\u00e9"
PARTS = (
    "docs", "Docs", "DOCS", "docs ", " docs", "docs.", "docs\u200b", "d\u043ecs", "\uff44ocs", "docs\\",
    "%64ocs",
    "..", ".", "", "...", "\u2024\u2024", "~", "inner", "out", "back", "link", "secret", "x\x00", "docs%2f..",
    CAFE, unicodedata.normalize("NFD", CAFE),
)  # fmt: skip
"""Names that are there, links, and spellings of them in another case, form or alphabet."""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """``docs`` is what is allowed; alongside it look-alikes, links into it, out of it and round about."""
    for name in ("docs/inner", "Docs", "DOCS", "docs.", "secret", "d\u043ecs", CAFE):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    for link, target in {
        "link": "docs", "docs/out": "../secret", "secret/back": "../docs", "docs/back": "../docs",
    }.items():  # fmt: skip
        (tmp_path / link).symlink_to(target)
    return tmp_path


@pytest.fixture
def write(workspace: Path) -> Tool:
    return next(tool for tool in file_tools(workspace).fixed if tool.name == "file_write")


def folder_behind(workspace: Path, path: str) -> Path:
    """Where the file would really be, links and all, as the operating system has it."""
    return Path(os.path.realpath((workspace / path).parent))


async def covered(scope: Scope, tool: Tool, path: str) -> bool:
    """As the gate asks: a call whose key cannot be told is not covered."""
    arguments = {"path": path, "content": "x"}
    try:
        like = await tool.find_likeness(arguments)
    except ToolError:
        return False
    return scope.covers(tool.name, tool.version, arguments, like)


@pytest.mark.slow
async def test_ten_thousand_hostile_spellings_of_a_folder_match_no_grant_for_it(
    workspace: Path, write: Tool
) -> None:
    folders = ["/".join(p) for n in (1, 2, 3) for p in itertools.product(PARTS, repeat=n)]
    paths = [f"{folder}/x.txt" for folder in folders][:10_000]
    paths += [prefix + path for path in paths[:700] for prefix in ("/", "./", str(workspace) + "/")]
    assert len(set(paths)) > 10_000
    scope = Scope("file_write", write.version, GrantScope.KEY, to_canonical_json({"folder": "docs"}))
    matched = [path for path in paths if await covered(scope, write, path)]

    wrong = [path for path in matched if folder_behind(workspace, path) != workspace / "docs" or ".." in path]
    assert wrong == []
    assert {"docs/x.txt", "./docs/x.txt", "docs//x.txt", "docs/./x.txt"} <= set(matched)


async def test_a_grant_by_folder_reaches_what_really_lies_below_it_and_nothing_else(
    workspace: Path, write: Tool
) -> None:
    like = await write.find_likeness({"path": "docs/x.txt", "content": "x"})
    rungs = dict(list_grant_scopes(write.name, write.version, {}, like))
    [scope] = (each for each in rungs if each.rung is GrantScope.PREFIX)
    assert rungs[scope] == "file_write anywhere below the folder docs"
    folders = ["/".join(p) for n in (1, 2, 3) for p in itertools.product(PARTS, repeat=n)]
    paths = [f"{folder}/x.txt" for folder in folders][:3000]
    for path in [path for path in paths if await covered(scope, write, path)]:
        behind = folder_behind(workspace, path)
        assert behind == workspace / "docs" or behind.is_relative_to(workspace / "docs"), path
    assert await covered(scope, write, "./docs//a/b/x.txt")
    assert not await covered(scope, write, "docsx/x.txt")
    root = await write.find_likeness({"path": "x.txt", "content": "x"})
    assert GrantScope.PREFIX not in {
        each.rung for each, _ in list_grant_scopes(write.name, write.version, {}, root)
    }


@pytest.mark.parametrize(
    "path",
    ["docs/inner/x", "docs/out/x", "link/x", "secret/back/x", "docs/../secret/x", "Docs/x", "docs/../docs/x"],
)
async def test_a_grant_for_a_folder_is_not_for_what_is_below_next_to_or_behind_a_link(
    write: Tool, path: str
) -> None:
    scope = Scope("file_write", write.version, GrantScope.KEY, to_canonical_json({"folder": "docs"}))
    assert not await covered(scope, write, path)


async def test_a_folder_swapped_for_a_link_after_the_grant_is_not_covered(
    workspace: Path, write: Tool
) -> None:
    scope = Scope("file_write", write.version, GrantScope.KEY, to_canonical_json({"folder": "docs/inner"}))
    assert await covered(scope, write, "docs/inner/x")
    (workspace / "docs/inner").rmdir()
    (workspace / "docs/inner").symlink_to("../secret")
    assert not await covered(scope, write, "docs/inner/x")


async def test_the_two_unicode_forms_of_a_name_are_two_folders(write: Tool) -> None:
    scope = Scope("file_write", write.version, GrantScope.KEY, to_canonical_json({"folder": CAFE}))
    assert await covered(scope, write, f"{CAFE}/x")
    assert not await covered(scope, write, f"{unicodedata.normalize('NFD', CAFE)}/x")
