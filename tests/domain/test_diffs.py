"""What changes in a text, line by line: nothing of it is left out, and no text takes long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.diffs import diff
from bot.domain.text import format_request, is_echo
from tests.tools.calls import patience

_LINES = st.lists(st.sampled_from(["a", "b", "c", "", "-- x", "+++ x", "… 3"]), max_size=30)
_TEXTS = st.tuples(_LINES, st.booleans()).map(lambda made: "\n".join(made[0]) + ("\n" if made[1] else ""))


@given(old=_TEXTS, new=_TEXTS)
def test_a_diff_that_is_not_folded_holds_both_texts(old: str, new: str) -> None:
    shown = diff(old, new, folded=False)
    if shown is None:
        assert old == new or "\n" not in old + new
        return
    lines = shown.split("\n")
    end = "\n" if old.endswith("\n") and new.endswith("\n") else ""
    assert "\n".join(line[2:] for line in lines if line[0] in " -") + end == old
    assert "\n".join(line[2:] for line in lines if line[0] in " +") + end == new


@given(old=_TEXTS, new=_TEXTS)
def test_every_changed_line_is_told_and_what_is_left_out_is_counted(old: str, new: str) -> None:
    shown, full = diff(old, new), diff(old, new, folded=False)
    if shown is None or full is None:
        assert shown is full
        return
    changed = [line for line in full.split("\n") if line[0] in "+-"]
    lines = shown.split("\n")
    assert [line for line in lines if line[0] in "+-"] == changed
    left_out = sum(int(line.split()[1]) - 1 for line in lines if line[0] == "…")
    assert len(lines) + left_out == len(full.split("\n"))


@pytest.mark.parametrize("far", [54, 1490])
def test_two_distant_edits_are_two_edits(far: int) -> None:
    old = [f"def f{n}(): pass" for n in range(2000)]
    new = [line.replace("f3(", "g3(").replace(f"f{far}(", f"g{far}(") for line in old]
    shown = diff("\n".join(old), "\n".join(new)) or ""
    changed = [line for line in shown.split("\n") if line[0] in "+-"]
    assert changed == [
        "- def f3(): pass",
        "+ def g3(): pass",
        f"- def f{far}(): pass",
        f"+ def g{far}(): pass",
    ]


def test_a_line_end_that_no_one_sees_is_shown() -> None:
    assert diff("a\r\nb\n", "a\nb\n") == "- a␍\n+ a\n  b"


HOSTILE_TEXTS = {
    "few lines again and again": ("ab\n" * 20_000, "c\nab\n" * 99),
    "shifted": ("a\nb\n" * 20_000, "b\nc\n" * 20_000),
    "backwards": ("".join(f"{n}\n" for n in range(20_000)), "".join(f"{n}\n" for n in range(20_000, 0, -1))),
    "few are the same, again and again": (
        "".join(f"{n}\n{n % 50}\n" for n in range(100, 850)),
        "".join(f"-{n}\n{n % 50}\n" for n in range(100, 850)),
    ),
    "many stretches": (
        "".join(f"{n}\n" + "a\nb\n" * 9 for n in range(2000)),
        "".join(f"{n}\n" + "b\nc\n" * 9 for n in range(2000)),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("texts", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS.keys())
def test_no_two_texts_take_long_to_compare(texts: tuple[str, str]) -> None:
    with patience(30):
        assert diff(*texts)


def test_a_reason_that_only_quotes_what_was_said_is_known() -> None:
    assert is_echo(format_request("close #4, please"))
    assert is_echo(format_request("a " * 500, "Ana “the” Admin"[:3]))
    assert not is_echo("You asked for it, and #2 is the same.")
