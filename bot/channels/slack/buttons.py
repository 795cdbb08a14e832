"""The buttons of a card: their labels, their questions before a press counts, and their values. Pure.

A button has an action id (``nod:`` and its verb) and a value (the proposal's id and round, which an edit
raises). An entry of the ⋯ menu has only a value: the verb and the value of a button. In addition to the verbs
of the core there are words such as `REVIEW`, which open a modal and are used like verbs here. On a card that
was cut, Approve opens "View all" first: no one approves what they could not read. The flag ``shows_all`` is
True if nothing of the card was cut.

A batch is several calls of one tool in one card, each of which is a row. A group is the single cards of one
answer, whose first card has buttons for all.
"""

from collections.abc import Iterator
from typing import NamedTuple

from bot.channels.slack import blocks
from bot.channels.slack.blocks import Block
from bot.domain.cards import Card
from bot.domain.plans import Plan
from bot.domain.verbs import (
    BUTTONS,
    CHOICES,
    CHOOSE_LABEL,
    DETAILS_LABEL,
    ROWS_LABEL,
    VIEW_ALL_LABEL,
    Look,
    Needs,
    Verb,
    make_label_with_reason,
)

# action ids, without ``nod:``, that are not verbs of the core
REVIEW = "review"  # opens "View all", whose submit approves; the button in place of Approve
VIEW = "view"  # opens "View all", too: from a menu, from App Home, or from a card that has ended
SEND_COMMAND = "command"  # sends the button's value as a command; in App Home
REVIEW_STEPS = "review_steps"  # opens "View all", whose submit approves a plan with its steps
DECLINE_REASON = "decline_reason"  # opens the modal for a reason, whose submit declines
SHOW_CONTEXT = "context"  # opens the messages that led to the proposal
CHOOSE_ROWS = "choose"  # opens the rows of a batch, to pick some
MORE = "nod:more"  # the full action id of the ⋯ menu

_BATCH_QUESTIONS = {
    Verb.DECLINE_ALL: "None of these rows runs.",
    Verb.STOP_ALL: "Rows that are running finish. The rest is withdrawn.",
    Verb.UNDO_ALL: "",
}
"""The question before a press counts for all rows of a batch."""
_VERBS_THAT_ASK_TEXT = frozenset(
    verb for verb in Verb if BUTTONS[verb].needs is Needs.TEXT and not BUTTONS[verb].is_in_menu
)
"""Verbs with a button on the card that asks for a text, such as what to change."""
_NOT_IN_CARD_MENU = frozenset({*CHOICES, *_VERBS_THAT_ASK_TEXT, Verb.APPROVE_STEPS.value, REVIEW_STEPS})
"""Verbs with a button on the card, which the card's menu leaves out. In App Home they are in the menu."""
_NEVER_IN_MENU = frozenset({Verb.APPROVE, Verb.APPROVE_ALL, Verb.DECLINE})
"""Verbs that neither menu has: they have buttons of their own."""


class _ResolvedButton(NamedTuple):
    """The button of a verb on a resolved card."""

    style: str  # Slack's name; empty for a plain button
    question: str  # before a press counts; empty for the verb's own question, if it has one


_RESOLVED_BUTTONS = {
    Verb.RETRY: _ResolvedButton(
        "", "It runs again exactly as shown. Check first whether it already happened."
    ),
    Verb.STOP: _ResolvedButton("danger", "What it has done so far stays done."),
    Verb.UNDO: _ResolvedButton("", ""),
}


class OverflowEntry(NamedTuple):
    """An entry of a ⋯ menu."""

    label: str
    value: str  # the verb, a colon and the value of a button

    @property
    def verb(self) -> str:
        return self.value.partition(":")[0]


def action_id(verb: str) -> str:
    """Return the action id of a verb, or of one of the constants above."""
    return f"nod:{verb}"


def value_of(card: Card) -> str:
    return f"{card.proposal_id}:{card.round}"


def parse_value(value: str) -> tuple[str, int]:
    """Parse a button's value into proposal id and round. Raises ValueError if Nod did not make it."""
    proposal_id, colon, round_ = value.rpartition(":")
    if not (colon and proposal_id and round_.isdecimal()):
        raise ValueError("this button is not one of ours")
    return proposal_id, int(round_)


def make_pending_buttons(card: Card, *, shows_all: bool) -> list[Block]:
    """Return the buttons of an open card, the ⋯ menu last."""
    value = value_of(card)
    if card.batch:
        return list(_make_batch_buttons(card, value, shows_all=shows_all))
    buttons = []
    # FOR_REAL runs a call that was only tried; its button opens a modal that shows everything first
    if Verb.FOR_REAL in card.verbs and Verb.APPROVE not in card.verbs:
        style = "danger" if card.button(Verb.FOR_REAL).look is Look.DANGER else ""
        buttons.append(_make_button(card, Verb.FOR_REAL, value, style))
    buttons += [_make_button(card, verb, value) for verb in CHOICES if verb in card.verbs]
    if Verb.APPROVE in card.verbs:
        buttons.append(_make_approve_button(card, value, shows_all=shows_all))
    if Verb.DECLINE in card.verbs:
        buttons.append(_make_button(card, Verb.DECLINE, value))
    buttons += [_make_button(card, verb, value) for verb in card.verbs if verb in _VERBS_THAT_ASK_TEXT]
    if Verb.APPROVE_STEPS in card.verbs:
        label, verb = choose_steps_button(card, shows_all=shows_all)
        buttons.append(blocks.button(label, action_id(verb), value, warning=describe_steps(card)))
    if Verb.EDIT in card.verbs:
        buttons.append(_make_button(card, Verb.EDIT, value))
    entries = _list_menu_entries(card, value, shows_all=shows_all)
    if entries:
        buttons.append(blocks.overflow(MORE, entries))
    return buttons


def _list_menu_entries(card: Card, value: str, *, shows_all: bool) -> list[OverflowEntry]:
    """Return the entries of a card's ⋯ menu: the verbs without a button, and *View all*.

    *View all* is left out if Approve opens it. Slack limits the number of entries: the last verbs are left
    out.
    """
    all_entries = list_entries(card, shows_all=shows_all)
    entries = [entry for entry in all_entries if entry.verb not in _NOT_IN_CARD_MENU]
    views = [OverflowEntry(VIEW_ALL_LABEL, f"{VIEW}:{value}")]
    if Verb.APPROVE in card.verbs and not shows_all:
        views = []
    room = blocks.MAX_OVERFLOW_OPTIONS - len(views)
    if len(entries) > room:  # *Extend* is left out first, since a command does the same
        entries = [entry for entry in entries if entry.verb != Verb.EXTEND]
    return [*entries[:room], *views]


def _make_approve_button(card: Card, value: str, *, shows_all: bool) -> Block:
    """Return the button that approves; on a card that was cut it opens "View all"."""
    approve = card.button(Verb.APPROVE)
    style = "danger" if approve.look is Look.DANGER else "primary"
    if shows_all:
        return blocks.button(
            approve.label, action_id(Verb.APPROVE), value, style, question=approve.confirmation
        )
    label = "View all, then answer" if card.kind.is_answer else "View all, then approve"
    if card.kind.has_steps:
        label = f"{label} plan"
    return blocks.button(label, action_id(REVIEW), value, style)


def _make_batch_buttons(card: Card, value: str, *, shows_all: bool) -> Iterator[Block]:
    if Verb.APPROVE_ALL in card.verbs:
        label = card.button(Verb.APPROVE_ALL).label if shows_all else "View all, then approve"
        yield blocks.button(label, action_id(Verb.APPROVE_ALL), value, "primary")
    if Verb.APPROVE_ALL in card.verbs or Verb.DECLINE_ALL in card.verbs:
        yield blocks.button(CHOOSE_LABEL, action_id(CHOOSE_ROWS), value)
    for verb in (Verb.DECLINE_ALL, Verb.STOP_ALL):
        if verb in card.verbs:
            style = "danger" if verb is Verb.STOP_ALL else ""
            yield _make_button(card, verb, value, style, _BATCH_QUESTIONS[verb])
    yield blocks.overflow(MORE, [(VIEW_ALL_LABEL, f"{VIEW}:{value}")])


def _make_button(card: Card, verb: Verb, value: str, style: str = "", warning: str = "") -> Block:
    """Return the button of a verb. ``warning`` takes the place of the question that the verb has."""
    button = card.button(verb)
    question = None if warning else button.confirmation
    return blocks.button(button.label, action_id(verb), value, style, warning, question)


def list_entries(card: Card, *, shows_all: bool) -> Iterator[OverflowEntry]:
    """Yield the entries for the ⋯ menu of a card or of App Home, without *View all*.

    Callers leave out the entries of verbs that have a button there.
    """
    value = value_of(card)
    if Verb.DECLINE in card.verbs and card.button(Verb.DECLINE).needs is Needs.REASON:
        label = make_label_with_reason(card.button(Verb.DECLINE))
        yield OverflowEntry(label, f"{DECLINE_REASON}:{value}")
    yield from _list_verb_entries(card, value, Needs.TEXT)
    if Verb.APPROVE_STEPS in card.verbs:
        label, verb = choose_steps_button(card, shows_all=shows_all)
        yield OverflowEntry(label, f"{verb}:{value}")
    if Verb.FOR_REAL in card.verbs and Verb.APPROVE in card.verbs:
        yield OverflowEntry(card.button(Verb.FOR_REAL).label, f"{Verb.FOR_REAL}:{value}")
    if Verb.SIMILAR in card.verbs:
        label = card.button(Verb.SIMILAR).label if shows_all else "View all, then approve similar"
        yield OverflowEntry(label, f"{Verb.SIMILAR}:{value}")
    yield from _list_verb_entries(card, value, Needs.NOTHING)


def _list_verb_entries(card: Card, value: str, needs: Needs) -> Iterator[OverflowEntry]:
    for verb in card.verbs:
        if verb not in _NEVER_IN_MENU and card.button(verb).needs is needs:
            yield OverflowEntry(card.button(verb).label, f"{verb}:{value}")


def choose_steps_button(card: Card, *, shows_all: bool) -> tuple[str, str]:
    """Return the label and the verb of the button that approves a plan with its steps."""
    if shows_all:
        return card.button(Verb.APPROVE_STEPS).label, Verb.APPROVE_STEPS
    return "View all, then approve plan and its steps", REVIEW_STEPS


def describe_steps(card: Card) -> str:
    """Describe in a sentence or two the effect of approving a plan with its steps."""
    names = ", ".join(Plan.of(card.arguments).tools) or "no tools"
    return (
        f"{card.teammate or 'The teammate'} may then use what its steps name without asking, until it ends: "
        f"{names}. What cannot be undone still asks."
    )


def make_resolved_buttons(card: Card) -> list[Block]:
    """Return the buttons of a card that was decided, such as *Retry* and *Undo*."""
    value = value_of(card)
    buttons = []
    if card.batch is None:
        for verb, button in _RESOLVED_BUTTONS.items():
            if verb in card.verbs:
                buttons.append(_make_button(card, verb, value, button.style, button.question))
        return buttons
    verbs = [verb for verb in card.verbs if verb in _BATCH_QUESTIONS]
    buttons += [_make_button(card, verb, value, warning=_BATCH_QUESTIONS[verb]) for verb in verbs]
    if card.batch.has_buttons:
        buttons.append(blocks.button(ROWS_LABEL, action_id(CHOOSE_ROWS), value))
    return buttons


def make_details_button(card: Card) -> Block:
    return blocks.button(DETAILS_LABEL, action_id(VIEW), value_of(card))


def make_group_buttons(card: Card) -> list[Block]:
    """Return the buttons that decide all open changes of an answer, above the first of its cards."""
    if card.group is None:
        return []
    value = f"{card.proposal_id}:{card.group.round}"  # an edit of any of them changes the group's round
    question = f"This is for all {card.group.open_count} open changes of this answer; each has its own card."
    buttons = []
    if Verb.APPROVE_ALL in card.verbs:
        approve_question = question
        irreversible_count = card.group.irreversible_count
        if irreversible_count:
            which = "it" if irreversible_count == 1 else "each"
            approve_question += f" {irreversible_count} can't be undone: approve {which} there."
        approve_question += " What a card could not show in full is shown to you first."
        buttons.append(_make_button(card, Verb.APPROVE_ALL, value, "primary", approve_question))
    if Verb.DECLINE_ALL in card.verbs:
        buttons.append(_make_button(card, Verb.DECLINE_ALL, value, warning=question))
    return buttons
