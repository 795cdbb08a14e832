"""What each step of a dialogue shows: text, and buttons or a request to reply. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from telegram import ForceReply, InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity, User
from telegram.constants import KeyboardButtonStyle

from bot.channels.telegram.buttons import ButtonData, Does
from bot.channels.telegram.dialogue import Dialogue
from bot.channels.telegram.text import Rich, joined, plain, styled
from bot.channels.telegram.transport import Markup
from bot.domain.forms import Field, Shape, option_labels, spoken
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.text import shortened
from bot.domain.verbs import Button

_VALUE = 1200  # characters of a value in a question
_LABEL = 40  # characters on a button
_HINT = 60  # characters in the empty reply field
_CHANGES = 8  # changes shown before "and so many more"


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
    text = styled("Edit: ", "bold") + plain(f"{_label(title, 200)}\nWhich part should change?")
    if left_out:
        text += plain(f"\n{left_out}")
    return Screen(text, InlineKeyboardMarkup(rows))


def ask(dialogue: Dialogue, field: Field, person: User, trouble: str = "") -> Screen:
    """Ask for a new value; ``trouble`` says why the last answer was not accepted."""
    now = _shown(field, _current(dialogue, field))
    lines = [_named(person) + plain("new value for ") + styled(field.label, "bold") + plain("?")]
    if trouble:
        lines.insert(0, plain(f"⚠️ {trouble}"))
    if field.description:
        lines.append(styled(_label(field.description, 300), "italic"))
    if now.strip():
        lines += [plain("It is:"), styled(shortened(now, _VALUE), "pre")]
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
        return Screen(joined(lines), InlineKeyboardMarkup(rows))
    lines.append(plain(_typing(field)))
    hint = _label(field.label, _HINT)
    return Screen(joined(lines), ForceReply(selective=True, input_field_placeholder=hint), replies=True)


def confirm(dialogue: Dialogue, fields: Sequence[Field]) -> Screen:
    """Show old → new of every change."""
    lines = [styled("Edited, not saved yet", "bold")]
    changed = [f for f in fields if f.name in dialogue.changes]
    for f in changed[:_CHANGES]:
        old, new = _short(f, f.value), _short(f, dialogue.changes[f.name])
        lines.append(styled(f.label, "bold") + plain(": ") + old + plain(" → ") + new)
    if len(changed) > _CHANGES:
        lines.append(plain(f"and {len(changed) - _CHANGES} more"))
    lines.append(plain("Save updates the card with this change. Then it can be approved."))
    rows = [
        [_save(dialogue)],
        [_button(dialogue, Does.BACK, "Change another"), _button(dialogue, Does.CLOSE, "Cancel")],
    ]
    return Screen(joined(lines), InlineKeyboardMarkup(rows))


def words(person: User, pressed: Button, title: str) -> Screen:
    """Ask for the words that go with a press."""
    asked = pressed.asks
    question, hint = (asked.question, asked.hint) if asked else (pressed.label, "")
    first = question[:1].lower() + question[1:]
    text = _named(person) + plain(f"{first} Reply with it, or /cancel. {hint}\n{_label(title, 200)}")
    reply = ForceReply(selective=True, input_field_placeholder=_label(question, _HINT))
    return Screen(text, reply, replies=True)


def rungs(
    dialogue: Dialogue, ladder: Sequence[tuple[GrantScope, str]], tool: str, title: str, person: User
) -> Screen:
    """Ask how far a grant should reach; every step is there in full words."""
    lines = [
        _similar(title),
        _named(person) + plain("approve this one, and what else from now on without asking?"),
    ]
    rows = []
    for number, (rung, words) in enumerate(ladder, 1):
        lines.append(plain(f"{number}. {words}"))
        short = _label(f"{number}. {words.removeprefix(tool).strip()}")
        rows.append([_button(dialogue, Does.RUNG, short, index=list(GrantScope).index(rung))])
    lines.append(plain("Each step allows more than the one before it."))
    rows.append([_button(dialogue, Does.CLOSE, "Cancel")])
    return Screen(joined(lines), InlineKeyboardMarkup(rows))


def lasting(dialogue: Dialogue, words: str, title: str, person: User) -> Screen:
    """Ask how long the grant should hold; the answer approves."""
    lines = [
        _similar(title),
        plain("Runs without asking from then on:"),
        plain(words),
        _named(person) + plain("for how long? Your choice approves this one too."),
    ]

    def choice(each: GrantDuration) -> InlineKeyboardButton:
        return _button(
            dialogue,
            Does.LASTING,
            each.words,
            index=list(GrantDuration).index(each),
            style=KeyboardButtonStyle.SUCCESS,
        )

    beyond = dialogue.reach in (GrantAudience.REQUESTER, GrantAudience.EVERYONE)
    rows = [
        *([] if beyond else [[choice(GrantDuration.CONVERSATION)]]),
        [choice(each) for each in GrantDuration if each.span],
        [_button(dialogue, Does.REACH, "For other people or places")],
        [_button(dialogue, Does.SIMILAR, "Back", index=0), _button(dialogue, Does.CLOSE, "Cancel")],
    ]
    return Screen(joined(lines), InlineKeyboardMarkup(rows))


def reaches(
    dialogue: Dialogue, offered: Sequence[tuple[GrantAudience, str]], title: str, person: User
) -> Screen:
    """Ask whose calls the grant should let run, and where."""
    lines = [_similar(title), _named(person) + plain("whose requests may run without asking, and where?")]
    rows = [
        [
            _button(
                dialogue,
                Does.REACH,
                _label(words[:1].upper() + words[1:]),
                index=list(GrantAudience).index(reach),
            )
        ]
        for reach, words in offered
    ]
    rows.append([_button(dialogue, Does.CLOSE, "Cancel")])
    return Screen(joined(lines), InlineKeyboardMarkup(rows))


def _similar(title: str) -> Rich:
    return styled("Approve similar: ", "bold") + plain(_label(title, 200))


_HOW = {
    Shape.LINES: ", one entry a line",
    Shape.DATA: " as JSON",
    Shape.DATE: ", such as 2026-11-30",
}


def _typing(field: Field) -> str:
    how = _HOW.get(field.shape, "")
    if field.shape is Shape.CHOICES:
        how = f", separated by commas, from: {', '.join(map(spoken, field.options))}"
    empty = " Send a single - to leave it empty." if field.nullable else ""
    return f"Reply with it{how}, or /cancel.{empty}"


def _current(dialogue: Dialogue, field: Field) -> object:
    return dialogue.changes.get(field.name, field.value)


def _shown(field: Field, value: object) -> str:
    """A value as it can be typed again."""
    if value is None or value == "":
        return ""
    if field.shape is Shape.LINES and isinstance(value, list):
        return "\n".join(map(str, value))
    return spoken(value, options=field.shape in (Shape.CHOICE, Shape.CHOICES))


def _short(field: Field, value: object) -> Rich:
    text = _shown(field, value)
    return styled(_label(text, 200), "code") if text.strip() else plain("(empty)")


def _brief(field: Field, value: object) -> str:
    said = " ".join(_shown(field, value).split()) or "(empty)"
    untouched = field.default and value == field.value
    return f"{said} (default)" if untouched else said


def _label(text: str, most: int = _LABEL) -> str:
    return shortened(text, most)


def _save(dialogue: Dialogue) -> InlineKeyboardButton:
    return _button(dialogue, Does.SAVE, "Save", style=KeyboardButtonStyle.SUCCESS)


def _button(
    dialogue: Dialogue, does: Does, text: str, *, index: int | None = None, style: str | None = None
) -> InlineKeyboardButton:
    data = ButtonData(does, dialogue.proposal_id, dialogue.round, index).pack()
    return InlineKeyboardButton(plain(text).text or "…", callback_data=data, style=style)


def _named(person: User) -> Rich:
    """Name the person, so that in a group only they are asked to reply."""
    name = plain(person.full_name or "You")
    mention = MessageEntity(MessageEntity.TEXT_MENTION, 0, name.units, user=person)
    return Rich(name.text, (mention,)) + plain(", ")
