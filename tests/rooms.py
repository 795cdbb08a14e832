"""Draws the house from its imports: for each folder its rooms, the arrows between them, floors, circles.

``python -m tests.rooms [FOLDER ...]``. A room is a module or a subfolder, an arrow an import of one room by
another. Floors are counted along the longest way down; rooms that import each other share a floor, and each
arrow of such a circle is counted. The module that knows all tables is left out.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.test_staircase import ALL_TABLES, ROOT, _own

FOLDERS = (
    "bot",
    "bot/store",
    "bot/approvals",
    "bot/domain",
    "bot/web",
    "bot/channels",
    "bot/agent",
    "bot/jobs",
    "bot/tools",
)


def arrows_of(folder: str) -> tuple[set[str], set[tuple[str, str]]]:
    """Return the rooms of a folder, and who imports whom there."""
    prefix = folder.replace("/", ".") + "."
    rooms: set[str] = set()
    arrows: set[tuple[str, str]] = set()
    for module, targets in _own().items():
        if not module.startswith(prefix) or module == ALL_TABLES:
            continue
        room = module.removeprefix(prefix).split(".")[0]
        rooms.add(room)
        for target in targets:
            other = target.removeprefix(prefix).split(".")[0]
            if target.startswith(prefix) and other != room:
                arrows.add((room, other))
    return rooms, arrows


def circles_of(rooms: set[str], arrows: set[tuple[str, str]]) -> list[set[str]]:
    """Return the rooms in groups that reach each other."""
    below = {room: {b for a, b in arrows if a == room} for room in rooms}

    def reach(room: str) -> set[str]:
        found, left = set[str](), [room]
        while left:
            for each in below.get(left.pop(), ()):
                if each not in found:
                    found.add(each)
                    left.append(each)
        return found

    reached = {room: reach(room) for room in rooms}
    groups: list[set[str]] = []
    for room in sorted(rooms):
        if not any(room in group for group in groups):
            groups.append({room} | {each for each in reached[room] if room in reached[each]})
    return groups


def floors_of(groups: list[set[str]], arrows: set[tuple[str, str]]) -> int:
    """Return the length of the longest way down."""
    place = {room: number for number, group in enumerate(groups) for room in group}
    below = {
        number: {place[b] for a, b in arrows if place.get(a) == number and place.get(b) != number}
        for number in range(len(groups))
    }
    heights: dict[int, int] = {}

    def height(number: int) -> int:
        if number not in heights:
            heights[number] = 1 + max((height(each) for each in below[number] if each in below), default=0)
        return heights[number]

    return max(map(height, below), default=0)


def lines(folders: list[str]) -> Iterator[str]:
    """Yield the drawing as a table."""
    yield "| folder | rooms | floors | arrows | in circles |"
    yield "|---|---|---|---|---|"
    for folder in folders:
        rooms, arrows = arrows_of(folder)
        groups = circles_of(rooms, arrows)
        circular = sum(1 for a, b in arrows if any(a in group and b in group for group in groups))
        yield f"| {folder} | {len(rooms)} | {floors_of(groups, arrows)} | {len(arrows)} | {circular} |"


if __name__ == "__main__":
    wanted = sys.argv[1:] or [each for each in FOLDERS if (Path(ROOT) / each).is_dir()]
    sys.stdout.write("\n".join(lines(wanted)) + "\n")
