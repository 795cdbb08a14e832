"""What changes in a long text, and nothing of it left out."""

from hypothesis import given
from hypothesis import strategies as st

from bot.domain.hunks import hunk
from bot.domain.quoting import is_echo, requested

_texts = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=14).map("\n".join)


@given(old=_texts, new=_texts)
def test_every_changed_line_is_told_and_what_is_left_out_is_the_same_in_both(old: str, new: str) -> None:
    shown = hunk(old, new)
    if shown is None:
        return
    lines = shown.split("\n")
    gone = [line[2:] for line in lines if line.startswith("- ")]
    come = [line[2:] for line in lines if line.startswith("+ ")]
    kept = [line[2:] for line in lines if line.startswith("  ")]
    left_out = sum(int(line.split()[1]) for line in lines if line.startswith("… "))
    assert len(gone) + len(kept) + left_out == len(old.split("\n"))
    assert len(come) + len(kept) + left_out == len(new.split("\n"))
    assert left_out > 0


def test_short_texts_and_those_that_stay_have_no_hunk() -> None:
    assert hunk("one\ntwo", "one\n2") is None
    assert hunk(None, "a") is None
    assert hunk("a\nb", "a\nb") is None


def test_a_reason_that_only_quotes_what_was_said_is_known() -> None:
    assert is_echo(requested("close #4, please"))
    assert is_echo(requested("a " * 500, "Ana “the” Admin"[:3]))
    assert not is_echo("You asked for it, and #2 is the same.")
