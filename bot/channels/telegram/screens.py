"""Screens of a dialogue's steps: text, and buttons or a request to reply. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from telegram import ForceReply, InlineKeyboardButton, InlineKeyboardMarkup, Message, MessageEntity, User
from telegram.constants import KeyboardButtonStyle

from bot.channels.telegram.buttons import ButtonData, Does
from bot.channels.telegram.dialogue import Dialogue
from bot.channels.telegram.text import Rich, join, plain, style
from bot.channels.telegram.transport import Markup
from bot.domain.cards import Card
from bot.domain.forms import Field, Shape, option_labels, speak_value
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.text import shorten
from bot.domain.verbs import Button

_VALUE = 1200  # characters of a value in a question
_LABEL = 40  # characters on a button
_HINT = 60  # characters in the empty reply field
_CHANGES = 8  # changes shown before "and so many more"
_HOW = {
    Shape.LINES: ", one entry a line",
    Shape.DATA: " as JSON",
    Shape.DATE: ", such as 2026-11-30",
}


@dataclass(frozen=True, slots=True)
class Screen:
    """A message of a dialogue; ``replies``: the answer is the person's next text, so it takes no buttons."""

    rich: Rich
    markup: Markup
    replies: bool = False


def pick(dialogue: Dialogue, fields: Sequence[Field], title: str, left_out: str = "") -> Screen:
    """Ask which field to change; ``left_out`` says that there are more."""
    rows = [
        [_button(dialogue, Does.FIELD, _label(f"{f.label}: {_brief(f, _current(dialogue, f))}"), index=i)]
        for i, f in enumerate(fields)
    ]
    close = _button(dialogue, Does.CLOSE, "Cancel")
    rows.append([_save(dialogue), close] if dialogue.changes else [close])
    text = style("Edit: ", "bold") + plain(f"{_label(title, 200)}\nWhich part should change?")
    if left_out:
        text += plain(f"\n{left_out}")
    return Screen(text, InlineKeyboardMarkup(rows))


def ask_value(dialogue: Dialogue, field: Field, person: User, trouble: str = "") -> Screen:
    """Ask for a new value; ``trouble`` says why the last answer was not accepted."""
    now = _format_value(field, _current(dialogue, field))
    lines = [_name_person(person) + plain("new value for ") + style(field.label, "bold") + plain("?")]
    if trouble:
        lines.insert(0, plain(f"⚠️ {trouble}"))
    if field.description:
        lines.append(style(_label(field.description, 300), "italic"))
    if now.strip():
        lines += [plain("It is:"), style(shorten(now, _VALUE), "pre")]
    else:
        lines.append(plain("It is empty."))
    if field.choices:
        rows = [
            [_button(dialogue, Does.CHOOSE, label, index=i)]
            for i, label in enumerate(option_labels(field.choices, _LABEL))
        ]
        if field.nullable:
            rows.append([_button(dialogue, Does.CLEAR, "Leave it empty")])
        rows.append([_button(dialogue, Does.CLOSE, "Cancel")])
        return Screen(join(lines), InlineKeyboardMarkup(rows))
    lines.append(plain(_typing(field)))
    hint = _label(field.label, _HINT)
    return Screen(join(lines), ForceReply(selective=True, input_field_placeholder=hint), replies=True)


def confirm(dialogue: Dialogue, fields: Sequence[Field]) -> Screen:
    """Show old → new of every change."""
    lines = [style("Edited, not saved yet", "bold")]
    changed = [f for f in fields if f.name in dialogue.changes]
    for f in changed[:_CHANGES]:
        old, new = _short(f, f.value), _short(f, dialogue.changes[f.name])
        lines.append(style(f.label, "bold") + plain(": ") + old + plain(" → ") + new)
    if len(changed) > _CHANGES:
        lines.append(plain(f"and {len(changed) - _CHANGES} more"))
    lines.append(plain("Save updates the card with this change. Then it can be approved."))
    rows = [
        [_save(dialogue)],
        [_button(dialogue, Does.BACK, "Change another"), _button(dialogue, Does.CLOSE, "Cancel")],
    ]
    return Screen(join(lines), InlineKeyboardMarkup(rows))


def ask_words(person: User, pressed: Button, title: str) -> Screen:
    """Ask for the words that go with a press."""
    asked = pressed.asks
    question, hint = (asked.question, asked.hint) if asked else (pressed.label, "")
    first = question[:1].lower() + question[1:]
    text = _name_person(person) + plain(f"{first} {_REPLY}{_CANCEL} {hint}\n{_label(title, 200)}")
    reply = ForceReply(selective=True, input_field_placeholder=_label(question, _HINT))
    return Screen(text, reply, replies=True)


def ask_grant(
    dialogue: Dialogue,
    ladder: Sequence[tuple[GrantScope, str]],
    reaches: Sequence[tuple[GrantAudience, str]],
    card: Card,
    person: User,
) -> Screen:
    """Ask what a grant may allow, whose calls, and how long, which approves; every step is in full words."""
    steps = list(enumerate(ladder, 1))
    chosen = next(number for number, (rung, _) in steps if rung is dialogue.rung)
    lines = [
        style("Approve similar: ", "bold") + plain(_label(card.title, 200)),
        _name_person(person) + plain("approve this one, and what else from now on without asking?"),
        *(plain(f"{number}. {words}") for number, (_, words) in steps),
        plain("Each step allows more than the one before it."),
        plain(f"Chosen: {chosen}, for {dict(reaches)[dialogue.reach]}. Press for how long it holds."),
    ]

    def choice(does: Does, label: str, index: int, *, on: bool) -> list[InlineKeyboardButton]:
        return [_button(dialogue, does, f"{'✅' if on else '⬜'} {_label(label)}", index=index)]

    def lasting(each: GrantDuration) -> InlineKeyboardButton:
        index = list(GrantDuration).index(each)
        return _button(dialogue, Does.LASTING, each.words, index=index, style=KeyboardButtonStyle.SUCCESS)

    rows = []
    for number, (rung, words) in steps:
        label = f"{number}. {words.removeprefix(card.tool_name).strip()}"
        rows.append(choice(Does.RUNG, label, list(GrantScope).index(rung), on=rung is dialogue.rung))
    for reach, words in reaches:
        label, index = words[:1].upper() + words[1:], list(GrantAudience).index(reach)
        rows.append(choice(Does.REACH, label, index, on=reach is dialogue.reach))
    if dialogue.reach not in (GrantAudience.REQUESTER, GrantAudience.EVERYONE):
        rows.append([lasting(GrantDuration.CONVERSATION)])
    rows.append([lasting(each) for each in GrantDuration if each.span])
    rows.append([_button(dialogue, Does.CLOSE, "Cancel")])
    return Screen(join(lines), InlineKeyboardMarkup(rows))


def has_asked(message: Message, person: User) -> bool:
    """Return whether a message asked this person for an answer in words."""
    named = any(each.user is not None and each.user.id == person.id for each in message.entities)
    return named and _REPLY in (message.text or "") and _CANCEL in (message.text or "")


_REPLY, _CANCEL = "Reply with it", ", or /cancel."


def _typing(field: Field) -> str:
    how = _HOW.get(field.shape, "")
    if field.shape is Shape.CHOICES:
        how = f", separated by commas, from: {', '.join(map(speak_value, field.options))}"
    empty = " Send a single - to leave it empty." if field.nullable else ""
    return f"{_REPLY}{how}{_CANCEL}{empty}"


def _current(dialogue: Dialogue, field: Field) -> object:
    return dialogue.changes.get(field.name, field.value)


def _format_value(field: Field, value: object) -> str:
    """Return a value as it can be typed again."""
    if value is None or value == "":
        return ""
    if field.shape is Shape.LINES and isinstance(value, list):
        return "\n".join(map(str, value))
    return speak_value(value, options=field.shape in (Shape.CHOICE, Shape.CHOICES))


def _short(field: Field, value: object) -> Rich:
    text = _format_value(field, value)
    if text.strip():
        return style(_label(text, 200), "code")
    return plain("(empty)")


def _brief(field: Field, value: object) -> str:
    said = " ".join(_format_value(field, value).split()) or "(empty)"
    untouched = field.default and value == field.value
    if untouched:
        return f"{said} (default)"
    return said


def _label(text: str, most: int = _LABEL) -> str:
    return shorten(text, most)


def _save(dialogue: Dialogue) -> InlineKeyboardButton:
    return _button(dialogue, Does.SAVE, "Save", style=KeyboardButtonStyle.SUCCESS)


def _button(
    dialogue: Dialogue, does: Does, text: str, *, index: int | None = None, style: str | None = None
) -> InlineKeyboardButton:
    data = ButtonData(does, dialogue.proposal_id, dialogue.round, index).pack()
    return InlineKeyboardButton(plain(text).text or "…", callback_data=data, style=style)


def _name_person(person: User) -> Rich:
    """Return a mention of the person: in a group only they are asked to reply."""
    name = plain(person.full_name or "You")
    mention = MessageEntity(MessageEntity.TEXT_MENTION, 0, name.units, user=person)
    return Rich(name.text, (mention,)) + plain(", ")
