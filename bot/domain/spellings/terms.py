"""Terms of the comparison of spellings: its answer, the kinds of things, the text in a rule.

Each module of this folder brings the text of a rule (`WantedText`) and an argument of a call into the same
form, and asks `WantedText.fits`.
"""

from collections.abc import Callable
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import NamedTuple

Answer = bool | None
"""An answer with three values: True if a text is what a rule names, False if it certainly is not.

None: no one can tell, since one program takes the text for what the rule names and another one does not, or
since the text is too long to be compared.
"""

MAX_CHARS = 8_000  # for a longer text the answer is None


class Referent(StrEnum):
    """The kind of thing that a text argument names."""

    PATH = "path"  # one file or folder, itself
    TREE = "tree"  # a file, or a folder with all that is below it
    FOLDER = "folder"  # a folder with all that is below it
    ADDRESS = "address"  # a URL, with or without its scheme
    HOST = "host"
    EMAIL = "email"
    NAME = "name"  # the name of an account, a branch, a channel
    NAME_OR_ID = "name or id"  # of a container: the id may belong to a container that a rule names


class WantedText(NamedTuple):
    """The text by which a rule names a thing: ``a.txt``, or as a pattern ``infra/*``."""

    text: str
    is_pattern: bool  # True: the text may hold * and ?

    def fits(self, found: str, named: str) -> bool:
        """Return whether an argument is what the rule names.

        ``named`` is the rule's text in the same form as the argument, ``found``.
        """
        if self.is_pattern:
            return fnmatchcase(found, named)
        return found == named

    def normalize_with(self, form: Callable[[str], str | None]) -> str:
        """Return the text in the form that ``form`` makes of it.

        A pattern stays as it is, and so does a text for which ``form`` returns None, as it has no such form.
        """
        if self.is_pattern:
            return self.text
        return form(self.text) or self.text


def agree(*answers: Answer) -> Answer:
    """Return the answer if all are the same, else None."""
    if len(set(answers)) == 1:
        return answers[0]
    return None
