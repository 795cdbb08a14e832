"""A sample of small random changes all over ``bot/``, tried one at a time: which of them do the tests notice?

``python -m tests.sample --seed 7 --count 24`` draws 24 by that seed: a comparison turned around, ``and`` for
``or``, a number off by one, a ``not`` dropped, a return that comes early. ``--fast`` (the default) asks the
selection of ``make fast``; ``--folder`` asks the tests of the folder that mirrors the changed module;
``--tests`` names others. ``--within bot/domain/policy.py`` draws from there alone, and ``--count 0`` takes
every change there is.

The changes are made in a copy of the checkout that is removed at the end. For each, those tests of the
selection that are in the module's folder run first, then the others, until one fails or the time is over.
"""

import argparse
import ast
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FAST = "not slow and not browser and not platform and not more and not lint"
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


def stages(change: Change, given: argparse.Namespace) -> list[list[str]]:
    """What pytest is asked, one after the other until a test fails.

    The files of the module's folder that are called like it or import it, then the others of the folder, then
    the rest.
    """
    if given.tests:
        return [given.tests]
    module = Path(change.file).with_suffix("")
    dotted = ".".join(module.parts).removesuffix(".__init__")
    name = dotted.rpartition(".")[2]
    folder = folder_of(change.file)
    beside = [ROOT / f"tests/test_{name}.py"] if module.parent == Path("bot") else []
    near = [
        path.relative_to(ROOT).as_posix()
        for path in [*filter(Path.exists, beside), *(ROOT / folder).rglob("test_*.py")]
        if name in path.stem or dotted in path.read_text()
    ]
    asked = [near] if near else []
    asked.append([folder, *(f"--ignore={each}" for each in near)])
    if given.folder:
        return asked
    asked.append(["-n", "auto", f"--ignore={folder}"])
    return [["-m", FAST, *arguments] for arguments in asked]


def folder_of(file: str) -> str:
    """The folder of tests that mirrors a module, or the nearest above it that has tests."""
    folder = Path(file).parent
    while folder != Path("bot"):
        mirrored = Path("tests", *folder.parts[1:])
        if any((ROOT / mirrored).glob("test_*.py")):
            return mirrored.as_posix()
        folder = folder.parent
    return "tests/cli"  # the modules at the top are what the command line starts


def failing(copy: Path, arguments: Sequence[str], within: float) -> str | None:
    """The first test that fails in the copy, or pytest's last line; None if all pass.

    Raises TimeoutExpired after so many seconds.
    """
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--tb=no", "-rfE"]
    with subprocess.Popen(  # noqa: S603 - pytest
        [*command, "-o", "timeout=90", *arguments],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy)},
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
    if process.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return None
    by = re.search(r"^(?:FAILED|ERROR) (.*?)( - .*)?$", said, re.MULTILINE)
    return by[1] if by else said.strip().splitlines()[-1]


def noticed(copy: Path, change: Change, given: argparse.Namespace, skipped: list[str]) -> str | None:
    """Make the change, ask the tests, take it back; the test that noticed, or None.

    A test that fails unchanged too has noticed nothing: it is skipped from then on.
    """
    path = copy / change.file
    source = path.read_bytes()
    for arguments in stages(change, given):
        while True:
            try:
                path.write_bytes(change.applied(source))
                asked = [*arguments, *(f"--deselect={each}" for each in skipped)]
                by = failing(copy, asked, given.seconds)
            finally:
                path.write_bytes(source)
            if by is None:
                break
            if "::" not in by or not failing(copy, [by], given.seconds):
                return by
            print(f"skipped, as it fails unchanged: {by}")  # noqa: T201
            skipped.append(by)
    return None


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
    """Try the sample; 1 if a change was not noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.sample")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=24, help="how many changes; 0 for all there are")
    parser.add_argument("--within", nargs="*", default=["bot/"], help="folders and files to draw from")
    parser.add_argument("--folder", action="store_true", help="ask the tests of the module's folder")
    parser.add_argument("--fast", action="store_false", dest="folder", help="ask those of `make fast`")
    parser.add_argument("--tests", nargs="*", help="ask these folders and files instead")
    parser.add_argument("--seconds", type=float, default=240, help="how long pytest may take for a change")
    given = parser.parse_args()
    sample = drawn(given.seed, given.count, given.within)
    found = 0
    skipped: list[str] = []
    with scratch() as copy:
        for change in sample:
            try:
                by = noticed(copy, change, given, skipped)
                word = f"noticed by {by}" if by else "NOT NOTICED"
                found += by is not None
            except subprocess.TimeoutExpired:
                word = f"NOT NOTICED in {given.seconds:.0f} s"
            print(f"{change.shown((copy / change.file).read_bytes())}\n    {word}", flush=True)  # noqa: T201
    print(f"{found} of {len(sample)} changes noticed")  # noqa: T201
    return 0 if found == len(sample) else 1


if __name__ == "__main__":
    sys.exit(main())
