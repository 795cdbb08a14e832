"""The readers of clauses that ask for something to be looked up. Pure."""

import re

from bot.agent.offline.changes import Act
from bot.agent.offline.pattern import ask_for, numbers, phrase, short
from bot.agent.offline.sentence import Clause
from bot.agent.offline.targets import NOUN_WORDS, NUMBERS, THE, TOPIC, filters_in, topic
from bot.agent.offline.wishes import IT, DemoAnswer, Some, Target, Wish

SHOW = phrase(
    "(show|list|display|see|view|read|get|give|tell|look at|summari[sz]e|open up|describe|explain|"
    "bring up|pull up|let (me|us) know|"
    "what|which|who|are there|is there|are|is|was|do (we|i|you)( have| know)?|has|does|did|anything|"
    "how|any|when)( me| us| up)*( (more |all )?about)?"
)
_WAITS = phrase("waiting|pending|awaiting|(for )?my approval|proposals?|to approve|for approval|undecided")
_WAIT_WORDS = phrase(
    "(the )?(waiting|pending|awaiting|proposals?|cards?|approvals?|decisions?|undecided|open|"
    "anything|everything)|(for|on|to) (my|me|a|an|our)? ?(approval|decision|ok|yes|approve|me)"
)
_DECIDED = phrase("(did|have|had) i (decided?|approved?|declined?)|my (last |recent )?decisions?")
_LOAD = phrase(
    "((the )?workload|(the )?busiest|how busy( is every ?(one|body)| are (we|they|people))?|"
    "(got )?(the )?(most|least|more|too much) (work|issues|tickets|bugs|tasks|to do|on (their|his|"
    "her|the) plate)|(is )?(most|least) busy|(is|has) free( time)?)"
)
_TOP = phrase(
    "(the )?(most (urgent|important|pressing)( thing| one| NOUN)*|highest[- ]priority( thing| one|"
    " NOUN)*|top[- ]priority)|(should (i|we) )?(work on|do|start with|look at|fix|tackle) (next|"
    "first)"
)
_RECENT = phrase(
    "(the )?(has |have )?(been )?(changed?|changes|happened|happening|updated|new|latest|news|newest|"
    "recent(ly)?|last changes?)( last| recently| lately)?"
)
_COUNT = phrase("(how )?many|(the )?(number|count)( of)?")
_VIEWS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("author", phrase("created|opened|filed|reported|wrote|made|(the )?(author|reporter)( of)?")),
    ("comments", phrase(
        "((have|has|did) )?(people |anyone |they )?(said|say|comments?|comment)( (about|on|to))?"
    )),
    ("owner", phrase(
        "(has|have|owns?|(is |are )?(working on|work on|assigned( to)?|on|responsible for)|owner|"
        "assignee)( of| for)?"
    )),
    ("state", phrase(
        "(still |already )?(open|closed|done|resolved|fixed)( or (open|closed))?|state|status( of)?"
    )),
)  # fmt: skip
_AGE = re.compile(r"\b(?:how old|how long|since when|when (?:was|were|did))\b", re.IGNORECASE)
_WHO = re.compile(r"who\b", re.IGNORECASE)  # who closed it is not among what an issue tells
_AGE_WORDS = phrase("old|long|since when|when|(created|opened|filed|reported|made)")
_MOST_LEFT = 3  # words of a question for a list that may be left out
EXISTS = phrase(
    "((is|are) (any ?(one|body)|some ?(one|body)) (working on|on|looking at|fixing)|who (has|"
    "is working on)|do we have|is there|are there|have we got|any)( an?| any| anything| something|"
    " some| already)*"
)
SEARCH = phrase(
    "(search|find|look(ing)? for|look up)( for| me)*( (all|any|an?|the|issues?|tickets?|bugs?|tasks?|"
    "anything|something))*( (about|for|on|with|mentioning|matching|containing|related to|regarding))?"
)
_NOT_WORDS = phrase("(NARROWING|me|us|new|old)")
_TROUBLE = phrase(
    r"broken|fails?|failed|failing|crash(es|ed)?|(does|do|is|are|did)(n't| not) \w+|down|stuck|leak(s|"
    r"ing)?|flickers?|errors?|wrong|missing|slow|can't \w+|stopped \w+|won't \w+|dead|too \w+"
)


def searching(clause: Clause, speaker: str) -> list[Act] | DemoAnswer:
    state = (
        {k: v for k, v in filters_in(clause, speaker).items() if k == "state"}
        if clause.has(NOUN_WORDS)
        else {}
    )
    query = clause.rest()
    if not query:
        return ask_for(clause, "what should I search for?", "search for login")
    return [(Wish("search_issues", {"query": query, **state}), None)]


def existing(clause: Clause, _: str) -> list[Act] | None:
    """Read *do we have anything about invoices?* and *is anyone working on the login problem?*."""
    topic = clause.take(
        phrase("(NOUN )?(about|mentioning|regarding|containing|matching|on|for) (the )?(?P<words>.+)$")
    )
    found = topic or clause.take(phrase(r"(the |an? )?(?P<words>[^\x00]+?) (NOUN|problem|thing|one)")) or {}
    words = found.get("words", "").strip()
    if not words or re.search(r"\d", words) or _NOT_WORDS.fullmatch(words):
        return None
    return [(Wish("search_issues", {"query": re.sub(r"\s+(problem|issue|ticket|bug)$", "", words)}), None)]


def question(clause: Clause, speaker: str) -> list[Act] | None:
    """Look something up. What the question does not use is said as left out."""
    looks = (_waiting, _other_lookups, _one_issue, _about, _list)
    return next(filter(None, (look(clause, speaker) for look in looks)), None)


def _waiting(clause: Clause, _: str) -> list[Act] | None:
    if not clause.has(_WAITS):
        return None
    while clause.skip(_WAIT_WORDS):
        pass
    return [(Wish("proposals_waiting"), None)]


def _other_lookups(clause: Clause, speaker: str) -> list[Act] | None:
    if clause.skip(_DECIDED):
        return [(Wish("my_decisions"), None)]
    if clause.skip(_LOAD):
        clause.skip(phrase("who|team|right now"))
        return [(Wish("workload"), None)]
    if clause.skip(_TOP):
        filters = {"state": "open", **filters_in(clause, speaker)}
        clause.skip(NOUN_WORDS)
        return [(Wish("list_issues", filters, view="top"), None)]
    return None


def _one_issue(clause: Clause, _: str) -> list[Act] | None:
    """Read issues that are named or described, or one thing about them."""
    view = "age" if _AGE.search(clause.said) else next((v for v, p in _VIEWS if clause.has(p)), "")
    if (clause.has(_COUNT) and view != "comments") or (view == "state" and _WHO.match(clause.said)):
        return None
    if found := clause.take(NUMBERS):
        targets: list[Target] = [*numbers(found["numbers"])]
    elif clause.skip(phrase("it|that one|this one|them")):
        targets = [IT]
    elif found := clause.take(THE):
        targets = [Some(found["words"].strip())]
    else:
        return None
    clause.skip(_COUNT)
    clause.skip(dict(_VIEWS).get(view, _AGE_WORDS))
    clause.skip(phrase("(the )?(details?|priority|labels?|title|description)( of| for| on)?|about"))
    return [(Wish("get_issue", view=view), targets)]


def _about(clause: Clause, _: str) -> list[Act] | None:
    query = topic(clause) if clause.has(TOPIC) else ""
    return [(Wish("search_issues", {"query": query}), None)] if query else None


def _list(clause: Clause, speaker: str) -> list[Act] | None:
    count = clause.skip(_COUNT)
    left = clause.has(phrase("left|remaining"))
    filters = filters_in(clause, speaker)
    noun = clause.skip(NOUN_WORDS)
    every = clause.skip(phrase("everything|anything|all( of)?( the)?|every"))
    clause.skip(NOUN_WORDS)
    if not filters and clause.skip(_RECENT):
        return [(Wish("list_issues", view="recent"), None)]
    if not filters and not noun and not every:
        return None
    unread = " ".join(clause.left())
    if len(unread.split()) > _MOST_LEFT or re.search(r"\d", unread):
        return None  # a list would be a false answer
    return [(Wish("list_issues", filters, view="count" if count else "left" if left else ""), None)]


def bare_question(clause: Clause, speaker: str) -> list[Act] | None:
    """*Open bugs*: a question without its first words, where nothing is left of it."""
    found = question(clause, speaker)
    return None if clause.left() else found


def trouble(clause: Clause, _: str) -> DemoAnswer | None:
    """A fault described, with no verb for what to do about it."""
    if not clause.has(_TROUBLE):
        return None
    said = clause.rest()
    title = re.split(r",|\s[-–]\s", said)[0].strip()  # noqa: RUF001
    return DemoAnswer(f"Should I open an issue for “{short(said)}”?", (f'create an issue "{title[:150]}"',))
