"""Text of a web page that people who open it do not see: by its style, its attributes or its element.

`find_appearance` computes the `Appearance` of an element from that of its parent and from the values of CSS
properties that hold for it (``style_sheets.py``). ``pages.py`` calls it for each element, from the root down.

Lengths are in CSS pixels. The checks are rough on purpose: a window of 1,280 pixels is assumed, and no layout
is computed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from PIL import ImageColor

from bot.tools.reading.markup import local_name
from bot.tools.reading.unseen.colours import BLACK, WHITE, Colour, is_too_faint

HIDING_PROPERTIES = frozenset({
    "display", "visibility", "content-visibility", "opacity", "filter", "font-size", "font", "color",
    "background", "background-color", "background-image", "-webkit-text-fill-color", "position", "left",
    "right", "top", "bottom", "inset", "margin", "margin-left", "margin-top", "text-indent", "transform",
    "scale", "translate", "clip", "clip-path", "width", "height", "max-width", "max-height", "overflow",
    "overflow-x", "overflow-y",
})  # fmt: skip
"""The properties that can hide text."""
_MIN_FONT_PX = 4.0
_MIN_OPACITY = 0.1
_FAR_PX = 300.0  # the distance before the left or upper edge of the window at which content counts as hidden
_FAR_AHEAD_PX = 5_000.0  # content this far to the right of the page, or below it, counts as hidden
_MAX_CLIPPED_PX = 2.0  # a box of at most this size shows nothing that can be read
_ROOT_FONT_PX = 16.0
_WINDOW_PX = 1_280.0
_HALF_PERCENT = 50.0  # an inset of this share on both sides leaves nothing
_MAX_LEVEL = 255  # of red, green or blue
_COLOUR_PARTS = 3  # red, green and blue; a fourth number is the opacity
_HEADING_SCALE = 1.2  # the font of a heading, compared with the font around it
_SMALLER_SCALE = 5 / 6  # the font size "smaller", compared with the parent's
_LARGER_SCALE = 1.2
_MIN_SCALE = 0.1  # the smallest scale at which a person sees an element
_PX_PER_UNIT = {
    "px": 1.0, "pt": 4 / 3, "pc": 16.0, "in": 96.0, "cm": 37.8, "mm": 3.78, "q": 0.945, "rem": 16.0,
    "vw": 12.8, "vh": 7.2, "ex": 8.0, "ch": 8.0,
}  # fmt: skip
_FONT_WORDS = {
    "xx-small": 9.0, "x-small": 10.0, "small": 13.0, "medium": 16.0, "large": 18.0, "x-large": 24.0,
    "xx-large": 32.0, "xxx-large": 48.0,
}  # fmt: skip
_LENGTH = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([a-z%]*)", re.IGNORECASE)  # "-1.5em", "0"
_LENGTH_IN_MOVES = re.compile(r"-?[\d.]+(?:px|em|rem|vw|vh|%)")  # "-9999px" in "translate(-9999px, 0)"
_VARIABLE = re.compile(r"var\(\s*(--[\w-]+)\s*(?:,([^()]*))?\)")  # "var(--ink, black)"
_MAX_SUBSTITUTIONS = 20
_MAX_VARIABLE_CHARS = 200  # of a variable's value
_FONT_SIZE = re.compile(r"(?:^|\s)((?:[\d.]+[a-z%]*|xx?-small|small|medium|x?x?-?large))\s*(?:/|\s|$)")
"""The size in the property ``font``, which also has a style, a weight and the names of fonts."""
_NUMBER_IN_COLOUR = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:%|deg)?")  # "50%", "120deg"
_FUNCTION = re.compile(r"(rgba?|hsla?)\(([^()]*)\)", re.IGNORECASE)  # "rgb(0 0 0 / 50%)"
_UNSEEN_TAGS = frozenset({"noscript", "template", "datalist", "audio", "video", "canvas"})
_HIDING_ATTRIBUTES = ("hidden", "popover")
_UNKNOWN_BACKGROUND: Colour = (-1, -1, -1)
"""Stands for a background of a picture or a gradient. No text counts as too faint on it."""
_INHERITED = ("inherit", "unset", "")


class _StatedColour(NamedTuple):
    """A colour as a style states it."""

    levels: Colour
    opacity: float  # 0 is transparent, 1 is opaque


_TRANSPARENT = _StatedColour((0, 0, 0), 0.0)


@dataclass(frozen=True, slots=True)
class Appearance:
    """The appearance of an element's text."""

    is_removed: bool = False
    """True if the element takes no part in the page; then no element inside it does."""
    is_invisible: bool = False
    """True if ``visibility`` hides the element; an element inside it may be visible all the same."""
    font_px: float = _ROOT_FONT_PX
    colour: Colour = BLACK
    is_transparent: bool = False
    background: Colour = WHITE
    opacity: float = 1.0
    is_indented_away: bool = False
    """True if ``text-indent`` moves the text off the window."""
    hiding_element: Any = None
    """The outermost element that hides the text; None if people see it."""
    screen_reader_hiding_element: Any = None
    """The outermost element that hides the text from screen readers; None if they read it."""
    is_unseen: bool = False
    """True if people do not see the text, for any of these reasons."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """The values of CSS variables by name ("--ink")."""


def find_appearance(element: Any, styles: Mapping[str, str], parent: Appearance) -> Appearance:
    """Return the appearance of an element's text.

    ``styles``: the values that hold for the element, by property. ``parent``: the appearance of its parent.
    """
    own_variables = {name: value for name, value in styles.items() if name.startswith("--")}
    variables = {**parent.variables, **own_variables} if own_variables else parent.variables
    values = {
        name: _substitute(value, variables).lower()
        for name, value in styles.items()
        if name not in own_variables
    }
    is_indented_away = parent.is_indented_away
    if values.get("text-indent", "") not in _INHERITED:
        is_indented_away = _is_far(values["text-indent"])
    appearance = replace(
        parent,
        variables=variables,
        is_removed=parent.is_removed or _is_removed(element, values),
        is_invisible=_is_invisible(values, parent),
        font_px=_read_font(element, values, parent.font_px),
        opacity=parent.opacity * _read_opacity(values),
        is_indented_away=is_indented_away,
    )
    appearance = _apply_colours(element, values, appearance)
    is_hidden = _is_hidden(appearance)
    hiding_element = None
    if is_hidden:
        hiding_element = parent.hiding_element if parent.is_unseen else element
    screen_reader_hiding_element = parent.screen_reader_hiding_element
    if screen_reader_hiding_element is None and element.get("aria-hidden") == "true":
        screen_reader_hiding_element = element
    return replace(
        appearance,
        is_unseen=is_hidden,
        hiding_element=hiding_element,
        screen_reader_hiding_element=screen_reader_hiding_element,
    )


def _is_hidden(appearance: Appearance) -> bool:
    has_known_background = appearance.background != _UNKNOWN_BACKGROUND
    is_faint = has_known_background and is_too_faint(appearance.colour, appearance.background)
    reasons = (
        appearance.is_removed,
        appearance.is_invisible,
        appearance.is_transparent,
        appearance.is_indented_away,
        appearance.font_px < _MIN_FONT_PX,
        appearance.opacity < _MIN_OPACITY,
        is_faint,
    )
    return any(reasons)


def _substitute(value: str, variables: Mapping[str, str]) -> str:
    """Replace each ``var(--name, default)`` by its value."""
    for _ in range(_MAX_SUBSTITUTIONS):
        match = _VARIABLE.search(value)
        if not match:
            break
        text = variables.get(match[1], match[2] or "")
        value = f"{value[: match.start()]}{text[:_MAX_VARIABLE_CHARS]}{value[match.end() :]}"
    return value


def _is_removed(element: Any, values: Mapping[str, str]) -> bool:
    """Tell if an element shows nothing: by its tag, an attribute, ``display``, its place or its size."""
    tag = local_name(element).lower()
    display = values.get("display", "")
    if tag in _UNSEEN_TAGS or display == "none" or values.get("content-visibility") == "hidden":
        return True
    if not display:  # any other value would show the element again
        is_closed_dialog = tag == "dialog" and element.get("open") is None
        if is_closed_dialog or any(element.get(name) is not None for name in _HIDING_ATTRIBUTES):
            return True
    return _is_off_screen(values) or _is_clipped(values)


def _is_invisible(values: Mapping[str, str], parent: Appearance) -> bool:
    """Tell if the text is invisible by ``visibility``."""
    value = values.get("visibility", "inherit")
    if value in _INHERITED:
        return parent.is_invisible
    return value in ("hidden", "collapse")


def _read_opacity(values: Mapping[str, str]) -> float:
    """Return the smaller of the opacities that ``opacity`` and ``filter`` state; 1 without one."""
    opacity = _read_share(values.get("opacity", "1"))
    by_filter = re.search(r"opacity\(\s*([\d.]+%?)|alpha\(\s*opacity\s*=\s*(\d+)", values.get("filter", ""))
    if by_filter:
        opacity = min(opacity, _read_share(by_filter[1] or f"{by_filter[2]}%"))
    return opacity


def _read_share(text: str) -> float:
    """Return a number or a percentage, such as 0.5 or 50%; 1 for anything else."""
    match = _LENGTH.match(text.strip())
    if not match:
        return 1.0
    number = float(match[1])
    if match[2] == "%":
        number /= 100
    return max(0.0, number)


def _read_font(element: Any, values: Mapping[str, str], parent_px: float) -> float:
    """Return the size of an element's font in pixels."""
    if "font-size" in values:
        return _read_font_size(values["font-size"], parent_px)
    if "font" in values:
        match = _FONT_SIZE.search(values["font"])
        if match:
            return _read_font_size(match[1], parent_px)
        return parent_px
    if local_name(element).lower() in ("h1", "h2", "h3"):
        return parent_px * _HEADING_SCALE
    return parent_px


def _read_font_size(size: str, parent_px: float) -> float:
    if size in _FONT_WORDS:
        return _FONT_WORDS[size]
    if size == "smaller":
        return parent_px * _SMALLER_SCALE
    if size == "larger":
        return parent_px * _LARGER_SCALE
    length = _read_length(size, parent_px, parent_px)
    return parent_px if length is None else length


def _read_length(text: str, em: float, hundred_percent: float) -> float | None:
    """Return a length in pixels; None without one. A ``calc()`` counts as its length furthest from zero.

    ``em``: the size of the font in pixels. ``hundred_percent``: the pixels that 100% stands for.
    """
    px_per_unit = {"": 1.0, "em": em, "%": hundred_percent / 100, **_PX_PER_UNIT}
    lengths = []
    for number, unit in _LENGTH.findall(text):
        if unit.lower() in px_per_unit:
            lengths.append(float(number) * px_per_unit[unit.lower()])
    return max(lengths, key=abs, default=None)


def _is_far(place: str) -> bool:
    """Tell if a length moves content so far off the window that no one sees it."""
    length = _read_length(place, _ROOT_FONT_PX, _WINDOW_PX)
    return length is not None and (length <= -_FAR_PX or length >= _FAR_AHEAD_PX)


def _is_off_screen(values: Mapping[str, str]) -> bool:
    """Tell if an element is moved off the screen, or scaled to nothing."""
    names = ["margin", "margin-left", "margin-top"]
    if values.get("position", "static") != "static":
        names += ["left", "right", "top", "bottom", "inset"]
    for name in names:
        if any(map(_is_far, values.get(name, "").split())):
            return True

    moves = f"{values.get('transform', '')} {values.get('translate', '')}"
    if any(map(_is_far, _LENGTH_IN_MOVES.findall(moves))):
        return True

    scales = re.findall(r"scale[xy3d]*\(([^()]*)\)", values.get("transform", ""))
    if "scale" in values:
        scales.append(values["scale"])
    for scale in scales:
        if any(abs(float(number)) < _MIN_SCALE for number, _ in _LENGTH.findall(scale)[:2]):
            return True
    return False


def _is_clipped(values: Mapping[str, str]) -> bool:
    """Tell if ``clip``, ``clip-path`` or a tiny box hides all of an element."""
    clip = re.match(r"rect\(([^()]*)\)", values.get("clip", ""))
    if clip and "auto" not in clip[1]:  # an edge of "auto" clips nothing at that side
        edges = [abs(float(number)) for number, _ in _LENGTH.findall(clip[1])]
        if all(edge <= _MAX_CLIPPED_PX for edge in edges):
            return True
    if _is_clipped_by_path(values.get("clip-path", "")):
        return True
    overflow = " ".join(values.get(name, "") for name in ("overflow", "overflow-x", "overflow-y"))
    if not any(word in overflow for word in ("hidden", "clip", "scroll", "auto")):
        return False
    for name in ("width", "height", "max-width", "max-height"):
        size = values.get(name, "")
        if not size[:1].isdigit() and not size.startswith("."):
            continue  # a word, a function, or no size
        length = _read_length(size, _ROOT_FONT_PX, _WINDOW_PX)
        if length is not None and length <= _MAX_CLIPPED_PX:
            return True
    return False


def _is_clipped_by_path(path: str) -> bool:
    function, _, arguments = path.partition("(")
    numbers = _LENGTH.findall(arguments)
    if not numbers:
        return False
    match function.strip():
        case "inset":
            return any(unit == "%" and float(number) >= _HALF_PERCENT for number, unit in numbers)
        case "circle" | "ellipse":
            radius, _ = numbers[0]
            return float(radius) == 0
        case "polygon":
            return all(float(number) == 0 for number, _ in numbers)
    return False


def _apply_colours(element: Any, values: Mapping[str, str], appearance: Appearance) -> Appearance:
    """Return the appearance with the element's own background and text colour."""
    appearance = replace(appearance, background=_read_background(element, values, appearance.background))
    stated = values.get("-webkit-text-fill-color") or values.get("color") or ""
    if not stated:
        attribute = "text" if local_name(element).lower() == "body" else "color"
        stated = element.get(attribute) or ""
    if not stated or stated in ("inherit", "unset", "currentcolor", "initial", "revert"):
        return appearance
    colour = _read_colour(stated)
    if colour is None:
        return appearance
    is_transparent = colour.opacity < _MIN_OPACITY
    return replace(appearance, colour=_blend(colour, appearance.background), is_transparent=is_transparent)


def _read_background(element: Any, values: Mapping[str, str], parent: Colour) -> Colour:
    """Return the colour behind the text; `_UNKNOWN_BACKGROUND` for a picture.

    ``parent``: the background of the element's parent.
    """
    pictures = f"{values.get('background', '')} {values.get('background-image', '')}"
    if "url(" in pictures or "gradient(" in pictures or element.get("background"):
        return _UNKNOWN_BACKGROUND
    stated = values.get("background-color") or values.get("background") or element.get("bgcolor") or ""
    if not stated or stated in ("inherit", "unset", "none", "initial"):
        return parent
    colour = _find_colour(stated)
    if parent == _UNKNOWN_BACKGROUND and colour.opacity < 1:  # the picture can be seen through the colour
        return parent
    return _blend(colour, parent)


def _find_colour(background: str) -> _StatedColour:
    """Return the colour in a value of ``background``, which may have other words; else `_TRANSPARENT`."""
    colour = _read_colour(background)
    if colour is not None:
        return colour
    for word in re.split(r"\s+(?![^()]*\))", background):  # at white space outside brackets
        colour = _read_colour(word)
        if colour is not None:
            return colour
    return _TRANSPARENT


def _read_colour(text: str) -> _StatedColour | None:
    """Return a colour that CSS or an old attribute states; None for a text that is no colour."""
    text = text.strip().lower()
    if text == "transparent":
        return _TRANSPARENT
    function = _FUNCTION.fullmatch(text)
    if function:
        return _read_colour_function(function[1], function[2])
    try:
        colour = ImageColor.getrgb(text)
    except ValueError:
        if not re.fullmatch("[0-9a-f]{6}", text):  # without "#", as in old attributes
            return None
        colour = ImageColor.getrgb(f"#{text}")
    opacity = colour[_COLOUR_PARTS] / _MAX_LEVEL if len(colour) > _COLOUR_PARTS else 1.0
    return _StatedColour((colour[0], colour[1], colour[2]), opacity)


def _read_colour_function(name: str, arguments: str) -> _StatedColour | None:
    """Return the colour of ``rgb()``, ``hsl()`` and the like; None if it is invalid."""
    numbers = re.split(r"[\s,/]+", arguments.strip())
    if not all(_NUMBER_IN_COLOUR.fullmatch(number) for number in numbers):
        return None
    opacity = _read_share(numbers[_COLOUR_PARTS]) if len(numbers) > _COLOUR_PARTS else 1.0
    parts = [number.removesuffix("deg") for number in numbers[:_COLOUR_PARTS]]
    has_percentages = any("%" in part for part in parts)
    if name.startswith("rgb") and not has_percentages:
        if len(parts) < _COLOUR_PARTS:
            return None
        red, green, blue = (round(min(_MAX_LEVEL, max(0, float(part)))) for part in parts)
        return _StatedColour((red, green, blue), opacity)
    try:
        # Pillow knows neither rgba() nor spaces between the numbers
        colour = ImageColor.getrgb(f"{name[:3]}({','.join(parts)})")
    except ValueError:
        return None
    return _StatedColour((colour[0], colour[1], colour[2]), opacity)


def _blend(colour: _StatedColour, under: Colour) -> Colour:
    """Return the colour that people see where a colour lies over another; over a picture it is unchanged."""
    if under == _UNKNOWN_BACKGROUND:
        return colour.levels
    opacity = min(1.0, colour.opacity)
    red, green, blue = (
        round(above * opacity + below * (1 - opacity))
        for above, below in zip(colour.levels, under, strict=True)
    )
    return red, green, blue
