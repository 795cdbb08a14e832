"""Text of a web page that people who open it do not see: by its style, its attributes or its element."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from PIL import ImageColor

from bot.tools.reading.markup import local_name
from bot.tools.reading.unseen.colours import BLACK, WHITE, Colour, is_too_faint

WANTED = frozenset({
    "display", "visibility", "content-visibility", "opacity", "filter", "font-size", "font", "color",
    "background", "background-color", "background-image", "-webkit-text-fill-color", "position", "left",
    "right", "top", "bottom", "inset", "margin", "margin-left", "margin-top", "text-indent", "transform",
    "scale", "translate", "clip", "clip-path", "width", "height", "max-width", "max-height", "overflow",
    "overflow-x", "overflow-y",
})  # fmt: skip
"""The properties that can hide text."""
_MIN_FONT_PX = 4.0
_MIN_OPACITY = 0.1
_FAR_PX, _FAR_AHEAD_PX = 300.0, 5_000.0
_MAX_CLIPPED_PX = 2.0
_ROOT_FONT_PX = 16.0
_WINDOW_PX = 1_280.0
_HALF_PERCENT = 50.0
_WITH_SHARE = 4  # numbers of a colour that says how much of it is there
_PX_PER_UNIT = {
    "px": 1.0, "pt": 4 / 3, "pc": 16.0, "in": 96.0, "cm": 37.8, "mm": 3.78, "q": 0.945, "rem": 16.0,
    "vw": 12.8, "vh": 7.2, "ex": 8.0, "ch": 8.0,
}  # fmt: skip
_FONT_WORDS = {
    "xx-small": 9.0, "x-small": 10.0, "small": 13.0, "medium": 16.0, "large": 18.0, "x-large": 24.0,
    "xx-large": 32.0, "xxx-large": 48.0,
}  # fmt: skip
_LENGTH = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([a-z%]*)", re.IGNORECASE)
_LENGTH_IN_MOVES = re.compile(r"-?[\d.]+(?:px|em|rem|vw|vh|%)")
_VARIABLE = re.compile(r"var\(\s*(--[\w-]+)\s*(?:,([^()]*))?\)")
_MAX_SUBSTITUTIONS = 20
_FONT = re.compile(r"(?:^|\s)((?:[\d.]+[a-z%]*|xx?-small|small|medium|x?x?-?large))\s*(?:/|\s|$)")
_FUNCTION = re.compile(r"(rgba?|hsla?)\(([^()]*)\)", re.IGNORECASE)
_UNSEEN_TAGS = frozenset({"noscript", "template", "datalist", "audio", "video", "canvas"})
_HIDING_ATTRIBUTES = ("hidden", "popover")
_TRANSPARENT = (0, 0, 0, 0.0)
_UNKNOWN = (-1, -1, -1)  # a picture, or a colour that is not understood


@dataclass(frozen=True, slots=True)
class Appearance:
    """How the text of an element looks; what is ``gone`` no child can show again.

    ``hider`` is the outermost element that hides the text, ``unspoken`` the outermost that is hidden from
    screen readers alone.
    """

    gone: bool = False
    is_invisible: bool = False
    font_px: float = _ROOT_FONT_PX
    colour: Colour = BLACK
    is_transparent: bool = False
    background: Colour = WHITE
    opacity: float = 1.0
    is_indented_away: bool = False
    hider: Any = None
    unspoken: Any = None
    is_hidden: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)


def look_at(element: Any, styles: Mapping[str, str], around: Appearance) -> Appearance:
    """Return the look of an element in what is around it; ``styles`` are the values that hold for it."""
    values = dict(styles)
    own = {name: value for name, value in values.items() if name.startswith("--")}
    variables = {**around.variables, **own} if own else around.variables
    values = {
        name: _substitute(value, variables).lower() for name, value in values.items() if name not in own
    }
    found = replace(
        around,
        variables=variables,
        gone=around.gone or _is_gone(element, values),
        is_invisible=_read_visibility(values, around),
        font_px=_read_font(element, values, around.font_px),
        opacity=around.opacity * _read_opacity(values),
        is_indented_away=_is_far(values["text-indent"])
        if "text-indent" in values
        else around.is_indented_away,
    )
    found = _colour(element, values, found)
    is_hidden, hider, unspoken = _is_hidden(found), None, around.unspoken
    if is_hidden:
        hider = around.hider if around.is_hidden else element
    if unspoken is None and element.get("aria-hidden") == "true":
        unspoken = element
    return replace(found, is_hidden=is_hidden, hider=hider, unspoken=unspoken)


def _is_hidden(look: Appearance) -> bool:
    return (
        look.gone
        or look.is_invisible
        or look.is_transparent
        or look.is_indented_away
        or look.font_px < _MIN_FONT_PX
        or look.opacity < _MIN_OPACITY
        or (look.background != _UNKNOWN and is_too_faint(look.colour, look.background))
    )


def _substitute(value: str, variables: Mapping[str, str]) -> str:
    for _ in range(_MAX_SUBSTITUTIONS):
        found = _VARIABLE.search(value)
        if not found:
            break
        said = variables.get(found[1], found[2] or "")
        value = f"{value[: found.start()]}{said[:200]}{value[found.end() :]}"
    return value


def _is_gone(element: Any, values: Mapping[str, str]) -> bool:
    tag, display = local_name(element).lower(), values.get("display", "")
    if tag in _UNSEEN_TAGS or display == "none" or values.get("content-visibility") == "hidden":
        return True
    is_closed = tag == "dialog" and element.get("open") is None
    if not display and (is_closed or any(element.get(each) is not None for each in _HIDING_ATTRIBUTES)):
        return True
    return _is_off_screen(values) or _is_clipped(values)


def _read_visibility(values: Mapping[str, str], look: Appearance) -> bool:
    said = values.get("visibility", "inherit")
    if said in ("inherit", "unset", ""):
        return look.is_invisible
    return said in ("hidden", "collapse")


def _read_opacity(values: Mapping[str, str]) -> float:
    said = values.get("opacity", "1")
    by_filter = re.search(r"opacity\(\s*([\d.]+%?)|alpha\(\s*opacity\s*=\s*(\d+)", values.get("filter", ""))
    shares = [_share(said)]
    if by_filter:
        shares.append(_share(by_filter[1] or f"{by_filter[2]}%"))
    return min(shares)


def _share(text: str) -> float:
    found = _LENGTH.match(text.strip())
    if not found:
        return 1.0
    number = float(found[1])
    return max(0.0, number / 100 if found[2] == "%" else number)


def _read_font(element: Any, values: Mapping[str, str], around: float) -> float:
    if "font-size" in values:
        return _font_px(values["font-size"], around)
    if "font" in values:
        found = re.search(
            r"(?:^|\s)((?:[\d.]+[a-z%]*|xx?-small|small|medium|x?x?-?large))\s*(?:/|\s|$)", values["font"]
        )
        if found:
            return _font_px(found[1], around)
        return around
    if local_name(element).lower() in ("h1", "h2", "h3"):
        return around * 1.2
    return around


def _font_px(said: str, around: float) -> float:
    if said in _FONT_WORDS:
        return _FONT_WORDS[said]
    if said in ("smaller", "larger"):
        return around * (5 / 6 if said == "smaller" else 1.2)
    length = _read_length(said, around, around)
    return around if length is None else length


def _read_length(said: str, em: float, whole: float) -> float | None:
    """Return a length in pixels; None without one. Of a sum, the one furthest from nothing.

    ``em`` is the size of the font, ``whole`` what a hundred percent are.
    """
    found = [_as_px(number, unit.lower(), em, whole) for number, unit in _LENGTH.findall(said)]
    known = [each for each in found if each is not None]
    if known:
        return max(known, key=abs)
    return None


def _as_px(number: str, unit: str, em: float, whole: float) -> float | None:
    px = {"": 1.0, "em": em, "%": whole / 100, **_PX_PER_UNIT}.get(unit)
    if px is None:
        return None
    return float(number) * px


def _is_far(said: str) -> bool:
    """Tell whether a place is before the beginning of the window, further than anything reaches."""
    length = _read_length(said, _ROOT_FONT_PX, _WINDOW_PX)
    return length is not None and (length <= -_FAR_PX or length >= _FAR_AHEAD_PX)


def _is_off_screen(values: Mapping[str, str]) -> bool:
    places = [values.get(name, "") for name in ("margin", "margin-left", "margin-top")]
    if values.get("position", "static") != "static":
        places += [values.get(name, "") for name in ("left", "right", "top", "bottom", "inset")]
    if any(_is_far(each) for text in places for each in text.split()):
        return True
    moves = f"{values.get('transform', '')} {values.get('translate', '')}"
    if any(_is_far(each) for each in _LENGTH_IN_MOVES.findall(moves)):
        return True
    sizes = re.findall(r"scale[xy3d]*\(([^()]*)\)", values.get("transform", ""))
    sizes += [values["scale"]] if "scale" in values else []
    return any(abs(float(number)) < _MIN_OPACITY for each in sizes for number, _ in _LENGTH.findall(each)[:2])


def _is_clipped(values: Mapping[str, str]) -> bool:
    clip = re.match(r"rect\(([^()]*)\)", values.get("clip", ""))
    if clip and all(abs(float(number)) <= _MAX_CLIPPED_PX for number, _ in _LENGTH.findall(clip[1])):
        return "auto" not in clip[1]
    if _is_clipped_by_path(values.get("clip-path", "")):
        return True
    overflows = [values.get(name, "") for name in ("overflow", "overflow-x", "overflow-y")]
    if not any(each in text for text in overflows for each in ("hidden", "clip", "scroll", "auto")):
        return False
    sizes = [values[name] for name in ("width", "height", "max-width", "max-height") if name in values]
    lengths = [
        _read_length(each, _ROOT_FONT_PX, _WINDOW_PX)
        for each in sizes
        if each[:1].isdigit() or each[:1] == "."
    ]
    return any(each is not None and each <= _MAX_CLIPPED_PX for each in lengths)


def _is_clipped_by_path(path: str) -> bool:
    kind, _, rest = path.partition("(")
    numbers = _LENGTH.findall(rest)
    if kind.strip() == "inset":
        return any(unit == "%" and float(number) >= _HALF_PERCENT for number, unit in numbers)
    if kind.strip() in ("circle", "ellipse"):
        return bool(numbers) and float(numbers[0][0]) == 0
    return kind.strip() == "polygon" and bool(numbers) and all(float(number) == 0 for number, _ in numbers)


def _colour(element: Any, values: Mapping[str, str], look: Appearance) -> Appearance:
    background = _read_background(element, values, look.background)
    said = values.get("-webkit-text-fill-color") or values.get("color") or ""
    if not said:
        said = element.get("text" if local_name(element).lower() == "body" else "color") or ""
    if not said or said in ("inherit", "unset", "currentcolor", "initial", "revert"):
        return replace(look, background=background)
    found = _read_colour(said)
    if found is None:
        return replace(look, background=background)
    shade = _blend(found, background)
    return replace(look, background=background, colour=shade, is_transparent=found[3] < _MIN_OPACITY)


def _read_background(element: Any, values: Mapping[str, str], around: Colour) -> Colour:
    said = values.get("background-color") or values.get("background") or element.get("bgcolor") or ""
    pictures = f"{values.get('background', '')} {values.get('background-image', '')}"
    if "url(" in pictures or "gradient(" in pictures or element.get("background"):
        return _UNKNOWN
    if not said or said in ("inherit", "unset", "none", "initial"):
        return around
    found = _read_colour(said)
    if found is None:
        words = [each for each in re.split(r"\s+(?![^()]*\))", said) if _read_colour(each) is not None]
        found = _read_colour(words[0]) if words else _TRANSPARENT
    if found is None or (around == _UNKNOWN and found[3] < 1):
        return around
    return _blend(found, around)


def _read_colour(said: str) -> tuple[int, int, int, float] | None:
    """Return red, green, blue and how much of it is there."""
    said = said.strip().lower()
    if said == "transparent":
        return _TRANSPARENT
    function, share = _FUNCTION.fullmatch(said), 1.0
    if function:
        numbers = re.findall(r"[+-]?[\d.]+(?:%|deg)?", function[2])
        if len(numbers) >= _WITH_SHARE:
            share = _share(numbers[_WITH_SHARE - 1])
        separator = ",".join(number.removesuffix("deg") for number in numbers[:3])
        if function[1].startswith("rgb") and "%" not in separator:
            levels = [min(255, max(0, round(float(number)))) for number in separator.split(",") if number]
            if len(levels) < _WITH_SHARE - 1:
                return None
            return levels[0], levels[1], levels[2], share
        said = f"{function[1][:3]}({separator})"
    try:
        found = ImageColor.getrgb(said)
    except ValueError:
        bare = f"#{said}"  # old attributes
        if not re.fullmatch("[0-9a-f]{6}", said):
            return None
        found = ImageColor.getrgb(bare)
    if len(found) == _WITH_SHARE:
        share = found[_WITH_SHARE - 1] / 255
    return found[0], found[1], found[2], share


def _blend(colour: tuple[int, int, int, float], under: Colour) -> Colour:
    if under == _UNKNOWN:
        return colour[:3]
    share = min(1.0, colour[3])
    red, green, blue = (
        round(above * share + below * (1 - share)) for above, below in zip(colour[:3], under, strict=True)
    )
    return red, green, blue
