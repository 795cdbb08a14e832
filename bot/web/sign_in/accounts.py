"""The accounts of people whom an organisation's sign-in, or a proxy, knows, and who of them may come in.

A person with a verified email gets the account ``http:sso.EMAIL``, others ``http:sso-id.ID``, by the
provider's own ID.
"""

import re
from collections.abc import Sequence
from urllib.parse import quote

from bot.domain.people import Actor

_NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9._%+@-]{0,199}")  # an email or a name in lower case
_MAX_SUBJECT_CHARS = 255  # OpenID Connect Core 1.0, 2


def account_of(name: str, display_name: str = "") -> Actor | None:
    """Return the account ``http:sso.NAME`` of an email or a name; None for a text that can be neither."""
    name = name.strip()
    key = name.lower() if name.isascii() else ""  # lower() turns some letters that are not ASCII into ASCII
    if _NAME_PATTERN.fullmatch(key):
        return Actor("http", f"sso.{key}", display_name or name)
    return None


def account_of_subject(subject: str, display_name: str = "") -> Actor | None:
    """Return the account ``http:sso-id.ID`` of a person by the provider's ID, which keeps its case.

    None if the ID is empty or too long.
    """
    key = quote(subject, safe="|@+", errors="replace")
    if 0 < len(key) <= _MAX_SUBJECT_CHARS:
        return Actor("http", f"sso-id.{key}", display_name or subject)
    return None


def is_allowed(allowed_entries: Sequence[str], actor: Actor) -> bool:
    """Tell if an account may come in.

    An account of the organisation's sign-in needs an entry among the allowed ones. All others may come in.
    """
    if actor.channel != "http":
        return True
    kind, _, key = actor.key.partition(".")
    if kind == "sso-id":
        return "*" in allowed_entries or actor.key in allowed_entries  # an ID keeps its case
    if kind != "sso":
        return True
    return _allows_email_or_name(allowed_entries, key)


def _allows_email_or_name(allowed: Sequence[str], key: str) -> bool:
    """Tell if ``allowed`` has ``*``, an email, or its domain. A name without @ is allowed by ``*`` alone."""
    key = key.lower()
    entries = {"*"}
    if "@" in key:
        domain = key.rpartition("@")[2]
        entries |= {key, domain}
    return not entries.isdisjoint(entry.lower() for entry in allowed)
