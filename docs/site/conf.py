# ruff: noqa: INP001 - Sphinx reads it
"""The site: the Markdown files that one reads in the repository, with the navigation of docs/README.md."""

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from bot import __version__  # noqa: E402 - not installed where only the site is built

project = "Nod"
author = "The Nod authors"
copyright = "The Nod authors, MIT licence"  # noqa: A001 - Sphinx's own name
version = release = __version__

extensions = ["myst_parser"]
root_doc = "docs/README"
include_patterns = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    ".github/*.md",
    "clients/python/README.md",
    "docs/**.md",
]
exclude_patterns = [".github/pull_request_template.md"]
myst_heading_anchors = 4  # as GitHub makes them
myst_linkify_fuzzy_links = False
suppress_warnings = ["misc.highlighting_failure"]  # JSON with an ellipsis

html_theme = "furo"
html_title = f"Nod {__version__}"
html_copy_source = False
html_show_sphinx = False
html_extra_path = ["index.html"]

_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?:)([\w./-]+)\.md\)")
_FETCHED = re.compile(
    r"""<(?:script|link|img|iframe|source)\b[^>]*(?:src|href)=["']?(?:https?:)?//[^"'>]+"""
    r"""|url\(["']?(?:https?:)?//[^)]+|@import[^;]+|\bfetch\(["'`]https?:[^)]+"""
)


def _with_navigation(_: Any, name: str, source: list[str]) -> None:
    """Each section of the front page, and what is above them, is a section of the navigation."""
    if name != root_doc:
        return
    beginning, *parts = _SECTION.split(source[0])
    for caption, text in zip(("Start", *parts[::2]), (beginning, *parts[1::2]), strict=True):
        pages = "\n".join(_LINK.findall(text))
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n```\n"


def _check_hosts(app: Any, fault: Exception | None) -> None:
    """Raises ValueError where a page would fetch something from elsewhere."""
    pages = [path for path in Path(app.outdir).rglob("*") if path.suffix in {".html", ".css", ".js"}]
    asked = [
        f"{path.relative_to(app.outdir)}: {each}"
        for path in pages
        for each in _FETCHED.findall(path.read_text())
    ]
    if asked and fault is None:
        raise ValueError(f"The site must need no other host. {asked}")


def setup(app: Any) -> None:
    app.connect("source-read", _with_navigation)
    app.connect("build-finished", _check_hosts)
