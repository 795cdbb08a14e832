"""The line-by-line diff of two texts, which every channel displays."""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

_CONTEXT_LINES = 2  # unchanged lines that are displayed above and below a change
_MAX_COMPARED_LINES = 3000  # the lines of both texts together; difflib takes up to half a second for them


class _EqualBlock(NamedTuple):
    """A stretch of lines that both texts share; both starts count from 0."""

    old_start: int
    new_start: int
    length: int


@lru_cache(32)
def diff(old: str | None, new: str | None, *, folded: bool = True) -> str | None:
    """Return every line of both texts, marked ``-``, ``+`` or with a blank.

    None if a text is missing, if both are equal, and if each is a single line. ``folded``: of the unchanged
    lines, return only those next to a change, and the number of the others.
    """
    if old is None or new is None or old == new:
        return None
    if "\n" not in old and "\n" not in new:
        return None
    if old.endswith("\n") and new.endswith("\n"):
        old, new = old[:-1], new[:-1]  # else an empty line would end the diff
    old_lines, new_lines = old.split("\n"), new.split("\n")
    blocks = _find_equal_blocks(old_lines, new_lines)
    blocks.append(_EqualBlock(len(old_lines), len(new_lines), 0))  # so lines behind the last block are marked

    lines: list[str] = []
    old_position = new_position = 0  # the lines before these positions are done
    for block in blocks:
        lines += [_mark_line("-", line) for line in old_lines[old_position : block.old_start]]
        lines += [_mark_line("+", line) for line in new_lines[new_position : block.new_start]]
        old_position = block.old_start + block.length
        new_position = block.new_start + block.length
        equal = old_lines[block.old_start : old_position]
        if folded:
            is_last = old_position == len(old_lines) and new_position == len(new_lines)
            above = _CONTEXT_LINES if lines else 0  # at the beginning there is no change above
            below = 0 if is_last else _CONTEXT_LINES
            lines += _fold(equal, above, below)
        else:
            lines += [f"  {line}" for line in equal]
    return "\n".join(lines)


def _mark_line(mark: str, line: str) -> str:
    return f"{mark} " + line.replace("\r", "␍")


def _fold(equal: Sequence[str], above: int, below: int) -> list[str]:
    """Return the first ``above`` and last ``below`` of these lines, and the number left out between them."""
    left_out = len(equal) - above - below
    if left_out <= 0:
        return [f"  {line}" for line in equal]
    stay = "line stays" if left_out == 1 else "lines stay"
    first = [f"  {line}" for line in equal[:above]]
    last = [f"  {line}" for line in equal[above + left_out :]]
    return [*first, f"… {left_out} {stay} the same", *last]


def _find_equal_blocks(old_lines: Sequence[str], new_lines: Sequence[str]) -> list[_EqualBlock]:
    """Return the blocks of equal lines, in order.

    Lines above the first and below the last change are found by simple comparison. If too many lines are
    left between them, no equal lines are looked for there.
    """
    head = _count_equal(old_lines, new_lines)
    tail = _count_equal(reversed(old_lines[head:]), reversed(new_lines[head:]))
    old_end, new_end = len(old_lines) - tail, len(new_lines) - tail
    old_middle, new_middle = old_lines[head:old_end], new_lines[head:new_end]

    blocks = [_EqualBlock(0, 0, head)]
    if len(old_middle) + len(new_middle) <= _MAX_COMPARED_LINES:
        matches = SequenceMatcher(None, old_middle, new_middle).get_matching_blocks()
        blocks += [_EqualBlock(head + match.a, head + match.b, match.size) for match in matches]
    blocks.append(_EqualBlock(old_end, new_end, tail))
    return [block for block in blocks if block.length]


def _count_equal(old_lines: Iterable[str], new_lines: Iterable[str]) -> int:
    """Return the number of equal lines at the beginning."""
    count = 0
    for old, new in zip(old_lines, new_lines, strict=False):
        if old != new:
            break
        count += 1
    return count
