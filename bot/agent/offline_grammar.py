"""Plain English about issues, read without a model: a message in, wishes out. Pure.

The sentences are in ``offline_rules.py``; ``offline_plan.py`` turns wishes into calls. A message is cut into
clauses ("close #2 and #4" is one, "close #2 and assign #3 to Ana" are two), each clause is matched against
the rules, and ``offline_wishes.py`` gathers what the clauses ask for.
"""

import re
from typing import Any

from bot.agent.offline_rules import DETAILS, FILTERS, PRIORITIES, RULES, VERBS, Rule
from bot.agent.offline_wishes import IT, Reading, Target, Unclear, Wish

_LONGEST = 2000  # characters; the rules take time that grows with the square of a clause
_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|‘(.+?)’(?!\w)|(?<!\w)'(.+?)'(?!\w)")  # noqa: RUF001
_SLOT = re.compile("\x02(\\d+)\x03")
_LONG_TEXT = re.compile(
    r"(\b(?:comment|note|reply|description|body)\b[^:\x02]*:\s*)([^\s\x02].*)$", re.IGNORECASE
)
_CLAUSES = re.compile(
    r"(?:\s*[;.!?\n]+\s*(?:and |then |also |please )*|\s*,\s*(?:and |then |also |please )*"
    rf"|\s+(?:and|then|also)\s+(?:then |also |please )*)(?=(?:{VERBS})\b)",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"^(?:(?:hey|hi|hello|ok|okay|yes|@?nod|please|pls|now|so|then|also|and|just|can|could|would|will|you|let's|"
    r"i'd like(?: you)? to|i would like(?: you)? to|i (?:want|need)(?: you)? to|go ahead and)\b[\s,!:]*)+",
    re.IGNORECASE,
)
_TAIL = re.compile(r"[\s,.!?]*(?:\b(?:please|pls|thanks|thank you|for me)\b[\s,.!?]*)*$", re.IGNORECASE)
_FILLER = re.compile(
    r"#?\d+|\b(?:the|issues?|tickets?|bugs?|tasks?|numbers?|and|both)\b|[,&\s]", re.IGNORECASE
)
_PRONOUN = re.compile(
    r"it|them|that|this|(?:that|this|the last) one|(?:the|this|that|these|those) (?:issue|ticket|bug|task)s?"
    r"|both|the new (?:one|issue)", re.IGNORECASE,
)  # fmt: skip
_VAGUE = re.compile(r"#\d|^(?:all|every|each|any|some)\b", re.IGNORECASE)
_ABOUT = re.compile(
    r"^(?:the|my|our|that|this)\s+|^(?:issue|ticket|bug|task)s?\s+(?:about|on|called|named|titled|for|with)\s+"
    r"|\s*\b(?:issue|ticket|bug|task|one)s?$", re.IGNORECASE,
)  # fmt: skip
_TITLE_LEAD = re.compile(
    r"^[\s:,-]*(?:(?:called|named|titled|about|for|that|saying|with(?: the)? titles?|to say)\b[\s:]*)?",
    re.IGNORECASE,
)


class _Text:
    """A message whose quoted passages are taken out, so that nothing in them reads as a command."""

    def __init__(self, message: str) -> None:
        self._passages: list[str] = []
        text = _QUOTED.sub(lambda m: self._slot(next(filter(None, m.groups()))), message)
        text = _LONG_TEXT.sub(lambda m: m[1] + self._slot(m[2].strip()), text)
        self.clauses = [c for part in _CLAUSES.split(text.replace("’", "'")) if (c := _bare(part))]  # noqa: RUF001

    def _slot(self, passage: str) -> str:
        self._passages.append(passage)
        return f"\x02{len(self._passages) - 1}\x03"

    def full(self, text: str) -> str:
        """Put the passages back, without what surrounds the text."""
        return _SLOT.sub(lambda m: self._passages[int(m[1])], text).strip(" ,.:")

    def quoted(self, text: str) -> list[str]:
        return [self._passages[int(slot)] for slot in _SLOT.findall(text)]


def _bare(clause: str) -> str:
    return " ".join(_TAIL.sub("", _POLITE.sub("", clause.strip())).split())


def parse(message: str, *, speaker: str = "", it: int | None = None) -> list[Wish | Unclear]:
    """Read a message. ``it`` is the number a pronoun means at its start. Empty: nothing was understood."""
    text = _Text(message[:_LONGEST])
    reading = Reading(it)
    matches = [next(filter(None, (_match(rule, clause) for rule in RULES)), None) for clause in text.clauses]
    if not any(matches):
        return []
    for clause, match in zip(text.clauses, matches, strict=True):
        if match is None:
            reading.wishes.append(Unclear(f"I did not understand “{text.full(clause)}”."))
        elif match[0].tool == "create_issue":
            reading.create(_new_issues(match[1], text, speaker))
        else:
            rule, groups = match
            targets = _targets(groups.pop("t"), text) if "t" in groups else [rule.fixed.get("t")]
            reading.take(_wish(rule, groups, text, speaker), targets)
    return reading.wishes


ME = "me"
"""The assignee when people mean themselves and the chat does not tell who they are."""

Groups = dict[str, str]


def _match(rule: Rule, clause: str) -> tuple[Rule, Groups] | None:
    found = rule.clause.fullmatch(clause)
    return (rule, {k: v for k, v in found.groupdict().items() if v is not None}) if found else None


def _targets(words: str, text: _Text) -> list[Target]:
    """Read which issues are meant: numbers, a pronoun, or a description to search for."""
    plain = words.removesuffix("'s").strip()
    if _PRONOUN.fullmatch(plain):
        return [IT]
    if not _FILLER.sub("", plain) and (numbers := re.findall(r"\d+", plain)):
        return [int(number) for number in dict.fromkeys(numbers)]
    if _VAGUE.search(plain):
        return [Unclear(f"Which issues do you mean by “{text.full(plain)}”? Please give me their numbers.")]
    about = plain
    while (shorter := _ABOUT.sub("", about)) != about:
        about = shorter
    return [text.full(about) or IT]


def _wish(rule: Rule, groups: Groups, text: _Text, speaker: str) -> Wish:
    """Make a wish of what a clause's groups hold; its issue is still to be put in."""
    if "text" in groups:
        groups["title" if "is_title" in groups else "body"] = groups.pop("text")
    rest = groups.pop("rest", "")
    groups |= _filters(rest) if rule.tool == "list_issues" else _details(rest)[0]
    fixed = {name: value for name, value in rule.fixed.items() if name != "t"}
    add, drop = (_labels(groups.pop(name, ""), text) for name in ("add", "drop"))
    return Wish(rule.tool, {**_arguments(groups, text, speaker), **fixed}, add=add, drop=drop)


def _new_issues(groups: Groups, text: _Text, speaker: str) -> list[Wish]:
    details, rest = _details(groups["rest"])
    several = groups["many"].lower().endswith("s")
    titles = text.quoted(rest)
    if titles and not details.get("assignee") and (found := re.search(r" for (@?\w+)$", rest)):
        details["assignee"] = found[1]
    if not titles:
        plain = _TITLE_LEAD.sub("", rest)
        parts = (text.full(part) for part in (re.split(r",| and |;", plain) if several else [plain]))
        titles = [part[:1].upper() + part[1:] for part in parts if part]
    if len(titles) > 1 and not several:
        titles = titles[:1]
    labels = _labels(details.pop("add", ""), text)
    if "priority" in groups:
        details.setdefault("priority", groups["priority"])
    arguments = _arguments(details, text, speaker) | ({"labels": list(labels)} if labels else {})
    return [Wish("create_issue", {"title": title, **arguments}) for title in titles]


def _details(rest: str) -> tuple[Groups, str]:
    """Take the details out of what follows a title or a name; give them, and what is left."""
    found: Groups = {}
    for detail in DETAILS:
        if match := detail.search(rest):
            found |= {name: value for name, value in match.groupdict().items() if value}
            rest = rest[: match.start()] + rest[match.end() :]
    if "prior" in found:
        found["priority"] = found.pop("prior")
    return found, rest


def _filters(rest: str) -> Groups:
    found: Groups = {}
    for narrows in FILTERS:
        if match := narrows.search(rest):
            found = {**match.groupdict(), **found}
            rest = rest[: match.start()] + rest[match.end() :]
    return found


def _arguments(groups: Groups, text: _Text, speaker: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name in ("title", "body", "query", "reason", "assignee", "label", "priority", "state"):
        if name not in groups:
            continue
        value = text.full(groups[name])
        match name:
            case "assignee":
                value = value.removeprefix("@")
                value = (speaker or ME) if value.lower() in ("me", "my", "myself") else value
            case "priority":
                value = PRIORITIES[value.lower()]
            case "state" if value.lower() == "all":
                continue
            case "state":
                value = value.lower()
        made[name] = value
    return made


def _labels(words: str, text: _Text) -> tuple[str, ...]:
    parts = text.quoted(words) or re.split(r"\s*(?:,|&|\band\b)\s*", words)
    return tuple(dict.fromkeys(part.lower() for part in parts if part))
