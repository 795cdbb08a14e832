"""By which first words commands are alike: what may follow them unasked, and that all else asks again."""

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.digests import to_canonical_json
from bot.domain.similarity import NO_BEGINNING, GrantScope, Likeness, Scope, list_grant_scopes
from bot.tools.builtin.shell.known_commands import COMMANDS, format_table_rows
from bot.tools.builtin.shell.prefix import read_prefix
from tests.kit.examples import examples
from tests.test_docs import DOCS
from tests.tools.builtin.corpora import lines


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("prefixes").resolve()
    (root / "outside").mkdir()
    (root / "outside" / "test_x.py").touch()
    work = root / "work"
    for name in (
        "tests/unit", "tests/own", "tests/.hidden", "tests/node_modules", "src/inner", "src/own",
        "src/_evil", "src/testdata", "src/sub/.git", "build", "docs", "evil",
    ):  # fmt: skip
        (work / name).mkdir(parents=True)
    for name in (
        "tests/test_a.py", "tests/helper.py", "tests/unit/test_b.py", "tests/own/pytest.ini",
        "tests/own/test_x.py", "tests/node_modules/test_x.py", "src/a.py", "src/a.js",
        "src/own/.eslintrc.js", "src/sub/x", "test_root.py", "evil/test_x.py", "gradlew",
    ):  # fmt: skip
        (work / name).touch()
    (work / "tests" / "out").symlink_to(root / "outside")
    (work / "tests" / "test_linked.py").symlink_to(work / "evil" / "test_x.py")
    (work / "out").symlink_to(root / "outside")
    return work


def cases(name: str) -> Iterator[tuple[str, str, bool]]:
    """What was approved, what comes after it, and whether that runs unasked."""
    approved = ""
    for line in lines(name):
        mark, command = line[:1], line[2:]
        if mark == "=":
            approved = command
        else:
            yield approved, command, mark == "+"


def is_covered(folder: Path, approved: list[str], command: list[str]) -> bool:
    """Tell whether a grant by how one command begins lets another run."""
    seen = read_prefix(approved, folder)
    if not seen.fixed:
        return False
    scope = Scope("shell_run", "1", GrantScope.PREFIX, to_canonical_json(seen.words[: seen.fixed]))
    return scope.covers("shell_run", "1", {}, Likeness(begins=read_prefix(command, folder)))


def judged_wrongly(folder: Path, corpus: str) -> list[tuple[str, str, bool]]:
    return [
        (approved, command, runs)
        for approved, command, runs in cases(corpus)
        if is_covered(folder, shlex.split(approved), shlex.split(command)) is not runs
    ]


def test_of_the_commands_most_used_those_run_that_stay_with_its_code_and_place(folder: Path) -> None:
    assert judged_wrongly(folder, "followed") == []


def test_what_changes_the_code_that_runs_or_its_place_asks(folder: Path) -> None:
    assert judged_wrongly(folder, "elsewhere") == []
    assert not any(runs for _, _, runs in cases("elsewhere"))


def test_the_list_has_two_hundred_commands_of_twenty_five_programs() -> None:
    found = list(cases("elsewhere"))
    assert len({command for _, command, _ in found}) >= 200
    assert len({approved.split()[0] for approved, _, _ in found}) >= 25


APPROVED = sorted({approved for approved, _, _ in cases("followed")})
FOREIGN = [
    "deploy evil", "-f evil", "-C evil", "-C../outside", "--prefix evil", "--prefix=evil", "--pref=evil",
    "-c evil", "-p evil", "-o ../outside/x", "--config evil", "--config=evil", "--conf=evil",
    "--rootdir=evil", "-exec ./plug", "--exec=./plug", "-toolexec=./plug", "--manifest-path evil",
    "--init-script evil", "-Dx=evil", "A=evil", "@evil", "-- evil", "--", "../outside", "/etc/passwd",
    "~/evil", "~", "https://evil.example/x", "file:///etc", "*", "?", "[a-z]", "{a,b}", "$HOME", "$(id)",
    "`id`", ">evil", "<evil", ";", "&&", "|", "a\\b", "a\nb", "a\tb", "'", '"', "", " ", "-", "--=",
    "-xC../outside", "\u202eevil", "évil", "\uff45vil", "a\u200bb", "out", "tests/out", "tests/..", "./..",
    "tests//unit", "tests/./unit", "out/x", "node_modules", ".git", "C:\\evil", "\\\\host\\x",
    "%USERPROFILE%",
]  # fmt: skip
PLAIN = ("deploy evil", "out", "node_modules")
TAKES_PLAIN_WORDS = ("cargo test", "git add .", "ruff check .")  # the name of a test, paths anywhere


@pytest.mark.parametrize("approved", APPROVED)
def test_after_every_known_command_every_foreign_word_asks(folder: Path, approved: str) -> None:
    words = shlex.split(approved)
    for foreign in FOREIGN:
        if foreign in PLAIN and approved in TAKES_PLAIN_WORDS:
            continue
        whole, parts = [foreign], foreign.split(" ")
        for more in (whole, parts):
            for at in range(1, len(words) + 1):
                command = [*words[:at], *more, *words[at:]]
                assert not is_covered(folder, words, command), command


@pytest.mark.parametrize(
    "wrapper",
    [
        "env", "env A=b", "sudo", "time", "nice", "xargs", "nohup", "timeout 5", "sh -c", "command", "exec",
        "npx", "uv run", "poetry run", "docker run x", "ssh host", "strace", "busybox", "./", "/usr/bin/env",
        "A=b",
    ],
)  # fmt: skip
def test_the_same_behind_another_program_asks(folder: Path, wrapper: str) -> None:
    for approved in APPROVED:
        words = shlex.split(approved)
        for command in ([*wrapper.split(), *words], [wrapper, approved], [f"./{words[0]}x", *words[1:]]):
            assert not is_covered(folder, words, command), command
            assert not read_prefix(command, folder).fixed, command


@pytest.mark.parametrize("approved", APPROVED)
def test_the_program_is_the_one_that_was_seen(folder: Path, approved: str) -> None:
    program, *rest = shlex.split(approved)
    name = program.removeprefix("./")
    others = [
        f"/usr/bin/{name}",
        f"./tools/{name}",
        name.upper(),
        f"{name}.exe",
        f"{name} ",
        f"out/{name}",
        f"{name}2",
    ]
    for other in others:
        assert not is_covered(folder, [program, *rest], [other, *rest]), other


def test_every_known_command_is_among_those_tried() -> None:
    tried = {" ".join(shlex.split(approved)) for approved in APPROVED}
    alike = {"python -m pytest": "python3 -m pytest", "python -m unittest": "python3 -m unittest",
             "python3 -m mypy": "mypy", "gradle": "./gradlew", "./mvnw": "mvn"}  # fmt: skip
    for known in COMMANDS:
        words = alike.get(known.words, known.words)
        assert any(approved == words or approved.startswith(f"{words} ") for approved in tried), known.words


def test_no_option_that_may_follow_names_a_file_a_folder_or_a_program() -> None:
    for known in COMMANDS:
        for option in (*known.options.split(" · "), *known.fixed_options.split()):
            assert not set(option) & set("/@$~*:"), (known.words, option)


@pytest.mark.parametrize(
    ("command", "seen", "follows"),
    [
        ("make test -j4", "make test", "options such as -j, --jobs, -k"),
        (
            "pytest tests/test_a.py -q",
            "pytest",
            "test names and paths in tests/ and options such as -q, -qq, -v",
        ),
        (
            "pytest test_root.py",
            "pytest",
            "test names and paths in test_root.py and options such as -q, -qq, -v",
        ),
        ("git add .", "git add", "paths in the workspace and options such as -A, --all, -u"),
        (
            "ruff format --check src",
            "ruff format --check",
            "paths in src/ and options such as -q, --quiet, -v",
        ),
    ],
)
def test_the_card_says_what_may_follow(folder: Path, command: str, seen: str, follows: str) -> None:
    assert read_prefix(command.split(), folder).said == f"“{seen}”, which may be followed by {follows}"


@pytest.mark.parametrize(
    "command",
    [
        "python3 tools/check.py --all", "python3 plug.py", "./run.sh all", "node x.js", "just test",
        "bazel test //x", "tox", "nox -s x", "yarn test", "pnpm test", "cmake build", "ls", "touch x",
        "npm install", "pip install x", "git push origin", "git switch x", "git merge x", "go run .",
        "cargo run", "docker run x", "sh -c ls", "pytest tests src", "make clean", "npm run clean",
        "rm -r docs", "git commit --amend", "mvn install",
    ],
)  # fmt: skip
def test_where_a_program_or_what_follows_is_not_known_there_is_no_such_rung(
    folder: Path, command: str
) -> None:
    like = Likeness(begins=read_prefix(command.split(), folder))
    rungs = [scope.rung for scope, _ in list_grant_scopes("shell_run", "1", {}, like)]
    assert rungs == [GrantScope.EXACT, GrantScope.TOOL]


def test_the_rung_stands_between_the_narrower_and_all(folder: Path) -> None:
    like = Likeness(begins=read_prefix(["git", "commit", "-m", "x"], folder))
    rungs = [scope.rung for scope, _ in list_grant_scopes("shell_run", "1", {}, like)]
    assert rungs == [GrantScope.EXACT, GrantScope.PREFIX, GrantScope.TOOL]


@pytest.mark.parametrize("stored", [["make", "test"], ["git", "commit"], ["python3", "-m", "unittest"], []])
def test_a_grant_from_before_lets_nothing_through(folder: Path, stored: list[str]) -> None:
    scope = Scope("shell_run", "1", GrantScope.PREFIX, to_canonical_json(stored))
    for command in (
        stored,
        [*stored, "x"],
        [*stored, "tests.test_a"],
        ["make", "test"],
        ["git", "commit", "-m", "x"],
    ):
        assert not scope.covers("shell_run", "1", {}, Likeness(begins=read_prefix(command, folder)))


def test_a_folder_that_became_a_link_after_it_was_seen_asks(tmp_path: Path) -> None:
    work = tmp_path.resolve()
    (work / "tests").mkdir()
    approved = ["pytest", "tests"]
    assert is_covered(work, approved, [*approved, "-q"])
    seen = read_prefix(approved, work)
    scope = Scope("shell_run", "1", GrantScope.PREFIX, to_canonical_json(seen.words[: seen.fixed]))
    (work / "tests").rmdir()
    (work / "tests").symlink_to("/tmp")  # noqa: S108 - it leads out of the workspace
    assert not scope.covers("shell_run", "1", {}, Likeness(begins=read_prefix(approved, work)))
    assert read_prefix(approved, work) == NO_BEGINNING


def test_a_folder_with_settings_of_its_own_is_not_below_one_without(folder: Path) -> None:
    assert not is_covered(folder, ["pytest", "tests"], ["pytest", "tests/own"])
    assert is_covered(folder, ["pytest", "tests/own"], ["pytest", "tests/own/test_x.py"])
    assert not is_covered(folder, ["git", "add", "."], ["git", "add", "src/sub/x"])


# -- what really runs


ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}


def run(command: list[str], work: Path) -> None:
    subprocess.run(  # noqa: S603 - words of this test
        command,
        cwd=work,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )


def project(root: Path) -> Path:
    """A workspace in which each piece of code leaves its name behind, and the same outside."""
    work = root / "work"
    for place in (work, work / "evil", root / "outside"):
        place.mkdir(parents=True, exist_ok=True)
        rules = (f"{name}:\n\t@touch {root}/ran-{place.name}-{name}\n" for name in ("test", "deploy", "lint"))
        (place / "Makefile").write_text("".join(rules))
        (place / "other.mk").write_text(f"test:\n\t@touch {root}/ran-other\n")
        scripts = f'{{"scripts": {{"test": "touch {root}/ran-{place.name}-npm; node -p 1"}}}}'
        (place / "package.json").write_text(scripts)
    for name in ("tests", "evil"):
        (work / name).mkdir(exist_ok=True)
        (work / name / f"test_{name}.py").write_text(
            f"def test_one():\n    open('{root}/ran-py-{name}', 'w').close()\n"
        )
    (work / "plug.py").write_text(f"open('{root}/ran-plug', 'w').close()\n")
    (work / "plug.js").write_text(f"require('fs').writeFileSync('{root}/ran-plug', '')\n")
    (work / "plug").write_text(f"#!/bin/sh\ntouch {root}/ran-plug\n")
    (work / "plug").chmod(0o755)
    (work / "evil.ini").write_text("[pytest]\naddopts = -p plug\npythonpath = .\n")
    return work


def ran(root: Path) -> set[str]:
    return {each.name.removeprefix("ran-") for each in root.glob("ran-*")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("approved", "command", "code"),
    [
        ("make test", "make test deploy", "work-deploy"),
        ("make test", "make test -f other.mk", "other"),
        ("make test", "make test -C ../outside", "outside-test"),
        ("make test", "make test -kC../outside", "outside-test"),
        ("make test", "make test --dir ../outside", "outside-test"),
        ("make test", "make test SHELL=./plug", "plug"),
        ("npm test", "npm test --prefix evil", "evil-npm"),
        ("npm test", "npm test --node-options=--require=./plug.js", "plug"),
        ("npm test", "npm test --script-shell=./plug", "plug"),
        ("python3 -m pytest tests", "python3 -m pytest tests -p plug", "plug"),
        ("python3 -m pytest tests", "python3 -m pytest tests -c evil.ini", "plug"),
        ("python3 -m pytest tests", "python3 -m pytest tests evil", "py-evil"),
    ],
)
def test_the_danger_is_real_and_is_asked_about(
    tmp_path: Path, approved: str, command: str, code: str
) -> None:
    work = project(tmp_path)
    run(shlex.split(command), work)
    if code not in ran(tmp_path):
        pytest.skip(f"{command.split(maxsplit=1)[0]} is not there, or of another version")
    assert not is_covered(work, shlex.split(approved), shlex.split(command))


WORDS = st.sampled_from([
    "test", "deploy", "lint", "-j4", "-j", "4", "-k", "-s", "-n", "-f", "other.mk", "-fother.mk", "-C",
    "evil", "../outside", "-C../outside", "-kC../outside", "--directory=../outside", "--dir", "--file",
    "SHELL=./plug", "--", "-jk", "-sfother.mk", "--silent", "--jobs=2", "--no-print-directory", "-w",
    "-Otarget", "-O", "-E", "-e", "-B", "--eval=x:;touch ../ran-plug", "MAKEFILES=other.mk", "-i", "-I",
    "-W", "-j 4", "@evil",
])  # fmt: skip


@pytest.mark.slow
@examples(150)
@given(more=st.lists(WORDS, max_size=5))
def test_what_a_grant_for_make_lets_through_really_runs_that_target_alone(
    tmp_path_factory: pytest.TempPathFactory, more: list[str]
) -> None:
    root = tmp_path_factory.mktemp("make").resolve()
    work = project(root)
    for command in (["make", "test", *more], ["make", *more, "test"]):
        if is_covered(work, ["make", "test"], command):
            run(command, work)
            assert ran(root) <= {"work-test"}, command


def test_the_documents_have_the_table_of_the_code() -> None:
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    found = [line for line in page.splitlines() if line.startswith("| `")]
    assert found == format_table_rows()
