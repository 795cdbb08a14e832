"""The sentences that the demo model understands: one table, whose rows name a call each. Pure.

A message is read from left to right. Each part must fit a row from its first word to its last, so nothing is
dropped. Where a part fits no row, nothing of the message is done: the answer quotes that part and offers
sentences to press. All repetitions are bounded, and so is a message, by `LONGEST`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from bot.agent.demo.words import short

LONGEST = 2000
"""The most characters of a message that is read."""

EXAMPLES = (
    "show open issues",
    "create an issue 'Login fails' with high priority and assign it to Sam",
    "close #2 and #4, and assign #3 to Ana",
    "show #3",
    "what is the most urgent issue?",
    "who has the most work?",
    "what is Ana working on?",
    "which issues have no owner?",
    "how many open bugs are there?",
    "what changed last?",
    "search for login",
    "set the priority of #3 to high",
    "make #3 urgent",
    "assign #4 to Ben",
    "rename #3 to 'Better title'",
    "label #3 bug",
    "remove the label bug from #2",
    "comment on #2: fixed in 1.4",
    "close #2",
    "reopen #6",
    "delete #5",
    "remind me tomorrow at 4 to call Sam",
    "every weekday at 9 list the overdue issues",
    "remember that releases are on Thursdays",
    "what is waiting for my approval?",
    "what did I decide?",
    "what can you do?",
)
"""One sentence of each kind; the nearest are offered where a message was not understood."""

ONLY = "I'm a scripted demo and know a few English sentences about the issue tracker."
_MARKS = "\"'“”‘’"  # noqa: RUF001 - the quotation marks that people type
_RATE = "low|normal|high|urgent"
_PRIORITY = rf"(?P<priority>{_RATE})"
_PRIO = "[- ]prio(?:rity)?"
_NOUN = "(?:issue|ticket|bug|task)"
_NO_NAME = "the|an?|it|them|this|that|you|done|closed|open|nobody|no|none|someone|somebody|anyone"
_SOMEONE = (
    rf"(?!(?:{_NO_NAME}|{_RATE})\b)(?:<@[^<>\s]{{1,60}}>"
    r"|@?[^\W\d][\w-]{0,40}(?:[.'](?!s\b)[\w-]{1,40}){0,3}(?: (?-i:[A-Z])[\w-]{0,40})?)"
)
_NAME = rf"(?P<assignee>{_SOMEONE})"
_LABEL = r"(?!(?:assign(?:ed)?|give|with|for|at)\b)[\"']?[^\W_][\w-]{0,39}[\"']?"
_LABELS = rf"{_LABEL}(?:(?:,? and |, ?){_LABEL}){{0,9}}"
_QUOTED = (
    r"\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|‘[^’\n]{1,300}’"  # noqa: RUF001
    r"|'(?:[^'\n]|'(?=\w)){1,300}'(?!\w)"
)
_TEXT = r"(?:[^\n.!?;]|[.!?;](?=\S)){1,300}"  # the rest of a sentence
_WORDS = rf"(?:{_QUOTED}|(?![{_MARKS}]){_TEXT}?)"
_NUMBERS = rf"(?:{_NOUN}s? |numbers? )?#?\d{{1,9}}(?:(?:,? and |, ?| & )(?:{_NOUN} )?#?\d{{1,9}}){{0,19}}"
_WHICH = (
    rf"(?:(?P<numbers>{_NUMBERS})|(?P<it>it|them|both|(?:the|this|that) {_NOUN}|(?:this|that)(?: one)?)"
    rf"|the (?P<described>[\w-]{{1,40}}(?: [\w-]{{1,40}}){{0,4}}) (?:{_NOUN}|one)"
    rf"|the {_NOUN} (?:about|called|named) (?P<called>{_QUOTED}|[\w-]{{1,40}}(?: [\w-]{{1,40}}){{0,4}}?)"
    rf"|(?P<quoted>{_QUOTED}))"
)
_END = (
    r"(?:,? (?:please|thanks|thank you|for me|now|right now|today|again)){0,2}"
    r"(?= ?(?:$|\n|[.!?;,]+(?:\s|$)| (?:and|then|also|plus)\b))"
)
_LEAD = re.compile(
    r"(?:[\s.,;!?]|(?:and|then|also|plus|so|now|just|ok|okay|please|@?nod|can you|could you|would you"
    r"|will you|let's|i want you to|i want to|i'd like you to|i'd like to|go ahead and"
    r"|(?:hi|hello|hey)(?: nod| there)?+)\b(?=[ ,!.]{1,3}\w))*",
    re.IGNORECASE,
)
_TRAILING = re.compile(r"(?:[\s.,;!?]{1,9}(?:\b(?:and|then|also|please))?){1,5}$", re.IGNORECASE)
_NEXT = re.compile(r"[.!?;,](?=\s)|\n| (?:and|then) ", re.IGNORECASE)
_ABOVE = re.compile(r"\A\[[^\n]*\]\n(?:>[^\n]*\n)+\n")  # Nod's quotation above a reply
_DETAIL = re.compile(
    rf",?(?: and)?(?: with| at| as)?(?: an?)? (?P<priority>{_RATE}){_PRIO}"
    rf"|,?(?: and)? (?:assign(?:ed)?|give)(?: it)? to {_NAME}"
    rf"|(?:,|(?<=[{_MARKS}])) for (?P<given>{_SOMEONE})"
    rf"|,?(?: and)?(?: with)?(?: the)? (?:labels?|labell?ed|tagged)(?: as)? (?P<labels>{_LABELS})",
    re.IGNORECASE,
)
"""The details that may follow the title of a new issue."""
_OPEN_OR_NOT = r"(?P<state>open|closed)"
_FILTER = re.compile(
    rf"(?:that are |that's |are |still ){{0,2}}{_OPEN_OR_NOT}\b|(?P<overdue>overdue)\b"
    rf"|(?:with |of )?{_PRIORITY}\b(?:{_PRIO})?"
    rf"|(?P<unowned>unassigned|(?:(?:have|has|with) no|without an?) (?:owner|assignee))"
    rf"|(?:assigned to|owned by|of|for) {_NAME}|(?P<mine>my)\b|(?:labell?ed|tagged) (?P<label>{_LABEL})",
    re.IGNORECASE,
)
"""The filters that may narrow a list."""
_NEW = (
    r"(?:(?:create|open|file|add|make|report|log|raise|write)(?: me| us)?(?: an?| another)?|i need an?|new)"
    rf"(?: new)?(?: {_PRIORITY}(?:{_PRIO})?)? (?P<noun>{_NOUN})(?: called| named| titled|:)?"
)
_NO_QUOTE = rf"(?!(?:(?:called|named|titled) )?[{_MARKS}])"
_VERB = "create|open|close|assign|give|set|make|label|rename|comment|delete|show|list|tell"
_BEFORE_A_VERB = rf"(?=$|\n|[.!?;]+(?:\s|$)|(?:,| and|, and|,? then) (?:{_VERB})\b)"
_SHOW = "(?:show|list|get|see|read|display|give|tell)(?: me| us)?(?: about)?"
_SEARCH = "(?:search|look|find)(?: for| up| in| through)?+(?: me)?+"
_ISSUES = rf"(?:(?:the|all|any|every|an?) )?(?:{_NOUN}s?|tracker)"
_ABOUT = (
    "(?:about|for|on|with|like|called|named|titled|saying|containing|mentioning|matching"
    "|(?:that|which) (?:say|contain|mention|match)s?)"
)
_NARROWED = (
    rf" (?:with (?:an? )?(?:{_RATE})|assigned|owned|labell?ed|tagged|sorted|ordered|created|by|since)\b"
)
_NO_ISSUES = r"(?![^\n]*\b(?:issue|ticket)s?\b)"

# a quoted part is searched alone, and a text with filters is no plain text
_PLAIN = rf"(?![{_MARKS}])(?:(?!{_NARROWED})(?:[^\n.!?;{_MARKS}]|(?<=\w)'(?=\w)|[.!?;](?=\S))){{1,300}}?"
_CLOCK = r"at (?P<clock>[012]?\d(?::[0-5]\d)?)"
_WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_DAY = f"(?P<day>today|tomorrow|{_WEEKDAY})"
_OPEN = {"state": "open"}
_SETUP = "Set `OPENAI_API_KEY` or `OPENAI_BASE_URL` to use a real model."
_ASKS = "I look things up right away. Every change asks first, with a card you approve or decline."
_HOW = "(?:how are (?:you|things)|how(?:'s| is) it going)"
_ABLE = "(?:help|what can you (?:do|understand|look up)(?: for me)?|how (?:does this|do you) work)"
_BEFORE = "what do you ask (?:about )?before (?:doing|you do)(?: it| anything)?"
_SAME = {"given": "assignee", "unowned": "assignee", "mine": "assignee", "overdue": "state"}
_MEANT = {
    "unowned": "",
    "overdue": "open",
}  # the tracker knows no dates, so overdue issues are the open issues


@dataclass(frozen=True, slots=True)
class Wish:
    """A call of a tool that a person asks for."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    described: str = ""  # a description of the issue whose number is still to be found
    add: tuple[str, ...] = ()  # labels to add to the issue's own labels
    drop: tuple[str, ...] = ()
    view: str = ""  # the part of a read's result to tell
    said: str = field(default="", compare=False)  # the part of the message that asks for it

    @property
    def about(self) -> tuple[int | None, str]:
        """The issue of the wish: its number, or a description."""
        return self.arguments.get("number"), self.described


@dataclass(frozen=True, slots=True)
class Talk:
    """An answer without a call, and the sentences to offer with it."""

    text: str
    chips: tuple[str, ...] = ()


def _bare(pattern: re.Pattern[str]) -> str:
    """Return the pattern without group names, so that another pattern can repeat it."""
    return re.sub(r"\(\?P<\w+>", "(?:", pattern.pattern)


_FILTERS = rf"(?P<before>(?:{_bare(_FILTER)}|(?:all|the|every)\b| ){{0,12}})"
_FILTERS_AFTER = rf"(?P<after>(?: (?:and |that |which )?(?:{_bare(_FILTER)})){{0,5}})"
_LISTED = rf"{_FILTERS}(?:(?P<bugs>bugs?)|(?:issue|ticket|task)s?|everything){_FILTERS_AFTER}"


# --- the table


@dataclass(frozen=True, slots=True)
class _Row:
    """A sentence and its call. The arguments come from the sentence's groups and from ``fixed``."""

    pattern: str
    tool: str = "update_issue"
    view: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a sentence when it is first needed: the demo starts quickly."""
    return re.compile(f"(?:{pattern}){_END}", re.IGNORECASE)


_DETAILS = rf"(?P<details>(?:{_bare(_DETAIL)}){{0,5}})"
_TABLE: tuple[_Row, ...] = (
    _Row(rf"{_NEW} (?P<title>{_QUOTED}){_DETAILS}", "create_issue"),
    _Row(
        rf"{_NEW}(?: about| for| that| saying)? {_NO_QUOTE}(?P<title>{_TEXT}?){_DETAILS}{_BEFORE_A_VERB}",
        "create_issue",
    ),
    _Row(rf"(?:close|resolve|finish) {_WHICH}", "close_issue"),
    _Row(rf"{_WHICH} is (?:done|fixed|resolved)", "close_issue"),
    _Row(rf"re-?open {_WHICH}", fixed=_OPEN),
    _Row(rf"(?:delete|remove|erase) {_WHICH}", "delete_issue"),
    _Row(rf"(?:set|change|raise|lower) (?:the )?prio(?:rity)? (?:of|for) {_WHICH} to {_PRIORITY}"),
    _Row(rf"(?:set|make|give|mark|bump|lower|move) {_WHICH}(?: to| as)?(?: an?)? {_PRIORITY}(?:{_PRIO})?"),
    _Row(rf"(?:(?:re-?)?assign|give|hand|move|pass) {_WHICH} (?:over )?to {_NAME}"),
    _Row(rf"(?:label|tag) {_WHICH} (?:as |with )?(?P<labels>{_LABELS})"),
    _Row(rf"(?:remove|drop) (?:the )?labels? (?P<dropped>{_LABELS}) from {_WHICH}"),
    _Row(rf"(?:rename|change the title of) {_WHICH} to (?P<title>{_WORDS})"),
    _Row(
        rf"(?:add a )?comment (?:on|to) {_WHICH}(?::|,? saying|,? that|(?= [{_MARKS}]))"
        rf" ?(?P<body>(?s:.{{1,{LONGEST}}}))",
        "comment_issue",
    ),
    _Row(rf"remind me(?: on)?(?: {_DAY})? {_CLOCK} to (?P<reminder>{_TEXT})", "schedule_task"),
    _Row(
        rf"every (?P<every>day|weekday|{_WEEKDAY}|week|month) {_CLOCK},? (?P<task>{_TEXT})", "schedule_task"
    ),
    _Row(rf"remember(?: that|:)? (?P<fact>{_TEXT})", "remember", fixed={"about": "team"}),
    _Row("(?:what(?:'s| is| are)|show) the most urgent(?: issues?)?", "list_issues", "top", _OPEN),
    _Row("what(?:'s| is| has)? (?:changed|new)(?: last| lately| recently)?", "list_issues", "recent"),
    _Row(rf"what(?:'s| is) {_NAME} (?:working on|doing)", "list_issues"),
    _Row(rf"how many {_NOUN}s (?:does|has) {_NAME}(?: have| got)?", "list_issues", "count"),
    _Row(rf"how many {_LISTED}(?: (?:are there|do we have|are left))?", "list_issues", "count"),
    _Row(rf"(?:{_SHOW}|what|which|what are|which are|are there(?: any)?) {_LISTED}", "list_issues"),
    _Row(rf"(?:{_SHOW}|what(?:'s| is)|summari[sz]e|is) {_WHICH}(?: about| open| closed)?", "get_issue"),
    _Row(rf"who (?:has|owns|is working on) {_WHICH}", "get_issue"),
    _Row("(?:who has|who's got|who is) (?:the )?(?:most|least|busiest)(?: work| issues| to do)?", "workload"),
    _Row(rf"{_SEARCH}(?: {_ISSUES})?(?: {_ABOUT})? (?P<query>{_QUOTED})(?: in {_ISSUES})?", "search_issues"),
    _Row(rf"{_SEARCH} {_ISSUES} {_ABOUT} (?P<query>{_PLAIN})", "search_issues"),
    _Row(rf"{_SEARCH} (?![^\n]* for ){_LISTED}", "list_issues"),
    _Row(rf"{_SEARCH} {_NO_ISSUES}(?P<query>{_PLAIN})(?: in the tracker)?", "search_issues"),
    _Row(
        "(?:what|which proposals|which cards|anything)(?:'s| is| are)? (?:still )?(?:waiting|pending)"
        "(?: for (?:me|my approval|my decision|a decision|approval))?",
        "proposals_waiting",
    ),
    _Row("what did i (?:decide|approve|decline)", "my_decisions"),
)  # fmt: skip

HELP = Talk(f"{ONLY} {_ASKS} {_SETUP}", EXAMPLES[:3])
_TALK: tuple[tuple[str, Talk], ...] = (
    (
        rf"(?:/start|(?:hi|hello|hey|good (?:morning|afternoon|evening))(?: nod| there| all)?|{_HOW})",
        Talk("Hello. I'm a scripted demo: tell me what to do with the issues.", EXAMPLES[:3]),
    ),
    (
        "(?:many )?(?:thanks|thank you|thx|great|cool|ok|okay)(?: a lot| so much| nod)?|that's (?:all|great)",
        Talk("You're welcome."),
    ),
    (rf"{_ABLE}(?:,? and {_BEFORE})?", HELP),
    (_BEFORE, Talk(f"{_ASKS} Nothing runs on a chat message alone.", ("close #2",))),
    (
        "(?:who|what) are you|are you (?:a (?:bot|robot|human|person)|an ai)|what is nod",
        Talk(f"I'm Nod, in a scripted demo: no language model is behind me. {_SETUP}", EXAMPLES[:3]),
    ),
    (
        r"(?:i )?(?:approve|decline|reject|confirm)(?: it| that| this| #?\d{1,9})?|yes|no|do it",
        Talk("Words decide nothing here: only a press on the card does.", (EXAMPLES[-3],)),
    ),
    (
        "never ?mind|forget it|stop|cancel(?: it| that)?",
        Talk("All right. I've done nothing more. An open card stays until you decline it."),
    ),
)


# --- reading


def read_message(message: str, speaker: str = "", it: int | None = None) -> list[Wish | Talk]:
    """Parse a message into wishes, part by part. ``it`` is the number of the issue named last."""
    if len(message) > LONGEST:
        return [Talk(f"That is too long for me: I read at most {LONGEST:,} characters. Please split it.")]
    text = re.sub(r"[^\S\n]+", " ", _ABOVE.sub("", message))
    text = re.sub(r"(?<=\w)’(?=\w)", "'", text).strip()  # noqa: RUF001
    reading = Reading(speaker, it)
    place = begin = _after_lead(text, 0)
    while place < len(text):
        end = reading.part(text, place)
        if not end:
            return [_not_understood(text[place:], text[begin:place])]
        place = _after_lead(text, end)
    return reading.wishes


def _after_lead(text: str, place: int) -> int:
    """Return the index of the next part, after *and*, *please*, *could you* and the like."""
    found = _LEAD.match(text, place)
    return found.end() if found else place


def _not_understood(lost: str, before: str) -> Talk:
    """Quote the first part that fits no row; offer the part before it, and the nearest sentences."""
    part = _NEXT.split(lost, maxsplit=1)[0].strip(" .,;!?")
    said = part[:80].lower()
    words = set(said.split())

    like = [(len(words & set(e.split())), SequenceMatcher(None, said, e).ratio(), e) for e in EXAMPLES]
    near = [example for _, _, example in sorted(like, reverse=True)]
    head = f"I didn't understand “{short(part)}”"
    if before:
        understood = re.sub(r"\s*\n\s*", "; ", _TRAILING.sub("", before))
        said = f"{head}, so I've done nothing yet. I can do what comes before it:"
        return Talk(said, (understood, *near[:2]))
    if len(lost.rstrip(" .,;!?")) > len(part):
        more = ", so I've done nothing yet"
    else:
        more = ""
    return Talk(f"{head}{more}. {ONLY} Try one:", tuple(near[:3]))


class Reading:
    """The wishes of a message so far. A pronoun stands for the issue of the part before."""

    def __init__(self, speaker: str, it: int | None) -> None:
        self.wishes: list[Wish | Talk] = []
        self._speaker = speaker
        self._latest: list[Wish] = [Wish("", {"number": it})] if it is not None else []

    def part(self, text: str, place: int) -> int:
        """Read the part that begins at ``place``. Return its end, or 0 if no row fits the part."""
        for pattern, talk in _TALK:
            found = _compile(pattern).match(text, place)
            if found:
                self.wishes.append(talk)
                return found.end()
        for row in _TABLE:
            found = _compile(row.pattern).match(text, place)
            if found and (given := _groups(found)) is not None:
                self._take(row, given, found[0])
                return found.end()
        return 0

    def _take(self, row: _Row, given: Mapping[str, str], said: str) -> None:
        arguments = {**row.fixed, **_arguments(given)}
        if str(arguments.get("assignee")).lower() in {"me", "myself", "my"}:
            if not self._speaker:
                text = f"Who are you in the tracker? I don't know that, so I can't do “{short(said)}”."
                self.wishes.append(Talk(f"{text} Please use a name.", ("what is Ana working on?",)))
                return
            arguments["assignee"] = self._speaker
        labels, dropped = _labels(given.get("labels", "")), _labels(given.get("dropped", ""))
        wish = Wish(row.tool, arguments, "", labels, dropped, row.view, said)
        if row.tool == "create_issue":
            tags = {*labels, *(["bug"] if given["noun"].lower() == "bug" else [])}
            self._latest = [
                replace(wish, arguments={**arguments, **({"labels": sorted(tags)} if tags else {})}, add=())
            ]
            self.wishes += self._latest
        elif "numbers" in given:
            numbers = dict.fromkeys(map(int, re.findall(r"\d+", given["numbers"])))
            self._latest = [self._place(wish, number, "") for number in numbers]
        elif words := given.get("described") or given.get("called") or given.get("quoted"):
            self._latest = [self._place(wish, None, words.strip(_MARKS))]
        elif "it" not in given:
            self.wishes.append(wish)
        elif not self._latest:
            text = f"Which issue do you mean by “{short(said)}”? Please give me its number."
            self.wishes.append(Talk(text, ("show open issues",)))
        elif self._latest[0].tool == "create_issue":
            self._change_new(wish)
        else:
            self._latest = [self._place(wish, *each.about) for each in self._latest]

    def _change_new(self, wish: Wish) -> None:
        """Add a change of an issue that does not exist yet to the call that creates the issue."""
        new = self._latest[0]
        if wish.tool != "update_issue" or wish.drop or "state" in wish.arguments:
            text = f"I can do more with a new issue once it exists, so I left out “{short(wish.said)}”."
            self.wishes.append(Talk(text))
            return
        labels = sorted({*new.arguments.get("labels", ()), *wish.add})
        changed = {**new.arguments, **wish.arguments, **({"labels": labels} if labels else {})}
        self._latest = [self._swap(new, replace(new, arguments=changed))]

    def _place(self, wish: Wish, number: int | None, words: str) -> Wish:
        """Add a wish about an issue; changes of one issue become one, so that one card shows them all."""
        numbered = {} if number is None else {"number": number}
        wish = replace(wish, described=words, arguments={**numbered, **wish.arguments})
        for one in self.wishes:
            if one == wish:
                return wish
            if isinstance(one, Wish) and one.tool == wish.tool == "update_issue" and one.about == wish.about:
                if one.arguments.keys() & wish.arguments.keys() - {"number"}:
                    continue
                both, said = {**one.arguments, **wish.arguments}, f"{one.said} and {wish.said}"
                add, drop = one.add + wish.add, one.drop + wish.drop
                return self._swap(one, replace(one, arguments=both, add=add, drop=drop, said=said))
        self.wishes.append(wish)
        return wish

    def _swap(self, old: Wish, new: Wish) -> Wish:
        self.wishes[self.wishes.index(old)] = new
        return new


def _groups(found: re.Match[str]) -> dict[str, str] | None:
    """Return the arguments that a sentence gives, by name.

    Details and filters are read out of it too. None where an argument is given twice.
    """
    given = {name: value for name, value in found.groupdict().items() if value}
    if given.pop("bugs", ""):
        given["label"] = "bug"
    for part, pattern in (("details", _DETAIL), ("before", _FILTER), ("after", _FILTER)):
        if not given.pop(part, ""):
            continue
        for each in pattern.finditer(found.string, *found.span(part)):
            for group, value in each.groupdict().items():
                name = _SAME.get(group, group)
                if value and name in given:
                    return None
                if value:
                    given[name] = _MEANT.get(group, value)
    return given


def _arguments(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of a tool, taken from the groups."""
    arguments: dict[str, Any] = {}
    for name, said in given.items():
        match name:
            case "title" | "body" | "query":
                quoted, text = said.strip()[0] in _MARKS, said.strip()
                if quoted:
                    text = text.strip(f"{_MARKS} ")
                arguments[name] = text if quoted or name != "title" else text[:1].upper() + text[1:]
            case "task" | "every" | "fact":
                arguments[name] = said.strip()
            case "reminder":
                arguments["task"] = f"remind me to {said.strip()}"
            case "clock":
                hour, _, minute = said.partition(":")
                later = int(hour) in range(1, 8)  # in the afternoon
                clock = f"{int(hour) % 12 + 12 if later else int(hour):02}:{minute or '00'}"
                arguments["at"] = f"{given.get('day', '')} {clock}".strip().lower()
            case "priority" | "state" | "label":
                arguments[name] = said.lower().strip(_MARKS)
            case "assignee":
                arguments[name] = said.removeprefix("@")
    return arguments


def _labels(said: str) -> tuple[str, ...]:
    parts = re.split(r",? and |, ?", said)
    return tuple(dict.fromkeys(part for each in parts if (part := each.strip(f" {_MARKS}").lower())))
