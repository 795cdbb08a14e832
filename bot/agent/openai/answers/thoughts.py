"""Separation of a model's reasoning from its answer, by the marks that models put around reasoning. Pure.

A server without a parser for reasoning leaves it in the text of the answer, between marks such as ``<think>``
and ``</think>``. `Thoughts` takes the text as it streams, and returns what people may see. Text that may be
the beginning of a mark is held back until the next text decides.

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

# opening marks, a group for each kind. Groups named after models: ``kimi`` of Moonshot, ``cohere`` for
# Command, ``medgemma`` of Google. ``channel`` is the format of gpt-oss ("<|channel|>analysis<|message|>").
_OPENING_MARKS = (
    rf"(?P<tag><{_WORDS}>)|(?P<think>\[THINK\])|(?P<kimi>◁think▷)|(?P<thought><\|begin_of_thought\|>)"
    r"|(?P<cohere><\|START_THINKING\|>)|(?P<medgemma><unused94>(?:thought)?)"
    r"|(?P<channel>(?:<\|start\|>assistant)?<\|channel\|?>(?:analysis|thought)\s*(?:<\|message\|>)?)"
)

# closing marks that may come without an opening mark
_LONE_CLOSING_MARKS = (
    rf"</{_WORDS}>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<\|END_THINKING\|>|<unused95>|<channel\|>"
)
_CLOSE_PATTERNS = {
    "tag": rf"</{_WORDS}>",
    "think": r"\[/THINK\]",
    "kimi": "◁/think▷",
    "thought": r"<\|end_of_thought\|>",
    "cohere": r"<\|END_THINKING\|>",
    "medgemma": "<unused95>",
    "channel": r"<\|end\|>|<channel\|>|<\|return\|>|<\|call\|>|(?=<\|start\|>)|(?=<\|channel\|?>)",
}
"""The closing mark of each kind of reasoning. The kinds are the groups of `_OPENING_MARKS`."""
_COMPILED_CLOSE_PATTERNS = {kind: re.compile(close) for kind, close in _CLOSE_PATTERNS.items()}
_MARKS_AROUND_ANSWER = (
    r"(?:<\|start\|>assistant)?<\|channel\|>(?:final|commentary)(?: ?<\|constrain\|>\w{1,20})?<\|message\|>"
    r"|<\|begin_of_solution\|>|<\|end_of_solution\|>|<\|START_RESPONSE\|>|<\|END_RESPONSE\|>"
    r"|<\|return\|>|<\|end\|>|<\|im_end\|>|<\|eot_id\|>|<\|endoftext\|>|<\uff5cend▁of▁sentence\uff5c>|<end_of_turn>"
)
"""The marks that models put around an answer."""
_MARKS = re.compile(
    rf"(?P<open>{_OPENING_MARKS})|(?P<close>{_LONE_CLOSING_MARKS})|(?P<around>{_MARKS_AROUND_ANSWER})"
    r"|(?P<ticks>`+|~~~+)|(?P<line>\n)"
)
_MARK_START = re.compile(r"[<\[◁`~\n]")  # the first characters of all of these
_UNFINISHED_MARK_PATTERN = (
    r"(?:<\|(?:start|channel)\|?>(?:(?!<\|message\|>)[^\n]){0,80}|<\|[^<>\n]{0,40}|</?[\w:▁\uff5c-]{0,40}\|?"
    r"|\[/?[A-Z]{0,6}|◁/?\w{0,5}|`+|~+)\Z"
)
"""An unfinished mark at the end of a text, such as "<thi". The next chunk may complete it."""
_UNFINISHED_MARK = re.compile(_UNFINISHED_MARK_PATTERN)
_BLANK_OR_UNFINISHED_MARK = re.compile(rf"\s*(?:\Z|{_UNFINISHED_MARK_PATTERN})")
"""White space, then an unfinished mark or nothing."""
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
        self._held_back = ""  # text that is not judged yet
        self._thought = ""  # reasoning that `take_thought` has not returned yet
        self._shown = ""  # all visible text, without what was retracted
        self._line_start = ""  # the first characters of the current line of visible text
        self._last_char = ""  # the last character of the visible text
        self._close_pattern: re.Pattern[str] | None = None  # ends the current reasoning; None outside
        self._fence = ""  # the fence of the current code block, or empty
        self._open_ticks = ""  # the backticks at the beginning of the current code within a line, or empty
        self._trims_next = False  # white space that comes next is no part of the answer
        self._retracted = False  # visible text was reasoning; see `take_retraction`

    def add(self, text: str) -> str:
        """Add text of the answer, and return the text that can be shown now."""
        is_within_text = bool(self._shown) and self._close_pattern is None
        has_rest = bool(self._held_back) or self._trims_next
        if is_within_text and not has_rest and not _MARK_START.search(text):
            visible = self._show(text)  # most text is visible as it is
        else:
            self._held_back += text
            visible = self._read_held_back(is_last=False)
        if visible and ord(visible[-1]) in _HIGH_SURROGATES:  # the other half comes in the next chunk
            self._held_back = visible[-1] + self._held_back
            visible = visible[:-1]
            self._shown = self._shown[:-1]
            # `_line_start` and `_last_char` may keep the half: only white space in them matters
        return join_surrogates(visible)

    def take_thought(self, text: str = "") -> str:
        """Return the reasoning since the last call. ``text``: reasoning that came in a field of its own."""
        thought = self._thought + text
        self._thought = ""
        return join_surrogates(thought)

    def flush(self) -> str:
        """Return the visible text that is still held back at the end of the answer.

        Reasoning without a closing mark stays reasoning.
        """
        visible = self._read_held_back(is_last=True)
        held, self._held_back = self._held_back, ""
        if self._close_pattern is not None:
            self._thought += held
            return join_surrogates(visible)
        return join_surrogates(visible + self._show(held))

    def take_retraction(self) -> bool:
        """Tell, once, if text that was returned before has turned out to be reasoning."""
        retracted, self._retracted = self._retracted, False
        return retracted

    def _read_held_back(self, *, is_last: bool) -> str:
        """Judge the held text as far as possible, and return the visible part of it.

        ``is_last``: no more text comes, so nothing is the beginning of a mark.
        """
        visible = ""
        while self._held_back:
            # the beginning of the answer: white space before reasoning is no part of it
            if not is_last and not self._shown and _BLANK_OR_UNFINISHED_MARK.match(self._held_back):
                break
            first = _MARKS.match(self._held_back.lstrip())
            if not self._shown and first and first["open"]:
                self._held_back = self._held_back.lstrip()

            # within reasoning
            if self._close_pattern is not None:
                if not self._read_thought(is_last=is_last):
                    break
                continue

            # visible text, up to the next mark
            mark, chars_before = self._find_next_mark(is_last=is_last)
            visible += self._show_first(chars_before)
            if mark is None:
                break

            # the mark
            if mark["close"] and self._last_char in _BLANKS and self._held_back == mark[0] and not is_last:
                break  # the text after the mark decides if it only mentions the mark
            visible = self._read_mark(mark, visible)
        return visible

    def _find_next_mark(self, *, is_last: bool) -> tuple[re.Match[str] | None, int]:
        """Find the next mark in the held text, and count the characters before it that can be shown.

        None if no mark is left, or if an unfinished one comes first. The indent of an opening mark is
        dropped.
        """
        mark = _MARKS.search(self._held_back)
        unfinished = None if is_last else _UNFINISHED_MARK.search(self._held_back)
        if unfinished and (mark is None or mark.start() >= unfinished.start()):
            has_words = self._shown or self._held_back[: unfinished.start()].strip()
            return None, unfinished.start() if has_words else 0
        if mark is None:
            return None, len(self._held_back)
        if mark["open"] and not (self._fence or self._open_ticks):
            self._drop_indent(mark.start())
            mark = _MARKS.search(self._held_back)
            assert mark is not None  # noqa: S101 - for the type checker
        return mark, mark.start()

    def _show_first(self, count: int) -> str:
        """Move the first characters out of the held text, and return what is visible of them."""
        text = self._held_back[:count]
        self._held_back = self._held_back[count:]
        return self._show(text)

    def _show(self, text: str) -> str:
        """Record a text as visible, and return it without white space that is no part of the answer."""
        if self._trims_next:
            text = text.lstrip()
            self._trims_next = not text
        if text:
            self._shown += text
            self._line_start = _cut_line(f"{self._line_start}{text}".rpartition("\n")[2])
            self._last_char = text[-1]
        return text

    def _drop_indent(self, count: int) -> None:
        """Drop the white space before a mark, which begins after ``count`` characters of the held text.

        If other text stands before the mark in its line, nothing is dropped.
        """
        before = self._held_back[:count]
        if not (self._line_start + before).rpartition("\n")[2].strip():
            self._held_back = before.rstrip(" \t") + self._held_back[count:]

    def _read_mark(self, mark: re.Match[str], visible: str) -> str:
        """Judge the mark at the beginning of the held text.

        ``visible``: the visible text before the mark that was not returned yet. Returns this text and what
        the mark adds to it, or an empty text if the mark turns all of it into reasoning.
        """
        text = mark[0]
        if mark["line"]:
            self._open_ticks = ""
            return visible + self._show_first(1)
        if mark["ticks"]:
            self._read_ticks(text)
            return visible + self._show_first(len(text))
        if self._fence or self._open_ticks:
            return visible + self._show_first(len(text))
        after = self._held_back[len(text) :]
        if mark["open"]:
            if self._line_start.strip():  # the mark is not at the start of its line
                return visible + self._show_first(len(text))
            self._close_pattern = _find_close_pattern(mark)
        elif mark["close"]:
            if self._last_char in _BLANKS and after[:1] not in ("", "\n"):  # the text only mentions the mark
                return visible + self._show_first(len(text))
            self._retract(visible)
            visible = ""
        self._held_back = after
        is_within_answer = bool(mark["around"]) and bool(self._shown)
        if not is_within_answer:  # white space after reasoning, or before the first word
            self._trims_next = True
        return visible

    def _read_ticks(self, ticks: str) -> None:
        """Open or close a code block, or code within a line."""
        if _INDENT.fullmatch(self._line_start) and len(ticks) >= _MIN_FENCE_TICKS and not self._open_ticks:
            if not self._fence:
                self._fence = ticks
            elif ticks.startswith(self._fence):
                self._fence = ""
        elif not self._fence and ticks[0] == "`":
            if not self._open_ticks:
                self._open_ticks = ticks
            elif self._open_ticks == ticks:
                self._open_ticks = ""

    def _read_thought(self, *, is_last: bool) -> bool:
        """Move reasoning out of the held text. Return True if the reasoning has ended."""
        assert self._close_pattern is not None  # noqa: S101 - for the type checker
        close = self._close_pattern.search(self._held_back)
        if close is None:
            unfinished = None if is_last else _UNFINISHED_MARK.search(self._held_back)
            end = unfinished.start() if unfinished else len(self._held_back)
            self._thought += self._held_back[:end]
            self._held_back = self._held_back[end:]
            return False
        self._thought += self._held_back[: close.start()]
        self._held_back = self._held_back[close.end() :]
        self._close_pattern = None
        self._trims_next = True
        return True

    def _retract(self, visible: str) -> None:
        """Turn the visible text into reasoning: its opening mark was part of the prompt.

        ``visible``: the end of this text, which was not returned yet.
        """
        self._thought += self._shown
        self._retracted = self._retracted or len(self._shown) > len(visible)
        self._shown = self._line_start = self._last_char = ""


def _find_close_pattern(opening_mark: re.Match[str]) -> re.Pattern[str]:
    """Return the closing mark of the kind of reasoning that an opening mark begins."""
    return next(pattern for kind, pattern in _COMPILED_CLOSE_PATTERNS.items() if opening_mark[kind])


def _cut_line(line: str) -> str:
    """Return the start of a line, enough to see its indent. "…" stands for a word after a long indent."""
    start = line[:_LINE_START_CHARS]
    if line.strip() and not start.strip():
        return "…"
    return start
