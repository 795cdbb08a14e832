"""Names and free text, such as names of accounts, branches and channels.

Two spellings are equal in their *strict form* if the standard says that they are the same, and in their
*loose form* if some program takes them for the same. There is no standard for names, so the strict form of a
name is its text. Some programs ignore case, width, unseen characters and extra white space, so the loose form
(`fold`) is without them.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import unquote

from bot.domain.spellings.terms import MAX_CHARS, Answer, WantedText, agree

_MAX_DECODED = 3  # the most times that a text is percent-decoded
_ID = re.compile(r"[0-9a-fA-F]{12,}")  # the beginning of a container's id, or all of it
_REFS = re.compile(r"^\+?(refs/)?(heads|tags|remotes)/")  # the prefix of a git reference: "refs/heads/main"


def compare_names(found: str, wanted: WantedText) -> Answer:
    """Compare names and free text; None if they differ only in what some programs ignore.

    A text of more than `MAX_CHARS` characters is compared in its strict form alone.
    """
    strict = wanted.fits(found, wanted.text)
    if len(found) > MAX_CHARS:
        return strict
    folded = fold(wanted.text)
    loose = any(wanted.fits(name, folded) for name in _list_names(found))
    return agree(strict, loose)


def compare_name_or_id(found: str, wanted: WantedText) -> Answer:
    """Compare an argument with a name; None if the argument may be the ID of what has the name."""
    answer = compare_names(found, wanted)
    if answer is False and _ID.fullmatch(found):
        return None
    return answer


def _list_names(text: str) -> Iterator[str]:
    """Yield a name in its loose form: in full, without marks in front, without a git reference's prefix."""
    plain = fold(text)
    yield plain
    yield plain.lstrip("@#/")
    yield _REFS.sub("", plain)


@lru_cache(maxsize=1024)
def fold(text: str) -> str:
    """Return a text in its loose form: in one case and width, without unseen characters and extra space."""
    visible = [
        character
        for character in text
        if character in "\t\n" or unicodedata.category(character) not in ("Cf", "Cc")
    ]
    plain = unicodedata.normalize("NFKC", "".join(visible))
    lower = unicodedata.normalize("NFKC", plain.casefold())  # again: folding may undo the form
    return " ".join(lower.split())


def decode_percent(text: str) -> str:
    """Return a text percent-decoded until nothing changes, `_MAX_DECODED` times at most."""
    for _ in range(_MAX_DECODED):
        plain = unquote(text)
        if plain == text:
            break
        text = plain
    return text
