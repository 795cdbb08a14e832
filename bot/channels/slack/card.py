"""A `Card` as Block Kit blocks: the pending and the resolved twin. Pure; posting is in ``channel.py``.

Whatever the content, the blocks stay within ``limits``. Where the change does not fit, the card says so and
its Approve opens "View all" first (``modals.py``), so nobody approves what they could not read.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from bot.channels.slack import blocks as b
from bot.channels.slack import limits, text
from bot.channels.slack.blocks import Block, Line, Run
from bot.domain.cards import Action, Card, Tone
from bot.domain.files import RESULT_SHOWN
from bot.domain.plans import Plan
from bot.domain.proposals import Kind, PreviewField
from bot.domain.risk import Level

REVIEW = "review"  # opens "View all", whose submit approves
VIEW = "view"
REVIEW_STEPS = "review_steps"  # opens it, too; its submit approves a plan with its steps
DECLINE_REASON = "decline_reason"
MORE = "nod:more"

_SHOWN_FIELDS = 20
_VALUES = 4000  # units for all values of the change
_VALUE = 1500
_SHORT = 120

_SIGNS = {Tone.WAITING: "⏳", Tone.GOOD: "✅", Tone.BAD: "❌", Tone.QUIET: "⚪"}
_LEVELS = {
    Level.READ: "🟢 Reads only",
    Level.WRITE: "🟡 Changes something",
    Level.DESTRUCTIVE: "🔴 Destructive",
}


@dataclass(frozen=True, slots=True)
class Rendered:
    """What to post: ``text`` is the notification, ``whole`` says that nothing of the change was cut."""

    blocks: list[Block]
    text: str
    whole: bool


def action_id(verb: str) -> str:
    return f"nod:{verb}"


def value_of(proposal_id: str, round_: int) -> str:
    return f"{proposal_id}:{round_}"


def parse_value(value: str) -> tuple[str, int]:
    """Proposal id and round of a button; raises ValueError for what we never posted."""
    proposal_id, colon, round_ = value.rpartition(":")
    if not (colon and proposal_id and round_.isdecimal()):
        raise ValueError("this button is not one of ours")
    return proposal_id, int(round_)


def render(card: Card) -> Rendered:
    """Render the card as it stands."""
    title, title_cut = _title(card)
    change, change_cut = _change(card)
    whole = not (title_cut or change_cut)
    shown = [*title, *b.rich(_reason(card)), *change]
    if not whole:
        shown.append(b.context("✂️ Too long for this card. View all shows everything."))
    shown += _notes(card)
    shown += _pending(card, whole=whole) if card.pending else _resolved(card)
    shown += _group(card)
    return Rendered(shown, _notification(card), whole)


def brief(card: Card) -> Rendered:
    """Render the least that can be decided on: title, state and buttons; "View all" has the rest."""
    note = b.context("✂️ Slack could not show this card in full. View all shows everything.")
    title = b.rich([Line((Run(text.cut(text.link_text(card.title) or b.BLANK, 300)[0], "bold"),))])
    state = _pending(card, whole=False) if card.pending else _resolved(card)
    shown = [*title, note, *_notes(card), *state, *_group(card)]
    return Rendered(shown, _notification(card), whole=False)


def _title(card: Card) -> tuple[list[Block], bool]:
    title = text.link_text(card.title) or card.tool_name or b.BLANK
    sign = "❓ Question" if card.kind is Kind.QUESTION else _LEVELS[card.level]
    about = b.context(
        f"{sign}: {text.link_text(card.risk_reason)}",
        "" if card.kind is Kind.PLAN else f"Tool: {card.tool_name}",
        f"Asked {'of' if card.kind is Kind.QUESTION else 'by'} {card.asked_by}",
    )
    if text.width(title) <= limits.HEADER:
        return [b.header(title), about], False
    shown, cut = text.cut(title, 600)
    return [*b.rich([Line((Run(shown, "bold"),))]), about], cut


def _reason(card: Card) -> Iterator[Line]:
    if card.reason.strip():
        yield Line((Run("Why: ", "bold"), Run(text.cut(card.reason.strip(), 600)[0])))


def shown_fields(card: Card) -> tuple[PreviewField, ...]:
    """Give the change field by field; the arguments where the tool previews nothing."""
    if card.fields:
        return card.fields
    return tuple(
        PreviewField(name, None, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in card.arguments.items()
    )


def _change(card: Card) -> tuple[list[Block], bool]:
    fields = shown_fields(card)
    shown = fields[:_SHOWN_FIELDS]
    room = min(_VALUE, max(100, _VALUES // max(1, 2 * len(shown))))
    lines: list[Line] = []
    missing = len(fields) - len(shown)
    some_cut = missing > 0
    for field in shown:
        more, cut = field_lines(field, room)
        lines += more
        some_cut = some_cut or cut
    if missing:
        lines.append(Line((Run(f"… [{missing} more fields]", "italic"),)))
    return b.rich(lines), some_cut


def field_lines(field: PreviewField, room: int) -> tuple[list[Line], bool]:
    """One field of the change within ``room`` units per value, and whether any of it was cut."""
    name, name_cut = text.cut(field.field or b.BLANK, 60)
    old, old_cut = (None, False) if field.old_value is None else text.cut(field.old_value, room)
    new, new_cut = (None, False) if field.new_value is None else text.cut(field.new_value, room)
    label = Run(f"{name}: ", "bold")
    cut = name_cut or old_cut or new_cut
    if all(v is None or (len(v) <= _SHORT and "\n" not in v) for v in (old, new)):
        return [Line((label, *_inline(old, new)))], cut
    lines = []
    if old is not None and field.old_value == field.new_value:
        return [
            Line((label, Run("(unchanged)", "italic"))),
            Line((Run(old or b.BLANK),), preformatted=True),
        ], cut
    if old is not None:
        lines += [Line((label, Run("now"))), Line((Run(old or b.BLANK),), preformatted=True)]
    lines.append(Line((label, Run("will be" if old is not None else ""))))
    lines.append(Line((Run((new or b.BLANK) if new is not None else "(nothing)"),), preformatted=True))
    return lines, cut


def _inline(old: str | None, new: str | None) -> tuple[Run, ...]:
    after = Run("(nothing)", "italic") if new is None else Run(new or b.BLANK)
    if old is None:
        return (after,)
    if old == new:
        return (after, Run(" (unchanged)", "italic"))
    return (Run(old or b.BLANK, "strike"), Run(" → "), after)


def _notes(card: Card) -> list[Block]:
    """What else to know before or after deciding: the tally, four eyes, edits, that nobody was asked."""
    return [b.context(*(f"📌 {note}" for note in card.notes))] if card.notes else []


def _pending(card: Card, *, whole: bool) -> list[Block]:
    who = f"May decide: {text.cut(card.deciders, 300)[0]}"
    footer = [b.context(who, "; ".join(card.votes)), b.moment("Expires", card.expires_at)]
    value = value_of(card.proposal_id, card.round)
    plan = card.kind is Kind.PLAN
    buttons = []
    if Action.APPROVE in card.actions:
        first = "Read all, then answer" if card.kind is Kind.QUESTION else "Read all, then approve"
        label, verb = (card.says(Action.APPROVE, "Approve"), Action.APPROVE) if whole else (first, REVIEW)
        buttons.append(b.button(f"{label} plan" if plan else label, action_id(verb), value, "primary"))
    if Action.DECLINE in card.actions:
        label = "Reject" if plan else "Decline"
        buttons.append(b.button(label, action_id(Action.DECLINE), value, "danger"))
    if Action.REVISE in card.actions:
        buttons.append(b.button("Ask for changes", action_id(Action.REVISE), value))
    if Action.APPROVE_STEPS in card.actions:
        label, verb = steps_button(whole=whole)
        buttons.append(b.button(label, action_id(verb), value, confirm=steps_words(card)))
    if Action.EDIT in card.actions:
        buttons.append(b.button(card.says(Action.EDIT, "Edit"), action_id(Action.EDIT), value))
    hidden = (each for each in more(card, whole=whole) if each[1].partition(":")[0] not in _BUTTONS)
    buttons.append(b.overflow(MORE, [*hidden, ("View all", f"{VIEW}:{value}")]))
    return [*footer, b.actions(*buttons)]


def more(card: Card, *, whole: bool) -> Iterator[tuple[str, str]]:
    """Fill the ⋯ menu with what a card offers beyond its buttons; ``whole`` says it shows everything."""
    value = value_of(card.proposal_id, card.round)
    if Action.DECLINE in card.actions:
        label = "Reject with reason" if card.kind is Kind.PLAN else "Decline with reason"
        yield label, f"{DECLINE_REASON}:{value}"
    if Action.REVISE in card.actions:
        yield "Ask for changes", f"{Action.REVISE}:{value}"
    if Action.APPROVE_STEPS in card.actions:
        label, verb = steps_button(whole=whole)
        yield label, f"{verb}:{value}"
    if Action.SIMILAR in card.actions:
        label = "Approve similar" if whole else "Read all, then approve similar"
        yield label, f"{Action.SIMILAR}:{value}"
    if Action.EXTEND in card.actions:
        yield "Extend the wait", f"{Action.EXTEND}:{value}"


_BUTTONS = frozenset({Action.REVISE.value, Action.APPROVE_STEPS.value, REVIEW_STEPS})
"""What stands on a card as a button, and in a menu only where there is no card."""


def steps_button(*, whole: bool) -> tuple[str, str]:
    """Its label, and what a press does."""
    if whole:
        return "Approve plan and its steps", Action.APPROVE_STEPS
    return "Read all, then approve plan and its steps", REVIEW_STEPS


def steps_words(card: Card) -> str:
    """What approving a plan with its steps allows, in one sentence or two."""
    names = ", ".join(Plan.of(card.arguments).tools) or "no tools"
    return (
        f"{card.teammate or 'The teammate'} may then use what its steps name without asking, until it ends: "
        f"{names}. What cannot be undone still asks."
    )


def _resolved(card: Card) -> list[Block]:
    outcome = text.cut(card.outcome, 800)[0]
    lines = [Line((Run(f"{_SIGNS[card.tone]} "), Run(outcome or b.BLANK, "bold")))]
    if card.result.strip():
        lines.append(Line((Run(text.cut(card.result.strip(), RESULT_SHOWN)[0]),), preformatted=True))
    shown = b.rich(lines)
    if card.result_url and is_web(card.result_url):
        link = {"type": "link", "url": card.result_url, "text": "Open the result"}
        section = {"type": "rich_text_section", "elements": [link]}
        shown.append({"type": "rich_text", "elements": [section]})
    if card.votes:
        shown.append(b.context("; ".join(card.votes)))
    if card.decided_at:
        shown.append(b.moment("Decided", card.decided_at))
    if Action.RETRY in card.actions:
        value = value_of(card.proposal_id, card.round)
        sure = "It runs again exactly as shown. Check first whether it already happened."
        shown.append(b.actions(b.button("Retry", action_id(Action.RETRY), value, confirm=sure)))
    return shown


def _group(card: Card) -> list[Block]:
    if card.group is None:
        return []
    value = value_of(card.proposal_id, card.group.round)
    count = card.group.open
    sure = f"This is for all {count} open changes of this answer; each has its own card."
    buttons = []
    if Action.APPROVE_ALL in card.actions:
        verb = action_id(Action.APPROVE_ALL)
        also = f"{sure} What a card could not show in full is shown to you first."
        buttons.append(b.button(f"Approve all {count}", verb, value, "primary", also))
    if Action.DECLINE_ALL in card.actions:
        buttons.append(b.button(f"Decline all {count}", action_id(Action.DECLINE_ALL), value, "danger", sure))
    return [b.actions(*buttons)] if buttons else []


def _notification(card: Card) -> str:
    title = text.cut(text.link_text(card.title), 300)[0]
    return text.escape(f"{title}: {text.cut(text.link_text(card.outcome), 300)[0]}")


def is_web(url: str) -> bool:
    """Whether a link may be shown: http or https, short enough, nothing odd in it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not parts.netloc or text.width(url) > limits.URL:
        return False
    return url == text.clean(url) and not any(c.isspace() or c in "<>|" for c in url)
