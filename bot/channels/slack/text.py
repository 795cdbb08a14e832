"""Text for Slack: hostile until it went through here.

`clean` makes any string printable and honest, `escape` readies it for mrkdwn, `neutralise` readies CommonMark
from a model or a tool, `cut` shortens with a visible mark, `split` cuts long CommonMark into posts.
Lengths are in UTF-16 units of the escaped text, the widest way Slack may count them.
"""

import re
from dataclasses import dataclass

from bot.channels.slack.places import NAME
from bot.domain.unseen import made_visible

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_SPECIAL = re.compile(r"<(?=[!@#])")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_GUARD = "\u200b"  # zero width: `<` and `!` no longer touch, so Slack sees no mention

POST = 11_000
"""How long one post of CommonMark may get, below `limits.MARKDOWN` with room for a closing fence."""


def clean(text: str) -> str:
    """Without control characters and half emoji, and with what people do not see spelled out.

    Such a character could make the arguments on a card read differently from what runs.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _UNPRINTABLE.sub("\ufffd", text)
    return made_visible(text, lambda code: f"⟨U+{code:04X}⟩")


def escape(text: str) -> str:
    """Ready for a mrkdwn text; Slack documents these three characters as the ones to escape."""
    return clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def neutralise(markdown: str) -> str:
    """CommonMark in which no ``<!channel>``, ``<@U1>`` or ``<#C1>`` notifies anybody."""
    return _SPECIAL.sub(f"<{_GUARD}", clean(markdown))


def harmless(markdown: str, limit: int) -> str:
    """CommonMark within ``limit`` units that notifies no one: cut first, since a guard adds to the length."""
    room = limit * 5 // 6 if _SPECIAL.search(markdown) else limit  # at most one unit to five
    return neutralise(cut(markdown, room)[0])


def width(text: str) -> int:
    """How many units Slack may count for this text."""
    extra = 4 * text.count("&") + 3 * text.count("<") + 3 * text.count(">")
    return len(text.encode("utf-16-le", "surrogatepass")) // 2 + extra


def cut(text: str, limit: int) -> tuple[str, bool]:
    """Give the text within ``limit`` units, and whether anything is missing; the mark counts what is."""
    text = clean(text)
    if width(text) <= limit:
        return text, False
    room = limit - len(f"… [{len(text)} more characters]")
    if room < 1:
        return _prefix(text, limit - 1) + "…", True
    head = _prefix(text, room)
    return f"{head}… [{len(text) - len(head)} more characters]", True


def _prefix(text: str, limit: int) -> str:
    used = 0
    for at, character in enumerate(text):
        used += width(character)
        if used > limit:
            return text[:at]
    return text


def chunks(text: str, limit: int) -> list[str]:
    """Plain text in pieces of at most ``limit`` units, nothing lost, preferably cut after a line."""
    pieces = []
    text = clean(text)
    while text:
        head = _prefix(text, limit)
        if len(head) < len(text) and (line := head.rfind("\n")) > len(head) // 2:
            head = head[: line + 1]
        pieces.append(head)
        text = text[len(head) :]
    return pieces


@dataclass(frozen=True, slots=True)
class Fence:
    """An open code fence: the line that opened it and the marks that close it."""

    opening: str
    marks: str


def open_fence(markdown: str) -> Fence | None:
    """Find the code fence still open at the end of this CommonMark, if any."""
    fence: Fence | None = None
    for line in markdown.splitlines():
        if not (found := _FENCE.match(line)):
            continue
        marks, info = found[1], found[2]
        if fence is None:
            if not (marks[0] == "`" and "`" in info):
                fence = Fence(line[:100], marks[:100])
        elif marks[0] == fence.marks[0] and len(marks) >= len(fence.marks) and not info.strip():
            fence = None
    return fence


def split(markdown: str, limit: int = POST) -> list[str]:
    """CommonMark in posts of at most ``limit`` units, cut between paragraphs, lines or words, in that order.

    A code fence open at a cut is closed there and opened again in the next post.
    """
    posts = []
    rest = markdown
    while width(rest) > limit:
        head, rest = divide(rest, limit)
        if head.strip():
            posts.append(head)
    return [*posts, rest] if rest.strip() else posts


def divide(markdown: str, limit: int, before: str = "") -> tuple[str, str]:
    """Cut off a head of at most ``limit`` units; ``before`` is what the same post already shows."""
    window = _prefix(markdown, max(limit - 210, limit // 2))
    at = len(window)
    for boundary in ("\n\n", "\n", " "):
        if (found := window.rfind(boundary)) > len(window) // 3:
            at = found + len(boundary)
            break
    head, tail = markdown[:at], markdown[at:]
    if (fence := open_fence(before + head)) is None:
        return head.rstrip(), tail.lstrip("\n")
    return f"{head.rstrip()}\n{fence.marks}", f"{fence.opening}\n{tail}"


def link_text(text: str) -> str:
    """Put plain text on one line, for titles and notifications."""
    return " ".join(clean(text).split())


def literal(text: str) -> str:
    """Backslashes before what CommonMark would read as markup, on one line."""
    return re.sub(r"([\\`*_\[\]~])", r"\\\1", link_text(text))


def with_mentions(markdown: str, team: str) -> str:
    """Turn accounts and addresses of this workspace in Nod's own words into what Slack shows by name."""

    def shown(found: re.Match[str]) -> str:
        ident = found[1] or ""
        return f"<{'@' if ident[0] in 'UW' else '#'}{ident}>" if ident else found[0]

    own = rf"`[^`\n]*`|(?<![\w:/]){NAME}:{re.escape(team)}/([UWCG][A-Z0-9]+)(?:/[0-9.]+)?(?![\w/])"
    return re.sub(own, shown, markdown)
