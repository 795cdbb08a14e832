"""The readers of clauses that change something: each takes what its verb may have, in any order. Pure."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from bot.agent.offline.pattern import (
    ME,
    QUOTED,
    ask_for,
    labels,
    person,
    phrase,
    priority,
)
from bot.agent.offline.sentence import QUOTE, Clause
from bot.agent.offline.targets import targets_in
from bot.agent.offline.wishes import IT, DemoAnswer, Target, Wish

Act = tuple[Wish, list[Target] | None]
Reader = Callable[[Clause, str], list[Act] | DemoAnswer | None]
_FIELD = phrase("(the )?(?P<field>title|name|description|body|text|summary)( (of|for|on))?")
_VALUE = phrase("(to say|to|as|into|:) (?P<text>[^\x00]+)(?=[\x00 ]*$)")
_STATE = phrase(
    "((as|to|the|state|status|of) )*((?P<done>ENDED|such)|"
    "(?P<open>open|not done))( again)?"
)  # fmt: skip
_PRIO_WORD = phrase("(the |with |at )?(priority|prio)( level)?( of| for| on| :)?")
_PRIO = phrase("((up|down|back) )?((to|as|at|with|is|be) )?(an? )?PRIO([- ](priority|prio))?")
_TO = phrase("((over|back) )?(?<!assigned )to (NAMES|(?P<me>me|myself))(?! NOUN)")
_LABEL = phrase("((and|with|add|the|as|an?) )*(label|tag|labell?ed|tagged)s?( as| :)? LABELS")
_THE_LABEL = phrase("(the |an? )?LABELS (label|tag)s?")
_REASON = phrase(r"(because( of)?|since|as|with( the)? reason|reason|:|[-–](?! #)) :?\s*(?P<reason>.+)$")  # noqa: RUF001
_SAYING = phrase("(, )?(saying|that says|that|with|to say|:|-) (?P<body>.+)$")


def cannot(clause: Clause, speaker: str) -> DemoAnswer:
    targets = targets_in(clause, speaker)
    first = next((t for t in targets if isinstance(t, int)), None)
    text = f"I can't do “{clause.said}”: I only look up and change issues."
    clause.rest()
    return DemoAnswer(text, (f"comment on #{first}: {clause.said}",) if first else ())


def refuse(clause: Clause, _: str) -> DemoAnswer:
    said = clause.rest()
    return DemoAnswer(f"All right, I won't {said}." if said else "All right.")


def press(clause: Clause, _: str) -> list[Act]:
    said = clause.said
    clause.rest()
    return [(Wish("press", {"said": said}), None)]


def undo(clause: Clause, _: str) -> list[Act]:
    clause.skip(phrase("that|it|this|the last (one|change|thing)|my last change|last"))
    return [(Wish("undo"), None)]


def comment(clause: Clause, speaker: str) -> list[Act] | DemoAnswer:
    clause.skip(phrase("(a |an |the |another )?(comment|note|reply)"))
    saying = clause.take(_SAYING)
    quoted = None if saying else clause.take(re.compile(f"(?P<body>{QUOTE})"))
    clause.skip(phrase("as( an?)?( comment| note)?"))
    targets = targets_in(clause, speaker)
    clause.skip(phrase("comment|note"))
    body = (saying or quoted or {}).get("body", "")
    if not body:
        return ask_for(clause, "what should the comment say?", "comment on #2: fixed in 1.4")
    return [(Wish("comment_issue", {"body": body}), targets or [IT])]


def add_label(clause: Clause, speaker: str) -> list[Act] | None:
    found = clause.take(_LABEL) or clause.take(_THE_LABEL)
    clause.skip(phrase("to|from|off|of|on"))
    return (
        [(Wish("update_issue", add=labels(found["labels"])), targets_in(clause, speaker))] if found else None
    )


def drop_label(clause: Clause, speaker: str) -> list[Act] | None:
    found = clause.take(_LABEL) or clause.take(_THE_LABEL)
    clause.skip(phrase("to|from|off|of|on"))
    return (
        [(Wish("update_issue", drop=labels(found["labels"])), targets_in(clause, speaker))] if found else None
    )


def label(clause: Clause, speaker: str) -> list[Act] | DemoAnswer:
    targets = targets_in(clause, speaker)
    found = clause.take(phrase("(as |with |to )?(the )?LABELS"))
    if not found:
        return ask_for(clause, "which label?", "label #3 bug")
    return [(Wish("update_issue", add=labels(found["labels"])), targets or [IT])]


def unassign(clause: Clause, speaker: str) -> list[Act]:
    clause.skip(phrase("(the )?(assignee|owner)( of| from| on)?"))
    off = clause.take(phrase("(NAMES|everyone|everybody) (off|from)(?= )"))
    targets = targets_in(clause, speaker)
    if (off := off or clause.take(phrase("(from|off) NAMES"))) and "name" in off:
        clause.notes.append(f"The card shows whether {off['name']} has it.")
    return [(Wish("update_issue", {"assignee": ""}), targets)]


def change(clause: Clause, speaker: str) -> list[Act] | DemoAnswer | None:
    """Read what *make*, *set*, *mark*, *move*, *give* or *assign* changes, in one wish for each issue."""
    changes: dict[str, Any] = {}
    add: tuple[str, ...] = ()
    if named := clause.take(_FIELD):
        value = clause.take(_VALUE)
        if not value:
            return ask_for(clause, f"what should the new {named['field']} be?", "rename #3 to 'Better title'")
        changes["body" if named["field"].lower() in {"description", "body", "text"} else "title"] = value[
            "text"
        ]
    else:
        clause.skip(_PRIO_WORD)
        if found := clause.take(_PRIO):
            changes["priority"] = priority(found["priority"])
        if found := clause.take(_LABEL):
            add = labels(found["labels"])
        if found := clause.take(phrase("(over )?to NOONE")) or clause.take(_TO):
            changes["assignee"] = (
                person(found["name"], speaker)
                if "name" in found
                else (speaker or ME)
                if "me" in found
                else ""
            )
        elif _GIVING.search(clause.said) and (found := clause.take(_NAME_NEXT)):
            changes["assignee"] = person(found["name"], speaker)
    state = None if changes else clause.take(_STATE)
    targets = targets_in(clause, speaker, plain=bool(changes or add or state))
    if state and "done" in state:
        return [(Wish("close_issue"), targets)]
    if state:
        changes["state"] = "open"
    if not changes and not add:
        if not targets:
            return None
        which = next((f"#{t}" for t in targets if isinstance(t, int)), "it")
        return ask_for(
            clause, "what should change? Title, priority, labels or who has it.", f"make {which} urgent"
        )
    return [(Wish("update_issue", changes, add=add), targets or [IT])]


def assign(clause: Clause, speaker: str) -> list[Act] | DemoAnswer | None:
    if named := clause.take(_ONLY_NAME):
        return [(Wish("update_issue", {"assignee": person(named["name"], speaker)}), [IT])]
    read = change(clause, speaker)
    return (
        ask_for(clause, "who should have it?", "assign #4 to Ben") if isinstance(read, DemoAnswer) else read
    )


def rename(clause: Clause, speaker: str) -> list[Act] | DemoAnswer:
    rated = clause.take(_RATED)
    value = clause.take(_VALUE)
    targets = targets_in(clause, speaker, plain=True)
    if not value:
        return ask_for(clause, "what should the new title be?", "rename #3 to 'Better title'")
    more = {"priority": priority(rated["priority"])} if rated else {}
    return [(Wish("update_issue", {"title": value["text"], **more}), targets)]


def reopen(clause: Clause, speaker: str) -> list[Act]:
    clause.skip(phrase("again"))
    return [(Wish("update_issue", {"state": "open"}), targets_in(clause, speaker, plain=True))]


def close(clause: Clause, speaker: str) -> list[Act]:
    reason = clause.take(_REASON) or {}
    return [(Wish("close_issue", reason), targets_in(clause, speaker, plain=True))]


_GIVING = re.compile(r"\b(?:give|hand|pass|assign|reassign)\b", re.IGNORECASE)
_NAME_NEXT = phrase(r"^\x00+ NAMES(?= (#|issue |ticket |the ))")
_RATED = phrase(", (and )?(with |make it )?(an? )?PRIO[- ](priority|prio)(?=[\x00 ]*$)")
_ONLY_NAME = phrase(r"^\x00+ (?P<name>@?(?-i:[A-Z])[\w.-]*)$")
_IS_DONE = phrase("(is|are|'s) (now |already |all )?(done|fixed|resolved|finished|solved)$")
_MUST = phrase("MUST (be )?((?P<close>ENDED)|(?P<delete>deleted|removed)|(?P<reopen>re-?opened)|"
               "(assigned|given|moved|handed|set|go|belong)|(?<=be ))(?= |$)")  # fmt: skip
_ASKING = phrase("(what|who|which|when|how|why)")


def done(clause: Clause, speaker: str) -> list[Act] | None:
    """Read *#3 is done*, which asks for it to be closed."""
    read = close(clause, speaker) if not clause.has(_ASKING) and clause.skip(_IS_DONE) else None
    return None if clause.left() else read


def must(clause: Clause, speaker: str) -> list[Act] | DemoAnswer | None:
    """Read *#3 should be closed* and *everything Bob has should go to Ana*."""
    how = None if clause.has(_ASKING) else clause.take(_MUST)
    if how is None:
        return None
    named = {"close": close, "delete": delete, "reopen": reopen}
    return next((named[name] for name in how), change)(clause, speaker)


def delete(clause: Clause, speaker: str) -> list[Act]:
    return [(Wish("delete_issue"), targets_in(clause, speaker, plain=True))]


# --- new issues

_WHAT_IT_IS = r"(with |and |at |as |in |, )*"
_DETAILS: tuple[re.Pattern[str], ...] = (
    phrase(rf"{_WHAT_IT_IS}(an? )?PRIO[- ](priority|prio)"),
    phrase(rf"{_WHAT_IT_IS}(the |an? )?(priority|prio)( of| is| to| :)? PRIO"),
    phrase(", (and )?PRIO"),
    phrase("(and |with |, )*(assigned|assign|assignee|given|give|owner)( it)?( to| is| :)? NAMES"),
    phrase("(and )?(with |and |, )*(the )?(labels?|tags?|labell?ed|tagged)( as| :)? LABELS"),
    phrase(r", (and )?for (?P<name>(?-i:[A-Z]|@)[\w.'-]+)"),
)
QUOTED_FOR = phrase("(and )?for NAMES")
_FOR_FIRST = phrase(r"for (?P<name>(?-i:[A-Z]|@)[\w.'-]+)(?= (about|that|to|saying|called|named|titled|:) )")
_BODY = phrase(r"(, )?(with |and )*(the |a )?(description|body|details)( is)?( :)? (?P<body>\x02|.+$)")
_TITLE_LEAD = phrase(
    "([:,-] )?((called|named|titled|about|for|that|saying|says|with( the)? titles?( of)?|to say|:)( :)?)?"
)
NEW = phrase(
    "(?!open NOUN$)(create|open|file|add|make|raise|report|log|new|start|write|enter|submit|(i|"
    r"we) (need|want))( up| me| us)*( (an?|another|new|follow-up|separate|one|two|three|four|five|\d|some|"
    r"few))*( PRIO([- ](priority|prio))?)?( new)? (?P<noun>NOUN)(?! (#?\d|labels?|tags?))|(create|"
    "open|file|add|make|raise|start)( an?| another)+ new(?P<noun2> one)"
)


def create(clause: Clause, speaker: str, head: Mapping[str, str]) -> list[Act] | DemoAnswer:
    noun = head.get("noun", "").lower()
    found: dict[str, str] = {"priority": head["priority"]} if "priority" in head else {}
    found |= clause.take(_BODY) or {}
    quoted = clause.has(QUOTED)
    at_end = "" if quoted else "$"  # without quotes a detail is one only where nothing else follows
    found_one = True
    while found_one:
        found_one = False
        for detail in (*_DETAILS, QUOTED_FOR) if quoted else _DETAILS:
            ends = re.compile(detail.pattern + r"(?=[\x00 ,]*" + at_end + ")", re.IGNORECASE)
            before = clause.text
            if not (taken := clause.take(ends)):
                continue
            if taken.keys() & found.keys():
                clause.text = before  # the second of a kind is not read, so it is said as left out
                continue
            found |= taken
            found_one = True
    titles: list[str] = []
    if quoted:
        while taken := clause.take(re.compile(f"(?P<title>{QUOTE})")):
            titles.append(taken["title"])
        clause.skip(_TITLE_LEAD)
        if not noun.endswith("s"):
            titles = titles[:1]
    else:
        found |= clause.begins(_FOR_FIRST) or {}
        clause.begins(_TITLE_LEAD)
        said = clause.rest()
        parts = re.split(r"\s*(?:,|\band\b)\s*", said) if noun.endswith("s") else [said]
        titles = [part[:1].upper() + part[1:] for part in parts if part]
    tags = {*labels(found.get("labels", "")), *(["bug"] if noun.startswith("bug") else [])}
    arguments: dict[str, Any] = {"body": found["body"]} if "body" in found else {}
    if "name" in found:
        arguments["assignee"] = person(found["name"], speaker)
    if "priority" in found:
        arguments["priority"] = priority(found["priority"])
    if tags:
        arguments["labels"] = sorted(tags)
    if not titles:
        return ask_for(clause, "what should the new issue be called?", "create an issue 'Login fails'")
    return [(Wish("create_issue", {"title": title, **arguments}), None) for title in titles]
