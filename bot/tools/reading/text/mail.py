"""E-mails: the headers that people see, the text, and the names of attached files."""

import email
import email.policy
import re
from email.message import EmailMessage, MIMEPart

from bot.tools.reading.pages import read_html
from bot.tools.reading.report import Report
from bot.tools.reading.text.decoding import decode

_MAX_PARTS = 200
_WORD = re.compile(r"[^\W_]+")
_ONLY_IN_PLAIN_VERSION = re.compile(
    r"\b(?:https?://|mailto:)[^\s<>]+|\[(?:image|cid):[^\]\n]*\]", re.IGNORECASE
)
"""Addresses of links, and marks for pictures, which mail programs write into a plain version."""
_SHOWN_HEADERS = ("From", "To", "Cc", "Date", "Subject")
# two headers of an e-mail in a row, which may be folded: a line that begins with a blank continues the header
_HEADERS = re.compile(
    r"(?:(?:Received|From|To|Return-Path|MIME-Version|Delivered-To|Subject|Date|Message-ID|Reply-To|X-[\w-]+"
    r"|DKIM-Signature|Content-Type|ARC-[\w-]+|Authentication-Results): [^\n]*\n(?:[ \t][^\n]*\n)*){2}",
    re.IGNORECASE,
)


def is_mail(beginning: str) -> bool:
    """Tell if a text begins like an e-mail: with two headers, among them the sender's."""
    is_from = re.search(r"^(?:from|received):", beginning, re.IGNORECASE | re.MULTILINE)
    return bool(_HEADERS.match(beginning) and is_from)


def read_mail(data: bytes, report: Report) -> str:
    """Return the headers that people see and the text; attached files are named and left out."""
    message = email.message_from_bytes(data, policy=email.policy.default)
    lines = [f"{name}: {message[name]}" for name in _SHOWN_HEADERS if message[name]]
    body = _read_body(message, report)
    if body is not None:
        lines += ["", body]
    elif not message.is_multipart():
        report.count_left_out("attached file")
    for part in list(message.iter_attachments())[:_MAX_PARTS]:
        if part.get_content_maintype() == "image" and part.get_content_disposition() != "attachment":
            report.count_left_out("picture")
        else:
            report.count_left_out("attached file")
            lines.append(f"[Attached: {part.get_filename() or part.get_content_type()}]")
    return "\n".join(lines)


def _read_body(message: EmailMessage, report: Report) -> str | None:
    """Return the text as people see it.

    Mail programs show the HTML version. The plain version is taken where it has the same words, and else left
    out: no one has seen what it says.
    """
    plain = message.get_body(("plain",))
    page = message.get_body(("html",))
    if page is None:
        if plain is None:
            return None
        return _read_part(plain, report)
    if plain is None:
        return read_html(_read_part(page, report), report)
    plain_text = _read_part(plain, report)
    html_report = Report()
    html_text = read_html(_read_part(page, html_report), html_report)
    plain_words = set(_WORD.findall(_ONLY_IN_PLAIN_VERSION.sub("", plain_text)))
    if set(_WORD.findall(html_text)) == plain_words:
        return plain_text
    report.count_left_out("plain version with other words")
    report.add(html_report)
    return html_text


def _read_part(part: MIMEPart, report: Report) -> str:
    """Return the text of a part. Without a declared encoding it is read like a file."""
    data = part.get_payload(decode=True)
    if part.get_content_charset() is None and isinstance(data, bytes) and not data.isascii():
        return decode(data, report)
    return str(part.get_content())
