"""The button of a verb on the card of one proposal: its label, its emphasis, and the question before it.

`bot.domain.verbs.BUTTONS` has the usual button of each verb, and a kind of proposal may have its own. This
module fits the button to one card: "Approve" becomes "Approve deletion", "Extend" becomes "Extend 24 h".
`Card.button` calls `make_button`, so every channel has the same buttons.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from bot.domain.proposals import ProposalKind
from bot.domain.risks import Level
from bot.domain.times import format_span
from bot.domain.verbs import (
    BUTTONS,
    CHOICES,
    MAY_NOT_BE_UNDOABLE_TEXT,
    RETRY_CHECK,
    Button,
    Confirmation,
    Look,
    Needs,
    Verb,
)

_MIN_NAMED_WAIT = timedelta(minutes=1)  # the shortest time that the label of Extend names
_DELETING_WORDS = ("delete ", "remove ", "drop ", "erase ", "purge ")  # beginnings of titles


def make_button(
    verb: Verb,
    *,
    kind: ProposalKind,
    level: Level,
    title: str,
    fillable: bool = True,
    extension: timedelta | None = None,
    count: int | None = None,
    irreversible_count: int = 0,
    undo_effect: str = "",
    undo_sentence: str = "",
    choices: Sequence[str] = (),
    may_have_happened: bool = False,
) -> Button:
    """Return the button of a verb on a card.

    - ``title``: the title of the card, which is asked as a question before what can't be undone
    - ``fillable``: the arguments have fields; a question without any has nothing to fill in
    - ``extension``: the time that the proposal waits when it is extended
    - ``count``: the number of open proposals in the group, for the buttons that decide all of them
    - ``irreversible_count``: the number of these that can't be undone, so that "Approve all" leaves them out
    - ``undo_effect``: what the button Undo would do, in words
    - ``undo_sentence``: for a destructive call that can be undone, the sentence that says so; else empty
    - ``choices``: the answers that a question offers
    - ``may_have_happened``: the call failed, and may have happened all the same
    """
    button = _warn_of_real_run(kind.buttons.get(verb, BUTTONS[verb]), level)
    match verb:
        case Verb.APPROVE if kind.is_answer:
            if fillable:
                return button
            return replace(button, label="Done, continue")
        case Verb.APPROVE if level is Level.DESTRUCTIVE:
            sure = Confirmation(question=f"{title.rstrip('.?')}?", yes=button.label, no="Not now")
            sure = replace(sure, warning=undo_sentence or sure.warning)
            if title.lower().startswith(_DELETING_WORDS):
                first_word = title.split(maxsplit=1)[0]  # such as "Delete"
                button = replace(button, label="Approve deletion")
                sure = replace(sure, yes=first_word, no="Keep")
            return replace(button, look=Look.DANGER, needs=Needs.CONFIRM, confirmation=sure)
        case Verb.UNDO if undo_effect:
            sure = Confirmation(
                question="Undo it?", yes="Undo", no="Keep it", warning=f"Undoing does this: {undo_effect}."
            )
            return replace(button, confirmation=sure)
        case Verb.RETRY if may_have_happened:
            return replace(button, confirmation=RETRY_CHECK)
        case Verb.RETRY if level is Level.DESTRUCTIVE:
            sure = Confirmation(question=f"{title.rstrip('.?')}?", yes=button.label, no="Not now")
            return replace(button, confirmation=sure)
        case _ if verb in CHOICES[: len(choices)]:
            return replace(button, label=choices[CHOICES.index(verb)])
        case Verb.EXTEND if extension and extension >= _MIN_NAMED_WAIT:
            return replace(button, label=f"Extend {format_span(extension)}")
        case Verb.APPROVE_ALL if count is not None and irreversible_count:
            return replace(button, label=f"Approve {count - irreversible_count} of {count}")
        case Verb.APPROVE_ALL | Verb.DECLINE_ALL if count is not None:
            return replace(button, label=f"{button.label} {count}")
    return button


def _warn_of_real_run(button: Button, level: Level) -> Button:
    """Return the button. The one of "Run it for real" says for certain if the call can't be undone.

    That takes the place of `MAY_NOT_BE_UNDOABLE_TEXT` in the question of `BUTTONS`.
    """
    if button.verb is not Verb.FOR_REAL or button.confirmation is None or level is not Level.DESTRUCTIVE:
        return button
    sure = replace(
        button.confirmation,
        warning=button.confirmation.warning.replace(MAY_NOT_BE_UNDOABLE_TEXT, "This can't be undone."),
    )
    return replace(button, look=Look.DANGER, confirmation=sure)
