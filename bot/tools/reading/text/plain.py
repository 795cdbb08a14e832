"""Text files, and the kinds of file that are text with markup: RTF, HTML, notebooks, e-mails.

`read_plain` decodes the bytes, tells the kind of file by its beginning, and calls the reader of that kind.
"""

import re

from bot.domain.attachments import HTML, HTML_PAGE, TEXT
from bot.tools.reading.pages import read_html
from bot.tools.reading.report import Report
from bot.tools.reading.text.decoding import decode
from bot.tools.reading.text.mail import is_mail, read_mail
from bot.tools.reading.text.notebooks import read_notebook
from bot.tools.reading.text.rtf import read_rtf

_BEGIN_CHARS = 5_000  # the beginning by which the kind of a file is recognised
# a property of a contact or a calendar that holds a file, with its folded lines: "PHOTO;ENCODING=b:/9j/4AAQ…"
_BASE64_PROPERTY = re.compile(
    r"^(?:PHOTO|LOGO|SOUND|KEY|ATTACH)[;:][^\n]*(?:\n[ \t][^\n]*)*", re.IGNORECASE | re.MULTILINE
)
_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,[A-Za-z0-9+/=]{200,}")  # "data:image/png;base64,iVBO…"


def read_plain(data: bytes, report: Report) -> tuple[str, str]:
    """Return the media type and the text."""
    text = decode(data, report)
    begin = text[:_BEGIN_CHARS].lstrip()
    if begin.startswith("{\\rtf"):
        return TEXT, read_rtf(data, report)
    if HTML_PAGE.match(begin):
        return HTML, read_html(text, report)
    if begin.startswith("{") and '"nbformat"' in text:
        notebook = read_notebook(text, report)
        if notebook is not None:
            return TEXT, notebook
    if is_mail(begin):
        return TEXT, read_mail(data, report)
    return TEXT, _leave_out_base64(text, report)


def _leave_out_base64(text: str, report: Report) -> str:
    """Leave out data in base64: a picture in a contact, a file in a calendar or in a URL."""
    if text.lstrip().startswith(("BEGIN:VCARD", "BEGIN:VCALENDAR")):
        text, count = _BASE64_PROPERTY.subn("[data left out]", text)
        report.count_left_out("picture or file", count)
    text, count = _DATA_URL.subn("[data left out]", text)
    report.count_left_out("picture or file", count)
    return text
