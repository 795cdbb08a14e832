"""Modals: the full content of a card, edit, decline, approve similar, and confirmations. Pure.

A modal carries in ``private_metadata`` what its submit is about; `ModalSubject` is that, typed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from bot.channels.card_text import row_sign
from bot.channels.markdown import clean
from bot.channels.slack import blocks, text
from bot.channels.slack import blocks as b
from bot.channels.slack.blocks import Block, ContextLine, Run
from bot.channels.slack.card import CONTEXT_SHOWN, batch_rows, value_of
from bot.channels.slack.forms import inputs
from bot.domain.batches import Picked, format_split_label
from bot.domain.cards import Card, number_texts, whole_text
from bot.domain.forms import fields_of, leaves_out
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import BUTTONS, CONTEXT, Verb

REVIEW = "nod:review"
EDIT = "nod:edit"
REVIEW_STEPS = "nod:review_steps"
SIMILAR = "nod:similar"
REVIEW_ALL = "nod:review_all"
CHOOSE = "nod:choose"
SURE = "nod:sure"  # the second step of choosing: how many, and which are declined
ROW = "nod:row"  # opens one row of a batch by itself
ROWS = "rows"  # and the place of the first of ten
OTHERS = "others"
DECLINE_OTHERS = "decline"
REVIEW_REAL = "nod:review_real"
REASON = "reason"
AFTERWARDS = "afterwards"
APPROVE_EDITED = "approve"
ASK_AGAIN = "ask"
RUNG = "rung"
LASTING = "lasting"
REACH = "reach"

_PIECE = 2900
_WORDS = 2000  # characters that a person may write
_BUDGET = 200_000  # bytes of JSON; Slack takes 250,000
_RUNG = 2000  # units; a permission that cannot be said in full is not offered
_TEN = 10  # rows for which Slack has checkboxes in one element
_ROOM = 12_000  # units for ten rows


@dataclass(frozen=True, slots=True)
class ModalSubject:
    """The subject of a modal: its proposal, and the place it was opened from.

    ``address`` is the key of that place, ``ref`` the card. Both are empty in App Home.
    """

    proposal_id: Annotated[str, Field(alias="proposal")]  # windows that are open at an upgrade say so
    round: int
    address: str = ""
    ref: str = ""
    picked: str = ""  # the rows of a batch to approve, as `Picked` packs them
    declines: bool = False  # the other rows

    def pack(self) -> str:
        return _SUBJECT.dump_json(self, by_alias=True, exclude_defaults=True).decode()

    @staticmethod
    def unpack(metadata: str) -> "ModalSubject":
        """Read ``private_metadata``; raises ValueError for what is not ours."""
        return _SUBJECT.validate_json(metadata)


_SUBJECT = TypeAdapter(ModalSubject)


@dataclass(frozen=True, slots=True)
class Review:
    """A modal that shows everything; ``file`` is all of it where it was too small, else empty."""

    view: Block
    file: str


def review(card: Card, subject: ModalSubject, *, may_approve: bool) -> Review:
    """Show everything of the change; submitting it approves, for one who may and while it is open."""
    may = may_approve and card.pending and Verb.APPROVE in card.verbs
    submit = card.button(Verb.APPROVE).label if may else ""
    return _review(
        "Everything it does", _write_context_button(card), whole_text(card), REVIEW, subject, submit
    )


def review_real(card: Card, subject: ModalSubject) -> Review:
    """Show everything that was tried; submitting it approves that the call runs for real."""
    sure = card.button(Verb.FOR_REAL).sure
    above = [b.context(sure.more if sure else "")]
    return _review("Run it for real", above, whole_text(card), REVIEW_REAL, subject, "Approve and run it")


def review_steps(card: Card, subject: ModalSubject, words: str, *, may_approve: bool) -> Review:
    """Show a whole plan and what its steps would be allowed; submitting it approves both."""
    may = may_approve and card.pending and Verb.APPROVE_STEPS in card.verbs
    above, submit = [b.context(words), *_write_context_button(card)], "Approve and allow" if may else ""
    return _review("The plan and its steps", above, whole_text(card), REVIEW_STEPS, subject, submit)


def review_all(cards: Sequence[Card], subject: ModalSubject, submit: str) -> Review:
    """Show everything of each open change of an answer; submitting it, where it may be, approves them all."""
    return _review(
        "Everything they do",
        _write_context_button(cards[0]),
        number_texts(cards),
        REVIEW_ALL,
        subject,
        submit,
    )


def _review(
    title: str, above: list[Block], words: str, callback_id: str, subject: ModalSubject, submit: str
) -> Review:
    shown, file = _everything(words)
    return Review(_modal(title, [*above, *shown], callback_id, subject, submit), file)


def _write_context_button(card: Card) -> list[Block]:
    if card.led:
        return [b.actions(b.button(CONTEXT, f"nod:{CONTEXT_SHOWN}", value_of(card)))]
    return []


def context(words: str, subject: ModalSubject) -> Block:
    """Show what led to a card."""
    return _modal(CONTEXT, _everything(words)[0], f"nod:{CONTEXT_SHOWN}", subject)


def choose(card: Card, subject: ModalSubject) -> Review:
    """Show the rows of a batch with a checkbox for each that may be approved with others."""
    rows = card.rows
    all_, shown, some_cut = Picked.all_of(card).places, list[Block](), False
    for at in range(0, len(rows), _TEN):
        lines, cut = batch_rows(rows[at : at + _TEN], _ROOM, at + 1)
        shown, some_cut = [*shown, *b.rich(lines)], some_cut or cut
        options = [
            b.option(f"{n + 1}. {text.link_text(rows[n].about)}", str(n))
            for n in range(at, at + _TEN)
            if n in all_
        ]
        if options:
            boxes = {"type": "checkboxes", "options": options, "initial_options": options}
            words = f"Approve of {at + 1} to {min(at + _TEN, len(rows))}"
            shown.append(b.input_block(f"{ROWS}{at}", words, boxes, optional=True))
    if all_:
        others = [b.option("Leave them open", "open"), b.option("Decline them", DECLINE_OTHERS)]
        shown.append(_choice("The others", OTHERS, others))
    named = [
        b.option(f"{n}. {row_sign(row)}{text.link_text(row.about)}", value_of(row.card))
        for n, row in enumerate(rows, 1)
        if row.offers
    ]
    one = {
        "type": "static_select",
        "action_id": ROW,
        "placeholder": b.plain("Look at one row", 60),
        "options": named,
    }
    shown.append(b.actions(one))
    view = _modal("Choose", shown, CHOOSE, subject, "Next" if all_ else "")
    if len(json.dumps(view)) > _BUDGET:
        view["blocks"] = [block for block in shown if block["type"] != "rich_text"]
        some_cut = True
    return Review(view, whole_text(card) if some_cut else "")


def sure(card: Card, subject: ModalSubject, approve: Sequence[Card], decline: Sequence[Card]) -> Block:
    """Say how many rows are approved and which are declined; submitting it decides."""
    lines = [ContextLine((Run(f"{format_split_label(len(approve), len(decline))}?", "bold"),))]
    for word, rows in (("Declined", decline), ("Approved", approve)):
        titles = "; ".join(row.title for row in rows)
        lines += [ContextLine((Run(f"{word}: ", "bold"), Run(text.cut(titles, 1000)[0])))] if rows else []
    return _modal(card.title, b.rich(lines), SURE, subject, format_split_label(len(approve), len(decline)))


def row(card: Card, subject: ModalSubject, *, may_approve: bool) -> Review:
    """Show one row of a batch by itself, with what else can be done with it."""
    shown = review(card, subject, may_approve=may_approve)
    value = value_of(card)
    offered = [
        b.button(pressed.label, f"nod:{verb}", value, confirm=pressed.sure.more if pressed.sure else "")
        for verb in (Verb.EDIT, Verb.DECLINE, Verb.SIMILAR, Verb.RETRY, Verb.STOP, Verb.UNDO)
        if verb in card.verbs and (pressed := card.button(verb))
    ]
    if offered:
        shown.view["blocks"].insert(0, b.actions(*offered))
    return shown


def _everything(whole: str) -> tuple[list[Block], str]:
    """Return blocks for a text, and the text itself if it exceeds a modal."""
    shown: list[Block] = []
    used = 0
    pieces = text.chunks(whole[:_BUDGET], _PIECE)  # more could never be shown
    for piece in pieces:
        block = b.rich([ContextLine((Run(piece),), preformatted=True)])
        used += len(json.dumps(block))
        if used > _BUDGET or len(shown) > blocks.BLOCKS_PER_VIEW - 15:
            break
        shown += block
    rest = len(shown) < len(pieces) or len(whole) > _BUDGET
    if rest:
        note = "✂️ Even this window is too small. The whole text is in the file posted alongside the card."
        shown = [b.context(note), *shown, b.context(note)]
    return shown, whole if rest else ""


def sayable(ladder: Sequence[tuple[GrantScope, str]]) -> list[tuple[GrantScope, str]]:
    """Keep the rungs whose words fit a modal in full."""
    return [(rung, words) for rung, words in ladder if text.width(text.link_text(words)) <= _RUNG]


def make_grant_form(
    card: Card,
    subject: ModalSubject,
    ladder: Sequence[tuple[GrantScope, str]],
    reaches: Sequence[tuple[GrantAudience, str]],
    *,
    read_all: bool,
) -> Review:
    """Offer what a grant may allow, whose and how long; ``read_all`` puts everything of the change above it.

    ``ladder`` has at least one rung, narrowest first, as `sayable` left it; ``reaches`` at least one reach.
    """
    shown, file = _everything(whole_text(card)) if read_all else ([], "")
    words = [f"{n}. {text.link_text(allowed)}" for n, (_, allowed) in enumerate(ladder, 1)]
    rungs = [b.option(label, rung) for label, (rung, _) in zip(words, ladder, strict=True)]
    shown = [_about(card), *shown]
    if any(text.width(clean(label)) > blocks.OPTION_TEXT for label in words):
        shown += b.rich(ContextLine((Run(label),)) for label in words)
    shown += [
        _choice("What may run without asking", RUNG, rungs),
        _choice("Whose requests, and where", REACH, [b.option(_short(said), each) for each, said in reaches]),
        _choice("How long", LASTING, [b.option(each.words, each) for each in GrantDuration]),
        b.context(
            "This approves the change now. Matching calls will then run without asking, each shown here "
            "as done, until this expires or an admin uses /approvals revoke."
        ),
    ]
    return Review(_modal("Approve similar", shown, SIMILAR, subject, "Approve and allow"), file)


def _short(words: str) -> str:
    return text.cut(text.link_text(words[:1].upper() + words[1:]), blocks.OPTION_TEXT)[0]


def _choice(label: str, block_id: str, options: list[Block]) -> Block:
    element = {"type": "radio_buttons", "options": options, "initial_option": options[0]}
    return b.input_block(block_id, label, element)


def make_edit_form(
    card: Card, arguments: Mapping[str, Any], subject: ModalSubject, team: str, *, may_approve: bool = True
) -> Block:
    """Give a form made from the tool's schema, filled with the arguments as they are."""
    question = card.kind.is_answer
    afterwards = [
        b.option("Send it" if question else "Approve as edited", APPROVE_EDITED),
        b.option("Keep it and send later" if question else "Ask again, without approving", ASK_AGAIN),
    ][0 if may_approve else 1 :]
    shown = [_about(card), *inputs(fields_of(card.schema, arguments), team)]
    words = leaves_out(card.schema, arguments)
    if words:
        shown.append(b.context(words))
    shown.append(_choice("Then", AFTERWARDS, afterwards))
    approves = "Approve as edited" if may_approve else "Ask again"
    submit = "Send answer" if question else approves
    return _modal(card.button(Verb.EDIT).label, shown, EDIT, subject, submit)


def make_words_form(card: Card, verb: Verb, subject: ModalSubject) -> Block:
    """Ask for the words that go with a press: who is told reads them, and a reason is shown on the card."""
    pressed = card.button(verb)
    asked = pressed.asks
    if asked is None:
        raise ValueError(f"{verb} asks for no words")
    element = {"type": "plain_text_input", "multiline": True, "max_length": _WORDS}
    block = b.input_block(REASON, asked.question, element, hint=b.plain(asked.hint, 100))
    return _modal(pressed.label, [_about(card), block], f"nod:{verb}", subject, pressed.label)


def _about(card: Card) -> Block:
    return b.context(text.cut(text.link_text(card.title), 300)[0])


def asks_words(callback_id: str) -> Verb | None:
    """Return the verb whose window of `words` this is; None for any other."""
    verb = callback_id.removeprefix("nod:")
    if verb in set(Verb) and BUTTONS[Verb(verb)].asks:
        return Verb(verb)
    return None


def last_word(title: str, words: str) -> Block:
    """Say what became of a submit, where closing the modal would not tell."""
    return {
        "type": "modal",
        "title": b.plain(title, blocks.VIEW_TITLE),
        "close": b.plain("Close", blocks.VIEW_TITLE),
        "blocks": b.rich([ContextLine((Run(text.cut(words, _PIECE)[0] or b.BLANK),))]),
    }


def _modal(
    title: str, shown: list[Block], callback_id: str, subject: ModalSubject, submit: str = ""
) -> Block:
    """Return a window; without ``submit`` it can only be closed."""
    return {
        "type": "modal",
        "callback_id": callback_id,
        "private_metadata": subject.pack(),
        "title": b.plain(title, blocks.VIEW_TITLE),
        "close": b.plain("Close", blocks.VIEW_TITLE),
        "blocks": shown,
    } | ({"submit": b.plain(submit, blocks.VIEW_TITLE)} if submit else {})
