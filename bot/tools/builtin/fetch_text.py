"""A page's bytes as text for the model: HTML without its markup, scripts and hidden parts."""

import re
from html.parser import HTMLParser
from typing import Any

_SILENT = frozenset({"script", "style", "template", "noscript", "svg", "iframe", "object", "head"})
_BLOCKS = frozenset({
    "p", "div", "section", "article", "header", "footer", "main", "nav", "aside", "ul", "ol", "li", "table",
    "tr", "h1", "h2", "h3", "h4", "h5", "h6",
    "pre", "blockquote", "br", "hr", "dl", "dt", "dd", "form", "figure",
})  # fmt: skip
_HEADINGS = {"h1": "# ", "h2": "## ", "h3": "### ", "li": "- "}


def readable(body: bytes, kind: str, charset: str) -> dict[str, Any]:
    """``text``, and ``title`` where an HTML page has one. Unknown character sets are read as UTF-8."""
    try:
        text = body.decode(charset, errors="replace")
    except (LookupError, ValueError):
        text = body.decode(errors="replace")
    text = text.replace("\0", "\ufffd")
    if kind not in ("text/html", "application/xhtml+xml"):
        return {"text": text}
    page = _Page()
    page.feed(text)
    page.close()
    told = {"title": " ".join("".join(page.title).split())} if page.title else {}
    return {**told, "text": _tidy("".join(page.parts))}


class _Page(HTMLParser):
    """Collects what a reader would see."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title: list[str] = []
        self._silent: list[str] = []
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title" and "svg" not in self._silent:
            self._in_title = True
        elif tag == "body":
            self._silent.clear()  # a head that was never closed
        elif tag in _SILENT:
            self._silent.append(tag)
        elif not self._silent and tag in _BLOCKS:
            self.parts.append("\n" + _HEADINGS.get(tag, ""))
        elif not self._silent and tag == "img":
            self.parts.append(dict(attrs).get("alt") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif tag in self._silent:
            while self._silent and self._silent.pop() != tag:
                pass
        elif not self._silent and tag in _BLOCKS:
            self.parts.append("\n")
        elif not self._silent and tag in ("td", "th"):
            self.parts.append("\t")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif not self._silent:
            self.parts.append(data)


def _tidy(text: str) -> str:
    lines = (re.sub(r"[^\S\n]+", " ", line).strip() for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
