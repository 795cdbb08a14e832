"""Text of Word documents that people who open them don't see: by its format, its style or its place.

`remove_hidden` removes text that is marked as hidden, and counts text that is merely hard to see: it stays in
the text that is read. `TextStyles` finds the format of a run by the document's styles.

Names such as ``vanish`` or ``rPr`` are those of WordprocessingML (ECMA-376). A run (``r``) is a piece of text
in one format; its properties are in ``rPr``, those of a paragraph (``p``) in ``pPr``.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bot.tools.reading.markup import (
    find_all,
    find_ancestor,
    find_child,
    find_children,
    local_name,
    parse_xml,
    read_attribute,
)
from bot.tools.reading.report import Report
from bot.tools.reading.unseen.colours import WHITE, Colour, is_too_faint
from bot.tools.reading.zip_package import Package

_MAX_BASES = 20  # styles that a style builds on
_MIN_HALF_POINTS = 6  # the smallest readable size of letters; Word states it in half points
_MIN_WIDTH_PERCENT = 10  # the smallest readable width of letters, of their usual width
_MIN_LINE_TWIPS = 60  # the smallest readable height of a line; a twip is a twentieth of a point
_FAR_TWIPS = 5_000  # a paragraph that is moved this far to the left or up is off the page
_FAR_EMU = 3_000_000  # a box this far away is off the page; 914,400 are an inch
_OFF = ("0", "false", "off")
_LIGHT_THEMES = frozenset({"background1", "light1", "bg1", "lt1"})
_HEX = re.compile("[0-9a-fA-F]{6}")
_PROPERTIES = frozenset({"vanish", "specVanish", "color", "sz", "w", "shd", "highlight"})
"""The properties of a run that decide if it is seen."""


@dataclass(frozen=True, slots=True)
class _Format:
    """The format of a run: the elements of its properties, by name."""

    properties: Mapping[str, Any]

    @property
    def is_hidden(self) -> bool:
        for name in ("vanish", "specVanish"):
            if name in self.properties and read_attribute(self.properties[name], "val") not in _OFF:
                return True
        return False

    @property
    def is_tiny(self) -> bool:
        # a size or width of 0 counts as not stated: LibreOffice shows such letters in its usual size
        half_points = _read_number(self.properties.get("sz"), "val")
        if half_points is not None and 0 < half_points < _MIN_HALF_POINTS:
            return True
        width_percent = _read_number(self.properties.get("w"), "val")
        return width_percent is not None and 0 < width_percent < _MIN_WIDTH_PERCENT

    @property
    def colour(self) -> Colour | None:
        """The colour of the letters; None if it is not stated."""
        element = self.properties.get("color")
        if element is None:
            return None
        if read_attribute(element, "themeColor") in _LIGHT_THEMES and not read_attribute(
            element, "themeShade"
        ):
            return WHITE
        return _read_hex(read_attribute(element, "val"))


class TextStyles:
    """The formats that a document's styles give to text."""

    def __init__(self, package: Package, main: str) -> None:
        self._styles: dict[str, Any] = {}
        self._formats: dict[str, dict[str, Any]] = {}  # a cache of the formats, by the style's id
        for kind, part in package.relations(main).values():
            data = package.read(part) if kind == "styles" else b""
            if data:
                for style in find_children(parse_xml(data), "style"):
                    self._styles[read_attribute(style, "styleId")] = style
                break

    def find_format(self, run: Any) -> _Format:
        """Return the format of a run. Its own properties count most, then its style, then its paragraph's."""
        properties: dict[str, Any] = {}
        paragraph = find_ancestor(run, "p")
        if paragraph is not None:
            properties |= self._find_properties(_read_style_id(paragraph, "pPr", "pStyle"))
        properties |= self._find_properties(_read_style_id(run, "rPr", "rStyle"))
        return _Format(properties | _read_properties(run))

    def _find_properties(self, style_id: str) -> dict[str, Any]:
        """Return the properties that a style gives to runs, including the styles that it builds on."""
        if style_id not in self._formats:
            properties: dict[str, Any] = {}
            for style in reversed(list(self._list_bases(style_id))):
                properties |= _read_properties(style)
            self._formats[style_id] = properties
        return self._formats[style_id]

    def _list_bases(self, style_id: str) -> Iterator[Any]:
        """Yield a style, then the style that it builds on, and so on."""
        for _ in range(_MAX_BASES):
            style = self._styles.get(style_id)
            if style is None:
                return
            yield style
            base = find_child(style, "basedOn")
            style_id = "" if base is None else read_attribute(base, "val")


def remove_hidden(tree: Any, styles: TextStyles, report: Report) -> None:
    """Remove hidden text and rows; count text that is too faint, too small or too far away to be seen."""
    for row in find_all(tree, "tr"):
        if any(find_child(properties, "hidden") is not None for properties in find_children(row, "trPr")):
            report.count_left_out("hidden row")
            row.getparent().remove(row)
    for run in find_all(tree, "r"):
        if not "".join(run.itertext()).strip():
            continue
        run_format = styles.find_format(run)
        if run_format.is_hidden:
            report.count_left_out("piece of hidden text")
            run.getparent().remove(run)
        elif run_format.is_tiny or _is_squeezed(run):
            report.count_hidden("piece of tiny text")
        elif _is_off_page(run):
            report.count_hidden("piece of text off the page")
        elif run_format.colour is not None:
            _report_faint(run, run_format, run_format.colour, report)


def report_hidden_drawings(tree: Any, report: Report) -> None:
    """Count boxes of text that are hidden or off the page."""
    for drawing in find_all(tree, "anchor", "inline"):
        if not find_all(drawing, "txbxContent"):
            continue
        if any(properties.get("hidden") in ("1", "true") for properties in find_all(drawing, "docPr")):
            report.count_hidden("hidden text box")
        elif any(_is_far(offset.text, _FAR_EMU) for offset in find_all(drawing, "posOffset")):
            report.count_hidden("text box off the page")


def _report_faint(run: Any, run_format: _Format, colour: Colour, report: Report) -> None:
    background = _find_background(run, run_format)
    if background is None or not is_too_faint(colour, background):
        return
    if colour == WHITE:
        report.count_hidden("piece of white text")
    else:
        report.count_hidden("piece of text in the colour of its ground")


def _find_background(run: Any, run_format: _Format) -> Colour | None:
    """Return the colour under a run; None if it is not known.

    The innermost shading counts: of the run, its paragraph, its cell or its table. Without one the page is
    white, unless the document sets a background, or the run is in a box, whose fill is not read here.
    """
    if "highlight" in run_format.properties:
        return None
    shadings = [run_format.properties["shd"]] if "shd" in run_format.properties else []
    for ancestor in run.iterancestors():
        for properties in find_children(ancestor, "pPr", "tcPr", "tblPr"):
            if find_child(properties, "tblStyle") is not None:
                return None
            shadings += find_children(properties, "shd")
        if local_name(ancestor) == "txbxContent":
            return _find_fill(shadings)
        if local_name(ancestor) == "document":
            if find_child(ancestor, "background") is not None:
                return _find_fill(shadings)
            break
    return _find_fill(shadings) or WHITE


def _find_fill(shadings: list[Any]) -> Colour | None:
    """Return the colour of the first shading that states one."""
    for shading in shadings:
        colour = _read_hex(read_attribute(shading, "fill"))
        if colour is not None:
            return colour
    return None


def _is_squeezed(run: Any) -> bool:
    """Tell if the lines of a run's paragraph are too low for letters."""
    for spacing in _list_paragraph_properties(run, "spacing"):
        is_exact = read_attribute(spacing, "lineRule") == "exact"
        line_twips = _read_number(spacing, "line")
        if is_exact and line_twips is not None and line_twips < _MIN_LINE_TWIPS:
            return True
    return False


def _is_off_page(run: Any) -> bool:
    offsets: list[str] = []
    for frame in _list_paragraph_properties(run, "framePr"):
        offsets += [read_attribute(frame, "x"), read_attribute(frame, "y")]
    for indent in _list_paragraph_properties(run, "ind"):
        offsets += [read_attribute(indent, "left"), read_attribute(indent, "start")]
    return any(_is_far(offset, _FAR_TWIPS) for offset in offsets)


def _is_far(offset: str | None, min_distance: int) -> bool:
    """Tell if an offset is negative, and at least ``min_distance`` from zero."""
    match = re.fullmatch(r"-(\d{1,12})", (offset or "").strip())
    return match is not None and int(match[1]) >= min_distance


def _list_paragraph_properties(run: Any, name: str) -> Iterator[Any]:
    paragraph = find_ancestor(run, "p")
    if paragraph is not None:
        for properties in find_children(paragraph, "pPr"):
            yield from find_children(properties, name)


def _read_properties(element: Any) -> dict[str, Any]:
    """Return the properties of a run, or of a style for runs, by name."""
    by_name = {}
    for properties in find_children(element, "rPr"):
        for element_of_property in find_children(properties, *_PROPERTIES):
            by_name[local_name(element_of_property)] = element_of_property
    return by_name


def _read_style_id(element: Any, properties_name: str, style_name: str) -> str:
    """Return the id of the style that a paragraph or a run names; empty without one."""
    for properties in find_children(element, properties_name):
        for style in find_children(properties, style_name):
            return read_attribute(style, "val")
    return ""


def _read_number(element: Any, name: str) -> float | None:
    """Return an attribute as a number; None without the element, or if the attribute is no number."""
    text = "" if element is None else read_attribute(element, name)
    if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", text):
        return float(text)
    return None


def _read_hex(text: str) -> Colour | None:
    if not _HEX.fullmatch(text):
        return None
    return int(text[:2], 16), int(text[2:4], 16), int(text[4:], 16)
