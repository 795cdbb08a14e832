"""OpenDocument texts and slides, as LibreOffice writes them."""

import re
from typing import Any

from bot.tools.reading.markup import Roles, attribute, inner_text, local_name, parse_xml, text_of_element
from bot.tools.reading.packed import DAMAGED_TEXT, PROTECTED_TEXT, Package
from bot.tools.reading.report import Report, UnreadableError

_MAX_SPACES = 1_000
_NO_STYLES = b"<none/>"
_MIN_POINTS = 3.0
_POINTS = re.compile(r"(\d+(?:\.\d+)?)pt")
_WHITE = re.compile(r"#f[a-f]f[a-f]f[a-f]", re.IGNORECASE)
_COUNTED = {
    "image": "picture",
    "object": "embedded object",
    "object-ole": "embedded object",
    "plugin": "recording",
}


def read_open_document(package: Package, report: Report) -> str:
    """Return the text of a document or the slides of a presentation; its headers follow."""
    root = read_content(package)
    styles = package.read("styles.xml")
    hidden = _remove_hidden(root, parse_xml(styles or _NO_STYLES), report)
    _count(root, report)
    pages = [each for each in root.iter() if local_name(each) == "page"]
    if pages:
        said = [_slide(at, page, hidden, report) for at, page in enumerate(pages, 1)]
    else:
        said = [text_of_element(root, _ROLES)]
    return "\n".join([*said, *_headers(package)])


def read_content(package: Package) -> Any:
    """Return the root of the content; raises UnreadableError where it has a password or is damaged."""
    if b"encryption-data" in package.read("META-INF/manifest.xml"):
        raise UnreadableError(PROTECTED_TEXT)
    data = package.read("content.xml")
    if not data:
        raise UnreadableError(DAMAGED_TEXT)
    return parse_xml(data)


def _slide(number: int, page: Any, hidden: set[str], report: Report) -> str:
    is_hidden = attribute(page, "style-name") in hidden
    if is_hidden:
        report.reveal("hidden slide")
    return f"[{'Hidden slide' if is_hidden else 'Slide'} {number}]\n{text_of_element(page, _ROLES)}\n"


def _headers(package: Package) -> list[str]:
    data = package.read("styles.xml")
    if not data:
        return []
    found = [
        each
        for each in parse_xml(data).iter()
        if local_name(each)
        in ("header", "footer", "header-left", "footer-left", "header-first", "footer-first")
    ]
    said = (
        (local_name(each).partition("-")[0].capitalize(), text_of_element(each, _ROLES)) for each in found
    )
    return [f"[{title}]\n{text}" for title, text in dict.fromkeys(said) if text.strip()]


def _count(root: Any, report: Report) -> None:
    for each in root.iter():
        name = local_name(each)
        if name in _COUNTED:
            report.leave_out(_COUNTED[name])
        elif name == "deletion":
            report.leave_out("tracked deletion")


def _remove_hidden(root: Any, styles: Any, report: Report) -> set[str]:
    """Take out the text of styles that show none. Returns the names of the styles that hide."""
    forms = {
        attribute(style, "name"): list(style)
        for tree in (styles, root)
        for style in tree.iter()
        if local_name(style) == "style"
    }
    hidden = {name for name, form in forms.items() if any(map(_is_hiding, form))}
    faint = {name for name, form in forms.items() if any(map(_is_faint, form)) and name not in hidden}
    for each in list(root.iter()):
        if local_name(each) not in ("span", "p", "h") or not "".join(each.itertext()).strip():
            continue
        style = attribute(each, "style-name")
        if style in hidden:
            report.leave_out("piece of hidden text")
            tail = each.tail
            each.clear()
            each.tail = tail
        elif style in faint:
            report.reveal("piece of white or tiny text")
    said_hidden = [each for each in root.iter() if local_name(each) in ("hidden-text", "hidden-paragraph")]
    report.leave_out("piece of hidden text", len(said_hidden))
    return hidden


def _is_hiding(form: Any) -> bool:
    return attribute(form, "display") == "none" or attribute(form, "visibility") == "hidden"


def _is_faint(form: Any) -> bool:
    """Tell whether a form of text is white on nothing, or too small to be seen."""
    size = _POINTS.fullmatch(attribute(form, "font-size"))
    if size and float(size[1]) < _MIN_POINTS:
        return True
    under = attribute(form, "background-color")
    return bool(_WHITE.fullmatch(attribute(form, "color"))) and under in ("", "transparent")


def _write(element: Any, roles: Roles) -> str | None:
    name = local_name(element)
    if name == "h":
        return f"\n# {inner_text(element, roles)}\n"
    if name == "s":
        count = attribute(element, "c")
        return " " * min(int(count) if count.isdecimal() else 1, _MAX_SPACES)
    if name == "a":
        words, address = inner_text(element, roles), attribute(element, "href")
        if address and address != words:
            return f"{words} <{address}>"
        return words
    if name == "note":
        bodies = [each for each in element if local_name(each) == "note-body"]
        return "".join(f" [note: {text_of_element(each, roles).strip()}]" for each in bodies)
    if name == "annotation":
        said = " ".join(text_of_element(each, roles) for each in element if local_name(each) in ("p", "list"))
        return f" [comment: {said.strip()}]"
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
    special=_write,
)  # fmt: skip
