"""The modals: everything of a change ("View all"), edit, decline with reason, and a last word. Pure.

A modal carries in ``private_metadata`` what its submit is about; `Subject` is that, typed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from bot.channels.slack import blocks as b
from bot.channels.slack import limits, text
from bot.channels.slack.blocks import Block, Line, Run
from bot.channels.slack.fields import fields_of
from bot.channels.slack.forms import VALUE, inputs
from bot.domain.cards import Action, Card, whole_text

REVIEW = "nod:review"
EDIT = "nod:edit"
DECLINE = "nod:decline"
REASON = "reason"
AFTERWARDS = "afterwards"
APPROVE_EDITED = "approve"
ASK_AGAIN = "ask"

_PIECE = 2900
_BUDGET = 200_000  # bytes of JSON, below limits.VIEW_BYTES


@dataclass(frozen=True, slots=True)
class Subject:
    """What a modal is about; ``address`` is the key of the address it was opened from, empty at home."""

    proposal_id: str
    round: int
    address: str = ""

    def pack(self) -> str:
        return json.dumps({"proposal": self.proposal_id, "round": self.round, "address": self.address})

    @classmethod
    def unpack(cls, metadata: str) -> Self:
        """Read ``private_metadata``; raises ValueError for what is not ours."""
        try:
            found = json.loads(metadata)
            return cls(str(found["proposal"]), int(found["round"]), str(found["address"]))
        except (KeyError, TypeError) as error:
            raise ValueError("this modal is not one of ours") from error


@dataclass(frozen=True, slots=True)
class Review:
    """The "View all" modal; ``rest`` says that even it was too small, and a file must carry the whole."""

    view: Block
    rest: bool


def review(card: Card, subject: Subject, *, may_approve: bool) -> Review:
    """Show everything of the change; submitting it approves, for one who may and while it is open."""
    shown: list[Block] = []
    used = 0
    pieces = text.chunks(whole_text(card), _PIECE)
    for piece in pieces:
        block = b.rich([Line((Run(piece),), preformatted=True)])
        used += len(json.dumps(block))
        if used > _BUDGET or len(shown) > limits.BLOCKS_PER_VIEW - 5:
            break
        shown += block
    rest = len(shown) < len(pieces)
    if rest:
        note = "✂️ Even this window is too small. The whole text is in the file posted beside the card."
        shown = [b.context(note), *shown, b.context(note)]
    view = _modal("Everything it does", shown, REVIEW, subject)
    if may_approve and card.pending and Action.APPROVE in card.actions:
        view["submit"] = b.plain("Approve", limits.VIEW_TITLE)
    return Review(view, rest)


def edit(card: Card, arguments: Mapping[str, Any], subject: Subject, team: str) -> Block:
    """Give a form made from the tool's schema, filled with the arguments as they are."""
    afterwards = [
        _option("Approve it as edited", APPROVE_EDITED),
        _option("Ask again with these values", ASK_AGAIN),
    ]
    title = text.cut(text.link_text(card.title), 300)[0]
    fields = fields_of(card.schema, arguments)
    shown = [b.context(title), *inputs(fields, team)]
    if len(arguments) > len(fields):
        shown.append(b.context("There are more fields than fit here; those stay as they are."))
    shown.append(
        {
            "type": "input",
            "block_id": AFTERWARDS,
            "label": b.plain("Then", 30),
            "element": {
                "type": "radio_buttons",
                "action_id": VALUE,
                "options": afterwards,
                "initial_option": afterwards[0],
            },
        }
    )
    view = _modal("Edit before it runs", shown, EDIT, subject)
    view["submit"] = b.plain("Save", limits.VIEW_TITLE)
    return view


def decline(card: Card, subject: Subject) -> Block:
    """Ask why; the reason is told to the agent and shown on the card."""
    block = {
        "type": "input",
        "block_id": REASON,
        "label": b.plain("Why not?", 60),
        "hint": b.plain("Nod tells the agent, so that it can do better.", 100),
        "element": {"type": "plain_text_input", "action_id": VALUE, "multiline": True, "max_length": 1000},
    }
    shown = [b.context(text.cut(text.link_text(card.title), 300)[0]), block]
    view = _modal("Decline", shown, DECLINE, subject)
    view["submit"] = b.plain("Decline", limits.VIEW_TITLE)
    return view


def last_word(title: str, words: str) -> Block:
    """Say what became of a submit, where closing the modal would not tell."""
    return {
        "type": "modal",
        "title": b.plain(title, limits.VIEW_TITLE),
        "close": b.plain("Close", limits.VIEW_TITLE),
        "blocks": b.rich([Line((Run(text.cut(words, _PIECE)[0] or b.BLANK),))]),
    }


def _modal(title: str, shown: list[Block], callback_id: str, subject: Subject) -> Block:
    return {
        "type": "modal",
        "callback_id": callback_id,
        "private_metadata": subject.pack(),
        "title": b.plain(title, limits.VIEW_TITLE),
        "close": b.plain("Close", limits.VIEW_TITLE),
        "blocks": shown,
    }


def _option(label: str, value: str) -> Block:
    return {"text": b.plain(label, limits.OPTION_TEXT), "value": value}
