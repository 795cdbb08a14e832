"""Text from markup that was parsed: paragraphs on lines of their own, a table's row on one line.

`Roles` says what the names of elements mean, so that one walk serves XHTML and OpenDocument.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lxml import etree  # type: ignore[import-untyped]


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of elements, by local name. ``special`` writes one itself.

    None has it walked as any other.
    """

    blocks: frozenset[str]
    rows: frozenset[str]
    cells: frozenset[str]
    skipped: frozenset[str] = frozenset()
    fixed: Mapping[str, str] = field(default_factory=dict)
    special: Callable[[Any, "Roles"], str | None] = lambda _element, _roles: None


def parse_xml(data: bytes) -> Any:
    """Return the root element. Entities stay unresolved, nothing is fetched, depth is bounded by libxml2."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True)
    return etree.fromstring(data, parser)


def local_name(element: Any) -> str:
    if isinstance(element.tag, str):
        return element.tag.rpartition("}")[2]
    return ""


def attribute(element: Any, name: str) -> str:
    """Return an attribute by its local name, whatever its namespace, else nothing."""
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
        cells = [each for each in element.iterdescendants() if _is_cell_of(each, element, roles)]
        yield "\n" + "\t".join(_one_line(text_of_element(each, roles)) for each in cells) + "\n"
    else:
        edge = "\n" if name in roles.blocks else ""
        yield edge
        yield from _walk_inside(element, roles)
        yield edge


def _walk_inside(element: Any, roles: Roles) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        yield from _walk(child, roles)
        yield child.tail or ""


def _is_cell_of(element: Any, row: Any, roles: Roles) -> bool:
    if local_name(element) not in roles.cells:
        return False
    above = element.getparent()
    while above is not row and local_name(above) not in roles.rows:
        above = above.getparent()
    return above is row


def _one_line(text: str) -> str:
    return " / ".join(" ".join(line.split()) for line in text.split("\n") if line.strip())


def inner_text(element: Any, roles: Roles) -> str:
    """Return the text inside an element, for a `Roles.special` that writes around it."""
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
