"""A unified diff of two texts, one that ``patch`` and ``git apply`` take."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

_DEEPEST = 6
_MOST_EDITS = 300  # in one stretch; its square is what is kept in memory
_MOST_STEPS = 1_000_000
_CONTEXT = 3  # lines around a change
_NO_END = "\\ No newline at end of file"


def unified(path: str, old: str | None, new: str | None) -> str:
    """The change of the file at ``path``; None where there is or will be no file; "" for equal texts."""
    before, after = _lines(old or ""), _lines(new or "")
    opcodes = _opcodes(before, after)
    source = "/dev/null" if old is None else f"a/{path}"
    target = "/dev/null" if new is None else f"b/{path}"
    hunks = [line for group in _grouped(opcodes) for line in _hunk(group, before, after)]
    return "\n".join([f"--- {source}", f"+++ {target}", *hunks, ""]) if hunks else ""


_Opcode = tuple[str, int, int, int, int]


def _lines(text: str) -> list[str]:
    """Lines with their ends, cut at line feeds alone, as every diff does (Python: also at form feeds)."""
    cut = text.split("\n")
    return [f"{line}\n" for line in cut[:-1]] + ([cut[-1]] if cut[-1] else [])


def _opcodes(before: Sequence[str], after: Sequence[str]) -> list[_Opcode]:
    """What to do with which lines, as `difflib.SequenceMatcher.get_opcodes` tells it."""
    found: list[_Opcode] = []
    place = other = 0
    for start, at, length in (*_same(before, after), (len(before), len(after), 0)):
        if place < start or other < at:
            found.append(("replace", place, start, other, at))
        if length:
            found.append(("equal", start, start + length, at, at + length))
        place, other = start + length, at + length
    return found


_Block = tuple[int, int, int]
"""Where equal lines start in the one and in the other, and how many."""


def _same(before: Sequence[str], after: Sequence[str]) -> list[_Block]:
    """The equal stretches, in order; two that touch on both sides are one.

    Lines that are in both texts once are matched first ("patience"), and what lies between them the same way,
    `_DEEPEST` times at most; then the shortest script is looked for, within `_MOST_STEPS`. So the time grows
    with the number of lines, whatever the texts: `difflib` can take it to the third power.
    """
    blocks: list[_Block] = []
    for start, at, length in _between(before, after, (0, len(before), 0, len(after)), _DEEPEST):
        last = blocks[-1] if blocks else (0, 0, 0)
        if blocks and last[0] + last[2] == start and last[1] + last[2] == at:
            blocks[-1] = (last[0], last[1], last[2] + length)
        else:
            blocks.append((start, at, length))
    return blocks


_Part = tuple[int, int, int, int]


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
    """Myers' algorithm (An O(ND) Difference Algorithm, 1986); nothing is equal where it takes too long."""
    start, end, at, to = part
    wide, high = end - start, to - at
    trail: list[dict[int, int]] = []
    furthest = {1: 0}
    for edits in range(min(wide + high, _MOST_EDITS, _MOST_STEPS // (len(before) + len(after))) + 1):
        trail.append(dict(furthest))
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (
                diagonal != edits and furthest[diagonal - 1] < furthest[diagonal + 1]
            )
            x = furthest[diagonal + 1] if down else furthest[diagonal - 1] + 1
            y = x - diagonal
            while x < wide and y < high and before[start + x] == after[at + y]:
                x, y = x + 1, y + 1
            furthest[diagonal] = x
            if x >= wide and y >= high:
                yield from reversed(list(_walked_back(trail, wide, high, start, at)))
                return


def _walked_back(trail: Sequence[dict[int, int]], x: int, y: int, start: int, at: int) -> Iterator[_Block]:
    """The equal stretches of the script that was found, last first."""
    for edits in range(len(trail) - 1, -1, -1):
        reached, diagonal = trail[edits], x - y
        down = diagonal == -edits or (diagonal != edits and reached[diagonal - 1] < reached[diagonal + 1])
        came = diagonal + 1 if down else diagonal - 1
        from_x = reached[came] if edits else 0
        from_y = from_x - came if edits else 0
        begin = (from_x if down else from_x + 1) if edits else 0
        if x > begin:
            yield start + begin, at + begin - diagonal, x - begin
        x, y = from_x, from_y


def _grouped(opcodes: list[_Opcode]) -> Iterator[list[_Opcode]]:
    """Changes with the lines around them; equal stretches longer than that part the hunks."""
    group: list[_Opcode] = []
    for place, (tag, a, b, c, d) in enumerate(opcodes):
        if tag != "equal":
            group.append((tag, a, b, c, d))
            continue
        more = place + 1 < len(opcodes)
        if group and (not more or b - a > 2 * _CONTEXT):
            kept = min(_CONTEXT, b - a)
            group.append((tag, a, a + kept, c, c + kept))
            yield group
            group = []
        if not group and more:
            start = max(a, b - _CONTEXT)
            group = [(tag, start, b, c + start - a, d)]
        elif group:
            group.append((tag, a, b, c, d))
    if any(each[0] != "equal" for each in group):
        yield group


def _hunk(group: list[_Opcode], before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    old, new = (group[0][1], group[-1][2]), (group[0][3], group[-1][4])
    yield f"@@ -{_range(*old)} +{_range(*new)} @@"
    for tag, a, b, c, d in group:
        if tag == "equal":
            yield from _marked(" ", before[a:b])
            continue
        yield from _marked("-", before[a:b])
        yield from _marked("+", after[c:d])


def _range(start: int, end: int) -> str:
    """Lines count from 1; an empty range names the line before it."""
    length = end - start
    return f"{start + 1 if length else start},{length}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield _NO_END
