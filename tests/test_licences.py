"""docs/licences.md names every library that Nod needs; none asks more of its users than the LGPL."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parent.parent / "docs"
ROWS = dict(re.findall(r"^\| ([a-z0-9-]+) \| (.+) \|$", (DOCS / "licences.md").read_text(), re.MULTILINE))


@pytest.fixture
def script() -> ModuleType:
    spec = spec_from_file_location("licences", DOCS / "licences.py")
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_each_library_has_its_line(script: ModuleType) -> None:
    assert ROWS.keys() >= script.needed("all").keys()


def test_each_licence_lets_others_use_nod_as_they_like() -> None:
    assert len(ROWS) > 50
    asked = {
        name: stated for name, stated in ROWS.items() if re.search(r"\bA?GPL|Commercial|Proprietary", stated)
    }
    assert asked == {}
