"""The answer of a model to a case, judged before a word of it is shown. Pure, and wary of every word.

An answer that breaks the schema, that names something which the call does not, or that tells people to
approve is no opinion at all. A yes is never shown.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bot.domain.annotations import TEXT_CHARS
from bot.domain.text import blank, make_visible, one_line, shorten, storable

MAX_ANSWER_CHARS = 4_000
_MAX_DOES_CHARS = 140
_MAX_CONCERN_CHARS = 80
_MAX_CONCERNS = 2
_NOT_ASKED_TEXT = "this is not what was asked"
_SEPARATOR = "; "
_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*)\n```\s*", re.DOTALL)
_NUMBER = re.compile(r"\d+(?:[.,\u202f']\d+)*")
_ALONE = re.compile(rf"(?<![\w-]){_NUMBER.pattern}(?![\w-])")
_NO_SPACES = re.compile("[\u0e00-\u0e7f\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]+")
_TOKEN = re.compile(r"[^\s\"“”„«»()\[\]{}<>;!?…]+")
_EDGES = ".,:'\u2019`*_-\u2013\u2014"
_PRAISE = re.compile(
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
    """The verdict on a call: whether the person asked for it."""

    YES = "yes"
    NO = "no"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class OpinionWords:
    """An answer that may be shown. ``asked`` is never shown as a yes."""

    does: str
    asked: Asked
    concerns: tuple[str, ...] = ()

    def say(self, then: str = "") -> str:
        """Return the line for the card, ending with ``then``. A description that is too long is shortened."""
        rest = [*self.concerns]
        if self.asked is Asked.NO and not rest:
            rest = [_NOT_ASKED_TEXT]
        rest += [then] if then else []
        tail = "".join(f"{_SEPARATOR}{each}" for each in rest)
        tail = shorten(tail, TEXT_CHARS - 40)
        return f"{shorten(self.does, TEXT_CHARS - len(tail))}{tail}"


def read_review(answer: str, facts: str, *, has_request: bool) -> OpinionWords | None:
    """Return the review in a model's answer; None if the answer is no opinion.

    ``facts``: the call as JSON. Without a request, the review can't judge whether the person asked for the
    call.
    """
    fenced = _FENCE.fullmatch(answer)
    try:
        found = json.loads(fenced[1] if fenced else answer)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.keys() != {"does", "asked", "concerns"}:
        return None
    does, asked, concerns = found["does"], found["asked"], found["concerns"]
    if not isinstance(concerns, list) or len(concerns) > _MAX_CONCERNS:
        return None
    if not (_is_line(does, _MAX_DOES_CHARS) and all(_is_line(each, _MAX_CONCERN_CHARS) for each in concerns)):
        return None
    if not isinstance(asked, str) or asked not in set(Asked):
        return None
    if any(_may_mislead(each, facts) for each in (does, *concerns)):
        return None
    verdict = Asked(asked) if has_request else Asked.UNCLEAR
    return OpinionWords(_lower(does), verdict, tuple(map(_lower, concerns)))


def _is_line(text: Any, most: int) -> bool:
    if not isinstance(text, str) or len(text) > most or blank(text):
        return False
    return text == storable(text) == one_line(text) == make_visible(text, lambda _: "")


def _lower(text: str) -> str:
    """Return a text with its first letter in lower case, unless it begins with a name or an acronym."""
    if text[1:2].islower():
        return text[:1].lower() + text[1:]
    return text


def _may_mislead(text: str, facts: str) -> bool:
    """Return whether a text gives advice, or has a number, name, path or address that the call lacks."""
    if _PRAISE.search(text):
        return True
    known, numbers = facts.casefold(), _find_numbers(facts)
    for token in _split(_lower(text)):
        if _NUMBER.fullmatch(token):
            if _plain(token) not in numbers:
                return True
        elif _names_something(token) and token.casefold() not in known:
            return True
    return False


def _split(text: str) -> Iterator[str]:
    """Yield the words of a text; for scripts without spaces, the parts in other letters."""
    for token in _TOKEN.findall(_NO_SPACES.sub(" ", text)):
        if word := token.strip(_EDGES):
            yield word


def _names_something(token: str) -> bool:
    """Return whether a word reads as a name, a path or an address."""
    is_named = any(each.isupper() or each.isdigit() for each in token)
    return is_named or any(each in "./\\@:_" for each in token[1:-1])


def _find_numbers(facts: str) -> set[str]:
    """Return the separate numbers in a call, and the lengths of its lists."""
    counted = map(str, _count_parts(json.loads(facts)["arguments"]))
    return {_plain(each) for each in _ALONE.findall(facts)}.union(counted)


def _plain(number: str) -> str:
    return re.sub(r"\D", "", number)


def _count_parts(value: Any) -> Iterator[int]:
    """Yield the length of each list in a call, since a reviewer may count the items."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _count_parts(each)
    elif isinstance(value, list):
        yield len(value)
        for each in value:
            yield from _count_parts(each)
