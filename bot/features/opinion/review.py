"""The check of a model's answer about a call, before any of it is shown on a card as a second opinion.

An attacker may have written the call, and its words may steer the model. So an answer is refused if it breaks
the schema, or if it could be read as advice to approve. It is also refused if it has a number, name, path or
address that the call does not have. The verdict on whether the person asked for the call is shown only if it
is no. This module reads no database and calls no model.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bot.domain.annotations import TEXT_CHARS
from bot.domain.text import is_blank, make_visible, one_line, replace_unstorable, shorten

MAX_ANSWER_CHARS = 4_000
_MAX_DOES_CHARS = 140
_MAX_CONCERN_CHARS = 80  # the model is asked for 60
_MAX_CONCERNS = 2
_NOT_ASKED_TEXT = "this is not what was asked"
_SEPARATOR = "; "
_MIN_DOES_CHARS = 40  # the concerns are shortened so that at least this much of the description is shown
_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*)\n```\s*", re.DOTALL)  # a fenced block of Markdown
_NUMBER = re.compile(r"\d+(?:[.,\u202f']\d+)*")  # "14", "1,000", "3.5"
_SEPARATE_NUMBER = re.compile(rf"(?<![\w-]){_NUMBER.pattern}(?![\w-])")  # not the "2" of "v2"
# "1.234" and "1,234": each is 1234 in one language, and less than 2 in another
_AMBIGUOUS_NUMBER = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")
# a whole part, perhaps with separators of thousands, and perhaps decimals after a point or a comma, such as
# "1,234.50" and "1234,5". The sign before the decimals must not be the separator of thousands.
_VALUE = re.compile(
    r"(?P<whole>[1-9]\d{0,2}(?P<separator>[.,\u202f'])\d{3}(?:(?P=separator)\d{3})*|0|[1-9]\d*)"
    r"(?:(?!(?P=separator))[.,](?P<decimals>\d+))?"
)
# letters of Thai, Chinese, Japanese and Korean, which are written without spaces
_SPACELESS = re.compile("[\u0e00-\u0e7f\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]+")
_WORD = re.compile(r"[^\s\"“”„«»()\[\]{}<>;!?…]+")  # "origin/main" in "(origin/main)!"
_EDGES = ".,:'\u2019`*_-\u2013\u2014"  # stripped from both ends of a word
# words and signs that could be read as advice to approve, in several languages
_ADVICE = re.compile(
    r"[✓✔✅☑👍🆗🟢🟩💚]"
    r"|\b(approv\w*|lgtm|safe(ly)?|harmless|go ahead|looks? (good|fine|ok|right|correct)"
    r"|no (risk|concern|issue|problem)s?"
    r"|ok(ay)?|fine|yes|recommend\w*|legit\w*|trust\w*|as (asked|requested|expected|intended)|routine"
    r"|correct(ly)?|allow\w*|accept\w*|confirm\w*|press|click)\b"
    r"|\b(genehmig\w*|freigeb\w*|freigab\w*|zustimm\w*|unbedenklich|sicher|harmlos|erlaub\w*|bestätig\w*"
    r"|aprob\w*|aprueb\w*|segur[oa]|inofensiv[oa]|autoriz\w*|approuv\w*|autoris\w*|sûre?|inoffensi\w*"
    r"|approvar\w*|sicur[oa]|одобр\w*|безопасн\w*|утверд\w*)\b"
    r"|批准|同意|安全|承認|승인|안전|موافق|آمن",
    re.IGNORECASE,
)


class Asked(StrEnum):
    """The model's verdict on whether the person asked for the call."""

    YES = "yes"
    NO = "no"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class OpinionWords:
    """The words of a model's answer."""

    does: str  # what the call does
    asked: Asked
    concerns: tuple[str, ...] = ()

    def format_line(self, consequence: str = "") -> str:
        """Return the line for the card: the description, the concerns and the consequence, with semicolons.

        ``consequence``: what follows from the opinion, such as that one more approval is needed. The verdict
        is in the line only if it is NO and there are no concerns. A line that is too long for a card is
        shortened.
        """
        additions = list(self.concerns)
        if self.asked is Asked.NO and not additions:
            additions.append(_NOT_ASKED_TEXT)
        if consequence:
            additions.append(consequence)
        suffix = "".join(f"{_SEPARATOR}{addition}" for addition in additions)
        suffix = shorten(suffix, TEXT_CHARS - _MIN_DOES_CHARS)
        return f"{shorten(self.does, TEXT_CHARS - len(suffix))}{suffix}"


def read_review(answer: str, facts: str, *, has_request: bool) -> OpinionWords | None:
    """Return the words of a model's answer that may be shown; None if the answer is no opinion.

    ``answer``: JSON as the instructions in `case.py` ask for it. ``facts``: the call as JSON. Without a
    request, the verdict is unclear whatever the model says.
    """
    parsed = _parse_answer(answer)
    if parsed is None or any(_may_mislead(text, facts) for text in (parsed.does, *parsed.concerns)):
        return None
    return OpinionWords(
        does=_begin_in_lower_case(parsed.does),
        asked=parsed.asked if has_request else Asked.UNCLEAR,
        concerns=tuple(map(_begin_in_lower_case, parsed.concerns)),
    )


def _parse_answer(answer: str) -> OpinionWords | None:
    """Return an answer that has the right form; what it says is not checked. None for any other text."""
    fenced = _FENCE.fullmatch(answer)
    try:
        content = json.loads(fenced[1] if fenced else answer)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or content.keys() != {"does", "asked", "concerns"}:
        return None
    does = content["does"]
    asked = content["asked"]
    concerns = content["concerns"]
    if not isinstance(concerns, list) or len(concerns) > _MAX_CONCERNS:
        return None
    if not _is_line(does, _MAX_DOES_CHARS):
        return None
    if not all(_is_line(concern, _MAX_CONCERN_CHARS) for concern in concerns):
        return None
    if not isinstance(asked, str) or asked not in set(Asked):
        return None
    return OpinionWords(does, Asked(asked), tuple(concerns))


def _is_line(text: Any, max_chars: int) -> bool:
    """Return whether a value is a text on one line, not too long, without invisible characters."""
    if not isinstance(text, str) or len(text) > max_chars or is_blank(text):
        return False
    # none of these changes the text, so it has nothing that they would remove
    return text == replace_unstorable(text) == one_line(text) == make_visible(text, lambda _: "")


def _begin_in_lower_case(text: str) -> str:
    """Return a text with its first letter in lower case, unless it begins with an acronym such as ``URL``."""
    if text[1:2].islower():
        return text[:1].lower() + text[1:]
    return text


def _may_mislead(text: str, facts: str) -> bool:
    """Return whether a text gives advice, or has a number, name, path or address that the call lacks."""
    if _ADVICE.search(text):
        return True
    folded_facts = facts.casefold()
    numbers = _find_numbers(facts)
    for word in _split(_begin_in_lower_case(text)):  # the capital of the first word does not make it a name
        if _NUMBER.fullmatch(word):
            if numbers.isdisjoint(_list_readings(word)):
                return True
        # a part of a longer word of the call is enough, as ``main`` is of ``origin/main``
        elif _names_something(word) and word.casefold() not in folded_facts:
            return True
    return False


def _split(text: str) -> Iterator[str]:
    """Yield the words of a text, without letters of scripts that put no spaces between words."""
    for rough_word in _WORD.findall(_SPACELESS.sub(" ", text)):
        if word := rough_word.strip(_EDGES):
            yield word


def _names_something(word: str) -> bool:
    """Return whether a word reads as a name, a path or an address."""
    has_capital_or_digit = any(letter.isupper() or letter.isdigit() for letter in word)
    return has_capital_or_digit or any(letter in "./\\@:_" for letter in word[1:-1])


def _find_numbers(facts: str) -> set[str]:
    """Return the separate numbers in a call, and the lengths of its lists, by `_normalise_number`.

    ``facts`` is the JSON that `case.py` makes of a call; its key ``arguments`` has the call's arguments.
    """
    lengths = {str(length) for length in _list_lengths(json.loads(facts)["arguments"])}
    return lengths | {_normalise_number(number) for number in _SEPARATE_NUMBER.findall(facts)}


def _list_readings(word: str) -> set[str]:
    """Return the ways to read a number in an opinion, spelled as in `_find_numbers`.

    "1.234" may be 1234 or a number below 2, so it has two readings: "1234" and "1.234".
    """
    readings = {_normalise_number(word)}
    if _AMBIGUOUS_NUMBER.fullmatch(word):
        readings.add(_keep_digits(word))
    return readings


def _normalise_number(number: str) -> str:
    """Return a number with a decimal point, without other separators and without zeros at its end.

    An ambiguous number is returned as it is, and so is a text that has no value, such as "1.2.3" or "007".
    """
    value = _VALUE.fullmatch(number)
    if value is None or _AMBIGUOUS_NUMBER.fullmatch(number):
        return number
    whole = _keep_digits(value["whole"])
    decimals = (value["decimals"] or "").rstrip("0")
    return f"{whole}.{decimals}" if decimals else whole


def _keep_digits(number: str) -> str:
    return re.sub(r"\D", "", number)


def _list_lengths(value: Any) -> Iterator[int]:
    """Yield the length of each list in a call, since an opinion may count the items."""
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _list_lengths(part)
    elif isinstance(value, list):
        yield len(value)
        for part in value:
            yield from _list_lengths(part)
