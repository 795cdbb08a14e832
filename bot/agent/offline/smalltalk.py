"""What the offline model answers when no one asks for an issue: one table, and examples to press. Pure."""

import re
from difflib import SequenceMatcher

from bot.agent.offline.wishes import DemoAnswer

EXAMPLES = (
    "show open issues",
    "create an issue 'Login fails' and assign it to Sam with high priority",
    "close #2 and #4, and assign #3 to Ana",
    "what is the most urgent issue?",
    "who has the most work?",
    "what is Ana working on?",
    "which issues have no owner?",
    "how many issues are open?",
    "how many bugs do we have?",
    "show #3",
    "who has #1?",
    "search for login",
    "make #3 urgent",
    "rename #3 to 'Better title'",
    "label #3 bug",
    "comment on #2: fixed in 1.4",
    "assign #4 to Ben",
    "unassign #1",
    "reopen #6",
    "delete #5",
    "what changed last?",
    "what is waiting for my approval?",
    "what did I decide?",
    "undo that",
    "what can you do?",
)
_FIRST = (EXAMPLES[0], EXAMPLES[1], EXAMPLES[2])
ONLY = " I'm a scripted demo and only know the issue tracker."
_WHAT = "I'm a scripted demo with no language model behind me."
_ASKS = "Looking things up happens right away. Every change asks first, with a card you approve or decline."
_SETUP = "Set `OPENAI_API_KEY` or `OPENAI_BASE_URL` to use a real model."
HELP = DemoAnswer(
    f"{_WHAT} I read about thirty kinds of English sentences about the issue tracker. {_ASKS} {_SETUP}",
    _FIRST,
)

_GREET = r"(?:hi|hello|hey|yo|howdy|good (?:morning|afternoon|evening|day))"
_HOW = r"(?:how (?:is|'s) (?:it going|everything|life)|how are (?:you|things)|what 's up)"
_GREETING = (
    rf"/?start|{_GREET}(?: (?:there|nod|all|team|again|everyone|,|is any ?(?:body|one) (?:there|here|home)))*"
    rf"(?:[ ,]*{_HOW})?(?: (?:doing|today|you))*|{_HOW}(?: (?:doing|today|you|nod))*"
    r"|is any ?(?:body|one) (?:there|here|home)"
)
_THANKS = (
    r"(?:no |many |ok ,? ?)?(?:thanks|thank you|thx|cheers|great|perfect|cool|nice|awesome|ok|okay|good job)"
    r"(?: (?:a lot|so much|very much|nod|then|again|,|that (?:is|'s|was) \w+))*|that (?:is|'s) (?:all|"
    r"it|great)"
)
_ABLE = (
    r"help|(?:what|which things) (?:can|could|do) you (?:do|understand|know)(?: for (?:me|us))?"
    r"|how (?:does (?:this|it) work|do you work|can you help(?: me)?)"
)
_BEFORE = r"before you (?:do|change|run|act)(?: it| that| them| anything| something)?"
_ASKING = (
    rf"(?:what|when) (?:do|will|would) you ask(?: (?:about|me|for|first))*(?: {_BEFORE})?"
    r"|(?:what|which (?:things|changes)) needs? (?:my |an? )?approval"
    rf"|do you ask(?: me)? {_BEFORE}"
)
_WHO = (
    r"(?:who|what) are you|are you (?:a (?:bot|robot|human|person|real person)|an? ai|real)"
    r"|what (?:is|'s) (?:nod|your name)|which model (?:is this|are you)"
)
_NEVER_MIND = (
    r"(?:never ?mind|forget (?:it|that|about it)|cancel(?: (?:it|that))?|stop|no|nope|nothing|leave it)"
    r"(?: ,? ?(?:then|thanks|thank you))?"
)
_TABLE: tuple[tuple[str, DemoAnswer], ...] = (
    (_GREETING, DemoAnswer("Hello. I'm a scripted demo: tell me what to do with the issues.", _FIRST)),
    (_THANKS, DemoAnswer("You're welcome.")),
    (_ABLE, HELP),
    (_ASKING, DemoAnswer(f"{_ASKS} Nothing runs on a chat message alone.", ("close #2",))),
    (_WHO, DemoAnswer(f"I'm Nod, in a scripted demo: no language model is behind me. {_SETUP}", _FIRST)),
    (_NEVER_MIND, DemoAnswer("All right. I've done nothing more. An open card stays until you decline it.")),
)
_TALK = tuple((re.compile(pattern, re.IGNORECASE), said) for pattern, said in _TABLE)

_GERMAN = "der die das ein eine einen und ist nicht bitte erstelle schließe zeige mir kaputt welche"
_FRENCH = "le la les un une et est pas crée créer ferme montre moi quels quelles avec cassée"
_SPANISH = "el los las una y es por favor crea cierra muestra muéstrame qué está abiertas cuáles"
_TONGUES: tuple[tuple[frozenset[str], str], ...] = (
    (
        frozenset(_GERMAN.split()),
        "Ich bin eine Demo mit festen Regeln und lese nur Englisch. Versuchen Sie es zum Beispiel so:",
    ),
    (
        frozenset(_FRENCH.split()),
        "Je suis une démo à règles fixes et je ne lis que l'anglais. Essayez par exemple :",
    ),
    (
        frozenset(_SPANISH.split()),
        "Soy una demo con reglas fijas y solo leo inglés. Pruebe, por ejemplo:",
    ),
)


def answer(clause: str) -> DemoAnswer | None:
    """What to say to a clause that is only talk; None when it is not."""
    plain = re.sub(r"^(?:(?:ok|okay|so|and|please|nod|hey) (?:, )?)+(?=\w)", "", clause, flags=re.IGNORECASE)
    return next((s for p, s in _TALK if p.fullmatch(clause) or p.fullmatch(plain)), None)


def foreign(message: str) -> DemoAnswer | None:
    """A word in their own language to people who wrote in one that is not read here."""
    words = set(re.findall(r"\w+", message.lower()))
    told = next((told for marks, told in _TONGUES if len(words & marks) > 1), None)
    return DemoAnswer(f"“{message.strip()[:300]}”: {told}", _FIRST) if told else None


def nearest(clause: str) -> tuple[str, ...]:
    """Three sentences that are understood, those most like this one first."""
    said = clause[:80].lower()
    rated = sorted(EXAMPLES, key=lambda e: -SequenceMatcher(None, said, e.lower()).ratio())
    return tuple(rated[:3])
