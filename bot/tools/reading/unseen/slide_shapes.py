"""Shapes of slides whose text people don't see: hidden, off the slide, too small or too faint.

Element names such as ``rPr`` (the properties of a piece of text) are those of DrawingML (ECMA-376).
"""

import re
from typing import Any, NamedTuple

from bot.tools.reading.markup import find_all, find_children, local_name
from bot.tools.reading.report import Report
from bot.tools.reading.unseen.colours import WHITE, Colour, is_too_faint

_MIN_FONT_SIZE = 300  # the smallest font that people can read, in hundredths of a point
_LIGHT_THEME_COLOURS = frozenset({"bg1", "lt1"})
_HEX = re.compile("[0-9a-fA-F]{6}")
_FILLS = ("solidFill", "gradFill", "blipFill", "pattFill")


class _Box(NamedTuple):
    """The place of a shape on its slide, in EMU from the upper left corner."""

    left: int
    top: int
    right: int
    bottom: int


def report_unseen(slide: Any, width: int, height: int, report: Report) -> None:
    """Report each shape whose text is read although people do not see it.

    ``width`` and ``height``: of the slide, in EMU (914,400 are an inch).
    """
    shapes = list(slide.shapes)
    is_on_white = _has_light_background(slide)
    for position, shape in enumerate(shapes):
        if not any((text.text or "").strip() for text in find_all(shape.element, "t")):
            continue
        lower_shapes = shapes[:position]  # they are drawn before it
        if _is_hidden(shape):
            report.count_hidden("hidden shape")
        elif _is_off_slide(shape, width, height):
            report.count_hidden("shape off the slide")
        elif _has_tiny_run(shape):
            report.count_hidden("piece of tiny text")
        elif is_on_white and not _has_background(shape, lower_shapes) and _has_light_text(shape):
            report.count_hidden("piece of white text")


def _is_hidden(shape: Any) -> bool:
    return any(element.get("hidden") in ("1", "true") for element in find_all(shape.element, "cNvPr"))


def _is_off_slide(shape: Any, width: int, height: int) -> bool:
    box = _read_box(shape)
    if box is None:
        return False
    return box.right <= 0 or box.bottom <= 0 or box.left >= width or box.top >= height


def _read_box(shape: Any) -> _Box | None:
    """Return the place of a shape; None if it is not stated."""
    if None in (shape.left, shape.top, shape.width, shape.height):
        return None
    return _Box(shape.left, shape.top, shape.left + shape.width, shape.top + shape.height)


def _has_tiny_run(shape: Any) -> bool:
    for run in find_all(shape.element, "r"):
        for properties in find_children(run, "rPr"):
            size = properties.get("sz", "")
            if size.isdecimal() and int(size) < _MIN_FONT_SIZE:
                return True
    return False


def _has_light_text(shape: Any) -> bool:
    for properties in find_all(shape.element, "rPr"):
        for fill in find_children(properties, "solidFill"):
            if any(map(_is_light, fill)):
                return True
    return False


def _is_light(colour: Any) -> bool:
    if len(colour):  # its child elements make the colour darker or lighter
        return False
    value = colour.get("val", "")
    if local_name(colour) == "schemeClr":
        return value in _LIGHT_THEME_COLOURS
    if local_name(colour) != "srgbClr" or not _HEX.fullmatch(value):
        return False
    return is_too_faint(_read_hex(value), WHITE)


def _read_hex(text: str) -> Colour:
    return int(text[:2], 16), int(text[2:4], 16), int(text[4:], 16)


def _is_filled(shape: Any) -> bool:
    """Tell if a shape has a background: a fill of its own, or one of its style."""
    has_fill = False
    for properties in find_children(shape.element, "spPr"):
        if find_children(properties, "noFill"):
            return False
        has_fill = has_fill or bool(find_children(properties, *_FILLS))
    if has_fill:
        return True
    return any(style.get("idx", "0") != "0" for style in find_all(shape.element, "fillRef"))


def _has_background(shape: Any, lower_shapes: list[Any]) -> bool:
    return _is_filled(shape) or any(_is_backdrop(lower, shape) for lower in lower_shapes)


def _is_backdrop(lower: Any, shape: Any) -> bool:
    """Tell if a lower shape gives this one's text a background.

    Pictures and groups count as filled. A shape whose place is not stated counts as under the text.
    """
    is_plain_shape = local_name(lower.element) == "sp"
    if is_plain_shape and not _is_filled(lower):
        return False
    lower_box, box = _read_box(lower), _read_box(shape)
    if lower_box is None or box is None:
        return True
    overlaps_across = lower_box.left < box.right and box.left < lower_box.right
    overlaps_down = lower_box.top < box.bottom and box.top < lower_box.bottom
    return overlaps_across and overlaps_down


def _has_light_background(slide: Any) -> bool:
    """Tell if the slide's background is white: only its master may set one, and that must be light."""
    if find_all(slide.element, "bg") or find_all(slide.slide_layout.element, "bg"):
        return False
    for background in find_all(slide.slide_layout.slide_master.element, "bg"):
        for element in background.iter():
            if local_name(element).endswith("Clr") and not _is_light(element):
                return False
    return True
