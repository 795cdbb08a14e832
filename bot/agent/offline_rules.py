"""The sentences the offline demo model understands, as one table. ``offline_grammar.py`` reads it.

A pattern matches one whole clause, upper and lower case alike; quoted text stands in it as one ``<Q>``.
The first rule that matches wins. Groups are named after what they hold: ``t`` the issue or issues meant,
``add`` and ``drop`` labels, ``rest`` further details, and otherwise the tool's own parameter.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PRIORITIES: Mapping[str, str] = {
    **dict.fromkeys(("low", "lowest", "minor"), "low"),
    **dict.fromkeys(("normal", "medium", "regular"), "normal"),
    **dict.fromkeys(("high", "highest", "important", "major"), "high"),
    **dict.fromkeys(("urgent", "critical", "asap", "top"), "urgent"),
}

PIECES: Mapping[str, str] = {
    "<T>": r"(?P<t>(?!(?:an?|new|another|two|three|some)\b).+?)",
    "<NUMBERS>": r"(?P<t>(?:(?:the )?<ISSUE> )?(?:number )?#?\d+(?:(?: ?, ?| and | ?& ?)(?:and )?#?\d+)*)",
    "<PRIORITY>": rf"(?P<priority>{'|'.join(PRIORITIES)})",
    "<NAME>": r"(?P<assignee><Q>|<@\w+>|@?\w[\w.-]*(?: (?-i:[A-Z])[\w.-]*)?)",
    "<LABELS>": r"<Q>|[\w-]+(?:(?: ?, ?| and | ?& ?)[\w-]+)*",
    "<ISSUE>": r"(?:issue|ticket|bug|task)s?",
    "<COMMENT>": r"(?:comment|note|reply)",
    "<SHOW>": r"(?:show|list|display|see|view|get|give|read|what|what are|which|are there|any)(?: me)?",
    "<Q>": "\x02\\d+\x03",
}


def pattern(text: str) -> re.Pattern[str]:
    for name, piece in PIECES.items():
        text = text.replace(name, piece)
    return re.compile(text, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rule:
    tool: str
    clause: re.Pattern[str]
    fixed: Mapping[str, Any] = field(default_factory=dict)


def _rule(tool: str, text: str, **fixed: Any) -> Rule:
    return Rule(tool, pattern(text), fixed)


_SET = r"(?:set|change|update|make|raise|lower|bump|put|move)"
_FIELD = r"(?:(?P<is_title>title)|description|body|text)"

RULES: tuple[Rule, ...] = (
    # comments first: their text may hold anything
    _rule("comment_issue", r"<COMMENT> (?P<body><Q>) on <T>"),
    _rule("comment_issue", r"<COMMENT> on <T>(?: (?:that|saying|with) | ?[:,-] ?| (?=<Q>))(?P<body>.+)"),
    _rule("comment_issue", r"(?:add|post|leave|write) (?:an? )?<COMMENT> (?P<body><Q>) (?:to|on) <T>"),
    _rule(
        "comment_issue",
        r"(?:add|post|leave|write) (?:an? )?<COMMENT> (?:to|on) <T>(?: (?:that|saying) | ?[:,-] ?| (?=<Q>))"
        r"(?P<body>.+)",
    ),
    _rule("update_issue", r"add (?:the )?(?:labels?|tags?) (?P<add><LABELS>) to <T>"),
    _rule("update_issue", r"add (?:the )?(?P<add><LABELS>) (?:labels?|tags?) to <T>"),
    _rule("update_issue", r"(?:label|tag) <T> (?:as |with )?(?P<add><LABELS>)"),
    _rule("update_issue", r"(?:remove|drop) (?:the )?(?:labels?|tags?) (?P<drop><LABELS>) from <T>"),
    _rule("update_issue", r"(?:remove|drop) (?:the )?(?P<drop><LABELS>) (?:labels?|tags?) from <T>"),
    _rule("update_issue", r"(?:remove|drop|clear) (?:the )?assignee (?:of|from|on) <T>", assignee=""),
    _rule("update_issue", r"un-?assign <T>(?: from .+)?", assignee=""),
    _rule("update_issue", rf"{_SET} (?:the )?priority (?:of|for|on) <T> (?:to|as|at) <PRIORITY>"),
    _rule("update_issue", rf"{_SET} <T>(?:'s)? priority (?:to|as|at) <PRIORITY>"),
    _rule("update_issue", rf"{_SET} (?:the )?{_FIELD} (?:of|for|on) <T> to (?P<text>.+)"),
    _rule("update_issue", rf"{_SET} <T>(?:'s)? {_FIELD} to (?P<text>.+)"),
    _rule("update_issue", r"(?P<is_title>rename|retitle) <T> (?:to|as) (?P<text>.+)"),
    _rule(
        "update_issue",
        rf"(?:{_SET}|mark|give|treat|(?:re-?)?prioriti[sz]e) <T>(?: as| to| up to| at| with)?(?: an?)? "
        r"<PRIORITY>(?:[- ]priority)?",
    ),
    _rule("close_issue", r"mark <T> (?:as )?(?:done|closed|fixed|resolved|completed?|finished)"),
    _rule("update_issue", r"mark <T> (?:as )?(?:open|not done)", state="open"),
    _rule("update_issue", r"(?:re-?open|open) <NUMBERS>(?: again)?", state="open"),
    _rule("update_issue", r"re-?open <T>", state="open"),
    _rule("update_issue", r"open <T> again", state="open"),
    _rule("update_issue", r"assign to <NAME>(?P<rest>.*)", t="it"),
    _rule(
        "update_issue",
        r"assign (?!it\b|them\b|that\b|this\b|the\b|issue)<NAME> to (?P<t>#\d+.*|<ISSUE> #?\d+.*|it|the .+)",
    ),
    _rule("update_issue", r"(?:re-?assign|assign|give|hand|pass|move) <T> (?:over )?to <NAME>(?P<rest>.*)"),
    _rule("list_issues", r"(?:all )?(?P<state>open|closed) <ISSUE>"),
    _rule(
        "create_issue",
        r"(?:create|open|file|add|make|raise|report|log|new|start|write|enter)(?: up| me)*"
        r"(?: (?:an?|another|new|one|two|three|four|five|\d|some|few))*"
        r"(?: <PRIORITY>(?:[- ]priority)?)? (?P<many><ISSUE>)\b(?P<rest>.*)",
    ),
    _rule(
        "close_issue",
        r"(?:close|resolve|finish|complete) <T>"
        r"(?:(?: because| since| as| with(?: the)? reason| reason:?| ?:| [-–—]) ?(?P<reason>.+))?",  # noqa: RUF001
    ),
    _rule("delete_issue", r"(?:delete|remove|erase|destroy|drop|trash) <T>"),
    _rule(
        "workload",
        r".*\b(?:workload|how busy|who(?:'s| is| has)? (?:the )?(?:most|least|busy|busiest|free)).*",
    ),
    _rule(
        "get_issue",
        r"(?:(?:<SHOW>|what's|what is|tell me(?: more)? about|look at|details? (?:of|for|on)) )?"
        r"(?:the details (?:of|for) )?<NUMBERS>",
    ),
    _rule("get_issue", r"(?:<SHOW>|tell me(?: more)? about|look at) (?P<t>it|that one|this one)"),
    _rule("list_issues", r"what(?:'s| is) (?P<state>open|closed)"),
    _rule("list_issues", r"what(?:'s| is| does| has) <NAME> (?:working on|have|got|doing|up to|to do).*"),
    _rule(
        "search_issues",
        r"(?:search|find|look for|look up)(?: for| me)*(?: (?:all|any|an?|the|open|closed))*(?: <ISSUE>)?"
        r"(?: (?:about|for|on|with|mentioning|matching|containing|related to|regarding))? (?P<query>.+)",
    ),
    _rule("search_issues", r".*\b<ISSUE> (?:about|mentioning|matching|containing|regarding) (?P<query>.+)"),
    _rule("search_issues", r"<SHOW> the (?P<query>(?!open|closed).+?) (?:issue|ticket|bug|task)"),
    _rule("list_issues", r"<SHOW>?(?P<rest>.*\b<ISSUE>\b.*)"),
    _rule("list_issues", r"(?P<rest>(?:my|\w+'s)(?: open| closed)? <ISSUE>)"),
    _rule("list_issues", r"list(?P<rest>| all| everything| open| closed)"),
)

DETAILS: tuple[re.Pattern[str], ...] = (
    pattern(
        r",? ?(?:with |and )?(?:(?:the |a )?(?:description|body|text|details?)|saying):? ?(?P<body><Q>|.+$)"
    ),
    pattern(
        r",?(?: (?:with|at|as|and|of|in))*(?: an?)? (?:(?:priority:? (?:of |is |to )?)<PRIORITY>"
        r"|(?P<prior>" + "|".join(PRIORITIES) + r")[- ]priority)\b"
    ),
    pattern(r",?(?: and)? (?:assigned|assign|assignee|given)(?: it)?(?: to| is|:)? <NAME>"),
    pattern(r",?(?: with| and)?(?: the)? (?:labels?|tags?|labell?ed|tagged):?(?: as)? (?P<add><LABELS>)"),
)
"""What may follow a new issue's title or an assignment, in the order in which it is taken out."""

FILTERS: tuple[re.Pattern[str], ...] = (
    pattern(r"\b(?P<state>open|closed)\b"),
    pattern(r"\b(?P<state>all)\b"),  # both states, which is what no state means
    pattern(r" (?:labell?ed|tagged|with(?: the)? (?:label|tag)):?(?: as)? (?P<label><Q>|[\w-]+)"),
    pattern(r" (?:assigned to|of|for|by|belonging to|does|has) <NAME>"),
    pattern(r"\b(?P<assignee>my|\w+(?='s))(?:'s)?"),
)
"""What narrows a list."""

VERBS = (
    "create|open|file|add|make|raise|report|log|list|show|search|find|look|assign|reassign|re-assign|unassign|"
    "give|hand|set|change|update|rename|retitle|mark|label|tag|comment|reply|post|leave|close|resolve|finish|"
    "complete|reopen|re-open|delete|remove|erase|drop|move|bump|lower|prioriti[sz]e|reprioriti[sz]e|tell|what|who"
)
"""Words that begin a clause; ``and`` or a comma before anything else does not end one."""
