"""Which issues a clause means: numbers, a description, filters, a pronoun. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from bot.agent.offline.pattern import HEDGE, ME, QUOTED, numbers, person, phrase, priority
from bot.agent.offline.sentence import Clause
from bot.agent.offline.wishes import IT, Some, Target

_PLURALS = ["issues", "tickets", "bugs", "tasks", "numbers"]
# behind these, a bare number is an issue's
_BEFORE = ["issue", "ticket", "bug", "task", "number", "of", "on", "off", "from", "to"]


def _behind(words: Iterable[str]) -> str:
    return "|".join(rf"(?<={word} )" for word in words)


NUMBERS = phrase(
    rf"(the )?((NOUN|numbers?) )?(?P<numbers>(({_behind(_PLURALS)})NUM to NUM|(?=#)SPAN"
    rf"|({_behind([*_PLURALS, *_BEFORE])}|(?<=\x00 )|^)SPAN)( (,|and|&|or|, and)( (NOUN|number))? SPAN)*)"
    "( 's)?"
)
_PICK = phrase(
    "(the )?((?P<oldest>oldest|first)|(?P<newest>newest|latest|most recent|last)|"
    "(?P<urgent>most (urgent|important|pressing)|highest[- ]priority|"
    r"top[- ]priority))(?= ([\w'-]+ ){0,4}(NOUN|one|thing)(?!\S))"
)
_MANY = phrase(r"(all|every|each|everything|whatever|any)( of)?( the| my| our)?(?! (of )?#?\d)")
_ONES = phrase(
    r"(the|my|our) ((NARROWING) )+NOUN|(the )?(?P<words>[\w-]+( [\w-]+){0,2}) (ones|issues|tickets|"
    "bugs|tasks)"
)
_ABOUT = phrase(
    "(the |my |our |that |this |an? )?(NOUN|one|thing) (about|on|called|named|titled|for|with|"
    r"regarding) (the )?(?P<words>((?!(and|to|,)(?!\S))[^\x00\s]+ ?)+)"
)
THE = phrase(
    r"(the|my|our|that|this) (?P<words>(?!(new|last|same|NARROWING)(?!\S))((?!(the|to|of|on|and|,|"
    r"\d+)(?!\S))[^\x00\s#]+ ){1,5})(NOUN|one|problem|thing)( 's)?"
)
_OWNED = phrase("NAMES 's (open )?(issues|tickets|bugs|tasks)")
_PLAIN = phrase(r"(the |my |our )?(?P<words>(?!NOUN$)[\w-]+( [\w-]+){0,3})(?=[\x00 ]*$)")
_PRONOUN = phrase(
    "(it|them|that|this|both( of them)?)( one)?|(the|this|that|these|those)( new| last| same)? (NOUN|ones?)"
)
NOUN_WORDS = phrase(
    "(the |this |that |an? )?(NOUN|ones?|things?|stuff|work|items?)( that| which| to)?( is| are)?"
)
TOPIC = phrase("(about|mentioning|regarding|containing|matching) (the )?(?P<words>.+)$")
_FILTERS: tuple[tuple[re.Pattern[str], Mapping[str, Any]], ...] = (
    (
        phrase(
            "unassigned|unowned|not assigned( to NOONE)?|(without|with no|have no|has no|no)( an|"
            " any)? (owner|assignee)|(has|have|with|owned by|belong to|assigned to|for) NOONE|"
            "(that )?NOONE (has|owns)( got| picked up| taken| claimed)?( yet)?|does NOONE have"
        ),
        {"assignee": ""},
    ),
    (
        phrase("(that (is|are) |still |left )*(not closed|unresolved|open( still)?|remaining|left)"),
        {"state": "open"},
    ),
    (
        phrase("(that )?(is|are|has|have)(n't| not)( been)?( yet)? (closed|done|resolved|finished|fixed)"),
        {"state": "open"},
    ),
    (phrase("(that )?(is|are)(n't| not) open"), {"state": "closed"}),
    (phrase("(that (is|are) |already )?(closed|done|resolved|finished|fixed)"), {"state": "closed"}),
    (phrase("(with |of |at )?(priority )?PRIO([- ](priority|prio))?"), {}),
    (phrase("(labell?ed|tagged|with( the)? (label|tag)|label|tag)( as| :)? (?P<label>LABEL)"), {}),
    (
        phrase("my|mine|(assigned to|for|of) (me|myself)|(do|should) i (have|own)|i (have|own)"),
        {"assignee": ME},
    ),
    (
        phrase(
            "(that )?((assigned to|belonging to|owned by)|"
            "(of|for|from|is|are|has|does|do|"
            r"on)(?= (?-i:[A-Z]|@|<|\x02))|(does|do)(?= \S+ (have|own|work|got))) "
            "NAMES( 's)?( (working on|work on|have|own|got|doing|do|"
            "up to|busy with|plate))?"
        ),
        {},
    ),
    (phrase("(that )?NAMES (has|have|owns|is working on|works on)( got)?"), {}),
    (phrase("NAMES 's( plate)?"), {}),
    (phrase("(the )?bugs?"), {"label": "bug"}),
)  # fmt: skip


def targets_in(clause: Clause, speaker: str, *, plain: bool = False) -> list[Target]:
    """Take which issues are meant; [] where no one said. ``plain``: bare words describe one, too."""
    if found := clause.take(_PICK):
        (pick,) = found
        return [
            Some(filters={"state": "open", **filters_in(clause, speaker)}, pick=pick, words=topic(clause))
        ]
    if found := clause.take(NUMBERS):
        return [*numbers(found["numbers"])]
    if clause.skip(_MANY) or clause.has(_OWNED):
        return [_several(clause, filters_in(clause, speaker))]
    if found := clause.take(QUOTED):
        return [Some(found["words"])]
    if clause.has(_ONES):
        return [_several(clause, filters_in(clause, speaker))]
    found = clause.take(_ABOUT) or clause.take(THE)
    if found or clause.skip(_PRONOUN):
        return [Some(found["words"].strip()) if found else IT]
    unsure = not plain or re.search(r"\d", clause.text) or HEDGE.search(clause.text)
    found = None if unsure else clause.take(_PLAIN)
    return [Some(found["words"])] if found else []


def _several(clause: Clause, filters: Mapping[str, Any]) -> Some:
    """More than one, and no numbers: people are asked, with their own words."""
    clause.skip(NOUN_WORDS)
    words = " ".join(clause.left())
    clause.rest()
    return Some(words, filters, many=True)


def topic(clause: Clause) -> str:
    found = clause.take(TOPIC)
    clause.skip(NOUN_WORDS)
    return found["words"] if found else ""


def filters_in(clause: Clause, speaker: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pattern, fixed in _FILTERS:
        before = clause.text
        if (taken := clause.take(pattern)) is None:
            continue
        given: dict[str, Any] = {**taken, **fixed}
        if "name" in given:
            given = {"assignee": person(given["name"], speaker)}
        if given.get("assignee") == ME:
            given = {"assignee": speaker or ME}
        if "priority" in given:
            given["priority"] = priority(given["priority"])
        if given.keys() & found.keys():
            clause.text = before  # the second of a kind is not read, so it is said as left out
        else:
            found |= given
    return found
