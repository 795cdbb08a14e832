"""Screens of a dialogue's steps: each is a message with buttons, or one that asks for a typed reply. Pure.

A dialogue (``dialogue.py``) asks one person for the fields of an edit, for a reason, or for a grant:
permission for similar calls. A grant has a scope (which calls, ``rung`` in a dialogue), an audience (whose
calls, and where; ``reach``) and a duration. ``forms.py`` sends the screens.
"""

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

_MAX_VALUE_CHARS = 1200  # the current value that a question shows
_MAX_LABEL_CHARS = 40  # on a button
_MAX_HINT_CHARS = 60  # the hint in the empty reply field
_MAX_CHANGES = 8  # the changes that are shown; the number of the others follows
_MAX_TITLE_CHARS = 200
_MAX_DESCRIPTION_CHARS = 300
_MAX_CHANGED_VALUE_CHARS = 200
_REPLY_TEXT = "Reply with it"
_CANCEL_TEXT = ", or /cancel."
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
    """Ask which field to change. ``title``: that of the card. ``left_out``: a remark on further arguments."""
    rows = []
    for index, field in enumerate(fields):
        label = _shorten_label(f"{field.label}: {_summarise_value(field, _find_value(dialogue, field))}")
        rows.append([_make_button(dialogue, ButtonAction.FIELD, label, index=index)])
    close = _make_button(dialogue, ButtonAction.CLOSE, "Cancel")
    rows.append([_make_save_button(dialogue), close] if dialogue.changes else [close])
    text = style("Edit: ", "bold") + plain(f"{shorten(title, _MAX_TITLE_CHARS)}\nWhich part should change?")
    if left_out:
        text += plain(f"\n{left_out}")
    return Screen(text, InlineKeyboardMarkup(rows))


def ask_value(dialogue: Dialogue, field: Field, person: User, fault: str = "") -> Screen:
    """Ask for a new value. ``fault``: why the last answer was not accepted."""
    current = _format_value(field, _find_value(dialogue, field))
    lines = [_name_person(person) + plain("new value for ") + style(field.label, "bold") + plain("?")]
    if fault:
        lines.insert(0, plain(f"⚠️ {fault}"))
    if field.description:
        lines.append(style(shorten(field.description, _MAX_DESCRIPTION_CHARS), "italic"))
    if current.strip():
        lines += [plain("It is:"), style(shorten(current, _MAX_VALUE_CHARS), "pre")]
    else:
        lines.append(plain("It is empty."))
    if field.single_choices:
        rows = [
            [_make_button(dialogue, ButtonAction.CHOOSE, label, index=index)]
            for index, label in enumerate(option_labels(field.single_choices, _MAX_LABEL_CHARS))
        ]
        if field.nullable:
            rows.append([_make_button(dialogue, ButtonAction.CLEAR, "Leave it empty")])
        rows.append([_make_button(dialogue, ButtonAction.CLOSE, "Cancel")])
        return Screen(join(lines), InlineKeyboardMarkup(rows))
    lines.append(plain(_explain_reply(field)))
    hint = shorten(field.label, _MAX_HINT_CHARS)
    return Screen(join(lines), ForceReply(selective=True, input_field_placeholder=hint), asks_for_reply=True)


def ask_confirmation(dialogue: Dialogue, fields: Sequence[Field]) -> Screen:
    """Show the old and the new value of each changed field, and ask to save them."""
    lines = [style("Edited, not saved yet", "bold")]
    changed = [field for field in fields if field.name in dialogue.changes]
    for field in changed[:_MAX_CHANGES]:
        old = _style_value(field, field.value)
        new = _style_value(field, dialogue.changes[field.name])
        lines.append(style(field.label, "bold") + plain(": ") + old + plain(" → ") + new)
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


def ask_words(person: User, button: Button, title: str) -> Screen:
    """Ask for the words that go with the press of a button. ``title``: that of the card."""
    prompt = button.text_question
    question = prompt.question if prompt else button.label
    hint = prompt.hint if prompt else ""
    first = question[:1].lower() + question[1:]
    short_title = shorten(title, _MAX_TITLE_CHARS)
    text = _name_person(person) + plain(f"{first} {_REPLY_TEXT}{_CANCEL_TEXT} {hint}\n{short_title}")
    reply = ForceReply(selective=True, input_field_placeholder=shorten(question, _MAX_HINT_CHARS))
    return Screen(text, reply, asks_for_reply=True)


def ask_grant(
    dialogue: Dialogue,
    scopes: Sequence[tuple[GrantScope, str]],
    audiences: Sequence[tuple[GrantAudience, str]],
    card: Card,
    person: User,
) -> Screen:
    """Ask for the scope, the audience and the duration of a grant; the press of a duration approves.

    ``scopes`` and ``audiences`` may be chosen, and come with their texts. The dialogue's own are among them.
    The text of each scope is shown in full above the buttons, which shorten it.
    """
    # a dialogue calls its scope ``rung`` and its audience ``reach``
    numbered_scopes = list(enumerate(scopes, 1))
    chosen_number = next(number for number, (scope, _) in numbered_scopes if scope is dialogue.rung)
    chosen_audience = dict(audiences)[dialogue.reach]
    lines = [
        style("Approve similar: ", "bold") + plain(shorten(card.title, _MAX_TITLE_CHARS)),
        _name_person(person) + plain("approve this one, and what else from now on without asking?"),
        *(plain(f"{number}. {words}") for number, (_, words) in numbered_scopes),
        plain("Each step allows more than the one before it."),
        plain(f"Chosen: {chosen_number}, for {chosen_audience}. Press for how long it holds."),
    ]
    return Screen(join(lines), _make_grant_keyboard(dialogue, scopes, audiences, card.tool_name))


def _make_grant_keyboard(
    dialogue: Dialogue,
    scopes: Sequence[tuple[GrantScope, str]],
    audiences: Sequence[tuple[GrantAudience, str]],
    tool_name: str,
) -> InlineKeyboardMarkup:
    """Return a row for each scope and each audience, then the durations, whose press approves."""

    def make_choice(
        action: ButtonAction, label: str, index: int, *, is_chosen: bool
    ) -> list[InlineKeyboardButton]:
        box = "✅" if is_chosen else "⬜"
        return [_make_button(dialogue, action, f"{box} {_shorten_label(label)}", index=index)]

    def make_duration_button(duration: GrantDuration) -> InlineKeyboardButton:
        index = list(GrantDuration).index(duration)
        return _make_button(
            dialogue, ButtonAction.DURATION, duration.label, index=index, style=KeyboardButtonStyle.SUCCESS
        )

    rows = []
    for number, (scope, words) in enumerate(scopes, 1):
        label = f"{number}. {words.removeprefix(tool_name).strip()}"
        index = list(GrantScope).index(scope)
        rows.append(make_choice(ButtonAction.SCOPE, label, index, is_chosen=scope is dialogue.rung))
    for audience, words in audiences:
        label = words[:1].upper() + words[1:]
        index = list(GrantAudience).index(audience)
        rows.append(make_choice(ButtonAction.AUDIENCE, label, index, is_chosen=audience is dialogue.reach))
    # a grant for these audiences is bound to no conversation, so it can't end with one
    if dialogue.reach not in (GrantAudience.REQUESTER, GrantAudience.EVERYONE):
        rows.append([make_duration_button(GrantDuration.CONVERSATION)])
    fixed_durations = [duration for duration in GrantDuration if duration.span]
    rows.append([make_duration_button(duration) for duration in fixed_durations])
    rows.append([_make_button(dialogue, ButtonAction.CLOSE, "Cancel")])
    return InlineKeyboardMarkup(rows)


def is_question_for(message: Message, person: User) -> bool:
    """Tell, by its wording, if a message is a dialogue's question to this person that asks for a reply."""
    is_named = any(entity.user is not None and entity.user.id == person.id for entity in message.entities)
    text = message.text or ""
    return is_named and _REPLY_TEXT in text and _CANCEL_TEXT in text


def _explain_reply(field: Field) -> str:
    form_hint = _SHAPE_HINTS.get(field.shape, "")
    if field.shape is Shape.CHOICES:
        form_hint = f", separated by commas, from: {', '.join(map(speak_value, field.options))}"
    empty = " Send a single - to leave it empty." if field.nullable else ""
    return f"{_REPLY_TEXT}{form_hint}{_CANCEL_TEXT}{empty}"


def _find_value(dialogue: Dialogue, field: Field) -> object:
    return dialogue.changes.get(field.name, field.value)


def _format_value(field: Field, value: object) -> str:
    """Return a value in the form in which people type it."""
    if value is None or value == "":
        return ""
    if field.shape is Shape.LINES and isinstance(value, list):
        return "\n".join(map(str, value))
    return speak_value(value, is_choice=field.shape in (Shape.CHOICE, Shape.CHOICES))


def _style_value(field: Field, value: object) -> Rich:
    text = _format_value(field, value)
    if text.strip():
        return style(shorten(text, _MAX_CHANGED_VALUE_CHARS), "code")
    return plain("(empty)")


def _summarise_value(field: Field, value: object) -> str:
    line = " ".join(_format_value(field, value).split()) or "(empty)"
    is_default = field.default and value == field.value
    if is_default:
        return f"{line} (default)"
    return line


def _shorten_label(text: str) -> str:
    return shorten(text, _MAX_LABEL_CHARS)


def _make_save_button(dialogue: Dialogue) -> InlineKeyboardButton:
    return _make_button(dialogue, ButtonAction.SAVE, "Save", style=KeyboardButtonStyle.SUCCESS)


def _make_button(
    dialogue: Dialogue, action: ButtonAction, text: str, *, index: int | None = None, style: str | None = None
) -> InlineKeyboardButton:
    data = ButtonData(action, dialogue.proposal_id, dialogue.round, index).pack()
    return InlineKeyboardButton(plain(text).text or "…", callback_data=data, style=style)


def _name_person(person: User) -> Rich:
    """Return a mention of the person; in a group Telegram asks only them to reply."""
    name = plain(person.full_name or "You")
    mention = MessageEntity(MessageEntity.TEXT_MENTION, 0, name.units, user=person)
    return Rich(name.text, (mention,)) + plain(", ")
