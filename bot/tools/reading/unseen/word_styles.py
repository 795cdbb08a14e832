"""Text of Word documents that people who open them don't see: by its own form, its style or its place."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bot.tools.reading.markup import attribute, local_name, parse_xml
from bot.tools.reading.packed import Package
from bot.tools.reading.report import Report
from bot.tools.reading.unseen.colours import WHITE, Colour, is_too_faint

_MAX_BASES = 20  # styles that a style builds on
_MIN_HALF_POINTS = 6
_MIN_WIDTH_PERCENT = 10
_MIN_LINE_TWIPS = 60
_FAR_TWIPS = 5_000  # from where a paragraph would stand
_FAR_EMU = 3_000_000
_OFF = ("0", "false", "off")
_LIGHT_THEMES = frozenset({"background1", "light1", "bg1", "lt1"})
_HEX = re.compile("[0-9a-fA-F]{6}")
_SHOWN = frozenset({"vanish", "specVanish", "color", "sz", "w", "shd", "highlight"})
_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of a piece of text by the names of its elements."""

    said: Mapping[str, Any]

    @property
    def is_hidden(self) -> bool:
        return any(
            name in self.said and attribute(self.said[name], "val") not in _OFF
            for name in ("vanish", "specVanish")
        )

    @property
    def is_tiny(self) -> bool:
        return any(
            0 < _number(self.said.get(name)) < least
            for name, least in (("sz", _MIN_HALF_POINTS), ("w", _MIN_WIDTH_PERCENT))
        )

    @property
    def colour(self) -> Colour | None:
        """The colour of the letters where it is stated."""
        element = self.said.get("color")
        if element is None:
            return None
        if attribute(element, "themeColor") in _LIGHT_THEMES and not attribute(element, "themeShade"):
            return WHITE
        return _read_hex(attribute(element, "val"))


class TextStyles:
    """The forms that a document's styles give to text."""

    def __init__(self, package: Package, main: str) -> None:
        styles = (target for kind, target in package.relations(main).values() if kind == "styles")
        data = package.read(next(styles, ""))
        found = parse_xml(data) if data else ()
        self._styles = {attribute(each, "styleId"): each for each in found if local_name(each) == "style"}
        self._known: dict[str, dict[str, Any]] = {}

    def form_of(self, run: Any) -> _Form:
        """Return what a piece of text looks like: its paragraph's style, its own style, then its own form."""
        said: dict[str, Any] = {}
        paragraph = _above(run, "p")
        if paragraph is not None:
            said |= self._find(_style_of(paragraph, "pPr", "pStyle"))
        said |= self._find(_style_of(run, "rPr", "rStyle"))
        for form in _children(run, "rPr"):
            said |= _list_forms(form)
        return _Form(said)

    def _find(self, name: str) -> dict[str, Any]:
        if name not in self._known:
            self._known[name] = {}
            for style in reversed(list(self._list_bases(name))):
                for form in _children(style, "rPr"):
                    self._known[name] |= _list_forms(form)
        return self._known[name]

    def _list_bases(self, name: str) -> Iterator[Any]:
        for _ in range(_MAX_BASES):
            style = self._styles.get(name)
            if style is None:
                return
            yield style
            name = next((attribute(each, "val") for each in _children(style, "basedOn")), "")


def remove_hidden(tree: Any, styles: TextStyles, report: Report) -> None:
    """Take out hidden text and rows; count what is too faint, too small or too far away to be seen."""
    for row in [each for each in tree.iter() if local_name(each) == "tr"]:
        if any(local_name(each) == "hidden" for form in _children(row, "trPr") for each in form):
            report.leave_out("hidden row")
            row.getparent().remove(row)
    for run in [each for each in tree.iter() if local_name(each) == "r"]:
        if not "".join(run.itertext()).strip():
            continue
        form = styles.form_of(run)
        if form.is_hidden:
            report.leave_out("piece of hidden text")
            run.getparent().remove(run)
        elif form.is_tiny or _is_squeezed(run):
            report.reveal("piece of tiny text")
        elif _is_off_page(run):
            report.reveal("piece of text off the page")
        elif form.colour is not None:
            _reveal_faint(run, form, form.colour, report)


def reveal_hidden_drawings(tree: Any, report: Report) -> None:
    """Count boxes of text that are hidden or stand off the page."""
    for drawing in [each for each in tree.iter() if local_name(each) in ("anchor", "inline")]:
        inside = list(drawing.iter())
        if not any(local_name(each) == "txbxContent" for each in inside):
            continue
        if any(local_name(each) == "docPr" and each.get("hidden") in ("1", "true") for each in inside):
            report.reveal("hidden text box")
        elif any(local_name(each) == "posOffset" and _is_far(each.text, _FAR_EMU) for each in inside):
            report.reveal("text box off the page")


def _reveal_faint(run: Any, form: _Form, colour: Colour, report: Report) -> None:
    under = _find_ground(run, form)
    if under is not None and is_too_faint(colour, under):
        report.reveal(
            "piece of white text" if colour == WHITE else "piece of text in the colour of its ground"
        )


def _find_ground(run: Any, form: _Form) -> Colour | None:
    """The colour under a piece of text; None where it is not known."""
    if "highlight" in form.said:
        return None
    shades = [form.said["shd"]] if "shd" in form.said else []
    for above in run.iterancestors():
        for properties in above:
            if local_name(properties) in ("pPr", "tcPr", "tblPr"):
                if any(local_name(each) == "tblStyle" for each in properties):
                    return None
                shades += _children(properties, "shd")
        if local_name(above) in ("document", "txbxContent"):
            if local_name(above) == "txbxContent" or any(local_name(each) == "background" for each in above):
                return _fill_of(shades)
            break
    return _fill_of(shades) or WHITE


def _fill_of(shades: list[Any]) -> Colour | None:
    fills = (_read_hex(attribute(each, "fill")) for each in shades)
    return next((each for each in fills if each is not None), None)


def _is_squeezed(run: Any) -> bool:
    return any(
        attribute(each, "lineRule") == "exact" and 0 <= _number(each, "line") < _MIN_LINE_TWIPS
        for each in _list_paragraph_forms(run, "spacing")
    )


def _is_off_page(run: Any) -> bool:
    frames = [attribute(each, name) for each in _list_paragraph_forms(run, "framePr") for name in ("x", "y")]
    indents = [
        attribute(each, name) for each in _list_paragraph_forms(run, "ind") for name in ("left", "start")
    ]
    return any(_is_far(each, _FAR_TWIPS) for each in (*frames, *indents))


def _is_far(stated: str | None, least: int) -> bool:
    found = re.fullmatch(r"-(\d{1,12})", (stated or "").strip())
    return found is not None and int(found[1]) >= least


def _list_paragraph_forms(run: Any, name: str) -> Iterator[Any]:
    paragraph = _above(run, "p")
    for form in _children(paragraph, "pPr") if paragraph is not None else ():
        yield from _children(form, name)


def _list_forms(form: Any) -> dict[str, Any]:
    return {local_name(each): each for each in form if local_name(each) in _SHOWN}


def _style_of(element: Any, form: str, kind: str) -> str:
    found = (each for properties in _children(element, form) for each in _children(properties, kind))
    return next((attribute(each, "val") for each in found), "")


def _children(element: Any, name: str) -> list[Any]:
    return [each for each in element if local_name(each) == name]


def _above(element: Any, name: str) -> Any:
    return next((each for each in element.iterancestors() if local_name(each) == name), None)


def _number(element: Any, name: str = "val") -> float:
    stated = "" if element is None else attribute(element, name)
    if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", stated):
        return float(stated)
    return -1.0


def _read_hex(stated: str) -> Colour | None:
    if not _HEX.fullmatch(stated):
        return None
    return int(stated[:2], 16), int(stated[2:4], 16), int(stated[4:], 16)
