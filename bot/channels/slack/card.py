"""A `Card` as Block Kit blocks: the pending and the resolved twin; and a team. Pure.

Whatever the content, the blocks stay within ``limits``. Where the change does not fit, the card says so and
its Approve opens "View all" first (``screens.py``), so no one approves what they could not read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from bot.channels.card_text import row_sign, team_text
from bot.channels.markdown import clean
from bot.channels.slack import blocks, text
from bot.channels.slack import blocks as b
from bot.channels.slack.blocks import Block, ContextLine, Run
from bot.channels.slack.places import channel_in, is_id, mention_of, user_of
from bot.domain.cards import BatchRow, Card
from bot.domain.diffs import diff
from bot.domain.files import RESULT_SHOWN
from bot.domain.people import Actor
from bot.domain.plans import Plan, PlanLine
from bot.domain.proposals import REMOVED, PreviewField, Tone
from bot.domain.redaction import redact_text
from bot.domain.teams import Standing, Teammate, TeamStatus
from bot.domain.verbs import (
    BUTTONS,
    CHOICES,
    CHOOSE,
    DETAILS,
    EACH_ROW,
    VIEW_ALL,
    Look,
    Needs,
    Verb,
    with_reason,
)

REVIEW = "review"  # opens "View all", whose submit approves
VIEW = "view"
SEND_COMMAND = "command"  # in App Home: sends the command that its value is
REVIEW_STEPS = "review_steps"  # opens it, too; its submit approves a plan with its steps
DECLINE_REASON = "decline_reason"
CONTEXT_SHOWN = "context"  # opens what led to it
CHOOSING = "choose"  # opens the rows of a batch, to pick some
MORE = "nod:more"

_SHOWN_FIELDS = 20
_VALUES = 4000  # units for all values of the change
_VALUE = 1500
_SHORT = 120
_MENTIONING = 300  # characters; a longer list of people mentions no one

_SIGNS = {Tone.WAITING: "⏳", Tone.GOOD: "✅", Tone.BAD: "❌", Tone.WARNED: "⚠️", Tone.QUIET: "⚪"}
_TABLE = 6000  # units for all rows of a batch
_ROWS_SURE = {
    Verb.DECLINE_ALL: "None of these rows runs.",
    Verb.STOP_ALL: "Rows that are running finish. The rest is withdrawn.",
    Verb.UNDO_ALL: "",
}
"""The question before a press counts for all rows of a batch."""
_WORDED = frozenset(verb for verb in Verb if BUTTONS[verb].needs is Needs.WORDS and not BUTTONS[verb].rare)
_BUTTONS = frozenset({*CHOICES, *_WORDED, Verb.APPROVE_STEPS.value, REVIEW_STEPS})
"""What stands on a card as a button, and in a menu only where there is no card."""
_PLACED = frozenset({Verb.APPROVE, Verb.APPROVE_ALL, Verb.DECLINE})
"""What needs nothing and has a button of its own; the rest of that is in the menu."""
_SURE = {
    Verb.RETRY: ("", "It runs again exactly as shown. Check first whether it already happened."),
    Verb.STOP: ("danger", "What it has done so far stays done."),
    Verb.UNDO: ("", ""),
}
"""What a card that no longer waits offers: how the button looks, and what is asked before it counts."""
_TEAMMATES = 20  # the newest
_SAID = 300  # units of what one does or found
_STATUS = {
    Standing.WORKING: "in_progress",
    Standing.DONE: "complete",
    Standing.FAILED: "error",
    Standing.STOPPED: "error",
}


@dataclass(frozen=True, slots=True)
class SlackCard:
    """A card ready to post: its blocks and the text of its notification.

    ``whole``: nothing of the change was cut.
    """

    blocks: list[Block]
    text: str
    whole: bool

    @property
    def message(self) -> dict[str, Any]:
        """The card as keyword arguments of Slack's methods."""
        return {"text": self.text, "blocks": self.blocks}


def action_id(verb: str) -> str:
    return f"nod:{verb}"


def value_of(card: Card) -> str:
    return f"{card.proposal_id}:{card.round}"


def parse_value(value: str) -> tuple[str, int]:
    """Parse a button's value into proposal id and round. Raises ValueError for one that is not Nod's."""
    proposal_id, colon, round_ = value.rpartition(":")
    if not (colon and proposal_id and round_.isdecimal()):
        raise ValueError("this button is not one of ours")
    return proposal_id, int(round_)


def render(card: Card, team: str = "") -> SlackCard:
    """Render the card as it stands; ``team`` is the workspace whose people and channels can be named."""
    title, title_cut = _title(card)
    change, change_cut = _change(card)
    if card.batch:
        rows, rows_cut = batch_rows(card.batch.rows)
        change, change_cut = [*change, *rows], change_cut or rows_cut
    whole = not (title_cut or change_cut)
    if (card.batch or card.carried_out) and not card.pending:
        ended = [*_write_resolved(card), *b.rich(change), *_notes(card)]
        return SlackCard(ended, _notification(card), whole=True)
    if not card.pending:
        folded = [*_group(card), *_write_resolved(card), *_notes(card)]
        return SlackCard(folded, _notification(card), whole)
    shown = [*([] if card.batch else _group(card)), *title, *b.rich([*_reason(card), *change])]
    if card.pending and not whole:
        shown.append(b.context("✂️ Too long for this card. View all shows everything."))
    shown += [*_notes(card), *_pending(card, team, whole=whole)]
    return SlackCard(shown, _notification(card), whole)


def brief(card: Card, team: str = "") -> SlackCard:
    """Render the least that can be decided on: title, state and buttons; "View all" has the rest."""
    note = b.context("✂️ Slack could not show this card in full. View all shows everything.")
    title = b.rich([ContextLine((Run(text.cut(text.link_text(card.title) or b.BLANK, 300)[0], "bold"),))])
    title = title if card.pending else []
    if card.pending:
        state = _pending(card, team, whole=False)
    else:
        state = _write_resolved(card)
    shown = [*([] if card.batch else _group(card)), *title, note, *_notes(card), *state]
    return SlackCard(shown, _notification(card), whole=False)


def _title(card: Card) -> tuple[list[Block], bool]:
    title = text.link_text(card.title) or card.tool_name or b.BLANK
    if text.width(title) <= blocks.HEADER:
        return [b.header(title)], False
    shown, cut = text.cut(title, 600)
    return b.rich([ContextLine((Run(shown, "bold"),))]), cut


def _reason(card: Card) -> Iterator[ContextLine]:
    if card.kind.is_answer and card.risk_reason:
        yield ContextLine((Run(text.cut(text.link_text(card.risk_reason), 300)[0], "italic"),))
    elif card.warning:
        yield ContextLine((Run("⚠️ "), Run(text.cut(text.link_text(card.warning), 300)[0], "bold")))
    if card.why.strip():
        yield ContextLine((Run("Why: ", "bold"), Run(text.cut(card.why.strip(), 600)[0])))


def _change(card: Card) -> tuple[list[ContextLine], bool]:
    steps = card.outline
    if steps:
        return _plan(steps)
    fields = card.shown_fields
    shown = fields[:_SHOWN_FIELDS]
    room = min(_VALUE, max(100, _VALUES // max(1, 2 * len(shown))))
    lines: list[ContextLine] = []
    missing = len(fields) - len(shown)
    some_cut = missing > 0
    for field in shown:
        more, cut = field_lines(field, room)
        lines += more
        some_cut = some_cut or cut
    if missing:
        lines.append(ContextLine((Run(f"… [{missing} more fields]", "italic"),)))
    return lines, some_cut


def batch_rows(
    rows: Sequence[BatchRow], room: int = _TABLE, first: int = 1
) -> tuple[list[ContextLine], bool]:
    """Return the rows of a batch, numbered from ``first``: subjects, and differences or outcomes."""
    lines: list[ContextLine] = []
    used, some_cut = 0, False
    for number, row in enumerate(rows, first):
        more, cut = _row(number, row, room)
        used += sum(line.width for line in more)
        if used > room:
            left = len(rows) - (number - first)
            return [*lines, ContextLine((Run(f"… [{left} more rows]", "italic"),))], True
        lines, some_cut = [*lines, *more], some_cut or cut
    return lines, some_cut


def _row(number: int, row: BatchRow, room: int) -> tuple[list[ContextLine], bool]:
    about, some_cut = text.cut(text.link_text(row.about) or b.BLANK, 300)
    head = [Run(f"{number}. {row_sign(row)}"), Run(about, "bold" if row.card.pending else "")]
    if not row.card.pending:
        fault = text.cut(f": {row.fault}", _SHORT)[0] if row.fault else ""
        return [ContextLine((*head, Run(fault)))], some_cut
    below: list[ContextLine] = []
    for field in row.fields:
        lines, cut = field_lines(field, min(_VALUE, room // 4))
        some_cut = some_cut or cut
        if len(lines) == 1:
            head += [Run(" · "), *lines[0].runs]
        else:
            below += lines
    notes = [Run(f" · {text.cut(note, _SHORT)[0]}", "italic") for note in row.notes]
    return [ContextLine((*head, *notes)), *below], some_cut


def _plan(found: Sequence[PlanLine]) -> tuple[list[ContextLine], bool]:
    """Return a plan as a numbered list, each step with the tools that it names."""
    room = min(_VALUE, max(100, _VALUES // len(found)))
    lines, some_cut = [], False
    for each in found:
        said, cut = text.cut(each.text, room)
        some_cut = some_cut or cut
        label = (Run(f"{each.label}: ", "bold"),) if each.label else ()
        tools = tuple(run for name in each.tools for run in (Run("  "), Run(name, "code")))
        marked, mark_cut = text.cut(each.mark, room)
        some_cut = some_cut or mark_cut
        mark = (Run(f"  ({marked})", "italic"),) if marked else ()
        lines.append(ContextLine((*label, Run(said or b.BLANK), *tools, *mark), numbered=bool(each.number)))
    return lines, some_cut


def field_lines(field: PreviewField, room: int) -> tuple[list[ContextLine], bool]:
    """Return one field of the change within ``room`` units per value, and whether any of it was cut."""
    name, name_cut = text.cut(field.field or b.BLANK, 60)
    old, old_cut = (None, False) if field.old_value is None else text.cut(field.old_value, room)
    new, new_cut = (None, False) if field.new_value is None else text.cut(field.new_value, room)
    label = Run(f"{name}: ", "bold")
    cut = name_cut or old_cut or new_cut
    if all(v is None or (len(v) <= _SHORT and "\n" not in v) for v in (old, new)):
        return [ContextLine((label, *_inline(old, new)))], cut
    compared = diff(field.old_value, field.new_value)
    if compared is not None:
        said, cut = text.cut(compared, 2 * room)
        return [ContextLine((label,)), ContextLine((Run(said),), preformatted=True)], name_cut or cut
    if old is None or field.old_value == field.new_value:
        return _write_in_lines(label, "" if old is None else "(unchanged)", new), cut
    if new is None:
        return _write_in_lines(label, f"({REMOVED})", old), cut
    return [*_write_in_lines(label, "now", old), *_write_in_lines(label, "will be", new)], cut


def _write_in_lines(label: Run, aside: str, value: str | None) -> list[ContextLine]:
    return [
        ContextLine((label, Run(aside, "italic"))),
        ContextLine((Run(value or b.BLANK),), preformatted=True),
    ]


def _inline(old: str | None, new: str | None) -> tuple[Run, ...]:
    if new is not None:
        after = Run(new or b.BLANK)
    elif old is None:
        after = Run("(nothing)", "italic")
    else:
        after = Run(f"({REMOVED})", "italic")
    if old is None:
        return (after,)
    if old == new:
        return (after, Run(" (unchanged)", "italic"))
    return (Run(old or b.BLANK, "strike"), Run(" → "), after)


def _notes(card: Card) -> list[Block]:
    """Return a block with the notes of a card, such as the tally, edits and lines of features.

    It is plain text, in which Slack makes no links.
    """
    if card.notes:
        notes = [b.context(*(f"📌 {note}" for note in card.notes))]
    else:
        notes = []
    if card.acts_as and not card.pending:
        notes = [b.context(card.acts_as), *notes]
    if card.annotations:
        lines = [b.context(*(f"💬 {each.words}" for each in card.annotations))]
    else:
        lines = []
    return [*lines, *notes]


def _write_asker(card: Card, team: str) -> str | Block:
    """Write the requester; on a copy elsewhere also the place, as a link within the workspace."""
    channel = channel_in(card.origin, team) if card.origin else None
    if channel is None:
        return card.asked
    return b.mrkdwn_block(
        f"{text.escape(text.cut(replace(card, asked_in='').asked, 300)[0])} in <#{channel}>"
    )


def _deciders(card: Card, team: str) -> str | Block:
    """Write the people who may decide. Mentions notify those of the workspace of a new card."""
    if card.asker_decides:
        return ""
    parts = card.circle.parts
    if len(card.deciders) > _MENTIONING or not any(isinstance(part, Actor) for part in parts):
        return f"Can decide: {text.cut(card.deciders, 300)[0]}"
    return b.mrkdwn_block(f"Can decide: {''.join(_mention(part, team) for part in parts)}")


def _mention(part: Actor | str, team: str) -> str:
    found = user_of(part) if isinstance(part, Actor) else None
    if found is not None and found[0] == team and is_id(found[1]):
        return mention_of(found[1])
    return text.escape(part.label if isinstance(part, Actor) else part)


def _pending(card: Card, team: str, *, whole: bool) -> list[Block]:
    votes = "; ".join(card.tally)
    asked = (_write_asker(card, team), _deciders(card, team), card.acts_as, votes, card.undo_note)
    footer = [b.footer(*asked, label="Expires", at=card.expires)]
    value = value_of(card)
    if card.batch:
        return [*footer, b.actions(*_for_rows(card, value, whole=whole))]
    plan = card.kind.has_steps
    views = [(VIEW_ALL, f"{VIEW}:{value}")]
    buttons = [_button(card, verb, value) for verb in CHOICES if verb in card.verbs]
    if Verb.APPROVE in card.verbs:
        if card.kind.is_answer:
            first = "View all, then answer"
        else:
            first = "View all, then approve"
        if plan:
            first = f"{first} plan"
        pressed = card.button(Verb.APPROVE)
        label, verb, sure = (pressed.label, Verb.APPROVE, pressed.sure) if whole else (first, REVIEW, None)
        views = views if whole else []
        style = "danger" if pressed.look is Look.DANGER else "primary"
        buttons.append(b.button(label, action_id(verb), value, style, sure=sure))
    if Verb.DECLINE in card.verbs:
        buttons.append(_button(card, Verb.DECLINE, value))
    buttons += [_button(card, verb, value) for verb in card.verbs if verb in _WORDED]
    if Verb.APPROVE_STEPS in card.verbs:
        label, verb = steps_button(card, whole=whole)
        buttons.append(b.button(label, action_id(verb), value, confirm=steps_words(card)))
    if Verb.FOR_REAL in card.verbs and Verb.APPROVE not in card.verbs:  # shows everything first
        style = "danger" if card.button(Verb.FOR_REAL).look is Look.DANGER else ""
        buttons.insert(0, _button(card, Verb.FOR_REAL, value, style))
    if Verb.EDIT in card.verbs:
        buttons.append(_button(card, Verb.EDIT, value))
    hidden = [each for each in more(card, whole=whole) if each[1].partition(":")[0] not in _BUTTONS]
    if hidden or views:
        room = blocks.OVERFLOW_OPTIONS - len(views)
        if len(hidden) > room:  # a command extends it, too
            hidden = [each for each in hidden if not each[1].startswith(f"{Verb.EXTEND}:")]
        buttons.append(b.overflow(MORE, [*hidden[:room], *views]))
    return [*footer, b.actions(*buttons)]


def _for_rows(card: Card, value: str, *, whole: bool) -> Iterator[Block]:
    """Yield the buttons of a batch."""
    if Verb.APPROVE_ALL in card.verbs:
        if whole:
            label = card.button(Verb.APPROVE_ALL).label
        else:
            label = "View all, then approve"
        yield b.button(label, action_id(Verb.APPROVE_ALL), value, "primary")
    if Verb.APPROVE_ALL in card.verbs or Verb.DECLINE_ALL in card.verbs:
        yield b.button(CHOOSE, action_id(CHOOSING), value)
    for verb in (Verb.DECLINE_ALL, Verb.STOP_ALL):
        if verb in card.verbs:
            yield _button(card, verb, value, "danger" if verb is Verb.STOP_ALL else "", _ROWS_SURE[verb])
    yield b.overflow(MORE, [(VIEW_ALL, f"{VIEW}:{value}")])


def _button(card: Card, action: Verb, value: str, style: str = "", confirm: str = "") -> Block:
    drawn = card.button(action)
    return b.button(drawn.label, action_id(action), value, style, confirm, None if confirm else drawn.sure)


def more(card: Card, *, whole: bool) -> Iterator[tuple[str, str]]:
    """Fill the ⋯ menu with what a card offers beyond its buttons; ``whole`` says it shows everything."""
    value = value_of(card)
    if Verb.DECLINE in card.verbs and card.button(Verb.DECLINE).needs is Needs.REASON:
        yield with_reason(card.button(Verb.DECLINE)), f"{DECLINE_REASON}:{value}"
    yield from _entries(card, value, Needs.WORDS)
    if Verb.APPROVE_STEPS in card.verbs:
        label, steps = steps_button(card, whole=whole)
        yield label, f"{steps}:{value}"
    if Verb.FOR_REAL in card.verbs and Verb.APPROVE in card.verbs:
        yield card.button(Verb.FOR_REAL).label, f"{Verb.FOR_REAL}:{value}"
    if Verb.SIMILAR in card.verbs:
        if whole:
            label = card.button(Verb.SIMILAR).label
        else:
            label = "View all, then approve similar"
        yield label, f"{Verb.SIMILAR}:{value}"
    yield from _entries(card, value, Needs.NOTHING)


def _entries(card: Card, value: str, needs: Needs) -> Iterator[tuple[str, str]]:
    for verb in card.verbs:
        if verb not in _PLACED and card.button(verb).needs is needs:
            yield card.button(verb).label, f"{verb}:{value}"


def steps_button(card: Card, *, whole: bool) -> tuple[str, str]:
    """Return the label of the button, and the action of a press."""
    if whole:
        return card.button(Verb.APPROVE_STEPS).label, Verb.APPROVE_STEPS
    return "View all, then approve plan and its steps", REVIEW_STEPS


def steps_words(card: Card) -> str:
    """Describe in a sentence or two the effect of approving a plan with its steps."""
    names = ", ".join(Plan.of(card.arguments).tools) or "no tools"
    return (
        f"{card.teammate or 'The teammate'} may then use what its steps name without asking, until it ends: "
        f"{names}. What cannot be undone still asks."
    )


def _write_resolved(card: Card) -> list[Block]:
    headline = text.cut(text.link_text(card.headline) or card.tool_name or b.BLANK, 600)[0]
    linked = card.result_url if card.result_url and is_web(card.result_url) else ""
    lines = [ContextLine((Run(f"{_SIGNS[card.tone]} "), Run(headline, "bold", linked)))]
    if card.result.strip():
        lines.append(ContextLine((Run(text.cut(card.result.strip(), RESULT_SHOWN)[0]),), preformatted=True))
    outcome = text.cut(card.end, 400)[0]
    value = value_of(card)
    details = b.button(DETAILS, action_id(VIEW), value)
    ended = "; ".join(filter(None, (outcome, *card.tally)))
    runs = card.running_since is not None
    shown = [*b.rich(lines), b.closing(text.cut(ended, 1000)[0], card.ended_at, details, runs=runs)]
    offered = [_button(card, verb, value, *_SURE[verb]) for verb in _SURE if verb in card.verbs]
    if card.batch:
        offered = [_button(card, v, value, "", _ROWS_SURE[v]) for v in card.verbs if v in _ROWS_SURE]
        offered += [b.button(EACH_ROW, action_id(CHOOSING), value)] if card.batch.offers else []
    if offered:
        return [*shown, b.actions(*offered)]
    return shown


def _group(card: Card) -> list[Block]:
    """Return the blocks above the first card of several."""
    if card.group is None:
        return []
    value = f"{card.proposal_id}:{card.group.round}"
    count = card.group.open
    sure = f"This is for all {count} open changes of this answer; each has its own card."
    left = card.group.alone
    if left:
        some = f"{sure} {left} can't be undone: approve {'it' if left == 1 else 'each'} there."
    else:
        some = sure
    buttons = []
    if Verb.APPROVE_ALL in card.verbs:
        also = f"{some} What a card could not show in full is shown to you first."
        buttons.append(_button(card, Verb.APPROVE_ALL, value, "primary", also))
    if Verb.DECLINE_ALL in card.verbs:
        buttons.append(_button(card, Verb.DECLINE_ALL, value, "", sure))
    size = card.group.size
    open_ = f"{size} changes" if count == size else f"{count} of {size} changes"
    if buttons:
        return [b.context(f"{open_} in this answer are open."), b.actions(*buttons)]
    return []


def _notification(card: Card) -> str:
    title = text.cut(text.link_text(card.headline), 300)[0].rstrip(".")
    return text.escape(f"{title}: {text.cut(text.link_text(card.outcome), 300)[0]}")


def is_web(url: str) -> bool:
    """Return whether a link may be shown: http or https, short enough, nothing odd in it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not parts.netloc or text.width(url) > blocks.URL:
        return False
    return url == clean(url) and not any(c.isspace() or c in "<>|" for c in url)


def render_team(board: TeamStatus) -> SlackCard:
    """Return a team as a plan block, with a task card for each teammate."""
    tasks = [_task(each) for each in board.teammates[-_TEAMMATES:]]
    block = {"type": "plan", "title": text.cut(board.title, blocks.TASK_TITLE)[0], "tasks": tasks}
    return SlackCard([block], text.escape(board.title), whole=True)


def brief_team(board: TeamStatus) -> SlackCard:
    """Render a team's status in rich text only, for a Slack that refuses the other blocks."""
    lines = (ContextLine((Run(line),)) for line in team_text(board).splitlines())
    return SlackCard(b.rich(lines), text.escape(board.title), whole=True)


def _task(each: Teammate) -> Block:
    task: Block = {
        "type": "task_card",
        "task_id": each.id,
        "title": _name_teammate(each),
        "status": _STATUS[each.standing],
    }
    ended = each.standing is not Standing.WORKING
    said = _doing(each)
    if said:
        task["output" if ended else "details"] = b.rich(said)[0]
    return task


def _name_teammate(each: Teammate) -> str:
    plan = f"; {each.plan_state}" if each.plan_state else ""
    return text.cut(text.link_text(f"{each.name}: {each.state}{plan}"), blocks.TASK_TITLE)[0]


def _doing(each: Teammate) -> list[ContextLine]:
    said = text.cut(redact_text(each.about), _SAID)[0]
    if said.strip():
        return [ContextLine((Run(said),))]
    return []
