"""The list of the night names tests that exist."""

import re
from pathlib import Path

import pytest

from tests.tiers import LINT, NIGHT

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.lint


@pytest.mark.parametrize("beginning", [*NIGHT, *LINT])
def test_each_entry_begins_the_name_of_a_test(beginning: str):
    path, _, name = beginning.partition("::")
    text = (ROOT / path).read_text()
    assert re.search(rf"(def|class) {re.escape(name.partition('[')[0])}", text)


def test_each_entry_has_its_reason():
    assert all(reason for reason in NIGHT.values())
