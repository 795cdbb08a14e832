"""Separation of a model's reasoning from its answer, by the marks that models put around it. Pure.

Servers without a parser for a model's thoughts leave them in the text: ``<think>…</think>`` and its like at
the start of a line; often the first mark is part of the prompt, so that only the last one comes. Then all
that was shown before it is retracted. Within code, fenced or in backticks, a mark is a text like any other.
Servers that cut text by UTF-16 units send one emoji as two lone surrogates in two chunks.
"""

import re

_HIGH_SURROGATES = range(0xD800, 0xDC00)
_WORDS = r"(?i:(?:[\w-]{1,20}:)?(?:think|thinking|thoughts?|reasoning|antthinking|longcat_think))"
_OPEN = (
    rf"(?P<tag><{_WORDS}>)|(?P<think>\[THINK\])|(?P<kimi>◁think▷)|(?P<begin><\|begin_of_thought\|>)"
    r"|(?P<cohere><\|START_THINKING\|>)|(?P<med><unused94>(?:thought)?)"
    r"|(?P<channel>(?:<\|start\|>assistant)?<\|channel\|?>(?:analysis|thought)\s*(?:<\|message\|>)?)"
)
_CLOSE = rf"</{_WORDS}>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<\|END_THINKING\|>|<unused95>|<channel\|>"
_CLOSES_BY_KIND = {
    "tag": rf"</{_WORDS}>",
    "think": r"\[/THINK\]",
    "kimi": "◁/think▷",
    "begin": r"<\|end_of_thought\|>",
    "cohere": r"<\|END_THINKING\|>",
    "med": "<unused95>",
    "channel": r"<\|end\|>|<channel\|>|<\|return\|>|<\|call\|>|(?=<\|start\|>)|(?=<\|channel\|?>)",
}
_CLOSES = {kind: re.compile(close) for kind, close in _CLOSES_BY_KIND.items()}
_DRESS = (
    r"(?:<\|start\|>assistant)?<\|channel\|>(?:final|commentary)(?: ?<\|constrain\|>\w{1,20})?<\|message\|>"
    r"|<\|begin_of_solution\|>|<\|end_of_solution\|>|<\|START_RESPONSE\|>|<\|END_RESPONSE\|>"
    r"|<\|return\|>|<\|end\|>|<\|im_end\|>|<\|eot_id\|>|<\|endoftext\|>|<\uff5cend▁of▁sentence\uff5c>|<end_of_turn>"
)
"""The marks that models put around an answer."""
_MARKS = re.compile(
    rf"(?P<open>{_OPEN})|(?P<close>{_CLOSE})|(?P<dress>{_DRESS})|(?P<ticks>`+|~~~+)|(?P<line>\n)"
)
_SPECIAL = re.compile(r"[<\[◁`~\n]")
_BEGUN_PATTERN = (
    r"(?:<\|(?:start|channel)\|?>(?:(?!<\|message\|>)[^\n]){0,80}|<\|[^<>\n]{0,40}|</?[\w:▁\uff5c-]{0,40}\|?"
    r"|\[/?[A-Z]{0,6}|◁/?\w{0,5}|`+|~+)\Z"
)
"""The beginning of a mark, which the next chunk may complete."""
_BEGUN, _BLANK_OR_BEGUN = re.compile(_BEGUN_PATTERN), re.compile(rf"\s*(?:\Z|{_BEGUN_PATTERN})")
_FENCE_TICKS = 3
_LINE_CHARS = 8
_BLANKS = (" ", "\t")
_INDENT = re.compile(r" {0,3}\Z")


def join_surrogates(text: str) -> str:
    """Return the text with pairs of lone surrogates joined, and what is left of them replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _begin_line(line: str) -> str:
    """Return the start of a line: enough to see its indent, and if it holds a word."""
    begun = line[:_LINE_CHARS]
    if line.strip() and not begun.strip():
        return "…"
    return begun


class Thoughts:
    """A parser that splits an answer's text, as it streams, into reasoning and what may be shown."""

    def __init__(self) -> None:
        self._held = ""
        self._thought = ""
        self._shown = ""  # the text shown since the last thought with both of its marks
        self._line = ""  # the first characters of the current line
        self._last = ""  # the last character of the text
        self._close: re.Pattern[str] | None = None  # the mark that ends the current thought
        self._fence = ""
        self._ticks = ""  # the backticks at the beginning of the current code within a line
        self._trims = False  # white space after a thought is no part of the answer
        self._retracted = False

    def add(self, text: str) -> str:
        """Add text of the answer, and return what of it can be shown now."""
        quick = self._shown and self._close is None and not (self._held or self._trims)
        if quick and not _SPECIAL.search(text):
            shown = self._show(text)
        else:
            self._held += text
            shown = self._read(is_last=False)
        if shown and ord(shown[-1]) in _HIGH_SURROGATES:
            self._held, shown = shown[-1] + self._held, shown[:-1]
            self._shown = self._shown[:-1]
        return join_surrogates(shown)

    def take_thought(self, text: str = "") -> str:
        """Return the reasoning since the last call, with ``text`` from the field for reasoning."""
        thought, self._thought = self._thought + text, ""
        return join_surrogates(thought)

    def rest(self) -> str:
        """Return the text still held back at the end of the answer.

        Reasoning that never ended is not shown.
        """
        shown = self._read(is_last=True)
        held, self._held = self._held, ""
        if self._close is not None:
            self._thought += held
            return join_surrogates(shown)
        return join_surrogates(shown + self._show(held))

    def take_retraction(self) -> bool:
        """Tell, once, if text shown before has turned out to be reasoning."""
        retracted, self._retracted = self._retracted, False
        return retracted

    def _show(self, text: str) -> str:
        if self._trims:
            text = text.lstrip()
            self._trims = not text
        if text:
            self._shown += text
            self._line = _begin_line(f"{self._line}{text}".rpartition("\n")[2])
            self._last = text[-1]
        return text

    def _read(self, *, is_last: bool) -> str:
        shown = ""
        while self._held:
            if not (is_last or self._shown) and _BLANK_OR_BEGUN.match(self._held):
                break  # white space before a thought is no part of the answer
            first = _MARKS.match(self._held.lstrip())
            if not self._shown and first and first["open"]:
                self._held = self._held.lstrip()
            if self._close is not None:
                if not self._read_thought(is_last=is_last):
                    break
                continue
            mark = _MARKS.search(self._held)
            begun = None if is_last else _BEGUN.search(self._held)
            if begun and (mark is None or mark.start() >= begun.start()):
                if self._shown or self._held[: begun.start()].strip():
                    shown += self._take(begun.start())
                break
            if mark is None:
                shown += self._take(len(self._held))
                break
            if mark["open"] and not (self._fence or self._ticks):
                self._drop_indent(mark.start())
                mark = _MARKS.search(self._held)
                assert mark is not None  # noqa: S101 - for the type checker
            shown += self._take(mark.start())
            if mark["close"] and self._last in _BLANKS and self._held == mark[0] and not is_last:
                break  # what follows says whether it is a word about the mark
            shown = self._read_mark(mark, shown)
        return shown

    def _drop_indent(self, count: int) -> None:
        before = self._held[:count]
        if not (self._line + before).rpartition("\n")[2].strip():
            self._held = before.rstrip(" \t") + self._held[count:]

    def _take(self, count: int) -> str:
        text, self._held = self._held[:count], self._held[count:]
        return self._show(text)

    def _read_mark(self, mark: re.Match[str], shown: str) -> str:
        """Judge the mark at the beginning of the held text. Return the text that is shown by now."""
        text = mark[0]
        if mark["line"]:
            self._ticks = ""
            return shown + self._take(1)
        if mark["ticks"]:
            self._read_ticks(text)
            return shown + self._take(len(text))
        if self._fence or self._ticks:
            return shown + self._take(len(text))
        after = self._held[len(text) :]
        if mark["open"]:
            if self._line.strip():
                return shown + self._take(len(text))
            self._open(mark)
        elif mark["close"]:
            if self._last in _BLANKS and after[:1] not in ("", "\n"):  # a word about the mark
                return shown + self._take(len(text))
            shown = self._retract(shown)
        self._held, self._trims = after, self._trims or not mark["dress"] or not self._shown
        return shown

    def _read_ticks(self, ticks: str) -> None:
        if _INDENT.fullmatch(self._line) and len(ticks) >= _FENCE_TICKS and not self._ticks:
            if not self._fence:
                self._fence = ticks
            elif ticks.startswith(self._fence):
                self._fence = ""
        elif not self._fence and ticks[0] == "`":
            self._ticks = "" if self._ticks == ticks else self._ticks or ticks

    def _open(self, mark: re.Match[str]) -> None:
        self._close = next(close for kind, close in _CLOSES.items() if mark[kind])

    def _read_thought(self, *, is_last: bool) -> bool:
        """Move the reasoning out of the held text. Return whether the reasoning has ended."""
        assert self._close is not None  # noqa: S101 - for the type checker
        found = self._close.search(self._held)
        if found is None:
            begun = None if is_last else _BEGUN.search(self._held)
            sure = begun.start() if begun else len(self._held)
            self._thought += self._held[:sure]
            self._held = self._held[sure:]
            return False
        self._thought += self._held[: found.start()]
        self._held, self._close, self._trims = self._held[found.end() :], None, True
        return True

    def _retract(self, shown: str) -> str:
        """Turn all text displayed before into reasoning: its opening mark was part of the prompt."""
        self._thought += self._shown
        self._retracted = self._retracted or len(self._shown) > len(shown)
        self._shown = self._line = self._last = ""
        return ""
