"""The spellings of one thing: a path, an address, a mail address or a name, compared as tools use them.

`compare` answers True where a text is what a rule names, False where it is not, and None where the spellings
disagree: then one program may take it for the same and another may not. A rule that makes a call stricter
counts for None, one that makes it looser does not (``bot/domain/rules.py``).

There is a module for each kind of thing: names, paths, hosts, addresses, mail. Each compares twice: strictly,
as the standard says, and loosely, as the least particular program takes it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from bot.domain.spellings.addresses import SCHEME, compare_addresses, compare_host_or_address
from bot.domain.spellings.hosts import compare_host
from bot.domain.spellings.mail import LIKE_MAIL, compare_mail
from bot.domain.spellings.names import compare_name_or_id, compare_names
from bot.domain.spellings.paths import compare_folders, compare_paths, compare_trees
from bot.domain.spellings.terms import Answer, NamedText, Referent

__all__ = (
    "KEYWORD",
    "PATHS",
    "Answer",
    "NamedText",
    "Referent",
    "compare",
    "compare_host",
    "find_declared",
    "guess_referent",
    "is_path_like",
)

KEYWORD = "x-names"
"""The keyword of a field's JSON schema that says what it names, as a `Referent`."""
PATHS = frozenset({Referent.PATH, Referent.TREE, Referent.FOLDER})
_SURELY_TEXT = 300  # characters of one line, from which a text without a mark of its own is no name
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PATH_MARKS = re.compile(r"[/\\%]|^[.~]|\.\w{1,8}$")
_LIKE_A_HOST = re.compile(r"[^\s/:@]+(\.[^\s/:@]+)+(:[0-9]+)?([/?#]|$)|localhost\b")
_FORMATS = {
    **dict.fromkeys(("uri", "uri-reference", "iri", "iri-reference", "url"), Referent.ADDRESS),
    **dict.fromkeys(("hostname", "idn-hostname", "ipv4", "ipv6"), Referent.HOST),
    **dict.fromkeys(("email", "idn-email"), Referent.EMAIL),
    **dict.fromkeys(("path", "file-path", "directory-path"), Referent.TREE),
}
_KEYS = {
    Referent.FOLDER: r"folders?|dirs?|director(y|ies)|cwd|root|workdir",
    Referent.TREE: r"paths?|files?|filenames?|filepaths?|sources?|src|destinations?|dest|dst",
    Referent.ADDRESS: r"ur[lis]s?|uris?|links?|href|endpoint|webhook|site|website|webpage|address(es)?",
    Referent.HOST: r"hosts?|hostnames?|domains?|server|ips?",
    Referent.EMAIL: r"e?mails?|recipients?|cc|bcc|sender|mailbox",
}
_KEY_PARTS = {kind: re.compile(rf"(^|[_-])({words})([_-]|$)") for kind, words in _KEYS.items()}
_COMPARISONS: Mapping[Referent, Callable[[str, NamedText], Answer]] = {
    Referent.PATH: compare_paths,
    Referent.TREE: compare_trees,
    Referent.FOLDER: compare_folders,
    Referent.ADDRESS: compare_addresses,
    Referent.HOST: compare_host_or_address,
    Referent.EMAIL: compare_mail,
    Referent.NAME: compare_names,
    Referent.NAME_OR_ID: compare_name_or_id,
}


def find_declared(schema: Mapping[str, Any]) -> Referent | None:
    """Return the kind of thing that a field's schema declares, or None."""
    declared = schema.get(KEYWORD)
    if declared in list(Referent):
        return Referent(declared)
    return _FORMATS.get(str(schema.get("format")))


def guess_referent(key: str) -> Referent | None:
    """Guess the kind of thing that a field holds by its name, or return None."""
    words = _HUMP.sub("_", key).lower()
    for referent, pattern in _KEY_PARTS.items():
        if pattern.search(words):
            return referent
    return None


def is_path_like(text: str) -> bool:
    """Return whether a text has a mark of a path: a slash, an ending, a dot in front."""
    return bool(_PATH_MARKS.search(text))


def compare(found: str, wanted: NamedText, referent: Referent | None, key: str = "") -> Answer:
    """Compare an argument with what a rule names.

    ``referent`` is what the tool declares of the argument. Where it declares nothing, every sort of name
    that the text, the rule or the field's name (``key``) suggests is tried, and all must agree.
    """
    if found == wanted.text and not wanted.pattern:
        return True
    if referent is not None:
        return _COMPARISONS[referent](found, wanted)
    kinds = _suggest_referents(found, wanted.text, key)
    answers = {compare_names(found, wanted), *(_COMPARISONS[each](found, wanted) for each in kinds)}
    if len(answers) == 1:
        return answers.pop()
    return None


def _suggest_referents(found: str, named: str, key: str) -> set[Referent]:
    """Return the sorts of name that an argument may be, of which its tool says nothing."""
    kind = guess_referent(key)
    kinds = {kind} if kind else set()
    both = (found.strip(), named.strip())
    if len(both[0]) > _SURELY_TEXT and any(each in both[0] for each in " \n"):
        return kinds
    schemes = any(map(SCHEME.match, both))
    if schemes or (kind not in PATHS and any(map(_LIKE_A_HOST.match, both))):
        kinds.add(Referent.ADDRESS)
    if kind not in PATHS and any(_PATH_MARKS.search(each) for each in both):
        about_paths = "/" in named and not found.startswith("/")
        kinds.add(Referent.TREE if about_paths and not schemes else Referent.PATH)
    if any(map(LIKE_MAIL.search, both)):
        kinds.add(Referent.EMAIL)
    return kinds
