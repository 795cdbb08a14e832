"""A sample of small random changes all over ``bot/``, tried one at a time: which of them do the tests notice?

``python -m tests.sample --seed 7 --count 24`` draws 24 by that seed: a comparison turned around, ``and`` for
``or``, a number off by one, a ``not`` dropped, a return that comes early. ``--fast`` (the default) asks the
selection of ``make fast``; ``--folder`` asks the tests of the folder that mirrors the changed module;
``--tests`` names others. ``--within bot/domain/policy.py`` draws from there alone, and ``--count 0`` takes
every change there is.

The changes are made in a copy of the checkout that is removed at the end. There the tests run once unchanged,
while coverage notes which of them reach which line; what fails then is not asked. For each change those run
that reach its lines, the quickest first, until one fails or the time is over (``--seconds``); with
``--folder`` the others of the folder follow, since what a child process runs is reached unseen.
"""

import argparse
import ast
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from coverage import Coverage, CoverageData

ROOT = Path(__file__).parent.parent
FAST = "not slow and not browser and not platform"
KINDS = ("comparison", "and/or", "number", "not", "return")
_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_LEFT_OUT = ("bot/store/migrations/versions/", "bot/testing/")  # history, and what is itself a test


@dataclass(frozen=True)
class Change:
    """One small change: a piece of a file, and what stands there instead."""

    file: str  # from the root of the checkout
    kind: str
    lines: range  # of its statement; the first of a file is 1
    begin: int  # in the bytes of the file
    end: int
    text: str

    def applied(self, source: bytes) -> bytes:
        return source[: self.begin] + self.text.encode() + source[self.end :]

    def shown(self, source: bytes) -> str:
        """``file:line: kind: before -> after``."""
        was = " ".join(source[self.begin : self.end].decode().split())
        return f"{self.file}:{self.lines[0]}: {self.kind}: {was[:90]} -> {self.text[:90]}"


def changes(file: str, source: bytes) -> Iterator[Change]:
    """Every change that could be made in a file."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def begin(node: ast.stmt | ast.expr) -> int:
        return starts[node.lineno - 1] + node.col_offset

    def end(node: ast.stmt | ast.expr) -> int:
        return starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)

    for statement in ast.walk(ast.parse(source)):
        if isinstance(statement, ast.stmt) and not _starts_a_script(statement):
            own = list(_own(statement))
            lines = range(statement.lineno, max([statement.lineno, *(n.end_lineno or 0 for n in own)]) + 1)
            for node in own:
                for kind, text in _replaced(node):
                    yield Change(file, kind, lines, begin(node), end(node), text)
            for early in _returning_early(statement):
                lines = range(early.lineno, early.lineno + 1)
                yield Change(file, "return", lines, begin(early), end(early), "return")


def _starts_a_script(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)


def _own(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement, but for those of statements in it, types, and text with values in it.

    Those in such text have no places of their own in Python 3.11.
    """
    typed = (getattr(statement, "annotation", None), getattr(statement, "returns", None))
    rest: list[ast.AST] = [child for child in ast.iter_child_nodes(statement) if child not in typed]
    while rest:
        node = rest.pop()
        if not isinstance(node, ast.stmt | ast.JoinedStr | ast.arg | ast.pattern):
            rest += ast.iter_child_nodes(node)
            if isinstance(node, ast.expr):
                yield node


def _replaced(node: ast.expr) -> Iterator[tuple[str, str]]:
    """What could stand there instead, with its kind."""
    match node:
        case ast.Compare(ops=[op]):
            turned = ast.Compare(node.left, [_COMPARED[type(op)]()], node.comparators)
            yield "comparison", ast.unparse(turned)
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "and/or", ast.unparse(ast.BoolOp(other, node.values))
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            yield "number", str(number + 1)
        case ast.UnaryOp(op=ast.Not()):
            yield "not", f"({ast.unparse(node.operand)})"


def _returning_early(function: ast.stmt) -> Iterator[ast.stmt]:
    """The statements of a function that a return could replace."""
    if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        for statement in function.body:
            is_text = isinstance(getattr(statement, "value", None), ast.Constant)  # ... as well
            decorated = getattr(statement, "decorator_list", None)
            if (
                not is_text
                and not decorated
                and not isinstance(statement, ast.Pass | ast.Global | ast.Nonlocal)
            ):
                yield statement


def drawn(seed: int, count: int, within: Sequence[str]) -> list[Change]:
    """So many changes by a seed, as many of each kind as of any other; all there are for 0."""
    found: dict[str, list[Change]] = defaultdict(list)
    for path in sorted((ROOT / "bot").rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        if file.startswith(tuple(within)) and not file.startswith(_LEFT_OUT):
            for change in changes(file, path.read_bytes()):
                found[change.kind].append(change)
    if not count:
        return [change for kind in KINDS for change in found[kind]]
    by = random.Random(seed)
    return [by.choice(found[by.choice([kind for kind in KINDS if found[kind]])]) for _ in range(count)]


def _selected(change: Change, given: argparse.Namespace) -> tuple[str, ...]:
    """The tests to ask, as arguments of pytest."""
    if given.tests:
        return tuple(given.tests)
    return (folder_of(change.file),) if given.folder else ("-m", FAST)


def folder_of(file: str) -> str:
    """The folder of tests that mirrors a module, or the nearest above it that has tests."""
    folder = Path(file).parent
    while folder != Path("bot"):
        mirrored = Path("tests", *folder.parts[1:])
        if any((ROOT / mirrored).glob("test_*.py")):
            return mirrored.as_posix()
        folder = folder.parent
    return "tests/cli"  # the modules at the top are what the command line starts


class Noting:
    """A pytest plugin: notes which lines each test reaches, how long it takes and whether it passes."""

    def __init__(self, folder: Path, files: Sequence[str]) -> None:
        self._folder = folder
        self._watch = Coverage(str(folder / f"{os.getpid()}.reached"), include=files, config_file=False)
        self._seconds: Counter[str] = Counter()
        self._failed: set[str] = set()
        self._watch.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._watch.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        if report.failed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self._watch.stop()
        self._watch.save()
        told = {"seconds": self._seconds, "failed": sorted(self._failed)}
        (self._folder / f"{os.getpid()}.json").write_text(json.dumps(told))


class Choosing:
    """A pytest plugin: of what was collected only these tests, in this order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._place = {test: number for number, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._place]
        items.sort(key=lambda item: self._place[item.nodeid])


def pytest_configure(config: pytest.Config) -> None:
    """Both plugins, where the environment asks for them: this module is a plugin of the runs it starts."""
    does_tests = "PYTEST_XDIST_WORKER" in os.environ or not config.option.numprocesses
    if does_tests and (folder := os.environ.get("NOD_SAMPLE_NOTES")):
        config.pluginmanager.register(Noting(Path(folder), os.environ["NOD_SAMPLE_FILES"].split()))
    if tests := os.environ.get("NOD_SAMPLE_TESTS"):
        config.pluginmanager.register(Choosing(json.loads(Path(tests).read_text())))


@dataclass(frozen=True)
class Selection:
    """Some of the tests, as arguments of pytest; which of them reach what, and those that fail anyway."""

    copy: Path
    arguments: tuple[str, ...]
    seconds: dict[str, float]
    failed: tuple[str, ...]
    reached: dict[str, dict[int, list[str]]]  # by file and line

    @classmethod
    def look(cls, copy: Path, arguments: tuple[str, ...], files: Collection[str]) -> "Selection":
        """Run them as they are, and look at what they reach of these files."""
        with tempfile.TemporaryDirectory(prefix="nod-sample-") as folder:
            _pytest(
                copy, ["-n", "auto", *arguments], NOD_SAMPLE_NOTES=folder, NOD_SAMPLE_FILES=" ".join(files)
            )
            told = [json.loads(path.read_text()) for path in Path(folder).glob("*.json")]
            reached: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
            for path in Path(folder).glob("*.reached"):
                data = CoverageData(str(path))
                data.read()
                for file in data.measured_files():
                    for line, tests in data.contexts_by_lineno(file).items():
                        reached[Path(file).relative_to(copy).as_posix()][line] += filter(None, tests)
        seconds = {test: took for each in told for test, took in each["seconds"].items()}
        return cls(
            copy, arguments, seconds, tuple(test for each in told for test in each["failed"]), dict(reached)
        )

    def asked(self, change: Change, *, others: bool) -> list[str]:
        """The tests that could notice: those that reach its lines, else its file, the quickest first."""
        lines = self.reached.get(change.file, {})
        found = {test for line in change.lines for test in lines.get(line, ())}
        found = found or {test for tests in lines.values() for test in tests}
        quickest = sorted(self.seconds, key=self.seconds.__getitem__)
        chosen = [test for test in quickest if test in found]
        if others:
            chosen += [test for test in quickest if test not in found]
        return [test for test in chosen if test not in self.failed]


def _pytest(
    copy: Path, arguments: Sequence[str], within: float | None = None, **more: str
) -> tuple[int, str]:
    """Run pytest in the copy; its exit code, and what it said at the end. Raises TimeoutExpired."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NOD_SAMPLE")}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.sample",
        "-p",
        "no:cacheprovider",
        "--tb=no",
        "-rfE",
    ]
    with subprocess.Popen(  # noqa: S603 - pytest
        [*command, "-o", "timeout=90", *arguments],
        cwd=copy,
        env=inherited | {"PYTHONPATH": str(copy)} | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=within)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, said


def noticed(selection: Selection, change: Change, *, others: bool, within: float) -> tuple[bool, str]:
    """Make the change, ask the tests, take it back; whether they noticed, and what did or did not."""
    tests = selection.asked(change, others=others)
    if not tests:
        return False, "no test reaches it"
    path = selection.copy / change.file
    source = path.read_bytes()
    list_of_tests = selection.copy / "chosen.json"
    list_of_tests.write_text(json.dumps(tests))
    files = sorted({test.partition("::")[0] for test in tests})
    try:
        path.write_bytes(change.applied(source))
        code, said = _pytest(
            selection.copy, ["-n", "0", "-x", *files], within, NOD_SAMPLE_TESTS=str(list_of_tests)
        )
    except subprocess.TimeoutExpired:
        return False, f"not in {within:.0f} s, of {len(tests)} tests"
    finally:
        path.write_bytes(source)
    if code == pytest.ExitCode.OK:
        return False, f"{len(tests)} tests passed"
    by = re.search(r"^(?:FAILED|ERROR) (.*?)( - .*)?$", said, re.MULTILINE)
    return True, by[1] if by else said.strip().splitlines()[-1]


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A copy of the checkout, with what is not committed; it is gone afterwards."""
    git = shutil.which("git") or "git"
    listed = subprocess.run(  # noqa: S603 - git
        [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    with tempfile.TemporaryDirectory(prefix="nod-sample-") as folder:
        copy = Path(folder).resolve() / "checkout"
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, copy / name)
        yield copy


def main() -> int:
    """Try the sample; 1 if a change was not noticed, 2 if a selection has no tests."""
    parser = argparse.ArgumentParser(prog="python -m tests.sample")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=24, help="how many changes; 0 for all there are")
    parser.add_argument("--within", nargs="*", default=["bot/"], help="folders and files to draw from")
    parser.add_argument("--folder", action="store_true", help="ask the tests of the module's folder")
    parser.add_argument("--fast", action="store_false", dest="folder", help="ask those of `make fast`")
    parser.add_argument("--tests", nargs="*", help="ask these folders and files instead")
    parser.add_argument("--seconds", type=float, default=240, help="how long they may take for each change")
    given = parser.parse_args()
    sample = drawn(given.seed, given.count, given.within)
    files = {change.file for change in sample}
    selections: dict[tuple[str, ...], Selection] = {}
    missed = 0
    with scratch() as copy:
        for change in sorted(sample, key=lambda change: _selected(change, given)):
            asked = _selected(change, given)
            if asked not in selections:
                selections[asked] = Selection.look(copy, asked, files)
                if failed := selections[asked].failed:
                    print(f"{asked[-1]}: not asked, as they fail unchanged: {', '.join(failed)}")  # noqa: T201
                if not selections[asked].seconds:
                    return 2
            found, by = noticed(selections[asked], change, others=given.folder, within=given.seconds)
            missed += not found
            word = "noticed by" if found else "NOT NOTICED:"
            print(f"{change.shown((copy / change.file).read_bytes())}\n    {word} {by}", flush=True)  # noqa: T201
    print(f"{len(sample) - missed} of {len(sample)} changes noticed")  # noqa: T201
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
