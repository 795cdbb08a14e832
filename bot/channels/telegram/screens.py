"""Screens of a dialogue's steps: text, and buttons or a request to reply. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from telegram import ForceReply, InlineKeyboardButton, InlineKeyboardMarkup, Message, MessageEntity, User
from telegram.constants import KeyboardButtonStyle

from bot.channels.telegram.buttons import ButtonAction, ButtonData
from bot.channels.telegram.dialogue import Dialogue
from bot.channels.telegram.text import Rich, join, plain, style
from bot.channels.telegram.transport import Markup
from bot.domain.cards import Card
from bot.domain.forms import Field, Shape, option_labels
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.text import shorten
from bot.domain.value_text import speak_value
from bot.domain.verbs import Button

_MAX_VALUE_CHARS = 1200  # characters of a value in a question
_MAX_LABEL_CHARS = 40  # characters on a button
_MAX_HINT_CHARS = 60  # characters in the empty reply field
_MAX_CHANGES = 8  # changes shown before "and so many more"
_SHAPE_HINTS = {
    Shape.LINES: ", one entry a line",
    Shape.DATA: " as JSON",
    Shape.DATE: ", such as 2026-11-30",
}


@dataclass(frozen=True, slots=True)
class Screen:
    """A message of a dialogue. If it ``asks_for_reply``, the answer is a text, so it has no buttons."""

    rich: Rich
    markup: Markup
    asks_for_reply: bool = False


def ask_field(dialogue: Dialogue, fields: Sequence[Field], title: str, left_out: str = "") -> Screen:
    """Ask which field to change; ``left_out`` says that there are more."""
    rows = [
        [
            _make_button(
                dialogue,
                ButtonAction.FIELD,
                _shorten(f"{f.label}: {_summarise_value(f, _find_value(dialogue, f))}"),
                index=i,
            )
        ]
        for i, f in enumerate(fields)
    ]
    close = _make_button(dialogue, ButtonAction.CLOSE, "Cancel")
    rows.append([_make_save_button(dialogue), close] if dialogue.changes else [close])
    text = style("Edit: ", "bold") + plain(f"{_shorten(title, 200)}\nWhich part should change?")
    if left_out:
        text += plain(f"\n{left_out}")
    return Screen(text, InlineKeyboardMarkup(rows))


def ask_value(dialogue: Dialogue, field: Field, person: User, trouble: str = "") -> Screen:
    """Ask for a new value; ``trouble`` says why the last answer was not accepted."""
    now = _format_value(field, _find_value(dialogue, field))
    lines = [_name_person(person) + plain("new value for ") + style(field.label, "bold") + plain("?")]
    if trouble:
        lines.insert(0, plain(f"⚠️ {trouble}"))
    if field.description:
        lines.append(style(_shorten(field.description, 300), "italic"))
    if now.strip():
        lines += [plain("It is:"), style(shorten(now, _MAX_VALUE_CHARS), "pre")]
    else:
        lines.append(plain("It is empty."))
    if field.choices:
        rows = [
            [_make_button(dialogue, ButtonAction.CHOOSE, label, index=i)]
            for i, label in enumerate(option_labels(field.choices, _MAX_LABEL_CHARS))
        ]
        if field.nullable:
            rows.append([_make_button(dialogue, ButtonAction.CLEAR, "Leave it empty")])
        rows.append([_make_button(dialogue, ButtonAction.CLOSE, "Cancel")])
        return Screen(join(lines), InlineKeyboardMarkup(rows))
    lines.append(plain(_explain_reply(field)))
    hint = _shorten(field.label, _MAX_HINT_CHARS)
    return Screen(join(lines), ForceReply(selective=True, input_field_placeholder=hint), asks_for_reply=True)


def ask_confirmation(dialogue: Dialogue, fields: Sequence[Field]) -> Screen:
    """Show old → new of every change."""
    lines = [style("Edited, not saved yet", "bold")]
    changed = [f for f in fields if f.name in dialogue.changes]
    for f in changed[:_MAX_CHANGES]:
        old, new = _style_value(f, f.value), _style_value(f, dialogue.changes[f.name])
        lines.append(style(f.label, "bold") + plain(": ") + old + plain(" → ") + new)
    if len(changed) > _MAX_CHANGES:
        lines.append(plain(f"and {len(changed) - _MAX_CHANGES} more"))
    lines.append(plain("Save updates the card with this change. Then it can be approved."))
    rows = [
        [_make_save_button(dialogue)],
        [
            _make_button(dialogue, ButtonAction.BACK, "Change another"),
            _make_button(dialogue, ButtonAction.CLOSE, "Cancel"),
        ],
    ]
    return Screen(join(lines), InlineKeyboardMarkup(rows))


def ask_words(person: User, pressed: Button, title: str) -> Screen:
    """Ask for the words that go with a press."""
    asked = pressed.asks
    question, hint = (asked.question, asked.hint) if asked else (pressed.label, "")
    first = question[:1].lower() + question[1:]
    text = _name_person(person) + plain(f"{first} {_REPLY}{_CANCEL} {hint}\n{_shorten(title, 200)}")
    reply = ForceReply(selective=True, input_field_placeholder=_shorten(question, _MAX_HINT_CHARS))
    return Screen(text, reply, asks_for_reply=True)


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
        style("Approve similar: ", "bold") + plain(_shorten(card.title, 200)),
        _name_person(person) + plain("approve this one, and what else from now on without asking?"),
        *(plain(f"{number}. {words}") for number, (_, words) in steps),
        plain("Each step allows more than the one before it."),
        plain(f"Chosen: {chosen}, for {dict(reaches)[dialogue.reach]}. Press for how long it holds."),
    ]

    def choice(does: ButtonAction, label: str, index: int, *, on: bool) -> list[InlineKeyboardButton]:
        return [_make_button(dialogue, does, f"{'✅' if on else '⬜'} {_shorten(label)}", index=index)]

    def lasting(each: GrantDuration) -> InlineKeyboardButton:
        index = list(GrantDuration).index(each)
        return _make_button(
            dialogue, ButtonAction.DURATION, each.words, index=index, style=KeyboardButtonStyle.SUCCESS
        )

    rows = []
    for number, (rung, words) in steps:
        label = f"{number}. {words.removeprefix(card.tool_name).strip()}"
        rows.append(choice(ButtonAction.SCOPE, label, list(GrantScope).index(rung), on=rung is dialogue.rung))
    for reach, words in reaches:
        label, index = words[:1].upper() + words[1:], list(GrantAudience).index(reach)
        rows.append(choice(ButtonAction.AUDIENCE, label, index, on=reach is dialogue.reach))
    if dialogue.reach not in (GrantAudience.REQUESTER, GrantAudience.EVERYONE):
        rows.append([lasting(GrantDuration.CONVERSATION)])
    rows.append([lasting(each) for each in GrantDuration if each.span])
    rows.append([_make_button(dialogue, ButtonAction.CLOSE, "Cancel")])
    return Screen(join(lines), InlineKeyboardMarkup(rows))


def is_question_for(message: Message, person: User) -> bool:
    """Return whether a message asked this person for an answer in words."""
    named = any(each.user is not None and each.user.id == person.id for each in message.entities)
    return named and _REPLY in (message.text or "") and _CANCEL in (message.text or "")


_REPLY, _CANCEL = "Reply with it", ", or /cancel."


def _explain_reply(field: Field) -> str:
    how = _SHAPE_HINTS.get(field.shape, "")
    if field.shape is Shape.CHOICES:
        how = f", separated by commas, from: {', '.join(map(speak_value, field.options))}"
    empty = " Send a single - to leave it empty." if field.nullable else ""
    return f"{_REPLY}{how}{_CANCEL}{empty}"


def _find_value(dialogue: Dialogue, field: Field) -> object:
    return dialogue.changes.get(field.name, field.value)


def _format_value(field: Field, value: object) -> str:
    """Return a value as it can be typed again."""
    if value is None or value == "":
        return ""
    if field.shape is Shape.LINES and isinstance(value, list):
        return "\n".join(map(str, value))
    return speak_value(value, options=field.shape in (Shape.CHOICE, Shape.CHOICES))


def _style_value(field: Field, value: object) -> Rich:
    text = _format_value(field, value)
    if text.strip():
        return style(_shorten(text, 200), "code")
    return plain("(empty)")


def _summarise_value(field: Field, value: object) -> str:
    said = " ".join(_format_value(field, value).split()) or "(empty)"
    untouched = field.default and value == field.value
    if untouched:
        return f"{said} (default)"
    return said


def _shorten(text: str, most: int = _MAX_LABEL_CHARS) -> str:
    return shorten(text, most)


def _make_save_button(dialogue: Dialogue) -> InlineKeyboardButton:
    return _make_button(dialogue, ButtonAction.SAVE, "Save", style=KeyboardButtonStyle.SUCCESS)


def _make_button(
    dialogue: Dialogue, does: ButtonAction, text: str, *, index: int | None = None, style: str | None = None
) -> InlineKeyboardButton:
    data = ButtonData(does, dialogue.proposal_id, dialogue.round, index).pack()
    return InlineKeyboardButton(plain(text).text or "…", callback_data=data, style=style)


def _name_person(person: User) -> Rich:
    """Return a mention of the person: in a group only they are asked to reply."""
    name = plain(person.full_name or "You")
    mention = MessageEntity(MessageEntity.TEXT_MENTION, 0, name.units, user=person)
    return Rich(name.text, (mention,)) + plain(", ")
