"""Lines of code: no blank lines, docstrings, comments, imports. ``python -m tests.lines [bot]``."""

import ast
import sys
from pathlib import Path

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def lines_of(source: str) -> int:
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            left_out.update(range(node.lineno, (node.end_lineno or 0) + 1))
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            left_out.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    rows = enumerate(map(str.strip, source.splitlines()), 1)
    return sum(bool(row) and number not in left_out and not row.startswith("#") for number, row in rows)


def main(folder: str = "bot") -> None:
    files = sorted(Path(folder).rglob("*.py"))
    total = sum(lines_of(file.read_text(encoding="utf-8")) for file in files)
    sys.stdout.write(f"{total} lines of code in {len(files)} modules of {folder}/\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
