"""Web pages: their text as people who open them see it. Hidden text is left out and counted.

`read_page` parses the page by libxml2 and walks over its elements once (`_PageWalk`). At each element the
walk computes the appearance of its text (``unseen/visibility.py``) from the page's style sheets
(``unseen/style_sheets.py``). Text that people see is collected, with line breaks where blocks begin and tabs
between the cells of a table.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lxml import etree  # type: ignore[import-untyped]

from bot.tools.reading.markup import local_name
from bot.tools.reading.report import Report
from bot.tools.reading.unseen.at_rules import judge_media
from bot.tools.reading.unseen.style_sheets import StyleSheets
from bot.tools.reading.unseen.visibility import HIDING_PROPERTIES, Appearance, find_appearance

_MAX_LINKS = 60
_MAX_LINK_CHARS = 500
_CELL_BREAK = "\ufdd0"  # stands for the tab between two cells until `_tidy`, which joins all white space
_UNREAD = frozenset(  # elements whose content is not read
    {"script", "style", "svg", "iframe", "object", "embed", "head", "title", "area", "param", "math"}
)
_BLOCKS = frozenset({
    "p", "div", "section", "article", "header", "footer", "main", "nav", "aside", "ul", "ol", "li", "table",
    "tr", "h1", "h2", "h3", "h4", "h5", "h6",
    "pre", "blockquote", "br", "hr", "dl", "dt", "dd", "form", "figure", "option",
    "select", "summary", "details",
})  # fmt: skip
_NO_BREAK_AFTER = frozenset({"li", "option", "tr", "dt", "dd", "br", "hr"})
"""The blocks with a line break before their content, but none after it."""
_UNREAD_INPUTS = frozenset({"hidden", "submit", "button", "reset", "image", "password", "file"})
_LINE_PREFIXES = {"h1": "# ", "h2": "## ", "h3": "### ", "li": "- "}
_COUNTED = {  # the content that is left out and counted, by its element
    "img": "picture",
    "svg": "picture",
    "canvas": "picture",
    "math": "equation",
    "iframe": "embedded page",
    "object": "embedded page",
    "embed": "embedded page",
    "video": "recording",
    "audio": "recording",
}
_COUNTED_IF_HIDDEN = frozenset({"canvas", "audio", "video"})  # they can be heard, or drawn on later
_CUT_TEXT = "The rest of the page is left out: it has too much markup."
_SHEETS_TEXT = "Its style sheets at other addresses weren't read. Text that they hide is in what I read."
_SELECTORS_TEXT = "A style sheet of it hides or shows text in a way that I can't follow."
_MISNESTED_TEXT = "Its markup has faults. Text that it hides may be in what I read."
_CUT_ERRORS = ("Excessive depth", "xmlSAX2", "Memory allocation")
"""The first words of libxml2's errors after which it reads no further."""
_MISNESTED_ERROR = "Opening and ending tag mismatch"
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Page:
    """A page as people see it."""

    title: str
    text: str
    links: tuple[str, ...]
    """The addresses of its visible links, as they are written there."""


def read_page(markup: str, report: Report, sheets: Mapping[str, str] | None = None) -> Page:
    """Return the visible text of a page; ``sheets`` are its style sheets in other files, by address."""
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    root = etree.fromstring(markup.replace("\0", "\ufffd").encode(errors="replace"), parser)
    if root is None:
        return Page("", "", ())
    walk = _PageWalk(report, _collect_sheets(root, sheets or {}, report))
    walk.read(root)
    faults = [entry.message for entry in parser.error_log]
    if any(fault.startswith(_CUT_ERRORS) for fault in faults):
        report.remark(_CUT_TEXT)
    if walk.hiding_elements and any(fault.startswith(_MISNESTED_ERROR) for fault in faults):
        report.remark(_MISNESTED_TEXT)
    return walk.as_page(root)


def read_html(text: str, report: Report, sheets: Mapping[str, str] | None = None) -> str:
    """Return the title and the visible text of a page. ``sheets`` as in `read_page`."""
    page = read_page(text, report, sheets)
    return f"# {page.title}\n{page.text}" if page.title else page.text


def _collect_sheets(root: Any, files: Mapping[str, str], report: Report) -> StyleSheets:
    """Return the page's style sheets for a screen, and report those that can't be read or followed."""
    sheets = StyleSheets(HIDING_PROPERTIES)
    missing_sheets = 0
    for element in root.iter("style", "link"):
        is_met = judge_media(element.get("media", ""))
        if is_met is False:
            continue
        is_certain = is_met is not None
        if local_name(element) == "style":
            sheets.add("".join(element.itertext()), is_certain=is_certain)
        elif "stylesheet" in element.get("rel", "").lower().split():
            address = element.get("href", "")
            sheets.add(files.get(address, ""), is_certain=is_certain)
            if address not in files:
                missing_sheets += 1
    if missing_sheets or sheets.imports:
        report.remark(_SHEETS_TEXT)
    if sheets.unread_rules:
        report.remark(_SELECTORS_TEXT)
    return sheets


@dataclass(slots=True)
class _PageWalk:
    """A walk over the elements of a page, and the text that was collected so far."""

    report: Report
    sheets: StyleSheets
    hiding_elements: set[Any] = field(default_factory=set)
    """The elements that hide text from people."""
    _parts: list[str] = field(default_factory=list)
    _links: dict[str, None] = field(default_factory=dict)  # the links in their order, without repetitions
    _open_appearances: list[tuple[Appearance, ...]] = field(init=False)
    """The appearances of each open element, the innermost last.

    An element has one for each of the sheets' assumptions (`StyleSheets.assumptions`): usually one, and two
    if there are conditions that can't be judged.
    """
    _unread_depth: int = 0
    """The number of open elements from the outermost one that is not read; 0 outside such an element."""
    _in_row: bool = False
    """True after the first cell of a row."""
    _hiding_from_screen_readers: set[Any] = field(default_factory=set)
    """The elements that hide text from screen readers."""

    def __post_init__(self) -> None:
        self._open_appearances = [tuple(Appearance() for _ in self.sheets.assumptions)]

    def read(self, root: Any) -> None:
        """Collect the text of the page. An element is *open* from its start to its end in the markup."""
        for event, element in etree.iterwalk(root, events=("start", "end")):
            if event == "start":
                self._open(element)
            else:
                self._close(element)

    def as_page(self, root: Any) -> Page:
        """Return the collected text, and count the hidden elements."""
        self.report.count_left_out("piece of hidden text", len(self.hiding_elements))
        self.report.count_hidden(
            "piece of text hidden from screen readers", len(self._hiding_from_screen_readers)
        )
        return Page(_find_title(root), _tidy("".join(self._parts)), tuple(self._links))

    def _open(self, element: Any) -> None:
        tag = local_name(element).lower()
        # a pair of the element's styles and its parent's appearance for each assumption
        pairs = zip(self.sheets.find(element), self._open_appearances[-1], strict=True)
        self._open_appearances.append(tuple(find_appearance(element, *pair) for pair in pairs))
        appearance = self._appearance
        self._count(tag, appearance)
        if self._unread_depth or tag in _UNREAD:
            self._unread_depth += 1
            return
        if tag in _BLOCKS:
            self._in_row = self._in_row and tag != "tr"
            self._parts.append("\n" + _LINE_PREFIXES.get(tag, ""))
        elif tag in ("td", "th"):
            self._parts.append(_CELL_BREAK if self._in_row else "")
            self._in_row = True
        self._add_text(_text_of_attributes(element, tag))
        address = element.get("href", "").strip() if tag == "a" else ""
        if 0 < len(address) <= _MAX_LINK_CHARS and len(self._links) < _MAX_LINKS and not appearance.is_unseen:
            self._links[address] = None
        self._add_text(element.text or "")

    @property
    def _appearance(self) -> Appearance:
        """The innermost open element's first appearance in which it is hidden, else its first one."""
        appearances = self._open_appearances[-1]
        return next((appearance for appearance in appearances if appearance.is_unseen), appearances[0])

    def _close(self, element: Any) -> None:
        tag = local_name(element).lower()
        self._open_appearances.pop()
        if self._unread_depth:
            self._unread_depth -= 1
        elif tag in ("td", "th") or tag in _BLOCKS - _NO_BREAK_AFTER:
            self._parts.append("\n" if tag in _BLOCKS else " ")
        if not self._unread_depth:
            self._add_text(element.tail or "")

    def _add_text(self, text: str) -> None:
        """Add text of the innermost open element, or record the element that hides it from people."""
        appearance = self._appearance
        has_words = _WORD.search(text) is not None
        if appearance.is_unseen:
            if has_words:
                self.hiding_elements.add(appearance.hiding_element)
            return
        self._parts.append(text)
        if has_words and appearance.screen_reader_hiding_element is not None:
            self._hiding_from_screen_readers.add(appearance.screen_reader_hiding_element)

    def _count(self, tag: str, appearance: Appearance) -> None:
        if self._unread_depth or tag not in _COUNTED:
            return
        if tag in _COUNTED_IF_HIDDEN or not appearance.is_unseen:
            self.report.count_left_out(_COUNTED[tag])


def _find_title(root: Any) -> str:
    for title in root.iter("title"):
        is_of_picture = any(local_name(ancestor).lower() == "svg" for ancestor in title.iterancestors())
        if not is_of_picture:
            return " ".join("".join(title.itertext()).split())
    return ""


def _text_of_attributes(element: Any, tag: str) -> str:
    """Return the text that an element has in its attributes: a picture's description, a form's value."""
    if tag == "option":
        if element.get("selected") is not None:
            return "☒ "
        return ""
    if tag == "img":
        words = element.get("alt", "").strip()
        if words:
            return f"[picture: {words}]"
        return ""
    if tag != "input":
        return ""
    kind = element.get("type", "").lower()
    if kind in ("checkbox", "radio"):
        if element.get("checked") is not None:
            return " ☒ "
        return " ☐ "
    if kind in _UNREAD_INPUTS:
        return ""
    return f" {element.get('value', '')} "


def _tidy(text: str) -> str:
    """Return the collected text with single spaces and tabs in a line, and no more than one empty line."""
    lines = []
    for line in text.split("\n"):
        line_with_tabs = re.sub(rf" ?{_CELL_BREAK} ?", "\t", " ".join(line.split()))
        lines.append(line_with_tabs if line_with_tabs.strip() else "")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
