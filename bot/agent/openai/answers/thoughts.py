"""Separation of a model's reasoning from its answer, by the marks that models put around reasoning. Pure.

A server without a parser for reasoning leaves it in the text of the answer, between marks such as ``<think>``
and ``</think>``. `Thoughts` takes the text as it streams, and returns what people may see. Text that may be
the beginning of a mark is held back until more text tells.

- An opening mark counts at the start of a line. The text after it is reasoning, up to its closing mark.
- Often the opening mark is part of the prompt, so that only a closing mark comes. Then all text before it was
  reasoning, and what was shown of it is retracted.
- Within code, in a fence or in backticks, a mark is text like any other.
- Marks around the answer itself, such as ``<|im_end|>``, are dropped.
"""

import re

# the first halves of emoji in UTF-16; some servers send the two halves in two chunks
_HIGH_SURROGATES = range(0xD800, 0xDC00)
_WORDS = r"(?i:(?:[\w-]{1,20}:)?(?:think|thinking|thoughts?|reasoning|antthinking|longcat_think))"

# opening marks, a group for each kind: "<think>", "[THINK]", "◁think▷", "<|begin_of_thought|>",
# "<|START_THINKING|>", "<unused94>thought", "<|channel|>analysis<|message|>"
_OPEN = (
    rf"(?P<tag><{_WORDS}>)|(?P<think>\[THINK\])|(?P<kimi>◁think▷)|(?P<begin><\|begin_of_thought\|>)"
    r"|(?P<cohere><\|START_THINKING\|>)|(?P<med><unused94>(?:thought)?)"
    r"|(?P<channel>(?:<\|start\|>assistant)?<\|channel\|?>(?:analysis|thought)\s*(?:<\|message\|>)?)"
)

# closing marks that may come without an opening mark
_LONE_CLOSE = (
    rf"</{_WORDS}>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<\|END_THINKING\|>|<unused95>|<channel\|>"
)
_CLOSE_PATTERNS = {
    "tag": rf"</{_WORDS}>",
    "think": r"\[/THINK\]",
    "kimi": "◁/think▷",
    "begin": r"<\|end_of_thought\|>",
    "cohere": r"<\|END_THINKING\|>",
    "med": "<unused95>",
    "channel": r"<\|end\|>|<channel\|>|<\|return\|>|<\|call\|>|(?=<\|start\|>)|(?=<\|channel\|?>)",
}
"""The closing mark of each kind of reasoning; the kinds are the groups of `_OPEN`."""
_CLOSES = {kind: re.compile(close) for kind, close in _CLOSE_PATTERNS.items()}
_AROUND_ANSWER = (
    r"(?:<\|start\|>assistant)?<\|channel\|>(?:final|commentary)(?: ?<\|constrain\|>\w{1,20})?<\|message\|>"
    r"|<\|begin_of_solution\|>|<\|end_of_solution\|>|<\|START_RESPONSE\|>|<\|END_RESPONSE\|>"
    r"|<\|return\|>|<\|end\|>|<\|im_end\|>|<\|eot_id\|>|<\|endoftext\|>|<\uff5cend▁of▁sentence\uff5c>|<end_of_turn>"
)
"""The marks that models put around an answer."""
_MARKS = re.compile(
    rf"(?P<open>{_OPEN})|(?P<close>{_LONE_CLOSE})|(?P<around>{_AROUND_ANSWER})"
    r"|(?P<ticks>`+|~~~+)|(?P<line>\n)"
)
_MARK_START = re.compile(r"[<\[◁`~\n]")  # the first characters of all of these
_BEGUN_PATTERN = (
    r"(?:<\|(?:start|channel)\|?>(?:(?!<\|message\|>)[^\n]){0,80}|<\|[^<>\n]{0,40}|</?[\w:▁\uff5c-]{0,40}\|?"
    r"|\[/?[A-Z]{0,6}|◁/?\w{0,5}|`+|~+)\Z"
)
"""The beginning of a mark at the end of a text, such as "<thi", which the next chunk may complete."""
_BEGUN = re.compile(_BEGUN_PATTERN)
_BLANK_OR_BEGUN = re.compile(rf"\s*(?:\Z|{_BEGUN_PATTERN})")  # nothing but white space, or then a begun mark
_MIN_FENCE_TICKS = 3
_LINE_START_CHARS = 8  # the characters that are kept of the current line
_BLANKS = (" ", "\t")
_INDENT = re.compile(r" {0,3}\Z")  # may stand before a fence


def join_surrogates(text: str) -> str:
    """Return the text with pairs of lone surrogates joined, and what is left of them replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class Thoughts:
    """A parser that splits the text of one answer, as it streams, into reasoning and visible text."""

    def __init__(self) -> None:
        self._held = ""  # text that is not judged yet
        self._thought = ""  # reasoning that `take_thought` has not returned yet
        self._shown = ""  # all visible text, without what was retracted
        self._line_start = ""  # the first characters of the current line of visible text
        self._last = ""  # the last character of the visible text
        self._close: re.Pattern[str] | None = None  # the mark that ends the current reasoning; None outside
        self._fence = ""  # the fence of the current code block, or empty
        self._ticks = ""  # the backticks at the beginning of the current code within a line, or empty
        self._trims = False  # white space that comes next is no part of the answer
        self._retracted = False  # visible text was reasoning; see `take_retraction`

    def add(self, text: str) -> str:
        """Add text of the answer, and return the text that can be shown now."""
        is_simple = self._shown and self._close is None and not (self._held or self._trims)
        if is_simple and not _MARK_START.search(text):
            visible = self._show(text)  # most text is visible as it is
        else:
            self._held += text
            visible = self._read_held(is_last=False)
        if visible and ord(visible[-1]) in _HIGH_SURROGATES:  # the other half comes in the next chunk
            self._held, visible = visible[-1] + self._held, visible[:-1]
            self._shown = self._shown[:-1]
        return join_surrogates(visible)

    def take_thought(self, text: str = "") -> str:
        """Return the reasoning since the last call. ``text``: reasoning that came in a field of its own."""
        thought, self._thought = self._thought + text, ""
        return join_surrogates(thought)

    def rest(self) -> str:
        """Return the visible text that is still held back at the end of the answer.

        Reasoning without a closing mark stays reasoning.
        """
        visible = self._read_held(is_last=True)
        held, self._held = self._held, ""
        if self._close is not None:
            self._thought += held
            return join_surrogates(visible)
        return join_surrogates(visible + self._show(held))

    def take_retraction(self) -> bool:
        """Tell, once, if text that was returned before has turned out to be reasoning."""
        retracted, self._retracted = self._retracted, False
        return retracted

    def _read_held(self, *, is_last: bool) -> str:
        """Judge the held text as far as possible, and return the visible part of it.

        ``is_last``: no more text comes, so nothing is the beginning of a mark.
        """
        visible = ""
        while self._held:
            # the beginning of the answer: white space before reasoning is no part of it
            if not (is_last or self._shown) and _BLANK_OR_BEGUN.match(self._held):
                break
            first = _MARKS.match(self._held.lstrip())
            if not self._shown and first and first["open"]:
                self._held = self._held.lstrip()

            # within reasoning
            if self._close is not None:
                if not self._read_thought(is_last=is_last):
                    break
                continue

            # visible text, up to what may become a mark, or else up to the next mark
            mark = _MARKS.search(self._held)
            begun = None if is_last else _BEGUN.search(self._held)
            if begun and (mark is None or mark.start() >= begun.start()):
                if self._shown or self._held[: begun.start()].strip():
                    visible += self._show_held(begun.start())
                break
            if mark is None:
                visible += self._show_held(len(self._held))
                break

            # the mark
            if mark["open"] and not (self._fence or self._ticks):
                self._drop_indent(mark.start())
                mark = _MARKS.search(self._held)
                assert mark is not None  # noqa: S101 - for the type checker
            visible += self._show_held(mark.start())
            if mark["close"] and self._last in _BLANKS and self._held == mark[0] and not is_last:
                break  # the text after the mark decides if it only mentions the mark
            visible = self._read_mark(mark, visible)
        return visible

    def _show_held(self, count: int) -> str:
        """Move the first characters out of the held text, and return what is visible of them."""
        text, self._held = self._held[:count], self._held[count:]
        return self._show(text)

    def _show(self, text: str) -> str:
        """Record a text as visible, and return it without white space that is no part of the answer."""
        if self._trims:
            text = text.lstrip()
            self._trims = not text
        if text:
            self._shown += text
            self._line_start = _cut_line(f"{self._line_start}{text}".rpartition("\n")[2])
            self._last = text[-1]
        return text

    def _drop_indent(self, count: int) -> None:
        """Drop the white space before a mark, which begins after ``count`` characters of the held text.

        If other text stands before the mark in its line, nothing is dropped.
        """
        before = self._held[:count]
        if not (self._line_start + before).rpartition("\n")[2].strip():
            self._held = before.rstrip(" \t") + self._held[count:]

    def _read_mark(self, mark: re.Match[str], visible: str) -> str:
        """Judge the mark at the beginning of the held text.

        ``visible``: the visible text before the mark that was not returned yet. Returns this text and what
        the mark adds to it, or an empty text if the mark turns all of it into reasoning.
        """
        text = mark[0]
        if mark["line"]:
            self._ticks = ""
            return visible + self._show_held(1)
        if mark["ticks"]:
            self._read_ticks(text)
            return visible + self._show_held(len(text))
        if self._fence or self._ticks:
            return visible + self._show_held(len(text))
        after = self._held[len(text) :]
        if mark["open"]:
            if self._line_start.strip():  # the mark is not at the start of its line
                return visible + self._show_held(len(text))
            self._close = next(close for kind, close in _CLOSES.items() if mark[kind])
        elif mark["close"]:
            if self._last in _BLANKS and after[:1] not in ("", "\n"):  # the text only mentions the mark
                return visible + self._show_held(len(text))
            self._retract(visible)
            visible = ""
        self._held = after
        if not (mark["around"] and self._shown):  # white space after reasoning, or before the first word
            self._trims = True
        return visible

    def _read_ticks(self, ticks: str) -> None:
        """Open or close a code block, or code within a line."""
        if _INDENT.fullmatch(self._line_start) and len(ticks) >= _MIN_FENCE_TICKS and not self._ticks:
            if not self._fence:
                self._fence = ticks
            elif ticks.startswith(self._fence):
                self._fence = ""
        elif not self._fence and ticks[0] == "`":
            if not self._ticks:
                self._ticks = ticks
            elif self._ticks == ticks:
                self._ticks = ""

    def _read_thought(self, *, is_last: bool) -> bool:
        """Move reasoning out of the held text. Return True if the reasoning has ended."""
        assert self._close is not None  # noqa: S101 - for the type checker
        close = self._close.search(self._held)
        if close is None:
            begun = None if is_last else _BEGUN.search(self._held)
            end = begun.start() if begun else len(self._held)
            self._thought += self._held[:end]
            self._held = self._held[end:]
            return False
        self._thought += self._held[: close.start()]
        self._held = self._held[close.end() :]
        self._close = None
        self._trims = True
        return True

    def _retract(self, visible: str) -> None:
        """Turn the visible text into reasoning: its opening mark was part of the prompt.

        ``visible``: the end of this text, which was not returned yet.
        """
        self._thought += self._shown
        self._retracted = self._retracted or len(self._shown) > len(visible)
        self._shown = self._line_start = self._last = ""


def _cut_line(line: str) -> str:
    """Return the start of a line, from which its indent is seen; "…" if its first word comes later."""
    start = line[:_LINE_START_CHARS]
    if line.strip() and not start.strip():
        return "…"
    return start
