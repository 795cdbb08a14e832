"""OpenDocument texts and slides, as LibreOffice writes them.

The text is in the file's part ``content.xml``, headers and named styles are in ``styles.xml``. Text whose
style hides it is removed before the rest is written out (`text_of_element` with the module's `_ROLES`).
"""

import re
from typing import Any, NamedTuple

from bot.tools.reading.markup import (
    Roles,
    find_all,
    find_children,
    inner_text,
    local_name,
    parse_xml,
    read_attribute,
    text_of_element,
)
from bot.tools.reading.report import Report, UnreadableError
from bot.tools.reading.zip_package import DAMAGED_TEXT, PROTECTED_TEXT, Package

_MAX_SPACES = 1_000  # the spaces that one element may stand for
_NO_STYLES = b"<none/>"
_MIN_POINTS = 3.0  # the smallest font that people can read
_POINTS = re.compile(r"(\d+(?:\.\d+)?)pt")  # "10.5pt"
_WHITE = re.compile(r"#f[a-f]f[a-f]f[a-f]", re.IGNORECASE)  # white or nearly so: "#ffffff", "#fefefe"
_HEADERS = ("header", "footer", "header-left", "footer-left", "header-first", "footer-first")
_COUNTED = {  # the content that is left out and counted, by its element's name
    "image": "picture",
    "object": "embedded object",
    "object-ole": "embedded object",
    "plugin": "recording",
}


class _UnseenStyles(NamedTuple):
    """The names of the styles whose text people don't see."""

    hiding: set[str]  # they hide text
    faint: set[str]  # they make it hard to see


def read_open_document(package: Package, report: Report) -> str:
    """Return the text of a document, or the slides of a presentation; then the headers."""
    root = read_content(package)
    styles = parse_xml(package.read("styles.xml") or _NO_STYLES)
    unseen = _find_unseen_styles(root, styles)
    _remove_hidden(root, unseen, report)
    _count_left_out(root, report)
    pages = find_all(root, "page")
    if pages:
        texts = [_read_slide(number, page, unseen.hiding, report) for number, page in enumerate(pages, 1)]
    else:
        texts = [text_of_element(root, _ROLES)]
    return "\n".join([*texts, *_list_headers(styles)])


def read_content(package: Package) -> Any:
    """Return the root of the content. Raises UnreadableError if it has a password or is damaged."""
    if b"encryption-data" in package.read("META-INF/manifest.xml"):
        raise UnreadableError(PROTECTED_TEXT)
    data = package.read("content.xml")
    if not data:
        raise UnreadableError(DAMAGED_TEXT)
    return parse_xml(data)


def _read_slide(number: int, page: Any, hiding_styles: set[str], report: Report) -> str:
    title = "Slide"
    if read_attribute(page, "style-name") in hiding_styles:
        title = "Hidden slide"
        report.count_hidden("hidden slide")
    return f"[{title} {number}]\n{text_of_element(page, _ROLES)}\n"


def _list_headers(styles: Any) -> list[str]:
    """Return the headers and footers; one with the same text comes once."""
    texts = []
    for header in find_all(styles, *_HEADERS):
        title = local_name(header).partition("-")[0].capitalize()
        text = text_of_element(header, _ROLES)
        if text.strip():
            texts.append(f"[{title}]\n{text}")
    return list(dict.fromkeys(texts))


def _count_left_out(root: Any, report: Report) -> None:
    for element in root.iter():
        name = local_name(element)
        if name in _COUNTED:
            report.count_left_out(_COUNTED[name])
        elif name == "deletion":
            report.count_left_out("tracked deletion")


def _find_unseen_styles(root: Any, styles: Any) -> _UnseenStyles:
    properties_by_style = {}
    for style in find_all(styles, "style") + find_all(root, "style"):
        properties_by_style[read_attribute(style, "name")] = list(style)
    unseen = _UnseenStyles(set(), set())
    for name, properties in properties_by_style.items():
        if any(map(_is_hiding, properties)):
            unseen.hiding.add(name)
        elif any(map(_is_faint, properties)):
            unseen.faint.add(name)
    return unseen


def _remove_hidden(root: Any, unseen: _UnseenStyles, report: Report) -> None:
    """Remove the text that its style hides, and report text that is hard to see."""
    for element in find_all(root, "span", "p", "h"):
        if not "".join(element.itertext()).strip():
            continue
        style_name = read_attribute(element, "style-name")
        if style_name in unseen.hiding:
            report.count_left_out("piece of hidden text")
            tail = element.tail
            element.clear()
            element.tail = tail
        elif style_name in unseen.faint:
            report.count_hidden("piece of white or tiny text")
    hidden_elements = find_all(root, "hidden-text", "hidden-paragraph")  # `_ROLES` leaves out their text
    report.count_left_out("piece of hidden text", len(hidden_elements))


def _is_hiding(properties: Any) -> bool:
    return (
        read_attribute(properties, "display") == "none"
        or read_attribute(properties, "visibility") == "hidden"
    )


def _is_faint(properties: Any) -> bool:
    """Tell if properties of text make it white without a background, or too small to be seen."""
    size = _POINTS.fullmatch(read_attribute(properties, "font-size"))
    if size and float(size[1]) < _MIN_POINTS:
        return True
    is_white = _WHITE.fullmatch(read_attribute(properties, "color")) is not None
    return is_white and read_attribute(properties, "background-color") in ("", "transparent")


def _write_element(element: Any, roles: Roles) -> str | None:
    """Return the text of an element that needs more than its plain text; None for others."""
    name = local_name(element)
    if name == "h":
        return f"\n# {inner_text(element, roles)}\n"
    if name == "s":  # several spaces
        count = read_attribute(element, "c")
        return " " * min(int(count) if count.isdecimal() else 1, _MAX_SPACES)
    if name == "a":
        words, address = inner_text(element, roles), read_attribute(element, "href")
        if address and address != words:
            return f"{words} <{address}>"
        return words
    if name == "note":
        notes = [text_of_element(body, roles).strip() for body in find_children(element, "note-body")]
        return "".join(f" [note: {note}]" for note in notes)
    if name == "annotation":
        texts = [text_of_element(part, roles) for part in find_children(element, "p", "list")]
        return f" [comment: {' '.join(texts).strip()}]"
    if name == "notes":
        return f"\n[Notes]\n{inner_text(element, roles)}\n"
    return None


_ROLES = Roles(
    blocks=frozenset({"p", "h", "list-item", "table", "section", "text-box", "frame", "page"}),
    rows=frozenset({"table-row"}),
    cells=frozenset({"table-cell", "covered-table-cell"}),
    skipped=frozenset({
        "tracked-changes", "automatic-styles", "font-face-decls", "forms", "desc", "title", "hidden-text",
        "hidden-paragraph", "sequence-decls", "binary-data",
    }),
    fixed={"tab": "\t", "line-break": "\n"},
    special=_write_element,
)  # fmt: skip
