"""Every text that people read is in plain English; the words to avoid are listed here, with better ones.

Read are the strings, docstrings and comments of `bot/`, the clients and the examples, the console's pages,
the documents for those who run Nod, and the names, docstrings and comments of the tests.
"""

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
import re2

ROOT = Path(__file__).parent.parent
AVOID = {
    r"\bmend(s|ed|ing)?\b": "fix, how to fix it",
    r"\banew\b": "again, over",
    r"\bshall\b": "should, will",
    r", whole\b": "in full, full",
    r"\bis whole\b": "is intact, is complete",
    r"\bthe whole of\b": "all of, the full",
    r"\bat once\b": "immediately, right away; at the same time",
    r"\bown (network|host)": "internal network, internal host",
    r"\bstands? twice\b": "appears twice, is used twice",
    r"\bst(and|ands|ood) still\b": "stop, is paused",
    r"\b(values?|they|it) moved\b": "changed",
    r"\bgo(es|ing)? on\b": "continue",
    r"\bgave it up\b": "gave up",
    r"\btak(e|es|en|ing) back\b": "withdraw",
    r"\b(answered|begins|ends|told) so\b": "that way, like this",
    r"\bhears?\b": "has been told, receives",
    r"\b(is|are) (?-i:none)\b": "does not exist",
    r"\bno \w+ of its\b": "none of its",
    r"\bby hand\b": "manually",
    r"\bdid not work\b": "failed",
    r"\bbroke\b": "failed",
    r"\bcourtesy\b": "best-effort call",
    r"\bfor your word\b": "for your approval",
    r"\badmin('s)? words\b": "admin command",
    r"\bis no admin\b": "is not an admin",
    r"\b(fields|lines) more\b": "extra fields, more lines",
    r"\bany more\b": "no longer",
    r"\bin force\b": "current",
    r"\bkept its time\b": "expired",
    r"\bmeanwhile\b": "since, in the meantime",
    r"\bfresh look\b": "another look, new decision",
    r"\bfor ever\b": "permanently",
    r"\bin other words\b": "phrased differently",
    r"\bthis very\b": "this",
    r"\bwhoever\b": "anyone who, the person who",
    r"\bto begin (from|with)\b": "to start from",
    r"\bsomebody\b": "someone, or the name",
    r"\bnobody\b": "no one",
    r"\bcall-back\b": "webhook, callback",
    r"\bfrom the (web|shell)\b": "from the console, from the command line",
    r"\b(an|the) admin neither\b": "not even an admin",
    r"\bread(ing)? on\b": "read further",
    r"\bis another's\b": "is shared by two",
    r"\bdoes not answer\b": "can't be reached",
    r"\bbeside\b": "next to, as well as, in addition to",
    r"\bchanges something\b": "say what it changes",
    r"\bits whole time\b": "restart the timer, extend",
    r"\bwhat it was about\b": "changes",
    r"\bcannot be read here\b": "can't inspect",
    r"\bone of them, please\b": "use only one of",
}
PATTERNS = {re.compile(pattern, re.IGNORECASE): use for pattern, use in AVOID.items()}
ANY = re2.compile("|".join(f"(?i:{pattern})" for pattern in AVOID).encode())  # 200 times as fast as `re`
EXAMPLES = ROOT / "examples"
BOT = sorted([*(ROOT / "bot").rglob("*.py"), *(ROOT / "clients").rglob("*.py"), *EXAMPLES.rglob("*.py")])
TESTS = sorted((ROOT / "tests").rglob("*.py"))
STATIC = ROOT / "bot" / "web" / "static"
PAGES = [path for path in sorted(STATIC.iterdir()) if path.suffix in {".js", ".html"}]
DOCUMENTS = [
    *(
        ROOT / name
        for name in (
            "README.md",
            "CHANGELOG.md",
            "CONTRIBUTING.md",
            ".env.example",
            "manifest.yml",
            "Makefile",
        )
    ),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "clients").rglob("*.md")),
    *sorted(path for path in EXAMPLES.glob("*") if path.is_file() and path.suffix != ".py"),
]

EXCEPTIONS: dict[tuple[str, str], str] = {
    ("bot/agent/demo/sentences.py", "the|an?|it|them"): "what people may type",
    ("tests/tools/mcp/servers/lamps.py", "SYSTEM: this tool"): "what a hostile server says",
}
"""File and text of a place where the word is right, and the reason."""

Text = tuple[int, str]


def _parsed(path: Path, *, strings: bool) -> Iterator[Text]:
    """The texts of a Python file: comments, docstrings and, where asked for, strings; with their lines."""
    source = path.read_text()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and strings:
            yield node.lineno, node.value
        elif (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and not strings
        ):
            if not isinstance(node, ast.Module) and node.name.startswith("test_"):
                yield node.lineno, node.name.replace("_", " ")
            yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""


def _is_suspect(text: str) -> bool:
    return bool(ANY.search(" ".join(text.split()).encode(errors="replace")))


@functools.cache
def _texts(path: Path) -> list[Text]:
    if path.suffix == ".py":
        read = path in BOT
        # names, docstrings and comments are in one piece; only strings are put together of several
        if not read and not _is_suspect(path.read_text().replace("_", " ")):
            return []
        return list(_parsed(path, strings=read))
    return list(enumerate(path.read_text().splitlines(), 1))


def _found(path: Path) -> list[str]:
    name = str(path.relative_to(ROOT))
    return [
        f"{name}:{line}: {match[0]!r} in {' '.join(text.split())[:110]!r}: {use}"
        for line, text in _texts(path)
        if _is_suspect(text)
        for pattern, use in PATTERNS.items()
        for match in [pattern.search(" ".join(text.split()))]
        if match and not any(name == file and part in text for file, part in EXCEPTIONS)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("paths", [BOT, PAGES, DOCUMENTS, TESTS], ids=["bot", "pages", "documents", "tests"])
def test_no_text_holds_a_word_to_avoid(paths: list[Path]) -> None:
    read = [p for p in paths if p.exists()]
    assert [line for path in read if path != Path(__file__) for line in _found(path)] == []


@pytest.mark.slow
@pytest.mark.parametrize("paths", [BOT, PAGES], ids=["bot", "pages"])
def test_no_text_shouts(paths: list[Path]) -> None:
    shouted = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in paths
        for line, text in _texts(path)
        if re.search(r"[a-z]![\s\"]", text) and "<!" not in text
    ]
    assert shouted == []


def test_every_exception_is_needed() -> None:
    for (name, part), reason in EXCEPTIONS.items():
        texts = [" ".join(text.split()) for _, text in _texts(ROOT / name)]
        assert any(part in text and any(p.search(text) for p in PATTERNS) for text in texts), (name, reason)
