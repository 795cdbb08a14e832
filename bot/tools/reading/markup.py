"""Text of parsed markup: each paragraph on its own line, each row of a table on one line.

`text_of_element` writes out the text of a tree. `Roles` says what the names of elements mean, so that one
function serves XHTML and OpenDocument. Elements and attributes are found by their *local name*, without the
namespace, because programs write different namespaces.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lxml import etree  # type: ignore[import-untyped]


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of elements, by local name."""

    blocks: frozenset[str]
    """Elements that begin and end a line."""
    rows: frozenset[str]
    """Rows of a table."""
    cells: frozenset[str]
    skipped: frozenset[str] = frozenset()
    fixed: Mapping[str, str] = field(default_factory=dict)
    """The text of an element that is always the same, such as a tab."""
    special: Callable[[Any, "Roles"], str | None] = lambda _element, _roles: None
    """Returns the text of an element that needs its own format; None for all others."""


def parse_xml(data: bytes) -> Any:
    """Return the root element, without comments and processing instructions, which people do not see.

    Entities stay unresolved, nothing is fetched, depth is bounded by libxml2.
    """
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
    )
    return etree.fromstring(data, parser)


def local_name(element: Any) -> str:
    """Return the name of an element without its namespace; empty for an entity, which has none."""
    if isinstance(element.tag, str):
        return element.tag.rpartition("}")[2]
    return ""


def find_all(tree: Any, *names: str) -> list[Any]:
    """Return the elements with one of these names in a tree, its root included, in their order."""
    return [element for element in tree.iter() if local_name(element) in names]


def find_children(element: Any, *names: str) -> list[Any]:
    """Return the direct children of an element with one of these names."""
    return [child for child in element if local_name(child) in names]


def find_child(element: Any, name: str) -> Any:
    """Return the first direct child with this name; None without one."""
    for child in element:
        if local_name(child) == name:
            return child
    return None


def find_ancestor(element: Any, name: str) -> Any:
    """Return the nearest ancestor with this name; None without one."""
    for ancestor in element.iterancestors():
        if local_name(ancestor) == name:
            return ancestor
    return None


def read_attribute(element: Any, name: str) -> str:
    """Return an attribute by its local name; empty without one."""
    for key, value in element.attrib.items():
        if key.rpartition("}")[2] == name:
            return str(value)
    return ""


def text_of_element(element: Any, roles: Roles) -> str:
    """Return the text of an element, without empty lines."""
    lines = (line.rstrip() for line in "".join(_walk(element, roles)).split("\n"))
    return "\n".join(line for line in lines if line)


def _walk(element: Any, roles: Roles) -> Iterator[str]:
    name = local_name(element)
    if name in roles.skipped:
        return
    written = roles.special(element, roles)
    if written is not None:
        yield written
    elif name in roles.fixed:
        yield roles.fixed[name]
    elif name in roles.rows:
        cells = [cell for cell in element.iterdescendants() if _is_cell_of(cell, element, roles)]
        yield "\n" + "\t".join(_one_line(text_of_element(cell, roles)) for cell in cells) + "\n"
    else:
        line_break = "\n" if name in roles.blocks else ""
        yield line_break
        yield from _walk_inside(element, roles)
        yield line_break


def _walk_inside(element: Any, roles: Roles) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        yield from _walk(child, roles)
        yield child.tail or ""


def _is_cell_of(element: Any, row: Any, roles: Roles) -> bool:
    """Tell if an element is a cell of this row, not of a table inside the row."""
    if local_name(element) not in roles.cells:
        return False
    ancestor = element.getparent()
    while ancestor is not row and local_name(ancestor) not in roles.rows:
        ancestor = ancestor.getparent()
    return ancestor is row


def _one_line(text: str) -> str:
    return " / ".join(" ".join(line.split()) for line in text.split("\n") if line.strip())


def inner_text(element: Any, roles: Roles) -> str:
    """Return the text inside an element, for a `Roles.special` that puts something before or after it."""
    return "".join(_walk_inside(element, roles))


XHTML = Roles(
    blocks=frozenset(
        {"p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "li", "ul", "ol", "table", "dl", "dt", "dd", "body"}
    ),
    rows=frozenset({"tr"}),
    cells=frozenset({"td", "th"}),
    skipped=frozenset({"head", "script", "style"}),
    fixed={"br": "\n"},
)
