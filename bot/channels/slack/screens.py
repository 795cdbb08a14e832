"""Modals, Slack's windows: the full content of a card, edit, decline, approve similar, confirmations. Pure.

A modal is a JSON object with blocks and a callback id, which says what its submit does; without a submit
button it can only be closed. It carries its subject, a `ModalSubject`, in ``private_metadata``, which the
submit brings back. ``presses.py`` opens modals and takes their submits. A review shows everything of one or
several cards; what a modal can't hold is in a file. A batch is several calls in one card, each of which is a
row. A grant lets similar calls run without asking.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from pydantic import Field, TypeAdapter

from bot.channels.card_text import row_sign
from bot.channels.markdown import clean
from bot.channels.slack import blocks, text
from bot.channels.slack.blocks import Block, RichLine, TextRun
from bot.channels.slack.buttons import SHOW_CONTEXT, value_of
from bot.channels.slack.change_blocks import render_batch_rows
from bot.channels.slack.forms import make_inputs
from bot.domain.batch_picks import Picked, format_split_label
from bot.domain.call_text import format_call, number_texts
from bot.domain.cards import BatchRow, Card
from bot.domain.forms import describe_left_out, fields_of
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import BUTTONS, CONTEXT_LABEL, Verb

# callback ids of modals; that of a modal that asks for words is ``nod:`` and its verb
REVIEW = "nod:review"  # one card in full; its submit approves
REVIEW_STEPS = "nod:review_steps"  # a plan; its submit approves the plan with its steps
REVIEW_ALL = "nod:review_all"  # several cards; its submit approves all
REVIEW_REAL = "nod:review_real"  # what a trial did; its submit lets the call itself run
EDIT = "nod:edit"
SIMILAR = "nod:similar"  # a grant
CHOOSE = "nod:choose"  # the rows of a batch, to pick some
CONFIRM = "nod:sure"  # the second step of CHOOSE, which confirms
ROW = "nod:row"  # no callback id, but the action id of the menu that opens one row of a batch by itself
# block ids of inputs
ROWS = "rows"  # the beginning of the id of a block of checkboxes: the position of its first row follows
OTHERS = "others"  # the choice of what becomes of the rows that are not ticked
AFTERWARDS = "afterwards"  # the choice of what follows an edit
REASON = "reason"  # a reason, or other words that a verb needs
SCOPE = "rung"  # the scope of a grant
DURATION = "lasting"  # its duration
AUDIENCE = "reach"  # its audience
# values of options
DECLINE_OTHERS = "decline"  # in OTHERS
APPROVE_EDITED = "approve"  # in AFTERWARDS
ASK_AGAIN = "ask"  # in AFTERWARDS

_BLOCK_UNITS = 2900  # the text of one block
_MAX_INPUT_CHARS = 2000
_OTHER_BLOCKS = 15  # the blocks of a modal that its text leaves for buttons, inputs and notes
_MAX_VIEW_BYTES = 200_000  # the modal as JSON; Slack takes 250,000
_MAX_SCOPE_UNITS = 2000  # the words of a grant's scope; a scope with longer words is not offered
_MAX_TITLE_UNITS = 300
_MAX_TITLES_UNITS = 1000  # the titles of all approved or of all declined rows
_ROWS_PER_CHECKBOXES = 10  # Slack's limit of checkboxes in one element
_ROWS_UNITS = 12_000  # room for the rows of one element


@dataclass(frozen=True, slots=True)
class ModalSubject:
    """The subject of a modal: its proposal in the shown round, and the place it was opened from."""

    proposal_id: Annotated[str, Field(alias="proposal")]  # the key in modals that are open during an upgrade
    round: int
    address: str = ""  # the key of the place's address; empty in App Home
    ref: str = ""  # the reference of the pressed card; empty in App Home
    picked: str = ""  # the rows of a batch to approve, as `Picked` packs them
    declines: bool = False  # True: the rows that are not picked are declined

    def pack(self) -> str:
        return _SUBJECT.dump_json(self, by_alias=True, exclude_defaults=True).decode()

    @staticmethod
    def unpack(metadata: str) -> "ModalSubject":
        """Read ``private_metadata``. Raises ValueError if it is not Nod's."""
        return _SUBJECT.validate_json(metadata)


_SUBJECT = TypeAdapter(ModalSubject)


@dataclass(frozen=True, slots=True)
class Review:
    """A modal that shows everything. ``file`` has the full text if the modal is too small; else empty."""

    view: Block
    file: str


def make_review(card: Card, subject: ModalSubject, *, may_approve: bool) -> Review:
    """Show the full change. Submitting approves it, if this person may and while it is open."""
    can_submit = may_approve and card.pending and Verb.APPROVE in card.verbs
    submit = card.button(Verb.APPROVE).label if can_submit else ""
    return _build_review(
        "Everything it does", _write_context_button(card), format_call(card), REVIEW, subject, submit
    )


def make_trial_review(card: Card, subject: ModalSubject) -> Review:
    """Show what a trial of the call did, in full. Submitting approves that the call itself runs."""
    question = card.button(Verb.FOR_REAL).confirmation
    above = [blocks.context(question.warning if question else "")]
    return _build_review(
        "Run it for real", above, format_call(card), REVIEW_REAL, subject, "Approve and run it"
    )


def make_plan_review(card: Card, subject: ModalSubject, text: str, *, may_approve: bool) -> Review:
    """Show a plan in full, below ``text`` on what its steps may do. Submitting approves both."""
    can_submit = may_approve and card.pending and Verb.APPROVE_STEPS in card.verbs
    above = [blocks.context(text), *_write_context_button(card)]
    submit = "Approve and allow" if can_submit else ""
    return _build_review("The plan and its steps", above, format_call(card), REVIEW_STEPS, subject, submit)


def make_group_review(cards: Sequence[Card], subject: ModalSubject, submit: str) -> Review:
    """Show several changes in full, one after the other. Submitting approves all that are open.

    ``submit``: the label of that button; empty for no button.
    """
    return _build_review(
        "Everything they do",
        _write_context_button(cards[0]),
        number_texts(cards),
        REVIEW_ALL,
        subject,
        submit,
    )


def _build_review(
    title: str, above: list[Block], text: str, callback_id: str, subject: ModalSubject, submit: str
) -> Review:
    """Return a modal with ``text`` in full, below the blocks ``above``.

    ``submit``: the label of the button that submits; empty for no button.
    """
    rendered = _render_text(text)
    return Review(_make_modal(title, [*above, *rendered.blocks], callback_id, subject, submit), rendered.file)


def _write_context_button(card: Card) -> list[Block]:
    """Return the button that shows the agent's turn before a card; nothing if people can't read the turn."""
    if card.has_context:
        return [blocks.actions(blocks.button(CONTEXT_LABEL, f"nod:{SHOW_CONTEXT}", value_of(card)))]
    return []


def make_context_modal(text: str, subject: ModalSubject) -> Block:
    """Show the messages that led to a card."""
    return _make_modal(CONTEXT_LABEL, _render_text(text).blocks, f"nod:{SHOW_CONTEXT}", subject)


def make_row_choice(card: Card, subject: ModalSubject) -> Review:
    """Show the rows of a batch with a checkbox for each that may be approved with others.

    The submit leads to `make_row_confirmation`.
    """
    rows = card.rows
    choosable = Picked.all_of(card).positions  # only of open rows that can be undone
    shown: list[Block] = []
    some_cut = False
    for start in range(0, len(rows), _ROWS_PER_CHECKBOXES):
        end = min(start + _ROWS_PER_CHECKBOXES, len(rows))
        lines, is_cut = render_batch_rows(rows[start:end], _ROWS_UNITS, start + 1)
        some_cut = some_cut or is_cut
        shown += blocks.rich(lines)
        options = []
        for position in range(start, end):
            if position in choosable:
                label = f"{position + 1}. {text.one_line(rows[position].about)}"
                options.append(blocks.option(label, str(position)))
        if options:
            boxes = {"type": "checkboxes", "options": options, "initial_options": options}
            label = f"Approve of {start + 1} to {end}"
            shown.append(blocks.input_block(f"{ROWS}{start}", label, boxes, optional=True))
    if choosable:
        others = [blocks.option("Leave them open", "open"), blocks.option("Decline them", DECLINE_OTHERS)]
        shown.append(_make_choice("The others", OTHERS, others))
    shown.append(blocks.actions(_make_row_menu(rows)))
    view = _make_modal("Choose", shown, CHOOSE, subject, "Next" if choosable else "")
    if len(json.dumps(view)) > _MAX_VIEW_BYTES:  # then only the checkboxes name the rows
        view["blocks"] = [block for block in shown if block["type"] != "rich_text"]
        some_cut = True
    return Review(view, format_call(card) if some_cut else "")


def _make_row_menu(rows: Sequence[BatchRow]) -> Block:
    options = []
    for number, row in enumerate(rows, 1):
        if row.has_buttons:
            label = f"{number}. {row_sign(row)}{text.one_line(row.about)}"
            options.append(blocks.option(label, value_of(row.card)))
    return {
        "type": "static_select",
        "action_id": ROW,
        "placeholder": blocks.plain("Look at one row", 60),
        "options": options,
    }


def make_row_confirmation(
    card: Card, subject: ModalSubject, approve: Sequence[Card], decline: Sequence[Card]
) -> Block:
    """Show how many rows are approved and which are declined. Submitting decides them."""
    label = format_split_label(len(approve), len(decline))
    lines = [RichLine((TextRun(f"{label}?", "bold"),))]
    for word, rows in (("Declined", decline), ("Approved", approve)):
        if rows:
            titles, _ = text.cut("; ".join(row.title for row in rows), _MAX_TITLES_UNITS)
            lines.append(RichLine((TextRun(f"{word}: ", "bold"), TextRun(titles))))
    return _make_modal(card.title, blocks.rich(lines), CONFIRM, subject, label)


def make_row_review(card: Card, subject: ModalSubject, *, may_approve: bool) -> Review:
    """Show one row of a batch by itself, with its other buttons."""
    shown = make_review(card, subject, may_approve=may_approve)
    value = value_of(card)
    buttons = []
    for verb in (Verb.EDIT, Verb.DECLINE, Verb.SIMILAR, Verb.RETRY, Verb.STOP, Verb.UNDO):
        if verb in card.verbs:
            button = card.button(verb)
            question = button.confirmation.warning if button.confirmation else ""
            buttons.append(blocks.button(button.label, f"nod:{verb}", value, warning=question))
    if buttons:
        shown.view["blocks"].insert(0, blocks.actions(*buttons))
    return shown


class _RenderedText(NamedTuple):
    """A text as blocks, and as the text of a file if the blocks can't hold all of it, else empty."""

    blocks: list[Block]
    file: str


def _render_text(content: str) -> _RenderedText:
    shown: list[Block] = []
    used_bytes = 0
    pieces = text.split_plain(content[:_MAX_VIEW_BYTES], _BLOCK_UNITS)  # the rest could never be shown
    for piece in pieces:
        block = blocks.rich([RichLine((TextRun(piece),), preformatted=True)])
        used_bytes += len(json.dumps(block))
        if used_bytes > _MAX_VIEW_BYTES or len(shown) > blocks.MAX_VIEW_BLOCKS - _OTHER_BLOCKS:
            break
        shown += block
    is_cut = len(shown) < len(pieces) or len(content) > _MAX_VIEW_BYTES
    if is_cut:
        note = "✂️ Even this window is too small. The whole text is in the file posted alongside the card."
        shown = [blocks.context(note), *shown, blocks.context(note)]
        return _RenderedText(shown, content)
    return _RenderedText(shown, "")


def list_fitting_scopes(scopes: Sequence[tuple[GrantScope, str]]) -> list[tuple[GrantScope, str]]:
    """Return the scopes of a grant, with their words, without those whose words don't fit a modal."""
    return [(scope, words) for scope, words in scopes if text.width(text.one_line(words)) <= _MAX_SCOPE_UNITS]


def make_grant_form(
    card: Card,
    subject: ModalSubject,
    scopes: Sequence[tuple[GrantScope, str]],
    audiences: Sequence[tuple[GrantAudience, str]],
    *,
    shows_change: bool,
) -> Review:
    """Make the form of a grant: its scope (which calls), its audience (whose calls, and where), its duration.

    ``scopes`` and ``audiences`` come narrowest first, with their words, and there is at least one of each.
    `list_fitting_scopes` returned the scopes. ``shows_change``: the full change is shown above the form.
    """
    change = _render_text(format_call(card)) if shows_change else _RenderedText([], "")
    labels = [f"{number}. {text.one_line(words)}" for number, (_, words) in enumerate(scopes, 1)]
    scope_options = [blocks.option(label, scope) for label, (scope, _) in zip(labels, scopes, strict=True)]
    audience_options = [blocks.option(_make_label(words), audience) for audience, words in audiences]
    durations = [blocks.option(duration.label, duration) for duration in GrantDuration]
    shown = [_render_subject(card), *change.blocks]
    if any(text.width(clean(label)) > blocks.MAX_OPTION_UNITS for label in labels):
        shown += blocks.rich(RichLine((TextRun(label),)) for label in labels)
    shown += [
        _make_choice("What may run without asking", SCOPE, scope_options),
        _make_choice("Whose requests, and where", AUDIENCE, audience_options),
        _make_choice("How long", DURATION, durations),
        blocks.context(
            "This approves the change now. Matching calls will then run without asking, each shown here "
            "as done, until this expires or an admin uses /approvals revoke."
        ),
    ]
    view = _make_modal("Approve similar", shown, SIMILAR, subject, "Approve and allow")
    return Review(view, change.file)


def _make_label(words: str) -> str:
    return text.cut(text.one_line(words[:1].upper() + words[1:]), blocks.MAX_OPTION_UNITS)[0]


def _make_choice(label: str, block_id: str, options: list[Block]) -> Block:
    element = {"type": "radio_buttons", "options": options, "initial_option": options[0]}
    return blocks.input_block(block_id, label, element)


def make_edit_form(
    card: Card, arguments: Mapping[str, Any], subject: ModalSubject, team: str, *, may_approve: bool = True
) -> Block:
    """Make a form from the tool's schema, filled with the current arguments."""
    is_question = card.kind.is_answer
    approve_label = "Send it" if is_question else "Approve as edited"
    ask_label = "Keep it and send later" if is_question else "Ask again, without approving"
    afterwards = [blocks.option(ask_label, ASK_AGAIN)]
    if may_approve:
        afterwards.insert(0, blocks.option(approve_label, APPROVE_EDITED))
    shown = [_render_subject(card), *make_inputs(fields_of(card.schema, arguments), team)]
    note = describe_left_out(card.schema, arguments)
    if note:
        shown.append(blocks.context(note))
    shown.append(_make_choice("Then", AFTERWARDS, afterwards))
    submit = "Approve as edited" if may_approve else "Ask again"
    if is_question:
        submit = "Send answer"
    return _make_modal(card.button(Verb.EDIT).label, shown, EDIT, subject, submit)


def make_words_form(card: Card, verb: Verb, subject: ModalSubject) -> Block:
    """Ask for the words of a press, such as a reason. Raises ValueError for a verb that needs no words."""
    button = card.button(verb)
    prompt = button.text_question
    if prompt is None:
        raise ValueError(f"{verb} asks for no words")
    element = {"type": "plain_text_input", "multiline": True, "max_length": _MAX_INPUT_CHARS}
    block = blocks.input_block(REASON, prompt.question, element, hint=blocks.plain(prompt.hint, 100))
    return _make_modal(button.label, [_render_subject(card), block], f"nod:{verb}", subject, button.label)


def _render_subject(card: Card) -> Block:
    title, _ = text.cut(text.one_line(card.title), _MAX_TITLE_UNITS)
    return blocks.context(title)


def find_words_verb(callback_id: str) -> Verb | None:
    """Return the verb of a modal made by `make_words_form`; None for any other modal."""
    name = callback_id.removeprefix("nod:")
    if name in set(Verb) and BUTTONS[Verb(name)].text_question:
        return Verb(name)
    return None


def make_result(title: str, words: str) -> Block:
    """Make the modal that tells the result of a submit."""
    return {
        "type": "modal",
        "title": blocks.plain(title, blocks.MAX_VIEW_TITLE_UNITS),
        "close": blocks.plain("Close", blocks.MAX_VIEW_TITLE_UNITS),
        "blocks": blocks.rich([RichLine((TextRun(text.cut(words, _BLOCK_UNITS)[0] or blocks.BLANK),))]),
    }


def _make_modal(
    title: str, shown: list[Block], callback_id: str, subject: ModalSubject, submit: str = ""
) -> Block:
    """Return a modal; without ``submit`` it can only be closed."""
    modal = {
        "type": "modal",
        "callback_id": callback_id,
        "private_metadata": subject.pack(),
        "title": blocks.plain(title, blocks.MAX_VIEW_TITLE_UNITS),
        "close": blocks.plain("Close", blocks.MAX_VIEW_TITLE_UNITS),
        "blocks": shown,
    }
    if submit:
        modal["submit"] = blocks.plain(submit, blocks.MAX_VIEW_TITLE_UNITS)
    return modal
