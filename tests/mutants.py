"""Mutation testing: the gate, deciding and the policy changed one place at a time, and which test noticed.

``python -m tests.mutants 'bot.domain.policy*'`` (``make mutation``) tries the mutants of those names, or all
of them. mutmut makes them; pyproject.toml says of which modules, and which tests are asked. Those run once,
unchanged, and coverage notes which lines each of them reaches. Then each mutant gets a fork of that process,
which runs the tests that reach the changed lines until one fails: first those that noticed a mutant nearby,
then what is fast and reaches what few do. A test that does not reach a line can't notice a change in it.

``--most N`` asks no more than N tests for each, ``--sample N`` tries N mutants, the same each time. What came
of each is in ``build/mutants.txt``: the test that noticed it, or that it survived.
"""

import argparse
import ast
import difflib
import fnmatch
import gc
import os
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from itertools import pairwise
from pathlib import Path

import pytest
from coverage import Coverage
from mutmut.configuration import config
from mutmut.mutation.file_mutation import MutatedFile, mutate_file_contents

RESULTS = Path("build/mutants.txt")


@dataclass(frozen=True, eq=False)
class Source:
    """A module with all its mutants in one file; ``MUTANT_UNDER_TEST`` names the one that is called."""

    module: str
    path: Path
    mutated: MutatedFile
    statements: Sequence[ast.stmt]

    @classmethod
    def make(cls, source: str, folder: Path) -> "Source":
        mutated = mutate_file_contents(source, Path(source).read_text(encoding="utf-8"))
        module = source.removesuffix(".py").replace("/", ".")
        path = folder / f"{module}.py"
        path.write_text(mutated.code, encoding="utf-8")
        statements = [node for node in ast.walk(ast.parse(mutated.code)) if isinstance(node, ast.stmt)]
        return cls(module, path, mutated, statements)

    def mutants(self) -> "list[Mutant]":
        return [Mutant(self, *name.split("__mutmut_")) for name in self.mutated.mutant_names]

    def place(self, function: str, number: str = "orig") -> range:
        """The lines of a function, or of a mutant of it; the file's first line is 1."""
        span = self.mutated.line_span_by_function_name[f"{function}__mutmut_{number}"]
        return range(span.start, span.end + 1)


@dataclass(frozen=True)
class Mutant:
    source: Source
    function: str
    number: str

    @property
    def name(self) -> str:
        return f"{self.source.module}.{self.function}__mutmut_{self.number}"

    def _text(self, number: str) -> list[str]:
        place = self.source.place(self.function, number)
        lines = self.source.mutated.code.splitlines()[place.start - 1 : place.stop - 1]
        return [line.replace(f"__mutmut_{number}(", "(") for line in lines]

    def shown(self) -> str:
        """What it takes out and puts in, as lines with - and +."""
        lines = list(difflib.unified_diff(self._text("orig"), self._text(self.number), lineterm="", n=0))[2:]
        return "\n".join(line for line in lines if not line.startswith("@@"))

    def lines(self) -> set[int]:
        """Those of the statements that it changes; all of the function where its parameters changed."""
        whole = self.source.place(self.function)
        compared = difflib.SequenceMatcher(None, self._text("orig"), self._text(self.number), autojunk=False)
        found: set[int] = set()
        for tag, first, last, _, _ in compared.get_opcodes():
            if tag != "equal":
                for line in whole[first : max(last, first + 1)]:
                    found |= set(self._around(line, whole))
        return found

    def _around(self, line: int, whole: range) -> range:
        within = [
            s for s in self.source.statements if s.lineno in whole and s.lineno <= line <= (s.end_lineno or 0)
        ]
        closest = max(within, key=lambda statement: statement.lineno, default=None)
        if closest is None or isinstance(closest, ast.FunctionDef | ast.AsyncFunctionDef):
            return whole
        body = getattr(closest, "body", None)
        last = body[0].lineno - 1 if body else closest.end_lineno or 0
        return range(closest.lineno, max(last, closest.lineno) + 1)


class Mutated(MetaPathFinder):
    """Finds the modules that have mutants where those are."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._paths = {source.module: source.path for source in sources}

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        found = self._paths.get(fullname)
        return spec_from_file_location(fullname, found) if found else None


class Trial:
    """A pytest plugin: runs the tests once as they are, then for each mutant those that could notice it."""

    def __init__(
        self,
        sources: Sequence[Source],
        mutants: Sequence[Mutant],
        folder: Path,
        most: int | None,
        children: int,
    ) -> None:
        self._sources = sources
        self._mutants = mutants
        self._folder = folder
        self._most = most
        self._children = children
        self._seconds: Counter[str] = Counter()
        self._failed: list[str] = []
        self._noticed: dict[tuple[Source, str], Counter[str]] = defaultdict(Counter)
        self._rarest: dict[tuple[Source, str], dict[str, int]] = {}
        self._reached: dict[tuple[Path, int], set[str]] = {}
        self.results: dict[str, str] = {}  # the test that noticed, or how it survived

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        if report.failed:
            self._failed.append(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._look(session.items)
        if self._failed:
            pytest.exit(f"These fail without a mutant: {', '.join(self._failed)}", returncode=1)
        gc.freeze()
        running: dict[int, Mutant] = {}
        for mutant in self._mutants:
            if len(running) == self._children:
                self._take_in(running)
            if items := self._who_could(mutant, session.items):
                running[self._fork(mutant, items)] = mutant
            else:
                self._keep(mutant, "survived: no test reaches it")
        while running:
            self._take_in(running)
        return True

    def _look(self, items: Sequence[pytest.Item]) -> None:
        """Run all tests without a mutant, to see how long each takes and what it reaches."""
        paths = [str(source.path) for source in self._sources]
        watch = Coverage(data_file=None, include=paths, config_file=False)
        watch.start()
        for item, following in pairwise([*items, None]):
            watch.switch_context(item.nodeid)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        watch.stop()
        for source in self._sources:
            for line, tests in watch.get_data().contexts_by_lineno(str(source.path)).items():
                self._reached[source.path, line] = set(tests)

    def _who_could(self, mutant: Mutant, items: Sequence[pytest.Item]) -> list[pytest.Item]:
        reached = set().union(*(self._tests_at(mutant.source, line) for line in mutant.lines()))
        noticed, few = self._noticed[mutant.source, mutant.function], self._few_at(mutant)
        able = [item for item in items if item.nodeid in reached]
        able.sort(key=lambda item: (-noticed[item.nodeid], few[item.nodeid] * self._seconds[item.nodeid]))
        return able[: self._most]

    def _tests_at(self, source: Source, line: int) -> set[str]:
        return self._reached.get((source.path, line), set())

    def _few_at(self, mutant: Mutant) -> dict[str, int]:
        """How many tests reach the least reached line of its function that a test reaches, by test."""
        key = (mutant.source, mutant.function)
        if key not in self._rarest:
            self._rarest[key] = few = defaultdict(lambda: len(self._seconds))
            for tests in (
                self._tests_at(mutant.source, line) for line in mutant.source.place(mutant.function)
            ):
                few.update({test: min(few[test], len(tests)) for test in tests})
        return self._rarest[key]

    def _fork(self, mutant: Mutant, items: Sequence[pytest.Item]) -> int:
        child = os.fork()
        if child:
            return child
        try:
            os.environ["MUTANT_UNDER_TEST"] = mutant.name
            items[0].config.pluginmanager.unregister(name="terminalreporter")
            for item, following in pairwise([*items, None]):
                result = item.nodeid
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self._failed:
                    break
            else:
                result = f"survived: {len(items)} tests"
            (self._folder / mutant.name).write_text(result, encoding="utf-8")
        finally:
            os._exit(0)

    def _take_in(self, running: dict[int, Mutant]) -> None:
        mutant = running.pop(os.wait()[0])
        file = self._folder / mutant.name
        result = file.read_text(encoding="utf-8") if file.exists() else "the tests ended early"
        if not result.startswith("survived"):
            self._noticed[mutant.source, mutant.function][result] += 1
        self._keep(mutant, result)

    def _keep(self, mutant: Mutant, result: str) -> None:
        self.results[mutant.name] = result
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(f"{mutant.name} {result}\n")
        if result.startswith("survived"):
            print(f"{mutant.name}: {result}\n{mutant.shown()}\n", flush=True)  # noqa: T201


def _named(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def main() -> int:
    """Try what the arguments name; 1 if a mutant survived, 2 if the tests fail without one."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("names", nargs="*", default=["*"], help="mutants by name; * stands for anything")
    parser.add_argument(
        "--sample", type=int, default=sys.maxsize, help="try so many of them, the same each time"
    )
    parser.add_argument("--most", type=int, help="ask no more than so many tests for each")
    parser.add_argument("--children", type=int, default=os.cpu_count())
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sources = [Source.make(source, Path(folder)) for source in config().only_mutate]
        sys.meta_path.insert(0, Mutated(sources))
        mutants = [each for source in sources for each in source.mutants() if _named(each.name, given.names)]
        random.Random(0).shuffle(mutants)  # what is done when someone stops it is a fair part
        del mutants[given.sample :]
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.unlink(missing_ok=True)
        trial = Trial(sources, mutants, Path(folder), given.most, given.children)
        asked = [*config().pytest_add_cli_args, *config().pytest_add_cli_args_test_selection]
        if pytest.main(asked, plugins=[trial]) or not trial.results:
            return 2
    survived = Counter(
        mutant.source for mutant in mutants if trial.results[mutant.name].startswith("survived")
    )
    tried = Counter(mutant.source for mutant in mutants)
    for source, number in tried.items():
        of = len(source.mutated.mutant_names)
        print(f"{source.module}: {number} of {of} mutants tried, {survived[source]} survived")  # noqa: T201
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
