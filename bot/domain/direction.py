"""The direction of text: what people and tools wrote keeps its own, whatever stands around it. Pure.

A line that begins in English shows Hebrew or Arabic in it in the order of English, so that “from A to B”
may read as its opposite. Unicode's isolates (UAX #9) give such a text a direction of its own. They are added
where a text is shown, never to what is stored, signed or put into code. A text's own marks of that kind are
spelled out before (``bot/domain/text.py``), so that none of them can end an isolate.
"""

import regex

FIRST_STRONG_ISOLATE, POP_ISOLATE = "\u2068", "\u2069"
_RIGHT_TO_LEFT = r"[\p{Bidi_Class=R}\p{Bidi_Class=AL}\p{Bidi_Class=AN}]"
_HAS_RIGHT_TO_LEFT = regex.compile(_RIGHT_TO_LEFT)
_LEAD = regex.compile(r"(?:[-+•…] |  |\d{1,6}[.)] )")
_LABEL = regex.compile(r"[^:\n“]{1,80}: ")
_FIRST_STRONG = regex.compile(rf"{_RIGHT_TO_LEFT}|\p{{Bidi_Class=L}}")
_PART = regex.compile(
    r"“[^“”\n]{1,4000}”"
    rf"|{_RIGHT_TO_LEFT}\p{{M}}*(?:[^\p{{Bidi_Class=L}}“”\n]{{0,40}}{_RIGHT_TO_LEFT}\p{{M}}*)*"
)


def runs_right_to_left(text: str) -> bool:
    """Return whether some of a text is written from right to left."""
    return _HAS_RIGHT_TO_LEFT.search(text) is not None


def isolate(text: str) -> str:
    """Return a text whose lines each have a direction of their own; one without such letters as it is."""
    if not runs_right_to_left(text):
        return text
    return "\n".join(_isolate(line) for line in text.split("\n"))


def _isolate(line: str) -> str:
    if runs_right_to_left(line):
        return f"{FIRST_STRONG_ISOLATE}{line}{POP_ISOLATE}"
    return line


def set_apart(text: str) -> str:
    """Return words of ours with what others wrote in them, each such part with a direction of its own.

    A line that begins with letters from right to left is one such part, and so is what begins with them after
    a label and a colon. Elsewhere they are what stands between “ and ”, and each stretch of such letters. The
    marks of a list or of a diff in front of a line stay where lines begin.
    """
    if not runs_right_to_left(text):
        return text
    return "\n".join(map(_set_line_apart, text.split("\n")))


def _set_line_apart(line: str) -> str:
    lead = _LEAD.match(line)
    begun = lead.end() if lead else 0
    if _begins_right_to_left(line[begun:]):
        return f"{line[:begun]}{_isolate(line[begun:])}"
    label = _LABEL.match(line)
    if label and _begins_right_to_left(line[label.end() :]):
        return f"{_PART.sub(_isolate_found, label[0])}{_isolate(line[label.end() :])}"
    return str(_PART.sub(_isolate_found, line))


def _begins_right_to_left(text: str) -> bool:
    first = _FIRST_STRONG.search(text)
    return first is not None and runs_right_to_left(first[0])


def _isolate_found(found: regex.Match[str]) -> str:
    part = found[0]
    if not part.startswith("“"):
        return _isolate(part)
    return f"“{_isolate(part[1:-1])}”" if runs_right_to_left(part) else part
