"""Books in the EPUB format: an archive of XHTML pages, the chapters, in an order that the book gives.

The file ``container.xml`` names the book's own file. That has an ``item`` for each file of the book, and its
*spine*: an ``itemref`` for each chapter.
"""

import re
from posixpath import join, normpath
from urllib.parse import unquote

from bot.tools.reading.markup import find_all, parse_xml, read_attribute
from bot.tools.reading.pages import read_html
from bot.tools.reading.report import Report, UnreadableError
from bot.tools.reading.text.decoding import decode
from bot.tools.reading.zip_package import DAMAGED_TEXT, PROTECTED_TEXT, Package

_MAX_CHAPTERS = 500
# the address of a style sheet: <link rel="stylesheet" href="style.css">
_SHEET = re.compile(r"""<link\b[^>]{0,500}?\bhref\s*=\s*["']([^"'>]{1,500})["']""", re.IGNORECASE)


def read_book(package: Package, report: Report) -> str:
    """Return the chapters one after the other."""
    if "META-INF/rights.xml" in package.names:
        raise UnreadableError(PROTECTED_TEXT)
    container = package.read("META-INF/container.xml")
    book_files = [
        read_attribute(rootfile, "full-path") for rootfile in find_all(parse_xml(container), "rootfile")
    ]
    if not book_files or book_files[0] not in package.names:
        raise UnreadableError(DAMAGED_TEXT)
    book = parse_xml(package.read(book_files[0]))
    folder = book_files[0].rpartition("/")[0]
    hrefs = {item.get("id"): item.get("href", "") for item in find_all(book, "item")}
    chapters = []  # the files of the chapters, in the order of the spine
    for itemref in find_all(book, "itemref"):
        href = hrefs.get(itemref.get("idref"), "")
        chapters.append(normpath(join(folder, unquote(href))))
    report.count_left_out("chapter", max(0, len(chapters) - _MAX_CHAPTERS))
    titles = [title.text for title in find_all(book, "title") if title.text]
    texts = [f"# {titles[0]}"] if titles else []
    for chapter in chapters[:_MAX_CHAPTERS]:
        if chapter not in package.names:
            report.count_left_out("missing chapter")
            continue
        markup = decode(package.read(chapter), report)
        texts.append(read_html(markup, report, _read_sheets(package, chapter, markup)))
    return "\n\n".join(texts)


def _read_sheets(package: Package, chapter: str, markup: str) -> dict[str, str]:
    """Return the style sheets that a chapter names, by the address that it gives."""
    folder = chapter.rpartition("/")[0]
    sheets = {}
    for address in _SHEET.findall(markup):
        part = normpath(join(folder, unquote(address)))
        if part in package.names:
            sheets[address] = package.read(part).decode(errors="replace")
    return sheets
