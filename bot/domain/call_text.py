"""The text of a card for *View all*: everything that it says about its call, and how it ended. Pure.

A channel shows this text where the card itself has not enough room.
"""

import json
from collections.abc import Sequence
from typing import Any

from bot.domain.cards import Card
from bot.domain.diffs import diff
from bot.domain.forms import defaults_of, list_values, without_defaults
from bot.domain.preview import REMOVED, PreviewField
from bot.domain.value_text import label_of, outline_value

_MIN_UNIQUE_CHARS = 40  # a text of this length is hardly the value of two fields


def format_call(card: Card) -> str:
    """Return all that a card says about its call as plain text, for "View all". Each value appears once.

    Further lines of a value are indented, so that they can't look like fields of their own.
    """
    if card.batch:
        return "\n\n".join([card.title, number_texts([row.card for row in card.rows])])
    risk = f"{card.level}, {card.risk_reason}" if card.risk_reason else card.level
    lines = [card.title, "", f"Tool: {card.tool_name}", f"Risk: {risk}"]
    if card.acts_as:
        lines.append(card.acts_as)
    if card.reason:
        lines.append(f"Reason: {_indent(card.reason)}")
    lines += [annotation.line for annotation in card.annotations]
    lines += ["", "Changes"]
    for field in card.fields:
        lines += _list_change_lines(field)
    given = without_defaults(card.arguments, defaults_of(card.schema))
    # a value that the changes above show in full is not repeated
    unshown = {name: value for name, value in given.items() if not _is_shown_in_full(card, name, value)}
    if unshown:
        lines += ["", "Arguments", json.dumps(unshown, indent=2, ensure_ascii=False, sort_keys=True)]
    defaults = _list_defaults(card)
    if defaults:
        lines += ["", "Defaults", *defaults]
    if card.full_output:
        lines += ["", "Result", card.full_output]
    return "\n".join(lines)


def number_texts(cards: Sequence[Card]) -> str:
    """Return `format_call` of several cards, each with its notes, numbered."""
    texts = []
    for number, card in enumerate(cards, 1):
        texts += [f"{number} of {len(cards)}\n{format_call(card)}", *card.notes]
    return "\n\n".join(texts)


def format_call_and_outcome(card: Card) -> str:
    """Return the text of `format_call`, followed by the votes, the notes and the outcome."""
    parts = [format_call(card), *card.votes, *card.notes]
    if not card.pending:
        parts += [card.outcome_line, card.result]
    return "\n\n".join(parts)


def _list_change_lines(field: PreviewField) -> list[str]:
    old, new = field.old_value, field.new_value
    changed_lines = diff(old, new, folded=False)
    if changed_lines is not None:
        return [f"- {field.field}", f"    {_indent(changed_lines)}"]
    if old is None or old == new:
        shown = "(nothing)" if new is None else new
        return [f"- {field.field}: {_indent(shown)}"]
    if new is None:
        return [f"- {field.field} ({REMOVED}): {_indent(old)}"]
    return [f"- {field.field}", f"  old: {_indent(old)}", f"  new: {_indent(new)}"]


def _indent(value: str) -> str:
    return value.replace("\r", "␍").replace("\n", "\n    ")


def _is_shown_in_full(card: Card, name: str, value: Any) -> bool:
    """Tell if a field of the card shows this argument literally, or as a complete outline.

    The field must have the argument's name. A long value counts under any name, since two fields hardly have
    the same long value.
    """
    if isinstance(value, str):
        texts = {value}
    else:
        texts = {json.dumps(value, ensure_ascii=False, indent=2)}
    if isinstance(value, dict | list) and value:
        texts.add(outline_value(value))
    label = label_of(name)
    for field in card.fields:
        shown = field.new_value
        if shown in texts and (field.field == label or len(shown or "") >= _MIN_UNIQUE_CHARS):
            return True
    return False


def _list_defaults(card: Card) -> list[str]:
    """Return a line for each argument that has its default, unless the changes show it."""
    given = without_defaults(card.arguments, defaults_of(card.schema))
    labels_elsewhere = {label_of(name) for name in given}
    labels_elsewhere.update(field.field for field in card.fields)
    lines = []
    for name, words in list_values(card.schema, card.arguments):
        label = label_of(name)
        if label not in labels_elsewhere:
            lines.append(f"- {label}: {words}")
    return lines
