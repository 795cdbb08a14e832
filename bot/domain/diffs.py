"""The line-by-line diff of two texts, which every channel displays."""

from difflib import SequenceMatcher
from functools import lru_cache

_AROUND = 2  # lines that stay the same, above and below a change
_MOST_LINES = 3000  # of both texts, from the first change to the last: at worst half a second of difflib's


@lru_cache(32)
def diff(old: str | None, new: str | None, *, folded: bool = True) -> str | None:
    """Return every line of both texts, marked ``-``, ``+`` or with a blank.

    None where lines tell no difference. ``folded``: of what stays the same only the lines next to a change,
    and how many others there are.
    """
    if old is None or new is None or old == new or "\n" not in old + new:
        return None
    ended = old.endswith("\n") and new.endswith("\n")
    before, after = (text.removesuffix("\n" if ended else "").split("\n") for text in (old, new))
    lines: list[str] = []
    place = other = 0
    for start, at, length in (*_same(before, after), (len(before), len(after), 0)):
        changed = place < start or other < at
        lines += [_mark_line("-", line) for line in before[place:start]]
        lines += [_mark_line("+", line) for line in after[other:at]]
        above = _AROUND if changed or lines else 0
        if start + length < len(before) or at + length < len(after):
            below = _AROUND
        else:
            below = 0
        kept = before[start : start + length]
        if folded and length > above + below:
            left_out = length - above - below
            lines += [f"  {line}" for line in kept[:above]]
            lines += [f"… {left_out} {'line stays' if left_out == 1 else 'lines stay'} the same"]
            lines += [f"  {line}" for line in kept[length - below :]]
        else:
            lines += [f"  {line}" for line in kept]
        place, other = start + length, at + length
    return "\n".join(lines)


def _mark_line(mark: str, line: str) -> str:
    return f"{mark} " + line.replace("\r", "␍")


_Block = tuple[int, int, int]
"""Where equal lines start in the one and in the other, and how many."""


def _same(before: list[str], after: list[str]) -> list[_Block]:
    """Return the equal stretches, in order. Of too many lines only those above and below all changes."""
    shorter = min(len(before), len(after))
    head = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    shorter -= head
    tail = next((n for n in range(shorter) if before[-1 - n] != after[-1 - n]), shorter)
    end, to = len(before) - tail, len(after) - tail
    between: list[_Block] = []
    if end - head + to - head <= _MOST_LINES:
        found = SequenceMatcher(None, before[head:end], after[head:to]).get_matching_blocks()
        between = [(head + here, head + there, length) for here, there, length in found]
    return [block for block in ((0, 0, head), *between, (end, to, tail)) if block[2]]
