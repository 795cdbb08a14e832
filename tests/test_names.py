"""One word, one thing: no public name of ``bot/`` has two meanings."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BOT = Path(__file__).parent.parent / "bot"


def _public(kind: tuple[type[ast.stmt], ...]) -> dict[str, list[str]]:
    """Where each public name of that kind is defined at the top of a module."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(BOT.rglob("*.py")):
        if "versions" in path.parts:
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, kind) and not node.name.startswith("_"):  # type: ignore[attr-defined]
                found[node.name].append(str(path.relative_to(BOT)))  # type: ignore[attr-defined]
    return found


def test_no_public_class_is_defined_twice() -> None:
    twice = {name: where for name, where in _public((ast.ClassDef,)).items() if len(where) > 1}
    assert twice == {}


def test_docstrings_name_files_that_are_there() -> None:
    there = {path.name for path in BOT.rglob("*.py")}
    gone = []
    for path in sorted(BOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                named = re.findall(r"\b(\w+\.py)\b", ast.get_docstring(node) or "")
                gone += [f"{path.relative_to(BOT)}: {name}" for name in named if name not in there]
    assert gone == []
