"""Text on the pages of PDF documents that people don't see, as PDFium knows its objects."""

import ctypes
from dataclasses import dataclass
from typing import Any

from bot.tools.reading.report import Report
from bot.tools.reading.unseen.colours import WHITE, Colour, is_too_faint

_MAX_OBJECTS = 60_000  # of all pages together
_MAX_GROUNDS = 500  # of one page
_MAX_DEPTH = 3
_MIN_POINTS = 2.0
_MIN_ALPHA, _FULL_ALPHA = 26, 255
_LEAST_SHARE = 0.95  # of a text that must be under something to be covered
_LATER_TEXT = "Hidden text was looked for on its first {} pages alone."

_Box = tuple[float, float, float, float]


@dataclass(slots=True)
class UnseenText:
    """Counts pages with text that is read although people who open the file don't see it."""

    report: Report
    _pages: int = 0
    _objects: int = 0

    def inspect(self, page: Any) -> None:
        """Look at the objects of one page, in the order in which they are drawn."""
        if self._objects > _MAX_OBJECTS:
            self.report.remark(_LATER_TEXT.format(self._pages))
            return
        self._pages += 1
        kinds: set[str] = set()
        grounds: list[tuple[_Box, Colour | None]] = []
        texts: list[_Box] = []
        shown = page.get_cropbox()
        for each in page.get_objects(max_depth=_MAX_DEPTH):
            self._objects += 1
            box = each.get_bounds() if hasattr(each, "get_bounds") else each.get_pos()
            if _is_text(each):
                kind = _kind_of(each, box, shown, grounds)
                if kind:
                    kinds.add(kind)
                else:
                    texts.append(box)
            elif _is_ground(each) and len(grounds) < _MAX_GROUNDS:
                if any(_is_inside(text, box) for text in texts):
                    kinds.add("page with covered text")
                grounds.append((box, _colour_of(each)))
        for kind in sorted(kinds):
            self.report.reveal(kind)


def _is_text(element: Any) -> bool:
    from pypdfium2 import raw  # type: ignore[import-untyped]

    return bool(element.type == raw.FPDF_PAGEOBJ_TEXT)


def _kind_of(text: Any, box: _Box, shown: _Box, grounds: list[tuple[_Box, Colour | None]]) -> str:
    """The kind of page that a text makes of its page; empty where the text is seen."""
    from pypdfium2 import raw

    if box[2] - box[0] <= 0 or box[3] - box[1] <= 0:  # spaces
        return ""
    colour, alpha = _fill_of(text)
    if raw.FPDFTextObj_GetTextRenderMode(text.raw) == raw.FPDF_TEXTRENDERMODE_INVISIBLE or alpha < _MIN_ALPHA:
        return "page with invisible text"
    if box[2] <= shown[0] or box[0] >= shown[2] or box[3] <= shown[1] or box[1] >= shown[3]:
        return "page with text outside it"
    if box[3] - box[1] < _MIN_POINTS / 2:
        return "page with tiny text"
    under = next((ground for place, ground in reversed(grounds) if _is_inside(box, place)), WHITE)
    if under is not None and is_too_faint(colour, under):
        return "page with white text"
    return ""


def _is_ground(element: Any) -> bool:
    """Tell whether an object is drawn over what was there: a picture, a shading or a filled path."""
    from pypdfium2 import raw

    if element.type in (raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_SHADING):
        return True
    if element.type != raw.FPDF_PAGEOBJ_PATH:
        return False
    mode, stroke = ctypes.c_int(), ctypes.c_int()
    raw.FPDFPath_GetDrawMode(element.raw, mode, stroke)
    return mode.value != raw.FPDF_FILLMODE_NONE and _fill_of(element)[1] == _FULL_ALPHA


def _colour_of(element: Any) -> Colour | None:
    """The colour of a path; None for a picture, whose colours are many."""
    from pypdfium2 import raw

    if element.type == raw.FPDF_PAGEOBJ_PATH:
        return _fill_of(element)[0]
    return None


def _fill_of(element: Any) -> tuple[Colour, int]:
    from pypdfium2 import raw

    red, green, blue, alpha = (ctypes.c_uint(number) for number in (0, 0, 0, _FULL_ALPHA))
    raw.FPDFPageObj_GetFillColor(element.raw, red, green, blue, alpha)
    return (red.value, green.value, blue.value), alpha.value


def _is_inside(text: _Box, ground: _Box) -> bool:
    wide = min(text[2], ground[2]) - max(text[0], ground[0])
    high = min(text[3], ground[3]) - max(text[1], ground[1])
    size = (text[2] - text[0]) * (text[3] - text[1])
    return wide > 0 and high > 0 and wide * high >= size * _LEAST_SHARE
