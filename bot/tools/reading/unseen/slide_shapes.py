"""Shapes of slides whose text people don't see: hidden, off the slide, too small or too faint."""

from typing import Any

from bot.tools.reading.markup import local_name
from bot.tools.reading.report import Report
from bot.tools.reading.unseen.colours import WHITE, Colour, is_too_faint

_MIN_SIZE = 300  # hundredths of a point
_LIGHT = frozenset({"bg1", "lt1"})
_FILLS = frozenset({"solidFill", "gradFill", "blipFill", "pattFill"})


def reveal_unseen(slide: Any, width: int, height: int, report: Report) -> None:
    """Report each shape whose text we read but people do not see; the slide's size is in EMU."""
    shapes = list(slide.shapes)
    is_on_white = _has_light_background(slide)
    for at, shape in enumerate(shapes):
        if not any(local_name(each) == "t" and (each.text or "").strip() for each in shape.element.iter()):
            continue
        if _is_hidden(shape):
            report.reveal("hidden shape")
        elif _is_off_slide(shape, width, height):
            report.reveal("shape off the slide")
        elif _has_tiny_run(shape):
            report.reveal("piece of tiny text")
        elif is_on_white and not _has_background(shape, shapes[:at]):
            report.reveal("piece of white text", int(_has_light_text(shape)))


def _is_hidden(shape: Any) -> bool:
    properties = [each for each in shape.element.iter() if local_name(each) == "cNvPr"]
    return any(each.get("hidden") in ("1", "true") for each in properties)


def _is_off_slide(shape: Any, width: int, height: int) -> bool:
    box = _box(shape)
    if box is None:
        return False
    left, top, right, bottom = box
    return right <= 0 or bottom <= 0 or left >= width or top >= height


def _box(shape: Any) -> tuple[int, int, int, int] | None:
    if None in (shape.left, shape.top, shape.width, shape.height):
        return None
    return shape.left, shape.top, shape.left + shape.width, shape.top + shape.height


def _has_tiny_run(shape: Any) -> bool:
    runs = [each for each in shape.element.iter() if local_name(each) == "r"]
    sizes = [form.get("sz", "") for run in runs for form in run if local_name(form) == "rPr"]
    return bool(sizes) and any(size.isdecimal() and int(size) < _MIN_SIZE for size in sizes)


def _has_light_text(shape: Any) -> bool:
    for form in shape.element.iter():
        if local_name(form) != "rPr":
            continue
        fills = [colour for fill in form if local_name(fill) == "solidFill" for colour in fill]
        if any(_is_light(each) for each in fills):
            return True
    return False


def _is_light(colour: Any) -> bool:
    if len(colour):  # made darker or lighter
        return False
    stated = colour.get("val", "")
    if local_name(colour) == "schemeClr":
        return stated in _LIGHT
    return local_name(colour) == "srgbClr" and is_too_faint(_read_hex(stated), WHITE)


def _read_hex(stated: str) -> Colour:
    number = int(stated, 16)
    return number >> 16 & 255, number >> 8 & 255, number & 255


def _is_filled(shape: Any) -> bool:
    names = [local_name(each) for part in shape.element if local_name(part) == "spPr" for each in part]
    styles = [each for each in shape.element.iter() if local_name(each) == "fillRef"]
    if "noFill" in names:
        return False
    return bool(_FILLS.intersection(names)) or any(each.get("idx", "0") != "0" for each in styles)


def _has_background(shape: Any, lower_shapes: list[Any]) -> bool:
    return _is_filled(shape) or any(_is_backdrop(lower, shape) for lower in lower_shapes)


def _is_backdrop(lower: Any, shape: Any) -> bool:
    """Tell whether a lower shape gives this one's text a background.

    Pictures and groups count as filled, and a shape whose place is not known as under the text.
    """
    has_fill = local_name(lower.element) != "sp" or _is_filled(lower)
    one, other = _box(lower), _box(shape)
    if not has_fill or one is None or other is None:
        return has_fill
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _has_light_background(slide: Any) -> bool:
    """Tell whether the slide's background is white: only its master may set one, and that is light."""
    for each in (slide, slide.slide_layout):
        if any(local_name(part) == "bg" for part in each.element.iter()):
            return False
    master = slide.slide_layout.slide_master.element
    backgrounds = [part for part in master.iter() if local_name(part) == "bg"]
    colours = [part for each in backgrounds for part in each.iter() if local_name(part).endswith("Clr")]
    return all(_is_light(colour) for colour in colours)
