"""Word documents (DOCX), read by mammoth, which makes XHTML of them.

mammoth passes over text boxes, headers, equations and more. So the document's XML is changed first: the text
of these is put where mammoth reads it, and hidden text is removed. Names of elements are those of
WordprocessingML (ECMA-376), such as ``r`` for a run, a piece of text in one format.
"""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

from lxml import etree  # type: ignore[import-untyped]

from bot.tools.reading.markup import (
    XHTML,
    Roles,
    find_all,
    find_ancestor,
    find_child,
    find_children,
    inner_text,
    local_name,
    parse_xml,
    read_attribute,
    text_of_element,
)
from bot.tools.reading.report import Report
from bot.tools.reading.unseen.word_styles import TextStyles, remove_hidden, report_hidden_drawings
from bot.tools.reading.zip_package import Package, find_main_part

_COUNTED = {  # the content that is left out and counted, by its element's name
    "chart": "chart", "relIds": "diagram", "OLEObject": "embedded object", "altChunk": "embedded document",
    "subDoc": "embedded document",
    "control": "form control", "pic": "picture", "imagedata": "picture",
}  # fmt: skip


def read_docx(package: Package, report: Report) -> str:
    """Return the text with all tracked changes accepted; then the headers, footnotes and comments."""
    import mammoth  # type: ignore[import-untyped]

    main = find_main_part(package)
    root = parse_xml(package.read(main))
    # Word's namespace, as lxml writes it before a name: "{http…}"
    namespace = root.tag.rpartition("}")[0] + "}"
    headers = list(_list_headers(package, main))
    styles = TextStyles(package, main)
    for tree in (root, *(tree for _, tree in headers)):
        report_hidden_drawings(tree, report)
        _count_left_out(tree, report)
        _move_text_boxes(tree)
        _unwrap(tree)
        _write_choices(tree, namespace)
        _write_ruby(tree, namespace)
        _write_equations(tree, namespace, report)
        remove_hidden(tree, styles, report)
    body = find_child(root, "body")
    if body is None:
        body = root
    for title, tree in headers:
        _append_header(body, namespace, title, tree)
    _add_missing_comment_references(body, namespace, package, main)
    if any(name.endswith("vbaProject.bin") for name in package.names):
        report.count_left_out("part with macros")
    document = package.with_parts({main: etree.tostring(root, xml_declaration=True, encoding="utf-8")})
    converted = mammoth.convert_to_html(
        BytesIO(document),
        style_map="comment-reference => sup",  # without a style, mammoth drops comments
        include_embedded_style_map=False,
        convert_image=mammoth.images.img_element(lambda _image: {}),  # pictures are left out
    )
    return text_of_element(parse_xml(f"<body>{converted.value}</body>".encode()), _ROLES)


def _list_headers(package: Package, main: str) -> Iterator[tuple[str, Any]]:
    """Yield the title and the tree of each header and footer; one with the same text comes once."""
    texts = set()
    for kind, part in package.relations(main).values():
        if kind in ("header", "footer") and part in package.names:
            tree = parse_xml(package.read(part))
            text = "".join(tree.itertext())
            if text.strip() and text not in texts:
                texts.add(text)
                yield kind.capitalize(), tree


def _append_header(body: Any, namespace: str, title: str, tree: Any) -> None:
    """Move a header's blocks to the end of the body.

    The addresses of its links and pictures are removed: their ids mean something else in the body's file.
    """
    for link in find_all(tree, "hyperlink", "blip", "imagedata"):
        link.attrib.clear()
    label = etree.SubElement(body, f"{namespace}p")
    label.append(_make_run(namespace, f"[{title}]"))
    for block in list(tree):
        body.append(block)


def _make_run(namespace: str, text: str) -> Any:
    """Return a run, Word's element for a piece of text."""
    run = etree.Element(f"{namespace}r")
    etree.SubElement(run, f"{namespace}t").text = text
    return run


def _count_left_out(tree: Any, report: Report) -> None:
    repeated = set()  # a fallback repeats a drawing for older programs
    for fallback in find_all(tree, "Fallback"):
        repeated.update(fallback.iter())
    for element in tree.iter():
        name = local_name(element)
        if element in repeated:
            continue
        if name in _COUNTED:
            report.count_left_out(_COUNTED[name])
        elif name == "del" and (_has_words(element) or local_name(element.getparent()) == "trPr"):
            report.count_left_out("tracked deletion")


def _has_words(deletion: Any) -> bool:
    return any(element.text for element in find_all(deletion, "delText", "t"))


def _move_text_boxes(tree: Any) -> None:
    """Move the text of drawn boxes to where mammoth reads it.

    mammoth passes over a ``drawing``, so its boxes are moved behind it. An ``AlternateContent`` has the same
    drawing again for older programs, as its ``Fallback``. mammoth reads only the ``Fallback``, so the boxes
    are moved there, unless the ``Fallback`` has boxes itself.
    """
    for drawing in find_all(tree, "drawing"):
        boxes = find_all(drawing, "txbxContent")
        alternatives = find_ancestor(drawing, "AlternateContent")
        if alternatives is None:
            _add_after(drawing, boxes)
            continue
        fallback = find_child(alternatives, "Fallback")
        if fallback is None:
            _add_after(alternatives, boxes)
        elif not find_all(fallback, "txbxContent"):
            for box in boxes:
                fallback.append(box)


def _add_after(element: Any, boxes: list[Any]) -> None:
    for box in reversed(boxes):
        element.addnext(box)


def _unwrap(tree: Any) -> None:
    """Replace simple fields and direction marks, which mammoth passes over, by their content."""
    for wrapper in find_all(tree, "fldSimple", "bdo", "dir"):
        _replace_by_children(wrapper)


def _replace_by_children(element: Any) -> None:
    for child in list(element):
        element.addprevious(child)
    element.getparent().remove(element)


def _write_choices(tree: Any, namespace: str) -> None:
    """Write the entry that was chosen in an old form's list in front of its field."""
    for choice in find_all(tree, "ddList"):
        entries = [read_attribute(entry, "val") for entry in find_children(choice, "listEntry")]
        result = find_child(choice, "result")
        index = "0" if result is None else read_attribute(result, "val")
        run = find_ancestor(choice, "r")
        if run is not None and index.isdecimal() and int(index) < len(entries):
            run.addprevious(_make_run(namespace, entries[int(index)]))


def _write_ruby(tree: Any, namespace: str) -> None:
    """Write words with their pronunciation above them (ruby) in one line: 東京 (とうきょう)."""
    for ruby in find_all(tree, "ruby"):
        texts = {local_name(part): "".join(part.itertext()) for part in ruby}
        reading = f" ({texts['rt']})" if texts.get("rt") else ""
        text = etree.Element(f"{namespace}t")
        text.text = f"{texts.get('rubyBase', '')}{reading}"
        ruby.getparent().replace(ruby, text)


def _add_missing_comment_references(body: Any, namespace: str, package: Package, main: str) -> None:
    """Add a reference to each comment without a reference: mammoth writes only referenced comments."""
    referred = {read_attribute(reference, "id") for reference in find_all(body, "commentReference")}
    for kind, part in package.relations(main).values():
        if kind != "comments" or part not in package.names:
            continue
        for comment in find_children(parse_xml(package.read(part)), "comment"):
            comment_id = read_attribute(comment, "id")
            if comment_id not in referred:
                run = etree.SubElement(etree.SubElement(body, f"{namespace}p"), f"{namespace}r")
                etree.SubElement(run, f"{namespace}commentReference", {f"{namespace}id": comment_id})


def _write_equations(tree: Any, namespace: str, report: Report) -> None:
    """Write the characters of each equation in its place; their layout is left out."""
    for equation in find_all(tree, "oMath"):
        report.count_left_out("equation with its layout")
        run = _make_run(namespace, f"[equation: {''.join(equation.itertext())}]")
        run.tail = equation.tail
        equation.getparent().replace(equation, run)
    for paragraph in find_all(tree, "oMathPara"):
        _replace_by_children(paragraph)


def _write_element(element: Any, roles: Roles) -> str | None:
    """Return the text of an element that needs more than its plain text; None for others."""
    name = local_name(element)
    if name in ("h1", "h2", "h3", "h4", "h5", "h6"):
        words = inner_text(element, roles)
        return f"\n# {words}\n" if words.strip() else ""
    if name == "a":
        words, address = inner_text(element, roles), element.get("href", "")
        if words == "↑":  # mammoth's link from a note back to the text
            return ""
        if address and not address.startswith("#") and address != words:
            return f"{words} <{address}>"
        return words
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


_ROLES = Roles(XHTML.blocks, XHTML.rows, XHTML.cells, XHTML.skipped, XHTML.fixed, _write_element)
