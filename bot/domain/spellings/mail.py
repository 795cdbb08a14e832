"""Mail addresses (RFC 5321): an argument may have several of them, with names, or be a ``mailto:`` link.

A mail address with a tag, as ``ana+news@example.org``, reaches the same mailbox as without. So the answer is
True only if every address in the argument is what the rule names.
"""

import re
import unicodedata
from email.utils import getaddresses

from bot.domain.spellings.hosts import loosen_host, normalize_host
from bot.domain.spellings.names import decode_percent, fold
from bot.domain.spellings.terms import MAX_CHARS, Answer, NamedText, agree

LIKE_MAIL = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+")
_TAG = re.compile(r"\+[^@]*@")  # "+news@"
_DOTLESS = frozenset({"gmail.com", "googlemail.com"})  # one mailbox, with or without dots in the name


def compare_mail(found: str, wanted: NamedText) -> Answer:
    """Compare an argument with a mail address that a rule names.

    True if all addresses in the argument fit, in the strict form too; None if some fit; False if none does.
    """
    if len(found) > MAX_CHARS:
        return None
    wanted_mail = _loosen_mail(wanted.text)
    wanted_mailbox = _TAG.sub("@", wanted_mail)
    fits_strictly = wanted.fits(_normalize_mail(found), wanted.normal(_normalize_mail))
    fits_loosely = [
        wanted.fits(mail, wanted_mail) or wanted.fits(mail, wanted_mailbox) for mail in _list_mail(found)
    ]
    if fits_loosely and all(fits_loosely):
        return agree(fits_strictly, *fits_loosely)
    return None if fits_strictly or any(fits_loosely) else False


def _normalize_mail(text: str) -> str:
    user, mark, host = text.rpartition("@")
    return f"{user}{mark}{normalize_host(host)}"


def _loosen_mail(text: str) -> str:
    user, mark, host = text.strip().strip("'").rpartition("@")
    name, at = fold(user).strip('"'), loosen_host(host)
    if at in _DOTLESS:
        name, at = name.replace(".", ""), "gmail.com"
    return f"{name}{mark}{at}"


def _list_mail(text: str) -> list[str]:
    """Return the mail addresses in a text, in the loose form; an address with a tag also without the tag."""
    plain = decode_percent(re.sub(r"^\s*mailto:", "", text, flags=re.IGNORECASE))
    if plain != text:  # a mailto address, which may name others after its question mark
        plain = re.sub(r"[?&](?:to|cc|bcc)=", ",", plain, flags=re.IGNORECASE)
        plain = re.sub(r"[?&]\w+=[^,&]*", "", plain)
    plain = re.sub(r"\s+@|@\s+", "@", unicodedata.normalize("NFKC", plain)).replace(";", ",")
    parsed = [address for _, address in getaddresses([plain]) if address]
    # a part of the text that the parser leaves out, as it has a fault, may still have addresses
    addresses = dict.fromkeys([*parsed, *LIKE_MAIL.findall(plain)])
    mails = [_loosen_mail(address) for address in addresses]
    mailboxes = [_TAG.sub("@", mail) for mail in mails if _TAG.search(mail)]
    return [*mails, *mailboxes]
