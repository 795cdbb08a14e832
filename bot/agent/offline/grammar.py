"""English about issues, read without a model: a message in, wishes out. Pure.

``sentence.py`` cuts a message into clauses. The first of `_RULES` that fits a clause reads it
(``changes.py``, ``questions.py``): it takes the verb and then what the verb may have, such as a priority, a
name, labels or the issues meant (``targets.py``). What no one took is said, so nothing is dropped; a clause
that holds a condition is never acted on. ``plan.py`` turns the wishes into calls.
"""

import re

from bot.agent.offline import changes, questions, smalltalk
from bot.agent.offline.pattern import HEDGE, PRIORITIES, person, phrase, short
from bot.agent.offline.sentence import LONGEST, Clause, clauses
from bot.agent.offline.targets import targets_in
from bot.agent.offline.wishes import DemoAnswer, Reading, Wish

_TAIL = phrase("(, )?(please|pleas|pls|plz|thanks|thank you|for me)$")
_POLITE = (
    "(hey|hi|hello|ok|okay|yes|@?nod|please|pls|now|so|then|also|and|just|could|can|would|will|you|"
    "let 's|let's"
    "|i'd like( you)? to|i would like( you)? to|(i|we) (want|need)( you)? to|go ahead and|kindly|,)"
)
_LEAD = phrase(rf"{_POLITE}( {_POLITE})*(?= \S)")
_VALUES = re.compile(rf"\d|\b(?:or|{'|'.join(PRIORITIES)}|open|closed)\b", re.IGNORECASE)
_ANY = re.compile("")
_SET = (
    r"set|change|update|make|raise|lower|bump|put|move|mark|give|treat|hand|pass|turn|increase|decrease"
    r"|(re-?)?prioriti[sz]e"
)
_RULES: tuple[tuple[re.Pattern[str], changes.Reader], ...] = (
    (phrase("(do not|don't|dont|never)"), changes.refuse),
    (phrase("(undo|revert|roll back|take back)"), changes.undo),
    (phrase("(approve|decline|reject|confirm|i approve|approved)"), changes.press),
    (
        phrase(
            r"(ping|notify|email|e-mail|message|remind|send|call|schedule|tell(?! (me|us)(?!\S))|inform|"
            "mail|invite)"
        ),
        changes.cannot,
    ),
    (phrase("(comment|reply|note)"), changes.comment),
    (
        phrase(
            r"(add|post|leave|write|put)(?= ((an?|the|another) )?(comment|note|reply)| \x02 (as|to|"
            "on) )"
        ),
        changes.comment,
    ),
    (phrase("(add)(?= .*(labels?|tags?))"), changes.add_label),
    (phrase("(remove|drop|take|delete)(?= .*(labels?|tags?))( away)?"), changes.drop_label),
    (phrase("(label|tag)"), changes.label),
    (phrase("(un-?assign)"), changes.unassign),
    (
        phrase("(remove|drop|clear|take)(?= (the )?(assignee|owner)| .+ off | (everyone|NAMES) from )"),
        changes.unassign,
    ),
    (phrase("(rename|retitle)"), changes.rename),
    (phrase(r"(re-?open|open(?= ((issue|ticket|bug|number) )?#?\d|.* again))"), changes.reopen),
    (phrase("(close|resolve|finish|complete)( out| off)?"), changes.close),
    (phrase("(delete|remove|erase|destroy|drop|trash)"), changes.delete),
    (phrase("(re-?)?assign"), changes.assign),
    (phrase(rf"({_SET})(?! me\b)"), changes.change),
    (_ANY, changes.done),
    (_ANY, changes.must),
    (questions.SEARCH, questions.searching),
    (questions.EXISTS, questions.existing),
    (questions.SHOW, questions.question),
    (_ANY, questions.bare_question),
    (_ANY, questions.trouble),
)
_NAME_FIRST = phrase(
    r"(assign NAMES to(?= (#|\d|issue |ticket |it$|the ([\w-]+ ){0,4}NOUN))|(let |have |"
    r"put )?(?P<who>(?-i:[A-Z])[\w.-]*) (to )?(take over|takes over|take|takes|handle|handles|do|"
    r"on)(?= (#|\d|issue |ticket |it$|the |every|all )))"
)


def parse(message: str, *, speaker: str = "", it: int | None = None) -> list[Wish | DemoAnswer]:
    """Read a message. ``it`` is the number a pronoun means at its start."""
    if len(message) > LONGEST:
        return [
            DemoAnswer(f"That is too long for me: I read at most {LONGEST:,} characters. Please split it.")
        ]
    reading = Reading(it)
    lost: list[str] = []
    read = 0
    for clause in clauses(message):
        if talk := smalltalk.answer(clause.text):
            reading.say(talk.text, *talk.chips)
            read += 1
        elif _read(clause, reading, speaker):
            read += 1
        else:
            reading.forget()
            lost.append(clause.said)
    if lost and not read and (told := smalltalk.foreign(message)):
        return [told]
    if lost:
        quoted = " and ".join(f"“{short(each)}”" for each in lost)
        demo = "" if read else f"{smalltalk.ONLY} Try one:"
        reading.say(f"I didn't understand {quoted}.{demo}", *smalltalk.nearest(lost[0]))
    return reading.wishes


def _read(clause: Clause, reading: Reading, speaker: str) -> bool:
    """Let the first rule that fits read the clause. False: none does."""
    while clause.ends(_TAIL):
        pass
    clause.begins(_LEAD)
    reading.clause = short(clause.said)
    read = _first(clause, speaker)
    if not read:
        return False
    if isinstance(read, DemoAnswer):
        reading.say(read.text, *read.chips)
    elif unsafe := [each for each in clause.left() if _unsafe(each, read[0][0])]:
        reading.say(f"I did nothing about “{short(clause.said)}”: I can't follow “{short(unsafe[0])}”.")
        return True
    elif read[0][0].tool == "create_issue":
        reading.create([wish for wish, _ in read])
    else:
        for wish, targets in read:
            reading.take(wish, targets)
    _finish(clause, reading)
    return True


def _unsafe(left: str, wish: Wish) -> bool:
    """Whether what is left out may turn the meaning: a condition, or a value where an issue changes."""
    if HEDGE.search(left) or wish.tool == "delete_issue":
        return True
    return not wish.looks and wish.tool != "create_issue" and _VALUES.search(left) is not None


def _first(clause: Clause, speaker: str) -> list[changes.Act] | DemoAnswer | None:
    whole = clause.text
    if (head := clause.begins(changes.NEW)) is not None:
        return changes.create(clause, speaker, head)
    if (head := clause.begins(_NAME_FIRST)) is not None:
        name = person(head.get("name") or head["who"], speaker)
        return [(Wish("update_issue", {"assignee": name}), targets_in(clause, speaker, plain=True))]
    for pattern, rule in _RULES:
        clause.text = whole
        clause.corrected.clear()
        clause.notes.clear()
        if clause.begins(pattern) is not None and (read := rule(clause, speaker)):
            return read
    return None


def _finish(clause: Clause, reading: Reading) -> None:
    """Say which mistyped word was read as which, and what was left out."""
    for raw, meant in clause.corrected.items():
        reading.say(f"I read “{raw}” as “{meant}”.")
    for note in clause.notes:
        reading.say(note)
    if left := clause.left():
        quoted = " and ".join(f"“{short(each)}”" for each in left)
        changed = reading.changed
        chips = (f"comment on #{changed[0]}: {short(left[0])}",) if len(changed) == 1 else ()
        reading.say(f"I left out {quoted}.", *chips)
