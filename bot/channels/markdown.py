"""CommonMark in posts of a limited length, and text without invisible characters. Pure.

`clean` makes the text of a card printable, the milder `clean_prose` that of an answer. `neutralise_mentions`
removes the effect of mentions and of links whose words name another host. `cut_once` cuts one post off a long
text, `split` cuts all of it into posts. A code block that is cut (a fence, which begins and ends with a line
of backticks) is closed and opened again, and the head of a table is repeated. Each platform counts length in
its own units: a ``width`` function returns the length of a text in them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from bot.domain.text import find_cut, make_visible

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")  # ```python
_MAX_FENCE_CHARS = 100  # the characters kept of a fence's line and marks
_GUARD = "\u200b"  # a character without width, which separates its neighbours
_WRITING_MARKS = frozenset(  # invisible characters that scripts need: hyphens, joiners, marks of direction
    {0xAD, 0x61C, *range(0x200B, 0x2010), 0x2060, 0x2068, 0x2069}
)
_LINK = re.compile(  # [words](address "title", without the closing bracket
    r"\[((?:\\.|[^\[\]\\]|\[[^\[\]]{0,100}\]){1,300})\]"  # the words, which may hold brackets and line breaks
    r"\(\s*<?([^\s<>]{1,2000})"  # the address
    r"""(?:>?\s+(?:"[^"]{0,300}"|'[^']{0,300}')(?=\s*\)))?"""  # a title; what follows stays as it is
)
# "[name]:", the address of [words][name]
_DEFINITION = re.compile(r"^( {0,3}\[[^\]\n]{1,300}\]):", re.MULTILINE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")  # a backslash before any ASCII punctuation
_TOP_LEVEL_DOMAINS = "com|org|net|io|dev|app|gov|edu|info|ai|co|eu|uk|de"
# an address in words, such as https://a.test/x, www.a.test or bank.com
_ADDRESS = re.compile(rf"(?i:(?:https?://|www\.)\S+|(?:[\w-]+\.)+(?:{_TOP_LEVEL_DOMAINS})(?![\w.-]))")

_RULE = re.compile(  # the rule of a table as CommonMark has it: | --- | :-: |
    r"^[ >]{0,12}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*){0,60}\|?[ \t]*$"
)
_DRAWN_RULE = re.compile(r"^[ >]{0,12}-+(?:\+-+)*[ \t]*$")  # as `lay_out_tables` draws it: ---+-----
_FENCE_MARGIN_UNITS = 10  # more than the line breaks around the two lines of a fence
_MIN_CUT_PART = 3  # a cut in the first third of a post would waste the post
_TABLE_HEAD_LINES = 2  # the names of the columns, and the rule below them
_MAX_HEAD_SHARE = 1 / 4  # a table's head is repeated in the next post if it is at most this share of a post

Width = Callable[[str], int]


def clean(text: str) -> str:
    """Remove control characters and lone surrogates, and spell out characters that people do not see.

    Such a character could make the arguments on a card read differently from what runs.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return make_visible(_UNPRINTABLE.sub("\ufffd", text), lambda code: f"⟨U+{code:04X}⟩")


def clean_prose(text: str) -> str:
    """Make the text of an answer printable, keeping invisible marks that some scripts need.

    An answer approves nothing, so this is milder than `clean`, which is for cards.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return make_visible(_UNPRINTABLE.sub("\ufffd", text), _keep_writing_mark)


def _keep_writing_mark(code: int) -> str:
    return chr(code) if code in _WRITING_MARKS else ""


def neutralise_mentions(markdown: str, special: re.Pattern[str]) -> str:
    """Make mentions plain text, and also links whose words name another host than their address.

    Such a link, ``[a.com](b.com)``, becomes ``a.com (b.com)``. An address that is defined apart from its
    link, ``[name]: b.com``, becomes plain text as well. ``special`` matches the ``<`` of each mention.
    """
    text = _LINK.sub(_expose_address, clean_prose(markdown))
    text = _DEFINITION.sub(rf"\1{_GUARD}:", text)
    return special.sub(f"<{_GUARD}", text)


def _expose_address(link: re.Match[str]) -> str:
    words = link[1]
    address = link[2]
    if misleads(words, address):
        return f"{words} ({address}"  # the link's own closing bracket follows: `_LINK` does not take it
    return link[0]


def misleads(label: str, address: str) -> bool:
    """Tell if the words of a link contain an address of another host than the link's."""
    visible_label = make_visible(_ESCAPED.sub(r"\1", label), lambda _: "")
    host = _host_of(address)
    return any(_host_of(named[0]) != host for named in _ADDRESS.finditer(visible_label))


def _host_of(address: str) -> str:
    without_scheme = address.partition("://")[2] or address
    authority = re.split(r"[/?#\\]", without_scheme)[0]
    host = authority.rpartition("@")[2]  # behind the name of a user: ana@bank.com
    host = re.split(r"[()]", host)[0]  # brackets around an address in prose
    return host.lower().removeprefix("www.").rstrip(".,;:!")


def prefix(text: str, limit: int, width: Width) -> str:
    """Return the longest beginning of a text that has at most ``limit`` units."""
    if len(text) <= limit and width(text) <= limit:
        return text
    used = 0
    for at, character in enumerate(text):
        used += width(character)
        if used > limit:
            return text[: find_cut(text, at)]
    return text


@dataclass(frozen=True, slots=True)
class Fence:
    """An open code fence: the line that opened it and the marks that close it."""

    opening: str
    marks: str


def open_fence(markdown: str) -> Fence | None:
    """Find the code fence still open at the end of this CommonMark, if any."""
    fence: Fence | None = None
    for line in markdown.splitlines():
        match = _FENCE.match(line)
        if not match:
            continue
        marks, info = match[1], match[2]
        if fence is None:
            is_inline_code = marks[0] == "`" and "`" in info
            if not is_inline_code:
                fence = Fence(line[:_MAX_FENCE_CHARS], marks[:_MAX_FENCE_CHARS])
        elif marks[0] == fence.marks[0] and len(marks) >= len(fence.marks) and not info.strip():
            fence = None
    return fence


def split(markdown: str, limit: int, width: Width) -> list[str]:
    """Split CommonMark into posts of at most ``limit`` units, between paragraphs, lines or words.

    A code fence open at a cut is closed there and opened again in the next post.
    """
    posts = []
    rest = markdown
    while width(rest) > limit:
        head, rest = cut_once(rest, limit, width)
        if head.strip():
            posts.append(head)
    if rest.strip():
        return [*posts, rest]
    return posts


def cut_once(markdown: str, limit: int, width: Width, text_before: str = "") -> tuple[str, str]:
    """Cut CommonMark into a head of at most ``limit`` units, and the rest for the next post.

    ``text_before`` is the text that the head's post already has, in which a code block or table may be open.
    """
    # room to close a fence here and to open it again in the next post: its two lines and their breaks
    room = max(limit - 2 * _MAX_FENCE_CHARS - _FENCE_MARGIN_UNITS, limit // 2)
    window = prefix(markdown, room, width)
    at = len(window)
    for boundary in ("\n\n", "\n", " "):
        start = window.rfind(boundary)
        if start > len(window) // _MIN_CUT_PART:
            at = start + len(boundary)
            break
    head, tail = markdown[:at], markdown[at:]
    post = text_before + head
    table_head = _find_table_head(post) if tail.strip() else ""
    if len(table_head) > len(head) * _MAX_HEAD_SHARE:
        table_head = ""
    fence = open_fence(post)
    if fence is None:
        return head.rstrip(), table_head + tail.lstrip("\n")
    return f"{head.rstrip()}\n{fence.marks}", f"{fence.opening}\n{table_head}{tail}"


def _find_table_head(post: str) -> str:
    """Return the head of the table in which a post ends, so that it can be repeated; empty without one."""
    if not post.endswith("\n") or post.endswith("\n\n"):
        return ""
    is_fenced = open_fence(post) is not None  # a table that `lay_out_tables` drew
    table: list[str] = []  # the lines of the post after the last blank line, or after the fence
    for line in reversed(post[:-1].split("\n")):
        if not line.strip() or (is_fenced and _FENCE.match(line)):
            break
        table.insert(0, line)
    if len(table) <= _TABLE_HEAD_LINES:
        return ""
    if is_fenced:
        is_table = _DRAWN_RULE.match(table[1]) is not None
    else:
        is_table = _RULE.match(table[1]) is not None and "|" in table[0]
    if not is_table:
        return ""
    return "".join(f"{line}\n" for line in table[:_TABLE_HEAD_LINES])
