"""Styles of spreadsheet cells that show nothing: a font in the colour of its ground, or an empty format."""

import re
from typing import Any

from bot.tools.reading.markup import local_name, parse_xml
from bot.tools.reading.unseen.colours import BLACK, WHITE, Colour, is_too_faint

_MIN_POINTS = 3.0
_EMPTY_FORMAT = re.compile(r"(?:\[[^\]]*\])?;;;?")
_LIGHT_THEME = "0"


def find_unseen_styles(data: bytes) -> set[int]:
    """Return the numbers of the styles whose cells people don't see, of the styles part of a workbook."""
    if not data:
        return set()
    root = parse_xml(data)
    parts = {local_name(each): list(each) for each in root}
    empty = {
        each.get("numFmtId")
        for each in parts.get("numFmts", ())
        if _EMPTY_FORMAT.fullmatch(each.get("formatCode", ""))
    }
    fonts, fills = parts.get("fonts", []), parts.get("fills", [])
    return {
        at
        for at, form in enumerate(parts.get("cellXfs", ()))
        if form.get("numFmtId") in empty
        or _is_unseen(_pick(fonts, form.get("fontId")), _pick(fills, form.get("fillId")))
    }


def _is_unseen(font: Any, fill: Any) -> bool:
    if font is None:
        return False
    said = {local_name(each): each for each in font}
    size = said["sz"].get("val", "") if "sz" in said else ""
    if re.fullmatch(r"\d+(?:\.\d+)?", size) and float(size) < _MIN_POINTS:
        return True
    colour = _read_colour(said["color"], BLACK) if "color" in said else None
    under = _read_fill(fill)
    return colour is not None and under is not None and is_too_faint(colour, under)


def _read_fill(fill: Any) -> Colour | None:
    """The colour of a cell's ground; None where it is not known."""
    pattern = None if fill is None else next((each for each in fill), None)
    if pattern is None or pattern.get("patternType", "none") == "none":
        return WHITE
    ground = next((each for each in pattern if local_name(each) == "fgColor"), None)
    if ground is None or pattern.get("patternType") != "solid":
        return None
    return _read_colour(ground, None)


def _read_colour(element: Any, indexed: Colour | None) -> Colour | None:
    stated = element.get("rgb", "")[-6:]
    if re.fullmatch("[0-9a-fA-F]{6}", stated):
        return int(stated[:2], 16), int(stated[2:4], 16), int(stated[4:], 16)
    if element.get("theme") == _LIGHT_THEME and not element.get("tint"):
        return WHITE
    if element.get("indexed") in ("1", "9"):
        return WHITE
    return indexed


def _pick(items: list[Any], number: str | None) -> Any:
    if number and number.isdecimal() and int(number) < len(items):
        return items[int(number)]
    return None
