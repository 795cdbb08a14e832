"""The conditions of a style sheet's at-rules (``@media``, ``@supports``), and its cascade layers.

A condition is judged for a wide window on a desk. Some can't be judged without the browser, such as
``@supports``. Rules below them are tried both ways: as if the condition held, and as if it didn't.
"""

import math
import re
from dataclasses import dataclass, field

_SCREEN_PX = 1_280  # the width of the window that is assumed
_EM_PX = 16
_MAX_LAYER_DEPTH = 20  # deeper layers count as the layer around them
_NAME = re.compile(r"@([\w-]+)")
_AND = re.compile(r"\) ?and ?\(| and ?\(|\) ?and ")
_LENGTH = r"([\d.]+)(px|em|rem)"
_WIDTH_BOUND = re.compile(rf"(min|max)-width\s*:\s*{_LENGTH}")  # "max-width: 600px"
# "width < 600px", "400px <= width", or both in one: "400px <= width <= 900px"
_WIDTH_RANGE = re.compile(rf"(?:{_LENGTH}\s*([<>]=?)\s*)?width(?:\s*([<>]=?)\s*{_LENGTH})?")
_MEDIA_TYPES = {"all": True, "screen": True, "print": False, "speech": False, "tty": False}
_FEATURES = {  # the value of each feature in such a window
    "prefers-color-scheme": "light", "prefers-reduced-motion": "no-preference", "orientation": "landscape",
    "prefers-reduced-transparency": "no-preference", "prefers-reduced-data": "no-preference",
    "hover": "hover", "any-hover": "hover", "pointer": "fine", "any-pointer": "fine",
}  # fmt: skip

LayerRank = tuple[float, ...]
"""The rank of a cascade layer: rules of a larger rank win, and rules outside layers win over all."""
UNLAYERED: LayerRank = (math.inf,)


@dataclass(slots=True)
class Layers:
    """The cascade layers of a page, which rank in the order in which their names first appear."""

    _places: dict[str, int] = field(default_factory=dict)

    def add(self, outer: str, name: str) -> str:
        """Add a layer inside the layer ``outer``, unless it is there, and return its full name.

        A layer without a name gets a unique one.
        """
        full_name = ".".join(filter(None, (outer, name.strip() or f"#{len(self._places)}")))
        path = full_name.split(".", _MAX_LAYER_DEPTH)[:_MAX_LAYER_DEPTH]
        for layer in _list_full_names(path):
            self._places.setdefault(layer, len(self._places))
        return ".".join(path)

    def rank(self, name: str) -> LayerRank:
        """Return the rank of the layer of this full name; an empty name stands for no layer."""
        if not name:
            return UNLAYERED
        places = [self._places[layer] for layer in _list_full_names(name.split("."))]
        return (*places, math.inf)  # what is directly in a layer wins over the layers inside it


def _list_full_names(path: list[str]) -> list[str]:
    """Return the full names of a layer and the layers around it: ``a``, ``a.b`` for the path of ``a.b``."""
    return [".".join(path[:length]) for length in range(1, len(path) + 1)]


def judge_at_rule(prelude: str) -> bool | None:
    """Tell if the condition of an at-rule holds; None if that can't be told."""
    match = _NAME.match(prelude)
    name = match[1].lower() if match else ""
    if name == "media":
        return judge_media(prelude[len("@media") :])
    if name == "layer":
        return True
    if name == "starting-style":
        return False
    return None


def judge_media(queries: str) -> bool | None:
    """Tell if one of these media queries holds, such as ``print, (min-width: 600px)``; None if unknown."""
    answers = [_judge_query(" ".join(query.lower().split())) for query in queries.split(",")]
    if True in answers:
        return True
    return None if None in answers else False


def _judge_query(query: str) -> bool | None:
    parts = _AND.split(query.removeprefix("only ").removeprefix("not "))
    answers = [_judge_part(part.strip(" ()")) for part in parts]
    is_met: bool | None = True
    if False in answers:
        is_met = False
    elif None in answers:
        is_met = None
    if query.startswith("not ") and is_met is not None:
        return not is_met
    return is_met


def _judge_part(part: str) -> bool | None:
    """Tell if a media type or a feature holds, such as ``screen`` or ``hover: hover``; None if unknown."""
    if not part:
        return True
    if part in _MEDIA_TYPES:
        return _MEDIA_TYPES[part]
    bound = _WIDTH_BOUND.fullmatch(part)
    if bound:
        operator = ">=" if bound[1] == "min" else "<="
        return _compare(_SCREEN_PX, operator, _read_px(bound[2], bound[3]))
    width_range = _WIDTH_RANGE.fullmatch(part)
    if width_range:
        lower, lower_unit, lower_operator, upper_operator, upper, upper_unit = width_range.groups()
        is_above = not lower or _compare(_read_px(lower, lower_unit), lower_operator, _SCREEN_PX)
        is_below = not upper or _compare(_SCREEN_PX, upper_operator, _read_px(upper, upper_unit))
        return is_above and is_below
    feature, _, value = part.partition(":")
    if feature.strip() in _FEATURES and value:
        return _FEATURES[feature.strip()] == value.strip()
    return None


def _read_px(number: str, unit: str) -> float:
    try:
        length = float(number)
    except ValueError:  # the pattern also takes "1.2.3"
        return 0.0
    return length if unit == "px" else length * _EM_PX


def _compare(left: float, operator: str, right: float) -> bool:
    match operator:
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
    return left >= right
