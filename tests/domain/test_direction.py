"""What others wrote keeps its own direction in words of ours, and nothing of it is changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.text_direction import FIRST_STRONG_ISOLATE, POP_ISOLATE, isolate_foreign_parts, isolate_lines
from tests.kit.examples import examples

FSI, PDI = FIRST_STRONG_ISOLATE, POP_ISOLATE
HEBREW, ARABIC = "מ-prod ל-test", "من prod إلى test"


@pytest.mark.parametrize("text", ["from prod to test", "テストから本番へ", "Größe: 5", "", "  ", "1 → 2"])
def test_text_from_left_to_right_stays_as_it_is(text: str):
    assert isolate_foreign_parts(text) == isolate_lines(text) == text


@pytest.mark.parametrize("value", [HEBREW, ARABIC])
def test_a_value_has_a_direction_of_its_own(value: str):
    assert isolate_foreign_parts(value) == isolate_lines(value) == f"{FSI}{value}{PDI}"
    assert (
        isolate_foreign_parts(f"Add note “{value}”, 2 min ago") == f"Add note “{FSI}{value}{PDI}”, 2 min ago"
    )
    assert isolate_foreign_parts(f"Title: {value}") == f"Title: {FSI}{value}{PDI}"
    assert isolate_foreign_parts(f"a\n+ {value}\n\nb") == f"a\n+ {FSI}{value}{PDI}\n\nb"


def test_a_number_behind_a_name_stays_behind_it():
    assert isolate_foreign_parts("Asked by דנה כהן, 2 min ago") == f"Asked by {FSI}דנה כהן{PDI}, 2 min ago"


@examples(200)
@given(st.text(st.sampled_from("aב ع1“”:\n+-. ٣é")))
def test_only_marks_are_added_and_each_is_closed_in_its_line(text: str):
    shown = isolate_foreign_parts(text)
    assert shown.replace(FSI, "").replace(PDI, "") == text
    for line in shown.split("\n"):
        assert line.count(FSI) == line.count(PDI)
    assert len(shown) <= 3 * len(text)
