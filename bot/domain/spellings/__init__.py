"""The spellings of a path, an address, a mail address or a name, compared as tools use them.

A condition of a rule names a thing by a text, such as ``path matches "infra/**"``; a call names one by an
argument, perhaps in another spelling, such as ``infra/../INFRA/main.tf``. `compare` answers True where the
argument is what the rule names, False where it is not, and None where the spellings disagree: then one
program may take it for the same and another may not. A rule that makes a call stricter counts for None, one
that makes it looser does not (``bot/domain/rulebook.py``).

A `Referent` is a kind of thing that a text names. There are modules for names, paths, hosts, addresses (URLs)
and mail. Each compares two texts twice. Two spellings are equal in their *strict form* if the standard says
that they are the same, and in their *loose form* if some program takes them for the same. If both comparisons
agree, that is the answer.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from bot.domain.spellings.addresses import SCHEME, compare_addresses, compare_host_or_address
from bot.domain.spellings.hosts import compare_host
from bot.domain.spellings.mail import LIKE_MAIL, compare_mail
from bot.domain.spellings.names import compare_name_or_id, compare_names
from bot.domain.spellings.paths import compare_folders, compare_paths, compare_trees
from bot.domain.spellings.terms import Answer, Referent, WantedText

__all__ = (
    "PATHS",
    "REFERENT_KEYWORD",
    "Answer",
    "Referent",
    "WantedText",
    "compare",
    "compare_host",
    "find_declared",
    "guess_referent",
    "is_path_like",
)

REFERENT_KEYWORD = "x-names"
"""The keyword of a field's JSON schema that says what it names, as a `Referent`."""
PATHS = frozenset({Referent.PATH, Referent.TREE, Referent.FOLDER})
_MAX_NAME_CHARS = 300  # a longer text with spaces names nothing: it is prose
_CAMEL_CASE_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PATH_MARKS = re.compile(r"[/\\%]|^[.~]|\.\w{1,8}$")  # "a/b", "~", "notes.txt"
# a host, perhaps with a port and a path: "example.org:80/x", "localhost"
_LIKE_A_HOST = re.compile(r"[^\s/:@]+(\.[^\s/:@]+)+(:[0-9]+)?([/?#]|$)|localhost\b")
_FORMATS = {
    **dict.fromkeys(("uri", "uri-reference", "iri", "iri-reference", "url"), Referent.ADDRESS),
    **dict.fromkeys(("hostname", "idn-hostname", "ipv4", "ipv6"), Referent.HOST),
    **dict.fromkeys(("email", "idn-email"), Referent.EMAIL),
    **dict.fromkeys(("path", "file-path", "directory-path"), Referent.TREE),
}
# words that suggest what a field holds; the first kind whose words are a part of the field's name counts
_FIELD_NAMES = {
    Referent.FOLDER: r"folders?|dirs?|director(y|ies)|cwd|root|workdir",
    Referent.TREE: r"paths?|files?|filenames?|filepaths?|sources?|src|destinations?|dest|dst",
    Referent.ADDRESS: r"ur[lis]s?|links?|href|endpoint|webhook|site|website|webpage|address(es)?",
    Referent.HOST: r"hosts?|hostnames?|domains?|server|ips?",
    Referent.EMAIL: r"e?mails?|recipients?|cc|bcc|sender|mailbox",
}
_FIELD_PATTERNS = {kind: re.compile(rf"(^|[_-])({words})([_-]|$)") for kind, words in _FIELD_NAMES.items()}
_COMPARISONS: Mapping[Referent, Callable[[str, WantedText], Answer]] = {
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
    """Return the kind of thing that a field's schema declares; None if it declares none.

    A schema declares it by `REFERENT_KEYWORD` or by its format.
    """
    declared = schema.get(REFERENT_KEYWORD)
    if declared in list(Referent):
        return Referent(declared)
    return _FORMATS.get(str(schema.get("format")))


def guess_referent(field_name: str) -> Referent | None:
    """Guess the kind of thing that a field holds by its name (``targetDir``: a folder), or return None."""
    words = _CAMEL_CASE_BORDER.sub("_", field_name).lower()
    for referent, pattern in _FIELD_PATTERNS.items():
        if pattern.search(words):
            return referent
    return None


def is_path_like(text: str) -> bool:
    """Return whether a text has a mark of a path: a slash, an ending, a dot in front."""
    return bool(_PATH_MARKS.search(text))


def compare(found: str, wanted: WantedText, referent: Referent | None, field_name: str = "") -> Answer:
    """Compare the text of an argument, ``found``, with the text in a rule, ``wanted``.

    ``referent`` is the kind of thing that the tool declares for the argument. If it declares nothing, the
    argument is compared as each kind that its text, the rule or the name of its field suggests, and all of
    these answers must agree.
    """
    if found == wanted.text and not wanted.is_pattern:
        return True
    if referent is not None:
        return _COMPARISONS[referent](found, wanted)
    answers = {compare_names(found, wanted)}
    for suggested in _suggest_referents(found, wanted.text, field_name):
        answers.add(_COMPARISONS[suggested](found, wanted))
    if len(answers) == 1:
        return answers.pop()
    return None


def _suggest_referents(found: str, wanted_text: str, field_name: str) -> set[Referent]:
    """Return the kinds of thing that an argument may name if its tool declares nothing."""
    by_field = guess_referent(field_name)
    suggested = {by_field} if by_field else set()
    texts = (found.strip(), wanted_text.strip())
    has_spaces = " " in texts[0] or "\n" in texts[0]
    if len(texts[0]) > _MAX_NAME_CHARS and has_spaces:
        return suggested

    is_path_by_field = by_field in PATHS
    has_scheme = any(SCHEME.match(text) for text in texts)
    is_like_host = any(_LIKE_A_HOST.match(text) for text in texts)
    if has_scheme or (is_like_host and not is_path_by_field):
        suggested.add(Referent.ADDRESS)
    if not is_path_by_field and any(_PATH_MARKS.search(text) for text in texts):
        # a relative path may be a folder above what the rule names, such as "infra" for "infra/main.tf"
        may_be_folder_above = "/" in wanted_text and not found.startswith("/") and not has_scheme
        suggested.add(Referent.TREE if may_be_folder_above else Referent.PATH)
    if any(LIKE_MAIL.search(text) for text in texts):
        suggested.add(Referent.EMAIL)
    return suggested
