"""PowerPoint's slides, read by python-pptx."""

import re
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from bot.tools.reading.markup import attribute, local_name, parse_xml
from bot.tools.reading.packed import Package
from bot.tools.reading.report import Report
from bot.tools.reading.unseen.slide_shapes import reveal_unseen

_MAX_SLIDES = 1_000
_MAX_DEPTH = 20  # of groups in groups
_MAX_VALUES = 2_000  # of one chart
_FILE_NAME = re.compile(r"\.\w{3,4}$")
_TRANSITIONAL = b"http://schemas.openxmlformats.org/"
_STRICT = b"http://purl.oclc.org/ooxml/"
_OFFICE = b"officeDocument/2006/"
_MAIN_TYPE = b"application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"
_OTHER_TYPES = (
    b"application/vnd.ms-powerpoint.presentation.macroEnabled.main+xml",
    b"application/vnd.openxmlformats-officedocument.presentationml.template.main+xml",
    b"application/vnd.openxmlformats-officedocument.presentationml.slideshow.main+xml",
    b"application/vnd.ms-powerpoint.slideshow.macroEnabled.main+xml",
)


def read_slides(data: bytes, package: Package, report: Report) -> str:
    """Return each slide: its shapes from top to bottom, its tables, its charts' numbers and its notes."""
    import pptx

    deck = pptx.Presentation(BytesIO(_as_presentation(data, package)))
    slides = list(deck.slides)
    report.leave_out("slide", len(slides) - _MAX_SLIDES if len(slides) > _MAX_SLIDES else 0)
    told = []
    for number, slide in enumerate(slides[:_MAX_SLIDES], 1):
        is_hidden = slide.element.get("show") == "0"
        if is_hidden:
            report.reveal("hidden slide")
        reveal_unseen(slide, deck.slide_width or 0, deck.slide_height or 0, report)
        lines = [line for shape in slide.shapes for line in _shape(shape, package, report, 0)]
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            notes = slide.notes_slide.notes_text_frame.text.strip()
            lines += ["[Notes]", notes] if notes else []
        told.append("\n".join((f"[{'Hidden slide' if is_hidden else 'Slide'} {number}]", *lines)) + "\n")
        if not lines:
            report.leave_out("slide without text")
    told += _comments(package)
    if any(name.endswith("vbaProject.bin") for name in package.names):
        report.leave_out("part with macros")
    if any("\n" in each.strip() for each in told):
        return "\n".join(told)
    return ""


def _as_presentation(data: bytes, package: Package) -> bytes:
    """Return the file with the content types and namespaces that python-pptx knows.

    Slide shows and Strict Open XML have others.
    """
    types = package.read("[Content_Types].xml")
    plain = types
    for each in _OTHER_TYPES:
        plain = plain.replace(each, _MAIN_TYPE)
    changed = {"[Content_Types].xml": plain} if plain != types else {}
    if _STRICT in package.read("_rels/.rels"):
        for name in package.names:
            if name.endswith((".xml", ".rels")):
                changed[name] = _as_transitional(changed.get(name) or package.read(name))
    if changed:
        return package.replace(changed)
    return data


def _as_transitional(part: bytes) -> bytes:
    for name in (b"presentationml", b"drawingml"):
        part = part.replace(_STRICT + name + b"/", _TRANSITIONAL + name + b"/2006/")
    return part.replace(_STRICT + b"officeDocument/", _TRANSITIONAL + _OFFICE)


def _shape(shape: Any, package: Package, report: Report, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        report.leave_out("group of shapes that is nested too deeply")
    elif hasattr(shape, "shapes"):
        for each in shape.shapes:
            yield from _shape(each, package, report, depth + 1)
    elif getattr(shape, "has_table", False):
        for row in shape.table.rows:
            yield "\t".join(" / ".join(cell.text.split("\n")) for cell in row.cells)
    elif getattr(shape, "has_chart", False):
        yield from _chart(shape.chart, report)
    elif shape.has_text_frame:
        words = shape.text_frame.text.replace("\v", "\n").strip()
        if words:
            yield words
    else:
        yield from _other(shape, package, report)


def _other(shape: Any, package: Package, report: Report) -> Iterator[str]:
    """Yield the words of a diagram; anything else is counted."""
    names = {local_name(each) for each in shape.element.iter()}
    if "relIds" in names:
        yield from _diagram(shape, package, report)
    elif "videoFile" in names or "audioFile" in names:
        report.leave_out("recording")
    elif "oleObj" in names:
        report.leave_out("embedded object")
    elif "blip" in names:
        report.leave_out("picture")
        about = next((each for each in shape.element.iter() if local_name(each) == "cNvPr"), None)
        words = about.get("descr") if about is not None else ""
        if words and not _FILE_NAME.search(words):
            yield f"[picture: {words}]"


def _diagram(shape: Any, package: Package, report: Report) -> Iterator[str]:
    ids = next(each for each in shape.element.iter() if local_name(each) == "relIds")
    part = str(shape.part.partname).lstrip("/")
    target = package.relations(part).get(attribute(ids, "dm"), ("", ""))[1]
    data = package.read(target)
    if data:
        words = [each.text for each in parse_xml(data).iter() if local_name(each) == "t" and each.text]
    else:
        words = []
    report.leave_out("diagram with its layout" if words else "diagram")
    yield from words


def _chart(chart: Any, report: Report) -> Iterator[str]:
    report.leave_out("chart with its look")
    if chart.has_title and chart.chart_title.has_text_frame:
        yield f"[Chart: {chart.chart_title.text_frame.text}]"
    for plot in chart.plots:
        yield "\t".join(["", *map(str, list(plot.categories)[:_MAX_VALUES])])
        for series in plot.series:
            yield "\t".join(
                [
                    series.name,
                    *("" if each is None else str(each) for each in list(series.values)[:_MAX_VALUES]),
                ]
            )


def _comments(package: Package) -> Iterator[str]:
    for name in package.list_parts(r"ppt/comments/[^/]+\.xml"):
        for each in parse_xml(package.read(name)).iter():
            if local_name(each) == "text" and each.text:
                yield f"[Comment: {each.text}]"
            elif local_name(each) == "txBody":
                yield f"[Comment: {''.join(each.itertext())}]"
