"""What changes between two texts, line by line: the one diff that every channel shows."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache

_AROUND = 2  # lines that stay the same, above and below a change
_DEEPEST = 6
_MOST_LINES = 200  # of a stretch that difflib compares, whose time can grow with their third power


@lru_cache(32)
def diff(old: str | None, new: str | None, *, folded: bool = True) -> str | None:
    """Every line of both texts, marked ``-``, ``+`` or with a blank; None where lines tell no difference.

    ``folded``: of what stays the same only the lines next to a change, and how many others there are.
    """
    if old is None or new is None or old == new or "\n" not in old + new:
        return None
    ended = old.endswith("\n") and new.endswith("\n")
    before, after = (text.removesuffix("\n" if ended else "").split("\n") for text in (old, new))
    lines: list[str] = []
    place = other = 0
    for start, at, length in (*_same(before, after), (len(before), len(after), 0)):
        changed = place < start or other < at
        lines += [_marked("-", line) for line in before[place:start]]
        lines += [_marked("+", line) for line in after[other:at]]
        above = _AROUND if changed or lines else 0
        below = _AROUND if start + length < len(before) or at + length < len(after) else 0
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


def _marked(mark: str, line: str) -> str:
    """A changed line; the end of a line as Windows writes it is a change that no one would see."""
    return f"{mark} " + line.replace("\r", "␍")


_Block = tuple[int, int, int]
"""Where equal lines start in the one and in the other, and how many."""
_Part = tuple[int, int, int, int]
"""Lines of the one, from and to, and of the other."""


def _same(before: Sequence[str], after: Sequence[str]) -> list[_Block]:
    """The equal stretches, in order; two that touch on both sides are one.

    Lines that are in both texts once are matched first ("patience"), and what lies between them the same way,
    `_DEEPEST` times at most; difflib compares the rest where it is short. So the time grows with the number
    of lines, whatever the texts.
    """
    blocks: list[_Block] = []
    for start, at, length in _between(before, after, (0, len(before), 0, len(after)), _DEEPEST):
        last = blocks[-1] if blocks else (0, 0, 0)
        if blocks and last[0] + last[2] == start and last[1] + last[2] == at:
            blocks[-1] = (last[0], last[1], last[2] + length)
        else:
            blocks.append((start, at, length))
    return blocks


def _between(before: Sequence[str], after: Sequence[str], part: _Part, deeper: int) -> Iterator[_Block]:
    start, end, at, to = part
    shorter = min(end - start, to - at)
    head = next((n for n in range(shorter) if before[start + n] != after[at + n]), shorter)
    shorter -= head
    tail = next((n for n in range(shorter) if before[end - 1 - n] != after[to - 1 - n]), shorter)
    if head:
        yield start, at, head
    start, at, end, to = start + head, at + head, end - tail, to - tail
    if start < end and at < to:
        anchors = _anchors(before, after, (start, end, at, to)) if deeper else []
        for here, there in [*anchors, (end, to)] if anchors else ():
            yield from _between(before, after, (start, here, at, there), deeper - 1)
            if here < end:
                yield here, there, 1
            start, at = here + 1, there + 1
        if not anchors:
            yield from _shortest(before, after, (start, end, at, to))
    if tail:
        yield end, to, tail


def _anchors(before: Sequence[str], after: Sequence[str], part: _Part) -> list[tuple[int, int]]:
    """Lines that are in both parts once, the longest row of them that is in the same order in both."""
    start, end, at, to = part
    here, there = _once(before, start, end), _once(after, at, to)
    pairs = [(place, there[line]) for line, place in here.items() if line in there]
    ends: list[int] = []  # by length of a row: the least place in ``after`` where one ends
    rows: list[int] = []  # by length of a row: which pair ends it
    previous: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        previous.append(rows[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        rows[length : length + 1] = [number]
    found = []
    number = rows[-1] if rows else -1
    while number >= 0:
        found.append(pairs[number])
        number = previous[number]
    return found[::-1]


def _once(lines: Sequence[str], start: int, end: int) -> dict[str, int]:
    counts = Counter(lines[start:end])
    return {lines[place]: place for place in range(start, end) if counts[lines[place]] == 1}


def _shortest(before: Sequence[str], after: Sequence[str], part: _Part) -> Iterator[_Block]:
    """What difflib finds equal; nothing where there are too many lines."""
    start, end, at, to = part
    if end - start + to - at <= _MOST_LINES:
        found = SequenceMatcher(None, before[start:end], after[at:to], autojunk=False).get_matching_blocks()
        yield from ((start + here, at + there, length) for here, there, length in found if length)
