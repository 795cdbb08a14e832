"""Word documents, read by mammoth after what it would pass over was put where it reads."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

from lxml import etree  # type: ignore[import-untyped]

from bot.tools.reading.markup import (
    XHTML,
    Roles,
    attribute,
    inner_text,
    local_name,
    parse_xml,
    text_of_element,
)
from bot.tools.reading.packed import Package, main_part
from bot.tools.reading.report import Report
from bot.tools.reading.unseen.word_styles import TextStyles, remove_hidden, reveal_hidden_drawings

_COUNTED = {
    "chart": "chart", "relIds": "diagram", "OLEObject": "embedded object", "altChunk": "embedded document",
    "subDoc": "embedded document",
    "control": "form control", "pic": "picture", "imagedata": "picture",
}  # fmt: skip
_SHOWN_DELETIONS = frozenset({"delText", "t"})
_WRAPPERS = frozenset({"fldSimple", "bdo", "dir"})


def read_docx(package: Package, report: Report) -> str:
    """Return the text as it stands with tracked changes accepted: notes, comments and headers follow it."""
    import mammoth  # type: ignore[import-untyped]

    main = main_part(package)
    root = parse_xml(package.read(main))
    space = root.tag.rpartition("}")[0] + "}"
    headers = list(_headers(package, main))
    styles = TextStyles(package, main)
    for tree in (root, *(tree for _, tree in headers)):
        reveal_hidden_drawings(tree, report)
        _count(tree, report)
        _move_text_boxes(tree)
        _unwrap(tree)
        _write_choices(tree, space)
        _write_readings(tree, space)
        _write_equations(tree, space, report)
        remove_hidden(tree, styles, report)
    body = next((each for each in root if local_name(each) == "body"), root)
    for title, tree in headers:
        _append_header(body, space, title, tree)
    _refer_to_comments(body, space, package, main)
    if any(name.endswith("vbaProject.bin") for name in package.names):
        report.leave_out("part with macros")
    document = package.replace({main: etree.tostring(root, xml_declaration=True, encoding="utf-8")})
    found = mammoth.convert_to_html(
        BytesIO(document),
        style_map="comment-reference => sup",
        include_embedded_style_map=False,
        convert_image=mammoth.images.img_element(lambda _image: {}),
    )
    return text_of_element(parse_xml(f"<body>{found.value}</body>".encode()), _ROLES)


def _headers(package: Package, main: str) -> Iterator[tuple[str, Any]]:
    """Yield headers and footers with their name, each text once."""
    seen = set()
    for kind, target in package.relations(main).values():
        if kind in ("header", "footer") and target in package.names:
            tree = parse_xml(package.read(target))
            said = "".join(tree.itertext())
            if said.strip() and said not in seen:
                seen.add(said)
                yield kind.capitalize(), tree


def _append_header(body: Any, space: str, title: str, tree: Any) -> None:
    """Put a header's blocks at the end of the body, without links: their IDs are of another part."""
    for each in list(tree.iter()):
        if local_name(each) in ("hyperlink", "blip", "imagedata"):
            each.attrib.clear()
    label = etree.SubElement(body, f"{space}p")
    run = etree.SubElement(label, f"{space}r")
    etree.SubElement(run, f"{space}t").text = f"[{title}]"
    for block in list(tree):
        body.append(block)


def _count(tree: Any, report: Report) -> None:
    again = {id(each) for found in tree.iter() if local_name(found) == "Fallback" for each in found.iter()}
    for each in tree.iter():
        name = local_name(each)
        if id(each) in again:  # what stands in a drawing, for programs that are older
            continue
        if name in _COUNTED:
            report.leave_out(_COUNTED[name])
        elif name == "del" and (_has_words(each) or local_name(each.getparent()) == "trPr"):
            report.leave_out("tracked deletion")


def _move_text_boxes(tree: Any) -> None:
    """Put the text of drawn boxes where mammoth reads it: it passes over drawings, and over choices."""
    for drawing in [each for each in tree.iter() if local_name(each) == "drawing"]:
        boxes = [each for each in drawing.iter() if local_name(each) == "txbxContent"]
        choice = next(
            (each for each in drawing.iterancestors() if local_name(each) == "AlternateContent"), None
        )
        if not boxes or choice is None:
            for box in reversed(boxes):
                drawing.addnext(box)
            continue
        fallback = next((each for each in choice if local_name(each) == "Fallback"), None)
        if fallback is None:
            for box in reversed(boxes):
                choice.addnext(box)
        elif not any(local_name(each) == "txbxContent" for each in fallback.iter()):
            for box in boxes:
                fallback.append(box)


def _has_words(deletion: Any) -> bool:
    return any(local_name(each) in _SHOWN_DELETIONS and each.text for each in deletion.iter())


def _unwrap(tree: Any) -> None:
    """Replace simple fields and direction marks by their content, without their code."""
    for wrapper in [each for each in tree.iter() if local_name(each) in _WRAPPERS]:
        for child in list(wrapper):
            wrapper.addprevious(child)
        wrapper.getparent().remove(wrapper)


def _write_choices(tree: Any, space: str) -> None:
    """Write what was chosen in an old form's list in front of its field."""
    for choice in [each for each in tree.iter() if local_name(each) == "ddList"]:
        entries = [attribute(each, "val") for each in choice if local_name(each) == "listEntry"]
        chosen = next((attribute(each, "val") for each in choice if local_name(each) == "result"), "0")
        run = next((each for each in choice.iterancestors() if local_name(each) == "r"), None)
        if run is not None and chosen.isdecimal() and int(chosen) < len(entries):
            written = etree.Element(f"{space}r")
            etree.SubElement(written, f"{space}t").text = entries[int(chosen)]
            run.addprevious(written)


def _write_readings(tree: Any, space: str) -> None:
    """Write words that have their reading above them as words and reading: 東京 (とうきょう)."""
    for ruby in [each for each in tree.iter() if local_name(each) == "ruby"]:
        said = {local_name(part): "".join(part.itertext()) for part in ruby}
        reading = f" ({said['rt']})" if said.get("rt") else ""
        written = etree.Element(f"{space}t")
        written.text = f"{said.get('rubyBase', '')}{reading}"
        ruby.getparent().replace(ruby, written)


def _refer_to_comments(body: Any, space: str, package: Package, main: str) -> None:
    """Put a reference to each comment that has none at the end: mammoth writes those that are referred to."""
    referred = {attribute(each, "id") for each in body.iter() if local_name(each) == "commentReference"}
    parts = [target for kind, target in package.relations(main).values() if kind == "comments"]
    found = [each for part in parts if part in package.names for each in parse_xml(package.read(part))]
    for comment in found:
        if local_name(comment) == "comment" and attribute(comment, "id") not in referred:
            run = etree.SubElement(etree.SubElement(body, f"{space}p"), f"{space}r")
            etree.SubElement(run, f"{space}commentReference", {f"{space}id": attribute(comment, "id")})


def _write_equations(tree: Any, space: str, report: Report) -> None:
    """Write the characters of an equation in its place; how they stand to each other is left out."""
    outer = [each for each in tree.iter() if local_name(each) == "oMath"]
    for equation in outer:
        report.leave_out("equation with its layout")
        run = etree.Element(f"{space}r")
        etree.SubElement(run, f"{space}t").text = f"[equation: {''.join(equation.itertext())}]"
        run.tail = equation.tail
        equation.getparent().replace(equation, run)
    for paragraph in [each for each in tree.iter() if local_name(each) == "oMathPara"]:
        for child in list(paragraph):
            paragraph.addprevious(child)
        paragraph.getparent().remove(paragraph)


def _write(element: Any, roles: Roles) -> str | None:
    """Write what XHTML says by more than its text: headings, links, boxes to tick, words for pictures."""
    name = local_name(element)
    if name in ("h1", "h2", "h3", "h4", "h5", "h6"):
        words = inner_text(element, roles)
        return f"\n# {words}\n" if words.strip() else ""
    if name == "a":
        words, address = inner_text(element, roles), element.get("href", "")
        if words == "↑":
            return ""
        return (
            f"{words} <{address}>" if address and not address.startswith("#") and address != words else words
        )
    if name == "li":
        return f"\n- {inner_text(element, roles).strip()}\n"
    if name == "input":
        if element.get("checked"):
            return "☒"
        return "☐"
    if name == "img":
        if element.get("alt"):
            return f"[picture: {element.get('alt')}]"
        return ""
    return None


_ROLES = Roles(XHTML.blocks, XHTML.rows, XHTML.cells, XHTML.skipped, XHTML.fixed, _write)
