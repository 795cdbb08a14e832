"""The sentences that the demo model understands, as regular expressions in two tables. Pure.

`read_message` reads a message from left to right, part by part: "close #2 and assign #3 to Ana" has two. A
part that fits a row of `_TABLE` becomes a `Wish`, the call of a tool. A part that fits a row of `_TALK`
becomes a `Talk`, a text. A row must fit a part from its first word to its last, so no word is ignored. If a
part fits no row, nothing of the message is done: the answer quotes that part and offers sentences to press.

The named groups of a row's pattern give the arguments of its call. The patterns are made of smaller ones,
such as `_WHICH` for the issues that a part is about. All repetitions are bounded, and so is a message, by
`MAX_MESSAGE_CHARS`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from bot.agent.demo.texts import short

MAX_MESSAGE_CHARS = 2000
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
"""One sentence of each kind. The nearest are offered if a message was not understood."""

_ONLY_DEMO_TEXT = "I'm a scripted demo and know a few English sentences about the issue tracker."
_QUOTES = "\"'“”‘’"  # noqa: RUF001 - the quotation marks that people type
_PRIORITIES = "low|normal|high|urgent"
_PRIORITY = rf"(?P<priority>{_PRIORITIES})"
_PRIO = "[- ]prio(?:rity)?"  # as in "high priority" and "high-prio"
_NOUN = "(?:issue|ticket|bug|task)"
_NOT_NAMES = "the|an?|it|them|this|that|you|done|closed|open|nobody|no|none|someone|somebody|anyone"

# a person, such as "Ana", "@ben", "Ana Silva" or Slack's "<@U1>"; never one of `_NOT_NAMES`, nor a priority
_SOMEONE = (
    rf"(?!(?:{_NOT_NAMES}|{_PRIORITIES})\b)(?:<@[^<>\s]{{1,60}}>"
    r"|@?[^\W\d][\w-]{0,40}(?:[.'](?!s\b)[\w-]{1,40}){0,3}(?: (?-i:[A-Z])[\w-]{0,40})?)"
)
_NAME = rf"(?P<assignee>{_SOMEONE})"

# labels, such as "bug", "bug and login"
_LABEL = r"(?!(?:assign(?:ed)?|give|with|for|at)\b)[\"']?[^\W_][\w-]{0,39}[\"']?"
_LABELS = rf"{_LABEL}(?:(?:,? and |, ?){_LABEL}){{0,9}}"

# texts: in quotation marks, to the end of the sentence, or either of the two as a title
_QUOTED = (
    r"\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|‘[^’\n]{1,300}’"  # noqa: RUF001
    r"|'(?:[^'\n]|'(?=\w)){1,300}'(?!\w)"
)
_TEXT = r"(?:[^\n.!?;]|[.!?;](?=\S)){1,300}"
_TITLE = rf"(?:{_QUOTED}|(?![{_QUOTES}]){_TEXT}?)"

# numbers of issues, such as "#2", "issues 2, 3 and 4"
_NUMBERS = rf"(?:{_NOUN}s? |numbers? )?#?\d{{1,9}}(?:(?:,? and |, ?| & )(?:{_NOUN} )?#?\d{{1,9}}){{0,19}}"

# the issues of a part: "#2 and #4", "it", "the login issue", "the issue about login", "'Login fails'"
_WHICH = (
    rf"(?:(?P<numbers>{_NUMBERS})"
    rf"|(?P<pronoun>it|them|both|(?:the|this|that) {_NOUN}|(?:this|that)(?: one)?)"
    rf"|the (?P<described>[\w-]{{1,40}}(?: [\w-]{{1,40}}){{0,4}}) (?:{_NOUN}|one)"
    rf"|the {_NOUN} (?:about|called|named) (?P<called>{_QUOTED}|[\w-]{{1,40}}(?: [\w-]{{1,40}}){{0,4}}?)"
    rf"|(?P<quoted>{_QUOTED}))"
)

# the end of a part: perhaps "please" or "now", before a mark, "and" or the end of the message
_END = (
    r"(?:,? (?:please|thanks|thank you|for me|now|right now|today|again)){0,2}"
    r"(?= ?(?:$|\n|[.!?;,]+(?:\s|$)| (?:and|then|also|plus)\b))"
)

# words before a part that say nothing about it, such as "and then", "could you please" or a greeting
_FILLER_BEFORE_PART = re.compile(
    r"(?:[\s.,;!?]|(?:and|then|also|plus|so|now|just|ok|okay|please|@?nod|can you|could you|would you"
    r"|will you|let's|i want you to|i want to|i'd like you to|i'd like to|go ahead and"
    r"|(?:hi|hello|hey)(?: nod| there)?+)\b(?=[ ,!.]{1,3}\w))*",
    re.IGNORECASE,
)
_TRAILING = re.compile(r"(?:[\s.,;!?]{1,9}(?:\b(?:and|then|also|please))?){1,5}$", re.IGNORECASE)
_PART_BREAK = re.compile(r"[.!?;,](?=\s)|\n| (?:and|then) ", re.IGNORECASE)  # where a next part may begin
_QUOTATION_ABOVE = re.compile(r"\A\[[^\n]*\]\n(?:>[^\n]*\n)+\n")  # Nod's quotation above a reply
_DETAIL = re.compile(
    rf",?(?: and)?(?: with| at| as)?(?: an?)? (?P<priority>{_PRIORITIES}){_PRIO}"
    rf"|,?(?: and)? (?:assign(?:ed)?|give)(?: it)? to {_NAME}"
    rf"|(?:,|(?<=[{_QUOTES}])) for (?P<recipient>{_SOMEONE})"
    rf"|,?(?: and)?(?: with)?(?: the)? (?:labels?|labell?ed|tagged)(?: as)? (?P<labels>{_LABELS})",
    re.IGNORECASE,
)
"""A detail after the title of a new issue: ", high priority", " and assign it to Sam", " labelled bug"."""
_FILTER = re.compile(
    r"(?:that are |that's |are |still ){0,2}(?P<state>open|closed)\b|(?P<overdue>overdue)\b"
    rf"|(?:with |of )?{_PRIORITY}\b(?:{_PRIO})?"
    rf"|(?P<unowned>unassigned|(?:(?:have|has|with) no|without an?) (?:owner|assignee))"
    rf"|(?:assigned to|owned by|of|for) {_NAME}|(?P<mine>my)\b|(?:labell?ed|tagged) (?P<label>{_LABEL})",
    re.IGNORECASE,
)
"""A filter of a list, such as "open", "high priority", "assigned to Ana", "my", "without an owner"."""

# a new issue before its title, such as "create a high-priority issue called"
_NEW = (
    r"(?:(?:create|open|file|add|make|report|log|raise|write)(?: me| us)?(?: an?| another)?|i need an?|new)"
    rf"(?: new)?(?: {_PRIORITY}(?:{_PRIO})?)? (?P<noun>{_NOUN})(?: called| named| titled|:)?"
)
_NO_QUOTE = rf"(?!(?:(?:called|named|titled) )?[{_QUOTES}])"  # the title is not quoted
_VERB = "create|open|close|assign|give|set|make|label|rename|comment|delete|show|list|tell"
_END_OF_TITLE = rf"(?=$|\n|[.!?;]+(?:\s|$)|(?:,| and|, and|,? then) (?:{_VERB})\b)"
"""The end of a title that is not quoted: the message or its sentence ends, or a verb begins the next part."""

# the words of questions: "show me", "search for", "any issues", "mentioning"
_SHOW = "(?:show|list|get|see|read|display|give|tell)(?: me| us)?(?: about)?"
_SEARCH = "(?:search|look|find)(?: for| up| in| through)?+(?: me)?+"
_ISSUES = rf"(?:(?:the|all|any|every|an?) )?(?:{_NOUN}s?|tracker)"
_ABOUT = (
    "(?:about|for|on|with|like|called|named|titled|saying|containing|mentioning|matching"
    "|(?:that|which) (?:say|contain|mention|match)s?)"
)

# the beginning of a filter after words to search for, such as " assigned" in "login assigned to Ana"
_FILTER_BEGINNING = (
    rf" (?:with (?:an? )?(?:{_PRIORITIES})|assigned|owned|labell?ed|tagged|sorted|ordered|created|by|since)\b"
)

# words to search for, without quotation marks; no filter may follow them
_UNQUOTED = (
    rf"(?![{_QUOTES}])(?:(?!{_FILTER_BEGINNING})(?:[^\n.!?;{_QUOTES}]|(?<=\w)'(?=\w)|[.!?;](?=\S))){{1,300}}?"
)
_NO_ISSUES = r"(?![^\n]*\b(?:issue|ticket)s?\b)"  # neither "issue" nor "ticket" follows

# a time, such as "tomorrow at 4"
_AFTERNOON_HOURS = frozenset("1234567")  # as they are written: with a zero, as in "07", they mean the morning
_CLOCK = r"at (?P<clock>(?:2[0-3]|[01]?\d)(?::[0-5]\d)?)"
_WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_DAY = f"(?P<day>today|tomorrow|{_WEEKDAY})"
_OPEN = {"state": "open"}  # the argument of calls that are about open issues, or open one again

# about the demo itself
_SETUP = "Set `OPENAI_API_KEY` or `OPENAI_BASE_URL` to use a real model."
_ASKS = "I look things up right away. Every change asks first, with a card you approve or decline."
_GREETING = "(?:how are (?:you|things)|how(?:'s| is) it going)"
_WHAT_CAN_YOU_DO = "(?:help|what can you (?:do|understand|look up)(?: for me)?|how (?:does this|do you) work)"
_WHAT_DO_YOU_ASK = "what do you ask (?:about )?before (?:doing|you do)(?: it| anything)?"
_ARGUMENT_OF_GROUP = {"recipient": "assignee", "unowned": "assignee", "mine": "assignee", "overdue": "state"}
"""The argument that a named group of a pattern gives, if its name is not the group's."""
_VALUE_OF_GROUP = {"unowned": "", "overdue": "open"}
"""The value that a group stands for, if it is not the matched text.

The tracker knows no dates, so "overdue" issues are the open ones.
"""


@dataclass(frozen=True, slots=True)
class Wish:
    """A call of a tool that a person asks for."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""  # a description of the issue whose number is still to be found
    labels_to_add: tuple[str, ...] = ()  # labels to add to the issue's own labels
    labels_to_remove: tuple[str, ...] = ()  # labels to remove from the issue's own labels
    view: str = ""  # the part of a read's result to tell: see `describe_read`
    source_text: str = field(default="", compare=False)  # the part of the message that asks for the call

    @property
    def issue_key(self) -> tuple[int | None, str]:
        """The number and the description of the issue. At most one of them is set."""
        return self.arguments.get("number"), self.description


@dataclass(frozen=True, slots=True)
class Talk:
    """An answer without a call: a fixed text, and the sentences to offer below it."""

    text: str
    suggestions: tuple[str, ...] = ()


def _without_names(pattern: re.Pattern[str]) -> str:
    """Return the text of a pattern without the names of its groups, so that other patterns can contain it."""
    return re.sub(r"\(\?P<\w+>", "(?:", pattern.pattern)


_FILTERS = rf"(?P<before>(?:{_without_names(_FILTER)}|(?:all|the|every)\b| ){{0,12}})"
_FILTERS_AFTER = rf"(?P<after>(?: (?:and |that |which )?(?:{_without_names(_FILTER)})){{0,5}})"
_LISTED_ISSUES = rf"{_FILTERS}(?:(?P<bugs>bugs?)|(?:issue|ticket|task)s?|everything){_FILTERS_AFTER}"
"""The issues to list, with filters around the noun: "my open bugs", "issues assigned to Ana"."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A sentence and its call. The arguments come from the groups of the pattern and from ``fixed``."""

    pattern: str
    tool: str = "update_issue"
    view: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    """Compile the pattern of a row when it is first needed, so that the demo starts quickly."""
    return re.compile(f"(?:{pattern}){_END}", re.IGNORECASE)


_DETAILS = rf"(?P<details>(?:{_without_names(_DETAIL)}){{0,5}})"  # all details after a title

# the first row that fits counts
_TABLE: tuple[_Row, ...] = (
    _Row(rf"{_NEW} (?P<title>{_QUOTED}){_DETAILS}", "create_issue"),
    _Row(
        rf"{_NEW}(?: about| for| that| saying)? {_NO_QUOTE}(?P<title>{_TEXT}?){_DETAILS}{_END_OF_TITLE}",
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
    _Row(rf"(?:rename|change the title of) {_WHICH} to (?P<title>{_TITLE})"),
    _Row(
        rf"(?:add a )?comment (?:on|to) {_WHICH}(?::|,? saying|,? that|(?= [{_QUOTES}]))"
        rf" ?(?P<body>(?s:.{{1,{MAX_MESSAGE_CHARS}}}))",
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
    _Row(rf"how many {_LISTED_ISSUES}(?: (?:are there|do we have|are left))?", "list_issues", "count"),
    _Row(rf"(?:{_SHOW}|what|which|what are|which are|are there(?: any)?) {_LISTED_ISSUES}", "list_issues"),
    _Row(rf"(?:{_SHOW}|what(?:'s| is)|summari[sz]e|is) {_WHICH}(?: about| open| closed)?", "get_issue"),
    _Row(rf"who (?:has|owns|is working on) {_WHICH}", "get_issue"),
    _Row("(?:who has|who's got|who is) (?:the )?(?:most|least|busiest)(?: work| issues| to do)?", "workload"),
    _Row(rf"{_SEARCH}(?: {_ISSUES})?(?: {_ABOUT})? (?P<query>{_QUOTED})(?: in {_ISSUES})?", "search_issues"),
    _Row(rf"{_SEARCH} {_ISSUES} {_ABOUT} (?P<query>{_UNQUOTED})", "search_issues"),
    _Row(rf"{_SEARCH} (?![^\n]* for ){_LISTED_ISSUES}", "list_issues"),
    _Row(rf"{_SEARCH} {_NO_ISSUES}(?P<query>{_UNQUOTED})(?: in the tracker)?", "search_issues"),
    _Row(
        "(?:what|which proposals|which cards|anything)(?:'s| is| are)? (?:still )?(?:waiting|pending)"
        "(?: for (?:me|my approval|my decision|a decision|approval))?",
        "proposals_waiting",
    ),
    _Row("what did i (?:decide|approve|decline)", "my_decisions"),
)  # fmt: skip

HELP = Talk(f"{_ONLY_DEMO_TEXT} {_ASKS} {_SETUP}", EXAMPLES[:3])
_TALK: tuple[tuple[str, Talk], ...] = (
    (
        rf"(?:/start|(?:hi|hello|hey|good (?:morning|afternoon|evening))(?: nod| there| all)?|{_GREETING})",
        Talk("Hello. I'm a scripted demo: tell me what to do with the issues.", EXAMPLES[:3]),
    ),
    (
        "(?:many )?(?:thanks|thank you|thx|great|cool|ok|okay)(?: a lot| so much| nod)?|that's (?:all|great)",
        Talk("You're welcome."),
    ),
    (rf"{_WHAT_CAN_YOU_DO}(?:,? and {_WHAT_DO_YOU_ASK})?", HELP),
    (_WHAT_DO_YOU_ASK, Talk(f"{_ASKS} Nothing runs on a chat message alone.", ("close #2",))),
    (
        "(?:who|what) are you|are you (?:a (?:bot|robot|human|person)|an ai)|what is nod",
        Talk(f"I'm Nod, in a scripted demo: no language model is behind me. {_SETUP}", EXAMPLES[:3]),
    ),
    (
        r"(?:i )?(?:approve|decline|reject|confirm)(?: it| that| this| #?\d{1,9})?|yes|no|do it",
        Talk(
            "Words decide nothing here: only a press on the card does.", ("what is waiting for my approval?",)
        ),
    ),
    (
        "never ?mind|forget it|stop|cancel(?: it| that)?",
        Talk("All right. I've done nothing more. An open card stays until you decline it."),
    ),
)


def read_message(message: str, speaker: str = "", last_issue: int | None = None) -> list[Wish | Talk]:
    """Return the calls that a message asks for, and the answers to its other parts, in its order.

    ``speaker``: the name for which "me" and "my" stand. ``last_issue``: the number for which "it" stands at
    the beginning of the message.
    """
    if len(message) > MAX_MESSAGE_CHARS:
        return [
            Talk(
                f"That is too long for me: I read at most {MAX_MESSAGE_CHARS:,} characters. Please split it."
            )
        ]
    text = re.sub(r"[^\S\n]+", " ", _QUOTATION_ABOVE.sub("", message))
    text = re.sub(r"(?<=\w)’(?=\w)", "'", text).strip()  # noqa: RUF001
    reader = _Reader(speaker, last_issue)
    begin = _skip_filler(text, 0)
    position = begin
    while position < len(text):
        end = reader.read_part(text, position)
        if end is None:
            return [_explain_misunderstanding(text[position:], text[begin:position])]
        position = _skip_filler(text, end)
    return reader.items


def _skip_filler(text: str, position: int) -> int:
    """Return the position of the next part, after "and", "please", "could you" and the like."""
    filler = _FILLER_BEFORE_PART.match(text, position)
    return filler.end() if filler else position


def _explain_misunderstanding(rest: str, before: str) -> Talk:
    """Return a text that quotes the part that was not understood, with sentences to press.

    ``rest``: the message from this part to its end. ``before``: the message before the part; it is one of the
    sentences to press. The others are the examples that share the most words with the part.
    """
    part = _PART_BREAK.split(rest, maxsplit=1)[0].strip(" .,;!?")
    beginning = part[:80].lower()
    words = set(beginning.split())

    def rate(example: str) -> tuple[int, float, str]:
        shared_words = words & set(example.split())
        return len(shared_words), SequenceMatcher(None, beginning, example).ratio(), example

    nearest = sorted(EXAMPLES, key=rate, reverse=True)
    head = f"I didn't understand “{short(part)}”"
    if before:
        understood = re.sub(r"\s*\n\s*", "; ", _TRAILING.sub("", before))
        text = f"{head}, so I've done nothing yet. I can do what comes before it:"
        return Talk(text, (understood, *nearest[:2]))
    has_other_parts = len(rest.rstrip(" .,;!?")) > len(part)
    if has_other_parts:
        head += ", so I've done nothing yet"
    return Talk(f"{head}. {_ONLY_DEMO_TEXT} Try one:", tuple(nearest[:3]))


class _Reader:
    """The reader of one message, which collects what the message asks for.

    Changes of one issue are merged into one call, so that one card shows them all. A pronoun stands for the
    issues of the part before.
    """

    def __init__(self, speaker: str, last_issue: int | None) -> None:
        self.items: list[Wish | Talk] = []  # what the message asks for, in its order
        self._speaker = speaker
        self._antecedents: list[Wish] = []  # a pronoun stands for the issues of these
        if last_issue is not None:  # the issue of an earlier message; no tool is called for it
            self._antecedents.append(Wish(tool="", arguments={"number": last_issue}))

    def read_part(self, text: str, position: int) -> int | None:
        """Read the part that begins at a position. Return its end, or None if no row fits the part."""
        for pattern, talk in _TALK:
            match = _compile(pattern).match(text, position)
            if match:
                self.items.append(talk)
                return match.end()
        for row in _TABLE:
            match = _compile(row.pattern).match(text, position)
            if match is None:
                continue
            texts = _read_groups(match)
            if texts is not None:
                self._take_row(row, texts, match[0])
                return match.end()
        return None

    def _take_row(self, row: _Row, texts: Mapping[str, str], part: str) -> None:
        """Add the call of a row that fits ``part``. ``texts``: the result of `_read_groups`."""
        arguments = {**row.fixed, **_make_arguments(texts)}
        if str(arguments.get("assignee")).lower() in {"me", "myself", "my"}:
            if not self._speaker:
                text = f"Who are you in the tracker? I don't know that, so I can't do “{short(part)}”."
                self.items.append(Talk(f"{text} Please use a name.", ("what is Ana working on?",)))
                return
            arguments["assignee"] = self._speaker
        wish = Wish(
            tool=row.tool,
            arguments=arguments,
            labels_to_add=_split_labels(texts.get("labels", "")),
            labels_to_remove=_split_labels(texts.get("dropped", "")),
            view=row.view,
            source_text=part,
        )
        description = texts.get("described") or texts.get("called") or texts.get("quoted")
        if row.tool == "create_issue":
            self._create_issue(wish, is_bug=texts["noun"].lower() == "bug")
        elif "numbers" in texts:
            numbers = dict.fromkeys(map(int, re.findall(r"\d+", texts["numbers"])))
            self._antecedents = [self._add(wish, number, "") for number in numbers]
        elif description:
            self._antecedents = [self._add(wish, None, description.strip(_QUOTES))]
        elif "pronoun" not in texts:  # the call is about no issue
            self.items.append(wish)
        elif not self._antecedents:
            text = f"Which issue do you mean by “{short(part)}”? Please give me its number."
            self.items.append(Talk(text, ("show open issues",)))
        elif self._antecedents[0].tool == "create_issue":
            self._change_new_issue(wish)
        else:
            self._antecedents = [self._add(wish, *earlier.issue_key) for earlier in self._antecedents]

    def _create_issue(self, wish: Wish, *, is_bug: bool) -> None:
        """Add a wish for a new issue, with its labels among the arguments."""
        labels = sorted({*wish.labels_to_add, "bug"} if is_bug else set(wish.labels_to_add))
        arguments = {**wish.arguments, "labels": labels} if labels else wish.arguments
        self._antecedents = [replace(wish, arguments=arguments, labels_to_add=())]
        self.items += self._antecedents

    def _change_new_issue(self, wish: Wish) -> None:
        """Add a change of a new issue to the call that creates the issue."""
        new = self._antecedents[0]
        if wish.tool != "update_issue" or wish.labels_to_remove or "state" in wish.arguments:
            text = (
                f"I can do more with a new issue once it exists, so I left out “{short(wish.source_text)}”."
            )
            self.items.append(Talk(text))
            return
        arguments = {**new.arguments, **wish.arguments}
        labels = sorted({*new.arguments.get("labels", ()), *wish.labels_to_add})
        if labels:
            arguments["labels"] = labels
        self._antecedents = [self._replace(new, replace(new, arguments=arguments))]

    def _add(self, wish: Wish, number: int | None, description: str) -> Wish:
        """Add a wish about the issue with this number, or this description, and return it.

        It is merged with an earlier change of the same issue, unless both set the same field.
        """
        number_argument = {} if number is None else {"number": number}
        wish = replace(wish, description=description, arguments={**number_argument, **wish.arguments})
        for earlier in self.items:
            if earlier == wish:
                return wish
            if not isinstance(earlier, Wish) or earlier.issue_key != wish.issue_key:
                continue
            are_changes = earlier.tool == wish.tool == "update_issue"
            set_by_both = (earlier.arguments.keys() & wish.arguments.keys()) - {"number"}
            if are_changes and not set_by_both:
                return self._replace(earlier, _merge(earlier, wish))
        self.items.append(wish)
        return wish

    def _replace(self, old: Wish, new: Wish) -> Wish:
        self.items[self.items.index(old)] = new
        return new


def _merge(first: Wish, second: Wish) -> Wish:
    return replace(
        first,
        arguments={**first.arguments, **second.arguments},
        labels_to_add=first.labels_to_add + second.labels_to_add,
        labels_to_remove=first.labels_to_remove + second.labels_to_remove,
        source_text=f"{first.source_text} and {second.source_text}",
    )


def _read_groups(match: re.Match[str]) -> dict[str, str] | None:
    """Return the texts that a part gives for arguments, by argument; a few names differ: `_make_arguments`.

    All details of a part are in one group, as are all filters: these groups are split. Returns None if an
    argument is given twice.
    """
    texts = {name: text for name, text in match.groupdict().items() if text}
    if texts.pop("bugs", ""):
        texts["label"] = "bug"
    # the groups of _DETAILS, _FILTERS and _FILTERS_AFTER
    for group, pattern in (("details", _DETAIL), ("before", _FILTER), ("after", _FILTER)):
        if not texts.pop(group, ""):
            continue
        for inner_match in pattern.finditer(match.string, *match.span(group)):
            for inner_group, text in inner_match.groupdict().items():
                if not text:
                    continue
                name = _ARGUMENT_OF_GROUP.get(inner_group, inner_group)
                if name in texts:
                    return None
                texts[name] = _VALUE_OF_GROUP.get(inner_group, text)
    return texts


def _make_arguments(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of a call, made of the texts that `_read_groups` returns."""
    arguments: dict[str, Any] = {}
    for name, value in texts.items():
        match name:
            case "title" | "body" | "query":
                text = value.strip()
                if text[0] in _QUOTES:
                    text = text.strip(f"{_QUOTES} ")
                elif name == "title":
                    text = text[:1].upper() + text[1:]
                arguments[name] = text
            case "task" | "every" | "fact":
                arguments[name] = value.strip()
            case "reminder":
                arguments["task"] = f"remind me to {value.strip()}"
            case "clock":
                arguments["at"] = f"{texts.get('day', '')} {_read_clock(value)}".strip().lower()
            case "priority" | "state" | "label":
                arguments[name] = value.lower().strip(_QUOTES)
            case "assignee":
                arguments[name] = value.removeprefix("@")
    return arguments


def _read_clock(text: str) -> str:
    """Return a time of day as HH:MM: "09:30" for "9:30", and "16:00" for "4", an hour of the afternoon."""
    hour, _, minute = text.partition(":")
    hours = int(hour)
    if hour in _AFTERNOON_HOURS:
        hours += 12
    return f"{hours:02}:{minute or '00'}"


def _split_labels(text: str) -> tuple[str, ...]:
    labels = [label.strip(f" {_QUOTES}").lower() for label in re.split(r",? and |, ?", text)]
    return tuple(dict.fromkeys(filter(None, labels)))
