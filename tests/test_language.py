"""The language of the code: verbs, one name for one thing, docstrings that say what a thing is."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

BOT = Path(__file__).parents[1] / "bot"
MAX_PARTICIPLES = 0.035  # of all functions
MAX_HOMONYMS = 25
MAX_RIDDLES = 0.02  # of all docstrings
MODULES_OF_A_HOMONYM = 5

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef

IRREGULAR_PARTICIPLES = {
    "begun", "bound", "broken", "brought", "built", "caught", "chosen", "done", "drawn", "driven",
    "eaten", "fallen", "felt", "forgiven", "forgotten", "found", "frozen", "given", "gone", "grown",
    "heard", "held", "hidden", "kept", "known", "laid", "led", "left", "lost", "made", "meant",
    "met", "paid", "put", "ridden", "risen", "said", "sat", "seen", "sent", "shown", "spent",
    "spoken", "stolen", "stood", "sought", "sworn", "taken", "taught", "thought", "thrown", "told",
    "undone", "understood", "unasked", "woken", "worn", "written",
}  # fmt: skip
VERBS_IN_ED = {"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "succeed"}
RIDDLES = (
    "What ", "Whether ", "Where ", "How ", "Who ", "Whom ", "Whose ", "Why ", "As ", "Of ", "That ", "Those ",
    "So ", "Such ", "The same", "The one", "One that", "Each ",
)  # fmt: skip


@cache
def trees() -> tuple[tuple[Path, ast.Module], ...]:
    paths = (path for path in sorted(BOT.rglob("*.py")) if "versions" not in path.parts)
    return tuple((path.relative_to(BOT), ast.parse(path.read_text())) for path in paths)


def functions() -> Iterator[tuple[Path, Function]]:
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, Function) and not node.name.startswith("__"):
                yield path, node


def is_participle(name: str) -> bool:
    word = name.strip("_").split("_")[0].lower()
    ends_like_one = word.endswith("ed") and len(word) > 3 and word not in VERBS_IN_ED
    return ends_like_one or word in IRREGULAR_PARTICIPLES


def is_constant(node: ast.stmt) -> bool:
    names = names_set_by(node)
    return bool(names) and all(name.strip("_").isupper() for name in names)


def names_set_by(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.AnnAssign):
        return [node.target.id] if isinstance(node.target, ast.Name) and node.value else []
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def test_functions_begin_with_a_verb():
    every = [f"{path}: {node.name}" for path, node in functions()]
    wrong = [each for each in every if is_participle(each.split(": ")[1])]
    assert len(wrong) <= MAX_PARTICIPLES * len(every), wrong


def test_a_public_name_stands_for_one_thing():
    of_protocols = {
        each.name
        for _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and {"Protocol", "ABC"} & _names_of_bases(node)
        for each in node.body
        if isinstance(each, Function)
    }
    modules = defaultdict(set)
    for path, node in functions():
        if not node.name.startswith("_") and node.name not in of_protocols:
            modules[node.name].add(path)
    homonyms = {
        name: len(paths)
        for name, paths in modules.items()
        if len(paths) >= MODULES_OF_A_HOMONYM and any(path.parts[0] != "features" for path in paths)
    }
    assert len(homonyms) <= MAX_HOMONYMS, sorted(homonyms.items(), key=lambda item: -item[1])


def _names_of_bases(node: ast.ClassDef) -> set[str]:
    return {each.id for base in node.bases for each in ast.walk(base) if isinstance(each, ast.Name)}


def test_docstrings_say_first_what_a_thing_is():
    every, riddles = 0, []
    for path, tree in trees():
        for node in ast.walk(tree):
            words = ast.get_docstring(node) if isinstance(node, Definition | ast.Module) else None
            every += words is not None
            if words and words.startswith(RIDDLES):
                riddles.append(f"{path}: {words.splitlines()[0]}")
    assert len(riddles) <= MAX_RIDDLES * every, riddles


def test_no_conditional_expression_is_inside_another():
    nested = [
        f"{path}:{node.lineno}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.IfExp)
        and any(isinstance(part, ast.IfExp) for part in (node.test, node.body, node.orelse))
    ]
    assert nested == []


def test_constants_come_before_definitions():
    """A constant that is made of the module's own definitions comes after them."""
    late = [f"{path}: {name}" for path, tree in trees() for name in _misplaced_constants(tree)]
    assert late == []


def _misplaced_constants(tree: ast.Module) -> Iterator[str]:
    defined: set[str] = set()
    for node in tree.body:
        if isinstance(node, Definition):
            defined.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            if used & defined:
                defined.update(names_set_by(node))
            elif defined and is_constant(node):
                yield names_set_by(node)[0]


@pytest.mark.parametrize(("name", "expected"), [("told", True), ("_shown_again", True), ("feed_line", False)])
def test_a_participle_is_known_by_its_first_word(name, expected):
    assert is_participle(name) is expected
