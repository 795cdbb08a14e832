"""Styles of spreadsheet cells that show nothing: a font in the colour of its background, or an empty format.

Element names such as ``cellXfs`` (the list of cell styles) are those of SpreadsheetML (ECMA-376).
"""

import re
from typing import Any

from bot.tools.reading.markup import find_child, local_name, parse_xml
from bot.tools.reading.unseen.colours import BLACK, WHITE, Colour, is_too_faint

_MIN_POINTS = 3.0  # the smallest font that people can read
_EMPTY_FORMAT = re.compile(r"(?:\[[^\]]*\])?;;;?")  # displays nothing for positive, negative and zero
_THEME_COLOURS = {"0": WHITE, "1": BLACK}  # of the paper and of the text, by their numbers in a theme
_INDEXED_COLOURS = {  # by their numbers in the palette of old versions; 64 is the system's text colour
    "0": BLACK, "8": BLACK, "64": BLACK, "1": WHITE, "9": WHITE,
}  # fmt: skip


def find_unseen_styles(data: bytes) -> set[int]:
    """Return the numbers of the cell styles that hide a value. ``data``: the styles part of a workbook."""
    if not data:
        return set()
    style_lists = {local_name(element): list(element) for element in parse_xml(data)}
    empty_formats = set()
    for number_format in style_lists.get("numFmts", ()):
        if _EMPTY_FORMAT.fullmatch(number_format.get("formatCode", "")):
            empty_formats.add(number_format.get("numFmtId"))
    unseen = set()
    for number, style in enumerate(style_lists.get("cellXfs", ())):
        font = _pick(style_lists.get("fonts", []), style.get("fontId"))
        fill = _pick(style_lists.get("fills", []), style.get("fillId"))
        if style.get("numFmtId") in empty_formats or _is_unseen(font, fill):
            unseen.add(number)
    return unseen


def _pick(items: list[Any], number: str | None) -> Any:
    if number and number.isdecimal() and int(number) < len(items):
        return items[int(number)]
    return None


def _is_unseen(font: Any, fill: Any) -> bool:
    """Tell if letters of this font are tiny, or too faint on this fill."""
    if font is None:
        return False
    properties = {local_name(element): element for element in font}
    size = properties["sz"].get("val", "") if "sz" in properties else ""
    if re.fullmatch(r"\d+(?:\.\d+)?", size) and float(size) < _MIN_POINTS:
        return True
    if "color" not in properties:
        return False
    colour = _read_colour(properties["color"])
    background = _read_fill(fill)
    return colour is not None and background is not None and is_too_faint(colour, background)


def _read_fill(fill: Any) -> Colour | None:
    """Return the colour of a cell's background; None if it is not known."""
    if fill is None or len(fill) == 0:
        return WHITE
    pattern = fill[0]
    if local_name(pattern) != "patternFill":
        return None  # a gradient
    pattern_type = pattern.get("patternType", "none")
    if pattern_type == "none":
        return WHITE
    colour = find_child(pattern, "fgColor")
    if colour is None or pattern_type != "solid":
        return None
    return _read_colour(colour)


def _read_colour(element: Any) -> Colour | None:
    """Return the colour that an element states; None for a theme's or palette's colour that is not known."""
    stated = element.get("rgb", "")[-6:]
    if re.fullmatch("[0-9a-fA-F]{6}", stated):
        return int(stated[:2], 16), int(stated[2:4], 16), int(stated[4:], 16)
    if element.get("auto") in ("1", "true"):
        return BLACK
    theme = element.get("theme")
    if theme is not None:
        return None if element.get("tint") else _THEME_COLOURS.get(theme)
    return _INDEXED_COLOURS.get(element.get("indexed"))
