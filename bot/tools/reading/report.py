"""`Report`: the account of how a file was read, in words for people and the model.

A reader of a file counts two sorts of content, by kind. Content that is *left out* is in the file but not in
its text (a picture). Content that is *hidden* is in the text, although people who open the file do not see it
(a hidden row).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.domain.text import name_some

_MAX_NUMBERS = 8  # pages or slides that are named one by one
_MAX_REMARKS = 6


class UnreadableError(Exception):
    """The reason why a file can't be read, in words: "it is …"."""


@dataclass(frozen=True, slots=True)
class Report:
    """The account of one file. Kinds of content are named in the singular ("hidden sheet")."""

    left_out: Counter[str] = field(default_factory=Counter)
    """The kinds of things in the file that are not in its text, with their numbers."""
    hidden: Counter[str] = field(default_factory=Counter)
    """The kinds of things in the text that people who open the file do not see, with their numbers."""
    remarks: list[str] = field(default_factory=list)
    """Sentences about what can't be counted."""

    def count_left_out(self, kind: str, count: int = 1) -> None:
        """Count content of the file that is not in its text."""
        if count:
            self.left_out[kind] += count

    def count_hidden(self, kind: str, count: int = 1) -> None:
        """Count content of the text that people who open the file do not see."""
        if count:
            self.hidden[kind] += count

    def remark(self, sentence: str) -> None:
        """Add a sentence, unless it is there already, or there are `_MAX_REMARKS`."""
        if sentence not in self.remarks and len(self.remarks) < _MAX_REMARKS:
            self.remarks.append(sentence)

    def add(self, other: "Report") -> None:
        """Add the counts and the remarks of another report."""
        self.left_out.update(other.left_out)  # a Counter adds the numbers
        self.hidden.update(other.hidden)
        self.remarks.extend(other.remarks)

    def as_text(self) -> str:
        """Return everything as short sentences; empty if there is nothing to report."""
        counted = (("Left out", self.left_out), ("Hidden in the file, but read", self.hidden))
        sentences = [f"{words}: {_list_counts(counts)}." for words, counts in counted if counts]
        return " ".join((*sentences, *self.remarks))


def describe_numbers(noun: str, numbers: Sequence[int]) -> str:
    """Return "page 2" or "pages 2, 3 and 5"."""
    if len(numbers) == 1:
        return f"{noun} {numbers[0]}"
    words = [str(number) for number in numbers]
    if len(numbers) > _MAX_NUMBERS:
        return f"{noun}s {name_some(words, _MAX_NUMBERS)}"
    return f"{noun}s {', '.join(words[:-1])} and {words[-1]}"


def _list_counts(counts: Counter[str]) -> str:
    parts = []
    for kind, count in counts.items():
        noun = kind if count == 1 else pluralise(kind)
        parts.append(f"{count:,} {noun}")
    return ", ".join(parts)


def pluralise(kind: str) -> str:
    """Return the plural of a kind; what follows a preposition stays as it is."""
    for preposition in (" of ", " with ", " after ", " without "):
        if preposition in kind:
            noun, rest = kind.split(preposition, 1)
            return f"{pluralise(noun)}{preposition}{rest}"
    if kind.endswith("y"):
        return f"{kind[:-1]}ies"
    return f"{kind}s"
