"""Text on the pages of PDF documents that people don't see.

PDFium lists the objects of a page (texts, paths, pictures) in the order in which they are drawn, each with
its box, in points. A text is unseen if it is invisible, tiny, off the page or in the colour of its
background, or if a later object covers it. `UnseenText.inspect` counts the pages with such texts, by kind,
and remarks on what it did not look at, since a document may have too many objects.
"""

import ctypes
from dataclasses import dataclass
from typing import Any, NamedTuple

from bot.tools.reading.report import Report
from bot.tools.reading.unseen.colours import WHITE, Colour, is_too_faint

_MAX_OBJECTS = 60_000  # on all pages together
_MAX_BACKGROUNDS = 500  # on one page
_MAX_DEPTH = 3  # the nesting of objects in objects
_MIN_HEIGHT_POINTS = 1.0
_MIN_ALPHA = 26  # a tenth
_FULL_ALPHA = 255
_MIN_COVERED_SHARE = 0.95  # a text counts as covered if this share of its box is
_PAGES_UNCHECKED_TEXT = "Hidden text was looked for on its first {} pages alone."
_SHAPES_UNCHECKED_TEXT = "Hidden text was looked for among the first {:,} shapes of a page alone."


class _Box(NamedTuple):
    """The place of an object on its page, in points from the lower left corner."""

    left: float
    bottom: float
    right: float
    top: float


class _Background(NamedTuple):
    """An object that covers what was drawn before it."""

    box: _Box
    colour: Colour | None  # None for a picture


class _Fill(NamedTuple):
    """The colour that fills an object."""

    colour: Colour
    alpha: int  # its opacity, up to `_FULL_ALPHA`


@dataclass(slots=True)
class UnseenText:
    """A counter of pages with text that is read although people who open the file don't see it."""

    report: Report
    _pages: int = 0  # the number of pages looked at
    _objects: int = 0  # the number of objects looked at, on all pages

    def inspect(self, page: Any) -> None:
        """Count the page under each kind of hidden text that it has."""
        if self._objects >= _MAX_OBJECTS:
            self.report.remark(_PAGES_UNCHECKED_TEXT.format(self._pages))
            return
        self._pages += 1
        kinds: set[str] = set()  # the kinds under which the report counts this page
        backgrounds: list[_Background] = []  # those drawn so far, the uppermost last
        texts: list[_Box] = []  # the boxes of visible texts
        page_box = _Box(*page.get_cropbox())
        for position, element in enumerate(page.get_objects(max_depth=_MAX_DEPTH)):
            if self._objects == _MAX_OBJECTS:
                self.report.remark(_SHAPES_UNCHECKED_TEXT.format(position))
                break
            self._objects += 1
            box = _Box(*element.get_bounds())
            if _is_text(element):
                kind = _find_kind(element, box, page_box, backgrounds)
                if kind:
                    kinds.add(kind)
                else:
                    texts.append(box)
            elif not _covers(element):
                continue
            elif len(backgrounds) < _MAX_BACKGROUNDS:
                if any(_is_inside(text, box) for text in texts):
                    kinds.add("page with covered text")
                backgrounds.append(_Background(box, _find_colour(element)))
            else:
                self.report.remark(_SHAPES_UNCHECKED_TEXT.format(_MAX_BACKGROUNDS))
        for kind in sorted(kinds):
            self.report.count_hidden(kind)


def _is_text(element: Any) -> bool:
    from pypdfium2 import raw  # type: ignore[import-untyped]

    return bool(element.type == raw.FPDF_PAGEOBJ_TEXT)


def _find_kind(text: Any, box: _Box, page_box: _Box, backgrounds: list[_Background]) -> str:
    """Return the kind under which a page with this hidden text is counted; empty if people see the text."""
    from pypdfium2 import raw

    if box.right <= box.left or box.top <= box.bottom:  # spaces
        return ""
    fill = _read_fill(text)
    mode = raw.FPDFTextObj_GetTextRenderMode(text.raw)
    if mode == raw.FPDF_TEXTRENDERMODE_INVISIBLE or fill.alpha < _MIN_ALPHA:
        return "page with invisible text"
    is_off_sides = box.right <= page_box.left or box.left >= page_box.right
    if is_off_sides or box.top <= page_box.bottom or box.bottom >= page_box.top:
        return "page with text outside it"
    if box.top - box.bottom < _MIN_HEIGHT_POINTS:
        return "page with tiny text"
    background = _find_background(box, backgrounds)
    if background is not None and is_too_faint(fill.colour, background):
        return "page with white text"
    return ""


def _find_background(box: _Box, backgrounds: list[_Background]) -> Colour | None:
    """Return the colour under a box; None if a picture is there."""
    for background in reversed(backgrounds):
        if _is_inside(box, background.box):
            return background.colour
    return WHITE


def _covers(element: Any) -> bool:
    """Tell if an object covers what was drawn before: a picture, a shading or a filled path."""
    from pypdfium2 import raw

    if element.type in (raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_SHADING):
        return True
    if element.type != raw.FPDF_PAGEOBJ_PATH:
        return False
    mode = ctypes.c_int()
    stroke = ctypes.c_int()
    raw.FPDFPath_GetDrawMode(element.raw, mode, stroke)
    is_opaque = _read_fill(element).alpha == _FULL_ALPHA
    return mode.value != raw.FPDF_FILLMODE_NONE and is_opaque


def _find_colour(element: Any) -> Colour | None:
    """Return the colour of a path; None for a picture, which has many."""
    from pypdfium2 import raw

    if element.type != raw.FPDF_PAGEOBJ_PATH:
        return None
    return _read_fill(element).colour


def _read_fill(element: Any) -> _Fill:
    from pypdfium2 import raw

    red, green, blue, alpha = (ctypes.c_uint(number) for number in (0, 0, 0, _FULL_ALPHA))
    raw.FPDFPageObj_GetFillColor(element.raw, red, green, blue, alpha)
    return _Fill((red.value, green.value, blue.value), alpha.value)


def _is_inside(text: _Box, background: _Box) -> bool:
    """Tell if a text's box is inside another box, or nearly so (`_MIN_COVERED_SHARE`)."""
    common_width = min(text.right, background.right) - max(text.left, background.left)
    common_height = min(text.top, background.top) - max(text.bottom, background.bottom)
    if common_width <= 0 or common_height <= 0:
        return False
    area = (text.right - text.left) * (text.top - text.bottom)
    return common_width * common_height >= area * _MIN_COVERED_SHARE
