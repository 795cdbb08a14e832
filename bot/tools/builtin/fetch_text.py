"""A page's bytes as text for the model: HTML without its markup, scripts and hidden parts.

Tags are found by a small reader of our own, for a page is a stranger's: each character is read once or
twice, whatever the page, and after `_MOST_TAGS` tags the rest is left out. It follows the HTML standard where
that decides what people see: what is opened and never closed (a comment, a quote, a script) takes the rest.
"""

import codecs
import html
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

_MOST_TAGS = 50_000
_MOST_LINKS, _LONGEST_LINK = 60, 500
_CELL = "\ufdd0"  # between two cells of a row, until what is around it is tidied
_LEFT_OUT = "[The rest of the page is left out: it has too much markup.]"
_SILENT = frozenset({"script", "style", "template", "noscript", "svg", "iframe", "object", "head"})
_RAW = frozenset({"script", "style", "iframe", "noscript", "textarea", "title", "xmp"})  # no tags inside
_BLOCKS = frozenset({
    "p", "div", "section", "article", "header", "footer", "main", "nav", "aside", "ul", "ol", "li", "table",
    "tr", "h1", "h2", "h3", "h4", "h5", "h6",
    "pre", "blockquote", "br", "hr", "dl", "dt", "dd", "form", "figure", "option",
})  # fmt: skip
_NO_WORDS = frozenset({"hidden", "submit", "button", "reset", "image", "password", "file"})  # inputs
_HEADINGS = {"h1": "# ", "h2": "## ", "h3": "### ", "li": "- "}
_NO_CHARSETS = frozenset({"punycode", "idna", "unicode-escape", "raw-unicode-escape"})  # some are quadratic
_ATTRIBUTE = r"""
    (=?+[^\s/>=]*+)\s*+  # its name
    (?: (?!=) | =\s*+ (?: "([^"]*+)" | '([^']*+)' | (?!["'])([^\s>]*+) ) )
"""
_SAID = re.compile(rf"[\s/]*+{_ATTRIBUTE}", re.VERBOSE)
_PIECE = re.compile(
    rf"""
    (?P<text> [^<]++ | <(?!/?[A-Za-z] | [!?] | \Z) )
    | <!(?=--).*?(?:-->|\Z) | <[!?][^>]*+>? | <\Z  # comments
    | <(?P<closes>/?)(?P<tag>[A-Za-z][^\s/>]*+) (?P<said>(?:[\s/]*+(?![\s/>]|\Z){_ATTRIBUTE})*+) [\s/]*+>
    """,
    re.DOTALL | re.VERBOSE,
)
"""Linear in any page: nothing that was taken is tried in another way."""
_REFERENCE = re.compile(r"&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});?")


def readable(body: bytes, kind: str, charset: str) -> dict[str, Any]:
    """Return ``text`` and, of an HTML page, its ``title`` and ``links`` where it has them.

    Unknown character sets are read as UTF-8.
    """
    try:
        known = codecs.lookup(charset).name
        text = body.decode("utf-8" if known in _NO_CHARSETS else known, errors="replace")
    except (LookupError, ValueError):
        text = body.decode(errors="replace")
    text = text.replace("\0", "\ufffd")
    if kind not in ("text/html", "application/xhtml+xml"):
        return {"text": text}
    page = _Page()
    for count, token in enumerate(_tokens(text)):
        if count >= _MOST_TAGS:
            page.parts.append(f"\n\n{_LEFT_OUT}")
            break
        page.take(*token)
    told: dict[str, Any] = {"title": " ".join("".join(page.title).split())} if page.title else {}
    if page.links:
        told["links"] = list(page.links)
    return {**told, "text": _tidy("".join(page.parts))}


_Token = tuple[str, str, str]
"""``text`` and what it says; ``open`` and ``close`` with the tag's name; a link's address or the alt text."""


def _tokens(page: str) -> Iterator[_Token]:
    place = 0
    while found := _PIECE.match(page, place):  # none: a tag that is never closed takes the rest
        place = found.end()
        if text := found["text"]:
            yield "text", text, ""
        elif name := (found["tag"] or "").lower():
            said = _words_of(name, found["said"])
            yield ("close" if found["closes"] else "open"), name, said
            if name in _RAW and not found["closes"]:
                end = _end_of(name).search(page, place)
                inside = page[place : end.start() if end else len(page)]
                yield "text", inside, ""
                place += len(inside)


def _words_of(name: str, tag: str) -> str:
    """Return the text in a tag's attributes: a link's address, a picture's text, a filled-in value."""
    if name == "input":
        return _read_filled_in(tag)
    if name == "option":
        return "☒ " if _is_set(tag, "selected") else ""
    return _attribute(tag, "href" if name == "a" else "alt")


def _read_filled_in(tag: str) -> str:
    kind = _attribute(tag, "type").lower()
    if kind in ("checkbox", "radio"):
        return " ☒ " if _is_set(tag, "checked") else " ☐ "
    return "" if kind in _NO_WORDS else f" {_attribute(tag, 'value')} "


def _is_set(tag: str, wanted: str) -> bool:
    return any(found[1].lower() == wanted for found in _SAID.finditer(tag))


def _attribute(tag: str, wanted: str) -> str:
    """Return the value of a tag's attribute; empty where it has none."""
    said = ""
    for found in _SAID.finditer(tag):
        name, *values = found.groups()
        if name.lower() == wanted and any(value is not None for value in values):
            said = "".join(filter(None, values))
    return said


def _end_of(name: str) -> re.Pattern[str]:
    return re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE | re.ASCII)


class _Page:
    """The collector of a page's visible text."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.title: list[str] = []
        self.links: dict[str, None] = {}  # in their order, each once
        self._silent: list[str] = []
        self._open: Counter[str] = Counter()  # how often each name is in `_silent`
        self._in_title = False
        self._in_row = False

    def take(self, kind: str, word: str, said: str) -> None:
        if kind == "open":
            self._open_tag(word, said)
        elif kind == "close":
            self._close_tag(word)
        elif self._in_title:
            self.title.append(_unescape(word))
        elif not self._silent:
            self.parts.append(_unescape(word))

    def _open_tag(self, tag: str, said: str) -> None:
        if tag == "title" and not self._open["svg"]:
            self._in_title = True
        elif tag == "body":
            self._silent.clear()  # a head that was never closed
            self._open.clear()
        elif tag in _SILENT:
            self._silent.append(tag)
            self._open[tag] += 1
        elif not self._silent and tag in _BLOCKS:
            self._in_row = self._in_row and tag != "tr"
            self.parts.append("\n" + _HEADINGS.get(tag, said if tag == "option" else ""))
        elif not self._silent and tag in ("img", "input"):
            self.parts.append(_unescape(said))
        elif not self._silent and tag in ("td", "th"):
            self.parts.append(_CELL if self._in_row else "")
            self._in_row = True
        elif tag == "a" and 0 < len(said) <= _LONGEST_LINK and len(self.links) < _MOST_LINKS:
            self.links[_unescape(said.strip())] = None

    def _close_tag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif self._open[tag]:
            last = ""
            while last != tag:
                last = self._silent.pop()
                self._open[last] -= 1
        elif not self._silent and tag in (*_BLOCKS, "td", "th"):
            self.parts.append("\n" if tag in _BLOCKS else " ")


def _unescape(text: str) -> str:
    return _REFERENCE.sub(lambda found: html.unescape(found[0]), text)


def _tidy(text: str) -> str:
    lines = (re.sub(rf" ?{_CELL} ?", "\t", " ".join(line.split())) for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line if line.strip() else "" for line in lines)).strip()
