"""PowerPoint's slides (PPTX), read by python-pptx.

A slide is a list of *shapes*: texts, tables, charts, pictures, diagrams, and groups of shapes. python-pptx
knows presentations only, so slide shows and templates are changed first, so that they look like one.
"""

import re
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from bot.tools.reading.markup import find_all, local_name, parse_xml, read_attribute
from bot.tools.reading.report import Report
from bot.tools.reading.unseen.slide_shapes import report_unseen
from bot.tools.reading.zip_package import Package

_MAX_SLIDES = 1_000
_MAX_DEPTH = 20  # the nesting of groups
_MAX_VALUES = 2_000  # the values of one chart
_FILE_NAME = re.compile(r"\.\w{3,4}$")
# the namespaces of the two forms of Open XML (ISO/IEC 29500)
_TRANSITIONAL = b"http://schemas.openxmlformats.org/"
_STRICT = b"http://purl.oclc.org/ooxml/"
_OFFICE_DOCUMENT_PATH = b"officeDocument/2006/"
_MAIN_TYPE = b"application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"
_OTHER_TYPES = (
    b"application/vnd.ms-powerpoint.presentation.macroEnabled.main+xml",
    b"application/vnd.openxmlformats-officedocument.presentationml.template.main+xml",
    b"application/vnd.openxmlformats-officedocument.presentationml.slideshow.main+xml",
    b"application/vnd.ms-powerpoint.slideshow.macroEnabled.main+xml",
)


def read_slides(data: bytes, package: Package, report: Report) -> str:
    """Return each slide: the text of its shapes in their order in the file, and its notes."""
    import pptx

    deck = pptx.Presentation(BytesIO(_as_presentation(data, package)))
    slides = list(deck.slides)
    report.count_left_out("slide", max(0, len(slides) - _MAX_SLIDES))
    texts: list[str] = []
    has_text = False
    for number, slide in enumerate(slides[:_MAX_SLIDES], 1):
        heading = f"[Slide {number}]"
        if slide.element.get("show") == "0":
            heading = f"[Hidden slide {number}]"
            report.count_hidden("hidden slide")
        report_unseen(slide, deck.slide_width or 0, deck.slide_height or 0, report)
        lines = _read_slide(slide, package, report)
        texts.append("\n".join((heading, *lines)) + "\n")
        if not lines:
            report.count_left_out("slide without text")
        has_text = has_text or any(line.strip() for line in lines)
    comments = list(_list_comments(package))
    if any(name.endswith("vbaProject.bin") for name in package.names):
        report.count_left_out("part with macros")
    if has_text or comments:
        return "\n".join((*texts, *comments))
    return ""


def _read_slide(slide: Any, package: Package, report: Report) -> list[str]:
    """Return the lines of a slide, and its notes."""
    lines: list[str] = []
    for shape in slide.shapes:
        lines += _read_shape(shape, package, report, 0)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = slide.notes_slide.notes_text_frame.text.strip()
        if notes:
            lines += ["[Notes]", notes]
    return lines


def _as_presentation(data: bytes, package: Package) -> bytes:
    """Return the file with the content types and namespaces that python-pptx knows.

    Slide shows, templates and Strict Open XML have others.
    """
    types = package.read("[Content_Types].xml")
    known_types = types
    for other_type in _OTHER_TYPES:
        known_types = known_types.replace(other_type, _MAIN_TYPE)
    changed = {}
    if known_types != types:
        changed["[Content_Types].xml"] = known_types
    if _STRICT in package.read("_rels/.rels"):
        for name in package.names:
            if name.endswith((".xml", ".rels")):
                changed[name] = _as_transitional(changed.get(name) or package.read(name))
    if changed:
        return package.with_parts(changed)
    return data


def _as_transitional(part: bytes) -> bytes:
    for name in (b"presentationml", b"drawingml"):
        part = part.replace(_STRICT + name + b"/", _TRANSITIONAL + name + b"/2006/")
    return part.replace(_STRICT + b"officeDocument/", _TRANSITIONAL + _OFFICE_DOCUMENT_PATH)


def _read_shape(shape: Any, package: Package, report: Report, depth: int) -> Iterator[str]:
    """Yield the texts of a shape. ``depth``: the number of groups that it is in."""
    if depth > _MAX_DEPTH:
        report.count_left_out("group of shapes that is nested too deeply")
    elif hasattr(shape, "shapes"):
        for inner_shape in shape.shapes:
            yield from _read_shape(inner_shape, package, report, depth + 1)
    elif getattr(shape, "has_table", False):
        for row in shape.table.rows:
            yield "\t".join(cell.text.replace("\n", " / ") for cell in row.cells)
    elif getattr(shape, "has_chart", False):
        yield from _read_chart(shape.chart, report)
    elif shape.has_text_frame:
        words = shape.text_frame.text.replace("\v", "\n").strip()
        if words:
            yield words
    else:
        yield from _read_other_shape(shape, package, report)


def _read_other_shape(shape: Any, package: Package, report: Report) -> Iterator[str]:
    """Yield the words of a diagram, and the description of a picture; anything else is counted."""
    diagrams = find_all(shape.element, "relIds")
    if diagrams:
        yield from _read_diagram(diagrams[0], shape, package, report)
    elif find_all(shape.element, "videoFile", "audioFile"):
        report.count_left_out("recording")
    elif find_all(shape.element, "oleObj"):
        report.count_left_out("embedded object")
    elif find_all(shape.element, "blip"):
        report.count_left_out("picture")
        properties = find_all(shape.element, "cNvPr")
        words = properties[0].get("descr") if properties else ""
        if words and not _FILE_NAME.search(words):
            yield f"[picture: {words}]"


def _read_diagram(part_ids: Any, shape: Any, package: Package, report: Report) -> Iterator[str]:
    """Yield the words of a diagram. ``part_ids``: the element with the ids of its parts."""
    slide_part = str(shape.part.partname).lstrip("/")
    data_id = read_attribute(part_ids, "dm")  # the id of the part with the data
    _, data_part = package.relations(slide_part).get(data_id, ("", ""))
    data = package.read(data_part)
    words: list[str] = []
    if data:
        words = [element.text for element in find_all(parse_xml(data), "t") if element.text]
    report.count_left_out("diagram with its layout" if words else "diagram")
    yield from words


def _read_chart(chart: Any, report: Report) -> Iterator[str]:
    """Yield a chart's title and its numbers, as rows of a table."""
    report.count_left_out("chart with its look")
    if chart.has_title and chart.chart_title.has_text_frame:
        yield f"[Chart: {chart.chart_title.text_frame.text}]"
    for plot in chart.plots:
        categories = [str(category) for category in list(plot.categories)[:_MAX_VALUES]]
        yield "\t".join(["", *categories])
        for series in plot.series:
            values = ["" if value is None else str(value) for value in list(series.values)[:_MAX_VALUES]]
            yield "\t".join([series.name, *values])


def _list_comments(package: Package) -> Iterator[str]:
    for name in package.list_parts(r"ppt/comments/[^/]+\.xml"):
        for element in find_all(parse_xml(package.read(name)), "text", "txBody"):
            if local_name(element) == "txBody":
                yield f"[Comment: {''.join(element.itertext())}]"
            elif element.text:
                yield f"[Comment: {element.text}]"
