"""The kinds of proposals are values: what is true of one stands in it, and few places ask which one it is."""

import ast
from collections import Counter

from bot.domain.kinds import KINDS, find_kind
from tests.test_staircase import modules

NAMES = "bot.domain.kinds"
MAY_ASK = (NAMES, "bot.approvals.kinds", "bot.features")
MOST_PLACES = 25
MOST_MODULES = 12


def _is_choice_test(node: ast.AST) -> bool:
    """Return whether it is ``choices is None``, or the opposite, which asks for questions of the agent."""
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Is | ast.IsNot):
        return False
    nothing = isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value is None
    return nothing and ast.unparse(node.left).endswith("choices")


def count_kinds(tree: ast.Module) -> int:
    """Return how often a module names one kind, by its value or by its name."""
    taken = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    rooms = {each.asname or each.name for node in taken for each in node.names if each.name == "kinds"}
    direct = [node for node in taken if str(node.module).startswith(NAMES)]
    values = {each.asname or each.name for node in direct for each in node.names} - {"KINDS", "find_kind"}

    def names_one(node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return node.value.id in rooms and node.attr.isupper() and node.attr != "KINDS"
        return isinstance(node, ast.Name) and node.id in values

    return sum(names_one(node) or _is_choice_test(node) for node in ast.walk(tree))


def test_few_places_ask_which_kind_a_proposal_is() -> None:
    """Elsewhere the value says it: its words, its verbs, who decides, whether it runs."""
    counts = Counter({name: count_kinds(tree) for name, tree in modules().items()})
    found = {name: many for name, many in counts.items() if many and not name.startswith(MAY_ASK)}
    assert sum(found.values()) <= MOST_PLACES, found
    assert len(found) <= MOST_MODULES, found


def test_the_count_sees_a_kind_however_it_is_imported() -> None:
    for text in (
        "from bot.domain import kinds\nkinds.PLAN",
        "from bot.domain import kinds as others\nothers.PLAN.name",
        "from bot.domain.kinds import PLAN\nPLAN",
        "from bot.domain.kinds.plans import PLAN as IT\nIT",
        "p.choices is None",
        "p.choices is not None",
    ):
        assert count_kinds(ast.parse(text)) == 1, text


def test_each_kind_is_found_by_its_name() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    for kind in KINDS:
        assert find_kind(kind.name) is kind
        assert find_kind(kind.name, asked_by_model=True) is (kind.kind_if_model_asked or kind)
        assert str(kind) == kind.name
