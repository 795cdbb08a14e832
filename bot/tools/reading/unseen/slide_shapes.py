"""Shapes of slides whose text people don't see: hidden, off the slide, too small or too faint."""

from typing import Any

from bot.tools.reading.markup import local_name
from bot.tools.reading.report import Report
from bot.tools.reading.unseen.colours import WHITE, Colour, is_too_faint

_MIN_SIZE = 300  # hundredths of a point
_LIGHT = frozenset({"bg1", "lt1"})
_FILLS = frozenset({"solidFill", "gradFill", "blipFill", "pattFill"})


def reveal_unseen(slide: Any, width: int, height: int, report: Report) -> None:
    """Count the shapes of a slide whose text is read although it is not seen; sizes are in EMU."""
    shapes = list(slide.shapes)
    is_light = _has_light_ground(slide)
    for at, shape in enumerate(shapes):
        if not any(local_name(each) == "t" and (each.text or "").strip() for each in shape.element.iter()):
            continue
        if any(
            each.get("hidden") in ("1", "true")
            for each in shape.element.iter()
            if local_name(each) == "cNvPr"
        ):
            report.reveal("hidden shape")
        elif _is_off_slide(shape, width, height):
            report.reveal("shape off the slide")
        elif _is_tiny(shape):
            report.reveal("piece of tiny text")
        elif is_light and not _is_filled(shape) and not any(_covers(each, shape) for each in shapes[:at]):
            report.reveal("piece of white text", int(_has_light_text(shape)))


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


def _is_tiny(shape: Any) -> bool:
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


def _covers(under: Any, shape: Any) -> bool:
    """Tell whether a shape below has a ground of its own under the text."""
    is_ground = local_name(under.element) != "sp" or _is_filled(under)
    one, other = _box(under), _box(shape)
    if not is_ground or one is None or other is None:
        return is_ground
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _has_light_ground(slide: Any) -> bool:
    """Tell whether neither the slide nor what it builds on has a ground of another colour."""
    for each in (slide, slide.slide_layout):
        if any(local_name(part) == "bg" for part in each.element.iter()):
            return False
    grounds = [part for part in slide.slide_layout.slide_master.element.iter() if local_name(part) == "bg"]
    colours = [each for ground in grounds for each in ground.iter() if local_name(each)[-3:] == "Clr"]
    return all(_is_light(each) for each in colours)
