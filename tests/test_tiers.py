"""The list of the night names tests that exist."""

import re
from pathlib import Path

import pytest

from tests.tiers import FEWER, LINT, NIGHT

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.lint


@pytest.mark.parametrize("beginning", [*NIGHT, *FEWER, *LINT])
def test_each_entry_begins_the_name_of_a_test(beginning: str):
    path, _, name = beginning.partition("::")
    text = (ROOT / path).read_text()
    assert re.search(rf"(def|class) {re.escape(name.partition('[')[0])}", text)


def test_each_entry_has_its_reason():
    assert all([*NIGHT.values(), *(reason for _, reason in FEWER.values())])
