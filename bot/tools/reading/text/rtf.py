r"""Rich text files (RTF), read by striprtf.

RTF is text with *control words* (``\b`` for bold) and *groups* in braces (``{\b word}``). striprtf would
return deleted and hidden text, and drop notes and headers. So regular expressions change the bytes
first: groups with deleted or hidden text are removed, and those with notes or headers are made ordinary
paragraphs.
"""

import re

from bot.tools.reading.report import Report

_MAX_BYTES_WITH_PICTURES = 3_000_000
_PICTURE_DIGITS = re.compile(rb"[0-9a-fA-F\r\n]{10000,}")
# a group whose leading control words include the given word, as in {\b\deleted …}
_GROUP = (
    rb"\{(?:\\(?!%s(?![a-z]))[a-z]+-?[0-9]* ?)*+"  # control words other than the given one
    rb"\\%s(?![0-9a-z])"  # the given word, without a number: "\v0" would end hidden text
    rb"(?:\\[^v]|\\v(?!0)|[^{}\\])*+\}"  # text without inner groups and without "\v0"
)
_RESCUED_GROUPS = (  # pairs of a pattern and its replacement
    # striprtf drops these groups. Each becomes a paragraph, or begins with a word that it doesn't know (nod),
    # so that its text is kept.
    (re.compile(rb"\{\\footnote(?![a-z]) ?"), rb"{\\par [Note] "),
    (re.compile(rb"\{\\header[flr]?(?![a-z]) ?"), rb"{\\par [Header] "),
    (re.compile(rb"\{\\footer[flr]?(?![a-z]) ?"), rb"{\\par [Footer] "),
    (re.compile(rb"\{\\\*\\annotation(?![a-z]) ?"), rb"{\\par [Comment] "),
    (re.compile(rb"\{(?:\\\*)?\\(?:shp|shpinst|do)(?![a-z])"), rb"{\\nod "),
    (re.compile(rb"\{\\(?:shptxt|dptxbxtext)(?![a-z]) ?"), rb"{\\par "),
)
_BRIGHT_COMPONENT = re.compile(rb"\\(?:red|green|blue)2[45][0-9](?![0-9])")  # "\red255" in the colour table
_COMPONENTS = 3  # the components of a colour: red, green and blue
_BACKGROUND = re.compile(rb"\\(?:chcbpat|cbpat|clcbpat|highlight|cb)[1-9]")  # sets a background: "\cb2"


def read_rtf(data: bytes, report: Report) -> str:
    """Return the text of a file, without deleted and hidden text."""
    from striprtf.striprtf import rtf_to_text

    if len(data) > _MAX_BYTES_WITH_PICTURES:  # nearly all bytes are the digits of its pictures
        data = _PICTURE_DIGITS.sub(b"", data)
    report.count_left_out("picture", len(re.findall(rb"\\pict\b", data)))
    report.count_left_out("embedded object", len(re.findall(rb"\\object\b", data)))
    # the control words before deleted and hidden text are "\deleted" and "\v"
    for kind, word in (("tracked deletion", rb"deleted"), ("piece of hidden text", rb"v")):
        data, removed = re.subn(_GROUP % (word, word), b"", data)
        report.count_left_out(kind, removed)
        # text that the pattern could not remove stays
        report.count_hidden(kind, len(re.findall(rb"\\%s(?![0-9a-z])" % word, data)))
    report.count_hidden("piece of white or tiny text", _count_faint_text(data))
    for pattern, replacement in _RESCUED_GROUPS:
        data = pattern.sub(replacement, data)
    code_page = re.search(rb"\\ansicpg([0-9]{3,5})", data)
    encoding = f"cp{code_page[1].decode()}" if code_page else "cp1252"
    latin_1 = data.decode("latin-1")
    text = rtf_to_text(latin_1, encoding=encoding, errors="replace")  # type: ignore[no-untyped-call]
    return str(text)


def _count_faint_text(data: bytes) -> int:
    """Return how often the text changes to less than three points, or to white without a background."""
    table = re.search(rb"\\colortbl([^{}]*)", data)
    colours = table[1].split(b";") if table else []
    white = []
    for number, colour in enumerate(colours):
        if len(_BRIGHT_COMPONENT.findall(colour)) == _COMPONENTS:
            white.append(b"%d" % number)
    # the size is in half points: "\fs5"
    tiny = len(re.findall(rb"\\fs[0-5](?![0-9])", data))
    if not white or _BACKGROUND.search(data):
        return tiny
    return tiny + len(re.findall(rb"\\cf(?:%s)(?![0-9])" % b"|".join(white), data))
