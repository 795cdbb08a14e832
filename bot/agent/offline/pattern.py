"""The small language that describes sentences: regular expressions over words, with names for pieces."""

import re
from collections.abc import Mapping

from bot.agent.offline.sentence import QUOTE, Clause
from bot.agent.offline.wishes import DemoAnswer

PRIORITIES: Mapping[str, str] = {
    **dict.fromkeys(("low", "lowest", "minor"), "low"),
    **dict.fromkeys(("normal", "medium", "regular"), "normal"),
    **dict.fromkeys(("high", "highest", "important", "major"), "high"),
    **dict.fromkeys(("urgent", "critical", "asap", "top"), "urgent"),
}
ME = "me"
"""The name when people mean themselves and the chat does not tell who they are."""
_NOT_A_NAME = (
    "the|an?|my|our|it|them|that|this|these|those|we|you|they|he|she|there|any|all|some|every|each|what|which|who"
    "|open|closed|done|fixed|with|about|and|or|to|of|issues?|tickets?|bugs?|tasks?|labels?|priority|prio|everything"
    "|anything|right|working|have|has|do|does|is|are|be|still|much|many|review|most|least|more|not|one|ones|how|every(one|body)|some(one|body)|NOONE"
    f"|{'|'.join(PRIORITIES)}"
)
_PIECES: Mapping[str, str] = {
    "NAMES": r"(?P<name>\x02|<@[^<>\s]+>|@?(?!(NOTNAME)(?!\S))[^\W\d][\w.'-]*( (?-i:[A-Z])[\w.'-]*)?)",
    "LABELS": r"(?P<labels>LABEL( (,|and|&|, and) LABEL)*)",
    "LABEL": r"(\x02|(?!(NOTLABEL)(?!\S))(?!\w+[- ]prio)[\w-]+)",
    "NOTLABEL": "the|an?|it|them|and|or|to|of|with|assigned|assign|for|on|in|from|as|that|then|"
    "priority|prio|is|are",
    "NOTNAME": _NOT_A_NAME,
    "PRIO": rf"(?P<priority>{'|'.join(PRIORITIES)})",
    "NARROWING": "open|closed|unassigned|my|most|oldest|newest|latest|recent|next|left|first|top|PRIORITIES",
    "PRIORITIES": "|".join(PRIORITIES),
    "NOUN": r"(issues?|tickets?|bugs?|tasks?)",
    "NOONE": r"(no ?body|no ?one|no[- ]one|none|anybody|anyone)",
    "SPAN": r"#?\d+([-–]#?\d+| (through|thru|up to|until) #?\d+| [-–] #\d+)?",  # noqa: RUF001 - both dashes
    "NUM": r"#?\d+",
    "ENDED": "done|fixed|resolved|finished|completed?|closed",
    "MUST": "should|must|needs? to|ha(s|ve) to|ought to",
}


def phrase(text: str) -> re.Pattern[str]:
    """A pattern that matches words from edge to edge. Names of pieces are filled in; ``()`` only groups."""
    for name, piece in _PIECES.items():
        text = re.sub(rf"\b{name}\b", lambda _: piece, text)  # noqa: B023 - used right here
    text = re.sub(r"(?<!\\)\((?!\?)", "(?:", text)
    return re.compile(rf"(?<!\S)(?:{text})(?!\S)", re.IGNORECASE)


HEDGE = re.compile(
    r"(?:\b(?:not|never|unless|if|except|but|until|instead|only|without|when|after|before)|\b\w*n't)\b",
    re.IGNORECASE,
)
"""What makes a clause one to leave alone, where nothing reads it."""
_LONGEST_RANGE = 20
QUOTED = re.compile(f"(?P<words>{QUOTE})")


def priority(said: str) -> str:
    return PRIORITIES[said.lower().partition("-")[0]]  # people write "high-priority" as one word, too


def numbers(said: str) -> list[int]:
    """The numbers in a list with ranges, each once; [] where a range is empty, or too long to be meant."""
    found: list[int] = []
    for begin, end in re.findall(r"(\d+)(?:\s*(?:[-–]|to|through|thru|until)\s*#?(\d+))?", said):  # noqa: RUF001
        each = range(int(begin), int(end or begin) + 1)
        if not 0 < len(each) <= _LONGEST_RANGE:
            return []
        found += each
    return list(dict.fromkeys(found))


def person(name: str, speaker: str) -> str:
    name = name.removeprefix("@").removesuffix("'s")
    return (speaker or ME) if name.lower() in {"me", "my", "myself", "i"} else name


def labels(said: str) -> tuple[str, ...]:
    parts = re.split(r"\s*(?:,|&|\band\b)\s*", said)
    return tuple(dict.fromkeys(p for part in parts if (p := part.strip(" \"'“”‘’").lower())))  # noqa: RUF001


def short(text: str, most: int = 300) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def ask_for(clause: Clause, question: str, *chips: str) -> DemoAnswer:
    """Ask for what is missing, with the clause in people's own words."""
    clause.rest()
    return DemoAnswer(f"“{short(clause.said)}”: {question}", chips)
