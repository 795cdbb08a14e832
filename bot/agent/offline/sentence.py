"""A message as words, cut into clauses; readers take the words they understand, and the rest is left. Pure.

That is how the offline model drops nothing: a word is taken by a reader, means nothing by itself (`FILLERS`),
or is among what is `left`, which the answer quotes.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

LONGEST = 2000  # characters of a message that are read
QUOTE = "\x02"  # stands for a quoted passage where readers look, so that nothing in it reads as a command
TAKEN = "\x00"

_TOKEN = re.compile(
    r"#?\d+[-–]#?\d+(?![\w-]|\.\d)|\"[^\"]+\"|“[^”]+”|‘[^’]+’(?!\w)|(?<![\w'])'(?:[^']|'(?=\w))+'(?!\w)|\n+"  # noqa: RUF001
    r"|#?\d+(?![\w-]|\.\d)|<@[^<>\s]+>|['’]s\b|@?\w(?:(?:(?!['’]s\b)[\w.@'’+/-])*\w)?|[^\w\s]"  # noqa: RUF001
)
_MARKS = "\"'“”‘’"  # noqa: RUF001

_VERBS = """
assign reassign re-assign unassign give hand set change update rename retitle mark label tag untag comment
reply post leave close resolve finish complete reopen re-open delete remove erase drop move bump lower raise
prioritise prioritize create open file add make raise report log list show search find look tell take put let
bring pull ping notify email message remind send undo approve what who which how is summarise summarize
"""
_NOUNS = """
issue issues ticket tickets comment comments priority label labels labelled labeled
"""
_LEADS = """
hey hi hello ok okay yes nod @nod please pls now so then also and just can could will would you we us let's i
i'd like to want need go ahead kindly maybe plus & ,
"""
_EMPTY = """
a an the this that these those me our your thanks thank here there of for on in at as with is are was were be
been do does did should shall 's have has had got get it its them they some any new one ones issue issues
ticket tickets task tasks number all both up over still currently right really very much too by from about
around down who what which when yet - : ( ) . ! ?
"""
_AIMS = frozenset({"to", "as", "low", "normal", "medium", "high", "urgent", "critical"})
VERBS = frozenset(_VERBS.split())
"""Words that begin a clause after "and" or a comma."""
NOUNS = frozenset(_NOUNS.split())
LEADS = frozenset(_LEADS.split())
FILLERS = LEADS | frozenset(_EMPTY.split())
"""Words that mean nothing by themselves."""
_SHORTEST = 4  # letters of a word that is worth a correction


@dataclass(frozen=True, slots=True)
class Word:
    """``read`` is the word as readers see it: quotes as one sign, a mistyped command put right."""

    read: str
    start: int
    end: int


class Clause:
    """Words of which readers take theirs. ``carried`` of them belong to the clause before, for its verb."""

    def __init__(self, message: str, words: Sequence[Word], carried: int = 0) -> None:
        self._message, self._words, self._carried = message, words, carried
        self._starts: list[int] = []
        self.text = ""
        for word in words:
            self._starts.append(len(self.text))
            self.text += f"{word.read} "
        self.text = self.text.rstrip()
        self.said = self._raw(carried, len(words))
        self.corrected: dict[str, str] = {}
        self.notes: list[str] = []  # what else to say of it

    def take(self, pattern: re.Pattern[str]) -> dict[str, str] | None:
        """Take the first match; its groups come back as people wrote them. None: no match."""
        return self._taken(pattern.search(self.text))

    def begins(self, pattern: re.Pattern[str]) -> dict[str, str] | None:
        """Take a match at the beginning, behind what was taken there before. None: no match."""
        return self._taken(pattern.match(self.text, len(self.text) - len(self.text.lstrip(f"{TAKEN} "))))

    def ends(self, pattern: re.Pattern[str]) -> bool:
        """Cut off a match at the end, as if it had not been said."""
        found = pattern.search(self.text)
        if found is None:
            return False
        self.text = self.text[: found.start()].rstrip()
        self._starts = [start for start in self._starts if start < len(self.text)]
        self._words = self._words[: len(self._starts)]
        return True

    def skip(self, pattern: re.Pattern[str]) -> bool:
        """Take a match that holds nothing to keep."""
        return self.take(pattern) is not None

    def has(self, pattern: re.Pattern[str]) -> bool:
        return pattern.search(self.text) is not None

    def raw(self, start: int, end: int) -> str:
        """What people wrote in this stretch of the text; a single quoted passage without its quotes."""
        places = [place for place, _ in self._within(start, end)]
        if not places:
            return ""
        said = self._raw(places[0], places[-1] + 1)
        quoted = len(places) == 1 and self._words[places[0]].read == QUOTE and said[0] in _MARKS
        return said[1:-1] if quoted else said

    def left(self) -> list[str]:
        """The passages that no reader took, without those that are fillers only."""
        passages: list[list[int]] = [[]]
        for place, start in enumerate(self._starts):
            if place < self._carried or self.text.startswith(TAKEN, start):
                passages.append([])
            else:
                passages[-1].append(place)
        told = [p for p in passages if any(self._words[i].read.lower() not in FILLERS | {","} for i in p)]
        return [self._raw(p[0], p[-1] + 1).strip(" ,:;-") for p in told]

    def rest(self) -> str:
        """All that is left, as one passage, as a title or a comment is."""
        free = [p for p, s in enumerate(self._starts) if not self.text.startswith(TAKEN, s)]
        said = self.raw(self._starts[free[0]], self._starts[free[-1]] + 1) if free else ""
        self._blank(0, len(self.text))
        return said.strip(" ,.:;")

    def _taken(self, found: re.Match[str] | None) -> dict[str, str] | None:
        if found is None:
            return None
        given = {name: found.span(name) for name, value in found.groupdict().items() if value is not None}
        for place, word in self._within(*found.span()):
            raw = self._message[word.start : word.end]
            kept = any(start <= self._starts[place] < end for start, end in given.values())
            if not kept and word.read not in {QUOTE, raw.replace("’", "'")}:  # noqa: RUF001
                self.corrected[raw] = word.read
        self._blank(*found.span())
        return {name: self.raw(*span) for name, span in given.items()}

    def _blank(self, start: int, end: int) -> None:
        self.text = self.text[:start] + TAKEN * (end - start) + self.text[end:]

    def _within(self, start: int, end: int) -> Iterator[tuple[int, Word]]:
        for place, word in enumerate(self._words):
            if start <= self._starts[place] < end:
                yield place, word

    def _raw(self, first: int, after: int) -> str:
        if first >= after:
            return ""
        return self._message[self._words[first].start : self._words[after - 1].end]


def clauses(message: str) -> list[Clause]:
    """Cut at full stops, and at "and" or a comma before a verb or "#5 to Ben" (the verb carries over)."""
    words = _words(message)
    made: list[Clause] = []
    begun = head = 0  # where the clause begins; up to where its verb reaches
    carried: Sequence[Word] = ()

    def cut(end: int) -> None:
        own = list(words[begun:end])
        while own and own[0].read.lower() in {"and", "then", "also", "plus", "&", ",", "."}:
            own = own[1:]
        if own:
            made.append(Clause(message, [*carried, *own], len(carried)))

    place = 0
    while place < len(words):
        kind = _boundary(words, place, begun)
        if kind:
            cut(place)
            if kind == "carry" and not carried:
                head = next(i for i in range(begun, place) if _is_number(words[i]))
                carried = words[begun:head]
            elif kind != "carry":
                carried = ()
            begun = place + 1
        place += 1
    cut(len(words))
    return made


def _boundary(words: Sequence[Word], place: int, begun: int) -> str:
    """Whether a clause ends before this word: "" if not, "carry" where its verb holds for the next, too."""
    here = words[place].read.lower()
    if here in {".", "!", "?", ";", "then"} or here.startswith("\n"):
        return "end"
    if here not in {",", "and", "also", "plus", "&"}:
        return ""
    ahead = place + 1
    while ahead < len(words) and words[ahead].read.lower() in {"and", "then", "also", "please", ","}:
        ahead += 1
    if ahead == len(words):
        return ""
    if words[ahead].read.lower() in VERBS:
        return "end"
    said = [word.read.lower() for word in words[begun:place]]
    aimed = max((i for i, read in enumerate(said) if read in _AIMS), default=0)  # "#4 to Ana" was said before
    if not _is_number(words[ahead]) or not any(_is_number(word) for word in words[begun : begun + aimed]):
        return ""
    last = min(len(words), place + 40)  # numbers in one list, and the time this may take
    while ahead < last and (_is_number(words[ahead]) or words[ahead].read in {",", "and", "&"}):
        ahead += 1
    return "carry" if ahead < len(words) and words[ahead].read.lower() in _AIMS else ""


def _is_number(word: Word) -> bool:
    return word.read.removeprefix("#").isdigit()


def _words(message: str) -> list[Word]:
    words: list[Word] = []
    fresh = True  # where a verb may stand
    for found in _TOKEN.finditer(message):
        said = found[0]
        if len(said) > 1 and said[0] in _MARKS and said[-1] in _MARKS:
            read = QUOTE
        else:
            read = said.replace("’", "'")  # noqa: RUF001
            near = VERBS if fresh else NOUNS if any(w.read in VERBS for w in words[-4:]) else frozenset()
            read = _spelt(read, near)
        words.append(Word(read, *found.span()))
        fresh = read.lower() in {".", "!", "?", ";", "then"} or (fresh and read.lower() in LEADS)
        if read == ":" and any(w.read.lower() in _TALKED for w in words[-8:]):
            rest = message[found.end() :]
            if rest.strip() and rest.strip()[0] not in _MARKS:  # a comment's text may hold anything
                begin = found.end() + len(rest) - len(rest.lstrip())
                end = next((found.end() + each.start() for each in _THEN.finditer(rest)), len(message))
                text = Word(QUOTE, begin, begin + len(message[begin:end].rstrip()))
                return [
                    *words,
                    text,
                    *(replace(w, start=w.start + end, end=w.end + end) for w in _words(message[end:])),
                ]
    return words


_THEN = re.compile(r"(?<=[.!?;])\s+(?:and )?(?:then|also|afterwards),? (?=\w)", re.IGNORECASE)
_TALKED = frozenset({"comment", "note", "reply", "description", "body"})


def _spelt(word: str, known: frozenset[str]) -> str:
    """The known word that was meant; the word itself if none is near."""
    low = word.lower()
    if not known or len(word) < _SHORTEST or not word.isalpha() or low in VERBS | NOUNS | FILLERS:
        return word
    near = get_close_matches(low, [k for k in known if k[0] == low[0]], 1, 0.75)
    return near[0] if near else word
