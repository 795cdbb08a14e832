"""The map of the house is the house: rooms, paths, trips and tests that the documents name are there."""

import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAP = (ROOT / "docs" / "architecture.md").read_text()
PAGES = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "docs" / "architecture.md",
    ROOT / "docs" / "glossary.md",
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
]


def _tree() -> list[str]:
    """The rooms in the order of the drawing, as paths below ``bot/``."""
    drawn = re.search(r"```text\nbot/\n(.*?)```", MAP, re.DOTALL)
    assert drawn is not None
    rooms: list[str] = []
    for line in drawn[1].splitlines():
        name = line.split()[0]
        nested = len(line) - len(line.lstrip()) > 2
        parent = next(room for room in reversed(rooms) if room.count("/") == 1) if nested else ""
        rooms.append(parent + name)
    return rooms


def test_every_room_is_drawn_and_every_drawn_room_is_there() -> None:
    drawn = set(_tree())
    top = {
        f"{path.name}/" if path.is_dir() else path.name
        for path in (ROOT / "bot").iterdir()
        if path.name not in ("__init__.py", "__init__.pyi", "__pycache__", "py.typed")
    }
    assert {room for room in drawn if room.count("/") == (1 if room.endswith("/") else 0)} == top
    assert [room for room in drawn if not (ROOT / "bot" / room).exists()] == []


def test_the_drawing_goes_down_the_staircase() -> None:
    from tests.test_staircase import HEIGHT

    heights = [HEIGHT.get(room.removesuffix("/").removesuffix(".py").replace("/", ".")) for room in _tree()]
    known = [height for height in heights if height is not None]
    assert len(known) > 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_a_page_names_is_there(page: Path) -> None:
    named = set(re.findall(r"`((?:bot|tests|docs|benchmarks)/[\w./-]+)`", page.read_text()))
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


@functools.cache
def _tests() -> set[str]:
    """The names of all tests."""
    defined = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
    return {
        name
        for path in [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "bot" / "testing").glob("*contract.py")]
        for name in defined.findall(path.read_text())
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_names_is_there(page: Path) -> None:
    named = set(re.findall(r"`(test_\w+)`", page.read_text()))
    assert named - _tests() == set()


def test_every_make_target_that_a_page_names_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name for page in PAGES for name in re.findall(r"`make ([a-z-]+)", page.read_text())}
    assert named - targets == set()


@pytest.mark.slow
def test_the_trips_pass_through_the_rooms_they_name() -> None:
    """Each trip's modules are entered when it is really made."""
    from tests.trips import walked

    entered = {name: set(trip.visits) for name, trip in walked().items()}
    paragraphs = dict(re.findall(r"^\*\*(.+?)\.\*\* (.*?)(?=\n\n)", MAP, re.MULTILINE | re.DOTALL))
    assert set(paragraphs) == set(entered)
    for name, text in paragraphs.items():
        named = {path[:-3].replace("/", ".") for path in re.findall(r"`(bot/[\w/]+\.py)`", text)}
        core = {module for module in named if not module.startswith("bot.channels.slack")}
        assert core - entered[name] == set(), f"the trip of {name} does not enter them"


def test_the_tests_mirror_the_rooms() -> None:
    """What crosses rooms has folders of its own, named in CONTRIBUTING.md."""
    across = {"agentdojo", "clients", "contracts", "conversations", "deploy"}
    across |= {"fakes", "kit", "machines", "team", "torture"}
    assert all(f"`{name}/`" in PAGES[0].read_text() for name in across if (ROOT / "tests" / name).exists())
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")} - {
        Path()
    }
    strange = [f for f in folders if f.parts[0] not in across and not (ROOT / "bot" / f).is_dir()]
    assert strange == [Path("web/console")]  # bot/web/static
