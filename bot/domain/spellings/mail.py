"""Mail addresses (RFC 5321): an argument may have several of them, with names, or be a ``mailto:`` link.

Two spellings are equal in their *strict form* if the standard says that they are the same, and in their
*loose form* if some program takes them for the same. An address with a tag, ``ana+news@example.org``, reaches
the mailbox of the address without the tag. So an argument with a tag counts as naming both addresses. The
answer is True only if every address that the argument names is what the rule names.
"""

import re
import unicodedata
from email.utils import getaddresses

from bot.domain.spellings.hosts import loosen_host, normalize_host
from bot.domain.spellings.names import decode_percent, fold
from bot.domain.spellings.terms import MAX_CHARS, Answer, WantedText

LIKE_MAIL = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+")
_TAG = re.compile(r"\+[^@]*@")  # "+news@"
# two names of one host, which ignores dots in a user's name
_GMAIL_HOSTS = frozenset({"gmail.com", "googlemail.com"})


def compare_mail(found: str, wanted: WantedText) -> Answer:
    """Compare an argument with a mail address that a rule names.

    True if each address in the argument fits in its loose form, and the argument as a whole in its strict
    form; False if nothing fits; None in between.
    """
    if len(found) > MAX_CHARS:
        return None
    wanted_mail = _loosen_mail(wanted.text)
    wanted_mailbox = _TAG.sub("@", wanted_mail)  # the rule's address without its tag
    fits_strictly = wanted.fits(_normalize_mail(found), wanted.normalize_with(_normalize_mail))
    fits_loosely = [
        wanted.fits(mail, wanted_mail) or wanted.fits(mail, wanted_mailbox) for mail in _list_mail(found)
    ]
    # an argument with a tag is listed with and without it. For a rule without the tag only the latter fits,
    # so the answer is None
    if fits_loosely and all(fits_loosely):
        return True if fits_strictly else None
    return None if fits_strictly or any(fits_loosely) else False


def _normalize_mail(text: str) -> str:
    """Return a mail address in its strict form: only its host is case-insensitive."""
    user, at_sign, host = text.rpartition("@")
    return f"{user}{at_sign}{normalize_host(host)}"


def _loosen_mail(text: str) -> str:
    """Return a mail address in its loose form, with its tag."""
    user, at_sign, host = text.strip().strip("'").rpartition("@")
    loose_user, loose_host = fold(user).strip('"'), loosen_host(host)
    if loose_host in _GMAIL_HOSTS:
        loose_user, loose_host = loose_user.replace(".", ""), "gmail.com"
    return f"{loose_user}{at_sign}{loose_host}"


def _list_mail(text: str) -> list[str]:
    """Return the mail addresses in a text, in their loose form; each with a tag also without the tag."""
    plain = decode_percent(re.sub(r"^\s*mailto:", "", text, flags=re.IGNORECASE))
    if plain != text:  # a mailto link or an encoded text: others may be named after a question mark
        plain = re.sub(r"[?&](?:to|cc|bcc)=", ",", plain, flags=re.IGNORECASE)
        plain = re.sub(r"[?&]\w+=[^,&]*", "", plain)
    plain = re.sub(r"\s+@|@\s+", "@", unicodedata.normalize("NFKC", plain)).replace(";", ",")
    parsed = [address for _, address in getaddresses([plain]) if address]
    # a part of the text that the parser leaves out, as it has a fault, may still have addresses
    addresses = dict.fromkeys([*parsed, *LIKE_MAIL.findall(plain)])
    mails = [_loosen_mail(address) for address in addresses]
    mailboxes = [_TAG.sub("@", mail) for mail in mails if _TAG.search(mail)]
    return [*mails, *mailboxes]
