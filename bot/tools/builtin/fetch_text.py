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
_LEFT_OUT = "[The rest of the page is left out: it has too much markup.]"
_SILENT = frozenset({"script", "style", "template", "noscript", "svg", "iframe", "object", "head"})
_RAW = frozenset({"script", "style", "iframe", "noscript", "textarea", "title", "xmp"})  # no tags inside
_BLOCKS = frozenset({
    "p", "div", "section", "article", "header", "footer", "main", "nav", "aside", "ul", "ol", "li", "table",
    "tr", "h1", "h2", "h3", "h4", "h5", "h6",
    "pre", "blockquote", "br", "hr", "dl", "dt", "dd", "form", "figure",
})  # fmt: skip
_HEADINGS = {"h1": "# ", "h2": "## ", "h3": "### ", "li": "- "}
_NO_CHARSETS = frozenset({"punycode", "idna", "unicode-escape", "raw-unicode-escape"})  # some are quadratic
_NAME = re.compile(r"[A-Za-z][^\s/>]*")
_BEFORE_ATTRIBUTE = re.compile(r"[\s/]*")
_ATTRIBUTE = re.compile(r"=?[^\s/>=]*\s*")  # each of these pieces is found from where the one before ended
_UNQUOTED = re.compile(r"[^\s>]*")
_REFERENCE = re.compile(r"&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});?")


def readable(body: bytes, kind: str, charset: str) -> dict[str, Any]:
    """``text``, and of an HTML page its ``title`` and ``links`` where it has them, as they stand there.

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
    while place < len(page):
        start = page.find("<", place)
        if start < 0:
            start = len(page)
        if start > place:
            yield "text", page[place:start], ""
        following = page[start + 1 : start + 2]
        if not following or following in "!?":
            place = _past_comment(page, start)
            continue
        closes = following == "/"
        named = _NAME.match(page, start + 1 + closes)
        if named is None:
            yield "text", page[start : start + 1], ""
            place = start + 1
            continue
        name = named[0].lower()
        place, said = _past_tag(page, named.end(), "href" if name == "a" else "alt")
        if place < 0:
            return
        yield ("close" if closes else "open"), name, said
        if name in _RAW and not closes:
            end = _end_of(name).search(page, place)
            inside = page[place : end.start() if end else len(page)]
            yield "text", inside, ""
            place = end.start() if end else len(page)


def _past_comment(page: str, start: int) -> int:
    if not page.startswith("<!--", start):
        end = page.find(">", start)
        return end + 1 if end >= 0 else len(page)
    end = page.find("-->", start + 2)
    return end + 3 if end >= 0 else len(page)


def _past_tag(page: str, place: int, wanted: str) -> tuple[int, str]:
    """Where the tag ends (-1: never), and its attribute of the wanted name."""
    said = ""
    while True:
        place = _end(_BEFORE_ATTRIBUTE, page, place)
        if place >= len(page):
            return -1, ""
        if page[place] == ">":
            return place + 1, said
        begin, place = place, _end(_ATTRIBUTE, page, place)
        name = page[begin:place].strip().lower()
        if not page.startswith("=", place):
            continue
        place += 1
        while page[place : place + 1].isspace():
            place += 1
        quote = page[place : place + 1]
        if quote in ('"', "'") and quote:
            end = page.find(quote, place + 1)
            if end < 0:
                return -1, ""
            value, place = page[place + 1 : end], end + 1
        else:
            begin, place = place, _end(_UNQUOTED, page, place)
            value = page[begin:place]
        said = value if name == wanted else said


def _end(pattern: re.Pattern[str], page: str, place: int) -> int:
    found = pattern.match(page, place)
    return found.end() if found else place


def _end_of(name: str) -> re.Pattern[str]:
    return re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE | re.ASCII)


class _Page:
    """Collects what a reader would see."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.title: list[str] = []
        self.links: dict[str, None] = {}  # in their order, each once
        self._silent: list[str] = []
        self._open: Counter[str] = Counter()  # how often each name is in `_silent`
        self._in_title = False

    def take(self, kind: str, word: str, said: str) -> None:
        if kind == "open":
            self._opened(word, said)
        elif kind == "close":
            self._closed(word)
        elif self._in_title:
            self.title.append(_unescaped(word))
        elif not self._silent:
            self.parts.append(_unescaped(word))

    def _opened(self, tag: str, said: str) -> None:
        if tag == "title" and not self._open["svg"]:
            self._in_title = True
        elif tag == "body":
            self._silent.clear()  # a head that was never closed
            self._open.clear()
        elif tag in _SILENT:
            self._silent.append(tag)
            self._open[tag] += 1
        elif not self._silent and tag in _BLOCKS:
            self.parts.append("\n" + _HEADINGS.get(tag, ""))
        elif not self._silent and tag == "img":
            self.parts.append(_unescaped(said))
        elif tag == "a" and 0 < len(said) <= _LONGEST_LINK and len(self.links) < _MOST_LINKS:
            self.links[_unescaped(said.strip())] = None

    def _closed(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif self._open[tag]:
            last = ""
            while last != tag:
                last = self._silent.pop()
                self._open[last] -= 1
        elif not self._silent and tag in _BLOCKS:
            self.parts.append("\n")
        elif not self._silent and tag in ("td", "th"):
            self.parts.append("\t")


def _unescaped(text: str) -> str:
    return _REFERENCE.sub(lambda found: html.unescape(found[0]), text)


def _tidy(text: str) -> str:
    lines = (re.sub(r"[^\S\n]+", " ", line).strip() for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
