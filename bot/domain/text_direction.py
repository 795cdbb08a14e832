"""The direction of text: names and words of other people keep their own direction inside Nod's text. Pure.

A line that begins in English shows Hebrew or Arabic in it in the order of English, so that “from A to B”
may read as its opposite. Unicode's isolates (UAX #9) are a pair of unseen characters that give the text
between them a direction of its own. They are added where a text is shown, never to a text that is stored,
signed or put into code. Isolates that a text already has are spelled out before (``bot/domain/text.py``), so
that a text can't end the isolate around it.
"""

import regex

FIRST_STRONG_ISOLATE = "\u2068"
POP_ISOLATE = "\u2069"
# letters of Hebrew and of Arabic, and Arabic numbers
_RIGHT_TO_LEFT = r"[\p{Bidi_Class=R}\p{Bidi_Class=AL}\p{Bidi_Class=AN}]"
_HAS_RIGHT_TO_LEFT = regex.compile(_RIGHT_TO_LEFT)
# the mark of a list, a diff or an indented line: "- ", "• ", "12. "
_LIST_MARK = regex.compile(r"(?:[-+•…] |  |\d{1,6}[.)] )")
_LABEL = regex.compile(r"[^:\n“]{1,80}: ")  # "Due date: "
_FIRST_STRONG = regex.compile(rf"{_RIGHT_TO_LEFT}|\p{{Bidi_Class=L}}")
# a quotation, or a stretch of right-to-left letters with spaces, signs and digits between them
_PART = regex.compile(
    r"“[^“”\n]{1,4000}”"
    rf"|{_RIGHT_TO_LEFT}\p{{M}}*(?:[^\p{{Bidi_Class=L}}“”\n]{{0,40}}{_RIGHT_TO_LEFT}\p{{M}}*)*"
)


def runs_right_to_left(text: str) -> bool:
    """Return whether a text has letters that are written from right to left."""
    return _HAS_RIGHT_TO_LEFT.search(text) is not None


def isolate_lines(text: str) -> str:
    """Return a text with a direction of its own for each line; without right-to-left letters, unchanged."""
    if not runs_right_to_left(text):
        return text
    return "\n".join(_isolate(line) for line in text.split("\n"))


def _isolate(line: str) -> str:
    if runs_right_to_left(line):
        return f"{FIRST_STRONG_ISOLATE}{line}{POP_ISOLATE}"
    return line


def isolate_foreign_parts(text: str) -> str:
    """Return Nod's text in which each part that others wrote is isolated, in a direction of its own.

    Such parts are:

    - a line that begins with right-to-left letters, also after a label and a colon
    - elsewhere, a quotation between “ and ”, and each stretch of right-to-left letters

    The mark of a list or of a diff at the beginning of a line stays outside.
    """
    if not runs_right_to_left(text):
        return text
    return "\n".join(map(_set_line_apart, text.split("\n")))


def _set_line_apart(line: str) -> str:
    list_mark = _LIST_MARK.match(line)
    start = list_mark.end() if list_mark else 0  # of the content
    if _begins_right_to_left(line[start:]):
        return f"{line[:start]}{_isolate(line[start:])}"
    label = _LABEL.match(line)
    if label and _begins_right_to_left(line[label.end() :]):
        isolated_label = _PART.sub(_isolate_part, label[0])
        return f"{isolated_label}{_isolate(line[label.end() :])}"
    return str(_PART.sub(_isolate_part, line))


def _begins_right_to_left(text: str) -> bool:
    first = _FIRST_STRONG.search(text)
    return first is not None and runs_right_to_left(first[0])


def _isolate_part(match: regex.Match[str]) -> str:
    part = match[0]
    if part.startswith("“"):  # a quotation, whose marks stay outside
        return f"“{_isolate(part[1:-1])}”"
    return _isolate(part)
