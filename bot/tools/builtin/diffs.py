"""A unified diff of two texts, one that ``patch`` and ``git apply`` take."""

import difflib
from collections.abc import Iterator, Sequence

_MOST_COMPARED = 4_000_000  # pairs of lines; difflib's time can grow with their number
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
    """What to do with which lines, as `difflib.SequenceMatcher.get_opcodes` tells it.

    Equal beginnings and ends are taken off first. What is left is one block when it is too much to compare.
    """
    shorter = min(len(before), len(after))
    head = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    tail = next((n for n in range(shorter - head) if before[-1 - n] != after[-1 - n]), shorter - head)
    ends = len(before) - tail, len(after) - tail
    inner: list[_Opcode]
    if (ends[0] - head) * (ends[1] - head) > _MOST_COMPARED:
        inner = [("replace", head, ends[0], head, ends[1])]
    else:
        matcher = difflib.SequenceMatcher(None, before[head : ends[0]], after[head : ends[1]])
        inner = [(tag, a + head, b + head, c + head, d + head) for tag, a, b, c, d in matcher.get_opcodes()]
    first: list[_Opcode] = [("equal", 0, head, 0, head)] if head else []
    last: list[_Opcode] = [("equal", ends[0], len(before), ends[1], len(after))] if tail else []
    return [*first, *inner, *last]


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
