"""Imports go down one staircase; this table is the only place that says so.

Every import counts, also one inside a function. Parts on one floor do not know each other.
"""

import ast
import functools
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent
FLOORS = (
    ("errors", "domain"),
    ("settings", "plugins", "telemetry"),
    ("store",),
    ("tools",),
    ("approvals",),
    ("agent",),
    ("channels",),
    ("inbox", "jobs"),
    ("core", "web"),
    ("features",),
    ("app",),
    ("cli",),
    ("testing",),
)
HEIGHT = {part: height for height, floor in enumerate(FLOORS) for part in floor}
PLATFORMS = {"slack_bolt", "slack_sdk", "telegram", "fastapi", "starlette", "uvicorn"}
CHANNELS = tuple(sorted(f"bot.channels.{each.parent.name}." for each in ROOT.glob("bot/channels/*/kind.py")))
MAY_KNOW_PLATFORMS = (*CHANNELS, "bot.channels.kinds", "bot.web.", "bot.features.", "bot.app", "bot.cli.")


@functools.cache
def modules() -> dict[str, ast.Module]:
    found = {}
    for path in sorted((ROOT / "bot").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        found[name] = ast.parse(path.read_text())
    return found


def _imports(name: str) -> Iterator[str]:
    """Every module that one imports, wherever in its text; of our own the file, of others the package."""
    for node in ast.walk(modules()[name]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports by dots"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in modules() else str(node.module)


def _part(module: str) -> str:
    """The part a module belongs to: the longest name in the table that it begins with."""
    words = module.split(".")[1:]
    prefixes = (".".join(words[:count]) for count in range(len(words), 0, -1))
    return next((prefix for prefix in prefixes if prefix in HEIGHT), words[0] if words else "")


@functools.cache
def _own() -> dict[str, set[str]]:
    """Which of our own modules each module imports."""
    return {
        name: {i for i in _imports(name) if i.split(".")[0] == "bot" and i != "bot"} for name in modules()
    }


def test_every_file_has_a_floor_and_every_floor_has_files() -> None:
    parts = {_part(name) for name in modules()} - {""}
    assert parts - set(HEIGHT) == set(), "write them into FLOORS, where they belong"
    assert set(HEIGHT) - parts == set(), "take them out of FLOORS"


def test_imports_go_down_only() -> None:
    up = [
        f"{name} → {target}"
        for name, targets in _own().items()
        for target in sorted(targets)
        if _part(name) != _part(target) and HEIGHT[_part(name)] <= HEIGHT[_part(target)]
        if name != ALL_TABLES
    ]
    assert up == []


ALL_TABLES = "bot.store.migrations.schema"
"""A migration has to know every table, also of what is switched off and of platforms."""


def test_a_migration_imports_upwards_tables_and_nothing_else() -> None:
    below = HEIGHT["store"]
    assert all(
        HEIGHT[_part(target)] <= below or target.endswith((".tables", ".rows"))
        for target in _own()[ALL_TABLES]
    )


def _feature(module: str) -> str:
    """The feature a module belongs to; empty for a module of the kernel."""
    folder = module.removeprefix("bot.features.").split(".")[0]
    return folder if module.startswith("bot.features.") and folder != "feature" else ""


def test_no_feature_knows_another_and_the_kernel_knows_none() -> None:
    known = [
        f"{name} → {target}"
        for name, targets in _own().items()
        if _part(name) not in ("app", "cli", "testing") and name != ALL_TABLES
        for target in sorted(targets)
        if _feature(target) and _feature(target) != _feature(name)
    ]
    assert known == []


SETTINGS_OF_FEATURES = {"insights", "issues", "max_schedules", "schedule_tokens"}


def test_a_setting_of_a_feature_is_read_by_features_alone() -> None:
    read = [
        f"{name}: {ast.unparse(node)}"
        for name, tree in modules().items()
        if not name.startswith(("bot.features.", "bot.settings"))
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in SETTINGS_OF_FEATURES
    ]
    assert read == []


def test_every_folder_of_features_is_listed_by_the_app() -> None:
    listed = {target for target in _own()["bot.app.features"] if _feature(target)}
    folders = {each.parent.name for each in (ROOT / "bot/features").glob("*/__init__.py")}
    assert listed == {f"bot.features.{folder}.feature" for folder in folders}


def test_no_module_imports_itself_over_others() -> None:
    try:
        TopologicalSorter(_own()).prepare()
    except CycleError as error:
        raise AssertionError(" → ".join(error.args[1])) from None


def test_no_import_hides_behind_type_checking() -> None:
    hidden = [
        name
        for name, tree in modules().items()
        if any(isinstance(node, ast.Name) and node.id == "TYPE_CHECKING" for node in ast.walk(tree))
    ]
    assert hidden == []


def test_no_platform_is_known_to_the_core() -> None:
    known = [
        f"{name} → {target}"
        for name in modules()
        if not f"{name}.".startswith(MAY_KNOW_PLATFORMS)
        for target in _imports(name)
        if target.split(".")[0] in PLATFORMS
    ]
    assert known == []


OWN_ROWS = (
    "bot.store.database",
    "bot.store.secrets",
    "bot.store.tables.row",
    "bot.store.tables.workspaces",
    "bot.store.events",
    "bot.store.state",
    "bot.store.posted_cards",
)
"""What a platform keeps for itself: installations, what arrived, what it is asking, where its cards are."""
LOOKED_UP = ("bot.approvals.lookup.", "bot.store.change_notifier")


def test_channels_and_the_web_look_up_and_take_in_and_read_no_rows() -> None:
    """All of them go through the inbox, `bot/channels/lookup.py` and `bot/approvals/lookup/`."""
    read = {
        f"{name} → {target}"
        for name in modules()
        if name.startswith((*CHANNELS, "bot.web."))
        for target in _own()[name] - (set() if name.startswith("bot.web.") else set(OWN_ROWS))
        if target.startswith(("bot.store.", "bot.approvals.")) and not target.startswith(LOOKED_UP)
    }
    assert read == set()


MOST_FILES = 15
LARGER = {
    "bot": "the parts themselves, and what all of them need",
    "bot.agent": "the steps of a turn, and what each of them needs, side by side",
    "bot.domain": "one noun, one file",
    "bot.store": "one aggregate, one file",
    "bot.store.tables": "one aggregate, one file",
    "bot.approvals": "the steps of a proposal's life, side by side",
    "bot.channels.slack": "what every channel has, and what only Slack has: streams, App Home, workspaces",
    "bot.channels.telegram": "what every channel has, and what only Telegram has: dialogues, its pace",
    "bot.cli": "one group of commands, one file",
    "bot.features": "one feature, one folder",
    "bot.store.migrations.versions": "one version, one file",
    "bot.tools": "what a tool consists of, one noun, one file; each source of tools has a folder",
    "bot.tools.mcp": "the client, signing in, and what real servers make of both, side by side",
    "bot.web": "one group of routes, one file",
}
"""Folders of more than `MOST_FILES` modules, with the reason."""


def test_a_folder_of_many_files_has_a_reason() -> None:
    folders = Counter(name.rpartition(".")[0] for name in modules() if name != "bot")
    large = {name for name, count in folders.items() if count > MOST_FILES}
    assert large <= LARGER.keys(), "make rooms"
    assert len(list((ROOT / "bot").glob("*.py"))) <= 6  # __init__.py and five


def test_each_folder_says_what_it_is_and_where_to_begin() -> None:
    silent = [
        name
        for name, tree in modules().items()
        if (ROOT / name.replace(".", "/") / "__init__.py").exists() and not ast.get_docstring(tree)
    ]
    assert silent == []
